package history

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
)

// IsError reports whether an event records a failure, a timeout, a termination or a rejection.
func IsError(e *historypb.HistoryEvent) bool {
	switch EndStatusOf(e) {
	case EndFailed, EndTimedOut, EndTerminated, EndRejected:
		return !IsReset(e)
	}
	return false
}

// IsReset reports whether a failed workflow task only marks where a run was reset.
func IsReset(e *historypb.HistoryEvent) bool {
	return e.GetWorkflowTaskFailedEventAttributes().GetCause() == enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW
}

// maxReorder is how much older than its predecessor an event may be without a clock error:
// a server buffers events that arrive during a workflow task until the task ends.
const maxReorder = time.Second

// Clock detects clocks that go backward within a history. The zero value is ready to use.
type Clock struct{ last time.Time }

// Step returns how far the clock went back since the previous event, or 0 if it did not.
// An event without a time counts as no step.
func (c *Clock) Step(e *historypb.HistoryEvent) time.Duration {
	if e.GetEventTime() == nil {
		return 0
	}
	return c.StepAt(e.GetEventType(), e.GetEventTime().AsTime())
}

// StepAt is like [Clock.Step], for the type and time of an event. It ignores the start of an
// activity, which is recorded together with the activity's end.
func (c *Clock) StepAt(t enumspb.EventType, at time.Time) time.Duration {
	if t == enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED {
		return 0
	}
	back := c.last.Sub(at)
	if c.last.IsZero() || back <= maxReorder {
		back = 0
	}
	c.last = at
	return back
}

// Values of [Origin.How]: how a run was started by another run of the same workflow ID.
const (
	ByContinueAsNew = "continue-as-new"
	ByRetry         = "retry"
	ByCron          = "cron"
	ByReset         = "reset"
)

// ResetFrom identifies the run that another run was reset from. Its events up to and
// including Event are the first events of the reset run.
type ResetFrom struct {
	RunID string `json:"run_id"`
	Event int64  `json:"event_id"`
}

// Origin describes how a run is linked to the other runs of its workflow ID, as far as its
// events have been applied. Unknown or absent run IDs are empty.
type Origin struct {
	WorkflowID string
	RunID      string
	First      string     // first run of the chain
	Prev       string     // run that this run continues or retries
	How        string     // how Prev or the reset started this run, or "" for the first run of a chain
	Reset      *ResetFrom // last reset, or nil
	Next       string     // run that continues this run
}

// OriginOf returns the origin of the run of a history.
func OriginOf(events []*historypb.HistoryEvent) Origin {
	var o Origin
	for _, e := range events {
		o.Apply(e)
	}
	return o
}

// Apply updates the origin from the next event.
func (o *Origin) Apply(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		a := e.GetWorkflowExecutionStartedEventAttributes()
		o.WorkflowID = a.GetWorkflowId()
		o.RunID = a.GetOriginalExecutionRunId()
		o.First = a.GetFirstExecutionRunId()
		o.Prev = a.GetContinuedExecutionRunId()
		if o.Prev != "" {
			o.How = initiators[a.GetInitiator()]
		}
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED:
		// A reset run starts with the events of another run, including that run's start
		// event. Only this event names the run that the history belongs to.
		if !IsReset(e) {
			return
		}
		a := e.GetWorkflowTaskFailedEventAttributes()
		o.Reset = &ResetFrom{RunID: a.GetBaseRunId(), Event: e.GetEventId() - 1}
		o.How = ByReset
		if a.GetNewRunId() != "" {
			o.RunID = a.GetNewRunId()
		}
	default:
		if next := NextRun(e); next != "" {
			o.Next = next
		}
	}
}

var initiators = map[enumspb.ContinueAsNewInitiator]string{
	enumspb.CONTINUE_AS_NEW_INITIATOR_WORKFLOW:      ByContinueAsNew,
	enumspb.CONTINUE_AS_NEW_INITIATOR_RETRY:         ByRetry,
	enumspb.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE: ByCron,
}

// NextRun returns the ID of the run that a closing event continues with (continue-as-new,
// retry or cron), or "".
func NextRun(e *historypb.HistoryEvent) string {
	return cmp.Or(e.GetWorkflowExecutionCompletedEventAttributes().GetNewExecutionRunId(),
		e.GetWorkflowExecutionFailedEventAttributes().GetNewExecutionRunId(),
		e.GetWorkflowExecutionTimedOutEventAttributes().GetNewExecutionRunId(),
		e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId())
}

// OperationLabel returns a short name for an activity whose ID engine/temporal/operation
// assigned ("op.STEP.BRANCH.N"): "draft", "draft 2", "draft [left] 2". It returns false for
// other IDs.
func OperationLabel(activityID string) (string, bool) {
	step, branch, n, ok := ParseOperationID(activityID)
	if !ok {
		return "", false
	}
	if branch != "" {
		step += " [" + branch + "]"
	}
	if n > 1 {
		step += " " + strconv.Itoa(n)
	}
	return step, true
}

// OperationName returns the name of an operation that an event schedules: the summary that its workflow set,
// or else its label, see [OperationLabel]. It returns false for other activities.
func OperationName(e *historypb.HistoryEvent) (string, bool) {
	label, ok := OperationLabel(e.GetActivityTaskScheduledEventAttributes().GetActivityId())
	var summary string
	if ok && json.Unmarshal(PayloadJSON(e.GetUserMetadata().GetSummary()), &summary) == nil && summary != "" {
		return summary, true
	}
	return label, ok
}

// ParseOperationID parses an operation ID into its step, its branch (names joined by "/", or
// "" for the main path) and its 1-based number there. A part that was too long for an ID is
// its beginning, "~" and a digest.
func ParseOperationID(id string) (step, branch string, n int, ok bool) {
	parts := strings.Split(id, ".")
	if len(parts) != 4 || parts[0] != "op" {
		return "", "", 0, false
	}
	step, err := url.PathUnescape(parts[1])
	if err != nil || step == "" {
		return "", "", 0, false
	}
	if parts[2] != "-" {
		if branch, err = url.PathUnescape(parts[2]); err != nil {
			return "", "", 0, false
		}
	}
	n, err = strconv.Atoi(parts[3])
	return step, branch, n, err == nil && n > 0
}
