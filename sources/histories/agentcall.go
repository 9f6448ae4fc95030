package histories

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/history"
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
