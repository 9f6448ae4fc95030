package histories

import (
	"context"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/sources/historytest"
	"acescope/sources/runs"
)

// TestAgentCalls checks that the calls of agents are told apart by their tasks, and that their usage is that
// of the run.
func TestAgentCalls(t *testing.T) {
	payloads := func(json string) *commonpb.Payloads {
		return &commonpb.Payloads{Payloads: []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(json)}}}
	}
	scheduled := func(id int64, input string) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{EventId: id, EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
			Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
				ActivityId: "5", ActivityType: &commonpb.ActivityType{Name: ace.ActivityAgentCLI},
				Input: payloads(input)}}}
	}
	var f activityFolder
	for id, want := range map[int64]string{1: "execute_agent_cli task 3", 2: "execute_agent_cli mend",
		3: "execute_agent_cli"} {
		input := map[int64]string{1: `{"task": {"breakdown": {}, "index": 2}}`,
			2: `{"activity_name": "mend"}`, 3: `{}`}[id]
		if got := rowOf(scheduled(id, input)).Title; got != want {
			t.Errorf("%s: %q, want %q", input, got, want)
		}
		if id == 1 {
			f.apply(scheduled(id, input))
		}
	}
	completed := &historypb.HistoryEvent{EventId: 7, EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
		Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{
			ScheduledEventId: 1, Result: payloads(
				`{"exit_class": "ok", "task_id": "login-form", "usage": {"output_tokens": 7, "cost_usd": 0.25}}`)}}}
	f.apply(completed)
	f.apply(&historypb.HistoryEvent{EventId: 9, EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED,
		Attributes: &historypb.HistoryEvent_ActivityTaskFailedEventAttributes{ActivityTaskFailedEventAttributes: &historypb.ActivityTaskFailedEventAttributes{
			ScheduledEventId: 2, Failure: &failurepb.Failure{FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{
				Details: payloads(`{"exit_class": "overloaded", "usage": {"output_tokens": 1, "cost_usd": 0.5}}`)}}}}}})
	if got := rowOf(completed).Title; got != "execute_agent_cli login-form" || f.list[0].Name != got {
		t.Errorf("completed: %q, %q", got, f.list[0].Name)
	}
	if f.used != (ace.Usage{OutputTokens: 8, CostUSD: 0.75}) {
		t.Errorf("usage %+v", f.used)
	}
}

// historyClient serves one history.
type historyClient struct {
	client.Client
	events []*historypb.HistoryEvent
}

func (c *historyClient) GetWorkflowHistory(context.Context, string, string, bool,
	enumspb.HistoryEventFilterType,
) client.HistoryEventIterator {
	return c
}

func (c *historyClient) HasNext() bool { return len(c.events) > 0 }

func (c *historyClient) Next() (*historypb.HistoryEvent, error) {
	e := c.events[0]
	c.events = c.events[1:]
	return e, nil
}

// TestUsageOfOwnWorkflow checks that the cost of a user's own workflow is that of the agents it called, and
// that it is read only where no memo has it.
func TestUsageOfOwnWorkflow(t *testing.T) {
	b := historytest.New("OrderWorkflow", nil)
	b.Activity(0, time.Second, ace.ActivityAgentCLI, nil,
		map[string]any{"exit_class": "ok", "usage": ace.Usage{OutputTokens: 7, CostUSD: 0.25}})
	b.Activity(0, time.Second, "charge_card", nil, map[string]any{"paid": true})
	r := runs.Run{Type: "OrderWorkflow"}
	if !LacksTrace(r) || LacksTrace(runs.Run{Type: ace.TaskWorkflow}) {
		t.Error("which runs lack their usage")
	}
	if err := AddTrace(t.Context(), &historyClient{events: b.Events}, &r); err != nil || r.Summary == nil ||
		r.Summary.Usage.Cost() != "$0.2500" {
		t.Errorf("%+v, %v", r.Summary, err)
	}
	none := runs.Run{Type: "OrderWorkflow"}
	if err := AddTrace(t.Context(), &historyClient{events: b.Events[:1]}, &none); err != nil ||
		none.Summary != nil {
		t.Errorf("without agents: %+v, %v", none.Summary, err)
	}
}

// The answer of a run is its result, not that of an activity which has just ended in an open run.
func TestTraceOfOpenRun(t *testing.T) {
	b := historytest.New("Desk", nil)
	b.Activity(0, time.Second, "CallChatModel", map[string]any{"messages": []string{"Hi"}},
		map[string]any{"metadata": map[string]any{"usage": map[string]int{"prompt_tokens": 5,
			"completion_tokens": 7}}})
	r := runs.Run{Type: "Desk"}
	if err := AddTrace(t.Context(), &historyClient{events: b.Events}, &r); err != nil || r.Trace == nil ||
		r.Trace.Sum.Tokens() != 12 || r.Summary.Subject != "Hi" || r.Summary.Answer != "" {
		t.Errorf("%+v, %+v, %v", r.Trace, r.Summary, err)
	}
}
