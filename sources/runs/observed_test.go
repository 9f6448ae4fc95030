package runs

import (
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/ace"
)

// TestObservedTimes checks that an observed run took as long as its observer reports, not as its workflow.
func TestObservedTimes(t *testing.T) {
	memo := func(json string) *commonpb.Payload {
		return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")},
			Data: []byte(json)}
	}
	recorded := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	r := Of(&workflowpb.WorkflowExecutionInfo{
		StartTime: timestamppb.New(recorded), CloseTime: timestamppb.New(recorded.Add(time.Second)),
		Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{
			ace.MemoObserved: memo(`{"start": "s", "at": "2026-11-01T12:00:00Z", "source": "claude", "session_id": "5e55"}`),
			ace.MemoSummary:  memo(`{"ended_at": "2026-11-01T12:30:00Z"}`),
		}},
	})
	if r.Age(recorded) != 30*time.Minute || !r.Began().Equal(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)) ||
		!r.Start.Equal(recorded) || r.Observed.Source != "claude" || r.Observed.SessionID != "5e55" {
		t.Errorf("%+v", r)
	}
}
