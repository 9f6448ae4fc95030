package operation

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
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
	StepChanged        EventType = "step_changed"

	// eventNotes marks the marker of [Runner.Flush], whose notes become events.
	eventNotes EventType = "notes"
)

// EventTypes lists the types of operation events.
func EventTypes() []EventType {
	return []EventType{
		OperationStarted, OperationCompleted, OperationFailed,
		TimeAccessed, RandomGenerated, VariableSet, VersionDecision, StepChanged,
	}
}

// Event is an event of a run's operations. Only the fields of its type are set.
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

	Ended
	Value
	Decision
}

// Ended describes the end of an operation.
type Ended struct {
	Result     json.RawMessage `json:"result,omitempty"`
	ResultRef  *ace.Ref        `json:"result_ref,omitempty"`
	Error      *ace.Failure    `json:"error,omitempty"`
	Attempt    int32           `json:"attempt,omitempty"`
	ExecutedAt time.Time       `json:"executed_at,omitzero"`
	DurationMS *float64        `json:"duration_ms,omitempty"`
	Cached     bool            `json:"cached,omitempty"`
	Unread     bool            `json:"unread,omitempty"` // the parameters or the result are not JSON
}

// Value is a time, a random value or the value of a variable.
type Value struct {
	Key      string          `json:"key,omitempty"` // of a time or random value
	Time     time.Time       `json:"time,omitzero"`
	Seed     string          `json:"seed,omitempty"`
	Variable string          `json:"variable,omitempty"`
	Data     json.RawMessage `json:"value,omitempty"`
	Digest   string          `json:"value_sha256,omitempty"` // of a value too large for a note
	Bytes    int             `json:"value_bytes,omitempty"`
}

// Decision is the version of a change that a run follows, and the range of versions that its code supports. A
// patch of the SDKs on Core has no version.
type Decision struct {
	ChangeID   string            `json:"change_id,omitempty"`
	Version    *workflow.Version `json:"version,omitempty"`
	MinVersion *workflow.Version `json:"min_version,omitempty"`
	MaxVersion *workflow.Version `json:"max_version,omitempty"`
}

// Project reads a history, or the beginning of one, as operation events in the order of its
// events. It is a pure function.
//
// Other activities are operations too: the step is the activity type, and learning steps that
// call a model are agent responses. Side effects of other code are random values without a
// key. Failed attempts that were retried are not in a history: it has only the number of the
// last attempt.
func Project(events []*historypb.HistoryEvent) []Event {
	p := newProjection()
	for _, e := range events {
		p.apply(e)
	}
	return p.out
}

// Projector reads a history like [Project], one event at a time. It keeps open operations only.
type Projector struct{ p projection }

// NewProjector returns a projector that has read nothing.
func NewProjector() *Projector { return &Projector{newProjection()} }

// Apply returns the operation events of the next event of the history.
func (r *Projector) Apply(e *historypb.HistoryEvent) []Event {
	r.p.out = nil
	r.p.apply(e)
	for change := range r.p.versions {
		r.p.versions[change] = taken
	}
	return r.p.out
}

// taken is the index of a version decision that a [Projector] has returned.
const taken = -1

func newProjection() projection {
	return projection{open: map[int64]Event{}, attempts: map[int64]int32{}, versions: map[string]int{}}
}

type projection struct {
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
		switch m := history.MarkerOf(e.GetMarkerRecordedEventAttributes()); m.Name {
		case history.MarkerSideEffect, history.MarkerMutable:
			p.sideEffect(e, m)
		case history.MarkerVersion:
			p.version(e, m)
		case history.MarkerLocalActivity:
			p.local(e, m)
		}
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
	data, ok := history.Values(a.GetInput())
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
		// see [Operation.Activity]
	} else if step, branch, n, ok := history.ParseOperationID(out.OperationID); ok {
		out.Step = step
		out.Branch = branch
		out.Occurrence = n
	}
	p.open[e.GetEventId()] = out
	out.Type = OperationStarted
	out.Parameters = data
	out.NotesDropped = req.Dropped
	p.put(e, out)
}

