package histories

import (
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
)

// TestOperationLabel: operations share an activity type, so that lists name their steps.
func TestOperationLabel(t *testing.T) {
	for id, want := range map[string]string{"op.draft.-.1": "draft",
		"op.look%20up.left.3": "look up [left] 3", "5": "operation.action", "op.x": "operation.action"} {
		row := rowOf(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
			Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
				ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{ActivityId: id, ActivityType: &commonpb.ActivityType{Name: "operation.action"}}}})
		if row.Title != want {
			t.Errorf("%s: %q, want %q", id, row.Title, want)
		}
	}
}
