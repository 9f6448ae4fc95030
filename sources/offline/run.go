package offline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/historyfile"
)

// run is one history and what a server's list would report about it. It is immutable.
type run struct {
	events  []*historypb.HistoryEvent
	info    *workflowpb.WorkflowExecutionInfo
	pending []*workflowpb.PendingActivityInfo
	task    *workflowpb.PendingWorkflowTaskInfo // nil unless it fails
	source  string                              // file
	broken  string                              // why the history ends before the run did, or ""
	values  map[string]any                      // the attributes that queries use, by the server's names
	types   map[string]enumspb.IndexedValueType // of search attributes
}

func (r *run) workflowID() string { return r.info.GetExecution().GetWorkflowId() }
func (r *run) runID() string      { return r.info.GetExecution().GetRunId() }
func (r *run) name() string       { return r.workflowID() + " " + r.runID() }
func (r *run) start() time.Time   { return r.info.GetStartTime().AsTime() }
func (r *run) open() bool         { return r.info.GetCloseTime() == nil }

func (r *run) closed() time.Time { return r.info.GetCloseTime().AsTime() }

// newRun describes the run of a history. number is the position of the history in its file,
// from 1.
func newRun(h historyfile.History, source string, number int, broken string) *run {
	first, last := h.Events[0], h.Events[len(h.Events)-1]
	started := first.GetWorkflowExecutionStartedEventAttributes()
	fallbackID := fmt.Sprintf("%s#%d", filepath.Base(source), number)
	r := &run{events: h.Events, source: source, broken: broken}
	info := &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{
			WorkflowId: cmp.Or(workflowIDOf(started), fallbackID),
			RunId:      cmp.Or(history.OriginOf(h.Events).RunID, fallbackID),
		},
		Type:             started.GetWorkflowType(),
		TaskQueue:        started.GetTaskQueue().GetName(),
		StartTime:        first.GetEventTime(),
		ExecutionTime:    first.GetEventTime(),
		Status:           enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		HistoryLength:    int64(len(h.Events)),
		FirstRunId:       started.GetFirstExecutionRunId(),
		ParentExecution:  started.GetParentWorkflowExecution(),
		RootExecution:    started.GetRootWorkflowExecution(),
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{}},
		Memo:             &commonpb.Memo{Fields: map[string]*commonpb.Payload{}},
	}
	r.info = info
	if wait := started.GetFirstWorkflowTaskBackoff().AsDuration(); wait > 0 {
		info.ExecutionTime = timestamppb.New(first.GetEventTime().AsTime().Add(wait))
	}
	if status, closed := history.CloseStatus(last.GetEventType()); closed {
		info.Status = status
		info.CloseTime = last.GetEventTime()
		info.ExecutionDuration = durationpb.New(r.closed().Sub(info.GetExecutionTime().AsTime()))
		r.broken = ""
	}
	mergeFields(info.SearchAttributes.IndexedFields, started.GetSearchAttributes().GetIndexedFields())
	mergeFields(info.Memo.Fields, started.GetMemo().GetFields())
	pending := map[int64]*workflowpb.PendingActivityInfo{}
	var task history.WorkflowTask
	for _, e := range h.Events {
		task.Apply(e)
		upserted := e.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes()
		mergeFields(info.SearchAttributes.IndexedFields, upserted.GetIndexedFields())
		mergeFields(info.Memo.Fields, e.GetWorkflowPropertiesModifiedEventAttributes().GetUpsertedMemo().GetFields())
		trackPending(pending, e)
		info.HistorySizeBytes += int64(proto.Size(e))
	}
	if r.open() {
		r.task = task.Described()
		for _, id := range slices.Sorted(maps.Keys(pending)) {
			r.pending = append(r.pending, pending[id])
		}
	}
	r.index()
	return r
}

