package flows

import (
	"encoding/json"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/temporal/operation"
)

// Operation is an operation of a step, as the history of the run records it. It is immutable.
type Operation struct {
	ID         string          `json:"operation_id"`
	Type       operation.Type  `json:"operation_type"`
	Activity   string          `json:"activity"`
	Event      int64           `json:"event_id"`
	EndEvent   int64           `json:"end_event_id,omitempty"`
	Start      time.Time       `json:"start,omitzero"`
	End        time.Time       `json:"end,omitzero"`
	Attempt    int32           `json:"attempt,omitempty"`
	Cached     bool            `json:"cached,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	ResultRef  *ace.Ref        `json:"result_ref,omitempty"`
	Failure    *ace.Failure    `json:"failure,omitempty"`
	// Cut reports that parameters and result were dropped, because a newer operation needed the space.
	Cut bool `json:"cut,omitempty"`
}

// Bounds of the operations of a run that are kept. The history has all of them.
const (
	maxOperations = 2000
	maxPayloads   = 16 << 20 // bytes of parameters and results
)

// operations folds the operations of a history. The newest are kept.
type operations struct {
	projector *operation.Projector
	byID      map[string]*Operation
	order     []string // from the oldest
	cut       int      // number of oldest operations whose payloads were dropped
	bytes     int
	steps     []flow.StepState // see [Folder.Changed]
}

func (o *operations) apply(e *historypb.HistoryEvent) {
	o.steps = nil
	for _, x := range o.projector.Apply(e) {
		switch x.Type {
		case operation.StepChanged:
			s := flow.StepState{Path: x.Key, Start: x.Time}
			if json.Unmarshal(x.Data, &s.Fact) == nil && s.Status != "" {
				o.steps = append(o.steps, s)
			}
		case operation.OperationStarted:
			if o.byID[x.OperationID] == nil {
				o.order = append(o.order, x.OperationID)
			}
			o.put(&Operation{ID: x.OperationID, Type: x.OperationType, Activity: x.Activity, Event: x.EventID,
				Start:      x.At,
				Parameters: x.Parameters})
		case operation.OperationCompleted, operation.OperationFailed:
			o.end(x)
		}
	}
}

func (o *operations) end(x operation.Event) {
	begun := o.byID[x.OperationID]
	if begun == nil {
		return
	}
	op := *begun
	op.EndEvent = x.EventID
	op.End = x.At
	op.Attempt = x.Attempt
	op.Cached = x.Cached
	op.Result = x.Result
	op.ResultRef = x.ResultRef
	op.Failure = x.Error
	o.put(&op)
}

func (o *operations) put(op *Operation) {
	o.bytes += op.size()
	if old := o.byID[op.ID]; old != nil {
		o.bytes -= old.size()
	}
	o.byID[op.ID] = op
	for o.bytes > maxPayloads && o.cut < len(o.order)-1 {
		old := *o.byID[o.order[o.cut]]
		o.bytes -= old.size()
		old.Parameters, old.Result, old.Cut = nil, nil, true
		o.byID[old.ID] = &old
		o.cut++
	}
	if len(o.order) > maxOperations {
		o.bytes -= o.byID[o.order[0]].size()
		delete(o.byID, o.order[0])
		o.order = o.order[1:]
		o.cut = max(o.cut-1, 0)
	}
}

func (o *Operation) size() int { return len(o.Parameters) + len(o.Result) }
