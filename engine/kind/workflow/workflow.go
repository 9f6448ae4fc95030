// Package workflow is the kind of the runs of any workflow type: its fold knows what every history says. It
// is also what a run is that no other kind recognizes, with the state of an ACE task if the run has
// activities or signals of the contract.
//
// Bounds: the fold keeps the newest maxKept operations; older ones are only counted, by group and name.
package workflow

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"acescope/engine/ace"
	"acescope/engine/kind"
	"acescope/engine/kind/task"
	"acescope/engine/temporal/history"
	"acescope/engine/trace"
	"acescope/engine/trace/adapter"
)

// Kind recognizes every run.
var Kind = kind.Kind{New: newFold}

type fold struct {
	task kind.Fold // the state of a task, as far as the run has parts of the contract

	name, id, queue string
	priority        string
	parent          kind.Run
	sdk, build      string
	summary         string
	details         string
	input, result   *commonpb.Payloads
	status          ace.Status
	failure         *ace.Failure
	cancel          bool   // a cancel was requested
	workflowTask    string // state of the workflow task
	attempts        history.WorkflowTask
	memo, attrs     map[string]*commonpb.Payload

	operations []*operation         // the newest, in order of their first event; never changed in place
	open       map[int64]*operation // those without an end, by first event
	counts     map[count]int
	dropped    int
	last       *operation // that the last event began or changed, or nil
	agent      adapter.Folder
	contracted bool   // the last event is a part of the contract
	closed     bool   // the last event closes the run
	streamed   string // text of an answer in the last event, or ""
}

// count identifies a counter of operations.
type count struct {
	group  group
	name   string
	status string
}

// maxKept bounds the operations that are kept.
const maxKept = 500

func newFold() kind.Fold {
	return &fold{task: task.Kind.New(), memo: map[string]*commonpb.Payload{},
		attrs: map[string]*commonpb.Payload{}, open: map[int64]*operation{}, counts: map[count]int{}}
}

func (f *fold) Clone() kind.Fold {
	c := *f
	c.task = f.task.Clone()
	c.memo, c.attrs = maps.Clone(f.memo), maps.Clone(f.attrs)
	c.agent = f.agent.Clone()
	c.operations, c.open, c.counts = slices.Clone(f.operations), maps.Clone(f.open), maps.Clone(f.counts)
	return &c
}

func (f *fold) ID() string { return f.task.ID() }

// State implements [kind.Tasker].
func (f *fold) State() *ace.State { return f.task.(kind.Tasker).State() }

// Trace implements [kind.Tracer].
func (f *fold) Trace() trace.Trace { return f.agent.Trace() }

func (f *fold) Answer(a *kind.Answers) {
	if f.task.Answer(a); !f.contract() {
		a.Skills, a.Delta = nil, nil // none is recorded
	}
}

// contract reports whether the run has parts of the contract of ACE tasks.
func (f *fold) contract() bool {
	s := f.State()
	calls, _, _ := s.CallTotals()
	return len(s.Steps) > 0 || calls > 0
}

// Phase lists the operations that the run waits for.
func (f *fold) Phase() string {
	if f.contract() {
		return f.task.Phase()
	}
	text := ""
	for _, at := range slices.Sorted(maps.Keys(f.open)) {
		text += f.open[at].label() + "\n"
	}
	return text
}

func (f *fold) Apply(e *historypb.HistoryEvent) kind.Effect {
	of := f.task.Apply(e)
	f.agent.Apply(e)
	f.last, f.contracted, f.closed, f.streamed = nil, of.Changed, false, streamedText(e)
	var effect kind.Effect
	if effect.Changed = f.apply(e); of.Changed {
		effect.Changed, effect.ToolsOnly = true, of.ToolsOnly && !effect.Changed
	}
	if end, ok := history.EndingOf(e); ok {
		f.end(e, end)
		effect.Changed = true
	}
	if closed, ok := f.attempts.Closing(e); ok {
		f.closed = true
		f.status, f.failure = closed.Status, closed.Failure
		f.result, _ = history.Outcome(e)
		effect.Changed = true
	}
	if o := f.last; o != nil {
		effect.Changed = true
		effect.Tool = o.group == activities || o.group == children || o.group == localActivities
		effect.Failed = o.failure != nil
	}
	effect.Tool, effect.Failed = effect.Tool || of.Tool, effect.Failed || of.Failed
	return effect
}

