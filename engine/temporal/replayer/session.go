package replayer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/internal/process"
	"acescope/engine/temporal/replay"
)

// grace is how long a replayer may take to end: after the end of its input, and again after SIGTERM. maxStderr
// is how much of its standard error is kept, maxReason how much of a line of it a reason quotes; in bytes.
const (
	grace     = 3 * time.Second
	maxStderr = 64 << 10
	maxReason = 300
)

// session is a replayer that gets the histories of a batch. Its process starts with the first one. A process
// that fails after it gave an answer is started again; otherwise the replayer is broken.
type session struct {
	Replayer
	ctx context.Context // of the process
	wg  *sync.WaitGroup

	writing sync.Mutex // one line at a time

	mu      sync.Mutex // guards the fields below
	current *run
	broken  string // why no process is started any more
}

// run is a process of a session.
type run struct {
	*session
	process *process.Process
	stderr  *process.Tail
	line    []byte // begun, of the standard output

	// The mutex of the session guards the fields below.
	waiting  map[[2]string][]chan<- result // by workflow ID and run ID, in the order of the requests
	timer    *time.Timer                   // ends the process; nil if no history waits
	answered bool
	fault    string // what the process did wrong
}

// result is an answer, or why the answer is missing.
type result struct {
	answer
	why string
}

// verify asks for the verdict on a history.
func (s *session) verify(
	ctx context.Context, out replay.Verdict, events []*historypb.HistoryEvent,
) replay.Verdict {
	q, err := requestOf(events)
	if err != nil {
		out.Why = err.Error()
		return out
	}
	r := s.ask(ctx, q)
	switch {
	case r.why != "":
		out.Why = r.why
	case r.Verdict == failed:
		out.Why = cmp.Or(ace.OneLine(r.Message, MaxLine), "the replayer could not replay it and says no reason")
	case r.Verdict == deterministic:
		out.Outcome = replay.Deterministic
	default:
		out.Outcome = replay.Nondeterministic
		out.Divergence = replay.Reported(events, replay.Report{EventID: r.EventID, Does: r.Command,
			Message: r.Message, Code: s.Name()})
	}
	return out
}

// ask writes a request and waits for its answer.
func (s *session) ask(ctx context.Context, q request) result {
	answered := make(chan result, 1)
	p, why := s.send(ctx, q, answered)
	if why != "" {
		return result{why: why}
	}
	select {
	case r := <-answered:
		return r
	case <-ctx.Done():
		p.forget(q, answered)
		return result{why: context.Cause(ctx).Error()}
	}
}

// send starts the program if it does not run, and writes a request.
func (s *session) send(ctx context.Context, q request, to chan<- result) (*run, string) {
	s.writing.Lock()
	defer s.writing.Unlock()
	p, why := s.expect(q, to)
	if why != "" {
		return nil, why
	}
	if err := p.process.Write(s.ctx, q.line); err != nil && ctx.Err() == nil {
		select {
		case <-p.process.Done(): // its end answers the request
		case <-time.After(grace):
			p.fail("does not read its standard input")
		}
	}
	return p, ""
}

// expect registers a request with the current process, which it starts first if necessary.
func (s *session) expect(q request, to chan<- result) (*run, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != "" {
		return nil, s.broken
	}
	if s.current == nil {
		if err := s.start(); err != nil {
			s.broken = "the replayer did not start: " + err.Error()
			return nil, s.broken
		}
	}
	p := s.current
	p.waiting[q.key()] = append(p.waiting[q.key()], to)
	if p.timer == nil {
		p.watch()
	}
	return p, ""
}

func (s *session) start() (err error) {
	p := &run{session: s, stderr: process.NewTail(0, maxStderr), waiting: map[[2]string][]chan<- result{}}
	p.process, err = process.Start(s.ctx, process.Spec{Argv: s.Argv, Dir: s.Dir, Env: s.Env, Pipe: true,
		Stdout: p, Stderr: p.stderr, Grace: grace, DieWithParent: true})
	if err == nil {
		s.current = p
		s.wg.Go(p.supervise)
	}
	return err
}

