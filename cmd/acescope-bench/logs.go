package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// followed is one following of a file that grows at full speed.
type followed struct {
	seconds float64 // from the first byte written to the last line read
	peakMB  float64
}

// logSlack is written after the lines that count: what the follower's output buffer still
// holds then belongs to it, so that a last line need not wait for the buffer to fill.
const logSlack = 2 << 20

// logs measures how fast a file that is appended to at full speed comes out as JSON.
func (b *bench) logs(ctx context.Context) error {
	peer, err := logPeer()
	if err != nil {
		b.progress("logs: no peer: %v", err)
	}
	var ours, theirs, oursMB, theirsMB series
	lines := 0
	for range b.size.runs {
		for _, who := range []struct {
			command   func(file string) [][]string
			notes     int // lines that come before the file's
			speed, mb *series
		}{
			{func(file string) [][]string {
				return [][]string{{b.acescope, "logs", file, "-f", "--from-start", "--json"}}
			}, 1, &ours, &oursMB},
			{peer, 0, &theirs, &theirsMB},
		} {
			if who.command == nil {
				continue
			}
			f, n, err := b.followOnce(ctx, who.command, who.notes)
			if err != nil {
				return err
			}
			lines = n
			*who.speed = append(*who.speed, float64(n)/f.seconds)
			*who.mb = append(*who.mb, f.peakMB)
		}
	}
	what := fmt.Sprintf("%d MB of JSON lines appended at full speed, %d lines, none lost", b.size.logMB, lines)
	b.report.add(row{section: "logs", what: what, unit: "lines/s", ours: ours, peer: theirs, target: atLeast(1)},
		row{section: "logs", what: "peak memory meanwhile", unit: "MB", ours: oursMB, peer: theirsMB, target: below(200)})
	return nil
}

// logPeer is tail -F FILE | jq -c . where both are there.
func logPeer() (func(file string) [][]string, error) {
	tail, err := exec.LookPath("tail")
	if err != nil {
		return nil, err
	}
	jq, err := exec.LookPath("jq")
	if err != nil {
		return nil, err
	}
	return func(file string) [][]string { return [][]string{{tail, "-n", "+1", "-F", file}, {jq, "-c", "."}} }, nil
}

// followOnce starts the commands, each reading what the one before writes, then appends
// the file, and counts what the last writes. Line n must be the file's n-th.
func (b *bench) followOnce(ctx context.Context, commands func(string) [][]string, notes int) (f followed, lines int, err error) {
	dir, remove, err := b.fresh("logs")
	if err != nil {
		return f, 0, err
	}
	defer remove()
	path := filepath.Join(dir, "app.jsonl")
	file, err := os.Create(path)
	if err != nil {
		return f, 0, err
	}
	defer file.Close()
	all, out, err := startPipeline(ctx, commands(path))
	if err != nil {
		return f, 0, err
	}
	lines = linesOf(int64(b.size.logMB) << 20)
	started := time.Now()
	written := make(chan error, 1)
	go func() { written <- writeLog(file, lines, logSlack) }()
	nth, err := nthLine(out, lines+notes)
	f.seconds = time.Since(started).Seconds()
	if err == nil && !bytes.Contains(nth, []byte(`"seq":`+strconv.Itoa(lines)+",")) {
		err = fmt.Errorf("line %d is another than was written as such: %.200s", lines, nth)
	}
	err = errors.Join(err, <-written)
	for _, c := range all {
		_ = c.Process.Kill() // it would follow for ever
		_ = c.Wait()
		if u, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
			f.peakMB += peakMB(u)
		}
	}
	return f, lines, err
}

func startPipeline(ctx context.Context, commands [][]string) (all []*exec.Cmd, out io.Reader, err error) {
	for _, args := range commands {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Stdin, cmd.Stderr = out, io.Discard
		if out, err = cmd.StdoutPipe(); err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return all, nil, err
		}
		all = append(all, cmd)
	}
	return all, out, nil
}

// nthLine reads to the end of line n and returns that line.
func nthLine(r io.Reader, n int) ([]byte, error) {
	buf := make([]byte, 1<<18)
	held := 0 // bytes of an unfinished line at the beginning of buf
	for n > 0 {
		if held == len(buf) {
			return nil, errors.New("a line is longer than 256 KiB")
		}
		m, err := r.Read(buf[held:])
		data := buf[:held+m]
		if c := bytes.Count(data[held:], []byte{'\n'}); c < n {
			n -= c
			held = copy(buf, data[bytes.LastIndexByte(data, '\n')+1:])
		} else {
			for ; n > 1; n-- {
				data = data[bytes.IndexByte(data, '\n')+1:]
			}
			return data[:bytes.IndexByte(data, '\n')], nil
		}
		if err != nil {
			return nil, fmt.Errorf("%d lines are missing: %w", n, err)
		}
	}
	return nil, nil
}

// logFiller makes lines 200 to 400 bytes long.
var logFiller = strings.Repeat("learning by doing ", 12)

func appendLogLine(b []byte, seq int) []byte {
	b = strconv.AppendInt(append(b, `{"time":"2026-05-04T12:00:00.123456Z","level":"info","seq":`...), int64(seq), 10)
	b = append(b, `,"msg":"`...)
	b = append(b, logFiller[:(seq*37)%len(logFiller)]...)
	b = append(b, `","workflow_id":"ace/finance-1-e1-0042","attempt":1,"args":{"name":"return on equity","values":[17.2,100]},"ok":true,"ms":`...)
	b = strconv.AppendInt(b, int64(seq%977), 10)
	return append(b, '}', '\n')
}

// linesOf is how many lines make up so many bytes.
func linesOf(size int64) int {
	const sample = 10_000
	var b []byte
	for i := range sample {
		b = appendLogLine(b, 100_000+i)
	}
	return int(size * sample / int64(len(b)))
}

// writeLog appends the lines as fast as the file takes them, and slack bytes or more.
func writeLog(w io.Writer, lines int, slack int) error {
	b := make([]byte, 0, 1<<16+1024)
	for seq := 1; slack > 0; seq++ {
		before := len(b)
		b = appendLogLine(b, seq)
		if seq > lines {
			slack -= len(b) - before
		}
		if len(b) >= 1<<16 || slack <= 0 {
			if _, err := w.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	return nil
}
