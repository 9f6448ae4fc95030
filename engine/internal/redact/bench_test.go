//go:build unix

package redact

import (
	"bytes"
	"fmt"
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

// BenchmarkLine measures typical lines of agents: without secrets, with many escapes, and with a
// secret each. MB/cpu-s is the throughput per second of CPU time.
func BenchmarkLine(b *testing.B) {
	var known []Secret
	for i := range 20 {
		known = append(known, Secret{fmt.Sprintf("NAME_%d", i), fmt.Sprintf("a-secret-%d-of-the-environment",
			i*7919)})
	}
	r := New(known...)
	prose := strings.Repeat("I will run the tests of the package, and look at what fails; then mend it. ", 20)
	code := strings.Repeat("func main() {\\n\\tfmt.Println(\\\"hello\\\")\\n}\\n", 30)
	for name, text := range map[string]string{
		"prose": prose, "code": code, "escapes": strings.ReplaceAll(code, "<", "\\u003c") +
			strings.Repeat("\\u003ca\\u003e ", 30),
		"secret": prose + madeUp["anthropic"],
	} {
		b.Run(name, func(b *testing.B) {
			line := []byte(`{"type":"assistant","message":{"id":"msg_1","content":[{"type":"text","text":"` +
				text + `"}]},"session_id":"11111111-1111-4111-8111-111111111111"}`)
			data := bytes.Repeat(append(line, '\n'), 1000)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			began := cpuTime()
			for b.Loop() {
				for l := range bytes.Lines(data) {
					r.Line(bytes.TrimSuffix(l, []byte{'\n'}))
				}
			}
			b.ReportMetric(float64(len(data))*float64(b.N)/1e6/(cpuTime()-began).Seconds(), "MB/cpu-s")
		})
	}
}
