package detail

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// take folds a history.
func (m *historyBuilder) take(t *testing.T) *watcher {
	t.Helper()
	w := newWatcher(linkTo(cluster.Deps{}), runs.ID{WorkflowID: "ace/t", RunID: "r"}, nil)
	for _, e := range m.events {
		if err := w.take(e); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (m *historyBuilder) schedule(name string) int64 {
	e := m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
		Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{ActivityType: &commonpb.ActivityType{Name: name}}}})
	return e.EventId
}

func (m *historyBuilder) begin(scheduled int64, attempt int32, last *failurepb.Failure) {
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED,
		Attributes: &historypb.HistoryEvent_ActivityTaskStartedEventAttributes{
			ActivityTaskStartedEventAttributes: &historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: scheduled, Attempt: attempt, LastFailure: last, Identity: "w-1"}}})
}

func (m *historyBuilder) complete(scheduled int64, result *commonpb.Payloads) {
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
		Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
			ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: scheduled, Result: result}}})
}

func application(kind, message string, cause *failurepb.Failure) *failurepb.Failure {
	return &failurepb.Failure{Message: message, Cause: cause,
		FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
			ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: kind, NonRetryable: true}}}
}

// TestCallsAreComplete checks that payloads that are cut in query answers are complete in the list, with the
// events that report them.
func TestCallsAreComplete(t *testing.T) {
	m := &historyBuilder{}
	m.start(ace.TaskInput{TaskID: "t"})
	long := json.RawMessage(`{"text":"` + strings.Repeat("x", 2<<20) + `"}`)
	no := false
	m.signal(ace.ToolEvent{EventID: "1", CallID: "a", Kind: ace.KindToolUse, Name: "look",
		Args: json.RawMessage(`{"n":1}`)})
	m.signal(ace.ToolEvent{EventID: "2", CallID: "a", Kind: ace.KindToolResult, Result: long},
		ace.ToolEvent{EventID: "3", CallID: "b", Kind: ace.KindPermission, Name: "rm", Accepted: &no})
	m.signal(ace.ToolEvent{EventID: "2", CallID: "a", Kind: ace.KindToolResult,
		Result: json.RawMessage(`"told twice"`)})
	d := m.take(t).takeDirty()
	if d.Calls.Len() != 2 {
		t.Fatalf("%d calls", d.Calls.Len())
	}
	a, b := d.Calls.At(0), d.Calls.At(1)
	if a.ID != "a" || !bytes.Equal(a.Result, long) || a.UseEvent != 2 || a.ResultEvent != 3 ||
		a.Event() != 3 || a.Pending {
		t.Errorf("%s: %d bytes, events %d %d", a.ID, len(a.Result), a.UseEvent, a.ResultEvent)
	}
	if b.ID != "b" || b.Accepted || b.UseEvent != 0 || b.ResultEvent != 3 {
		t.Errorf("%+v", b)
	}
	if d.Calls.Find("b") != b || d.Calls.Find("c") != nil {
		t.Error("a call is not found by its id")
	}
	if got := d.Skills.Recent[1].Result; len(got) > 2*ace.PreviewBytes {
		t.Errorf("the answer holds %d bytes", len(got))
	}
}

// TestSessionResultKeepsLongerPayloads ends a session whose result holds previews only.
func TestSessionResultKeepsLongerPayloads(t *testing.T) {
	m := &historyBuilder{}
	m.start(ace.TaskInput{TaskID: "t"})
	long := json.RawMessage(`"` + strings.Repeat("y", 5000) + `"`)
	m.signal(ace.ToolEvent{EventID: "1", CallID: "a", Kind: ace.KindToolUse, Name: "look", Args: long})
	at := m.schedule(ace.ActivitySkills)
	m.begin(at, 1, nil)
	m.complete(at, jsonPayloads(ace.SkillSessionResult{Log: &ace.Ref{SHA256: strings.Repeat("0", 64),
		Size: 9},
		Invocations: []ace.Invocation{{ID: "a", Name: "look", Args: ace.Preview(long), Accepted: true,
			OK: true}, {ID: "z", Name: "look", Accepted: true, OK: true}}}))
	d := m.take(t).takeDirty()
	a, z := d.Calls.At(0), d.Calls.At(1)
	if !bytes.Equal(a.Args, long) || a.UseEvent != 2 || a.SessionEvent != 5 || !a.OK || z.SessionEvent != 5 ||
		z.Event() != 5 {
		t.Errorf("%d bytes of arguments, %+v", len(a.Args), z)
	}
	if d.CallLog == nil || d.CallLog.Size != 9 {
		t.Errorf("log %+v", d.CallLog)
	}
}

// TestPublishedCallsDoNotChange keeps a published list while the run continues.
func TestPublishedCallsDoNotChange(t *testing.T) {
	events := longHistory(1000, 0)
	w := newWatcher(linkTo(cluster.Deps{}), runs.ID{WorkflowID: "ace/t", RunID: "r"}, nil)
	var held []histories.CallList
	var want []string
	state := func(l histories.CallList) string {
		var b strings.Builder
		l.All(func(_ int, c *histories.ToolCall) bool {
			fmt.Fprint(&b, c.ID, c.Pending, c.ResultEvent, ";")
			return true
		})
		return b.String()
	}
	for i, e := range events {
		if err := w.take(e); err != nil {
			t.Fatal(err)
		}
		if i%97 == 0 {
			d := w.takeDirty()
			held, want = append(held, d.Calls), append(want, state(d.Calls))
		}
	}
	for i, l := range held {
		if state(l) != want[i] {
			t.Fatalf("list %d changed after it was published", i)
		}
	}
	if last := w.takeDirty().Calls; last.Len() != 1000 || last.At(999).ID != "call-999" ||
		last.At(999).Pending {
		t.Errorf("%d calls", last.Len())
	}
}

