package activity

import (
	"context"
	"sync"
	"time"

	"acescope/engine/ace"
)

// Each signal costs the server some milliseconds of work, so events wait for company:
// the first of a batch for at most batchDelay, which is also what a person at the
// console may notice.
const (
	batchDelay   = 40 * time.Millisecond
	maxBatch     = 200
	flushTimeout = 5 * time.Second
)

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
	if r.timer == nil {
		r.timer = time.AfterFunc(batchDelay, r.flush)
	}
}

// flush sends what waits, batch by batch. A batch that cannot be sent is given up: the
// session's result holds it too.
func (r *recorder) flush() {
	r.sending.Lock()
	defer r.sending.Unlock()
	for {
		batch := r.take()
		if len(batch) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		_ = r.to.SignalWorkflow(ctx, r.task.WorkflowID, r.task.RunID, ace.SignalToolEvent, batch)
		cancel()
	}
}

func (r *recorder) take() []ace.ToolEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.waiting), maxBatch)
	batch := r.waiting[:n:n]
	r.waiting = r.waiting[n:]
	if n == 0 {
		r.timer = nil
	}
	return batch
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
	r.flush()
}
