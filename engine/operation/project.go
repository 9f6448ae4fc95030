package operation

import (
	"encoding/json"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/history"
)

// Names of the markers that the Go SDK writes, and of their parts.
const (
	markerSideEffect    = "SideEffect"
	markerVersion       = "Version"
	markerMutable       = "MutableSideEffect"
	markerLocalActivity = "LocalActivity"

	detailData    = "data"
	detailResult  = "result"
	detailChange  = "change-id"
	detailVersion = "version"
)

// Project reads a history, or the begin of one, as operation events, in the order of its
// events. It is a pure function. Payloads are decoded by dc; nil is Temporal's default.
//
// An activity that was not begun through this package is an operation too: its step is
// its activity type, and the learning steps that call a model count as agent responses.
// A side effect of other code is a random value without a key. Of attempts that failed
// and were tried again a history knows the last one's number only.
func Project(events []*historypb.HistoryEvent, dc converter.DataConverter) []Event {
	p := projection{dc: dc, open: map[int64]Event{}, attempts: map[int64]int32{}, versions: map[string]int{}}
	for _, e := range events {
		p.apply(e)
	}
	return p.out
}

type projection struct {
	dc       converter.DataConverter
	open     map[int64]Event // operations that have begun, by the event that scheduled them
	attempts map[int64]int32
	versions map[string]int // where the decision of a change is in out
	out      []Event
}

func (p *projection) apply(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		p.scheduled(e)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		a := e.GetActivityTaskStartedEventAttributes()
		p.attempts[a.GetScheduledEventId()] = a.GetAttempt()
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := e.GetActivityTaskCompletedEventAttributes()
		p.completed(e, a.GetScheduledEventId(), a.GetResult())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		a := e.GetActivityTaskFailedEventAttributes()
		p.failed(e, a.GetScheduledEventId(), history.FailureOf(a.GetFailure()))
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		a := e.GetActivityTaskTimedOutEventAttributes()
		p.failed(e, a.GetScheduledEventId(), history.FailureOf(a.GetFailure()))
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		p.failed(e, e.GetActivityTaskCanceledEventAttributes().GetScheduledEventId(), ace.Failure{Kind: ace.Cancelled, Message: "cancelled"})
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		p.marker(e, e.GetMarkerRecordedEventAttributes())
	}
}

func (p *projection) put(e *historypb.HistoryEvent, out Event) {
	out.EventID, out.At = e.GetEventId(), e.GetEventTime().AsTime()
	p.out = append(p.out, out)
}

func (p *projection) scheduled(e *historypb.HistoryEvent) {
	a := e.GetActivityTaskScheduledEventAttributes()
	out := Event{OperationID: a.GetActivityId(), Activity: a.GetActivityType().GetName()}
	out.Step, out.OperationType = out.Activity, typeOf(out.Activity)
	data, ok := p.json(a.GetInput())
	out.Unread = !ok
	var req Request
	if strings.HasPrefix(out.Activity, activityPrefix) && json.Unmarshal(data, &req) == nil && req.OperationID == out.OperationID {
		out.OperationType, out.Step, out.Branch, out.Occurrence = req.Type, req.Step, req.Branch, req.Occurrence
		out.Variable, data = req.Variable, req.Parameters
		p.notes(e, req.Notes)
	}
	p.open[e.GetEventId()] = out
	out.Type, out.Parameters, out.NotesDropped = OperationStarted, data, req.Dropped
	p.put(e, out)
}

// typeOf is the type of operation that an activity of other code is.
func typeOf(activity string) Type {
	if t := Type(strings.TrimPrefix(activity, activityPrefix)); t.known() {
		return t
	}
	switch activity {
	case ace.ActivityGenerator, ace.ActivitySkills, ace.ActivityReflector, ace.ActivityCurator, ace.ActivityEvaluate:
		return AgentResponse
	case ace.ActivityPersist, ace.ActivityLoadTasks, ace.ActivityHead:
		return Action
	}
	return ExternalCall
}

// closing takes an operation that has ended from the open ones.
func (p *projection) closing(scheduled int64, kind EventType) (Event, bool) {
	out, ok := p.open[scheduled]
	out.Type, out.Attempt, out.Unread = kind, p.attempts[scheduled], false
	delete(p.open, scheduled)
	delete(p.attempts, scheduled)
	return out, ok
}

func (p *projection) completed(e *historypb.HistoryEvent, scheduled int64, result *commonpb.Payloads) {
	out, ok := p.closing(scheduled, OperationCompleted)
	if !ok {
		return
	}
	data, readable := p.json(result)
	out.Result, out.Unread = data, !readable
	var r Result
	if out.Occurrence > 0 && json.Unmarshal(data, &r) == nil && r.OperationID == out.OperationID {
		out.Result, out.ResultRef, out.ExecutedAt, out.DurationMS, out.Cached = r.Value, r.Ref, r.ExecutedAt, &r.DurationMS, r.Cached
	}
	p.put(e, out)
	if out.Variable != "" {
		value := out.Result
		if out.ResultRef != nil {
			value, _ = json.Marshal(out.ResultRef)
		}
		p.put(e, Event{Type: VariableSet, OperationID: out.OperationID, Step: out.Step, Branch: out.Branch, Variable: out.Variable, Value: value})
	}
}

