package workflows_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/flow"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/history"
	"acescope/engine/workflows"
)

func recorded(t *testing.T) map[string]*historypb.History {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded histories: %v", err)
	}
	all := map[string]*historypb.History{}
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[filepath.Base(path)] = h
	}
	return all
}

// replayer replays a history with the real workflow code and returns its query handlers.
func replayer(t *testing.T, i interceptor.WorkerInterceptor) worker.WorkflowReplayer {
	t.Helper()
	o := worker.WorkflowReplayerOptions{}
	if i != nil {
		o.Interceptors = []interceptor.WorkerInterceptor{i}
	}
	r, err := worker.NewWorkflowReplayerWithOptions(o)
	if err != nil {
		t.Fatal(err)
	}
	workflows.Register(registry{r})
	return r
}

type registry struct{ worker.WorkflowReplayer }

func (registry) RegisterDynamicWorkflow(any, workflow.DynamicRegisterOptions) {}

var quiet = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))

// TestReplay is the determinism check of every recorded history.
func TestReplay(t *testing.T) {
	for name, h := range recorded(t) {
		t.Run(name, func(t *testing.T) {
			if err := replayer(t, nil).ReplayWorkflowHistory(quiet, h); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func kindOf(h *historypb.History) string {
	return h.Events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()
}

func isTask(h *historypb.History) bool { return kindOf(h) == ace.TaskWorkflow }

// queries is the number of queries that each workflow answers.
var queries = map[string]int{ace.TaskWorkflow: 3, ace.ExperimentWorkflow: 1, session.Workflow: 1,
	run.Workflow: 1, flow.Workflow: 1}

// TestOneFold checks that at every event of every recorded history, the fold of the history
// equals the workflow's own answers.
func TestOneFold(t *testing.T) {
	kinds := map[string]int{}
	for name, h := range recorded(t) {
		kinds[kindOf(h)]++
		if kindOf(h) == flow.Workflow {
			continue // see TestFlowFold
		}
		t.Run(name, func(t *testing.T) {
			for n := 1; n <= len(h.Events); n++ {
				want := answersOfWorkflow(t, h, n)
				got := answersOfFold(t, h, n)
				if q := session.QuerySession; !reflect.DeepEqual(got[q], want[q]) {
					got[q] = withNextCommands(t, h, n)
				}
				for query, w := range want {
					if !reflect.DeepEqual(got[query], w) {
						t.Fatalf("event %d of %d (%s), %s:\nfold     %v\nworkflow %v", n, len(h.Events),
							h.Events[n-1].GetEventType(), query, got[query], w)
					}
				}
			}
		})
	}
	for kind := range queries {
		if kinds[kind] == 0 {
			t.Errorf("no history of %s is recorded", kind)
		}
	}
}

// TestFlowFold checks that at the end of every recorded run of a flow, the fold of its history equals the
// workflow's own answer. Before the end it may lack what happened since the last operation or wait.
func TestFlowFold(t *testing.T) {
	folded := 0
	for name, h := range recorded(t) {
		if kindOf(h) != flow.Workflow {
			continue
		}
		folded++
		t.Run(name, func(t *testing.T) {
			want := answersOfWorkflow(t, h, len(h.Events))[flow.QueryFlow]
			if got := plain(t, flow.Fold(h.Events)); !reflect.DeepEqual(got, want) {
				t.Errorf("fold     %v\nworkflow %v", got, want)
			}
			for n := range h.Events { // no part of a history breaks it
				flow.Fold(h.Events[:n])
			}
		})
	}
	if folded < 6 {
		t.Errorf("%d histories of flows", folded)
	}
}

// foldEvents applies the facts that a decoder reads from events.
func foldEvents[F any](t *testing.T, events []*historypb.HistoryEvent,
	decode func(*historypb.HistoryEvent) (F, bool, error), apply func(F)) {
	t.Helper()
	for _, e := range events {
		fact, ok, err := decode(e)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			apply(fact)
		}
	}
}

func answersOfFold(t *testing.T, h *historypb.History, n int) map[string]any {
	t.Helper()
	switch kindOf(h) {
	case session.Workflow:
		var s session.State
		foldEvents(t, h.Events[:n], (&session.Decoder{}).Fact, s.Apply)
		return map[string]any{session.QuerySession: plain(t, s)}
	case run.Workflow:
		var s run.State
		foldEvents(t, h.Events[:withCommands(h, n)], (&run.Decoder{}).Fact, s.Apply)
		return map[string]any{run.QueryRun: plain(t, s)}
	case ace.ExperimentWorkflow:
		var s ace.ExperimentState
		foldEvents(t, h.Events[:n], (&history.ExperimentDecoder{}).Fact, func(f ace.ExperimentFact) {
			if f.Closed == nil { // the workflow does not see it
				s.Apply(f)
			}
		})
		return map[string]any{ace.QueryExperiment: plain(t, s.Progress)}
	}
	var s ace.State
	foldEvents(t, h.Events[:n], (&history.Decoder{}).Fact, func(f ace.Fact) {
		if f.Kind != ace.FactClosed { // the workflow does not see it
			s.Apply(f)
		}
	})
	return map[string]any{
		ace.QueryPhase:  plain(t, s.CurrentPhase()),
		ace.QuerySkills: plain(t, s.SkillUsage()),
		ace.QueryDelta:  plain(t, s.PlaybookDelta()),
	}
}

// withCommands returns n, or the end of the commands if event n completes a workflow task: the
// dispatcher's answer within a task of a run is recorded like that, and a reader sees all or none.
func withCommands(h *historypb.History, n int) int {
	if h.Events[n-1].GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED || isCommand(h, n-1) {
		for isCommand(h, n) && !isClosing(h.Events[n]) {
			n++
		}
	}
	return n
}

// withNextCommands returns the fold including the commands that the workflow issues next: reports and the
// next turn. The synthetic workflow task after event n issues them at once, while the history has
// them only after the real task. A real query is answered after that.
func withNextCommands(t *testing.T, h *historypb.History, n int) any {
	t.Helper()
	end := n
	for isCommand(h, end) {
		end++
	}
	var s session.State
	foldEvents(t, h.Events[:end], (&session.Decoder{}).Fact, s.Apply)
	for r, ok := s.NextReport(); ok; r, ok = s.NextReport() {
		s.Apply(session.Reported(r.Report.MessageID))
	}
	if s.Current == nil && s.Host != nil && s.Status != session.Ended && len(s.Queue) > 0 {
		s.Apply(session.Fact{Kind: session.FactTurnBegan, Turn: &session.TurnInput{Turn: s.Turns + 1,
			Messages: s.NextMessages()}})
	}
	return plain(t, s)
}

// plain converts a value through JSON, as a query's client sees it.
func plain(t *testing.T, v any) (out any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func answersOfWorkflow(t *testing.T, h *historypb.History, n int) map[string]any {
	t.Helper()
	capture := &queryRecorder{handlers: map[string]any{}}
	prefix := asQueried(h, n)
	// The commands of the last, synthetic workflow task are not in the history, so a mismatch
	// there is expected; TestReplay checks the history itself.
	if err := replayer(t, capture).ReplayWorkflowHistory(quiet, prefix); err != nil &&
		!strings.Contains(err.Error(), "TMPRL1100") {
		t.Fatalf("replay to event %d: %v", n, err)
	}
	answers := map[string]any{}
	for query, handler := range capture.handlers {
		out := reflect.ValueOf(handler).Call(nil)
		answers[query] = plain(t, out[0].Interface())
	}
	if len(answers) != queries[kindOf(h)] {
		t.Fatalf("event %d: %d query handlers", n, len(answers))
	}
	return answers
}

// asQueried returns the history up to event n as a worker receives it for a query: the server
// first lets it process all events in a workflow task. The replayer ignores the last task of a
// history, so a synthetic task is appended.
func asQueried(h *historypb.History, n int) *historypb.History {
	events := append([]*historypb.HistoryEvent{}, h.Events[:n]...)
	if isClosing(h.Events[n-1]) {
		return h
	}
	// Command events belong to the workflow task that was completed before them; a worker
	// receives all of them or none.
	if h.Events[n-1].GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED || isCommand(h, n-1) {
		for ; isCommand(h, n); n++ {
			events = append(events, h.Events[n])
		}
		if n == len(h.Events) {
			return h
		}
	}
	switch events[n-1].GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
		events = append(events, event(n+1, enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED))
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED:
	default:
		events = append(events, event(n+1, enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED),
			event(n+2, enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED))
	}
	n = len(events)
	return &historypb.History{Events: append(events, event(n+1, enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED),
		event(n+2, enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED),
		event(n+3, enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED))}
}

// event returns a synthetic workflow task event that follows the previous event.
func event(id int, kind enumspb.EventType) *historypb.HistoryEvent {
	e := &historypb.HistoryEvent{EventId: int64(id), EventType: kind, EventTime: timestamppb.Now()}
	switch kind {
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
		e.Attributes = &historypb.HistoryEvent_WorkflowTaskScheduledEventAttributes{
			WorkflowTaskScheduledEventAttributes: &historypb.WorkflowTaskScheduledEventAttributes{Attempt: 1}}
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED:
		e.Attributes = &historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{
			WorkflowTaskStartedEventAttributes: &historypb.WorkflowTaskStartedEventAttributes{ScheduledEventId: int64(id) - 1}}
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
		e.Attributes = &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
			WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{
				ScheduledEventId: int64(id) - 2, StartedEventId: int64(id) - 1}}
	}
	return e
}

func isCommand(h *historypb.History, n int) bool {
	if n >= len(h.Events) {
		return false
	}
	switch h.Events[n].GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
		enumspb.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED, enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED,
		enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED, enumspb.EVENT_TYPE_MARKER_RECORDED,
		enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
		return true
	}
	return isClosing(h.Events[n])
}

func isClosing(e *historypb.HistoryEvent) bool {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		return true
	}
	return false
}

