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
	WorkflowID string
	RunID      string
	Type       string
	Phase      ace.PhaseAnswer
	Skills     ace.SkillAnswer
	Delta      ace.DeltaAnswer
	Input      ace.TaskInput
	Missing    []string                // contract queries that a foreign workflow does not answer
	Experiment *ace.ExperimentProgress // for an experiment workflow, else nil
	// Old are the bullets that the operations changed, as they were before, by id; nil
	// where that version is not here.
	Old          map[string]OldBullet
	Calls        CallList // all that the history tells of, in its order
	CallLog      *ace.Ref // the artifact that holds them whole, nil where the history does
	Plan         string
	TrajectoryID string
	BulletIDs    []string   // that the generator used
	Activities   []Activity // in order of scheduling, the newest MaxActivities
	// ActivitiesDropped counts the older ones.
	ActivitiesDropped int
	Causes            []Cause // of the failure that closed the run, outermost first
	// Session is what is known of an agent session, nil for other runs. Its status is the
	// phase then.
	Session *sessions.TalkState
	// Course is set for a run of a blueprint.
	Course  *CourseState
	Lineage Lineage
	// ContinuedAs is the run that it goes on as, once it was continued as new.
	ContinuedAs string
	// Forks is the lineage that the run is in, where a screen has it too; nil where it is
	// not known.
	Forks         *LineageTree
	Skew          Skew
	Sealed        []Sealed // payloads that cannot be read here, at most MaxSealed
	SealedDropped int
	FailedTasks   []experiments.Finished // of an experiment, oldest first, the newest MaxFailedTasks
	FailedDropped int
	CloseEvent    int64 // the event that closed the run, 0 while it is open
	Pending       []PendingActivity
	Log           []runs.LogLine // oldest first, at most MaxLog
	LogDropped    int
	Events        int64 // history events read so far
	Start         time.Time
	Close         time.Time
	From          runs.Origin
	Updated       time.Time
	Until         time.Time // of an open run in a file: its last event, after which nothing is known
	Err           string
}

// Clock is the time as of which the run is shown: now, but of an open run in a file that
// of its last event.
func (d *Detail) Clock(now time.Time) time.Time { return cluster.Clock(d.Until, now) }

// MaxLog bounds the lines of a detail's log.
const MaxLog = 2000

// PendingActivity is an activity that is scheduled or running now.
type PendingActivity struct {
	Type      string
	State     string // scheduled, started, cancel requested
	Attempt   int32
	LastError string
	Since     time.Time
	// MaxAttempts is 0 where there is no limit; Next is when the next attempt begins,
	// zero where one runs.
	MaxAttempts int32
	Next        time.Time
	Worker      string
	Causes      []Cause // of LastError, outermost first
}
