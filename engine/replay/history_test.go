package replay

import (
	"encoding/json"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// made is a history that is written event by event, as a server would.
type made struct {
	events []*historypb.HistoryEvent
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// begin is a run that was started and not yet worked on.
func begin(kind string) *made {
	m := &made{}
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{WorkflowType: &commonpb.WorkflowType{Name: kind},
			TaskQueue: &taskqueuepb.TaskQueue{Name: "q"}, WorkflowId: "w-1", OriginalExecutionRunId: "r-1", Attempt: 1}}})
	return m
}

func (m *made) add(e *historypb.HistoryEvent) int64 {
	e.EventId = int64(len(m.events) + 1)
	e.EventTime = timestamppb.New(noon.Add(time.Duration(len(m.events)) * time.Second))
	m.events = append(m.events, e)
	return e.EventId
}

// task is a workflow task that was completed; its event id.
func (m *made) task() int64 {
	at := m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, Attributes: &historypb.HistoryEvent_WorkflowTaskScheduledEventAttributes{
		WorkflowTaskScheduledEventAttributes: &historypb.WorkflowTaskScheduledEventAttributes{Attempt: 1}}})
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED, Attributes: &historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{
		WorkflowTaskStartedEventAttributes: &historypb.WorkflowTaskStartedEventAttributes{ScheduledEventId: at}}})
	return m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, Attributes: &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
		WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{ScheduledEventId: at, StartedEventId: at + 1, BinaryChecksum: "old-build"}}})
}

// activity is scheduled by the task, and its event id.
func (m *made) activity(task int64, name string, args ...any) int64 {
	id := int64(len(m.events) + 1)
	return m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
		ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{ActivityId: fmt.Sprint(id), ActivityType: &commonpb.ActivityType{Name: name},
			WorkflowTaskCompletedEventId: task, TaskQueue: &taskqueuepb.TaskQueue{Name: "q"}, Input: encoded(args...)}}})
}

// done ends an activity with a result.
func (m *made) done(scheduled int64, result any) {
	at := m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED, Attributes: &historypb.HistoryEvent_ActivityTaskStartedEventAttributes{
		ActivityTaskStartedEventAttributes: &historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: scheduled, Attempt: 1}}})
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
		ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: scheduled, StartedEventId: at, Result: encoded(result)}}})
}

func (m *made) timer(task int64, d time.Duration) int64 {
	id := int64(len(m.events) + 1)
	return m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_TIMER_STARTED, Attributes: &historypb.HistoryEvent_TimerStartedEventAttributes{
		TimerStartedEventAttributes: &historypb.TimerStartedEventAttributes{TimerId: fmt.Sprint(id), StartToFireTimeout: durationpb.New(d), WorkflowTaskCompletedEventId: task}}})
}

func (m *made) fired(started int64) {
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_TIMER_FIRED, Attributes: &historypb.HistoryEvent_TimerFiredEventAttributes{
		TimerFiredEventAttributes: &historypb.TimerFiredEventAttributes{TimerId: fmt.Sprint(started), StartedEventId: started}}})
}

func (m *made) child(task int64, kind, id string) int64 {
	return m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED, Attributes: &historypb.HistoryEvent_StartChildWorkflowExecutionInitiatedEventAttributes{
		StartChildWorkflowExecutionInitiatedEventAttributes: &historypb.StartChildWorkflowExecutionInitiatedEventAttributes{WorkflowId: id,
			WorkflowType: &commonpb.WorkflowType{Name: kind}, WorkflowTaskCompletedEventId: task}}})
}

func (m *made) childDone(initiated int64, kind, id string) {
	run := &commonpb.WorkflowExecution{WorkflowId: id, RunId: "child-run"}
	started := m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED, Attributes: &historypb.HistoryEvent_ChildWorkflowExecutionStartedEventAttributes{
		ChildWorkflowExecutionStartedEventAttributes: &historypb.ChildWorkflowExecutionStartedEventAttributes{InitiatedEventId: initiated, WorkflowExecution: run, WorkflowType: &commonpb.WorkflowType{Name: kind}}}})
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED, Attributes: &historypb.HistoryEvent_ChildWorkflowExecutionCompletedEventAttributes{
		ChildWorkflowExecutionCompletedEventAttributes: &historypb.ChildWorkflowExecutionCompletedEventAttributes{InitiatedEventId: initiated, StartedEventId: started,
			WorkflowExecution: run, WorkflowType: &commonpb.WorkflowType{Name: kind}, Result: encoded("child")}}})
}

// version is the marker that GetVersion leaves.
func (m *made) version(task int64, change string, v int) {
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_MARKER_RECORDED, Attributes: &historypb.HistoryEvent_MarkerRecordedEventAttributes{
		MarkerRecordedEventAttributes: &historypb.MarkerRecordedEventAttributes{MarkerName: markerVersion, WorkflowTaskCompletedEventId: task,
			Details: map[string]*commonpb.Payloads{"change-id": encoded(change), "version": encoded(v)}}}})
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES, Attributes: &historypb.HistoryEvent_UpsertWorkflowSearchAttributesEventAttributes{
		UpsertWorkflowSearchAttributesEventAttributes: &historypb.UpsertWorkflowSearchAttributesEventAttributes{WorkflowTaskCompletedEventId: task,
			SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{"TemporalChangeVersion": encoded([]string{fmt.Sprintf("%s-%d", change, v)}).Payloads[0]}}}}})
}

func (m *made) complete(task int64, result any) []*historypb.HistoryEvent {
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, Attributes: &historypb.HistoryEvent_WorkflowExecutionCompletedEventAttributes{
		WorkflowExecutionCompletedEventAttributes: &historypb.WorkflowExecutionCompletedEventAttributes{WorkflowTaskCompletedEventId: task, Result: encoded(result)}}})
	return m.events
}

func encoded(values ...any) *commonpb.Payloads {
	if len(values) == 0 {
		return nil
	}
	p := &commonpb.Payloads{}
	for _, v := range values {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		p.Payloads = append(p.Payloads, &commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}, Data: data})
	}
	return p
}
