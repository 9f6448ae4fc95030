// Package historytest makes histories of runs, and a client that serves them page by page, for
// tests and benchmarks. It imports engine/ace, engine/temporal/history and replaytest only. Its
// output depends only on its arguments.
package historytest

import (
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/ace"
	"acescope/engine/temporal/replay/replaytest"
)

// Start is when every made history begins.
var Start = time.Date(2026, 5, 4, 11, 59, 50, 0, time.UTC)

// Builder writes a history event by event. Its methods take the time since the previous event
// and return the ID of the event that later events refer to.
type Builder struct {
	Events []*historypb.HistoryEvent
	at     time.Time
	task   int64 // the last completed workflow task
}

// New begins a history with its first workflow task.
func New(workflowType string, input any) *Builder {
	b := &Builder{at: Start}
	b.event(0, &historypb.WorkflowExecutionStartedEventAttributes{
		WorkflowType: &commonpb.WorkflowType{Name: workflowType}, Input: JSON(input), Attempt: 1})
	b.Task(time.Millisecond)
	return b
}

// Reset begins the history of a run that resets baseRun after kept events.
func Reset(base *Builder, kept int, baseRun, runID string) *Builder {
	b := &Builder{Events: base.Events[:kept:kept], at: base.Events[kept-1].GetEventTime().AsTime()}
	b.event(time.Millisecond, &historypb.WorkflowTaskFailedEventAttributes{
		Cause: enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW, BaseRunId: baseRun, NewRunId: runID})
	b.Task(time.Millisecond)
	return b
}

// Add appends an event; set, which may be nil, sets its attributes.
func (b *Builder) Add(after time.Duration, t enumspb.EventType, set func(*historypb.HistoryEvent)) int64 {
	b.at = b.at.Add(after)
	e := &historypb.HistoryEvent{EventId: b.nextID(), EventTime: timestamppb.New(b.at), EventType: t,
		TaskId: int64(1_048_576 + len(b.Events))}
	if set != nil {
		set(e)
	}
	b.Events = append(b.Events, e)
	return e.EventId
}

func (b *Builder) nextID() int64 { return int64(len(b.Events) + 1) }

// event appends an event with attributes, whose type determines that of the event.
func (b *Builder) event(after time.Duration, attributes proto.Message) int64 {
	made := replaytest.EventOf(attributes)
	return b.Add(after, made.EventType, func(e *historypb.HistoryEvent) { e.Attributes = made.Attributes })
}

// Of sets the workflow and run IDs, the run that this one continues ("" for none), and the
// first run of the chain.
func (b *Builder) Of(workflowID, runID, continues, first string) *Builder {
	a := b.Events[0].GetWorkflowExecutionStartedEventAttributes()
	a.WorkflowId, a.OriginalExecutionRunId = workflowID, runID
	a.ContinuedExecutionRunId, a.FirstExecutionRunId = continues, first
	if continues != "" {
		a.Initiator = enumspb.CONTINUE_AS_NEW_INITIATOR_WORKFLOW
	}
	return b
}

// Task adds a workflow task that is scheduled, started and completed.
func (b *Builder) Task(after time.Duration) int64 {
	scheduled := b.event(after, &historypb.WorkflowTaskScheduledEventAttributes{Attempt: 1})
	started := b.event(time.Millisecond, &historypb.WorkflowTaskStartedEventAttributes{
		ScheduledEventId: scheduled, Identity: "worker@host"})
	b.task = b.event(time.Millisecond, &historypb.WorkflowTaskCompletedEventAttributes{
		ScheduledEventId: scheduled, StartedEventId: started})
	return b.task
}

// Schedule adds the event that schedules an activity and returns the event's ID.
func (b *Builder) Schedule(after time.Duration, activity string, input any) int64 {
	return b.event(after, &historypb.ActivityTaskScheduledEventAttributes{
		ActivityId: fmt.Sprint(b.nextID()), ActivityType: &commonpb.ActivityType{Name: activity},
		Input: JSON(input), WorkflowTaskCompletedEventId: b.task})
}

