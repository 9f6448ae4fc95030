package histories

import (
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
)

// Rhythm of the reader of events: nothing is published sooner than publishEvery after the
// last time, nor sooner than restFor times what the work for it took.
const RestFor = 8

func PendingWorkOf(a *workflowpb.PendingActivityInfo) PendingWork {
	w := PendingWork{ActivityID: a.GetActivityId(), Type: a.GetActivityType().GetName(), State: SpanScheduled, Attempt: a.GetAttempt()}
	if t := a.GetScheduledTime(); t != nil {
		w.Scheduled = t.AsTime()
	}
	if t := a.GetLastStartedTime(); t != nil {
		w.Started = t.AsTime()
	}
	if t := a.GetLastAttemptCompleteTime(); t != nil {
		w.Ended = t.AsTime()
	}
	if t := a.GetNextAttemptScheduleTime(); t != nil {
		w.Next = t.AsTime()
	}
	w.Error = failureText(a.GetLastFailure())
	switch {
	case a.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED || a.GetState() == enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED:
		w.State = SpanRunning
	case a.GetAttempt() > 1:
		w.State = SpanRetrying
	}
	return w
}
