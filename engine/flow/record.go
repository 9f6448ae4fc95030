package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/operation"
)

// Operation is an operation of a run.
type Operation struct {
	ID         string          `json:"id"`
	Parameters json.RawMessage `json:"-"`
}

// Step returns the ID of the operation's step.
func (o Operation) Step() string {
	step, _, _, _ := history.ParseOperationID(o.ID)
	return step
}

// Branch returns the branch of the operation, "" for the main path.
func (o Operation) Branch() string {
	_, branch, _, _ := history.ParseOperationID(o.ID)
	return branch
}

// Path returns the path of the operation's step.
func (o Operation) Path() string {
	step, branch, _, _ := history.ParseOperationID(o.ID)
	return JoinPath(branch, step)
}

// Recorded is a value that a run did not compute itself: the result of an operation, a time, a random value,
// or the end of a wait.
type Recorded struct {
	Operation
	Path    string          // of the step, "" for a time
	Began   int             // index in the order in which the run asked for its values
	Event   int64           // history event that has the value, 0 while it has no value
	Value   json.RawMessage // nil without a result
	Failure *ace.Failure    // of an operation
	Digest  string          // of the parameters of an operation, see [operation.Digest]
}

// IsOperation reports whether the value is the result of an operation.
func (r Recorded) IsOperation() bool { return IsOperation(r.ID) }

// IsOperation reports whether the ID is the ID of an operation.
func IsOperation(id string) bool {
	_, _, _, ok := history.ParseOperationID(id)
	return ok
}

// Usage returns the usage in the result of an operation, or nil.
func (r Recorded) Usage() *ace.Usage {
	var result struct {
		Usage *ace.Usage `json:"usage"`
	}
	if json.Unmarshal(r.Value, &result) != nil || result.Usage == nil || *result.Usage == (ace.Usage{}) {
		return nil
	}
	return result.Usage
}

// Record holds the recorded values in the history of a run.
type Record struct {
	Input  Input
	Flow   *Flow
	Values []Recorded // in the order in which the run asked for them
	State  State      // at the end
	Start  time.Time
	Closed bool

	WorkflowID, FirstRunID string

	began map[string]int // len(Values) when a step first began, by path
}

// ReadRecord reads the history of a run from its first event.
func ReadRecord(events []*historypb.HistoryEvent) (*Record, error) {
	if len(events) == 0 {
		return nil, fmt.Errorf("the history is empty")
	}
	in, ok := InputOf(events[0])
	if !ok {
		return nil, fmt.Errorf("the history is not that of a flow run, or its input is encoded")
	}
	f, err := Parsed(in.Source, in.Digest)
	if err != nil {
		return nil, err
	}
	r := &Record{Input: in, Flow: f, State: Fold(events), Start: events[0].GetEventTime().AsTime(),
		began: map[string]int{}}
	start := events[0].GetWorkflowExecutionStartedEventAttributes()
	r.WorkflowID = start.GetWorkflowId()
	r.FirstRunID = start.GetFirstExecutionRunId()
	b := recordReader{Record: r, at: map[string]int{}, decided: map[string]json.RawMessage{},
		signals: map[string][]json.RawMessage{}}
	if in.Carried != nil {
		for _, name := range sortedKeys(in.Carried.Signals) {
			b.signals[name] = in.Carried.Signals[name]
		}
	}
	b.read(events)
	return r, nil
}

// Find returns the value with an ID.
func (r *Record) Find(id string) (Recorded, bool) {
	i := slices.IndexFunc(r.Values, func(v Recorded) bool { return v.ID == id })
	if i < 0 {
		return Recorded{}, false
	}
	return r.Values[i], true
}

// BeganAt returns the number of values that the run had asked for when a step first began. It returns false
// if the step did not begin.
func (r *Record) BeganAt(path string) (int, bool) {
	n, ok := r.began[path]
	return n, ok
}

// recordReader builds a record.
type recordReader struct {
	*Record
	at      map[string]int               // index of a value by its ID
	decided map[string]json.RawMessage   // decisions that no wait has used, by path
	signals map[string][]json.RawMessage // signals that no wait has used
}

// read reads events in their order, with signals among them.
func (b *recordReader) read(events []*historypb.HistoryEvent) {
	projected := operation.Project(events)
	for _, e := range events {
		for len(projected) > 0 && projected[0].EventID <= e.GetEventId() {
			b.apply(projected[0])
			projected = projected[1:]
		}
		if s := e.GetWorkflowExecutionSignaledEventAttributes(); s != nil {
			b.signal(s)
		}
		_, closed := history.CloseStatus(e.GetEventType())
		b.Closed = b.Closed || closed
	}
}

func (b *recordReader) signal(s *historypb.WorkflowExecutionSignaledEventAttributes) {
	data := history.JSON(s.GetInput())
	if !json.Valid(data) {
		return
	}
	if s.GetSignalName() != SignalDecide {
		b.signals[s.GetSignalName()] = append(b.signals[s.GetSignalName()], data)
		return
	}
	var d Decision
	if json.Unmarshal(data, &d) == nil && b.decided[d.Step] == nil {
		b.decided[d.Step] = data
	}
}

