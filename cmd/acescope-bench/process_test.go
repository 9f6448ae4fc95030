//go:build bench

package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"acescope/engine"
)

const (
	// stopTimeout is how long a process may take to end after it was asked to.
	stopTimeout = 15 * time.Second
	// maxLine is the maximum length of a line that a measured process writes.
	maxLine = 4 << 20
)

// command returns a command that SIGTERM ends when ctx does, or SIGKILL after stopTimeout.
func command(ctx context.Context, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	return cmd
}

// result is what a process used and wrote.
type result struct {
	started   time.Time
	firstLine time.Time
	lastLine  time.Time
	lines     int
	last      []byte // the last line
	total     time.Duration
	cpu       time.Duration // user and system
	peakMB    float64       // resident
}

// untilLast returns the milliseconds from the start to the last line.
func (r result) untilLast() float64 { return millis(r.lastLine.Sub(r.started)) }

// run runs a command to its end and reads the lines that it writes. The result is complete even if
// the command fails.
func (b *bench) run(env []string, name string, args ...string) (result, error) {
	cmd := command(b.ctx, env, name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out := must(cmd.StdoutPipe())
	r := result{started: time.Now()}
	check(cmd.Start())
	peak := watchPeak(cmd)
	scanner := bufio.NewScanner(out)
	scanner.Buffer(make([]byte, 1<<16), maxLine)
	for scanner.Scan() {
		r.lastLine = time.Now()
		r.last = append(r.last[:0], scanner.Bytes()...)
		if r.lines++; r.lines == 1 {
			r.firstLine = r.lastLine
		}
	}
	err := errors.Join(scanner.Err(), cmd.Wait())
	r.total = time.Since(r.started)
	r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	r.peakMB = peak()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return r, err
}

// process is a running program that writes JSON values.
type process struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	in     io.WriteCloser
	out    *json.Decoder
	ended  bool
}

// start starts a program that is stopped at the end of the section.
func (b *bench) start(env []string, name string, args ...string) *process {
	ctx, cancel := context.WithCancel(b.ctx)
	p := &process{cmd: command(ctx, env, name, args...), cancel: cancel}
	p.cmd.Stderr = os.Stderr
	p.out = json.NewDecoder(must(p.cmd.StdoutPipe()))
	p.in = must(p.cmd.StdinPipe())
	check(p.cmd.Start())
	b.Cleanup(p.stop)
	return p
}

// read decodes the next value that the process writes.
func (p *process) read(v any) {
	if err := p.out.Decode(v); err != nil {
		fail("%s has ended or wrote no JSON: %w", p.cmd, err)
	}
}

// wait waits until the process ends by itself.
func (p *process) wait() {
	p.in.Close()
	p.ended = true
	check(p.cmd.Wait())
	p.cancel()
}

// stop ends the process and waits.
func (p *process) stop() {
	p.cancel()
	if !p.ended {
		p.ended = true
		_ = p.cmd.Wait()
	}
}

// server is "acescope serve" on a data directory.
type server struct {
	*process
	env     []string // for clients
	address string
}

// serve starts a server and waits until it answers. With -profile, this program serves instead and
// writes a profile.
func (b *bench) serve(dir string, env ...string) *server {
	s := &server{}
	if b.profile == "" {
		s.process = b.start(env, b.acescope, "serve", "--print-env", "--json", "--data-dir", dir)
	} else {
		s.process = b.child(spec{Kind: "serve", Dir: dir}, env...)
	}
	var line struct{ Env map[string]string }
	s.read(&line)
	s.address = line.Env["TEMPORAL_ADDRESS"]
	for name, value := range line.Env {
		s.env = append(s.env, name+"="+value)
	}
	return s
}

// spec is the work of a child process of this program, as JSON in its argument. A child answers
// with JSON lines on standard output.
type spec struct {
	Kind    string `json:"kind"`
	Dir     string `json:"dir"`
	Bare    bool   `json:"bare,omitempty"`   // run the peer
	Tasks   int    `json:"tasks,omitempty"`  // of a load
	Alone   int    `json:"alone,omitempty"`  // tasks before it takes turns
	Linger  int    `json:"linger,omitempty"` // milliseconds that a session lasts after its calls
	Calls   int    `json:"calls,omitempty"`  // of a session
	Profile string `json:"profile,omitempty"`
}

