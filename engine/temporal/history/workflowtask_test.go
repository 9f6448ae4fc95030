package history

import (
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/ace"
)

const (
	codeFailed = enumspb.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE
	drifted    = enumspb.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func application(source, kind, message string, cause *failurepb.Failure) *failurepb.Failure {
	return &failurepb.Failure{Message: message, Source: source, Cause: cause,
		FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
			ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: kind}}}
}

func event(seconds int, t enumspb.EventType) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{EventType: t,
		EventTime: timestamppb.New(noon.Add(time.Duration(seconds) * time.Second))}
}

func scheduled(seconds int, attempt int32) *historypb.HistoryEvent {
	e := event(seconds, enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED)
	e.Attributes = &historypb.HistoryEvent_WorkflowTaskScheduledEventAttributes{
		WorkflowTaskScheduledEventAttributes: &historypb.WorkflowTaskScheduledEventAttributes{
			Attempt: attempt}}
	return e
}

func taskFailed(seconds int, cause enumspb.WorkflowTaskFailedCause,
	f *failurepb.Failure) *historypb.HistoryEvent {
	e := event(seconds, enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED)
	e.Attributes = &historypb.HistoryEvent_WorkflowTaskFailedEventAttributes{
		WorkflowTaskFailedEventAttributes: &historypb.WorkflowTaskFailedEventAttributes{Cause: cause,
			Failure: f}}
	return e
}

func taskTimedOut(seconds int, of enumspb.TimeoutType) *historypb.HistoryEvent {
	e := event(seconds, enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT)
	e.Attributes = &historypb.HistoryEvent_WorkflowTaskTimedOutEventAttributes{
		WorkflowTaskTimedOutEventAttributes: &historypb.WorkflowTaskTimedOutEventAttributes{TimeoutType: of}}
	return e
}

func terminated(seconds int, reason string) *historypb.HistoryEvent {
	e := event(seconds, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED)
	e.Attributes = &historypb.HistoryEvent_WorkflowExecutionTerminatedEventAttributes{
		WorkflowExecutionTerminatedEventAttributes: &historypb.WorkflowExecutionTerminatedEventAttributes{
			Reason: reason}}
	return e
}

func completed(seconds int) *historypb.HistoryEvent {
	return event(seconds, enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED)
}

func started(seconds int) *historypb.HistoryEvent {
	return event(seconds, enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED)
}

// TestTaskFailure finds the message of the user's code in the failures of each SDK.
func TestTaskFailure(t *testing.T) {
	wrapped := application("JavaSDK", "io.temporal.internal.statemachines.InternalWorkflowTaskException",
		"Failure handling event 3 of type 'EVENT_TYPE_WORKFLOW_TASK_STARTED' during execution.",
		application("JavaSDK", "java.lang.RuntimeException",
			"WorkflowTask: failure executing SCHEDULED->WORKFLOW_TASK_STARTED, transition history is [CREATED]",
			application("JavaSDK", "java.lang.IllegalArgumentException", "a bug",
				application("JavaSDK", "java.lang.RuntimeException", "its cause", nil))))
	for _, c := range []struct {
		cause      enumspb.WorkflowTaskFailedCause
		failure    *failurepb.Failure
		kind, want string
	}{
		{codeFailed, application("", "RuntimeError", "wrong key", application("", "ValueError", "deeper",
			nil)),
			"RuntimeError", "wrong key"}, // Python
		{codeFailed, &failurepb.Failure{Message: "wrong key", Source: "TypeScriptSDK"}, "", "wrong key"},
		{codeFailed, wrapped, "java.lang.IllegalArgumentException", "a bug"},
		{codeFailed, application("GoSDK", "PanicError", "wrong key", nil), "", "wrong key"},
		{codeFailed, application("", "NotFoundError", "Workflow class X is not registered", nil),
			"NotFoundError",
			"Workflow class X is not registered"},
		{drifted, application("GoSDK", "PanicError", "[TMPRL1100] lookup failed", nil), "",
			"NonDeterministicError: [TMPRL1100] lookup failed"},
		{drifted, application("JavaSDK", "io.temporal.worker.NonDeterministicException",
			"Failure handling event 5", nil), "io.temporal.worker.NonDeterministicException",
			"NonDeterministicError: Failure handling event 5"},
		{enumspb.WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_ACTIVITY_ATTRIBUTES,
			&failurepb.Failure{Message: "BadScheduleActivityAttributes: no type"}, "",
			"BadScheduleActivityAttributes: no type"},
		{codeFailed, nil, "", "unknown failure"},
	} {
		got := FailureOf(TaskFailure(taskFailed(0, c.cause,
			c.failure).GetWorkflowTaskFailedEventAttributes()))
		if got.Message != c.want || got.Type != c.kind {
			t.Errorf("%s %v: %+v", c.cause, c.failure, got)
		}
	}
}

