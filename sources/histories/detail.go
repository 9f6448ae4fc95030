package histories

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/kind"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/history"
	"acescope/engine/trace"
	"acescope/sources/cluster"
	"acescope/sources/experiments"
	"acescope/sources/flows"
	"acescope/sources/runs"
)

// How often a running workflow is described.
const (
	DescribeEvery = time.Second
)

// MaxFailedTasks bounds the listed failed tasks of an experiment.
const MaxFailedTasks = 200

// ActivityID returns the ID of the activity, which is the ID of its operation if it is one.
func (p *PendingActivity) ActivityID() string { return p.id }

// PendingOf converts the server's report on an activity.
func PendingOf(a *workflowpb.PendingActivityInfo) PendingActivity {
	p := PendingActivity{
		Type: a.GetActivityType().GetName(), Attempt: a.GetAttempt(), State: activityStates[a.GetState()],
		MaxAttempts: a.GetMaximumAttempts(), Worker: a.GetLastWorkerIdentity(),
		Heartbeat: compactValues(a.GetHeartbeatDetails()),
		id:        a.GetActivityId(), started: timeOf(a.GetLastStartedTime()),
		ended: timeOf(a.GetLastAttemptCompleteTime()),
	}
	if f := a.GetLastFailure(); f != nil {
		p.LastError, p.Causes, p.failure = history.FailureOf(f).Message, causesOf(f), failureText(f)
	}
	if a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED {
		p.Next = timeOf(a.GetNextAttemptScheduleTime())
	}
	if p.Since = p.started; p.Since.IsZero() {
		p.Since = timeOf(a.GetScheduledTime())
	}
	return p
}

// timeOf returns a time, zero if it is unknown.
func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// spanState returns the state of the activity in a timeline.
func (p PendingActivity) spanState() SpanState {
	switch {
	case p.State == "started" || p.State == "cancel requested":
		return SpanRunning
	case p.Attempt > 1:
		return SpanRetrying
	}
	return SpanScheduled
}

var activityStates = map[enumspb.PendingActivityState]string{
	enumspb.PENDING_ACTIVITY_STATE_SCHEDULED:        "scheduled",
	enumspb.PENDING_ACTIVITY_STATE_STARTED:          "started",
	enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED: "cancel requested",
	enumspb.PENDING_ACTIVITY_STATE_PAUSED:           "paused",
}

// Detail is the state of the selected run.
type Detail struct {
	WorkflowID string    `json:"workflow_id"`
	RunID      string    `json:"run_id"`
	Type       string    `json:"workflow_type"`
	Start      time.Time `json:"start"`
	Close      time.Time `json:"close,omitzero"`
	Events     int64     `json:"events"` // number of history events read so far
	CloseEvent int64     `json:"-"`      // the event that closed the run, 0 while it is open
	// ContinuedAs is the id of the run that continues this one as new.
	ContinuedAs string `json:"-"`

	TaskState
	Experiment *ace.ExperimentProgress `json:"experiment,omitempty"` // nil unless the run is an experiment
	// ExperimentInput is the input of an experiment, without its progress.
	ExperimentInput ace.ExperimentInput `json:"-"`
	// nil unless it is an agent session; the phase is its status
	Session *session.State `json:"session,omitempty"`
	// nil unless it was started from a blueprint
	BlueprintRun *run.State  `json:"run_state,omitempty"`
	Flow         *flows.View `json:"flow,omitempty"` // nil unless it is a run of a flow
	// Sections describe a run whose workflow type is not one of the contract; nil for other runs.
	Sections []kind.Section `json:"sections,omitempty"`
	// Agents is what the agents of such a run did, nil if the history says nothing of them.
	Agents *trace.Summary `json:"trace,omitempty"`

	Trace
	Pending []PendingActivity `json:"pending,omitempty"`
	// Forks is the lineage of the run, nil if it is unknown.
	Forks *LineageTree `json:"-"`
	// of an experiment, oldest first, the newest MaxFailedTasks
	FailedTasks   []experiments.Finished `json:"-"`
	FailedDropped int                    `json:"-"`
	Log           []runs.LogLine         `json:"-"` // oldest first, at most MaxLog
	LogDropped    int                    `json:"-"`

	From    runs.Origin `json:"from"`
	Updated time.Time   `json:"-"`
	Until   time.Time   `json:"-"` // last event of an open run in a file, zero for other runs
	Err     string      `json:"read_error,omitempty"`
}

