// Package process runs programs: with an argument vector and never a shell, an explicit
// environment, a process group of their own, bounded output and a bounded shutdown. It imports
// the standard library only, and every package may import it.
//
// End: when the context ends or [Process.Stop] is called, the group gets SIGTERM and, after the
// grace period, SIGKILL. When a program ends by itself, the rest of its group gets the same
// signals. Children that left the group cannot be signaled; if they hold an output open, it is
// closed after [Spec.Drain].
// Order: each output is delivered in order and before [Process.Wait] returns. Standard output and
// standard error are not ordered relative to each other.
// Bounds: a [Tail] keeps the first and the last bytes; a process buffers 64 KiB per output. Each
// writer is called by one goroutine; while it blocks, the program blocks.
// Loss: a Tail counts the bytes that it drops. Output after the drain period is lost.
//
// Windows has no process groups and no SIGTERM: only the program itself is ended, at once.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// Defaults of a [Spec].
const (
	DefaultGrace = 5 * time.Second
	DefaultDrain = 2 * time.Second
)

// Spec describes a program to run.
type Spec struct {
	Argv []string // the program and its arguments; a name without a slash is searched in PATH of Env
	Dir  string   // working directory; "" for the directory of this process
	Env  []string // the complete environment, as NAME=value; see [Environ]
	// Input or Pipe provide standard input: bytes, or a pipe for [Process.Write]. Without both it
	// is empty.
	Input []byte
	Pipe  bool
	// Stdout and Stderr receive the output; nil discards it. A write error does not end the
	// program: later output is discarded, and Wait reports the error.
	Stdout, Stderr io.Writer
	Timeout        time.Duration // after which the program is ended; 0 for no timeout
	Grace          time.Duration // between SIGTERM and SIGKILL; 0 for DefaultGrace
	Drain          time.Duration // how long outputs may stay open after the end; 0 for DefaultDrain
	// Files are open in the program from descriptor 3 on. A lock on such a file lasts until both
	// the program and this process have closed it. Not supported on Windows.
	Files []*os.File
	// DieWithParent sends the program SIGTERM when this process dies for any reason. It occupies
	// an OS thread while the program runs. Only on Linux.
	DieWithParent bool
}

// Class is the way in which a program ended.
type Class string

// Classes.
const (
	Exited     Class = "exited"    // by itself, with an exit code
	Signaled   Class = "signalled" // by a signal from elsewhere
	Killed     Class = "killed"    // by Stop
	TimedOut   Class = "timed_out"
	Canceled   Class = "cancelled" // by the context
	NotStarted Class = "not_started"
)

// Exit is the result of a program.
type Exit struct {
	Class    Class         `json:"class"`
	Code     int           `json:"code"`             // -1 after a signal and if the program was not started
	Signal   string        `json:"signal,omitempty"` // the signal that ended it, such as "killed"
	Forced   bool          `json:"forced,omitempty"` // it did not end after SIGTERM
	Duration time.Duration `json:"duration"`
	// Cut reports that a child outside of the group held an output open, which was closed.
	Cut       bool  `json:"cut,omitempty"`
	OutputErr error `json:"-"` // the first write error
	Err       error `json:"-"` // a [*StartError] if the program was not started
}

// Process is a running program.
type Process struct {
	spec    Spec
	cmd     *exec.Cmd
	stdin   *os.File // the pipe to the program, or nil
	began   time.Time
	outputs []*output
	stop    chan struct{}
	once    sync.Once
	done    chan struct{}
	exit    Exit
	termAt  time.Time // when the group got SIGTERM
}

// Start starts a program. It runs until it ends, the context ends or [Process.Stop] is called.
// Errors are of type [*StartError]. The caller must call Wait.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	if ctx.Err() != nil {
		return nil, &StartError{Reason: ContextDone, Name: name(spec.Argv), Err: context.Cause(ctx)}
	}
	path, err := locate(spec)
	if err != nil {
		return nil, err
	}
	p := &Process{
		spec: spec, stop: make(chan struct{}), done: make(chan struct{}), began: time.Now(),
		cmd: &exec.Cmd{
			Path: path, Args: spec.Argv, Dir: spec.Dir, Env: spec.Env,
			ExtraFiles: spec.Files, SysProcAttr: attributes(spec.DieWithParent),
		},
	}
	if p.cmd.Env == nil {
		p.cmd.Env = []string{} // nil would inherit the environment
	}
	closers, err := p.connect()
	if err == nil {
		err = p.launch(ctx)
	}
	for _, c := range closers {
		_ = c.Close()
	}
	if err != nil {
		p.disconnect()
		return nil, startError(spec, path, err)
	}
	return p, nil
}

// launch starts the program and the goroutine that supervises it. With DieWithParent the signal
// is sent when the starting thread dies, so the goroutine keeps its thread.
func (p *Process) launch(ctx context.Context) error {
	started := make(chan error, 1)
	go func() {
		if p.spec.DieWithParent {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
		}
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.supervise(ctx)
		}
	}()
	return <-started
}

// Run starts a program and waits for its end.
func Run(ctx context.Context, spec Spec) Exit {
	p, err := Start(ctx, spec)
	if err != nil {
		return Exit{Class: NotStarted, Code: -1, Err: err}
	}
	return p.Wait()
}

