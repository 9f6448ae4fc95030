package histories

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// maxActivities bounds the activities of a run; the newest are kept.
const maxActivities = 500

// Activity is an activity of a run with all its attempts. A history records only the start of the last
// attempt: the time from Scheduled to Started is earlier attempts and waiting. Unknown times and events are
// zero.
type Activity struct {
	Name  string    `json:"activity"`
	Phase ace.Phase `json:"phase,omitempty"` // "" unless it is a step of the contract

	Scheduled      time.Time `json:"scheduled"`
	Started        time.Time `json:"started,omitzero"`
	Closed         time.Time `json:"closed,omitzero"`
	ScheduledEvent int64     `json:"scheduled_event_id"`
	StartedEvent   int64     `json:"started_event_id,omitempty"`
	ClosedEvent    int64     `json:"closed_event_id,omitempty"`

	Attempt   int32        `json:"attempt,omitempty"`
	LastError *ace.Failure `json:"last_error,omitempty"`  // of the attempt before the last
	Failure   *ace.Failure `json:"failure,omitempty"`     // final failure, nil if it did not fail
	Causes    []Cause      `json:"causes,omitempty"`      // of Failure, outermost first
	Retry     string       `json:"retry_state,omitempty"` // why it was not retried
	Worker    string       `json:"worker,omitempty"`
}

// Event returns the last history event of the activity.
func (a Activity) Event() int64 { return max(a.ScheduledEvent, a.StartedEvent, a.ClosedEvent) }

// Waited returns how long earlier attempts and waiting took, 0 before the last attempt started.
func (a Activity) Waited() time.Duration {
	if a.Started.IsZero() || a.Scheduled.IsZero() {
		return 0
	}
	return max(a.Started.Sub(a.Scheduled), 0)
}

// Cause is one failure in a chain of failures.
type Cause struct {
	// application, activity, child workflow, timeout, canceled, terminated, server, …
	Kind       string `json:"kind"`
	Type       string `json:"type,omitempty"`
	Message    string `json:"message"`
	Activity   string `json:"activity,omitempty"` // or child workflow
	Retry      string `json:"retry_state,omitempty"`
	Final      bool   `json:"non_retryable,omitempty"`
	StackTrace string `json:"stack_trace,omitempty"`
	Details    string `json:"details,omitempty"` // as JSON; of a timeout, those of the last heartbeat
}

// maxCauses bounds a chain of failures.
const maxCauses = 20

// causesOf returns the chain of a failure, outermost first.
func causesOf(f *failurepb.Failure) []Cause {
	var chain []Cause
	for ; f != nil && len(chain) < maxCauses; f = f.GetCause() {
		chain = append(chain, causeOf(f))
	}
	return chain
}

func causeOf(f *failurepb.Failure) Cause {
	c := Cause{Kind: "failure", Message: f.GetMessage(), StackTrace: f.GetStackTrace()}
	switch {
	case f.GetApplicationFailureInfo() != nil:
		i := f.GetApplicationFailureInfo()
		c.Kind, c.Type, c.Final = "application", i.GetType(), i.GetNonRetryable()
		c.Details = compactValues(i.GetDetails())
	case f.GetActivityFailureInfo() != nil:
		i := f.GetActivityFailureInfo()
		c.Kind, c.Activity, c.Retry = "activity", i.GetActivityType().GetName(),
			retryStates[i.GetRetryState()]
	case f.GetChildWorkflowExecutionFailureInfo() != nil:
		i := f.GetChildWorkflowExecutionFailureInfo()
		c.Kind, c.Activity, c.Retry = "child workflow", i.GetWorkflowExecution().GetWorkflowId(),
			retryStates[i.GetRetryState()]
	case f.GetTimeoutFailureInfo() != nil:
		c.Kind, c.Type = "timeout", timeouts[f.GetTimeoutFailureInfo().GetTimeoutType()]
		c.Details = compactValues(f.GetTimeoutFailureInfo().GetLastHeartbeatDetails())
	case f.GetCanceledFailureInfo() != nil:
		c.Kind, c.Details = "canceled", compactValues(f.GetCanceledFailureInfo().GetDetails())
	case f.GetTerminatedFailureInfo() != nil:
		c.Kind = "terminated"
	case f.GetServerFailureInfo() != nil:
		c.Kind, c.Final = "server", f.GetServerFailureInfo().GetNonRetryable()
	}
	if f.GetEncodedAttributes() != nil {
		hidden := f.GetEncodedAttributes()
		c.Message += " (details are " + history.EncodingOf(hidden) + ": " +
			reasonUnreadable(history.CodecReason(hidden)) + ")"
	}
	return c
}

