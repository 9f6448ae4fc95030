package histories

import (
	"reflect"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"acescope/engine/ace"
)

// The record of a step has its model and its usage, of a failed step those of the failure.
func TestCallsAt(t *testing.T) {
	payloads := func(v any) *commonpb.Payloads {
		p, err := converter.GetDefaultDataConverter().ToPayloads(v)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	log := &ace.CallLog{Ref: ace.Ref{SHA256: strings.Repeat("ab", 32), MediaType: ace.CallsMediaType},
		Requests: 2}
	failed := *log
	failed.Usage = &ace.Usage{InputTokens: 7}
	scheduled := func(id int64, activity, model string) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{EventId: id, EventType: 10,
			Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
				ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
					ActivityType: &commonpb.ActivityType{Name: activity},
					Input:        payloads(ace.SkillsInput{Task: ace.TaskContext{Model: model}})}}}
	}
	events := []*historypb.HistoryEvent{
		scheduled(5, ace.ActivityGenerator, "m-1"), scheduled(6, ace.ActivityCurator, "m-2"),
		{EventId: 7, EventType: 12, Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
			ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: 5,
				Result: payloads(ace.GeneratorResult{
					StepReport: ace.StepReport{Usage: &ace.Usage{InputTokens: 9}, Calls: log}})}}},
		{EventId: 8, EventType: 13, Attributes: &historypb.HistoryEvent_ActivityTaskFailedEventAttributes{
			ActivityTaskFailedEventAttributes: &historypb.ActivityTaskFailedEventAttributes{ScheduledEventId: 6,
				Failure: &failurepb.Failure{FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
					ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Details: payloads(failed)}}}}}},
	}
	if got := callsAt(events[:2]); got != nil {
		t.Errorf("at the start of a step: %+v", got)
	}
	for n, want := range map[int]StepCalls{
		3: {Step: "generator", Event: 7, Model: "m-1", Usage: &ace.Usage{InputTokens: 9}, Log: *log},
		4: {Step: "curator", Event: 8, Model: "m-2", Usage: failed.Usage, Log: failed},
	} {
		if got := callsAt(events[:n]); !reflect.DeepEqual(got, []StepCalls{want}) {
			t.Errorf("event %d: got %+v, want %+v", want.Event, got, want)
		}
	}
}
