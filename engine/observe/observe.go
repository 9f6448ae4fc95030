// Package observe tells acescope of runs that happen elsewhere: to the workflow that stands
// for each ([Temporal]), or to a spool on this machine from which a [Forwarder] delivers
// later ([Buffered]). It may import engine/ace, engine/flow, engine/history and Temporal's SDK.
//
// Order: the events of a run are delivered in the order in which they were told. What is
// delivered twice counts once: events have ids, and places in the order. Bounds: at most
// [MaxWaiting] events wait in memory, the spool is bounded by itself. Loss: what is dropped
// is counted, and nothing that an observer is told ever blocks or fails the one who tells.
package observe

import (
	"encoding/json"
	"time"

	"acescope/engine/ace"
)

// MaxWaiting is how many events may wait in memory to be delivered or written.
const MaxWaiting = 10_000

// Observer is told what a run does. No method blocks, and none fails: an observer that
// cannot keep up counts what it drops.
type Observer interface {
	// Start begins a run. The input's TaskID names it from then on; Observed is set for it.
	Start(in ace.TaskInput)
	// Phase tells that a phase begins.
	Phase(taskID string, phase ace.Phase)
	// ToolEvent tells of a tool call, a permission, a message. EventID, Seq and At are set
	// where they are empty.
	ToolEvent(taskID string, e ace.ToolEvent)
	// Step tells the result of a step, one of the contract's, or with err that it failed.
	Step(taskID string, step ace.Phase, result any, err error)
	// Delta tells what the curator made of the run: it is Step of the curator.
	Delta(taskID string, delta ace.CuratorResult)
	// Finish ends the run, with err as one that failed.
	Finish(taskID string, f ace.Finish, err error)
}

// Null tells nobody.
type Null struct{}

// Start implements [Observer], as the other methods do.
func (Null) Start(ace.TaskInput) {}

// Phase does nothing.
func (Null) Phase(string, ace.Phase) {}

// ToolEvent does nothing.
func (Null) ToolEvent(string, ace.ToolEvent) {}

// Step does nothing.
func (Null) Step(string, ace.Phase, any, error) {}

// Delta does nothing.
func (Null) Delta(string, ace.CuratorResult) {}

// Finish does nothing.
func (Null) Finish(string, ace.Finish, error) {}

// Told is an event with the run that it belongs to: what goes to Temporal, and what stands
// in the spool.
type Told struct {
	TaskID string `json:"task_id"`
	// Start is the id of what began the run. It tells the runs of a task apart, of which
	// there are several where a session is taken up again.
	Start string `json:"start"`
	// Input is what the run is started with, given with its first event; nil later.
	Input *ace.TaskInput `json:"input,omitempty"`
	Event ace.ToolEvent  `json:"event"`
}

// stepEvent is the event of a step's result, or of its failure.
func stepEvent(step ace.Phase, result any, err error) ace.ToolEvent {
	e := ace.ToolEvent{Kind: ace.KindStep, Name: string(step)}
	if err != nil {
		e.Error = err.Error()
		return e
	}
	e.Result = toJSON(result)
	return e
}

func finishEvent(f ace.Finish, err error) ace.ToolEvent {
	e := ace.ToolEvent{Kind: ace.KindFinish, Result: toJSON(f)}
	if err != nil {
		e.Error = err.Error()
	}
	return e
}

// toJSON is a value as JSON, null where it has none.
func toJSON(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return data
}

// Redact strikes secrets out of what is about to be kept. It may change its argument.
type Redact func([]byte) []byte

func (r Redact) apply(data []byte) []byte {
	if r == nil || len(data) == 0 {
		return data
	}
	return r(data)
}

// event strikes secrets out of an event.
func (r Redact) event(e ace.ToolEvent) ace.ToolEvent {
	if r == nil {
		return e
	}
	e.Args, e.Result = r.apply(e.Args), r.apply(e.Result)
	e.Error = string(r.apply([]byte(e.Error)))
	return e
}

// input strikes secrets out of a run's input.
func (r Redact) input(in ace.TaskInput) ace.TaskInput {
	if r != nil {
		in.Prompt = string(r.apply([]byte(in.Prompt)))
	}
	return in
}

// now is the clock; tests set it.
var now = time.Now
