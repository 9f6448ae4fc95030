package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/agents/observe/batch"
	"acescope/engine/internal/redact"
	"acescope/engine/learning/model"
)

// signalRecorder records signals.
type signalRecorder struct {
	mu      sync.Mutex
	batches [][]ace.ToolEvent
	sent    chan struct{}
}

func (w *signalRecorder) SignalWorkflow(_ context.Context, workflowID, _, name string, arg any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if workflowID != "ace/t" || name != ace.SignalToolEvent {
		return fmt.Errorf("signal %s to %s", name, workflowID)
	}
	w.batches = append(w.batches, arg.([]ace.ToolEvent))
	select {
	case w.sent <- struct{}{}:
	default:
	}
	return nil
}

func (w *signalRecorder) ids() (ids []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.batches {
		for _, e := range b {
			ids = append(ids, e.EventID)
		}
	}
	return ids
}

func newSignalRecorder() *signalRecorder { return &signalRecorder{sent: make(chan struct{}, 1)} }

var about = ace.TaskContext{TaskID: "t", WorkflowID: "ace/t"}

func TestRecorderBatchesInOrder(t *testing.T) {
	w := newSignalRecorder()
	r := newEventQueue(about, w)
	var want []string
	for i := range 3 * batch.Max {
		id := fmt.Sprint(i)
		want = append(want, id)
		r.Add(ace.ToolEvent{EventID: id})
	}
	<-w.sent
	r.Close(false)
	if got := w.ids(); !slices.Equal(got, want) {
		t.Errorf("%d events of %d arrived, or not in order", len(got), len(want))
	}
	if len(w.batches) > 10 {
		t.Errorf("%d signals for %d events", len(w.batches), len(want))
	}
}

func TestRecorderClose(t *testing.T) {
	w := newSignalRecorder()
	r := newEventQueue(about, w)
	r.Add(ace.ToolEvent{EventID: "1"})
	r.Close(true)
	r.Add(ace.ToolEvent{EventID: "2"})
	if got := w.ids(); len(got) != 0 {
		t.Errorf("a completed session signaled %v", got)
	}
	r = newEventQueue(about, w)
	r.Add(ace.ToolEvent{EventID: "3"})
	r.Close(false)
	if got := w.ids(); !slices.Equal(got, []string{"3"}) {
		t.Errorf("a failed session signaled %v", got)
	}
}

func TestToolbox(t *testing.T) {
	var events []ace.ToolEvent
	box := &toolbox{config: ace.SkillsConfig{AllowedTools: []string{"good", "bad"}}, attempt: 2,
		secrets: redact.New(),
		record:  func(e ...ace.ToolEvent) { events = append(events, e...) }}
	ran := 0
	call := func(name string, result any, err error) error {
		_, got := box.Call(t.Context(), name, map[string]int{"x": 1}, func(context.Context) (any, error) {
			ran++
			return result, err
		})
		return got
	}
	broken := errors.New("broken")
	if err := call("good", 7, nil); err != nil {
		t.Error(err)
	}
	if err := call("bad", nil, broken); !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := call("forbidden", 7, nil); !errors.Is(err, model.ErrDenied) {
		t.Error(err)
	}
	calls := box.list()
	if ran != 2 || len(calls) != 3 || len(events) != 6 {
		t.Fatalf("%d ran, %d calls, %d events", ran, len(calls), len(events))
	}
	if c := calls[0]; c.ID != "skills-2.1" || !c.OK || !c.Accepted || string(c.Args) != `{"x":1}` ||
		string(c.Result) != "7" {
		t.Errorf("%+v", c)
	}
	if c := calls[1]; c.OK || !c.Accepted || c.Error != "broken" {
		t.Errorf("%+v", c)
	}
	if c := calls[2]; c.OK || c.Accepted {
		t.Errorf("%+v", c)
	}
}
