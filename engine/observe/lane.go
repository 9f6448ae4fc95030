package observe

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/history"
	"acescope/engine/observe/batch"
)

// Rhythm of delivering.
const (
	callTimeout = 5 * time.Second
	firstRetry  = 50 * time.Millisecond
	lastRetry   = 5 * time.Second
	closeWithin = 3 * time.Second // that a run which has ended takes to close
)

// parcel is an event on its way.
type parcel struct {
	Told
	done func()
}

// lane delivers the events of one task, in order. Only its queue calls send, never twice
// at a time.
type lane struct {
	to         *Temporal
	workflowID string
	queue      *batch.Queue[parcel]
	log        *slog.Logger
	known      string // start of the run that was open when it was signalled last
	runID      string
}

// Where a run stands that events belong to.
type standing int

const (
	absent standing = iota
	open
	over // it has closed
)

var errOver = errors.New("the run has closed")

// send delivers a batch, again and again until it arrives, cannot any more, or the
// observer is closed.
func (l *lane) send(parcels []parcel) {
	events := make([]ace.ToolEvent, len(parcels))
	var input *ace.TaskInput
	for i, p := range parcels {
		events[i] = p.Event
		if p.Input != nil {
			input = p.Input
		}
	}
	to := l.to
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := l.try(parcels[0].Told, input, events)
		if err == nil || errors.Is(err, errOver) {
			to.failure.Store(nil)
			break
		}
		text := err.Error()
		to.failure.Store(&text)
		l.log.Warn("events are not delivered yet", "events", len(events), "run", l.runID, "error", err)
		if !sleep(to.ctx, wait) {
			to.waiting.Add(-int64(len(parcels)))
			return
		}
	}
	to.waiting.Add(-int64(len(parcels)))
	for _, p := range parcels {
		if p.done != nil {
			p.done()
		}
	}
}

// try delivers a batch once. Who began the run is known by the memo that it was started
// with: events of a run that has closed start no other.
func (l *lane) try(of Told, input *ace.TaskInput, events []ace.ToolEvent) error {
	ctx, cancel := context.WithTimeout(l.to.ctx, callTimeout)
	defer cancel()
	if l.known != of.Start {
		at, err := l.stand(ctx, of.Start)
		switch {
		case err != nil:
			return err
		case at == absent:
			return l.start(ctx, of, input, events)
		case at == over:
			return l.tooLate(events)
		}
	}
	err := l.to.client.SignalWorkflow(ctx, l.workflowID, "", ace.SignalToolEvent, events)
	if isMissing(err) {
		if l.known == of.Start {
			return l.tooLate(events)
		}
		return err // it closed just now: look again
	}
	if err == nil {
		l.known = of.Start
	}
	return err
}

func (l *lane) tooLate(events []ace.ToolEvent) error {
	l.to.late.Add(int64(len(events)))
	l.log.Warn("events came after their run had closed", "events", len(events), "run", l.runID)
	return errOver
}

func (l *lane) start(ctx context.Context, of Told, input *ace.TaskInput, events []ace.ToolEvent) error {
	in := ace.TaskInput{TaskID: of.TaskID, Observed: true, Adapter: ace.Online}
	if input != nil {
		in = *input
	}
	run, err := l.to.client.SignalWithStartWorkflow(ctx, l.workflowID, ace.SignalToolEvent, events, client.StartWorkflowOptions{
		ID: l.workflowID, TaskQueue: ace.TaskQueue, TypedSearchAttributes: flow.TaskAttributes(in),
		Memo: map[string]any{ace.MemoObserved: ace.ObservedStart{ID: of.Start, Source: in.Source}},
	}, ace.TaskWorkflow, in)
	if err != nil {
		return err
	}
	l.known, l.runID = of.Start, run.GetRunID()
	l.log.Info("an observed run begins", "run", l.runID, "session", events[0].SessionID, "source", in.Source)
	return nil
}

// stand looks where the run stands that begins with start. A run of before that has ended
// is waited for.
func (l *lane) stand(ctx context.Context, start string) (standing, error) {
	for waited := time.Duration(0); ; waited += firstRetry {
		d, err := l.to.client.DescribeWorkflowExecution(ctx, l.workflowID, "")
		if isMissing(err) {
			return absent, nil
		}
		if err != nil {
			return absent, err
		}
		info := d.GetWorkflowExecutionInfo()
		l.runID = info.GetExecution().GetRunId()
		var begun ace.ObservedStart
		_ = json.Unmarshal(history.JSONOf(info.GetMemo().GetFields()[ace.MemoObserved]), &begun)
		isOpen := info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
		switch {
		case isOpen && (begun.ID == start || waited >= closeWithin):
			return open, nil
		case !isOpen && begun.ID == start:
			return over, nil
		case !isOpen:
			return absent, nil
		}
		if !sleep(ctx, firstRetry) {
			return absent, ctx.Err()
		}
	}
}

func isMissing(err error) bool {
	var missing *serviceerror.NotFound
	return errors.As(err, &missing)
}

// sleep waits; false where ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
