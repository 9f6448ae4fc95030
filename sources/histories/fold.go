package histories

import (
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// Folder folds the history of one run, event by event, and says what each changed.
type Folder struct {
	WorkflowID string
	RunID      string
	State      ace.State

	decoder history.Decoder
	told    map[string]string                                   // skill states that were reported, by call id
	foreign error                                               // why the input is none of ours
	Each    func(*historypb.HistoryEvent, ace.Fact, *ace.State) // after each fact, where it is set
}

// NewFolder starts at nothing known.
func NewFolder(workflowID, runID string) *Folder {
	return &Folder{WorkflowID: workflowID, RunID: runID, told: map[string]string{}}
}

// Foreign says why the history cannot be folded, nil if it can.
func (f *Folder) Foreign() error { return f.foreign }

// Apply folds one event and lists what it changed, in order.
func (f *Folder) Apply(e *historypb.HistoryEvent) []Change {
	fact, ok, err := f.decoder.Fact(e)
	if err != nil {
		f.foreign = err
	}
	if !ok {
		return nil
	}
	phase, exit, after := f.State.Phase, f.State.ExitStatus(), f.State.PlaybookAfter
	cancel := f.State.CancelRequested
	f.State.Apply(fact)
	if f.Each != nil {
		f.Each(e, fact, &f.State)
	}
	var changes []Change
	if fact.Kind == ace.FactToolEvents || len(f.State.ChangedCalls()) > 0 {
		changes = f.skills(e, changes)
	}
	if f.State.PlaybookAfter != after {
		delta := f.State.PlaybookDelta()
		changes = append(changes, f.change(e, Change{Type: ChangeDelta, Delta: &delta}))
	}
	if f.State.Phase != phase {
		changes = append(changes, f.change(e, Change{Type: ChangePhase, Phase: f.State.Phase}))
	}
	if f.State.ExitStatus() != exit || f.State.CancelRequested != cancel || fact.Kind == ace.FactClosed && f.State.ExitStatus() == "" {
		changes = append(changes, f.status(e))
	}
	return changes
}

func (f *Folder) status(e *historypb.HistoryEvent) Change {
	s := &f.State
	return f.change(e, Change{Type: ChangeStatus, ExitStatus: s.ExitStatus(), Answer: s.Answer, Correct: s.Correct,
		Failure: s.Failure, Cancel: s.CancelRequested})
}

func (f *Folder) skills(e *historypb.HistoryEvent, changes []Change) []Change {
	for _, c := range f.State.ChangedCalls() {
		inv, state := c.Invocation, SkillState(c)
		if f.told[inv.ID] == state {
			continue
		}
		f.told[inv.ID] = state
		changes = append(changes, f.change(e, Change{Type: ChangeSkill, Phase: ace.PhaseSkills, Skill: &inv, State: state}))
	}
	return changes
}

func (f *Folder) change(e *historypb.HistoryEvent, c Change) Change {
	c.TaskID, c.WorkflowID, c.RunID = f.State.Input.TaskID, f.WorkflowID, f.RunID
	c.Event, c.At = e.GetEventId(), e.GetEventTime().AsTime()
	return c
}