// child starts this program as a child.
func (b *bench) child(s spec, env ...string) *process {
	if b.profile != "" {
		kind := map[bool]string{true: "-bare"}[s.Bare]
		s.Profile = filepath.Join(b.profile, b.report.section+"-"+s.Kind+kind+"-"+filepath.Base(s.Dir))
	}
	return b.start(env, must(os.Executable()), "child", string(must(json.Marshal(s))))
}

func answer(v any) { check(json.NewEncoder(os.Stdout).Encode(v)) }

// runChild does the work of a spec and writes a CPU profile of it.
func runChild(ctx context.Context, arg string) {
	var s spec
	check(json.Unmarshal([]byte(arg), &s))
	if s.Profile != "" {
		cpu := must(os.Create(s.Profile + ".pprof"))
		check(pprof.StartCPUProfile(cpu))
		defer cpu.Close()
		defer pprof.StopCPUProfile()
	}
	map[string]func(context.Context, spec){
		"serve":   serveChild,
		"first":   firstChild,
		"session": sessionChild,
		"load":    loadChild,
		"long":    longChild,
	}[s.Kind](ctx, s)
}

// profileHeap writes a profile of the heap if the spec asks for profiles.
func (s spec) profileHeap() {
	if s.Profile == "" {
		return
	}
	f := must(os.Create(s.Profile + "-heap.pprof"))
	defer f.Close()
	runtime.GC()
	check(pprof.WriteHeapProfile(f))
}

// serveChild does what acescope serve does, until it is told to end.
func serveChild(ctx context.Context, s spec) {
	e := must(engine.Open(ctx, engine.Options{DataDir: s.Dir, Version: "bench", Worker: true}))
	defer stopIn(e.Close)
	env := map[string]string{}
	for _, v := range e.Node().Env() {
		env[v.Name] = v.Value
	}
	answer(map[string]any{"Env": env})
	<-ctx.Done()
}

// stopIn calls stop with a context that ends after stopTimeout.
func stopIn(stop func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	check(stop(ctx))
}

// cpuShare returns the percentage of a core that a process uses during d.
func (b *bench) cpuShare(p *process, d time.Duration) float64 {
	before := must(processCPU(p.cmd.Process.Pid))
	check(sleep(b.ctx, d))
	after := must(processCPU(p.cmd.Process.Pid))
	return 100 * float64(after-before) / float64(d)
}

// settleTime is how long a process is left alone before its idling is measured.
const settleTime = 5 * time.Second

// processCPU returns the CPU time of the threads of a process, to the nanosecond
// (proc_pid_schedstat(5)).
func processCPU(pid int) (total time.Duration, err error) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, name := range files {
		var ns int64
		if data, err := os.ReadFile(name); err == nil {
			_, _ = fmt.Sscan(string(data), &ns)
		}
		total += time.Duration(ns)
	}
	if total == 0 {
		return 0, fmt.Errorf("no CPU time of process %d; it has ended, or the system is not Linux", pid)
	}
	return total, nil
}

// watchPeak samples the peak resident size of a process, in MB, until the returned function is
// called. On Linux the usage of an ended process includes the size of this program before exec.
func watchPeak(cmd *exec.Cmd) (stop func() float64) {
	done, result := make(chan struct{}), make(chan float64, 1)
	go func() {
		peak := math.NaN()
		for now := peakMB(cmd.Process.Pid); now > 0; now = peakMB(cmd.Process.Pid) {
			peak = now
			select {
			case <-done:
				result <- peak
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
		result <- peak
	}()
	return func() float64 {
		close(done)
		return <-result
	}
}

// peakMB returns the peak resident size of a running process (proc_pid_status(5)), or 0 if the
// process has ended or the system is not Linux.
func peakMB(pid int) float64 { return statusMB(pid, "VmHWM:") }

// statusMB returns a size of a running process (proc_pid_status(5)), or 0 like peakMB.
func statusMB(pid int, field string) (kib float64) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if _, rest, ok := bytes.Cut(data, []byte(field)); ok {
		_, _ = fmt.Sscan(string(rest), &kib)
	}
	return kib / 1024
}

// ownUsage returns the CPU time and the peak resident size of this process.
func ownUsage() (cpu time.Duration, peak float64) {
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), peakMB(os.Getpid())
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
