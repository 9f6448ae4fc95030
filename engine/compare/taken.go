package compare

import (
	"encoding/json"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
)

// takenOver adds the steps that a fork has from its original, as far as the run has come:
// they stand in its input. One that is an artifact is loaded by an activity, which is the
// step then; those behind it come after that.
func (s *stepper) takenOver(e *historypb.HistoryEvent) {
	f := s.fold.Input.Fork
	if f == nil || f.WorkflowID == "" {
		return
	}
	s.about.Fork = &f.Forked
	for steps := ace.Steps(); s.borrowing < len(steps); s.borrowing++ {
		phase := steps[s.borrowing]
		if f.Stored(phase) != nil && s.fold.Steps[s.borrowing].Status != ace.StatusDone {
			return
		}
		result := f.Inline(phase)
		if result == nil {
			continue
		}
		st := s.once(e, KindActivity, phase.Activity(), "", nil)
		st.Taken, st.Result = true, result
		if phase == ace.PhaseSkills {
			s.tools(e)
		}
	}
}

// loaded makes the activity that loads a step's result the step itself, taken over.
func (s *stepper) loaded(st *Step) {
	var in ace.LoadStepInput
	if st.Name != ace.ActivityLoadStep || json.Unmarshal(st.Input, &in) != nil || in.Phase.Activity() == "" {
		return
	}
	st.Name, st.ident, st.Taken, st.Input = in.Phase.Activity(), KindActivity+" "+in.Phase.Activity(), true, nil
	st.Key = s.nth(st.ident, false)
}

// withoutFork is an input without what it says of a fork: that is compared as steps.
func withoutFork(raw json.RawMessage) json.RawMessage {
	var in struct {
		Fork *ace.Forked `json:"fork"`
	}
	if json.Unmarshal(raw, &in) != nil || in.Fork == nil || in.Fork.WorkflowID == "" {
		return raw
	}
	return without(raw, "fork")
}

// without is a JSON object without some members; what is none stays as it is.
func without(raw json.RawMessage, names ...string) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return raw
	}
	for _, name := range names {
		delete(all, name)
	}
	out, err := marshal(all)
	if err != nil {
		return raw
	}
	return out
}

// borrowed is what the steps that were taken over used, and how long they took: all of it
// the original's.
func (s *stepper) borrowed() (used ace.Usage, ms float64) {
	for _, st := range s.fold.Steps {
		if !st.Taken {
			continue
		}
		if st.Usage != nil {
			used = used.Add(*st.Usage)
		}
		if st.Time != nil {
			ms += max(st.Time.DurationMS, 0)
		}
	}
	return used, ms
}