// TestFoldAnyOrder swaps tool events with adjacent results, as a worker that reads both in one
// workflow task may.
func TestFoldAnyOrder(t *testing.T) {
	swapped := 0
	for name, h := range recorded(t) {
		if !isTask(h) {
			continue
		}
		facts := factsOf(t, h)
		want := fmt.Sprint(foldOf(facts))
		for i := 1; i+1 < len(facts); i++ {
			if facts[i].Kind != ace.FactToolEvents && facts[i+1].Kind != ace.FactToolEvents {
				continue
			}
			swapped++
			other := append([]ace.Fact{}, facts...)
			other[i], other[i+1] = other[i+1], other[i]
			if got := fmt.Sprint(foldOf(other)); got != want {
				t.Fatalf("%s: facts %d and %d swapped:\n%s\n%s", name, i, i+1, got, want)
			}
		}
	}
	if swapped == 0 {
		t.Fatal("no recorded history has tool events")
	}
}

func factsOf(t *testing.T, h *historypb.History) (facts []ace.Fact) {
	t.Helper()
	foldEvents(t, h.Events, (&history.Decoder{}).Fact, func(f ace.Fact) { facts = append(facts, f) })
	return facts
}

func foldOf(facts []ace.Fact) []string {
	var s ace.State
	for _, f := range facts {
		s.Apply(f)
	}
	var all []string
	for _, v := range []any{s.CurrentPhase(), s.SkillUsage(), s.PlaybookDelta()} {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		all = append(all, string(data))
	}
	return all
}

// queryRecorder records the query handlers that a workflow sets.
type queryRecorder struct {
	interceptor.WorkerInterceptorBase
	handlers map[string]any
}

func (c *queryRecorder) InterceptWorkflow(_ workflow.Context,
	next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &inbound{interceptor.WorkflowInboundInterceptorBase{Next: next}, c}
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	c *queryRecorder
}

func (i *inbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&outbound{interceptor.WorkflowOutboundInterceptorBase{Next: next}, i.c})
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	c *queryRecorder
}

func (o *outbound) SetQueryHandler(ctx workflow.Context, query string, handler any) error {
	o.c.handlers[query] = handler
	return o.Next.SetQueryHandler(ctx, query, handler)
}
