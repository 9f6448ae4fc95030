package sources

import (
	"time"

	"acescope/engine/ace"
)

// Snapshot is all that a screen may show, at one moment. It is immutable: whoever
// receives it may keep it and must not change it.
type Snapshot struct {
	Seq        uint64
	At         time.Time // when it was taken
	Connection Connection
	Runs       RunList
	Detail     *Detail    // of the selected run, nil where none is
	Artifacts  *Artifacts // that were opened, nil where none was
	Events     *EventLog  // of the selected run while it is looked at, nil where none is
	Facets     *Facets    // nil until they were counted
	Health     []Health
	Problems   []Problem // newest last, at most MaxProblems
	Work       []Work    // long work under way, newest last
	Logs       *Logs     // nil until PartLogs was looked at

	Experiments *Experiments // read while it is looked at, nil before
	Triage      *Triage      // while it is looked at, and after; nil before the first time
	System      *System      // the same
	Books       *Books       // nil until somebody looked
	RunDiff     *RunDiff     // nil until two runs were compared
	Replay      *Replay      // of the selected run while its time machine is looked at
	Transcripts *Transcripts // nil until somebody looked
	Sessions    *Sessions    // the same, of sessions on the engine
	Approvals   *Approvals   // nil while none is known to wait
	Runners     *Runners     // nil until somebody looked
	Lineage     *LineageTree // of the selected run while it is looked at, nil before
	Verified    *Verified    // nil until several runs were verified
}

// MaxProblems bounds the log of past errors in a snapshot.
const MaxProblems = 100

// Connection says whom the console talks to.
type Connection struct {
	State     ConnState
	Mode      string // embedded (this process hosts), attached (another one does), remote, or [ModeFile]
	Address   string // of a file its name
	Namespace string
	Since     time.Time
	Err       string // why the state is ConnLost, for the status line
}

// ModeFile is the mode of a console on histories from files: there is no server.
const ModeFile = "file"

// ConnState is the state of the connection to the server.
type ConnState string

// Connection states.
const (
	ConnStarting ConnState = "starting"
	ConnReady    ConnState = "ready"
	ConnLost     ConnState = "lost"
)

// RunList is the runs that match the query, newest first, as far as they are held.
type RunList struct {
	Query    string // the visibility query in force, "" for all
	Rows     []Run
	First    int64 // how many newer runs lie before Rows[0]
	Walking  int64 // how far a walk to the last run has come, 0 while there is none
	Total    int64 // as the server counts them; -1 while unknown
	Counts   map[ace.ExitStatus]int64
	More     bool      // older rows exist that are not held
	Loaded   time.Time // when the list was last read, zero before the first time
	Interval time.Duration
	Paused   bool
	Loading  bool
	Err      string // why the last reading failed, "" if it did not
	ErrAt    int    // byte offset in Query of a syntax error, -1 where unknown
	Recent   *Recent
	Retries  RetryState
	Missing  []string // search attributes of the contract that the server lacks
}

// Run is one run in a list.
type Run struct {
	WorkflowID string
	RunID      string
	Type       string // workflow type
	TaskID     string
	Experiment string
	Dataset    string
	Model      string
	Adapter    string
	Phase      ace.Phase
	Exit       ace.ExitStatus
	Start      time.Time
	Close      time.Time    // zero while it runs
	Events     int64        // history length, as visibility knows it
	Summary    *ace.Summary // nil where the run left none yet
	Attempt    int32        // of a pending activity that is being retried, else 0
	LastError  string       // of that activity
	Fork       *ace.Forked  // where it was forked from, nil for a run that began by itself
	Blueprint  string       // of a run of one, "" for others
	Runner     string       // that has or had it
	Session    string       // id of the session that a run of a blueprint is, or belongs to
	Parent     string       // id of the session that started it, "" for none
	ResetFrom  string       // run id that it was reset from, "" for none and where that is not known: no list tells
}

// Open tells whether the run has not closed.
func (r Run) Open() bool { return r.Close.IsZero() }

// Age is how long the run took, or has taken at now; never below 0, whatever the clocks say.
func (r Run) Age(now time.Time) time.Duration {
	if r.Open() {
		return max(now.Sub(r.Start), 0)
	}
	return max(r.Close.Sub(r.Start), 0)
}

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
	Session *TalkState
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
	FailedTasks   []Finished // of an experiment, oldest first, the newest MaxFailedTasks
	FailedDropped int
	CloseEvent    int64 // the event that closed the run, 0 while it is open
	Pending       []PendingActivity
	Log           []LogLine // oldest first, at most MaxLog
	LogDropped    int
	Events        int64 // history events read so far
	Start         time.Time
	Close         time.Time
	From          Origin
	Updated       time.Time
	Until         time.Time // of an open run in a file: its last event, after which nothing is known
	Err           string
}

// Clock is the time as of which the run is shown: now, but of an open run in a file that
// of its last event.
func (d *Detail) Clock(now time.Time) time.Time { return clock(d.Until, now) }

func clock(until, now time.Time) time.Time {
	if until.IsZero() {
		return now
	}
	return until
}

// MaxLog bounds the lines of a detail's log.
const MaxLog = 2000

// Origin says where a detail's knowledge comes from.
type Origin string

// Origins: FromQuery means that the run's worker answered, FromHistory that the
// history was folded here, because the run is closed or no worker answers.
const (
	FromQuery   Origin = "live query"
	FromHistory Origin = "folded from history"
)

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

// LogLine is one thing that happened in a run. Text is untrusted and is made safe
// where it is drawn.
type LogLine struct {
	Event int64 // history event id
	At    time.Time
	Kind  string // phase, skill, delta, status, error
	Text  string
}

// Health is the state of one source, which lasts until it changes.
type Health struct {
	Name  string
	OK    bool
	Text  string
	Since time.Time
}

// Problem is an error that was shown.
type Problem struct {
	At   time.Time
	Text string
}
