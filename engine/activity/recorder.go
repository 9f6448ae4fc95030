package activity

import (
	"context"
	"time"

	"acescope/engine/ace"
	"acescope/engine/observe/batch"
)

const flushTimeout = 5 * time.Second

// recorder signals tool events to the run they belong to, in batches. A session that
// ends before its first batch is due sends nothing: its result says it all.
type recorder struct{ queue *batch.Queue[ace.ToolEvent] }

func newRecorder(task ace.TaskContext, to Signaller) *recorder {
	return &recorder{batch.New(batch.Rule[ace.ToolEvent]{Bytes: batch.EventBytes}, func(events []ace.ToolEvent) {
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		// A batch that cannot be sent is given up: the session's result holds it too.
		_ = to.SignalWorkflow(ctx, task.WorkflowID, task.RunID, ace.SignalToolEvent, events)
	})}
}

func (r *recorder) add(events ...ace.ToolEvent) { r.queue.Add(events...) }

// close ends the recording. Where the session failed there will be no result, so what
// waits is sent first.
func (r *recorder) close(failed bool) { r.queue.Close(!failed) }
