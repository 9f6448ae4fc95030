package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"

	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// Bounds of the delivery of answers to runs.
const (
	sendParallel = 32
	sendTimeout  = 20 * time.Second
	// sendWait is the time for which the dispatcher waits for deliveries.
	sendWait = 500 * time.Millisecond
	// sendKeep is the time for which a delivery is remembered, for a dispatcher that retries.
	sendKeep = time.Minute
)

// notifyRuns delivers answers to runs. Slow deliveries continue in the background; a retry with the
// same answers returns their outcome.
func (d *Dispatch) notifyRuns(ctx context.Context, answers runner.Answers) (runner.DeliveryResult, error) {
	var told runner.DeliveryResult
	d.waiters.dispatcherSeen()
	all := d.answers.send(answers)
	wait, cancel := context.WithTimeout(ctx, sendWait)
	defer cancel()
	for _, s := range all {
		select {
		case <-s.done:
		case <-wait.Done():
		}
		d.addOutcome(&told, s)
	}
	return told, ctx.Err()
}

// addOutcome adds the outcome of a delivery, which may still be unknown.
func (d *Dispatch) addOutcome(told *runner.DeliveryResult, s *delivery) {
	select {
	case <-s.done:
	default:
		told.Later = append(told.Later, s.run)
		return
	}
	switch {
	case s.err == nil:
	case isNotFound(s.err):
		told.Ended = append(told.Ended, s.run)
	default:
		d.Logger.Warn("answer to a run was not delivered", "run", s.run, "error", s.err)
		told.Later = append(told.Later, s.run)
	}
}

func isNotFound(err error) bool {
	_, ok := errors.AsType[*serviceerror.NotFound](err)
	return ok
}

// answerSender delivers answers: directly to a run that waits in this process, otherwise by signals. It sends
// to many runs in parallel, but the answers to one run in order.
type answerSender struct {
	to      Signaler
	waiters *waiters
	slots   chan struct{}
	running sync.WaitGroup
	life    context.Context // of the deliveries
	end     context.CancelFunc

	mu   sync.Mutex
	sent map[string]*delivery // by deliveryKey
}

// delivery is the delivery of answers to one run. err is valid after done is closed.
type delivery struct {
	run  string
	done chan struct{}
	err  error
}

