package observe

import (
	"fmt"
	"os"
	"sync"

	"acescope/engine/ace"
)

// maxOpen bounds the runs that a teller has open; the oldest is forgotten, and goes on
// under a start of its own.
const maxOpen = 10_000

// teller turns what an [Observer] is told into events with ids and places.
type teller struct {
	tell   func(Told)
	redact Redact

	mu    sync.Mutex
	open  map[string]*told
	order []string
	count int
	last  int64
}

// told is a run that has been told of.
type told struct {
	start string
	input *ace.TaskInput // until its first event
}

// Start implements [Observer].
func (t *teller) Start(in ace.TaskInput) {
	in.Observed = true
	in = t.redact.input(in)
	t.mu.Lock()
	t.begin(in)
	t.mu.Unlock()
	t.send(in.TaskID, ace.ToolEvent{Kind: ace.KindMessage, Name: "start"})
}

// begin is called with the lock held.
func (t *teller) begin(in ace.TaskInput) *told {
	if t.open == nil {
		t.open = map[string]*told{}
	}
	if _, again := t.open[in.TaskID]; !again {
		t.order = append(t.order, in.TaskID)
		for len(t.order) > maxOpen {
			delete(t.open, t.order[0])
			t.order = t.order[1:]
		}
	}
	run := &told{start: t.id(), input: &in}
	t.open[in.TaskID] = run
	return run
}

// id is unique on this machine. It is called with the lock held.
func (t *teller) id() string {
	t.count++
	return fmt.Sprintf("%x-%x-%d", processStart, os.Getpid(), t.count)
}

var processStart = now().UnixNano()

func (t *teller) send(taskID string, e ace.ToolEvent) {
	e = t.redact.event(e)
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.open[taskID]
	if run == nil {
		run = t.begin(ace.TaskInput{TaskID: taskID, Observed: true, Source: e.Source})
	}
	if e.EventID == "" {
		e.EventID = t.id()
	}
	at := now()
	if e.At.IsZero() {
		e.At = at.UTC()
	}
	t.last = ace.ToolEventNow(at, t.last)
	if e.Seq == 0 {
		e.Seq = t.last
	}
	t.tell(Told{TaskID: taskID, Start: run.start, Input: run.input, Event: e})
	run.input = nil
	if e.Kind == ace.KindFinish {
		delete(t.open, taskID)
	}
}

// Phase implements [Observer].
func (t *teller) Phase(taskID string, phase ace.Phase) {
	t.send(taskID, ace.ToolEvent{Kind: ace.KindPhase, Name: string(phase)})
}

// ToolEvent implements [Observer].
func (t *teller) ToolEvent(taskID string, e ace.ToolEvent) { t.send(taskID, e) }

// Step implements [Observer].
func (t *teller) Step(taskID string, step ace.Phase, result any, err error) {
	t.send(taskID, stepEvent(step, result, err))
}

// Delta implements [Observer].
func (t *teller) Delta(taskID string, delta ace.CuratorResult) {
	t.Step(taskID, ace.PhaseCurator, delta, nil)
}

// Finish implements [Observer].
func (t *teller) Finish(taskID string, f ace.Finish, err error) { t.send(taskID, finishEvent(f, err)) }
