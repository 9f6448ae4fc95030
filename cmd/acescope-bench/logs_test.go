//go:build bench

package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// logLineBytes is the average length of a log line.
	logLineBytes = 307
	// logExtra is how many lines follow those that count. They stay in the output buffer of the
	// follower, so that the last line that counts does not have to wait until the buffer is full.
	logExtra = 8000
)

// logs compares how fast acescope logs and tail | jq follow a file that grows at full speed.
func logs(b *bench) {
	lines := b.size.megabytes << 20 / logLineBytes
	var peer measure
	if _, err := exec.LookPath("jq"); err != nil {
		b.progress("  no peer: %v", err)
	} else {
		peer = func() []float64 {
			file := filepath.Join(b.tempDir(), "app.jsonl")
			return b.followLog(file, lines, 0, []string{"tail", "-n", "+1", "-F", file},
				[]string{"jq", "-c", "."})
		}
	}
	b.compare(b.size.runs, []figure{
		{what: fmt.Sprintf("%d MB of JSON lines appended at full speed, %d lines, none lost",
			b.size.megabytes, lines),
			unit: "lines/s", target: "≥ 1×"},
		{what: "peak memory", unit: "MB", target: "≤ 200"},
	}, func() []float64 {
		file := filepath.Join(b.tempDir(), "app.jsonl")
		// acescope writes one line before those of the file.
		return b.followLog(file, lines, 1, []string{b.acescope, "logs", file, "-f", "--from-start", "--json"})
	}, peer)
}

// followLog starts a pipeline of commands, appends lines to the file that it follows, and reads the
// output until the last line. That line must be the last one of the file.
func (b *bench) followLog(path string, lines, before int, commands ...[]string) []float64 {
	file := must(os.Create(path))
	defer os.Remove(path)
	defer file.Close()
	ctx, kill := context.WithCancel(b.ctx) // they would follow forever
	defer kill()
	var all []*exec.Cmd
	var peaks []func() float64
	var out io.Reader
	for _, args := range commands {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Stdin = out
		out = must(cmd.StdoutPipe())
		check(cmd.Start())
		all, peaks = append(all, cmd), append(peaks, watchPeak(cmd))
	}
	began := time.Now()
	written := make(chan error, 1)
	go func() { written <- writeLog(file, lines+logExtra) }()
	scanner := bufio.NewScanner(out)
	scanner.Buffer(make([]byte, 1<<18), 1<<18)
	n := 0
	for n < lines+before && scanner.Scan() {
		n++
	}
	seconds := time.Since(began).Seconds()
	if n < lines+before || !bytes.Contains(scanner.Bytes(), []byte(`"seq":`+strconv.Itoa(lines)+",")) {
		fail("line %d of the output is not line %d of the file: %.200s", n, lines, scanner.Bytes())
	}
	check(<-written)
	peak := 0.0
	for _, stop := range peaks {
		peak += stop()
	}
	kill()
	for _, cmd := range all {
		_ = cmd.Wait()
	}
	return []float64{float64(lines) / seconds, peak}
}

// filler makes lines 200 to 400 bytes long.
var filler = strings.Repeat("learning by doing ", 12)

// writeLog appends lines as fast as the file takes them.
func writeLog(file io.Writer, lines int) error {
	w := bufio.NewWriterSize(file, 1<<16)
	var line []byte
	for seq := 1; seq <= lines; seq++ {
		line = append(line[:0], `{"time":"2026-05-04T12:00:00.123456Z","level":"info","seq":`...)
		line = strconv.AppendInt(line, int64(seq), 10)
		line = append(line, `,"msg":"`...)
		line = append(line, filler[:(seq*37)%len(filler)]...)
		line = append(line, `","workflow_id":"ace/finance-1-e1-0042","attempt":1,`...)
		line = append(line, `"args":{"name":"return on equity","values":[17.2,100]},"ok":true,"ms":`...)
		line = append(strconv.AppendInt(line, int64(seq%977), 10), "}\n"...)
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return w.Flush()
}
