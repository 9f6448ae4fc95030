package histories

import (
	"time"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/experiments"
	"acescope/sources/runs"
	"acescope/sources/sessions"
)

// Detail is what is known of the selected run.
type Detail struct {
	WorkflowID string                  `json:"workflow_id"`
	RunID      string                  `json:"run_id"`
	Type       string                  `json:"workflow_type"`
	Phase      ace.PhaseAnswer         `json:"phase,omitzero"`
	Skills     ace.SkillAnswer         `json:"skills,omitzero"`
	Delta      ace.DeltaAnswer         `json:"delta,omitzero"`
	Input      ace.TaskInput           `json:"input,omitzero"`
	Missing    []string                `json:"missing,omitempty"`    // contract queries that a foreign workflow does not answer
	Experiment *ace.ExperimentProgress `json:"experiment,omitempty"` // for an experiment workflow, else nil
	// Old are the bullets that the operations changed, as they were before, by id; nil
	// where that version is not here.
	Old          map[string]OldBullet `json:"replaced,omitempty"`
	Calls        CallList             `json:"-"`                  // all that the history tells of, in its order
	CallLog      *ace.Ref             `json:"call_log,omitempty"` // the artifact that holds them whole, nil where the history does
	Plan         string               `json:"plan,omitempty"`
	TrajectoryID string               `json:"trajectory_id,omitempty"`
	BulletIDs    []string             `json:"bullet_ids,omitempty"` // that the generator used
	Activities   []Activity           `json:"activities,omitempty"` // in order of scheduling, the newest MaxActivities
	// ActivitiesDropped counts the older ones.
	ActivitiesDropped int     `json:"-"`
	Causes            []Cause `json:"causes,omitempty"` // of the failure that closed the run, outermost first
	// Session is what is known of an agent session, nil for other runs. Its status is the
	// phase then.
	Session *sessions.TalkState `json:"session,omitempty"`
	// Course is set for a run of a blueprint.
	Course  *CourseState `json:"run_state,omitempty"`
	Lineage Lineage      `json:"lineage,omitzero"`
	// ContinuedAs is the run that it goes on as, once it was continued as new.
	ContinuedAs string `json:"-"`
	// Forks is the lineage that the run is in, where a screen has it too; nil where it is
	// not known.
	Forks         *LineageTree           `json:"-"`
	Skew          Skew                   `json:"clock_skew,omitzero"`
	Sealed        []Sealed               `json:"encoded,omitempty"` // payloads that cannot be read here, at most MaxSealed
	SealedDropped int                    `json:"-"`
	FailedTasks   []experiments.Finished `json:"-"` // of an experiment, oldest first, the newest MaxFailedTasks
	FailedDropped int                    `json:"-"`
	CloseEvent    int64                  `json:"-"` // the event that closed the run, 0 while it is open
	Pending       []PendingActivity      `json:"pending,omitempty"`
	Log           []runs.LogLine         `json:"-"` // oldest first, at most MaxLog
	LogDropped    int                    `json:"-"`
	Events        int64                  `json:"events"` // history events read so far
	Start         time.Time              `json:"start"`
	Close         time.Time              `json:"close,omitzero"`
	From          runs.Origin            `json:"from"`
	Updated       time.Time              `json:"-"`
	Until         time.Time              `json:"-"` // of an open run in a file: its last event, after which nothing is known
	Err           string                 `json:"read_error,omitempty"`
}

// Clock is the time as of which the run is shown: now, but of an open run in a file that
// of its last event.
func (d *Detail) Clock(now time.Time) time.Time { return cluster.Clock(d.Until, now) }

// MaxLog bounds the lines of a detail's log.
const MaxLog = 2000

// PendingActivity is an activity that is scheduled or running now.
type PendingActivity struct {
	Type      string    `json:"activity"`
	State     string    `json:"state"` // scheduled, started, cancel requested
	Attempt   int32     `json:"attempt"`
	LastError string    `json:"last_error,omitempty"`
	Since     time.Time `json:"-"`
	// MaxAttempts is 0 where there is no limit; Next is when the next attempt begins,
	// zero where one runs.
	MaxAttempts int32     `json:"max_attempts,omitempty"`
	Next        time.Time `json:"next_attempt,omitzero"`
	Worker      string    `json:"-"`
	Causes      []Cause   `json:"-"` // of LastError, outermost first
}