func newAnswerSender(to Signaler, w *waiters) *answerSender {
	s := &answerSender{to: to, waiters: w, slots: make(chan struct{}, sendParallel),
		sent: map[string]*delivery{}}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// send starts the deliveries that are not already started.
func (s *answerSender) send(answers runner.Answers) (all []*delivery) {
	byRun := map[string]runner.Answers{}
	var runs []string
	for _, a := range answers {
		if byRun[a.RunID] == nil {
			runs = append(runs, a.RunID)
		}
		byRun[a.RunID] = append(byRun[a.RunID], a)
	}
	for _, run := range runs {
		if rest := s.waiters.offer(byRun[run]); len(rest) > 0 {
			all = append(all, s.start(run, rest))
		}
	}
	return all
}

func (s *answerSender) start(run string, answers runner.Answers) *delivery {
	key := deliveryKey(answers)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.sent[key]; old != nil && !old.failed() {
		return old
	}
	d := &delivery{run: run, done: make(chan struct{})}
	s.sent[key] = d
	s.running.Go(func() {
		s.slots <- struct{}{}
		d.err = s.signal(answers)
		<-s.slots
		close(d.done)
		time.AfterFunc(sendKeep, func() { s.forget(key, d) })
	})
	return d
}

// failed reports whether the delivery failed and should be retried.
func (d *delivery) failed() bool {
	select {
	case <-d.done:
		return d.err != nil && !isNotFound(d.err)
	default:
		return false
	}
}

func (s *answerSender) forget(key string, d *delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent[key] == d {
		delete(s.sent, key)
	}
}

// deliveryKey identifies answers to one run.
func deliveryKey(answers runner.Answers) string {
	key := answers[0].RunID + " " + answers[0].Execution
	for _, a := range answers {
		switch {
		case a.Claimed != nil:
			key += fmt.Sprintf(" claimed %d", a.Claimed.Number)
		case a.Unmatched != nil:
			key += fmt.Sprintf(" unmatched %d", a.Unmatched.Try)
		case a.Lost != nil:
			key += fmt.Sprintf(" lost %d", a.Lost.Claim)
		}
	}
	return key
}

func (s *answerSender) signal(answers runner.Answers) error {
	ctx, cancel := context.WithTimeout(s.life, sendTimeout)
	defer cancel()
	for _, a := range answers {
		name, arg := signalOf(a)
		if err := s.to.SignalWorkflow(ctx, run.WorkflowID(a.RunID), a.Execution, name, arg); err != nil {
			return err
		}
	}
	return nil
}

func signalOf(a runner.Answer) (name string, arg any) {
	switch {
	case a.Claimed != nil:
		return run.SignalClaimed, a.Claimed
	case a.Unmatched != nil:
		return run.SignalUnmatched, a.Unmatched
	}
	return run.SignalLost, a.Lost
}

// A run waits for the dispatcher's answer within its workflow task for at most waitFor. At most
// maxWaiters runs wait at a time: each occupies a workflow task of the worker, and the dispatcher
// needs one itself.
const (
	waitFor    = 500 * time.Millisecond
	maxWaiters = 200
)

// waiters are the runs of this process that wait for the dispatcher's answer, which saves a signal
// and a workflow task. If an answer is lost with the process or the workflow task, the run asks
// again and receives the same answer.
//
// After a run waited in vain, no run waits until the dispatcher answers in this process: either
// it has no free runner, or another process executes it.
type waiters struct {
	timeout time.Duration

	mu     sync.Mutex
	byKey  map[string]*waiter
	seen   int  // the number of times that the dispatcher answered in this process
	inVain bool // the last run waited in vain
}

type waiter struct {
	key    string
	seen   int // value of waiters.seen at the start
	answer chan *runner.Answer
}

func newWaiters(timeout time.Duration) *waiters {
	return &waiters{timeout: timeout, byKey: map[string]*waiter{}}
}

func waiterKey(run, execution string, try int) string {
	return fmt.Sprintf("%s %s %d", run, execution, try)
}

// add adds a waiter, before the dispatcher receives the request. It returns nil if the run should not wait.
func (w *waiters) add(r runner.Request) *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inVain || len(w.byKey) >= maxWaiters {
		return nil
	}
	own := &waiter{key: waiterKey(r.RunID, r.Execution, r.Try), seen: w.seen,
		answer: make(chan *runner.Answer, 1)}
	w.byKey[own.key] = own // may replace the waiter of an abandoned workflow task
	return own
}

// wait waits for the answer if the request was delivered, and removes the waiter.
func (w *waiters) wait(ctx context.Context, own *waiter, delivered bool) *runner.Answer {
	if own == nil {
		return nil
	}
	if delivered {
		late := time.NewTimer(w.timeout)
		defer late.Stop()
		select {
		case a := <-own.answer:
			return a
		case <-late.C:
		case <-ctx.Done():
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byKey[own.key] == own {
		delete(w.byKey, own.key)
	}
	select {
	case a := <-own.answer: // arrived at the last moment
		return a
	default:
		if delivered && ctx.Err() == nil && w.seen == own.seen {
			w.inVain = true
		}
		return nil
	}
}

// offer passes the answers of a run to its waiters and returns the others.
func (w *waiters) offer(answers runner.Answers) (rest runner.Answers) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range answers {
		if own := w.byKey[waiterKey(a.RunID, a.Execution, tryOf(a))]; own != nil {
			delete(w.byKey, own.key)
			own.answer <- &a
			continue
		}
		rest = append(rest, a)
	}
	return rest
}

// dispatcherSeen records that the dispatcher answers in this process.
func (w *waiters) dispatcherSeen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen++
	w.inVain = false
}

// tryOf returns the attempt to which the answer belongs, or 0.
func tryOf(a runner.Answer) int {
	switch {
	case a.Claimed != nil:
		return a.Claimed.Try
	case a.Unmatched != nil:
		return a.Unmatched.Try
	}
	return 0
}
