package runs

import (
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// TestReportedProblems reads from visibility that workflow tasks of an open run fail. A closed run keeps the
// attribute, but fails no more.
func TestReportedProblems(t *testing.T) {
	problem := []byte(`["category=WorkflowTaskFailed","cause=WorkflowTaskFailedCauseNonDeterministicError"]`)
	info := &workflowpb.WorkflowExecutionInfo{Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{
			AttrProblems: {Metadata: simJSON, Data: problem}}}}
	open := Of(info)
	if !open.Retries() || open.Retried != WorkflowTask || open.Attempt != 0 ||
		open.Reason() != "workflow task: category=WorkflowTaskFailed, "+
			"cause=WorkflowTaskFailedCauseNonDeterministicError" {
		t.Errorf("%+v, %q", open.Retry, open.Reason())
	}
	info.Status = enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT
	info.CloseTime = timestamppb.New(simStart)
	if closed := Of(info); closed.Retries() || closed.Retry != (Retry{}) {
		t.Errorf("%+v", closed.Retry)
	}
	query, err := Filter("failing")
	if err != nil || query != `ExecutionStatus = "Running" AND TemporalReportedProblems IS NOT NULL` {
		t.Errorf("%q, %v", query, err)
	}
}
