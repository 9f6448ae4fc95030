//go:build unix

package agentcli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cpuTime returns the CPU time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// recorded returns the recorded streams of a CLI in one, or the handwritten streams without
// recordings. $ACESCOPE_STREAMS names another directory of recordings.
func recorded(b *testing.B, cli CLI) []byte {
	b.Helper()
	files, _ := filepath.Glob(filepath.Join(cmp.Or(os.Getenv("ACESCOPE_STREAMS"), recordings), string(cli),
		"*.jsonl"))
	if len(files) == 0 {
		files = streams(b, cli)
	}
	var all []byte
	for _, file := range files {
		if strings.Contains(file, "array") || strings.Contains(file, "object") ||
			strings.Contains(file, "hooks-") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		all = append(append(all, bytes.TrimPrefix(data, []byte("\ufeff"))...), '\n')
	}
	return all
}

// repeater reads data rounds times.
type repeater struct {
	data, rest []byte
	rounds     int
}

func (r *repeater) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.rounds == 0 {
			return 0, io.EOF
		}
		r.rounds--
		r.rest = r.data
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// BenchmarkReader measures parsing about one megabyte of output per iteration, and as json decoding
// its lines with encoding/json. MB/cpu-s, the throughput per second of CPU time, is comparable on a
// busy machine.
func BenchmarkReader(b *testing.B) {
	for _, cli := range CLIs() {
		data := recorded(b, cli)
		b.Run(string(cli)+"-ours", func(b *testing.B) {
			benchmarkStream(b, data, func(in io.Reader) (events int, err error) {
				err = NewReader(in, cli).All(func(Event) error {
					events++
					return nil
				})
				return events, err
			})
		})
		b.Run(string(cli)+"-json", func(b *testing.B) { benchmarkStream(b, data, decodeLines) })
	}
}

func benchmarkStream(b *testing.B, data []byte, parse func(io.Reader) (int, error)) {
	rounds := b.N<<20/len(data) + 1
	size := rounds * len(data)
	runtime.GC()
	debug.FreeOSMemory()
	b.ReportAllocs()
	began := cpuTime()
	b.ResetTimer()
	events, err := parse(&repeater{data: data, rounds: rounds})
	b.StopTimer()
	if err != nil || events == 0 {
		b.Fatal(events, err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(size)/1e6/(cpuTime()-began).Seconds(), "MB/cpu-s")
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(m.HeapSys-m.HeapReleased)/(1<<20), "heap-MB")
}

// decodeLines decodes line by line, because a decoder cannot continue after text that is not JSON,
// which agents also print.
func decodeLines(in io.Reader) (n int, err error) {
	lines := NewLineReader(in)
	for {
		line, err := lines.Next()
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		var v map[string]any
		if json.NewDecoder(bytes.NewReader(line.Bytes)).Decode(&v) == nil {
			n++
		}
	}
}