// Begin starts an attempt of an activity; failure is that of the previous attempt, or "".
func (b *Builder) Begin(after time.Duration, scheduled int64, attempt int32, failure string) int64 {
	a := &historypb.ActivityTaskStartedEventAttributes{
		ScheduledEventId: scheduled, Attempt: attempt, Identity: "worker@host"}
	if failure != "" {
		a.LastFailure = Failure(failure)
	}
	return b.event(after, a)
}

// Complete ends an activity with a result.
func (b *Builder) Complete(after time.Duration, scheduled, started int64, result any) int64 {
	return b.event(after, &historypb.ActivityTaskCompletedEventAttributes{
		ScheduledEventId: scheduled, StartedEventId: started, Result: JSON(result)})
}

// Fail ends an activity with a failure.
func (b *Builder) Fail(after time.Duration, scheduled, started int64, message string) int64 {
	return b.event(after, &historypb.ActivityTaskFailedEventAttributes{
		ScheduledEventId: scheduled, StartedEventId: started, Failure: Failure(message)})
}

// Activity adds an activity that completes at its first attempt.
func (b *Builder) Activity(wait, run time.Duration, activity string, input, result any) int64 {
	scheduled := b.Schedule(0, activity, input)
	started := b.Begin(wait, scheduled, 1, "")
	return b.Complete(run, scheduled, started, result)
}

// Signal adds a signal.
func (b *Builder) Signal(after time.Duration, name string, input any) int64 {
	return b.event(after, &historypb.WorkflowExecutionSignaledEventAttributes{SignalName: name,
		Input: JSON(input)})
}

// Timer adds a timer that fires.
func (b *Builder) Timer(length time.Duration, id string) int64 {
	started := b.event(0, &historypb.TimerStartedEventAttributes{
		TimerId: id, StartToFireTimeout: durationpb.New(length)})
	return b.event(length, &historypb.TimerFiredEventAttributes{TimerId: id, StartedEventId: started})
}

// child adds a child workflow that completes.
func (b *Builder) child(run time.Duration, workflowType, id string, result any) int64 {
	execution := &commonpb.WorkflowExecution{WorkflowId: id, RunId: "run-" + id}
	kind := &commonpb.WorkflowType{Name: workflowType}
	initiated := b.event(0, &historypb.StartChildWorkflowExecutionInitiatedEventAttributes{
		WorkflowId: id, WorkflowType: kind})
	started := b.event(time.Millisecond, &historypb.ChildWorkflowExecutionStartedEventAttributes{
		InitiatedEventId: initiated, WorkflowExecution: execution, WorkflowType: kind})
	return b.event(run, &historypb.ChildWorkflowExecutionCompletedEventAttributes{
		InitiatedEventId: initiated, StartedEventId: started, WorkflowExecution: execution,
		WorkflowType: kind,
		Result:       JSON(result)})
}

// Close completes the run.
func (b *Builder) Close(after time.Duration, result any) *Builder {
	b.event(after, &historypb.WorkflowExecutionCompletedEventAttributes{
		Result: JSON(result), WorkflowTaskCompletedEventId: b.task})
	return b
}

// End closes the run with an event of the attributes' type.
func (b *Builder) End(after time.Duration, attributes proto.Message) *Builder {
	b.event(after, attributes)
	return b
}

// ContinueAs closes the run; it continues as another one.
func (b *Builder) ContinueAs(after time.Duration, runID string) *Builder {
	b.event(after, &historypb.WorkflowExecutionContinuedAsNewEventAttributes{
		NewExecutionRunId: runID, Initiator: enumspb.CONTINUE_AS_NEW_INITIATOR_WORKFLOW})
	return b
}

// Failure returns an application failure.
func Failure(message string) *failurepb.Failure {
	info := &failurepb.ApplicationFailureInfo{Type: "ModelError"}
	return &failurepb.Failure{Message: message,
		FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: info}}
}