// TaskState is the state of a task as the contract defines it.
type TaskState struct {
	Phase  ace.PhaseAnswer `json:"phase,omitzero"`
	Skills ace.SkillAnswer `json:"skills,omitzero"`
	Delta  ace.DeltaAnswer `json:"delta,omitzero"`
	Input  ace.TaskInput   `json:"input,omitzero"`
	// contract queries that a foreign workflow does not answer
	Missing []string `json:"missing,omitempty"`
	// ReviewUntil is the end of the time limit of a review, zero unless it runs.
	ReviewUntil time.Time `json:"review_until,omitzero"`
	// OldBullets holds the changed bullets as they were before, by id; nil if the previous version cannot be
	// read.
	OldBullets   map[string]OldBullet `json:"replaced,omitempty"`
	Plan         string               `json:"plan,omitempty"`
	TrajectoryID string               `json:"trajectory_id,omitempty"`
	BulletIDs    []string             `json:"bullet_ids,omitempty"` // bullets used by the generator
	// RawInput and RawResult are those of the workflow, as far as the fields above do not hold them.
	RawInput  json.RawMessage `json:"workflow_input,omitempty"`
	RawResult json.RawMessage `json:"workflow_result,omitempty"`
}

// UnderReview returns the positions, from 1, of the operations that wait for review.
func (d *Detail) UnderReview() []int {
	if d.Phase.Review.Status != ace.ReviewWaiting || !d.Close.IsZero() {
		return nil
	}
	return ace.ReviewableOperations(d.Delta.Operations)
}

// Unread names the parts of the run that could not be read.
func (s *TaskState) Unread() []string {
	notes := slices.Clone(s.Phase.Unread)
	for _, st := range s.Phase.Steps {
		for _, n := range st.Unread {
			notes = append(notes, cmp.Or(st.Phase.Activity(), string(st.Phase))+": "+n)
		}
	}
	return notes
}

// UnreadAnswer returns why the answer is not known, or "".
func (s *TaskState) UnreadAnswer() string {
	for _, st := range s.Phase.Steps {
		answers := st.Phase == ace.PhaseGenerator || st.Phase == ace.PhaseSkills
		if note := st.UnreadAnswer(); answers && note != "" && s.Phase.Answer == "" {
			return "not readable: " + st.Phase.Activity() + ": " + note
		}
	}
	return ""
}

// Trace holds the facts of a history that the answers of the contract's queries do not contain.
type Trace struct {
	Calls CallList `json:"-"` // in the order of the history
	// artifact with the complete calls; nil if the history has them
	CallLog *ace.Ref `json:"call_log,omitempty"`
	// in order of scheduling, the newest maxActivities
	Activities        []Activity `json:"activities,omitempty"`
	ActivitiesDropped int        `json:"-"`
	// of the calls of agents by a workflow that reports no usage itself
	AgentUsage ace.Usage `json:"-"`
	// of the failure that closed the run, outermost first
	Causes  []Cause `json:"causes,omitempty"`
	Lineage Lineage `json:"lineage,omitzero"`
	Skew    Skew    `json:"clock_skew,omitzero"`
	// payloads that cannot be read, at most MaxEncoded
	Encoded        []EncodedPayload `json:"encoded,omitempty"`
	EncodedDropped int              `json:"-"`
}

// Clock returns the time as of which the run is shown: now, or Until if it is set.
func (d *Detail) Clock(now time.Time) time.Time { return cluster.Clock(d.Until, now) }

// MaxLog bounds the lines of a run's log.
const MaxLog = 2000