// TestWorkflowTaskEnding states in the failure of a closed run what was wrong with its workflow task.
func TestWorkflowTaskEnding(t *testing.T) {
	bug := application("", "RuntimeError", "wrong key", nil)
	timedOut := event(60, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT)
	const plain = "the workflow timed out"
	for name, c := range map[string]struct {
		events []*historypb.HistoryEvent
		want   string
	}{
		"healthy": {[]*historypb.HistoryEvent{scheduled(0, 1), started(0), completed(1), timedOut}, plain},
		"failed once": {[]*historypb.HistoryEvent{scheduled(0, 1), started(0), taskFailed(1, codeFailed, bug),
			timedOut}, plain + "; its workflow task had failed 1 or more times: wrong key"},
		"two recorded failures": {[]*historypb.HistoryEvent{taskFailed(1, codeFailed, bug), scheduled(1, 1),
			taskFailed(2, drifted, bug), timedOut},
			plain + "; its workflow task had failed 2 or more times: NonDeterministicError: wrong key"},
		"recovered": {[]*historypb.HistoryEvent{taskFailed(1, codeFailed, bug), scheduled(2, 3), started(2),
			completed(3), timedOut}, plain},
		"terminated during attempt 7": {[]*historypb.HistoryEvent{taskFailed(1, codeFailed, bug),
			scheduled(40, 7), started(40), taskFailed(41,
				enumspb.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND, nil),
			terminated(41, "enough")}, "enough; its workflow task had failed 6 or more times: wrong key"},
		"healthy, terminated during a task": {[]*historypb.HistoryEvent{scheduled(0, 1), started(0),
			taskFailed(1, enumspb.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND, nil), terminated(1,
				"enough")},
			"enough"},
		"terminated without a reason": {[]*historypb.HistoryEvent{taskFailed(1, codeFailed, bug),
			terminated(41, "")}, "its workflow task had failed 1 or more times: wrong key"},
		"deadlock": {[]*historypb.HistoryEvent{scheduled(0, 1), started(0),
			taskTimedOut(10, enumspb.TIMEOUT_TYPE_START_TO_CLOSE), timedOut},
			plain + "; its workflow task had failed 1 or more times: " +
				"no worker finished the workflow task in time"},
		"sticky queue": {[]*historypb.HistoryEvent{scheduled(0, 1),
			taskTimedOut(5, enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START), scheduled(5, 1), started(6), timedOut},
			plain},
		"unhandled command": {[]*historypb.HistoryEvent{started(0),
			taskFailed(1, enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND, nil), timedOut}, plain},
		"reset": {[]*historypb.HistoryEvent{taskFailed(1, codeFailed, bug),
			taskFailed(2, enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW, bug), scheduled(2, 1),
			started(2),
			timedOut}, plain},
		"no worker": {[]*historypb.HistoryEvent{scheduled(50, 1), timedOut},
			plain + "; no worker had taken its workflow task"},
		"worker was busy": {[]*historypb.HistoryEvent{scheduled(51, 1), timedOut}, plain},
	} {
		decode, fact := &Decoder{}, ace.Fact{}
		for _, e := range c.events {
			if f, ok, _ := decode.Fact(e); ok {
				fact = f
			}
			decode = decode.Clone()
		}
		if fact.Failure == nil || fact.Failure.Message != c.want {
			t.Errorf("%s: %+v, want %q", name, fact.Failure, c.want)
		}
	}
}