func typeOf(activity string) Type {
	if t := Type(strings.TrimPrefix(activity, activityPrefix)); t.known() {
		return t
	}
	switch activity {
	case ace.ActivityGenerator, ace.ActivitySkills, ace.ActivityReflector, ace.ActivityCurator,
		ace.ActivityEvaluate:
		return AgentResponse
	case ace.ActivityPersist, ace.ActivityLoadTasks, ace.ActivityHead:
		return Action
	}
	return ExternalCall
}

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
	data, readable := history.Values(end.Result)
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
			Value: Value{Variable: out.Variable, Data: value},
		})
	}
}

func (p *projection) sideEffect(e *historypb.HistoryEvent, m history.Marker) {
	data, readable := history.Values(m.Result)
	var ours struct {
		drawn
		Notes []Note `json:"notes"`
	}
	if json.Unmarshal(data, &ours) == nil {
		switch ours.Event {
		case RandomGenerated:
			p.put(e, Event{Type: RandomGenerated, Value: Value{Key: ours.Key, Seed: ours.Seed,
				Data: ours.Value}})
			return
		case eventNotes:
			p.notes(e, ours.Notes)
			return
		}
	}
	p.put(e, Event{Type: RandomGenerated, Value: Value{Data: data}, Ended: Ended{Unread: !readable}})
}

// version reads the marker of a version decision. The range that the code supports is in a note
// of the next operation.
func (p *projection) version(e *historypb.HistoryEvent, m history.Marker) {
	var v *workflow.Version
	if m.Unread || m.Result != nil && json.Unmarshal(history.JSON(m.Result), &v) != nil {
		p.put(e, Event{Type: VersionDecision, Ended: Ended{Unread: true}})
		return
	}
	p.versions[m.Change] = len(p.out)
	p.put(e, Event{Type: VersionDecision, Decision: Decision{ChangeID: m.Change, Version: v}})
}

// NotesOf returns the notes that an event records.
func NotesOf(e *historypb.HistoryEvent) []Note {
	var r struct {
		Event EventType `json:"event"`
		Notes []Note    `json:"notes"`
	}
	scheduled := e.GetActivityTaskScheduledEventAttributes()
	if strings.HasPrefix(scheduled.GetActivityType().GetName(), activityPrefix) {
		if data, ok := history.Values(scheduled.GetInput()); ok && json.Unmarshal(data, &r) == nil {
			return r.Notes
		}
	}
	if a := e.GetMarkerRecordedEventAttributes(); a != nil {
		if data, ok := history.Values(history.MarkerOf(a).Result); ok && json.Unmarshal(data, &r) == nil &&
			r.Event == eventNotes {
			return r.Notes
		}
	}
	return nil
}

func (p *projection) notes(e *historypb.HistoryEvent, notes []Note) {
	for _, n := range notes {
		switch n.Event {
		case TimeAccessed:
			p.put(e, Event{Type: TimeAccessed, Value: Value{Key: n.Key, Time: n.Time}})
		case StepChanged:
			p.put(e, Event{Type: StepChanged, Value: Value{Key: n.Key, Time: n.Time, Data: n.Value}})
		case VariableSet:
			value := Value{Variable: n.Key, Data: n.Value, Digest: n.Digest, Bytes: n.Size}
			p.put(e, Event{Type: VariableSet, Value: value})
		case VersionDecision:
			if i, ok := p.versions[n.Key]; ok {
				if i != taken {
					p.out[i].MinVersion, p.out[i].MaxVersion = n.Min, n.Max
				}
				continue
			}
			// The version has no marker: the run was here before the change.
			decision := Decision{ChangeID: n.Key, Version: n.Version, MinVersion: n.Min, MaxVersion: n.Max}
			p.put(e, Event{Type: VersionDecision, Decision: decision})
		}
	}
}

func (p *projection) local(e *historypb.HistoryEvent, m history.Marker) {
	end, ok := history.EndingOf(e)
	if !ok || m.Unread && m.Failure == nil { // the next attempt follows, or the operation is unknown
		return
	}
	kind := cmp.Or(m.Local.ActivityType, m.Name)
	p.open[end.Started] = Event{OperationID: m.Local.ActivityID, OperationType: typeOf(kind), Activity: kind,
		Step: kind}
	p.attempts[end.Started] = m.Local.Attempt
	p.ended(e, end)
}
