package activity

import (
	"context"
	"fmt"
	"sync"
	"time"

	"acescope/engine/runner"
)

// How long a run waits for the dispatcher's answer within its workflow task, and how many do
// so at a time. Who waits cannot be stopped meanwhile, and takes up one of the worker's
// workflow tasks; the dispatcher's own must never be short of one.
const (
	waitFor  = 500 * time.Millisecond
	waitMost = 200
)

// waiting are the runs of this process that wait for what the dispatcher answers, so that
// they need no signal, nor a workflow task to hear it. An answer that is lost on the way, with
// the process or since the workflow task was given to another one, is not lost for the run:
// that asks again, and the dispatcher answers the same again.
//
// Nobody waits after somebody has waited in vain, until the dispatcher tells something in this
// process: it has no free runner, or it is served by another process.
type waiting struct {
	most time.Duration

	mu   sync.Mutex
	of   map[string]*waiter
	told int  // how often the dispatcher has told something here
	vain bool // the last one waited in vain
}

// waiter is one of them.
type waiter struct {
	key    string
	told   int // when it began
	answer chan *runner.Answer
}

func newWaiting(most time.Duration) *waiting {
	return &waiting{most: most, of: map[string]*waiter{}}
}

func waiterKey(run, execution string, try int) string {
	return fmt.Sprintf("%s %s %d", run, execution, try)
}

// begin makes a run wait, before the dispatcher is told of it; nil where it should not.
func (w *waiting) begin(r runner.Request) *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.vain || len(w.of) >= waitMost {
		return nil
	}
	one := &waiter{key: waiterKey(r.RunID, r.Execution, r.Try), told: w.told, answer: make(chan *runner.Answer, 1)}
	w.of[one.key] = one // in place of one whose workflow task is over
	return one
}

// end waits for the answer, if the dispatcher was told, and ends the waiting.
func (w *waiting) end(ctx context.Context, one *waiter, told bool) *runner.Answer {
	if one == nil {
		return nil
	}
	if told {
		late := time.NewTimer(w.most)
		defer late.Stop()
		select {
		case a := <-one.answer:
			return a
		case <-late.C:
		case <-ctx.Done():
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[one.key] == one {
		delete(w.of, one.key)
	}
	select {
	case a := <-one.answer: // just now
		return a
	default:
		w.vain = w.vain || told && ctx.Err() == nil && w.told == one.told
		return nil
	}
}

// offer gives the answers of a run to it, where it waits for them, and returns the others.
func (w *waiting) offer(answers runner.Answers) (rest runner.Answers) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range answers {
		if one := w.of[waiterKey(a.RunID, a.Execution, tryOf(a))]; one != nil {
			delete(w.of, one.key)
			one.answer <- &a
			continue
		}
		rest = append(rest, a)
	}
	return rest
}

// heard notes that the dispatcher tells something in this process.
func (w *waiting) heard() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told++
	w.vain = false
}

// tryOf is what a run has asked for that this answers, 0 for none.
func tryOf(a runner.Answer) int {
	switch {
	case a.Claimed != nil:
		return a.Claimed.Try
	case a.Unmatched != nil:
		return a.Unmatched.Try
	}
	return 0
}
