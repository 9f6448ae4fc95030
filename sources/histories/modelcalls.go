package histories

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// StepCalls is the record of the requests that a step of a run sent to its model.
type StepCalls struct {
	Step  string // phase, or name of the operation or activity
	Event int64  // that has the result or the failure of the step
	Log   ace.CallLog
	Model string // that the step was to use, "" if the history does not name it
	Usage *ace.Usage
}

// CallLogs returns the records that a history refers to, in the order of the history.
func CallLogs(events []*historypb.HistoryEvent) (all []StepCalls) {
	steps := map[int64]StepCalls{}
	for _, e := range events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			phase, _ := ace.StepOf(a.GetActivityType().GetName())
			operation, _ := history.OperationName(e)
			input, _ := history.Values(a.GetInput())
			steps[e.GetEventId()] = StepCalls{Step: cmp.Or(string(phase), operation, a.GetActivityType().GetName()),
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
	started := slices.IndexFunc(events, func(e *historypb.HistoryEvent) bool { return e.GetEventId() == end.Started })
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
	if value.Get("media_type").String() == ace.CallsMediaType && json.Unmarshal([]byte(value.Raw), &log) == nil {
		return log
	}
	value.ForEach(func(_, inner gjson.Result) bool {
		log = findCallLog(inner, depth-1)
		return log == nil
	})
	return log
}