// compactValues returns payloads as JSON in one line, or "" if one of them cannot be read.
func compactValues(p *commonpb.Payloads) string {
	values, _ := history.Values(p)
	var line bytes.Buffer
	if json.Compact(&line, values) != nil {
		return ""
	}
	return line.String()
}

var retryStates = map[enumspb.RetryState]string{
	enumspb.RETRY_STATE_IN_PROGRESS:              "being retried",
	enumspb.RETRY_STATE_NON_RETRYABLE_FAILURE:    "not retryable",
	enumspb.RETRY_STATE_TIMEOUT:                  "out of time",
	enumspb.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED: "out of attempts",
	enumspb.RETRY_STATE_RETRY_POLICY_NOT_SET:     "no retry policy",
	enumspb.RETRY_STATE_INTERNAL_SERVER_ERROR:    "server error",
	enumspb.RETRY_STATE_CANCEL_REQUESTED:         "canceled",
}

var timeouts = map[enumspb.TimeoutType]string{
	enumspb.TIMEOUT_TYPE_START_TO_CLOSE:    "start to close",
	enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START: "schedule to start",
	enumspb.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE: "schedule to close",
	enumspb.TIMEOUT_TYPE_HEARTBEAT:         "heartbeat",
}

// activityFolder collects the activities of a run.
type activityFolder struct {
	list    []Activity
	dropped int
	used    ace.Usage // of calls of agents
	shared  bool      // list is published and must be copied before a change
}

// apply adds an event of an activity.
func (f *activityFolder) apply(e *historypb.HistoryEvent) {
	at, id := e.GetEventTime().AsTime(), e.GetEventId()
	f.used = f.used.Add(agentUsage(e))
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		a := e.GetActivityTaskScheduledEventAttributes()
		name := a.GetActivityType().GetName()
		phase, _ := ace.StepOf(name)
		label, ok := history.OperationName(e)
		if !ok {
			label = activityLabel(name, a.GetInput())
		}
		f.list = append(f.list, Activity{
			Name: label, Phase: phase, Scheduled: at, ScheduledEvent: id,
		})
		if over := len(f.list) - maxActivities; over > 0 {
			f.list = f.list[over:]
			f.dropped += over
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		a := e.GetActivityTaskStartedEventAttributes()
		f.change(a.GetScheduledEventId(), func(x *Activity) {
			x.Started, x.StartedEvent, x.Attempt, x.Worker = at, id, a.GetAttempt(), a.GetIdentity()
			if last := a.GetLastFailure(); last != nil {
				failure := history.FailureOf(last)
				x.LastError = &failure
			}
		})
	default:
		if end, ok := history.EndingOf(e); ok {
			f.close(e, end)
		}
	}
}

func (f *activityFolder) close(e *historypb.HistoryEvent, end history.Ending) {
	f.change(end.Started, func(x *Activity) {
		x.Closed, x.ClosedEvent = e.GetEventTime().AsTime(), e.GetEventId()
		x.Name = cmp.Or(resultLabel(end.Result), x.Name)
		if end.Status != history.EndCompleted {
			failure := end.Reason()
			x.Failure, x.Causes = &failure, causesOf(end.Failure)
		}
		if a, ok := history.Attributes(e).(interface{ GetRetryState() enumspb.RetryState }); ok {
			x.Retry = retryStates[a.GetRetryState()]
		}
	})
}

func (f *activityFolder) change(scheduled int64, fn func(*Activity)) {
	for i := len(f.list) - 1; i >= 0; i-- {
		if f.list[i].ScheduledEvent == scheduled {
			if f.shared {
				f.list, f.shared = slices.Clone(f.list), false
			}
			fn(&f.list[i])
			return
		}
	}
}

// publish returns the current list.
func (f *activityFolder) publish() []Activity {
	f.shared = true
	return f.list[:len(f.list):len(f.list)]
}