// PendingActivity is an activity that is scheduled or running, or a workflow task that fails or that no
// worker takes.
type PendingActivity struct {
	Type      string    `json:"activity"` // or "workflow task"
	State     string    `json:"state"`    // scheduled, started, cancel requested
	Attempt   int32     `json:"attempt"`
	LastError string    `json:"last_error,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	// MaxAttempts is 0 if there is no limit. Next is the start of the next attempt, zero while an attempt
	// runs.
	MaxAttempts int32     `json:"max_attempts,omitempty"`
	Next        time.Time `json:"next_attempt,omitzero"`
	Worker      string    `json:"-"`
	Heartbeat   string    `json:"heartbeat,omitempty"` // details of the last heartbeat, as JSON
	Causes      []Cause   `json:"-"`                   // of LastError, outermost first

	id      string
	started time.Time // of this attempt, zero before it
	ended   time.Time // of the previous attempt, zero for the first attempt
	failure string    // LastError with its type
}

// Reconcile returns a run of a list and a detail, which are read independently: if one of them knows that the
// run has closed, both do.
func Reconcile(r runs.Run, d *Detail) (runs.Run, *Detail) {
	if d == nil || d.WorkflowID != r.WorkflowID || d.RunID != r.RunID || r.Open() == d.Close.IsZero() {
		return r, d
	}
	if r.Open() {
		r.Status, r.Verdict, r.Phase, r.Close, r.Attempt = d.Phase.Status, d.Phase.Verdict, d.Phase.Phase,
			d.Close, 0
		return r, d
	}
	closed := *d
	closed.Close, closed.Pending, closed.Phase.Status = r.Close, nil, r.Status
	closed.Phase.Verdict = cmp.Or(r.Verdict, d.Phase.Verdict)
	return r, &closed
}

// TraceFolder collects the [Trace] of a history.
type TraceFolder struct {
	calls      callFolder
	activities activityFolder
	encoded    encodedFolder
	lineage    Lineage
	clock      skewFolder
	causes     []Cause
}

// Fact applies a fact after the state has applied it.
func (t *TraceFolder) Fact(e *historypb.HistoryEvent, f ace.Fact, s *ace.State) {
	touched := s.ChangedCalls()
	if len(touched) > 0 && f.Kind != ace.FactToolEvents {
		var taken ace.SkillSessionResult // of the original of the fork
		for _, result := range s.Input.Fork.InlineResults(ace.PhaseSkills) {
			if r, ok := ace.StepCompleted(ace.PhaseSkills, result).Result.(*ace.SkillSessionResult); ok {
				taken.Invocations = append(taken.Invocations, r.Invocations...)
				taken.Log = cmp.Or(r.Log, taken.Log)
			}
		}
		if taken.Invocations != nil {
			f.Result = &taken
		}
	}
	t.calls.apply(e.GetEventId(), f, touched)
}

// Event applies an event.
func (t *TraceFolder) Event(e *historypb.HistoryEvent) {
	t.activities.apply(e)
	t.encoded.apply(e)
	t.lineage.Apply(e)
	t.clock.apply(e, time.Now())
	if f := cmp.Or(e.GetWorkflowExecutionFailedEventAttributes().GetFailure(),
		e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetFailure()); f != nil {
		t.causes = causesOf(f)
	}
}

// Trace returns the values collected so far.
func (t *TraceFolder) Trace() Trace {
	return Trace{
		Calls:             t.calls.publish(),
		CallLog:           t.calls.log,
		Activities:        t.activities.publish(),
		ActivitiesDropped: t.activities.dropped,
		AgentUsage:        t.activities.used,
		Causes:            t.causes,
		Lineage:           t.lineage,
		Skew:              t.clock.Skew,
		Encoded:           slices.Clip(t.encoded.list),
		EncodedDropped:    t.encoded.dropped,
	}
}

// OldBullet is a bullet as it was before a run changed it.
type OldBullet struct {
	Section string `json:"section"`
	Content string `json:"content"`
	Helpful int    `json:"helpful"`
	Harmful int    `json:"harmful"`
	Neutral int    `json:"neutral"`
}

// OldBullets returns the bullets of a delta's operations as in the version before; nil if that cannot be
// read. It reads files.
func OldBullets(ctx context.Context, d cluster.Deps, delta ace.DeltaAnswer) map[string]OldBullet {
	if d.Playbooks == nil || delta.PlaybookBefore == "" || len(delta.Operations) == 0 {
		return nil
	}
	book, err := d.Playbooks.Get(ctx, delta.PlaybookBefore)
	if err != nil {
		return nil // the operations are shown without old bullets
	}
	old := map[string]OldBullet{}
	for _, op := range delta.Operations {
		if op.Type == ace.OpAdd {
			continue
		}
		for _, id := range append([]string{op.BulletID}, op.SourceIDs...) {
			if b, ok := book.Find(id); ok {
				old[id] = OldBullet{b.Section, b.Content, b.Helpful, b.Harmful, b.Neutral}
			}
		}
	}
	return old
}

// BlueprintRunFolder folds the history of a run of a blueprint.
type BlueprintRunFolder struct {
	State   run.State
	Decoder run.Decoder
	Foreign error // why its input is not a blueprint run's
}

// MaxOutputLines bounds the newest output lines of a run's program in its log.
const MaxOutputLines = MaxLog / 2

// outputKinds holds the kind of log line of each output stream.
var outputKinds = map[string]string{"stdout": "out", "stderr": "err"}

// OutputLine parses a line of a live log. It returns false if the line is invalid.
func OutputLine(raw []byte) (runs.LogLine, bool) {
	var l struct {
		At     time.Time `json:"at"`
		Stream string    `json:"stream"`
		Text   string    `json:"text"`
		Note   string    `json:"note"`
	}
	if json.Unmarshal(raw, &l) != nil || outputKinds[l.Stream] == "" {
		return runs.LogLine{}, false
	}
	if l.Note != "" {
		return runs.LogLine{At: l.At, Kind: "status", Text: l.Note}, true
	}
	return runs.LogLine{At: l.At, Kind: outputKinds[l.Stream], Text: l.Text}, true
}

// WithOutput merges the log of a run with the output of its program by time. Both must be sorted.
func WithOutput(log, output []runs.LogLine) []runs.LogLine {
	all := make([]runs.LogLine, 0, len(log)+len(output))
	for _, l := range log {
		for len(output) > 0 && output[0].At.Before(l.At) {
			all, output = append(all, output[0]), output[1:]
		}
		all = append(all, l)
	}
	return append(all, output...)
}
