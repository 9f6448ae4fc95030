package histories

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strconv"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/history"
	"acescope/sources/runs"
)

// activityLabel returns the type of an activity, or a label that distinguishes it from others of its type.
func activityLabel(activity string, input *commonpb.Payloads) string {
	if label, ok := session.ActivityLabel(activity, input); ok {
		return label
	}
	if label, ok := run.ActivityLabel(activity, input); ok {
		return label
	}
	if activity != ace.ActivityAgentCLI {
		return activity
	}
	var in ace.AgentCall
	_ = json.Unmarshal(history.JSON(input), &in) // an unreadable input has no label
	if in.Task != nil {
		return activity + " task " + strconv.Itoa(in.Task.Index+1)
	}
	if name := cmp.Or(in.ActivityName, in.SessionID); name != "" {
		return activity + " " + name
	}
	return activity
}

// agentResult returns the result of a call of an agent, or nil for other data.
func agentResult(p *commonpb.Payloads) *ace.AgentResult {
	data := history.JSON(p)
	var r ace.AgentResult
	if !bytes.Contains(data, []byte(`"exit_class"`)) || json.Unmarshal(data, &r) != nil || r.ExitClass == "" {
		return nil
	}
	return &r
}

// resultLabel returns the label of a completed call of an agent with the id of its task, or "".
func resultLabel(p *commonpb.Payloads) string {
	if r := agentResult(p); r != nil && r.TaskID != "" {
		return ace.ActivityAgentCLI + " " + r.TaskID
	}
	return ""
}

// AgentResultOf returns the result of the call of an agent that ends with an event, or nil.
func AgentResultOf(e *historypb.HistoryEvent) *ace.AgentResult {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		return agentResult(e.GetActivityTaskCompletedEventAttributes().GetResult())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		f := e.GetActivityTaskFailedEventAttributes().GetFailure()
		return agentResult(f.GetApplicationFailureInfo().GetDetails())
	}
	return nil
}

// agentUsage returns the usage of a call of an agent that ends with an event.
func agentUsage(e *historypb.HistoryEvent) (u ace.Usage) {
	if r := AgentResultOf(e); r != nil {
		u = r.Usage
	}
	return u
}

// maxUsageEvents bounds the events that [AddUsage] reads of a run.
const maxUsageEvents = 2000

// LacksUsage reports whether the usage of a run is only in its history: acescope's workflows and those that
// set a summary have it in the memo.
func LacksUsage(r runs.Run) bool { return r.Summary == nil && runs.TypeOf(r.Type) == runs.OtherType }

// AddUsage reads the usage of the agents that a run called from its history, and sets the run's summary if
// there is any. See [LacksUsage].
func AddUsage(ctx context.Context, c client.Client, r *runs.Run) error {
	var u ace.Usage
	iter := c.GetWorkflowHistory(ctx, r.WorkflowID, r.RunID, false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for n := 0; n < maxUsageEvents && iter.HasNext(); n++ {
		e, err := iter.Next()
		if err != nil {
			return err
		}
		u = u.Add(agentUsage(e))
	}
	if u.Unpriced = u.Unpriced || u != (ace.Usage{}) && iter.HasNext(); u != (ace.Usage{}) {
		r.Summary = &ace.Summary{Usage: u}
	}
	return nil
}
