package histories

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/ace/calls"
	"acescope/engine/kind"
	"acescope/engine/temporal/history"
	"acescope/engine/trace"
	"acescope/engine/trace/adapter"
	"acescope/sources/cluster"
)

// StepCalls is the record of the requests that a step of a run sent to its model.
type StepCalls struct {
	Step  string // phase, or name of the operation or activity
	Event int64  // that has the result or the failure of the step
	Log   ace.CallLog
	Model string // that the step was to use, "" if the history does not name it
	Usage *ace.Usage
	record
}

// record holds the beginnings of the first prompt and the last response of a step. It is empty until it is
// read.
type record struct {
	Prompt   string // of the first request
	Response string // the last one
	Err      string // why the record cannot be read
}

// Bounds of the records that a reader keeps, and of their texts in bytes.
const (
	maxRecords    = 64
	maxRecordText = 8 << 10
)

// readRecord reads the record of a step.
func readRecord(ctx context.Context, d cluster.Deps, log ace.CallLog) record {
	if d.Artifact == nil {
		return record{Err: noArtifacts}
	}
	list, err := calls.Read(ctx, d.Artifact, log)
	if err != nil || len(list) == 0 {
		return record{Err: cluster.PlainError(err)}
	}
	r := record{Prompt: ace.Cut(calls.Request(list[0].Request), maxRecordText)}
	switch last := list[len(list)-1]; {
	case last.Error != "":
		r.Err = last.Error
	case last.Response != nil:
		r.Response = ace.Cut(calls.Response(*last.Response), maxRecordText)
	}
	return r
}

// CallLogs returns the records that a history refers to, in the order of the history.
func CallLogs(events []*historypb.HistoryEvent) (all []StepCalls) {
	steps := map[int64]StepCalls{}
	for _, e := range events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			phase, _ := ace.StepOf(a.GetActivityType().GetName())
			operation, _ := history.OperationName(e)
			input, _ := history.Values(a.GetInput())
			steps[e.GetEventId()] = StepCalls{Step: cmp.Or(string(phase), operation,
				a.GetActivityType().GetName()),
				Model: gjson.GetBytes(input, "task.model").String()}
		}
		end, ok := history.EndingOf(e)
		if !ok {
			continue
		}
		data, _ := history.Values(end.Result)
		if f := end.Failure.GetApplicationFailureInfo(); f != nil {
			data, _ = history.Values(f.GetDetails())
		}
		log := findCallLog(gjson.ParseBytes(data), maxRefDepth)
		if log == nil {
			continue
		}
		step := steps[end.Started]
		step.Event, step.Log, step.Usage = e.GetEventId(), *log, log.Usage
		var result struct {
			Model string     `json:"model"`
			Usage *ace.Usage `json:"usage"`
		}
		if json.Unmarshal(data, &result) == nil {
			step.Model, step.Usage = cmp.Or(result.Model, step.Model), cmp.Or(result.Usage, step.Usage)
		}
		all = append(all, step)
	}
	return all
}

// callsAt returns the records that the last of the events refers to.
func callsAt(events []*historypb.HistoryEvent) []StepCalls {
	last := events[len(events)-1]
	end, ok := history.EndingOf(last)
	if !ok {
		return nil
	}
	started := slices.IndexFunc(events, func(e *historypb.HistoryEvent) bool {
		return e.GetEventId() == end.Started
	})
	if started < 0 {
		return CallLogs([]*historypb.HistoryEvent{last})
	}
	return CallLogs([]*historypb.HistoryEvent{events[started], last})
}

// findCallLog returns the first record of model calls that a JSON value refers to, or nil.
func findCallLog(value gjson.Result, depth int) (log *ace.CallLog) {
	if depth < 0 || !value.IsObject() && !value.IsArray() {
		return nil
	}
	if value.Get("media_type").String() == ace.CallsMediaType &&
		json.Unmarshal([]byte(value.Raw), &log) == nil {
		return log
	}
	value.ForEach(func(_, inner gjson.Result) bool {
		log = findCallLog(inner, depth-1)
		return log == nil
	})
	return log
}

// AgentCalls are the requests of an agent to models that the history of a run has, of whatever framework.
type AgentCalls struct {
	Agent string // or the name of the framework or the activity of an agent without a name
	Calls []*trace.Call
}

// RequestsOfAgents returns the requests of the agents of a run in order, by agent, and the number of older
// ones that are left out.
func RequestsOfAgents(events []*historypb.HistoryEvent) (agents []AgentCalls, dropped int) {
	var f adapter.Folder
	for _, e := range events {
		f.Apply(e)
	}
	t := f.Trace()
	for _, c := range t.Calls {
		if c.Operation != trace.Chat {
			continue
		}
		name := cmp.Or(c.Agent, c.Framework, c.Name)
		i := slices.IndexFunc(agents, func(a AgentCalls) bool { return a.Agent == name })
		if i < 0 {
			i, agents = len(agents), append(agents, AgentCalls{Agent: name})
		}
		agents[i].Calls = append(agents[i].Calls, c)
	}
	return agents, t.Dropped
}

// ModelCallOf returns a request of an agent with the messages since the answer before, and without its usage.
func ModelCallOf(c *trace.Call) ace.ModelCall {
	m := ace.ModelCall{Provider: c.Provider, StartedAt: cmp.Or(c.Started, c.Began),
		Request: ace.ModelRequest{Model: c.ModelName(), Messages: ModelMessages(c.Asked)}}
	if c.System != "" {
		m.Request.System = []ace.ModelText{{Text: c.System}}
	}
	if !c.Over.IsZero() && !m.StartedAt.IsZero() {
		m.DurationMS = float64(c.Over.Sub(m.StartedAt).Microseconds()) / 1000
	}
	switch {
	case c.Outcome == trace.Failed:
		m.Error = c.Error
	case c.Answer != nil:
		answer := modelMessage(*c.Answer)
		m.Response = &ace.ModelResponse{Model: c.Answered, FinishReason: c.Finish, Text: answer.Content,
			Calls: answer.Calls}
	}
	return m
}

// ModelMessages returns a conversation in the form of a record: messages of the user and the assistant in
// turn.
func ModelMessages(list []trace.Message) (all []ace.ModelMessage) {
	for _, m := range list {
		next := modelMessage(m)
		if n := len(all); n > 0 && all[n-1].Role == next.Role {
			last := &all[n-1]
			last.Content.Text = strings.TrimSpace(last.Content.Text + "\n\n" + next.Content.Text)
			last.Calls = append(last.Calls, next.Calls...)
			last.Results = append(last.Results, next.Results...)
			continue
		}
		all = append(all, next)
	}
	return all
}

func modelMessage(m trace.Message) ace.ModelMessage {
	next := ace.ModelMessage{Role: m.Role, Content: ace.ModelText{Text: m.Text}}
	if m.Role != "assistant" {
		next.Role = "user"
	}
	for _, c := range m.Calls {
		next.Calls = append(next.Calls, ace.ModelToolCall{ID: c.ID, Name: c.Name,
			Arguments: kind.Plain(c.Arguments)})
	}
	for _, r := range m.Results {
		next.Results = append(next.Results, ace.ModelToolResult{ID: cmp.Or(r.ID, r.Name), Failed: r.Failed,
			Content: ace.ModelText{Text: kind.Plain(r.Content)}})
	}
	return next
}