// JSON returns one JSON payload, or nil for nil. It returns payloads as they are.
func JSON(v any) *commonpb.Payloads {
	if v == nil {
		return nil
	}
	if made, ok := v.(*commonpb.Payloads); ok {
		return made
	}
	return replaytest.Encoded(v)
}

// Stored returns a payload that the external storage of an SDK replaced by a reference.
func Stored(driver string, size int64) *commonpb.Payloads {
	p := Payload("json/protobuf", fmt.Appendf(nil, `{"driverName":%q,"claimData":{"key":"k1"}}`, driver))
	p.Payloads[0].Metadata["messageType"] = []byte("temporal.api.sdk.v1.ExternalStorageReference")
	p.Payloads[0].ExternalPayloads = []*commonpb.Payload_ExternalPayloadDetails{{SizeBytes: size}}
	return p
}

// Document001 makes a run of another program that follows design document 001: no reflector, results in
// shapes of their own, calls without an ID.
func Document001() *Builder {
	b := New(ace.TaskWorkflow, map[string]any{"task_id": "t-001", "prompt": "What is 6 times 7?",
		"adapter":       "offline",
		"playbook_hash": strings.Repeat("a", 64),
		"skills_config": map[string]any{"allowed_tools": []string{"plan"}}})
	b.Activity(0, time.Second, ace.ActivityGenerator, nil,
		map[string]any{"prompt_tokens": 12, "sampled_plan": "multiply", "trajectory_id": "j1"})
	b.Task(time.Millisecond)
	call := map[string]any{"name": "plan", "args": map[string]any{"q": 1}, "result": "ok", "accepted": true}
	b.Activity(0, time.Second, ace.ActivitySkills, nil, []any{call, call, call})
	b.Task(time.Millisecond)
	b.Activity(0, time.Second, ace.ActivityCurator, nil,
		map[string]any{"accepted_deltas": []any{"Check the units."}, "rationale": "r",
			"follow_up_actions": "none"})
	b.Task(time.Millisecond)
	b.Activity(0, time.Second, ace.ActivityPersist, nil, "saved 1 delta")
	b.Task(time.Millisecond)
	return b.Close(0, "42")
}

// Payload returns one payload of an encoding.
func Payload(encoding string, data []byte) *commonpb.Payloads {
	p := &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte(encoding)}, Data: data}
	return &commonpb.Payloads{Payloads: []*commonpb.Payload{p}}
}

