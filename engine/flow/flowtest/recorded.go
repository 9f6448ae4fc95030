package flowtest

import (
	"cmp"
	"encoding/json"
	"fmt"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/operation"
)

// Replay runs a flow with the inputs and the recorded values of a run: results of operations, times, random
// values, decisions and signals.
func Replay(src flow.Source, rec *flow.Record) (Outcome, error) {
	in := rec.Input
	in.Source = src
	in.Reuse = map[string]json.RawMessage{}
	in.ReuseParameters = nil
	for _, v := range rec.Values {
		if !v.IsOperation() && v.Value != nil {
			in.Reuse[v.ID] = v.Value
		}
	}
	s := predict(in, rec)
	s.WorkflowID = rec.WorkflowID
	s.FirstRunID = rec.FirstRunID
	return s.Run()
}

// Predict runs a flow; its operations have the results that a recorded run has for them.
func Predict(in flow.Input, rec *flow.Record) (Outcome, error) {
	return predict(in, rec).Run()
}

func predict(in flow.Input, rec *flow.Record) Simulation {
	values := map[string]flow.Recorded{}
	for _, v := range rec.Values {
		values[v.ID] = v
	}
	return Simulation{Input: in, Start: rec.Start,
		Answer: func(r operation.Request, _ int) (json.RawMessage, *ace.Failure, bool) {
			v := values[r.OperationID]
			return v.Value, v.Failure, v.Value != nil || v.Failure != nil
		},
		Decide: func(string) (flow.Decision, bool) { return flow.Decision{}, false }}
}

// Difference is the first difference between a flow and a recorded run.
type Difference struct {
	Step      string `json:"step"` // path
	Operation string `json:"operation_id,omitempty"`
	Message   string `json:"message"`
}

func (d Difference) String() string { return d.Message }

// Compare returns the first operation of a replay that differs from the recorded run, also in its parameters,
// or nil. It compares the order of operations only within a branch or an iteration, because the order of
// parallel ones depends on how long their operations take.
func Compare(rec *flow.Record, out Outcome) *Difference {
	recorded := map[string][]flow.Recorded{} // by branch
	for _, v := range rec.Values {
		if v.IsOperation() {
			recorded[v.Branch()] = append(recorded[v.Branch()], v)
		}
	}
	for _, op := range out.Operations {
		rest := recorded[op.Branch()]
		switch {
		case len(rest) > 0:
		case rec.Closed:
			return differ(op, "executes operation %s, which the recorded run did not", op.ID)
		default: // the run has not reached the operation yet
			continue
		}
		want := rest[0]
		recorded[op.Branch()] = rest[1:]
		switch {
		case op.ID != want.ID:
			return differ(op, "executes operation %s where the recorded run executed %s", op.ID, want.ID)
		case want.Digest != "" && operation.Digest(op.Parameters) != want.Digest:
			return differ(op, "operation %s has other parameters: %s", op.ID,
				firstChange(want.Parameters, op.Parameters))
		}
	}
	for _, v := range rec.Values {
		if rest := recorded[v.Branch()]; len(rest) > 0 && rest[0].ID == v.ID {
			return differ(v.Operation, "operation %s of the recorded run is not executed", v.ID)
		}
	}
	return nil
}

func differ(op flow.Operation, format string, args ...any) *Difference {
	return &Difference{op.Path(), op.ID, "step " + op.Path() + ": " + fmt.Sprintf(format, args...)}
}

// firstChange describes the first difference of two parameters.
func firstChange(before, after json.RawMessage) string {
	if before == nil {
		return short(after)
	}
	var r Report
	r.compare("parameters", plain(after), plain(before), false)
	if len(r.Differences) == 0 {
		return "in the order of their members"
	}
	return r.Differences[0]
}

// TestRecorded runs a flow with the values of a recorded run, and compares its operations and its end with
// those of the run.
func TestRecorded(src flow.Source, events []*historypb.HistoryEvent) (Report, error) {
	rec, err := flow.ReadRecord(events)
	if err != nil {
		return Report{}, err
	}
	last := events[len(events)-1]
	if history.NextRun(last) != "" || rec.Input.Carried != nil {
		return Report{}, fmt.Errorf("%w: it continues an earlier run or as a new run; "+
			"verify each run of the chain with \"acescope replay verify\"", ErrContinued)
	}
	out, err := Replay(src, rec)
	if err != nil {
		return Report{}, err
	}
	r := newReport(out)
	if d := Compare(rec, out); d != nil {
		r.differ("%s", d)
		return r, nil
	}
	r.sameEnd(out, last)
	return r, nil
}

// sameEnd compares the end of a run with the recorded one.
func (r *Report) sameEnd(out Outcome, last *historypb.HistoryEvent) {
	done := last.GetWorkflowExecutionCompletedEventAttributes()
	failed := last.GetWorkflowExecutionFailedEventAttributes()
	switch {
	case done != nil:
		r.unfinished(out)
		var want flow.Result
		data, ok := history.Values(done.GetResult())
		if out.Result == nil {
			r.differ("status: %s, want %s: %s", r.Status, ace.Completed,
				cmp.Or(out.Failure, &ace.Failure{}).Message)
		} else if ok && json.Unmarshal(data, &want) == nil {
			r.compare("outputs", plain(out.Result.Outputs), plain(want.Outputs), false)
		}
	case failed != nil:
		r.unfinished(out)
		want := history.FailureOf(failed.GetFailure())
		if got := cmp.Or(out.Failure, &ace.Failure{}); got.Type != want.Type {
			r.differ("error: %q, want %q: %s", got.Type, want.Type, want.Message)
		}
	}
}
