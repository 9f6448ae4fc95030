package operation

import (
	"encoding/json"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// EventType is the type of an operation event.
type EventType string

// Types of operation events.
const (
	OperationStarted   EventType = "operation_started"
	OperationCompleted EventType = "operation_completed"
	OperationFailed    EventType = "operation_failed"
	TimeAccessed       EventType = "time_accessed"
	RandomGenerated    EventType = "random_generated"
	VariableSet        EventType = "variable_set"
	VersionDecision    EventType = "version_decision"

	// eventNotes marks the marker of [Runner.Flush], whose notes become events.
	eventNotes EventType = "notes"
)

// EventTypes lists the types of operation events.
func EventTypes() []EventType {
	return []EventType{
		OperationStarted, OperationCompleted, OperationFailed,
		TimeAccessed, RandomGenerated, VariableSet, VersionDecision,
	}
}

// Event is an event of a run's operations.
type Event struct {
	Type    EventType `json:"type"`
	EventID int64     `json:"event_id"` // of the history event
	At      time.Time `json:"at"`       // by the server's clock

	OperationID   string          `json:"operation_id,omitempty"`
	OperationType Type            `json:"operation_type,omitempty"`
	Activity      string          `json:"activity,omitempty"` // Temporal's activity type
	Step          string          `json:"step,omitempty"`
	Branch        string          `json:"branch,omitempty"`
	Occurrence    int             `json:"occurrence,omitempty"`
	Parameters    json.RawMessage `json:"parameters,omitempty"`
	NotesDropped  int             `json:"notes_dropped,omitempty"`

	Result     json.RawMessage `json:"result,omitempty"`
	ResultRef  *ace.Ref        `json:"result_ref,omitempty"`
	Error      *ace.Failure    `json:"error,omitempty"`
	Attempt    int32           `json:"attempt,omitempty"`
	ExecutedAt time.Time       `json:"executed_at,omitzero"`
	DurationMS *float64        `json:"duration_ms,omitempty"`
	Cached     bool            `json:"cached,omitempty"`
	Unread     bool            `json:"unread,omitempty"` // the parameters or the result are not JSON

	Key         string          `json:"key,omitempty"` // of a time or random value
	Time        time.Time       `json:"time,omitzero"`
	Seed        string          `json:"seed,omitempty"`
	Variable    string          `json:"variable,omitempty"`
	Value       json.RawMessage `json:"value,omitempty"`
	ValueDigest string          `json:"value_sha256,omitempty"` // of a value too large for a note
	ValueBytes  int             `json:"value_bytes,omitempty"`

	ChangeID   string            `json:"change_id,omitempty"`
	Version    *workflow.Version `json:"version,omitempty"`
	MinVersion *workflow.Version `json:"min_version,omitempty"`
	MaxVersion *workflow.Version `json:"max_version,omitempty"`
}

// Names of the markers that the Go SDK writes, and of their details.
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

// Project reads a history, or the beginning of one, as operation events in the order of its
// events. It is a pure function. It decodes payloads with dc, or Temporal's default if nil.
//
// Other activities are operations too: the step is the activity type, and learning steps that
// call a model are agent responses. Side effects of other code are random values without a
// key. Of failed and retried attempts a history has only the number of the last one.
func Project(events []*historypb.HistoryEvent, dc converter.DataConverter) []Event {
	p := projection{dc: dc, open: map[int64]Event{}, attempts: map[int64]int32{}, versions: map[string]int{}}
	for _, e := range events {
		p.apply(e)
	}
	return p.out
}

type projection struct {
	dc       converter.DataConverter
	open     map[int64]Event // open operations, by scheduled event ID
	attempts map[int64]int32
	versions map[string]int // index in out, by change
	out      []Event
}

func (p *projection) apply(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		p.scheduled(e)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		a := e.GetActivityTaskStartedEventAttributes()
		p.attempts[a.GetScheduledEventId()] = a.GetAttempt()
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		p.marker(e, e.GetMarkerRecordedEventAttributes())
	default:
		if end, ok := history.EndingOf(e); ok {
			p.ended(e, end)
		}
	}
}