// workflowIDOf returns the workflow's ID, or "". Old servers do not record it; the ID of a task
// then follows from its input.
func workflowIDOf(started *historypb.WorkflowExecutionStartedEventAttributes) string {
	if started.GetWorkflowId() != "" || started.GetWorkflowType().GetName() != ace.TaskWorkflow {
		return started.GetWorkflowId()
	}
	if fact, err := ace.StartedFrom(history.JSON(started.GetInput())); err == nil && fact.Input.TaskID != "" {
		return ace.WorkflowID(fact.Input.TaskID)
	}
	return ""
}

// mergeFields overwrites fields; null removes a field.
func mergeFields(into, fields map[string]*commonpb.Payload) {
	for name, p := range fields {
		if data := history.PayloadJSON(p); p == nil || string(data) == "null" || len(p.GetData()) == 0 {
			delete(into, name)
			continue
		}
		into[name] = p
	}
}

// trackPending keeps the activities that are scheduled and have not ended, by the ID of their
// event. A history does not contain failed attempts, so a scheduled activity is at its first.
func trackPending(pending map[int64]*workflowpb.PendingActivityInfo, e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		a := e.GetActivityTaskScheduledEventAttributes()
		pending[e.GetEventId()] = &workflowpb.PendingActivityInfo{
			ActivityId: a.GetActivityId(), ActivityType: a.GetActivityType(),
			State: enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, ScheduledTime: e.GetEventTime(),
			Attempt: 1, MaximumAttempts: a.GetRetryPolicy().GetMaximumAttempts()}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		a := e.GetActivityTaskStartedEventAttributes()
		if p := pending[a.GetScheduledEventId()]; p != nil {
			p.State, p.LastStartedTime = enumspb.PENDING_ACTIVITY_STATE_STARTED, e.GetEventTime()
			p.Attempt, p.LastFailure = a.GetAttempt(), a.GetLastFailure()
			p.LastWorkerIdentity = a.GetIdentity()
		}
	default:
		if end, ok := history.EndingOf(e); ok {
			delete(pending, end.Started)
		}
	}
}

func (r *run) index() {
	i := r.info
	r.types = map[string]enumspb.IndexedValueType{}
	r.values = map[string]any{
		"WorkflowId":       r.workflowID(),
		"RunId":            r.runID(),
		"WorkflowType":     i.GetType().GetName(),
		"TaskQueue":        i.GetTaskQueue(),
		"StartTime":        datetime(i.GetStartTime()),
		"ExecutionTime":    datetime(i.GetExecutionTime()),
		"ExecutionStatus":  i.GetStatus().String(),
		"HistoryLength":    i.GetHistoryLength(),
		"HistorySizeBytes": i.GetHistorySizeBytes(),
	}
	if !r.open() {
		r.values["CloseTime"] = datetime(i.GetCloseTime())
		r.values["ExecutionDuration"] = int64(i.GetExecutionDuration().AsDuration())
	}
	related := map[string]*commonpb.WorkflowExecution{"Parent": i.GetParentExecution(),
		"Root": i.GetRootExecution()}
	for name, e := range related {
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

// attribute returns the value of a search attribute, or nil if it cannot be decoded.
func attribute(p *commonpb.Payload, kind enumspb.IndexedValueType) any {
	data := history.PayloadJSON(p)
	switch kind {
	case enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST:
		return decode[[]string](data)
	case enumspb.INDEXED_VALUE_TYPE_INT:
		return decode[int64](data)
	case enumspb.INDEXED_VALUE_TYPE_DOUBLE:
		return decode[float64](data)
	case enumspb.INDEXED_VALUE_TYPE_BOOL:
		return decode[bool](data)
	case enumspb.INDEXED_VALUE_TYPE_DATETIME:
		if at, ok := decode[time.Time](data).(time.Time); ok {
			return at.UTC().Format(timeFormat)
		}
		return nil
	}
	return decode[string](data)
}

// decode decodes JSON into a T, or returns nil.
func decode[T any](data []byte) any {
	var v T
	if json.Unmarshal(data, &v) != nil {
		return nil
	}
	return v
}

func datetime(t *timestamppb.Timestamp) string { return t.AsTime().UTC().Format(timeFormat) }
