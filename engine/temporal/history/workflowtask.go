package history

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// TaskType stands for the type of an activity if it is the workflow task that fails or waits.
const TaskType = "workflow task"

// TaskPatience is how long a workflow task waits for a worker until that is reported.
const TaskPatience = 10 * time.Second

// WorkflowTask is the state of the workflow task of a run, from the events of its history in order; the first
// ones may be missing. A server records only the first failures in a row: of later attempts it keeps the
// number while the run is open, but no message. The zero value is ready to use.
type WorkflowTask struct {
	Failures  int                    // since a task completed, as far as events state them; a lower bound
	Failure   *failurepb.Failure     // the last of them
	since     *timestamppb.Timestamp // of the first of them
	scheduled *timestamppb.Timestamp // of a task that no worker has taken, otherwise nil
}

// Apply updates the state from the next event. It reports whether the event is the first failure in a row.
func (t *WorkflowTask) Apply(e *historypb.HistoryEvent) (fails bool) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
		t.scheduled = e.GetEventTime()
		if t.Failures > 0 {
			t.Failures = max(t.Failures, int(e.GetWorkflowTaskScheduledEventAttributes().GetAttempt())-1)
		}
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED:
		t.scheduled = nil
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
		*t = WorkflowTask{}
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED:
		return t.failed(e, TaskFailure(e.GetWorkflowTaskFailedEventAttributes()))
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
		// A task that was not started in time only moves from the queue of one worker to that of all.
		timeout := e.GetWorkflowTaskTimedOutEventAttributes().GetTimeoutType()
		if timeout == enumspb.TIMEOUT_TYPE_START_TO_CLOSE {
			return t.failed(e, &failurepb.Failure{Message: "no worker finished the workflow task in time"})
		}
	}
	return false
}

func (t *WorkflowTask) failed(e *historypb.HistoryEvent, f *failurepb.Failure) bool {
	switch e.GetWorkflowTaskFailedEventAttributes().GetCause() {
	case enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW:
		*t = WorkflowTask{}
		return false
	case enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND, // these are no fault of a worker
		enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_STICKY_TASK_QUEUE,
		enumspb.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
		enumspb.WORKFLOW_TASK_FAILED_CAUSE_FAILOVER_CLOSE_COMMAND,
		enumspb.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_PAUSE_REQUESTED_BEFORE_TASK_STARTED:
		return false
	}
	t.Failure, t.scheduled = f, nil
	if t.Failures++; t.Failures == 1 {
		t.since = e.GetEventTime()
	}
	return t.Failures == 1
}

// Trouble returns what was wrong with the task until a time, as the end of a sentence, or "".
func (t *WorkflowTask) Trouble(at *timestamppb.Timestamp) string {
	switch {
	case t.Failures > 0:
		return fmt.Sprintf("; its workflow task had failed %d or more times: %s", t.Failures,
			FailureOf(t.Failure).Message)
	case t.scheduled != nil && at.AsTime().Sub(t.scheduled.AsTime()) >= TaskPatience:
		return "; no worker had taken its workflow task"
	}
	return ""
}

// Pending returns the pending activities of a run that the server describes. Its workflow task is among them,
// as an activity of the type [TaskType] without an ID, if it fails or no worker takes it.
func (t *WorkflowTask) Pending(
	d *workflowservice.DescribeWorkflowExecutionResponse, now time.Time,
) []*workflowpb.PendingActivityInfo {
	list, w := d.GetPendingActivities(), d.GetPendingWorkflowTask()
	p := &workflowpb.PendingActivityInfo{ActivityType: &commonpb.ActivityType{Name: TaskType},
		Attempt: max(w.GetAttempt(), int32(t.Failures)+1), LastFailure: t.Failure, ScheduledTime: t.since,
		State: enumspb.PENDING_ACTIVITY_STATE_SCHEDULED}
	if w.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_STARTED {
		p.State = enumspb.PENDING_ACTIVITY_STATE_STARTED
	}
	p.ScheduledTime = cmp.Or(p.ScheduledTime, w.GetOriginalScheduledTime())
	switch {
	case w == nil, d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return list
	case p.Attempt == 1 && w.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED &&
		now.Sub(p.ScheduledTime.AsTime()) >= TaskPatience:
		p.LastFailure = &failurepb.Failure{Message: fmt.Sprintf("no worker takes it from task queue %q",
			d.GetExecutionConfig().GetTaskQueue().GetName())}
	case p.Attempt == 1:
		return list
	}
	return append(list, p)
}

// Described returns what a server would say of the workflow task of an open run if it fails, otherwise nil.
func (t *WorkflowTask) Described() *workflowpb.PendingWorkflowTaskInfo {
	if t.Failures == 0 {
		return nil
	}
	return &workflowpb.PendingWorkflowTaskInfo{Attempt: int32(t.Failures) + 1,
		State: enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED}
}

// TaskFailure returns the failure of the workflow's code, without those in which the Java SDK wraps it. The
// message names the cause, unless it is that the code failed.
func TaskFailure(a *historypb.WorkflowTaskFailedEventAttributes) *failurepb.Failure {
	f, cause := a.GetFailure(), a.GetCause()
	for f.GetCause() != nil && f.GetSource() == "JavaSDK" &&
		(strings.HasPrefix(f.GetApplicationFailureInfo().GetType(), "io.temporal.internal.") ||
			strings.Contains(f.GetMessage(), ": failure executing ")) {
		f = f.GetCause()
	}
	if cause == enumspb.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE ||
		strings.Contains(f.GetMessage(), cause.String()) {
		return f
	}
	return &failurepb.Failure{Message: cause.String() + ": " + f.GetMessage(), Source: f.GetSource(),
		StackTrace: f.GetStackTrace(), Cause: f.GetCause(), FailureInfo: f.GetFailureInfo()}
}
