package detail

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/historytest"
	"acescope/sources/runs"
)

// fakeClient has one open history and answers queries as set.
type fakeClient struct {
	client.Client
	events []*historypb.HistoryEvent
	query  func(ctx context.Context, name string) (any, error)
}

func (c *fakeClient) GetWorkflowHistory(ctx context.Context, _, _ string, wait bool,
	_ enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	return &fakeHistory{ctx, c.events, wait}
}

func (c *fakeClient) WorkflowService() workflowservice.WorkflowServiceClient {
	h := historytest.NewClient()
	h.Put("r", c.events...)
	return h.WorkflowService()
}

func (c *fakeClient) DescribeWorkflowExecution(context.Context, string,
	string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, errors.New("not here")
}

func (c *fakeClient) QueryWorkflow(ctx context.Context, _, _ string, name string,
	_ ...any) (converter.EncodedValue, error) {
	v, err := c.query(ctx, name)
	if err != nil {
		return nil, err
	}
	return answerOf{v}, nil
}

type answerOf struct{ v any }

func (a answerOf) HasValue() bool { return true }
func (a answerOf) Get(to any) error {
	data, err := json.Marshal(a.v)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}

// fakeHistory returns its events, then waits for the end if it should.
type fakeHistory struct {
	ctx    context.Context
	events []*historypb.HistoryEvent
	wait   bool
}

func (h *fakeHistory) HasNext() bool { return len(h.events) > 0 || h.wait }

func (h *fakeHistory) Next() (*historypb.HistoryEvent, error) {
	if len(h.events) == 0 {
		<-h.ctx.Done()
		return nil, h.ctx.Err()
	}
	e := h.events[0]
	h.events = h.events[1:]
	return e, nil
}

// linkTo returns a link to a server.
func linkTo(d cluster.Deps) *cluster.Link {
	link := cluster.NewLink()
	link.Deps = d
	return link
}

// watchDetailOf watches the run until a detail satisfies wanted.
func watchDetailOf(t *testing.T, c client.Client, wanted func(*histories.Detail) bool) *histories.Detail {
	t.Helper()
	link := linkTo(cluster.Deps{Client: c})
	f := NewFeed(link)
	f.Want(runs.ID{WorkflowID: "ace/t", RunID: "r"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	defer func() { cancel(); <-done }()
	for {
		select {
		case <-link.Changed():
			if d := f.Value(); d != nil && wanted(d) {
				return d
			}
		case <-t.Context().Done():
			t.Fatal("the detail never became as wanted")
		}
	}
}

func openRun() []*historypb.HistoryEvent { return longHistory(3, 0) }

// TestSilentWorkerDelaysNothing shows the fold while a query hangs.
func TestSilentWorkerDelaysNothing(t *testing.T) {
	release, asked := make(chan struct{}), make(chan struct{}, 1)
	c := &fakeClient{events: openRun(), query: func(context.Context, string) (any, error) {
		cluster.Signal(asked)
		<-release
		return nil, context.DeadlineExceeded
	}}
	d := watchDetailOf(t, c, func(d *histories.Detail) bool {
		if d.Skills.Total != 3 || d.Calls.Len() != 3 {
			return false
		}
		<-asked
		close(release)
		return true
	})
	if d.Phase.Phase != ace.PhaseGenerator || d.From != runs.FromHistory {
		t.Errorf("%+v", d)
	}
}

// TestAnsweredThenSilent shows the last state when a worker stops answering between two events.
func TestAnsweredThenSilent(t *testing.T) {
	silent := false
	c := &fakeClient{events: openRun(), query: func(_ context.Context, name string) (any, error) {
		if silent {
			return nil, context.DeadlineExceeded
		}
		if name == ace.QueryPhase {
			return ace.PhaseAnswer{Phase: ace.PhaseSkills, Status: ace.Running}, nil
		}
		return struct{}{}, nil
	}}
	w := newWatcher(linkTo(cluster.Deps{Client: c}), runs.ID{WorkflowID: "ace/t", RunID: "r"}, nil)
	for _, e := range c.events[:3] {
		_ = w.take(e)
	}
	w.ask(t.Context())
	if d := w.takeDirty(); d.From != runs.FromQuery || d.Phase.Phase != ace.PhaseSkills {
		t.Fatalf("%s, %+v", d.From, d.Phase)
	}
	_ = w.take(c.events[3])
	if d := w.takeDirty(); d == nil || d.From != runs.FromQuery || d.Calls.Len() != 2 {
		t.Errorf("before it is asked again: %+v", d)
	}
	silent = true
	w.ask(t.Context())
	if d := w.takeDirty(); d.From != runs.FromHistory || d.Phase.Phase != ace.PhaseGenerator ||
		d.Skills.Total != 2 {
		t.Errorf("after it fell silent: %s, %+v", d.From, d.Phase)
	}
}

// TestLateAnswersOfAClosedRun drops an answer that arrives after the run has closed.
func TestLateAnswersOfAClosedRun(t *testing.T) {
	m := &historyBuilder{}
	m.start(ace.TaskInput{TaskID: "t"})
	var w *watcher
	c := &fakeClient{query: func(_ context.Context, name string) (any, error) {
		if name == ace.QueryDelta { // the last query: the run closes meanwhile
			_ = w.take(m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED}))
		}
		return ace.PhaseAnswer{Phase: ace.PhaseSkills, Status: ace.Running}, nil
	}}
	w = newWatcher(linkTo(cluster.Deps{Client: c}), runs.ID{WorkflowID: "ace/t", RunID: "r"}, nil)
	_ = w.take(m.events[0])
	w.ask(t.Context())
	if d := w.takeDirty(); d.From != runs.FromHistory || d.Phase.Status != ace.Terminated ||
		d.Phase.Steps[0].Status != ace.StatusNotReached {
		t.Errorf("%s, %+v", d.From, d.Phase)
	}
}

