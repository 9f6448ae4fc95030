package filed

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/ace"
	"acescope/engine/history"
	"acescope/engine/historyfile"
)

// run is one history and what a server's list would say of it. It is immutable.
type run struct {
	events  []*historypb.HistoryEvent
	info    *workflowpb.WorkflowExecutionInfo
	pending []*workflowpb.PendingActivityInfo
	source  string                              // file
	number  int                                 // of the history in it, from 1
	broken  string                              // why the history ends before the run did, "" where it does not
	values  map[string]any                      // what queries look at, by the server's names
	types   map[string]enumspb.IndexedValueType // of search attributes
}

func (r *run) workflowID() string { return r.info.GetExecution().GetWorkflowId() }
func (r *run) runID() string      { return r.info.GetExecution().GetRunId() }
func (r *run) start() time.Time   { return r.info.GetStartTime().AsTime() }
func (r *run) open() bool         { return r.info.GetCloseTime() == nil }

// closed is when the run ended, of an open one the begin of time.
func (r *run) closed() time.Time { return r.info.GetCloseTime().AsTime() }

func (r *run) name() string { return r.workflowID() + " " + r.runID() }

// newRun reads what a list says of a run from its history.
func newRun(h historyfile.History, source string, number int, broken string) *run {
	first, last := h.Events[0], h.Events[len(h.Events)-1]
	began := first.GetWorkflowExecutionStartedEventAttributes()
	r := &run{events: h.Events, source: source, broken: broken}
	r.info = &workflowpb.WorkflowExecutionInfo{
		Execution:        &commonpb.WorkflowExecution{WorkflowId: workflowIDOf(began, source, number), RunId: runIDOf(h.Events, source, number)},
		Type:             began.GetWorkflowType(),
		TaskQueue:        began.GetTaskQueue().GetName(),
		StartTime:        first.GetEventTime(),
		ExecutionTime:    first.GetEventTime(),
		Status:           statusOf(last),
		HistoryLength:    int64(len(h.Events)),
		FirstRunId:       began.GetFirstExecutionRunId(),
		ParentExecution:  began.GetParentWorkflowExecution(),
		RootExecution:    began.GetRootWorkflowExecution(),
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{}},
		Memo:             &commonpb.Memo{Fields: map[string]*commonpb.Payload{}},
	}
	if wait := began.GetFirstWorkflowTaskBackoff().AsDuration(); wait > 0 {
		r.info.ExecutionTime = timestamppb.New(first.GetEventTime().AsTime().Add(wait))
	}
	if r.info.Status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		r.info.CloseTime = last.GetEventTime()
		r.info.ExecutionDuration = durationpb.New(r.closed().Sub(r.info.GetExecutionTime().AsTime()))
		r.broken = ""
	}
	merge(r.info.SearchAttributes.IndexedFields, began.GetSearchAttributes().GetIndexedFields())
	merge(r.info.Memo.Fields, began.GetMemo().GetFields())
	open := map[int64]*workflowpb.PendingActivityInfo{}
	for _, e := range h.Events {
		merge(r.info.SearchAttributes.IndexedFields, e.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes().GetIndexedFields())
		merge(r.info.Memo.Fields, e.GetWorkflowPropertiesModifiedEventAttributes().GetUpsertedMemo().GetFields())
		follow(open, e)
		r.info.HistorySizeBytes += int64(proto.Size(e))
	}
	if r.open() {
		r.pending = inOrder(open, h.Events)
	}
	r.index()
	return r
}

// workflowIDOf is the workflow's id. Old servers do not write it: then a task's is made
// from its input, and anything else is called after its file.
func workflowIDOf(began *historypb.WorkflowExecutionStartedEventAttributes, source string, number int) string {
	if id := began.GetWorkflowId(); id != "" {
		return id
	}
	if payloads := began.GetInput().GetPayloads(); began.GetWorkflowType().GetName() == ace.TaskWorkflow && len(payloads) > 0 {
		if fact, err := ace.StartedFrom(history.JSONOf(payloads[0])); err == nil && fact.Input.TaskID != "" {
			return ace.WorkflowID(fact.Input.TaskID)
		}
	}
	return fmt.Sprintf("%s#%d", filepath.Base(source), number)
}