func TestActivitiesTellTheirAttempts(t *testing.T) {
	m := &historyBuilder{}
	m.start(ace.TaskInput{TaskID: "t"})
	gen := m.schedule(ace.ActivityGenerator)
	m.events[len(m.events)-1].EventTime.Seconds -= 5
	m.begin(gen, 3, application("Overloaded", "529", nil))
	m.complete(gen, jsonPayloads(ace.GeneratorResult{Plan: "p"}))
	skills := m.schedule(ace.ActivitySkills)
	m.begin(skills, 1, nil)
	failure := &failurepb.Failure{Message: "activity error", Cause: application("BadTool", "no such tool",
		application("", "errno 2", nil)),
		FailureInfo: &failurepb.Failure_ActivityFailureInfo{ActivityFailureInfo: &failurepb.ActivityFailureInfo{
			ActivityType: &commonpb.ActivityType{Name: ace.ActivitySkills},
			RetryState:   enumspb.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED}}}
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED,
		Attributes: &historypb.HistoryEvent_ActivityTaskFailedEventAttributes{
			ActivityTaskFailedEventAttributes: &historypb.ActivityTaskFailedEventAttributes{ScheduledEventId: skills, Failure: failure.Cause, RetryState: enumspb.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED}}})
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionFailedEventAttributes{
			WorkflowExecutionFailedEventAttributes: &historypb.WorkflowExecutionFailedEventAttributes{Failure: failure, NewExecutionRunId: "r2"}}})
	d := m.take(t).takeDirty()
	g, s := d.Activities[0], d.Activities[1]
	if g.Phase != ace.PhaseGenerator || g.Attempt != 3 || g.Waited().Seconds() < 5 ||
		g.LastError.Message != "529" || g.Failure != nil || g.Event() != 4 {
		t.Errorf("%+v", g)
	}
	if s.Failure == nil || s.Failure.Message != "no such tool" || s.Retry != "out of attempts" ||
		len(s.Causes) != 2 {
		t.Errorf("%+v", s)
	}
	if len(d.Causes) != 3 || d.Causes[0].Activity != ace.ActivitySkills ||
		d.Causes[0].Retry != "out of attempts" || d.Causes[2].Message != "errno 2" {
		t.Errorf("causes %+v", d.Causes)
	}
	if d.Lineage.Next != "r2" || d.CloseEvent != int64(len(m.events)) || d.Plan != "p" {
		t.Errorf("%+v, closed at %d", d.Lineage, d.CloseEvent)
	}
}

func TestSealedPayloadsAreTold(t *testing.T) {
	m := &historyBuilder{}
	m.start(ace.TaskInput{TaskID: "t"})
	gen := m.schedule(ace.ActivityGenerator)
	m.complete(gen, &commonpb.Payloads{Payloads: []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("binary/encrypted")}, Data: make([]byte, 77)}}})
	for range histories.MaxEncoded + 5 {
		m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
				WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{SignalName: "x", Input: &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: []byte("?")}}}}}})
	}
	d := m.take(t).takeDirty()
	if got := d.Encoded[0]; got != (histories.EncodedPayload{Event: 3, What: "result of run_generator",
		Encoding: "binary/encrypted", Size: 77}) {
		t.Errorf("%+v", got)
	}
	if len(d.Encoded) != histories.MaxEncoded || d.EncodedDropped != 6 ||
		d.Encoded[1].Encoding != "of unknown encoding" {
		t.Errorf("%d, %d dropped, %+v", len(d.Encoded), d.EncodedDropped, d.Encoded[1])
	}
}

func TestLineage(t *testing.T) {
	var l histories.Lineage
	l.Apply(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{ContinuedExecutionRunId: "before", FirstExecutionRunId: "first", OriginalExecutionRunId: "this",
				Initiator:               enumspb.CONTINUE_AS_NEW_INITIATOR_RETRY,
				ParentWorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: "p", RunId: "pr"}}}})
	if want := (histories.Lineage{Prev: "before", First: "first", How: "retry", Parent: "p", ParentRun: "pr",
		Origin: l.Origin}); l != want {
		t.Errorf("%+v", l)
	}
	if l.Origin.RunID != "this" || !l.Known() || (histories.Lineage{Origin: l.Origin}).Known() {
		t.Errorf("%+v", l)
	}
	l.Apply(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED, EventId: 9,
		Attributes: &historypb.HistoryEvent_WorkflowTaskFailedEventAttributes{
			WorkflowTaskFailedEventAttributes: &historypb.WorkflowTaskFailedEventAttributes{Cause: enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW, BaseRunId: "base", NewRunId: "new"}}})
	if l.Prev != "before" || l.How != "reset" || *l.Reset != (history.ResetFrom{RunID: "base", Event: 8}) ||
		l.Origin.RunID != "new" {
		t.Errorf("%+v", l)
	}
}

func TestRefsIn(t *testing.T) {
	h := strings.Repeat("ab", 32)
	for raw, want := range map[string]int{
		`{"sha256":"` + h + `","size":1}`:                             1,
		`{"a":[{"b":{"sha256":"` + h + `"}},{"sha256":"` + h + `"}]}`: 2,
		`{"sha256":"short"}`:                                          0, `"sha256"`: 0, `{"sha256":1}`: 0,
		`nonsense "sha256"`: 0,
	} {
		if got := histories.RefsIn([]byte(raw)); len(got) != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
}
