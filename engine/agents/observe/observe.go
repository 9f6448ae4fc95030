// Package observe reports runs that other programs execute to the workflows that represent them
// ([Temporal]). A [Forwarder] delivers the records of hooks from a spool on this machine.
//
// Order: the events of a run are delivered in the order in which they were reported. Duplicate
// deliveries count once: events have ids and sequence numbers. Bounds: at most [MaxWaiting]
// events wait in memory, and no event is larger than the server accepts; the spool has its own
// bounds. Loss: dropped events are counted; events of a spool that the server refuses are in its
// quarantine. An observer never blocks its caller and never fails.
package observe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"acescope/engine/ace"
)

// MaxWaiting bounds the events in memory that wait to be delivered or written.
const MaxWaiting = 10_000

// maxOpen bounds the open runs of an observer. The oldest is forgotten; later events of it start
// another run.
const maxOpen = 10_000

// Observation is an event of a run, as it is delivered and as the spool stores it.
type Observation struct {
	TaskID string `json:"task_id"`
	// Start is the id of the event that started the run. It distinguishes the runs of a task,
	// which has several if a session is resumed.
	Start string `json:"start"`
	// Input is the run's input, with its first event only.
	Input *ace.TaskInput `json:"input,omitempty"`
	Event ace.ToolEvent  `json:"event"`
	// Refused is why the server refused the event, in the quarantine.
	Refused string `json:"refused,omitempty"`
}

// Redact removes secrets from data before it is stored. It may modify its argument.
type Redact func([]byte) []byte

func (r Redact) apply(data []byte) []byte {
	if r == nil || len(data) == 0 {
		return data
	}
	return r(data)
}

// mustJSON returns v as JSON, or null if it cannot be encoded.
func mustJSON(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return data
}

// now is the clock, replaced by tests.
var now = time.Now

var processStart = now().UnixNano()

// recorder turns calls into observations with ids and sequence numbers. No method blocks or fails.
type recorder struct {
	emit   func(Observation) // called with the lock held, so that the order is kept
	redact Redact

	mu    sync.Mutex
	open  map[string]*openRun // by task id
	count int
	last  int64
}

type openRun struct {
	start  string
	number int
	input  *ace.TaskInput // until the first event
}

// Start starts a run, which its TaskID identifies from then on.
func (r *recorder) Start(in ace.TaskInput) {
	in.Observed = true
	in.Prompt = string(r.redact.apply([]byte(in.Prompt)))
	r.mu.Lock()
	r.begin(in)
	r.mu.Unlock()
	r.record(in.TaskID, ace.ToolEvent{Kind: ace.KindMessage, Name: "start"})
}

// begin opens a run. It is called with the lock held.
func (r *recorder) begin(in ace.TaskInput) *openRun {
	if r.open == nil {
		r.open = map[string]*openRun{}
	}
	run := &openRun{start: r.newID(), number: r.count, input: &in}
	r.open[in.TaskID] = run
	if len(r.open) > maxOpen {
		delete(r.open, slices.MinFunc(slices.Collect(maps.Keys(r.open)), func(a, b string) int {
			return r.open[a].number - r.open[b].number
		}))
	}
	return run
}

// newID returns an id that is unique on this machine. It is called with the lock held.
func (r *recorder) newID() string {
	r.count++
	return fmt.Sprintf("%x-%x-%d", processStart, os.Getpid(), r.count)
}

func (r *recorder) record(taskID string, e ace.ToolEvent) {
	e.Args, e.Result = r.redact.apply(e.Args), r.redact.apply(e.Result)
	e.Error = string(r.redact.apply([]byte(e.Error)))
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.open[taskID]
	if run == nil {
		run = r.begin(ace.TaskInput{TaskID: taskID, Observation: ace.Observation{Observed: true,
			Source: e.Source}})
	}
	if e.EventID == "" {
		e.EventID = r.newID()
	}
	at := now()
	if e.At.IsZero() {
		e.At = at.UTC()
	}
	r.last = ace.NextSeq(at, r.last)
	e.Seq = cmp.Or(e.Seq, r.last)
	r.emit(Observation{TaskID: taskID, Start: run.start, Input: run.input, Event: e})
	run.input = nil
	if e.Kind == ace.KindFinish {
		delete(r.open, taskID)
	}
}

// Phase reports the start of a phase.
func (r *recorder) Phase(taskID string, phase ace.Phase) {
	r.record(taskID, ace.ToolEvent{Kind: ace.KindPhase, Name: string(phase)})
}

// ToolEvent reports a tool call, a permission or a message. It sets an empty EventID, Seq and At.
func (r *recorder) ToolEvent(taskID string, e ace.ToolEvent) { r.record(taskID, e) }

// Step reports the result of a phase, of the contract's type, or its failure.
func (r *recorder) Step(taskID string, step ace.Phase, result any, err error) {
	e := ace.ToolEvent{Kind: ace.KindStep, Name: string(step)}
	if err != nil {
		e.Error = err.Error()
	} else {
		e.Result = mustJSON(result)
	}
	r.record(taskID, e)
}

// Finish ends the run. With err the run has failed.
func (r *recorder) Finish(taskID string, f ace.Finish, err error) {
	e := ace.ToolEvent{Kind: ace.KindFinish, Result: mustJSON(f)}
	if err != nil {
		e.Error = err.Error()
	}
	r.record(taskID, e)
}