// runIDOf is the run's id: of one that was reset, the id that the reset gave.
func runIDOf(events []*historypb.HistoryEvent, source string, number int) string {
	id := events[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId()
	for _, e := range events {
		if a := e.GetWorkflowTaskFailedEventAttributes(); a.GetCause() == enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW && a.GetNewRunId() != "" {
			id = a.GetNewRunId()
		}
	}
	if id == "" {
		return fmt.Sprintf("%s#%d", filepath.Base(source), number)
	}
	return id
}

func statusOf(last *historypb.HistoryEvent) enumspb.WorkflowExecutionStatus {
	switch last.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		return enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		return enumspb.WORKFLOW_EXECUTION_STATUS_FAILED
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		return enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		return enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		return enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
	}
	return enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// merge writes fields over those that are there; null takes one away.
func merge(into, fields map[string]*commonpb.Payload) {
	for name, p := range fields {
		if data := history.JSONOf(p); p == nil || string(data) == "null" || len(p.GetData()) == 0 {
			delete(into, name)
			continue
		}
		into[name] = p
	}
}

// follow keeps the activities that are scheduled and have not ended, by their event. Of an
// attempt that was not the last no history tells: it counts as the first.
func follow(open map[int64]*workflowpb.PendingActivityInfo, e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		a := e.GetActivityTaskScheduledEventAttributes()
		open[e.GetEventId()] = &workflowpb.PendingActivityInfo{ActivityId: a.GetActivityId(), ActivityType: a.GetActivityType(),
			State: enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, Attempt: 1, ScheduledTime: e.GetEventTime(), MaximumAttempts: a.GetRetryPolicy().GetMaximumAttempts()}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		a := e.GetActivityTaskStartedEventAttributes()
		if p := open[a.GetScheduledEventId()]; p != nil {
			p.State, p.Attempt, p.LastStartedTime = enumspb.PENDING_ACTIVITY_STATE_STARTED, a.GetAttempt(), e.GetEventTime()
			p.LastWorkerIdentity, p.LastFailure = a.GetIdentity(), a.GetLastFailure()
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		delete(open, e.GetActivityTaskCompletedEventAttributes().GetScheduledEventId())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		delete(open, e.GetActivityTaskFailedEventAttributes().GetScheduledEventId())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		delete(open, e.GetActivityTaskTimedOutEventAttributes().GetScheduledEventId())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		delete(open, e.GetActivityTaskCanceledEventAttributes().GetScheduledEventId())
	}
}

func inOrder(open map[int64]*workflowpb.PendingActivityInfo, events []*historypb.HistoryEvent) []*workflowpb.PendingActivityInfo {
	var list []*workflowpb.PendingActivityInfo
	for _, e := range events {
		if p := open[e.GetEventId()]; p != nil {
			list = append(list, p)
		}
	}
	return list
}

// index makes the values that queries look at.
func (r *run) index() {
	i := r.info
	r.types = map[string]enumspb.IndexedValueType{}
	r.values = map[string]any{
		"WorkflowId": r.workflowID(), "RunId": r.runID(), "WorkflowType": i.GetType().GetName(), "TaskQueue": i.GetTaskQueue(),
		"StartTime": datetime(i.GetStartTime()), "ExecutionTime": datetime(i.GetExecutionTime()), "ExecutionStatus": i.GetStatus().String(),
		"HistoryLength": i.GetHistoryLength(), "HistorySizeBytes": i.GetHistorySizeBytes(),
	}
	if !r.open() {
		r.values["CloseTime"] = datetime(i.GetCloseTime())
		r.values["ExecutionDuration"] = int64(i.GetExecutionDuration().AsDuration())
	}
	for name, e := range map[string]*commonpb.WorkflowExecution{"Parent": i.GetParentExecution(), "Root": i.GetRootExecution()} {
		if e.GetWorkflowId() != "" {
			r.values[name+"WorkflowId"], r.values[name+"RunId"] = e.GetWorkflowId(), e.GetRunId()
		}
	}
	for name, p := range i.GetSearchAttributes().GetIndexedFields() {
		kind, err := enumspb.IndexedValueTypeFromString(string(p.GetMetadata()["type"]))
		if err != nil {
			kind = enumspb.INDEXED_VALUE_TYPE_KEYWORD
		}
		r.types[name] = kind
		if v := attribute(p, kind); v != nil {
			r.values[name] = v
		}
	}
}

// attribute is the value of a search attribute, nil where it cannot be read.
func attribute(p *commonpb.Payload, kind enumspb.IndexedValueType) any {
	data := history.JSONOf(p)
	switch kind {
	case enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST:
		var list []string
		if json.Unmarshal(data, &list) == nil {
			return list
		}
	case enumspb.INDEXED_VALUE_TYPE_INT:
		var n int64
		if json.Unmarshal(data, &n) == nil {
			return n
		}
	case enumspb.INDEXED_VALUE_TYPE_DOUBLE:
		var n float64
		if json.Unmarshal(data, &n) == nil {
			return n
		}
	case enumspb.INDEXED_VALUE_TYPE_BOOL:
		var b bool
		if json.Unmarshal(data, &b) == nil {
			return b
		}
	case enumspb.INDEXED_VALUE_TYPE_DATETIME:
		var at time.Time
		if json.Unmarshal(data, &at) == nil {
			return at.UTC().Format(timeFormat)
		}
	default:
		var text string
		if json.Unmarshal(data, &text) == nil {
			return text
		}
	}
	return nil
}

func datetime(t *timestamppb.Timestamp) string { return t.AsTime().UTC().Format(timeFormat) }
