// Package replaytest provides histories for tests: it reads recorded histories, and builds histories event by
// event, as a server would.
package replaytest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/ace"
)

// Recorded returns a history of engine/workflows/testdata by its name without extension.
func Recorded(tb testing.TB, name string) []*historypb.HistoryEvent {
	tb.Helper()
	_, file, _, _ := runtime.Caller(0)
	f, err := os.Open(filepath.Join(filepath.Dir(file), "../../../workflows/testdata", name+".json"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return h.Events
}

// RecordedNames lists recorded histories of tasks and of an experiment.
var RecordedNames = []string{"right", "wrong", "retried", "failed", "live", "cancelled", "experiment"}

// Noon is the time of the first event. Each further event is a second later.
var Noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// History is a history under construction.
type History struct {
	Events []*historypb.HistoryEvent
}

// Begin returns the history of a run of workflow type kind that has only its start event.
func Begin(kind string) *History {
	h := &History{}
	h.Append(&historypb.WorkflowExecutionStartedEventAttributes{
		WorkflowType:           &commonpb.WorkflowType{Name: kind},
		TaskQueue:              &taskqueuepb.TaskQueue{Name: "q"},
		WorkflowId:             "w-1",
		OriginalExecutionRunId: "r-1",
		Attempt:                1,
	})
	return h
}

// Add appends an event, sets its ID and time, and returns the ID.
func (h *History) Add(e *historypb.HistoryEvent) int64 {
	e.EventId = int64(len(h.Events) + 1)
	e.EventTime = timestamppb.New(Noon.Add(time.Duration(len(h.Events)) * time.Second))
	h.Events = append(h.Events, e)
	return e.EventId
}

// Append adds an event with the attributes, which determine its type, and returns its ID.
func (h *History) Append(attributes proto.Message) int64 { return h.Add(EventOf(attributes)) }

// EventOf returns an event with the attributes, which determine its type.
func EventOf(attributes proto.Message) *historypb.HistoryEvent {
	e := &historypb.HistoryEvent{}
	m := attributes.ProtoReflect()
	fields := e.ProtoReflect().Descriptor().Oneofs().ByName("attributes").Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.Message().FullName() != m.Descriptor().FullName() {
			continue
		}
		e.ProtoReflect().Set(f, protoreflect.ValueOfMessage(m))
		name := strings.ToUpper(strings.TrimSuffix(string(f.Name()), "_event_attributes"))
		e.EventType = enumspb.EventType(enumspb.EventType_value["EVENT_TYPE_"+name])
	}
	return e
}

// Task adds a completed workflow task and returns the ID of its last event.
func (h *History) Task() int64 {
	at := h.Append(&historypb.WorkflowTaskScheduledEventAttributes{Attempt: 1})
	h.Append(&historypb.WorkflowTaskStartedEventAttributes{ScheduledEventId: at})
	return h.Append(&historypb.WorkflowTaskCompletedEventAttributes{
		ScheduledEventId: at, StartedEventId: at + 1, BinaryChecksum: "old-build",
	})
}

// Activity adds an activity that the task schedules and returns its event ID.
func (h *History) Activity(task int64, name string, args ...any) int64 {
	return h.Append(&historypb.ActivityTaskScheduledEventAttributes{
		ActivityId:                   fmt.Sprint(len(h.Events) + 1),
		ActivityType:                 &commonpb.ActivityType{Name: name},
		WorkflowTaskCompletedEventId: task,
		TaskQueue:                    &taskqueuepb.TaskQueue{Name: "q"},
		Input:                        Encoded(args...),
	})
}

// Done completes an activity with a result.
func (h *History) Done(scheduled int64, result any) {
	at := h.Append(&historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: scheduled, Attempt: 1})
	h.Append(&historypb.ActivityTaskCompletedEventAttributes{
		ScheduledEventId: scheduled, StartedEventId: at, Result: Encoded(result),
	})
}

// Timer adds a timer that the task starts and returns its event ID.
func (h *History) Timer(task int64, d time.Duration) int64 {
	return h.Append(&historypb.TimerStartedEventAttributes{
		TimerId:                      fmt.Sprint(len(h.Events) + 1),
		StartToFireTimeout:           durationpb.New(d),
		WorkflowTaskCompletedEventId: task,
	})
}

// Fired adds the firing of a timer.
func (h *History) Fired(started int64) {
	h.Append(&historypb.TimerFiredEventAttributes{TimerId: fmt.Sprint(started), StartedEventId: started})
}

// Child adds a child workflow that the task starts and returns its event ID.
func (h *History) Child(task int64, kind, id string) int64 {
	return h.Append(&historypb.StartChildWorkflowExecutionInitiatedEventAttributes{
		WorkflowId: id, WorkflowType: &commonpb.WorkflowType{Name: kind}, WorkflowTaskCompletedEventId: task,
	})
}

// ChildDone starts and completes a child workflow.
func (h *History) ChildDone(initiated int64, kind, id string) {
	run := &commonpb.WorkflowExecution{WorkflowId: id, RunId: "child-run"}
	workflowType := &commonpb.WorkflowType{Name: kind}
	started := h.Append(&historypb.ChildWorkflowExecutionStartedEventAttributes{
		InitiatedEventId: initiated, WorkflowExecution: run, WorkflowType: workflowType,
	})
	h.Append(&historypb.ChildWorkflowExecutionCompletedEventAttributes{
		InitiatedEventId: initiated, StartedEventId: started,
		WorkflowExecution: run, WorkflowType: workflowType, Result: Encoded("child"),
	})
}

// Version adds the marker and the search attribute that workflow.GetVersion records.
func (h *History) Version(task int64, change string, version int) {
	h.Append(&historypb.MarkerRecordedEventAttributes{
		MarkerName: "Version", WorkflowTaskCompletedEventId: task,
		Details: map[string]*commonpb.Payloads{"change-id": Encoded(change), "version": Encoded(version)},
	})
	value := Encoded([]string{fmt.Sprintf("%s-%d", change, version)}).Payloads[0]
	h.Append(&historypb.UpsertWorkflowSearchAttributesEventAttributes{
		WorkflowTaskCompletedEventId: task,
		SearchAttributes: &commonpb.SearchAttributes{
			IndexedFields: map[string]*commonpb.Payload{"TemporalChangeVersion": value},
		},
	})
}

// Signal adds a tool-event signal.
func (h *History) Signal(event any) {
	h.Append(&historypb.WorkflowExecutionSignaledEventAttributes{
		SignalName: ace.SignalToolEvent, Input: Encoded(event),
	})
}

// Complete completes the run and returns its events.
func (h *History) Complete(task int64, result any) []*historypb.HistoryEvent {
	h.Append(&historypb.WorkflowExecutionCompletedEventAttributes{
		WorkflowTaskCompletedEventId: task, Result: Encoded(result),
	})
	return h.Events
}

// Encoded returns the JSON payloads of the values. It panics if a value cannot be encoded.
func Encoded(values ...any) *commonpb.Payloads {
	if len(values) == 0 {
		return nil
	}
	p := &commonpb.Payloads{}
	for _, v := range values {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		metadata := map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}
		p.Payloads = append(p.Payloads, &commonpb.Payload{Metadata: metadata, Data: data})
	}
	return p
}