// Pid returns the id of the program and of its group.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Write writes to the program's pipe. It fails when the context or the program ends first. The
// program may then have a part of the data, so no later write succeeds.
func (p *Process) Write(ctx context.Context, data []byte) error {
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(expired)
		_ = p.stdin.SetWriteDeadline(time.Unix(1, 0))
	})
	_, err := p.stdin.Write(data)
	if stop() {
		return err
	}
	<-expired
	if err == nil { // the context ended after the write
		return p.stdin.SetWriteDeadline(time.Time{})
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// CloseInput signals the end of the input.
func (p *Process) CloseInput() { _ = p.stdin.Close() }

// Stop ends the program and its group: SIGTERM, then SIGKILL after the grace period. It returns
// at once and may be called repeatedly.
func (p *Process) Stop() { p.once.Do(func() { close(p.stop) }) }

// Done is closed when the program has ended and all of its output was delivered.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end of the program.
func (p *Process) Wait() Exit {
	<-p.done
	return p.exit
}

// supervise waits for the end of the program, or ends it.
func (p *Process) supervise(ctx context.Context) {
	defer close(p.done)
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	var timeout <-chan time.Time
	if p.spec.Timeout > 0 {
		timeout = time.After(p.spec.Timeout)
	}
	e := Exit{Class: Exited, Code: -1}
	select {
	case <-ended:
	case <-ctx.Done():
		e.Class, e.Forced = Canceled, p.end(ended)
	case <-timeout:
		e.Class, e.Forced = TimedOut, p.end(ended)
	case <-p.stop:
		e.Class, e.Forced = Killed, p.end(ended)
	}
	if state := p.cmd.ProcessState; state != nil {
		e.Code = state.ExitCode()
		e.Signal = signalOf(state)
		if e.Class == Exited && e.Signal != "" {
			e.Class = Signaled
		}
	}
	p.endGroup()
	e.Cut, e.OutputErr = p.drain()
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	e.Duration = time.Since(p.began)
	p.exit = e
}

func (p *Process) grace() time.Duration { return cmp.Or(p.spec.Grace, DefaultGrace) }

// end sends SIGTERM, waits for the program and reports whether SIGKILL was necessary.
func (p *Process) end(ended <-chan error) (forced bool) {
	p.terminate()
	select {
	case <-ended:
		return false
	case <-time.After(p.grace()):
	}
	killGroup(p.cmd.Process)
	<-ended
	return true
}

// terminate sends SIGTERM, once.
func (p *Process) terminate() {
	if p.termAt.IsZero() {
		p.termAt = time.Now()
		terminateGroup(p.cmd.Process)
	}
}

// endGroup ends the rest of the group after its leader. The id of the group is not reused while
// the group has members.
func (p *Process) endGroup() {
	if !groupLives(p.cmd.Process) {
		return
	}
	p.terminate()
	until := p.termAt.Add(p.grace())
	for wait := time.Millisecond; time.Now().Before(until); wait = min(2*wait, 50*time.Millisecond) {
		time.Sleep(wait)
		if !groupLives(p.cmd.Process) {
			return
		}
	}
	killGroup(p.cmd.Process)
}

// drain waits until all output was delivered, or cuts the output off after the drain period.
func (p *Process) drain() (cut bool, err error) {
	timer := time.AfterFunc(cmp.Or(p.spec.Drain, DefaultDrain), func() {
		for _, o := range p.outputs {
			o.cut()
		}
	})
	defer timer.Stop()
	for _, o := range p.outputs {
		<-o.done
		cut = cut || o.held
		err = cmp.Or(err, o.err)
	}
	return cut, err
}

// connect creates the program's input and outputs. Close the returned closers after the start.
func (p *Process) connect() (closers []io.Closer, err error) {
	if p.spec.Pipe || p.spec.Input != nil {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		p.cmd.Stdin = r
		closers = append(closers, r)
		p.stdin = w
	}
	if !p.spec.Pipe && p.stdin != nil {
		go func() {
			_, _ = p.stdin.Write(p.spec.Input) // the program may not read all of it
			_ = p.stdin.Close()
		}()
	}
	for _, to := range []struct {
		writer io.Writer
		file   *io.Writer
	}{{p.spec.Stdout, &p.cmd.Stdout}, {p.spec.Stderr, &p.cmd.Stderr}} {
		if to.writer == nil {
			continue // exec opens the null device
		}
		r, w, err := os.Pipe()
		if err != nil {
			return closers, err
		}
		closers = append(closers, w)
		*to.file = w
		o := &output{r: r, w: to.writer, done: make(chan struct{})}
		p.outputs = append(p.outputs, o)
		go o.copy()
	}
	return closers, nil
}

// disconnect undoes connect if the program was not started.
func (p *Process) disconnect() {
	for _, o := range p.outputs {
		o.cut()
		<-o.done
	}
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
}

// output copies what a program writes to a writer.
type output struct {
	r    *os.File
	w    io.Writer
	done chan struct{}
	err  error
	held bool // the output was cut off while another process held it open
}

// cutBudget is the number of bytes that are still read from an output after it is cut off, the largest
// capacity of a pipe. cutWait is how long to wait for them.
const (
	cutBudget = 1 << 20
	cutWait   = 20 * time.Millisecond
)

// copy reads to the end. After a write error it continues reading, so that the program does not block. After
// a cut it still reads the bytes that are in the pipe.
func (o *output) copy() {
	defer close(o.done)
	defer o.r.Close()
	buf := make([]byte, 64<<10)
	for budget := cutBudget; budget > 0; {
		n, err := o.r.Read(buf)
		if n > 0 && o.err == nil {
			_, o.err = o.w.Write(buf[:n])
		}
		if o.held {
			budget -= n
			_ = o.r.SetReadDeadline(time.Now().Add(cutWait))
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && !o.held:
			o.held = true
			_ = o.r.SetReadDeadline(time.Now().Add(cutWait))
		case errors.Is(err, io.EOF):
			o.held = false
			return
		default:
			return
		}
	}
}

// cut ends the copying although other processes may still hold the pipe.
func (o *output) cut() { _ = o.r.SetReadDeadline(time.Unix(1, 0)) }
