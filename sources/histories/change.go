package histories

import (
	"time"

	"acescope/engine/ace"
)

// ChangeType is the kind of a [Change], as the "type" of its JSON line.
type ChangeType string

// Change types.
const (
	ChangePhase  ChangeType = "phase"
	ChangeSkill  ChangeType = "skill"
	ChangeDelta  ChangeType = "delta"
	ChangeStatus ChangeType = "status"
)

// Change is one thing that became known of a run, for a log or a tail. Only the fields
// of its type are set. Event is the id of the history event that told it, At that
// event's time.
type Change struct {
	Type       ChangeType       `json:"type"`
	TaskID     string           `json:"task_id"`
	WorkflowID string           `json:"workflow_id"`
	RunID      string           `json:"run_id"`
	Event      int64            `json:"event_id"`
	At         time.Time        `json:"at"`
	Phase      ace.Phase        `json:"phase,omitempty"`
	Skill      *ace.Invocation  `json:"skill,omitempty"`
	State      string           `json:"state,omitempty"` // of a skill: started, ok, failed, denied
	Delta      *ace.DeltaAnswer `json:"delta,omitempty"`
	ExitStatus ace.ExitStatus   `json:"exit_status,omitempty"`
	Answer     string           `json:"answer,omitempty"`
	Correct    *bool            `json:"correct,omitempty"`
	Failure    *ace.Failure     `json:"failure,omitempty"`
	Cancel     bool             `json:"cancel_requested,omitempty"`
}

// Skill states.
const (
	SkillStarted = "started"
	SkillOK      = "ok"
	SkillFailed  = "failed"
	SkillDenied  = "denied"
)

func SkillState(c ace.Call) string {
	switch {
	case !c.Accepted:
		return SkillDenied
	case c.Pending:
		return SkillStarted
	case c.OK:
		return SkillOK
	}
	return SkillFailed
}
