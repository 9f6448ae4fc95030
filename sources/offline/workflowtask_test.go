package offline_test

import (
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/sources/detail"
	"acescope/sources/histories"
	"acescope/sources/historytest"
	"acescope/sources/runs"
	"acescope/sources/triage"
)

// failing returns the history of a run whose workflow task fails; with end it has closed.
func failing(id string, end enumspb.EventType) []*historypb.HistoryEvent {
	b := historytest.New("Order", map[string]any{"key": "k1"})
	start := b.Events[0].GetWorkflowExecutionStartedEventAttributes()
	start.WorkflowId, start.OriginalExecutionRunId = id, "run-"+id
	b.Add(0, enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, nil)
	b.Add(0, enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED, nil)
	b.Add(time.Second, enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_WorkflowTaskFailedEventAttributes{
			WorkflowTaskFailedEventAttributes: &historypb.WorkflowTaskFailedEventAttributes{
				Cause:   enumspb.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE,
				Failure: &failurepb.Failure{Message: "the key is wrong"}}}
	})
	if end != 0 {
		b.Add(time.Minute, end, nil)
	}
	return b.Events
}

// TestFailingWorkflowTask says of an open run that its workflow task fails, and of a closed one that it did.
func TestFailingWorkflowTask(t *testing.T) {
	const why = "the workflow timed out; its workflow task had failed 1 or more times: the key is wrong"
	_, c := load(t, source("open.json", text(t, failing("open", 0))),
		source("late.json", text(t, failing("late", enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT))))
	d, err := detail.Read(t.Context(), c, "open", "")
	if err != nil {
		t.Fatal(err)
	}
	failedAt := historytest.Start.Add(time.Second)
	if len(d.Pending) != 1 || d.Pending[0].Type != runs.WorkflowTask || d.Pending[0].Attempt != 2 ||
		d.Pending[0].LastError != "the key is wrong" || d.Pending[0].Since.Before(failedAt) {
		t.Errorf("pending %+v", d.Pending)
	}
	if last := d.Log[len(d.Log)-1]; last.Kind != "error" ||
		last.Text != "workflow task failed: the key is wrong" {
		t.Errorf("log %+v", d.Log)
	}
	if d, err = detail.Read(t.Context(), c, "late", ""); err != nil || d.Phase.Failure == nil ||
		d.Phase.Failure.Message != why || len(d.Pending) != 0 {
		t.Errorf("%+v, pending %+v, %v", d.Phase.Failure, d.Pending, err)
	}
	var rows []runs.Run
	err = runs.ListRetrying(t.Context(), c, "", "", 0, func(r runs.Run) error {
		rows = append(rows, r)
		return nil
	})
	if err != nil || len(rows) != 1 || rows[0].Retried != runs.WorkflowTask || rows[0].Attempt != 2 ||
		rows[0].Reason() != "workflow task: the key is wrong" || rows[0].Since.Before(failedAt) {
		t.Errorf("%+v, %v", rows, err)
	}
	found, err := triage.Read(t.Context(), c, triage.Options{}, nil)
	if err != nil || len(found.Retrying) != 1 || found.Retrying[0].LastError.Message != "the key is wrong" ||
		len(found.Groups) != 1 || found.Groups[0].Last.Message != why {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestFailingWorkflowTaskInTimeline shows the workflow task of an open run as retried.
func TestFailingWorkflowTaskInTimeline(t *testing.T) {
	_, c := load(t, source("open.json", text(t, failing("open", 0))))
	d, err := detail.Read(t.Context(), c, "open", "")
	if err != nil {
		t.Fatal(err)
	}
	l, err := histories.ReadEvents(t.Context(), c, "", "open", "run-open", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range histories.Timeline(l, d.Pending) {
		if s.State == histories.SpanRetrying {
			got = append(got, s.Kind.String())
		}
	}
	if !strings.Contains(strings.Join(got, ", "), "workflow task") {
		t.Errorf("%s", got)
	}
}