// TestForeignWorkflows answers with a bare string, a list, and only some of the queries.
func TestForeignWorkflows(t *testing.T) {
	c := &fakeClient{events: historytest.New("OrderWorkflow", "order 17").Events,
		query: func(_ context.Context, name string) (any, error) {
			switch name {
			case ace.QueryPhase:
				return "packing", nil
			case ace.QueryDelta:
				return []any{"Check the address.", map[string]any{"type": "ADD", "content": "c"}}, nil
			}
			return nil, serviceerror.NewQueryFailed("unknown query " + name)
		}}
	d := watchDetailOf(t, c, func(d *histories.Detail) bool { return d.From == runs.FromQuery })
	if d.Phase.Phase != "packing" || len(d.Missing) != 1 || d.Err != "" ||
		string(d.RawInput) != `"order 17"` {
		t.Errorf("%+v", d)
	}
	if ops := d.Delta.Operations; len(ops) != 2 || ops[0].Content != "Check the address." {
		t.Errorf("operations %+v", ops)
	}
	c.query = func(context.Context, string) (any, error) { return nil, serviceerror.NewQueryFailed("none") }
	d = watchDetailOf(t, c, func(d *histories.Detail) bool { return d.RawInput != nil })
	if d.From != runs.FromHistory || d.Phase.Phase != "" || len(d.Phase.Steps) != 0 {
		t.Errorf("%+v", d.Phase)
	}
}

func TestLogIsBounded(t *testing.T) {
	w := newWatcher(linkTo(cluster.Deps{}), runs.ID{WorkflowID: "ace/t"}, nil)
	for i := range histories.MaxLog + 10 {
		w.line(runs.LogLine{Event: int64(i)})
	}
	if d := w.detail; len(d.Log) != histories.MaxLog || d.LogDropped != 10 || d.Log[0].Event != 10 {
		t.Errorf("%d lines, %d dropped", len(d.Log), d.LogDropped)
	}
}
