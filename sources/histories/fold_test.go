package histories

import (
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
)

// TestObservedChanges checks that the changes of an observed run hold the delta of a curator, also if nothing
// is merged, and slash commands.
func TestObservedChanges(t *testing.T) {
	payload := func(json string) *commonpb.Payloads {
		return &commonpb.Payloads{Payloads: []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(json)}}}
	}
	f := NewFolder("ace/o", "r")
	f.Apply(&historypb.HistoryEvent{EventId: 1, EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
			WorkflowType: &commonpb.WorkflowType{Name: ace.TaskWorkflow},
			Input:        payload(`{"task_id": "o", "observed": true}`)}}})
	signal := func(json string) (texts []string) {
		for _, c := range f.Apply(&historypb.HistoryEvent{EventId: 2,
			EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{
				SignalName: ace.SignalToolEvent, Input: payload(json)}}}) {
			if c.Type == ChangeDelta || c.Type == ChangeCommand {
				texts = append(texts, c.Text())
			}
		}
		return texts
	}
	got := signal(`[{"event_id": "1", "seq": 1, "kind": "step", "name": "curator", "result": {"accepted": [{"type": "ADD", "content": "c"}]}}]`)
	if len(got) != 1 || got[0] != "empty → unknown: 1 accepted, 0 rejected" {
		t.Errorf("curator: %q", got)
	}
	got = signal(`[{"event_id": "2", "seq": 2, "kind": "step", "name": "persist", "result": {"playbook_after": "0123456789ab"}}]`)
	if len(got) != 1 || got[0] != "empty → 01234567: 1 accepted, 0 rejected" {
		t.Errorf("persist: %q", got)
	}
	got = signal(`[{"event_id": "3", "seq": 3, "kind": "slash_command", "name": "/review"}]`)
	if len(got) != 1 || got[0] != "/review" {
		t.Errorf("command: %q", got)
	}
}
