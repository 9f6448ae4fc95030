package histories

import (
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"acescope/engine/temporal/history"
)

// Rhythm of the detail watcher.
const (
	DescribeEvery = time.Second
)

// MaxFailedTasks bounds the failed tasks of an experiment that are listed.
const MaxFailedTasks = 200

func PendingOf(a *workflowpb.PendingActivityInfo) PendingActivity {
	p := PendingActivity{Type: a.GetActivityType().GetName(), Attempt: a.GetAttempt(), State: activityStates[a.GetState()]}
	if f := a.GetLastFailure(); f != nil {
		p.LastError, p.Causes = history.FailureOf(f).Message, CausesOf(f)
	}
	p.MaxAttempts, p.Worker = a.GetMaximumAttempts(), a.GetLastWorkerIdentity()
	if next := a.GetNextAttemptScheduleTime(); next != nil && a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED {
		p.Next = next.AsTime()
	}
	switch {
	case a.GetLastStartedTime() != nil:
		p.Since = a.GetLastStartedTime().AsTime()
	case a.GetScheduledTime() != nil:
		p.Since = a.GetScheduledTime().AsTime()
	}
	return p
}

var activityStates = map[enumspb.PendingActivityState]string{
	enumspb.PENDING_ACTIVITY_STATE_SCHEDULED:        "scheduled",
	enumspb.PENDING_ACTIVITY_STATE_STARTED:          "started",
	enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED: "cancel requested",
	enumspb.PENDING_ACTIVITY_STATE_PAUSED:           "paused",
}
