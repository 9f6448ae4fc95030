package activity

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"

	"acescope/engine/run"
	"acescope/engine/runner"
)

// How runs are told: so many at a time, each for so long, and the dispatcher waits for so long
// before it goes on without knowing.
const (
	tellMost   = 32
	tellFor    = 20 * time.Second
	tellWithin = 500 * time.Millisecond
	// tellKeep is how long it is remembered how a run was told, for a dispatcher that asks
	// again.
	tellKeep = time.Minute
)

// tellRuns tells runs what was decided about them. It does not wait long for a run that cannot
// be told: that goes on beside it, and who asks again for the same hears how it ended.
func (d *Dispatch) tellRuns(ctx context.Context, answers runner.Answers) (runner.Told, error) {
	var told runner.Told
	d.waiting.heard()
	all := d.sender.begin(answers)
	late := time.NewTimer(tellWithin)
	defer late.Stop()
	for i, s := range all {
		select {
		case <-s.done:
		case <-late.C:
			for _, s := range all[i:] {
				d.add(&told, s)
			}
			return told, nil
		case <-ctx.Done():
			return told, ctx.Err()
		}
		d.add(&told, s)
	}
	return told, nil
}

// add takes in how a run was told, if that is known.
func (d *Dispatch) add(told *runner.Told, s *sending) {
	select {
	case <-s.done:
	default:
		told.Later = append(told.Later, s.run)
		return
	}
	var none *serviceerror.NotFound
	switch {
	case s.err == nil:
	case errors.As(s.err, &none):
		told.Ended = append(told.Ended, s.run)
	default:
		d.Logger.Warn("a run was not told by the dispatcher", "run", s.run, "error", s.err)
		told.Later = append(told.Later, s.run)
	}
}

// sender tells runs, many side by side, each its own answers in order: those that wait for
// them here at once, the others by signals.
type sender struct {
	to      Signaller
	waiting *waiting
	slots   chan struct{}

	mu    sync.Mutex
	under map[string]*sending // by what is sent
}

// sending is what one run is told. err counts once done is closed.
type sending struct {
	run  string
	done chan struct{}
	err  error
}

func newSender(to Signaller, w *waiting) *sender {
	return &sender{to: to, waiting: w, slots: make(chan struct{}, tellMost), under: map[string]*sending{}}
}

// begin tells each run its answers, unless that is under way.
func (s *sender) begin(answers runner.Answers) (all []*sending) {
	of := map[string]runner.Answers{}
	var runs []string
	for _, a := range answers {
		if of[a.RunID] == nil {
			runs = append(runs, a.RunID)
		}
		of[a.RunID] = append(of[a.RunID], a)
	}
	for _, run := range runs {
		if rest := s.waiting.offer(of[run]); len(rest) > 0 {
			all = append(all, s.one(run, rest))
		}
	}
	return all
}

func (s *sender) one(run string, answers runner.Answers) *sending {
	key := keyOf(answers)
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.under[key]; was != nil && !was.failed() {
		return was
	}
	now := &sending{run: run, done: make(chan struct{})}
	s.under[key] = now
	go func() {
		s.slots <- struct{}{}
		now.err = s.send(answers)
		<-s.slots
		close(now.done)
		time.AfterFunc(tellKeep, func() { s.forget(key, now) })
	}()
	return now
}

// failed tells whether it is over and is to be tried again.
func (s *sending) failed() bool {
	select {
	case <-s.done:
		var none *serviceerror.NotFound
		return s.err != nil && !errors.As(s.err, &none)
	default:
		return false
	}
}

func (s *sender) forget(key string, was *sending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.under[key] == was {
		delete(s.under, key)
	}
}

// keyOf tells answers apart, to the run that they are for.
func keyOf(answers runner.Answers) string {
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

func (s *sender) send(answers runner.Answers) error {
	ctx, cancel := context.WithTimeout(context.Background(), tellFor)
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