// Task makes an ACE task run: a generator that is retried, skills with a denied and a failed
// call, a reflector and a curator. If closed, the curator fails and the run ends.
func Task(closed bool) *Builder {
	b := New(ace.TaskWorkflow, ace.TaskInput{TaskID: "q-00060", Prompt: "Compute the return on equity.",
		Adapter: ace.Offline, Model: "builtin"})
	prompt := map[string]any{"prompt": "Compute the return on equity."}
	generator := b.Schedule(time.Millisecond, ace.ActivityGenerator, prompt)
	started := b.Begin(1200*time.Millisecond, generator, 3, "model: 529 overloaded")
	b.Complete(800*time.Millisecond, generator, started,
		ace.GeneratorResult{Plan: "look it up, then divide", PromptTokens: 900})
	b.Task(2 * time.Millisecond)
	skills := b.Schedule(0, ace.ActivitySkills, nil)
	started = b.Begin(300*time.Millisecond, skills, 1, "")
	at := b.at
	yes, no := true, false
	b.Signal(100*time.Millisecond, ace.SignalToolEvent, []ace.ToolEvent{
		{EventID: "1.use", CallID: "1", Kind: ace.KindToolUse, Name: "look_up",
			At: at.Add(20 * time.Millisecond)},
		{EventID: "1.result", CallID: "1", Kind: ace.KindToolResult, Name: "look_up", Accepted: &yes, OK: &no,
			At: at.Add(60 * time.Millisecond), DurationMS: 40, Error: "no such formula: retrun on equity"}})
	b.Signal(400*time.Millisecond, ace.SignalToolEvent, ace.ToolEvent{EventID: "2.use", CallID: "2",
		Kind: ace.KindToolUse,
		Name: "calculate", At: at.Add(200 * time.Millisecond)})
	b.Task(time.Millisecond)
	b.Complete(700*time.Millisecond, skills, started, ace.SkillSessionResult{Answer: "0.172",
		Invocations: []ace.Invocation{
			{ID: "1", Name: "look_up", Accepted: true, At: at.Add(20 * time.Millisecond), DurationMS: 40,
				Error: "no such formula: retrun on equity"},
			{ID: "2", Name: "calculate", Accepted: true, OK: true, At: at.Add(200 * time.Millisecond),
				DurationMS: 900},
			{ID: "3", Name: "shell", At: at.Add(1150 * time.Millisecond),
				Error: "refused by a permission rule"}}})
	b.Task(2 * time.Millisecond)
	b.Activity(10*time.Millisecond, 640*time.Millisecond, ace.ActivityReflector, nil,
		ace.ReflectorResult{Insights: "the name was misspelt"})
	b.Task(2 * time.Millisecond)
	b.Timer(500*time.Millisecond, "pace")
	b.Task(time.Millisecond)
	curator := b.Schedule(0, ace.ActivityCurator, nil)
	if !closed {
		return b
	}
	started = b.Begin(5*time.Millisecond, curator, 1, "")
	b.Fail(350*time.Millisecond, curator, started, "the curator gave no operations")
	b.Task(2 * time.Millisecond)
	return b.Close(time.Millisecond, nil)
}

// Long makes a history of at least n events, like that of a long agent run: activities, one in
// ten retried and one in fifty failed, signals with tool events, timers and children.
func Long(n int) *Builder {
	b := New("AgentWorkflow", map[string]any{"goal": "keep going"})
	steps := ace.Steps()
	for i := 0; len(b.Events) < n-1; i++ {
		name := steps[i%len(steps)].Activity()
		prompt := fmt.Sprintf("What is the ratio of %d to %d, and which formula says so?", 17*i, i+3)
		scheduled := b.Schedule(time.Millisecond, name, map[string]any{"turn": i, "prompt": prompt})
		attempt, failure := int32(1), ""
		if i%10 == 3 {
			attempt, failure = 2+int32(i%3), "model: 529 overloaded"
		}
		started := b.Begin(time.Duration(3+i%7)*time.Millisecond, scheduled, attempt, failure)
		if name == ace.ActivitySkills {
			ok := i%35 != 6
			id := fmt.Sprintf("skills-%d", i)
			b.Signal(5*time.Millisecond, ace.SignalToolEvent, []ace.ToolEvent{
				{EventID: id + ".use", CallID: id, Kind: ace.KindToolUse, Name: "calculate", At: b.at},
				{EventID: id + ".result", CallID: id, Kind: ace.KindToolResult, Name: "calculate", OK: &ok,
					At: b.at.Add(4 * time.Millisecond), DurationMS: 4}})
			b.Task(time.Millisecond)
		}
		if i%50 == 17 {
			b.Fail(20*time.Millisecond, scheduled, started, fmt.Sprintf("turn %d gave no answer", i))
		} else {
			b.Complete(time.Duration(20+i%60)*time.Millisecond, scheduled, started, map[string]any{
				"turn": i, "answer": fmt.Sprintf("%.3f", float64(17*i)/float64(i+3)),
				"rationale": "net income divided by shareholders' equity, as a fraction"})
		}
		b.Task(time.Millisecond)
		switch i % 20 {
		case 4:
			b.Timer(30*time.Millisecond, fmt.Sprintf("pace-%d", i))
		case 11:
			id := fmt.Sprintf("sub-%d", i)
			b.child(40*time.Millisecond, ace.TaskWorkflow, "ace/"+id, ace.TaskResult{TaskID: id})
		}
	}
	return b.Close(time.Millisecond, map[string]any{"done": true})
}
