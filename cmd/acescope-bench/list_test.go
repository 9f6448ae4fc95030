//go:build bench

package bench

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"time"
)

// temporalModule is the newest release of the temporal command that Go can build by itself. Later
// releases replace a module by a directory outside of their own.
const temporalModule = "github.com/temporalio/cli/cmd/temporal@v1.5.1"

// ensureTemporal builds the temporal command if it is missing and was not named.
func (b *bench) ensureTemporal() {
	if b.temporal != "" {
		return
	}
	bin := filepath.Join(b.dir, "bin")
	b.temporal = filepath.Join(bin, "temporal")
	if exists(b.temporal) {
		return
	}
	b.progress("  building %s, once; this takes minutes", temporalModule)
	if _, err := b.run([]string{"GOBIN=" + bin}, "go", "install", temporalModule); err != nil {
		fail("%w; name a temporal command with -temporal", err)
	}
}

// list compares acescope list with temporal workflow list on one server.
func list(b *bench) {
	b.ensureTemporal()
	count, attempts := b.size.list, 2*b.size.runs+1 // a list takes only seconds
	dir := b.ensureFilled()
	s := b.serve(dir)
	b.compare(attempts, []figure{
		{what: fmt.Sprintf("%d runs, start to last line", count), unit: "ms", speedup: true,
			target: "≥ 1.3×"},
		{what: "start to first line", unit: "ms", speedup: true},
		{what: "user and system CPU", unit: "ms", speedup: true},
		{what: "peak resident", unit: "MB", speedup: true},
	}, func() []float64 {
		return b.lines(count, nil, b.acescope, "list", "--json", "--data-dir", dir).figures()
	}, func() []float64 {
		return b.lines(count, s.env, b.temporal, "workflow", "list", "-o", "jsonl").figures()
	})

	// The memory must not depend on the number of runs. A third more is allowed, because up to four pages
	// are read at the same time.
	part := min(group, count)
	b.compare(attempts, []figure{
		{what: fmt.Sprintf("peak resident, %d runs against %d", count, part), unit: "MB", target: "≤ 1.3×"},
	}, func() []float64 {
		return []float64{b.lines(count, nil, b.acescope, "list", "--json", "--data-dir", dir).peakMB}
	}, func() []float64 {
		query := fmt.Sprintf("ExperimentId = %q", experimentOf(0))
		return []float64{b.lines(part, nil, b.acescope, "list", "--json", "--data-dir", dir, "-q",
			query).peakMB}
	})

	b.compare(attempts, []figure{
		{what: "server's answer to first line", unit: "ms", target: "≤ 100"},
	}, func() []float64 {
		relay := newRelay(s.address)
		at := relay.listener.Addr().String()
		env := append(s.env[:len(s.env):len(s.env)], "TEMPORAL_ADDRESS="+at)
		r := b.lines(count, env, b.acescope, "list", "--json", "--address", at, "--namespace", "ace-dev")
		answered := relay.close()
		if answered.IsZero() {
			fail("the relay saw no answer")
		}
		return []float64{millis(r.firstLine.Sub(answered))}
	}, nil)
}

// lines runs a command that writes at least a number of lines.
func (b *bench) lines(atLeast int, env []string, program string, args ...string) result {
	r := must(b.run(env, program, args...))
	if r.lines < atLeast {
		fail("%s wrote %d lines for %d runs", program, r.lines, atLeast)
	}
	return r
}

// figures returns the values of the comparison of lists.
func (r result) figures() []float64 {
	return []float64{r.untilLast(), millis(r.firstLine.Sub(r.started)), millis(r.cpu), r.peakMB}
}

// answerBytes is more than a server sends before its first page of runs: settings and capabilities
// are some hundreds of bytes, a compressed page of 50 runs some thousands.
const answerBytes = 2 << 10

// relay passes bytes between a client and a server and notes when the server's first large answer
// came.
type relay struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup
	once     sync.Once
	answered time.Time
}

func newRelay(target string) *relay {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	r := &relay{listener: l, target: target}
	r.wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			r.wg.Go(func() { r.pass(client) })
		}
	})
	return r
}

// close ends the relay and returns when the answer came, or the zero time.
func (r *relay) close() time.Time {
	r.listener.Close()
	r.wg.Wait()
	return r.answered
}

func (r *relay) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	defer server.Close()
	r.wg.Go(func() {
		_, _ = io.Copy(server, client)
		server.Close()
	})
	buf := make([]byte, 1<<15)
	for total := 0; ; {
		n, err := server.Read(buf)
		if total += n; total >= answerBytes {
			r.once.Do(func() { r.answered = time.Now() })
		}
		if _, writeErr := client.Write(buf[:n]); err != nil || writeErr != nil {
			return
		}
	}
}