// TestFirstTaskFailure reports only the first failure in a row.
func TestFirstTaskFailure(t *testing.T) {
	var task WorkflowTask
	var got []bool
	for _, e := range []*historypb.HistoryEvent{taskFailed(1, codeFailed, nil), taskFailed(2, codeFailed,
		nil),
		completed(3), taskFailed(4, codeFailed, nil)} {
		got = append(got, task.Apply(e))
	}
	if !got[0] || got[1] || got[2] || !got[3] {
		t.Errorf("%v", got)
	}
}

// TestPendingWorkflowTask lists the workflow task among the pending activities if it fails or waits too long.
func TestPendingWorkflowTask(t *testing.T) {
	const running, paused = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED
	const waits, works = enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED,
		enumspb.PENDING_WORKFLOW_TASK_STATE_STARTED
	failing := &WorkflowTask{}
	failing.Apply(taskFailed(-90, codeFailed, application("", "RuntimeError", "wrong key", nil)))
	for name, c := range map[string]struct {
		task    *WorkflowTask
		status  enumspb.WorkflowExecutionStatus
		state   enumspb.PendingWorkflowTaskState
		attempt int32
		age     int // seconds
		want    string
		since   int // seconds before noon
	}{
		"healthy":        {&WorkflowTask{}, running, works, 1, 60, "", 0},
		"just scheduled": {&WorkflowTask{}, running, waits, 1, 9, "", 0},
		"no worker": {&WorkflowTask{}, running, waits, 1, 60,
			`no worker takes it from task queue "q"`, 60},
		"paused":               {&WorkflowTask{}, paused, waits, 1, 60, "", 0},
		"failing":              {failing, running, waits, 7, 1, "wrong key", 90},
		"second failure":       {failing, running, works, 1, 1, "wrong key", 90},
		"failing, no events":   {&WorkflowTask{}, running, works, 3, 5, "-", 5},
		"closed while failing": {failing, enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT, waits, 7, 1, "", 0},
	} {
		d := &workflowservice.DescribeWorkflowExecutionResponse{
			ExecutionConfig:       &workflowpb.WorkflowExecutionConfig{TaskQueue: &taskqueuepb.TaskQueue{Name: "q"}},
			WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: c.status},
			PendingActivities: []*workflowpb.PendingActivityInfo{
				{ActivityId: "1", ActivityType: &commonpb.ActivityType{Name: "echo"}}},
			PendingWorkflowTask: &workflowpb.PendingWorkflowTaskInfo{State: c.state, Attempt: c.attempt,
				OriginalScheduledTime: timestamppb.New(noon.Add(-time.Duration(c.age) * time.Second))}}
		list := c.task.Pending(d, noon)
		if c.want == "" {
			if len(list) != 1 {
				t.Errorf("%s: %v", name, list)
			}
			continue
		}
		got := list[len(list)-1]
		message := "-"
		if got.GetLastFailure() != nil {
			message = got.GetLastFailure().GetMessage()
		}
		if len(list) != 2 || got.GetActivityType().GetName() != TaskType || message != c.want ||
			got.GetAttempt() != max(c.attempt, int32(c.task.Failures)+1) ||
			noon.Sub(got.GetScheduledTime().AsTime()) != time.Duration(c.since)*time.Second ||
			!strings.EqualFold(got.GetState().String(), c.state.String()) {
			t.Errorf("%s: %v", name, list)
		}
	}
	if list := failing.Pending(&workflowservice.DescribeWorkflowExecutionResponse{}, noon); len(list) != 0 {
		t.Errorf("without a workflow task: %v", list)
	}
}