// put returns the value with an ID, which it adds if the run asks for it for the first time.
func (b *recordReader) put(id, path string) *Recorded {
	i, ok := b.at[id]
	if !ok {
		i = len(b.Values)
		b.at[id] = i
		b.Values = append(b.Values, Recorded{Operation: Operation{ID: id}, Path: path, Began: i})
	}
	return &b.Values[i]
}

func (b *recordReader) apply(e operation.Event) {
	switch e.Type {
	case operation.OperationStarted:
		v := b.put(e.OperationID, Operation{ID: e.OperationID}.Path())
		v.Parameters = e.Parameters
		v.Digest = operation.Digest(e.Parameters)
	case operation.OperationCompleted:
		v := b.put(e.OperationID, "")
		v.Event = e.EventID
		v.Value = e.Result
		if e.ResultRef != nil {
			v.Value = nil
		}
	case operation.OperationFailed:
		v := b.put(e.OperationID, "")
		v.Event = e.EventID
		v.Failure = e.Error
	case operation.TimeAccessed:
		v := b.put(e.Key, "")
		v.Event = e.EventID
		v.Value, _ = json.Marshal(e.Time)
	case operation.RandomGenerated:
		if name, branch, ok := operation.ParseRandomKey(e.Key); ok {
			v := b.put(e.Key, JoinPath(branch, name))
			v.Event = e.EventID
			v.Value = e.Data
		}
	case operation.StepChanged:
		var f Fact
		if json.Unmarshal(e.Data, &f) == nil {
			b.step(e, e.Key, f)
		}
	}
}

// step notes when a step began, and values that have no event of their own: reused values and the ends of
// waits.
func (b *recordReader) step(e operation.Event, path string, f Fact) {
	if _, ok := b.began[path]; !ok {
		b.began[path] = len(b.Values)
		if f.Kind == "random" {
			b.reused(e, path)
		}
	}
	if f.Reused {
		v := b.put(f.Operation, path)
		v.Event = e.EventID
		v.Value = b.Input.Reuse[f.Operation]
		v.Digest = b.Input.ReuseParameters[f.Operation]
	}
	if f.Status == StepWaiting {
		b.put(waitID(path), path)
		if f.Approval {
			delete(b.decided, path)
		}
	}
	switch s := b.Flow.StepAt(path); {
	case s == nil || !f.Status.Over() || f.Status == "" || f.Status == StepSkipped ||
		f.Status == StepCanceled:
	default:
		b.waited(e, s, path, f)
	}
}

// reused notes a random value that the run itself reused, for which the history has no event.
func (b *recordReader) reused(e operation.Event, path string) {
	for _, key := range sortedKeys(b.Input.Reuse) {
		if name, branch, ok := operation.ParseRandomKey(key); ok && JoinPath(branch, name) == path {
			v := b.put(key, path)
			v.Event = e.EventID
			v.Value = b.Input.Reuse[key]
		}
	}
}

// waited notes how a wait ended.
func (b *recordReader) waited(e operation.Event, s *Step, path string, f Fact) {
	id := waitID(path)
	value := b.Input.Reuse[id]
	switch k := s.Do.(type) {
	case *approvalStep:
		if value == nil {
			value = json.RawMessage("null")
			if d := b.decided[path]; d != nil && !f.TimedOut {
				value = d
			}
		}
	case *waitStep:
		if value == nil {
			w := waited{TimedOut: f.TimedOut}
			if list := b.signals[k.signal]; k.signal != "" && !f.TimedOut && len(list) > 0 {
				w.Data = list[0]
				b.signals[k.signal] = list[1:]
			}
			value, _ = json.Marshal(w)
		}
	default:
		return
	}
	v := b.put(id, path)
	v.Event = e.EventID
	v.Value = value
}

// StepAt returns the step at a path, or nil.
func (f *Flow) StepAt(path string) *Step {
	return stepAt(f.Steps, strings.Split(path, "/"))
}

func stepAt(steps []*Step, path []string) *Step {
	for _, s := range steps {
		if s.ID == path[0] {
			if len(path) == 1 {
				return s
			}
			return within(s, path[1:])
		}
		for _, b := range s.Do.Blocks() {
			if b.Paths != SamePaths {
				break
			}
			if found := stepAt(b.Steps, path); found != nil {
				return found
			}
		}
	}
	return nil
}

// within returns the step at a path in the blocks of a step.
func within(s *Step, path []string) *Step {
	for _, b := range s.Do.Blocks() {
		rest := path
		switch {
		case b.Paths == SamePaths, b.Paths == BranchPaths && path[0] != b.Name:
			continue
		case b.Paths != FlowPaths:
			rest = path[1:]
		}
		if len(rest) == 0 {
			continue
		}
		if found := stepAt(b.Steps, rest); found != nil {
			return found
		}
	}
	return nil
}