func (p *projection) put(e *historypb.HistoryEvent, out Event) {
	out.EventID = e.GetEventId()
	out.At = e.GetEventTime().AsTime()
	p.out = append(p.out, out)
}

func (p *projection) scheduled(e *historypb.HistoryEvent) {
	a := e.GetActivityTaskScheduledEventAttributes()
	out := Event{OperationID: a.GetActivityId(), Activity: a.GetActivityType().GetName()}
	out.Step = out.Activity
	out.OperationType = typeOf(out.Activity)
	data, ok := p.json(a.GetInput())
	out.Unread = !ok
	var req Request
	if strings.HasPrefix(out.Activity, activityPrefix) && json.Unmarshal(data, &req) == nil &&
		req.OperationID == out.OperationID {
		out.OperationType = req.Type
		out.Step = req.Step
		out.Branch = req.Branch
		out.Occurrence = req.Occurrence
		out.Variable = req.Variable
		data = req.Parameters
		p.notes(e, req.Notes)
	}
	p.open[e.GetEventId()] = out
	out.Type = OperationStarted
	out.Parameters = data
	out.NotesDropped = req.Dropped
	p.put(e, out)
}

// typeOf returns the type of operation of an activity.
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

// ended reads the end of an operation.
func (p *projection) ended(e *historypb.HistoryEvent, end history.Ending) {
	out, ok := p.open[end.Started]
	if !ok {
		return
	}
	out.Attempt = p.attempts[end.Started]
	out.Unread = false
	delete(p.open, end.Started)
	delete(p.attempts, end.Started)
	if end.Status != history.EndCompleted {
		failure := end.Reason()
		out.Type, out.Error = OperationFailed, &failure
		p.put(e, out)
		return
	}
	out.Type = OperationCompleted
	data, readable := p.json(end.Result)
	out.Result, out.Unread = data, !readable
	var r Result
	if out.Occurrence > 0 && json.Unmarshal(data, &r) == nil && r.OperationID == out.OperationID {
		out.Result = r.Value
		out.ResultRef = r.Ref
		out.ExecutedAt = r.ExecutedAt
		out.DurationMS = &r.DurationMS
		out.Cached = r.Cached
	}
	p.put(e, out)
	if out.Variable != "" {
		value := out.Result
		if out.ResultRef != nil {
			value, _ = json.Marshal(out.ResultRef)
		}
		p.put(e, Event{
			Type: VariableSet, OperationID: out.OperationID, Step: out.Step, Branch: out.Branch,
			Variable: out.Variable, Value: value,
		})
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

// sideEffect reads the marker of a random value or of [Runner.Flush].
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

// version reads the marker of a version decision. The range that the code supports is in a note
// of the next operation.
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
			// No marker: the run was here before the change.
			p.put(e, Event{Type: VersionDecision, ChangeID: n.Key, Version: n.Version, MinVersion: n.Min, MaxVersion: n.Max})
		}
	}
}

// local reads the marker of a local activity.
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

// payloadJSON returns the JSON of a payload, or nil.
func (p *projection) payloadJSON(payload *commonpb.Payload) []byte {
	if p.dc == nil {
		return history.PayloadJSON(payload)
	}
	var raw converter.RawValue
	if err := p.dc.FromPayload(payload, &raw); err != nil {
		return nil
	}
	return history.PayloadJSON(raw.Payload())
}

// json returns the JSON of one payload, or a list of several. It returns false if one of them is
// not JSON.
func (p *projection) json(all *commonpb.Payloads) (json.RawMessage, bool) {
	var list []json.RawMessage
	for _, payload := range all.GetPayloads() {
		if string(payload.GetMetadata()[converter.MetadataEncoding]) == converter.MetadataEncodingNil {
			list = append(list, json.RawMessage("null"))
			continue
		}
		data := p.payloadJSON(payload)
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
