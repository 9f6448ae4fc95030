package activity

import (
	"context"
	"sync"
	"time"

	"acescope/engine/ace"
)

// Bounds of a batch, in events and in bytes of payload, well under Temporal's 2 MB.
const (
	maxBatch     = 200
	maxBytes     = 512 << 10
	flushTimeout = 5 * time.Second
)

// batchDelay is how long the first event of a batch waits for company, after so many
// batches. Each signal costs the server some milliseconds and a run may take 10,000, with
// four events of history each; so a session that goes on and on is told in larger parts.
// The first delay is what a person at the console may notice.
func batchDelay(sent int) time.Duration {
	switch {
	case sent < 100:
		return 40 * time.Millisecond
	case sent < 500:
		return 250 * time.Millisecond
	}
	return 2 * time.Second
}

// recorder signals tool events to the run they belong to, in batches. A session that
// ends before its first batch is due sends nothing: its result says it all.
type recorder struct {
	to      Signaller
	task    ace.TaskContext
	mu      sync.Mutex
	waiting []ace.ToolEvent
	sending sync.Mutex // one signal at a time, so that order is kept
	timer   *time.Timer
	closed  bool
	sent    int // batches
}

func newRecorder(task ace.TaskContext, to Signaller) *recorder {
	return &recorder{to: to, task: task}
}

func (r *recorder) add(events ...ace.ToolEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.waiting = append(r.waiting, events...)
	r.arm()
}

// arm is called with the lock held.
func (r *recorder) arm() {
	if r.timer == nil && len(r.waiting) > 0 && !r.closed {
		r.timer = time.AfterFunc(batchDelay(r.sent), r.due)
	}
}

// due sends what waits and lets the rest wait for its own time.
func (r *recorder) due() {
	r.sending.Lock()
	defer r.sending.Unlock()
	r.send()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer = nil
	r.arm()
}

// send signals one batch, if there is one, and tells whether there was. A batch that
// cannot be sent is given up: the session's result holds it too.
func (r *recorder) send() bool {
	r.mu.Lock()
	n := fitting(r.waiting)
	batch := r.waiting[:n:n]
	r.waiting = r.waiting[n:]
	if n > 0 {
		r.sent++
	}
	r.mu.Unlock()
	if n == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	_ = r.to.SignalWorkflow(ctx, r.task.WorkflowID, r.task.RunID, ace.SignalToolEvent, batch)
	return true
}

// fitting is how many of the events make a batch: at least one, if there is one.
func fitting(events []ace.ToolEvent) int {
	size := 0
	for n, e := range events {
		size += len(e.Args) + len(e.Result)
		if n == maxBatch || size > maxBytes && n > 0 {
			return n
		}
	}
	return len(events)
}

// close ends the recording. Where the session failed there will be no result, so what
// waits is sent first.
func (r *recorder) close(failed bool) {
	r.mu.Lock()
	r.closed = true
	if r.timer != nil {
		r.timer.Stop()
	}
	if !failed {
		r.waiting = nil
	}
	r.mu.Unlock()
	r.sending.Lock()
	defer r.sending.Unlock()
	for r.send() {
	}
}
