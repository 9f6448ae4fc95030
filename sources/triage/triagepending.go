package triage

import (
	"context"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// WorkflowTask is what is retried where a workflow's own code fails.
const WorkflowTask = "workflow task"

// lastEvents is how many of a run's newest events are read to learn since when it tries.
const lastEvents = 50

// readPending asks each open run what it waits for.
func (s *Scanner) readPending(ctx context.Context) error {
	open := s.Facts.Open
	s.stage("what open runs wait for", len(open))
	var found []Retrying
	err := s.each(ctx, len(open), func(ctx context.Context, i int) error {
		r := open[i]
		d, err := s.c.DescribeWorkflowExecution(ctx, r.WorkflowID, r.RunID)
		if err != nil {
			return err
		}
		if d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			return nil
		}
		for _, x := range s.retrying(ctx, r, d) {
			s.mu.Lock()
			found = append(found, x)
			s.mu.Unlock()
		}
		return nil
	})
	if err == nil {
		s.mu.Lock()
		s.Facts.Retrying = found
		s.mu.Unlock()
	}
	return err
}

func (s *Scanner) retrying(ctx context.Context, r runs.Run, d *workflowservice.DescribeWorkflowExecutionResponse) []Retrying {
	var out []Retrying
	for _, a := range d.GetPendingActivities() {
		if a.GetAttempt() > 1 {
			x := retryOf(r, a)
			x.Since = s.first(ctx, r, a.GetActivityId(), x.Since).at
			out = append(out, x)
		}
	}
	if w := d.GetPendingWorkflowTask(); w.GetAttempt() > 1 {
		x := Retrying{Run: r, Activity: WorkflowTask, Phase: r.Phase, State: "scheduled", Attempt: w.GetAttempt()}
		if w.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_STARTED {
			x.State = "started"
		}
		if w.GetOriginalScheduledTime() != nil {
			x.Since = w.GetOriginalScheduledTime().AsTime()
		}
		known := s.first(ctx, r, "", x.Since)
		x.Since, x.LastError = known.at, known.failure
		out = append(out, x)
	}
	return out
}

func retryOf(r runs.Run, a *workflowpb.PendingActivityInfo) Retrying {
	p := histories.PendingOf(a)
	x := Retrying{Run: r, Activity: p.Type, State: p.State, Attempt: p.Attempt, MaxAttempts: a.GetMaximumAttempts(),
		Since: p.Since, Worker: a.GetLastWorkerIdentity()}
	if f := a.GetLastFailure(); f != nil {
		x.LastError = history.FailureOf(f)
		x.LastError.Message = bounded(x.LastError.Message)
	}
	if step, ok := ace.StepOf(p.Type); ok {
		x.Phase = step
	}
	if at := a.GetNextAttemptScheduleTime(); at != nil && a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED {
		x.Next = at.AsTime()
	}
	return x
}

// first reads since when an activity, or with "" the workflow's own code, is tried, from
// the run's newest events: the server's own account of an activity begins anew with each
// attempt. Where they do not tell, it is other.
func (s *Scanner) first(ctx context.Context, r runs.Run, activityID string, other time.Time) scheduled {
	key := r.RunID + "/" + activityID
	s.mu.Lock()
	known, ok := s.Since[key]
	s.mu.Unlock()
	if !ok {
		known.at = other
	}
	if ok && activityID != "" {
		return known
	}
	res, err := s.c.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: s.O.Namespace, MaximumPageSize: lastEvents,
		Execution: &commonpb.WorkflowExecution{WorkflowId: r.WorkflowID, RunId: r.RunID}})
	if err != nil {
		return known
	}
	for _, e := range res.GetHistory().GetEvents() {
		if at, ok := begins(e, activityID); ok {
			s.mu.Lock()
			s.Since[key] = at
			s.mu.Unlock()
			return at
		}
	}
	return known
}

// begins tells whether the event began what is retried.
func begins(e *historypb.HistoryEvent, activityID string) (scheduled, bool) {
	at := e.GetEventTime().AsTime()
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		return scheduled{at: at}, activityID != "" && e.GetActivityTaskScheduledEventAttributes().GetActivityId() == activityID
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED:
		f := history.FailureOf(e.GetWorkflowTaskFailedEventAttributes().GetFailure())
		f.Message = bounded(f.Message)
		return scheduled{at, f}, activityID == ""
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
		f := ace.Failure{Kind: ace.Timeout, Message: "no worker finished the workflow task in time"}
		return scheduled{at, f}, activityID == ""
	}
	return scheduled{}, false
}
