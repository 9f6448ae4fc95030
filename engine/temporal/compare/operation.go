package compare

import (
	"encoding/json"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/temporal/history"
)

// stepNote is what an operation or a marker of engine/temporal/operation notes about a step of a flow.
type stepNote struct {
	Event string `json:"event"`
	Path  string `json:"key"`
	Value struct {
		Status    string `json:"status"`
		Detail    string `json:"detail,omitempty"`
		Error     string `json:"error,omitempty"`
		Operation string `json:"operation_id,omitempty"`
	} `json:"value"`
}

// Ends of steps of flows, and their statuses.
var stepEnds = map[string]string{"completed": Done, "failed": Failed, "canceled": Cancelled,
	"skipped": "skipped"}

// setOperation keeps of the input of an operation what the workflow decides: its parameters, and not the notes, which are
// steps of their own.
func (s *builder) setOperation(st *Step) {
	var request struct {
		ID         string          `json:"operation_id"`
		Parameters json.RawMessage `json:"parameters"`
	}
	if s.all || json.Unmarshal(st.Input, &request) != nil || request.ID == "" || len(request.Parameters) == 0 {
		return
	}
	st.Input = request.Parameters
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
		Notes []stepNote `json:"notes"`
	}
	if len(data) == 0 || json.Unmarshal(data, &noted) != nil {
		return
	}
	for _, n := range noted.Notes {
		if n.Event != "step_changed" {
			continue
		}
		if n.Value.Operation != "" {
			s.operated[n.Path] = true
		}
		status, ended := stepEnds[n.Value.Status]
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
		st.Error = n.Value.Error
		st.error = s.anonymous(n.Value.Error)
		if n.Value.Detail != "" {
			st.Result, _ = json.Marshal(n.Value.Detail)
		}
	}
}
