package process

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// How long is waited, unless a Spec says otherwise.
const (
	DefaultGrace = 5 * time.Second
	DefaultDrain = 2 * time.Second
)

// Spec is a program to run.
type Spec struct {
	Argv []string // the program, looked for in the PATH of Env where it has no slash, and its arguments
	Dir  string   // "" for the directory of this process
	// Env is the whole environment, as NAME=value. See [Environ].
	Env []string
	// Input is what standard input has, at most one of them: bytes, or a pipe that is written
	// to through [Process.Stdin]. With neither it is empty.
	Input []byte
	Pipe  bool
	// Stdout and Stderr get what the program writes; nil throws it away. An error of theirs
	// does not end the program: what comes after it is thrown away, and Wait tells.
	Stdout, Stderr io.Writer
	// Timeout ends the program after that time; 0 for never.
	Timeout time.Duration
	// Grace is the time between SIGTERM and SIGKILL; 0 for DefaultGrace.
	Grace time.Duration
	// Drain is how long outputs may stay open when the program has ended; 0 for DefaultDrain.
	Drain time.Duration
	// Files are open in the program from descriptor 3 on. A lock on one of them lasts as long
	// as the program or this process does, whichever lives longer. Not on Windows.
	Files []*os.File
	// DieWithParent has the program get SIGTERM when this process dies, however it dies. It
	// costs a thread while the program runs. Linux only; elsewhere it does nothing.
	DieWithParent bool
}

// Class says how a program ended.
type Class string

// Classes of ends.
const (
	Exited     Class = "exited"    // by itself, with a code
	Signalled  Class = "signalled" // by a signal that was not ours
	Killed     Class = "killed"    // by Stop
	TimedOut   Class = "timed_out" // because its time was over
	Cancelled  Class = "cancelled" // because the context was done
	NotStarted Class = "not_started"
)

// Exit is the end of a program.
type Exit struct {
	Class    Class         `json:"class"`
	Code     int           `json:"code"`             // -1 where a signal ended it, or it was not started
	Signal   string        `json:"signal,omitempty"` // that ended it, such as "killed"
	Forced   bool          `json:"forced,omitempty"` // it did not heed SIGTERM
	Duration time.Duration `json:"duration"`
	// Cut tells that an output was still held open, by a child that left the group, and was
	// closed before its end.
	Cut bool `json:"cut,omitempty"`
	// OutputErr is the first error of the writers.
	OutputErr error `json:"-"`
	// Err is why it was not started, of type [*StartError].
	Err error `json:"-"`
}

// OK tells whether the program ended by itself with code 0.
func (e Exit) OK() bool { return e.Class == Exited && e.Code == 0 }

// Process is a program that runs.
type Process struct {
	spec    Spec
	cmd     *exec.Cmd
	stdin   *input
	began   time.Time
	outputs []*output
	stop    chan struct{}
	once    sync.Once
	done    chan struct{}
	exit    Exit

	mu     sync.Mutex
	ended  bool      // the leader has: its id may be another's soon
	termAt time.Time // when the group got SIGTERM
}

// Start starts a program, which runs until it ends, the context is done or [Process.Stop] is
// called. An error is of type [*StartError]. Wait must be called.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, &StartError{Reason: NotAsked, Name: name(spec.Argv), Err: context.Cause(ctx)}
	}
	path, err := locate(spec)
	if err != nil {
		return nil, err
	}
	p := &Process{
		spec: spec, stop: make(chan struct{}), done: make(chan struct{}), began: time.Now(),
		cmd: &exec.Cmd{Path: path, Args: spec.Argv, Dir: spec.Dir, Env: spec.Env},
	}
	if p.cmd.Env == nil {
		p.cmd.Env = []string{}
	}
	p.cmd.ExtraFiles = spec.Files
	p.cmd.SysProcAttr = attributes(spec.DieWithParent)
	closers, err := p.connect()
	if err == nil {
		err = p.launch(ctx)
	}
	for _, c := range closers {
		_ = c.Close() // the program's ends; it has its own
	}
	if err != nil {
		p.disconnect()
		return nil, startError(spec, path, err)
	}
	return p, nil
}

// launch starts the program and the goroutine that supervises it. A program that dies with
// its parent dies with the thread that started it, so that thread is kept.
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

// Pid is the program's process id, which is that of its group too.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Stdin is the pipe to the program; nil without Spec.Pipe. Writes fail once the program has
// ended. Close it to say that nothing more comes.
func (p *Process) Stdin() io.WriteCloser {
	if !p.spec.Pipe {
		return nil
	}
	return p.stdin
}

// Stop ends the program and its group: SIGTERM, and SIGKILL after the grace. It returns at
// once, and may be called at any time.
func (p *Process) Stop() { p.once.Do(func() { close(p.stop) }) }

// Interrupt sends the group SIGINT, which programs may heed or not.
func (p *Process) Interrupt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		interruptGroup(p.cmd.Process)
	}
}

// Done is closed when the program has ended and all of its output was delivered.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end.
func (p *Process) Wait() Exit {
	<-p.done
	return p.exit
}

