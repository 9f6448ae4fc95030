//go:build unix

package agentcli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
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

// repeated returns a stream of at least size bytes: the recorded streams of a CLI, or the
// handwritten ones if there are no recordings, over and over.
func repeated(b *testing.B, cli CLI, size int) []byte {
	b.Helper()
	files, _ := filepath.Glob(filepath.Join(recordings, string(cli), "*.jsonl"))
	if len(files) == 0 {
		files = streams(b, cli)
	}
	var all []byte
	for _, file := range files {
		if strings.Contains(file, "array") || strings.Contains(file, "object") || strings.Contains(file, "hooks-") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		all = append(append(all, bytes.TrimPrefix(data, []byte("\ufeff"))...), '\n')
	}
	return bytes.Repeat(all, size/len(all)+1)
}

// BenchmarkReader measures parsing. MB/cpu-s, the throughput per second of CPU time, is
// comparable on a busy machine.
func BenchmarkReader(b *testing.B) {
	for _, cli := range CLIs() {
		b.Run(string(cli), func(b *testing.B) {
			data := repeated(b, cli, 64<<20)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			events, began := 0, cpuTime()
			for b.Loop() {
				r := NewReader(bytes.NewReader(data), cli)
				for {
					if _, err := r.Next(); err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
					events++
				}
			}
			b.ReportMetric(float64(len(data))*float64(b.N)/1e6/(cpuTime()-began).Seconds(), "MB/cpu-s")
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