// apply applies an event that does not end an operation, and reports whether it changes the state.
func (f *fold) apply(e *historypb.HistoryEvent) bool {
	switch a := history.Attributes(e).(type) {
	case *historypb.WorkflowExecutionStartedEventAttributes:
		f.start(e, a)
	case *historypb.WorkflowExecutionCancelRequestedEventAttributes:
		f.cancel = true
	case *historypb.WorkflowTaskScheduledEventAttributes:
		f.workflowTask = "scheduled"
	case *historypb.WorkflowTaskStartedEventAttributes:
		f.workflowTask = "started"
	case *historypb.WorkflowTaskCompletedEventAttributes:
		f.workflowTask = "completed"
		if sdk := a.GetSdkMetadata(); sdk.GetSdkName() != "" {
			f.sdk = sdk.GetSdkName() + " " + sdk.GetSdkVersion()
		}
		f.build = cmp.Or(a.GetWorkerVersion().GetBuildId(), a.GetDeploymentVersion().GetBuildId(), f.build)
	case *historypb.WorkflowTaskFailedEventAttributes:
		f.workflowTask = "failed"
		if history.IsReset(e) {
			f.workflowTask = "reset"
		}
	case *historypb.WorkflowTaskTimedOutEventAttributes:
		f.workflowTask = "timed out"
	case *historypb.WorkflowPropertiesModifiedEventAttributes:
		merge(f.memo, a.GetUpsertedMemo().GetFields())
	case *historypb.UpsertWorkflowSearchAttributesEventAttributes:
		merge(f.attrs, a.GetSearchAttributes().GetIndexedFields())
	default:
		return f.begin(e)
	}
	return true
}

func (f *fold) start(e *historypb.HistoryEvent, a *historypb.WorkflowExecutionStartedEventAttributes) {
	f.name, f.id, f.queue = a.GetWorkflowType().GetName(), a.GetWorkflowId(), a.GetTaskQueue().GetName()
	f.parent = kind.RunOf(a.GetParentWorkflowExecution())
	f.priority = priorityText(a.GetPriority())
	f.input, f.status = a.GetInput(), ace.Running
	f.summary = text(e.GetUserMetadata().GetSummary())
	f.details = text(e.GetUserMetadata().GetDetails())
	merge(f.memo, a.GetMemo().GetFields())
	merge(f.attrs, a.GetSearchAttributes().GetIndexedFields())
}

// priorityText returns the priority of a run as far as it is set, or "".
func priorityText(p *commonpb.Priority) string {
	var parts []string
	if p.GetPriorityKey() != 0 {
		parts = append(parts, strconv.Itoa(int(p.GetPriorityKey())))
	}
	if p.GetFairnessKey() != "" {
		parts = append(parts, "fairness key "+p.GetFairnessKey())
	}
	if p.GetFairnessWeight() != 0 {
		parts = append(parts, "weight "+strconv.FormatFloat(float64(p.GetFairnessWeight()), 'g', -1, 32))
	}
	return strings.Join(parts, ", ")
}

// merge sets the fields; a null field is removed.
func merge(into, fields map[string]*commonpb.Payload) {
	for name, p := range fields {
		into[name] = p
		if string(p.GetMetadata()[converter.MetadataEncoding]) == converter.MetadataEncodingNil {
			delete(into, name)
		}
	}
}

// text returns the text of a payload that holds a JSON string, or "".
func text(p *commonpb.Payload) (s string) {
	_ = json.Unmarshal(history.PayloadJSON(p), &s)
	return s
}

func timeOf(e *historypb.HistoryEvent) time.Time {
	if t := e.GetEventTime(); t != nil {
		return t.AsTime()
	}
	return time.Time{}
}