// supervise waits for the end, or brings it about.
func (p *Process) supervise(ctx context.Context) {
	defer close(p.done)
	ended := make(chan error, 1)
	go func() {
		err := p.cmd.Wait()
		p.mu.Lock()
		p.ended = true
		p.mu.Unlock()
		ended <- err
	}()
	var timeout <-chan time.Time
	if p.spec.Timeout > 0 {
		timer := time.NewTimer(p.spec.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	class, forced := Exited, false
	select {
	case <-ended:
	case <-ctx.Done():
		class, forced = Cancelled, p.end(ended)
	case <-timeout:
		class, forced = TimedOut, p.end(ended)
	case <-p.stop:
		class, forced = Killed, p.end(ended)
	}
	p.exit = p.verdict(class, forced)
	p.reap()
	p.exit.Cut, p.exit.OutputErr = p.drain()
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	p.exit.Duration = time.Since(p.began)
}

// end sends SIGTERM, then SIGKILL, until the program has ended, and tells whether the second
// was needed.
func (p *Process) end(ended <-chan error) bool {
	p.terminate()
	timer := time.NewTimer(or(p.spec.Grace, DefaultGrace))
	defer timer.Stop()
	select {
	case <-ended:
		return false
	case <-timer.C:
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

// reap ends what is left of the group when its leader has ended. The group's id is not given
// to others while anybody is in it.
func (p *Process) reap() {
	if !groupLives(p.cmd.Process) {
		return
	}
	p.terminate()
	until := p.termAt.Add(or(p.spec.Grace, DefaultGrace))
	for wait := time.Millisecond; time.Now().Before(until); wait = min(2*wait, 50*time.Millisecond) {
		time.Sleep(wait)
		if !groupLives(p.cmd.Process) {
			return
		}
	}
	killGroup(p.cmd.Process)
}

// verdict is the exit as the operating system tells it.
func (p *Process) verdict(class Class, forced bool) Exit {
	state := p.cmd.ProcessState
	e := Exit{Class: class, Forced: forced, Code: -1}
	if state == nil {
		return e
	}
	e.Code = state.ExitCode()
	e.Signal = signalOf(state)
	if class == Exited && e.Signal != "" {
		e.Class = Signalled
	}
	return e
}

// drain waits until all output was delivered, or cuts it off.
func (p *Process) drain() (cut bool, err error) {
	timer := time.NewTimer(or(p.spec.Drain, DefaultDrain))
	defer timer.Stop()
	over := timer.C
	for i := 0; i < len(p.outputs); i++ {
		o := p.outputs[i]
		select {
		case <-o.done:
			cut = cut || o.held
			if err == nil {
				err = o.err
			}
		case <-over:
			for _, o := range p.outputs {
				o.cut()
			}
			over, i = nil, i-1
		}
	}
	return cut, err
}

func or(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}

// connect makes the program's inputs and outputs. What it returns is to be closed once the
// program has them.
func (p *Process) connect() (closers []io.Closer, err error) {
	if err = p.connectInput(&closers); err != nil {
		return closers, err
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

// connectInput makes standard input: nothing, bytes or a pipe.
func (p *Process) connectInput(closers *[]io.Closer) error {
	if !p.spec.Pipe && p.spec.Input == nil {
		return nil // exec opens the null device
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	p.cmd.Stdin = r
	*closers = append(*closers, r)
	in := &input{w: w}
	if p.spec.Pipe {
		p.stdin = in
		return nil
	}
	p.stdin = in // closed at the end, which ends the writing too
	go func() {
		_, _ = in.Write(p.spec.Input) // a program need not read all of it
		_ = in.Close()
	}()
	return nil
}

// disconnect takes back what connect made, when the program was not started.
func (p *Process) disconnect() {
	for _, o := range p.outputs {
		o.cut()
		<-o.done
	}
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
}

// input is the pipe to a program.
type input struct {
	w    *os.File
	once sync.Once
	err  error
}

func (i *input) Write(b []byte) (int, error) { return i.w.Write(b) }

func (i *input) Close() error {
	i.once.Do(func() { i.err = i.w.Close() })
	return i.err
}

// output carries what a program writes to a writer.
type output struct {
	r    *os.File
	w    io.Writer
	done chan struct{}
	err  error
	held bool // it was cut off, with somebody still holding it
}

// leftOver is how much is read of an output that is cut off, in bytes: as much as a pipe can
// hold. lastRead is how long is waited for it.
const (
	leftOver = 1 << 20
	lastRead = 20 * time.Millisecond
)

// copy reads to the end. When the writer fails it reads on, so that the program does not
// get stuck. When the output is cut off, it still takes what was written already.
func (o *output) copy() {
	defer close(o.done)
	defer o.r.Close()
	buf := make([]byte, 64<<10)
	for budget := leftOver; budget > 0; {
		n, err := o.r.Read(buf)
		o.put(buf[:n])
		if o.held {
			budget -= n
			_ = o.r.SetReadDeadline(time.Now().Add(lastRead))
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && !o.held:
			o.held = true
			_ = o.r.SetReadDeadline(time.Now().Add(lastRead))
		case errors.Is(err, io.EOF):
			o.held = false
			return
		default:
			return
		}
	}
}

// put hands bytes to the writer, until it fails.
func (o *output) put(b []byte) {
	if len(b) == 0 || o.err != nil {
		return
	}
	if _, err := o.w.Write(b); err != nil {
		o.err = &OutputError{err}
	}
}

// cut has the copying end while others may still hold the pipe.
func (o *output) cut() { _ = o.r.SetReadDeadline(time.Unix(1, 0)) }

// OutputError says that a writer did not take the output.
type OutputError struct{ Err error }

func (e *OutputError) Error() string { return "output: " + e.Err.Error() }

func (e *OutputError) Unwrap() error { return e.Err }

// IsStart tells whether the error is a [StartError] of that reason.
func IsStart(err error, reason Reason) bool {
	var s *StartError
	return errors.As(err, &s) && s.Reason == reason
}