func (p *projection) failed(e *historypb.HistoryEvent, scheduled int64, f ace.Failure) {
	if out, ok := p.closing(scheduled, OperationFailed); ok {
		out.Error = &f
		p.put(e, out)
	}
}

func (p *projection) marker(e *historypb.HistoryEvent, a *historypb.MarkerRecordedEventAttributes) {
	data, readable := p.json(a.GetDetails()[detailData])
	switch a.GetMarkerName() {
	case markerSideEffect, markerMutable:
		p.sideEffect(e, data, readable)
	case markerVersion:
		p.version(e, a)
	case markerLocalActivity:
		p.local(e, a, data)
	}
}

// sideEffect is a random value, or what Flush left.
func (p *projection) sideEffect(e *historypb.HistoryEvent, data []byte, readable bool) {
	var ours struct {
		drawn
		Notes []Note `json:"notes"`
	}
	if json.Unmarshal(data, &ours) == nil {
		switch ours.Event {
		case RandomGenerated:
			p.put(e, Event{Type: RandomGenerated, Key: ours.Key, Seed: ours.Seed, Value: ours.Value})
			return
		case eventNotes:
			p.notes(e, ours.Notes)
			return
		}
	}
	p.put(e, Event{Type: RandomGenerated, Value: data, Unread: !readable})
}

// version is the marker of a version decision. The range that the code offered is in a
// note, which comes with the next operation.
func (p *projection) version(e *historypb.HistoryEvent, a *historypb.MarkerRecordedEventAttributes) {
	var change string
	var v workflow.Version
	id, _ := p.json(a.GetDetails()[detailChange])
	number, _ := p.json(a.GetDetails()[detailVersion])
	if json.Unmarshal(id, &change) != nil || json.Unmarshal(number, &v) != nil {
		p.put(e, Event{Type: VersionDecision, Unread: true})
		return
	}
	p.versions[change] = len(p.out)
	p.put(e, Event{Type: VersionDecision, ChangeID: change, Version: &v})
}

func (p *projection) notes(e *historypb.HistoryEvent, notes []Note) {
	for _, n := range notes {
		switch n.Event {
		case TimeAccessed:
			p.put(e, Event{Type: TimeAccessed, Key: n.Key, Time: n.Time})
		case VariableSet:
			p.put(e, Event{Type: VariableSet, Variable: n.Key, Value: n.Value, ValueDigest: n.Digest, ValueBytes: n.Size})
		case VersionDecision:
			if i, ok := p.versions[n.Key]; ok {
				p.out[i].MinVersion, p.out[i].MaxVersion = n.Min, n.Max
				continue
			}
			// No marker: the run came here before the change was made.
			p.put(e, Event{Type: VersionDecision, ChangeID: n.Key, Version: n.Version, MinVersion: n.Min, MaxVersion: n.Max})
		}
	}
}

// local is an activity that ran in the workflow's worker and left its end only.
func (p *projection) local(e *historypb.HistoryEvent, a *historypb.MarkerRecordedEventAttributes, data []byte) {
	var about struct {
		ActivityID, ActivityType string
		Attempt                  int32
	}
	if json.Unmarshal(data, &about) != nil {
		return
	}
	out := Event{Type: OperationCompleted, OperationID: about.ActivityID, Activity: about.ActivityType, Step: about.ActivityType,
		OperationType: typeOf(about.ActivityType), Attempt: about.Attempt}
	if a.GetFailure() != nil {
		f := history.FailureOf(a.GetFailure())
		out.Type, out.Error = OperationFailed, &f
	} else {
		result, readable := p.json(a.GetDetails()[detailResult])
		out.Result, out.Unread = result, !readable
	}
	p.put(e, out)
}

// plain is the JSON of a payload, nil where it is not JSON.
func (p *projection) plain(one *commonpb.Payload) []byte {
	if p.dc == nil {
		return history.JSONOf(one)
	}
	var raw converter.RawValue
	if err := p.dc.FromPayload(one, &raw); err != nil {
		return nil
	}
	return history.JSONOf(raw.Payload())
}

// json is the JSON of the payloads: of one its value, of several a list. It is false where
// there is something that is not JSON.
func (p *projection) json(all *commonpb.Payloads) (json.RawMessage, bool) {
	var list []json.RawMessage
	for _, one := range all.GetPayloads() {
		if string(one.GetMetadata()[converter.MetadataEncoding]) == converter.MetadataEncodingNil {
			list = append(list, json.RawMessage("null"))
			continue
		}
		data := p.plain(one)
		if !json.Valid(data) {
			return nil, false
		}
		list = append(list, data)
	}
	switch len(list) {
	case 0:
		return nil, true
	case 1:
		return list[0], true
	}
	data, err := json.Marshal(list)
	return data, err == nil
}
