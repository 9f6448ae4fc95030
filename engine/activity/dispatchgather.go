package activity

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/runner"
)

// Bounds of one signal to the dispatcher, and how long it may take.
const (
	gatherMost  = 500
	gatherBytes = 512 << 10
	gatherSend  = 5 * time.Second
)

// gatherFor is how long the first of several notices waits for company. While a signal is
// under way the next gathers anyway, and that alone makes few signals of many notices; so the
// wait is no longer than what comes together from one workflow task to the next.
const gatherFor = 2 * time.Millisecond

// gather makes one signal to the dispatcher of what many workflows of this process say at
// about the same time. Signals go one after the other, so that what a workflow says twice,
// since it does not know whether it was heard, comes in order.
type gather struct {
	send   func(context.Context, runner.Notices) error
	window time.Duration

	mu      sync.Mutex
	waiting []*spoken
	busy    bool
}

// spoken is what one workflow says.
type spoken struct {
	ctx     context.Context
	notices runner.Notices
	bytes   int
	done    chan error
}

func newGather(send func(context.Context, runner.Notices) error, window time.Duration) *gather {
	return &gather{send: send, window: window}
}

// tell returns when the dispatcher has been told.
func (g *gather) tell(ctx context.Context, notices runner.Notices) error {
	data, err := json.Marshal(notices)
	if err != nil {
		return permanent(err)
	}
	s := &spoken{ctx, notices, len(data), make(chan error, 1)}
	g.mu.Lock()
	g.waiting = append(g.waiting, s)
	if !g.busy {
		g.busy = true
		go g.run()
	}
	g.mu.Unlock()
	select {
	case err := <-s.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run sends until nothing waits.
func (g *gather) run() {
	for {
		time.Sleep(g.window)
		batch := g.take()
		if batch == nil {
			return
		}
		var all runner.Notices
		for _, s := range batch {
			all = append(all, s.notices...)
		}
		var err error
		if len(all) > 0 {
			err = g.once(all)
		}
		for _, s := range batch {
			s.done <- err
		}
	}
}

func (g *gather) once(all runner.Notices) error {
	ctx, cancel := context.WithTimeout(context.Background(), gatherSend)
	defer cancel()
	return g.send(ctx, all)
}

// take is what goes into the next signal, nil where nothing waits. Who does not wait for an
// answer any more says it again later.
func (g *gather) take() []*spoken {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.busy = false
		return nil
	}
	n, notices, bytes := 0, 0, 0
	for n < len(g.waiting) {
		s := g.waiting[n]
		if s.ctx.Err() != nil {
			s.notices, s.bytes = nil, 0
		}
		notices, bytes = notices+len(s.notices), bytes+s.bytes
		if n > 0 && (notices > gatherMost || bytes > gatherBytes) {
			break
		}
		n++
	}
	batch := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	return batch
}

// toDispatcher signals the dispatcher, which begins where there is none.
func (d *Dispatch) toDispatcher(ctx context.Context, notices runner.Notices) error {
	o := client.StartWorkflowOptions{ID: runner.DispatcherID, TaskQueue: ace.TaskQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE}
	_, err := d.Workflows.SignalWithStartWorkflow(ctx, runner.DispatcherID, runner.SignalNotices, notices, o, runner.DispatcherWorkflow)
	if err != nil {
		return fmt.Errorf("tell the dispatcher: %w", err)
	}
	return nil
}
