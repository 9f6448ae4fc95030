package compare

import (
	"encoding/json"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// note is a note that an operation or a marker of engine/temporal/operation records. Value is a change of a
// step of a flow if the event is step_changed.
type note struct {
	Event string          `json:"event"`
	Path  string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// stepChange is a change of a step of a flow.
type stepChange struct {
	Status    string `json:"status"`
	Detail    string `json:"detail,omitempty"`
	Error     string `json:"error,omitempty"`
	Operation string `json:"operation_id,omitempty"`
	Reused    bool   `json:"reused,omitempty"`

	Usage *ace.Usage `json:"usage,omitempty"`
}

// Ends of steps of flows, and their statuses.
var stepEnds = map[string]string{"completed": Done, "failed": Failed, "canceled": Cancelled,
	"skipped": "skipped"}

// setOperation sets the input of an operation to its parameters. Its notes are steps of their own.
func (s *builder) setOperation(st *Step) {
	var request struct {
		ID         string          `json:"operation_id"`
		Parameters json.RawMessage `json:"parameters"`
	}
	if s.all || json.Unmarshal(st.Input, &request) != nil || request.ID == "" ||
		len(request.Parameters) == 0 {
		return
	}
	st.Input = request.Parameters
}

// flowInput holds the fields of the input of a flow run that a comparison reads.
type flowInput struct {
	Source json.RawMessage            `json:"source"`
	Digest string                     `json:"digest"` // of the source
	Fork   *ace.Forked                `json:"fork"`
	Reuse  map[string]json.RawMessage `json:"reuse"` // results of the original by the ID of the operation
}

// setFork reads the reused results from the input of a fork of a flow run. It returns the input without the
// fields that are compared as steps, and without the digest, which only says whether the file differs.
func (s *builder) setFork(input json.RawMessage) json.RawMessage {
	var in flowInput
	if json.Unmarshal(input, &in) != nil || in.Source == nil || in.Digest == "" {
		return input
	}
	s.reusable = in.Reuse
	if in.Fork != nil && in.Fork.WorkflowID != "" {
		s.about.Fork = in.Fork
	}
	return without(input, "fork", "reuse", "reuse_parameters", "digest")
}

// addReusedOperation adds an operation of a flow whose result is that of the fork's original.
func (s *builder) addReusedOperation(e *historypb.HistoryEvent, id string) {
	result, ok := s.reusable[id]
	label, isOperation := history.OperationLabel(id)
	if !ok || !isOperation {
		return
	}
	st := s.once(e, KindActivity, "operation", label, nil)
	st.Taken = true
	st.Result, _ = json.Marshal(map[string]any{"operation_id": id, "result": result})
}

// addNotes adds the steps of a flow that ended without an operation, such as conditions, waits and approvals.
func (s *builder) addNotes(e *historypb.HistoryEvent) {
	var data []byte
	if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
		data, _ = history.Values(a.GetInput())
	} else if a := e.GetMarkerRecordedEventAttributes(); a != nil {
		data, _ = history.Values(history.MarkerOf(a).Result)
	}
	var noted struct {
		Notes []note `json:"notes"`
	}
	if len(data) == 0 || json.Unmarshal(data, &noted) != nil {
		return
	}
	for _, n := range noted.Notes {
		var c stepChange
		if n.Event != "step_changed" || json.Unmarshal(n.Value, &c) != nil {
			continue
		}
		if c.Usage != nil {
			s.usage = s.usage.Add(*c.Usage)
		}
		if c.Operation != "" {
			s.operated[n.Path] = true
		}
		if c.Reused {
			s.addReusedOperation(e, c.Operation)
		}
		status, ended := stepEnds[c.Status]
		if ended && s.operated[n.Path] { // the operation is compared
			delete(s.operated, n.Path)
			continue
		}
		if !ended {
			continue
		}
		st := s.begin(e, KindStep, n.Path, "", nil)
		delete(s.open, e.GetEventId())
		st.End = e.GetEventId()
		st.Status = status
		st.Error = c.Error
		st.error = s.anonymous(c.Error)
		if c.Detail != "" {
			st.Result, _ = json.Marshal(c.Detail)
		}
	}
}