// watch starts the time for the next answer.
func (p *run) watch() {
	limit := cmp.Or(p.Timeout, DefaultTimeout)
	var timer *time.Timer
	timer = time.AfterFunc(limit, func() {
		p.mu.Lock()
		late := p.timer == timer
		p.mu.Unlock()
		if late {
			p.fail(fmt.Sprintf("gave no answer within %s", limit))
		}
	})
	p.timer = timer
}

// fail ends a process that did something wrong.
func (p *run) fail(fault string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = cmp.Or(p.fault, fault)
	p.process.Stop()
}

// forget drops a request whose caller no longer waits. Its answer is still expected.
func (p *run) forget(q request, to chan<- result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, waits := range p.waiting[q.key()] {
		if waits == to {
			p.waiting[q.key()][i] = make(chan result, 1)
		}
	}
}

// Write takes the standard output of the process.
func (p *run) Write(data []byte) (int, error) {
	n := len(data)
	for {
		line, rest, whole := bytes.Cut(data, []byte{'\n'})
		if len(p.line)+len(line) > MaxLine {
			p.fail(fmt.Sprintf("wrote a line of more than %d bytes", MaxLine))
			return 0, errors.New("line too long")
		}
		p.line = append(p.line, line...)
		if !whole {
			return n, nil
		}
		if fault := p.take(p.line); fault != "" {
			p.fail(fault)
			return 0, errors.New(fault)
		}
		p.line, data = p.line[:0], rest
	}
}

// take delivers the answer of a line. It returns what is wrong with it, or "".
func (p *run) take(line []byte) (fault string) {
	if len(bytes.TrimSpace(line)) == 0 {
		return ""
	}
	a, err := parseAnswer(line)
	if err != nil {
		return err.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := [2]string{a.WorkflowID, a.RunID}
	list := p.waiting[key]
	if len(list) == 0 {
		return fmt.Sprintf("answered for %q, run %q, which it was not asked about or answered before",
			ace.Cut(a.WorkflowID, maxQuoted), ace.Cut(a.RunID, maxQuoted))
	}
	if p.waiting[key] = list[1:]; len(list) == 1 {
		delete(p.waiting, key)
	}
	p.answered = true
	p.timer.Stop()
	if p.timer = nil; len(p.waiting) > 0 {
		p.watch()
	}
	list[0] <- result{answer: a}
	return ""
}

// supervise waits for the end of the process, and tells those who wait for its answers.
func (p *run) supervise() {
	exit := p.process.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	why := p.reason(exit)
	for _, list := range p.waiting {
		for _, to := range list {
			to <- result{why: why}
		}
	}
	clear(p.waiting)
	p.current = nil
	if !p.answered {
		p.broken = why
	}
}

// reason says why a process gave no answer.
func (p *run) reason(exit process.Exit) string {
	why := p.fault
	switch {
	case why != "":
	case p.ctx.Err() != nil:
		return context.Cause(p.ctx).Error()
	case exit.Class == process.Signaled:
		why = fmt.Sprintf("was ended by the signal %q before it answered", exit.Signal)
	default:
		why = fmt.Sprintf("ended with exit code %d before it answered", exit.Code)
	}
	why = "the replayer " + why
	if text := errorLine(p.stderr.String()); text != "" {
		why += ": " + ace.OneLine(text, maxReason)
	}
	return why
}

var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// errorLine returns the line of an output that says most about its end: the last one that names an error and
// is not part of a stack trace, otherwise the last one.
func errorLine(text string) string {
	text = colors.ReplaceAllString(text, "")
	for _, line := range slices.Backward(strings.Split(text, "\n")) {
		traced := strings.TrimLeft(line, " \t") != line
		if !traced && (strings.Contains(line, "Error") || strings.Contains(line, "Exception")) {
			return line
		}
	}
	return ace.LastLine(text)
}

// close ends the input of the process, and waits for its end. It stops a process that does not end by itself.
func (s *session) close() {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	p := s.current
	s.broken = "the verification has ended"
	s.mu.Unlock()
	if p == nil {
		return
	}
	p.process.CloseInput()
	select {
	case <-p.process.Done():
	case <-time.After(grace):
		p.process.Stop()
		<-p.process.Done()
	}
}
