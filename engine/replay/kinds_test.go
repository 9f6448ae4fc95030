package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/sdk/workflow"
)

// marker is what a side effect or a local activity leaves.
func (m *made) marker(task int64, name string, details map[string]any) {
	all := map[string]*commonpb.Payloads{}
	for k, v := range details {
		all[k] = encoded(v)
	}
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_MARKER_RECORDED, Attributes: &historypb.HistoryEvent_MarkerRecordedEventAttributes{
		MarkerRecordedEventAttributes: &historypb.MarkerRecordedEventAttributes{MarkerName: name, WorkflowTaskCompletedEventId: task, Details: all}}})
}

func (m *made) sideEffect(task int64, id int, value any) {
	m.marker(task, markerSideEffect, map[string]any{"side-effect-id": id, "data": value})
}

func (m *made) localActivity(task int64, id, kind string) {
	m.marker(task, markerLocalActivity, map[string]any{"data": map[string]any{"ActivityID": id, "ActivityType": kind,
		"ReplayTime": noon, "Attempt": 1, "Backoff": 0}})
}

func (m *made) signalled(name string, arg any) {
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
		WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{SignalName: name, Input: encoded(arg)}}})
}

func (m *made) continued(task int64, kind string) []*historypb.HistoryEvent {
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW, Attributes: &historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{
		WorkflowExecutionContinuedAsNewEventAttributes: &historypb.WorkflowExecutionContinuedAsNewEventAttributes{WorkflowTaskCompletedEventId: task,
			NewExecutionRunId: "r-2", WorkflowType: &commonpb.WorkflowType{Name: kind}, TaskQueue: &taskqueuepb.TaskQueue{Name: "q"}}}})
	return m.events
}

// updated is an update that was accepted and completed in the task. Its worker wrote the
// messages of updates among the commands (flag 3), as workers do since there are updates.
func (m *made) updated(task int64, name string) {
	m.events[task-1].GetWorkflowTaskCompletedEventAttributes().SdkMetadata = &sdkpb.WorkflowTaskCompletedMetadata{LangUsedFlags: []uint32{3, 4}}
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED, Attributes: &historypb.HistoryEvent_WorkflowExecutionUpdateAcceptedEventAttributes{
		WorkflowExecutionUpdateAcceptedEventAttributes: &historypb.WorkflowExecutionUpdateAcceptedEventAttributes{ProtocolInstanceId: "u-1",
			AcceptedRequestMessageId: "u-1/request", AcceptedRequestSequencingEventId: task - 2,
			AcceptedRequest: &updatepb.Request{Meta: &updatepb.Meta{UpdateId: "u-1"}, Input: &updatepb.Input{Name: name, Args: encoded(1)}}}}})
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED, Attributes: &historypb.HistoryEvent_WorkflowExecutionUpdateCompletedEventAttributes{
		WorkflowExecutionUpdateCompletedEventAttributes: &historypb.WorkflowExecutionUpdateCompletedEventAttributes{Meta: &updatepb.Meta{UpdateId: "u-1"},
			AcceptedEventId: int64(len(m.events)), Outcome: &updatepb.Outcome{Value: &updatepb.Outcome_Success{Success: encoded("ok")}}}}})
}

type code = func(workflow.Context) (string, error)

func effects(ctx workflow.Context) (string, error) {
	var n int
	if err := workflow.SideEffect(ctx, func(workflow.Context) any { return 7 }).Get(&n); err != nil {
		return "", err
	}
	return "done", do(withOptions(ctx), "one")
}

func noEffects(ctx workflow.Context) (string, error) { return "done", do(withOptions(ctx), "one") }

func effectHistory() []*historypb.HistoryEvent {
	m := begin("W")
	t := m.task()
	m.sideEffect(t, 1, 7)             // 5
	m.done(m.activity(t, "one"), nil) // 6
	return m.complete(m.task(), "done")
}

func local(kind string) code {
	return func(ctx workflow.Context) (string, error) {
		ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute})
		if err := workflow.ExecuteLocalActivity(ctx, kind).Get(ctx, nil); err != nil {
			return "", err
		}
		return noEffects(ctx)
	}
}

// locals are two local activities at once, each with an activity behind it.
func locals(ctx workflow.Context) (string, error) {
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute})
	ended := 0
	for _, kind := range []string{"slow", "quick"} {
		f := workflow.ExecuteLocalActivity(local, kind)
		workflow.Go(ctx, func(ctx workflow.Context) {
			if f.Get(ctx, nil) == nil && do(withOptions(ctx), "after "+kind) == nil {
				ended++
			}
		})
	}
	return "done", workflow.Await(ctx, func() bool { return ended == 2 })
}

func localsHistory() []*historypb.HistoryEvent {
	m := begin("W")
	t := m.task()
	m.localActivity(t, "2", "quick")
	a := m.activity(t, "after quick")
	m.localActivity(t, "1", "slow")
	b := m.activity(t, "after slow")
	m.done(a, nil)
	m.done(b, nil)
	return m.complete(m.task(), "done")
}

func localHistory() []*historypb.HistoryEvent {
	m := begin("W")
	t := m.task()
	m.localActivity(t, "1", "quick")  // 5
	m.done(m.activity(t, "one"), nil) // 6
	return m.complete(m.task(), "done")
}

// onlyLocals waits for them in the order in which it began them.
func onlyLocals(ctx workflow.Context) (string, error) {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute})
	a, b := workflow.ExecuteLocalActivity(ctx, "slow"), workflow.ExecuteLocalActivity(ctx, "quick")
	return "done", errors.Join(a.Get(ctx, nil), b.Get(ctx, nil))
}

func onlyLocalsHistory() []*historypb.HistoryEvent {
	m := begin("W")
	t := m.task()
	m.localActivity(t, "2", "quick")
	m.localActivity(t, "1", "slow")
	return m.complete(t, "done")
}

func localsRenamed() []*historypb.HistoryEvent {
	events := localsHistory()
	m := &made{events: events[:6]}
	m.localActivity(4, "1", "late")
	return events
}

// signalled waits for a signal and does what it says.
func signalled(name string) code {
	return func(ctx workflow.Context) (string, error) {
		var what string
		workflow.GetSignalChannel(ctx, name).Receive(ctx, &what)
		return "done", do(withOptions(ctx), what)
	}
}

func signalHistory() []*historypb.HistoryEvent {
	m := begin("W")
	m.task()
	m.signalled("go", "one")                 // 5
	m.done(m.activity(m.task(), "one"), nil) // 9
	return m.complete(m.task(), "done")
}

func updatable(name string) code {
	return func(ctx workflow.Context) (string, error) {
		done := false
		err := workflow.SetUpdateHandler(ctx, name, func(workflow.Context, int) (string, error) { done = true; return "ok", nil })
		if err == nil {
			err = workflow.Await(ctx, func() bool { return done })
		}
		if err != nil {
			return "", err
		}
		return noEffects(ctx)
	}
}

func updateHistory() []*historypb.HistoryEvent {
	m := begin("W")
	m.task()
	t := m.task()
	m.updated(t, "change")            // 8, 9
	m.done(m.activity(t, "one"), nil) // 10
	return m.complete(m.task(), "done")
}

func queryable(with bool) code {
	return func(ctx workflow.Context) (string, error) {
		if with {
			if err := workflow.SetQueryHandler(ctx, "state", func() (string, error) { return "fine", nil }); err != nil {
				return "", err
			}
		}
		return noEffects(ctx)
	}
}

func again(ctx workflow.Context) (string, error) {
	if err := do(withOptions(ctx), "one"); err != nil {
		return "", err
	}
	return "", workflow.NewContinueAsNewError(ctx, "W")
}

func plainHistory() []*historypb.HistoryEvent {
	m := begin("W")
	m.done(m.activity(m.task(), "one"), nil) // 5
	return m.complete(m.task(), "done")      // 11
}

// endsBeside ends while another coroutine begins a timer in the same task.
func endsBeside(ctx workflow.Context) (string, error) {
	done := false
	workflow.Go(ctx, func(ctx workflow.Context) {
		if workflow.Await(ctx, func() bool { return done }) == nil {
			_ = workflow.Sleep(ctx, time.Hour)
		}
	})
	err := do(withOptions(ctx), "one")
	done = true
	return "done", err
}

func besideHistory() []*historypb.HistoryEvent {
	m := begin("W")
	m.done(m.activity(m.task(), "one"), nil)
	t := m.task()
	m.timer(t, time.Hour)
	return m.complete(t, "done")
}

func againHistory() []*historypb.HistoryEvent {
	m := begin("W")
	m.done(m.activity(m.task(), "one"), nil)
	return m.continued(m.task(), "W") // 11
}

// What else a workflow is made of, changed or taken away, is named at its event.
func TestMoreDivergences(t *testing.T) {
	for name, c := range map[string]struct {
		code             code
		history          []*historypb.HistoryEvent
		kind             Kind
		event            int64
		expected, actual string
	}{
		"side effect kept":           {effects, effectHistory(), "", 0, "", ""},
		"side effect removed":        {noEffects, effectHistory(), KindMissing, 5, "marker SideEffect", ""},
		"side effect added":          {effects, plainHistory(), KindOther, 5, "activity one", "marker SideEffect"}, // the SDK stops there,
		"side effect becomes local":  {local("quick"), effectHistory(), KindOther, 5, "marker SideEffect", "local activity quick"},
		"local activity kept":        {local("quick"), localHistory(), "", 0, "", ""},
		"local activity removed":     {noEffects, localHistory(), KindMissing, 5, "local activity quick", ""},
		"local activity renamed":     {local("slow"), localHistory(), KindOther, 5, "local activity quick", "local activity slow"},
		"local activities at once":   {locals, localsHistory(), "", 0, "", ""},
		"and no more than those":     {onlyLocals, onlyLocalsHistory(), "", 0, "", ""},
		"one of them renamed":        {locals, localsRenamed(), KindOther, 7, "local activity late", "local activity slow"},
		"signal handler kept":        {signalled("go"), signalHistory(), "", 0, "", ""},
		"signal handler gone":        {signalled("start"), signalHistory(), KindMissing, 9, "activity one", "nothing"},
		"update handler kept":        {updatable("change"), updateHistory(), "", 0, "", ""},
		"update handler gone":        {updatable("other"), updateHistory(), KindMissing, 8, "update change", "nothing"},
		"query handler kept":         {queryable(true), plainHistory(), "", 0, "", ""},
		"query handler gone":         {queryable(false), plainHistory(), "", 0, "", ""}, // queries are in no history
		"ends beside a timer":        {endsBeside, besideHistory(), "", 0, "", ""},
		"continues as new as before": {again, againHistory(), "", 0, "", ""},
		"completes, did continue":    {noEffects, againHistory(), KindResult, 11, "continue as new W", "completion"},
		"continues, did complete":    {again, plainHistory(), KindResult, 11, "completion", "continue as new W"},
	} {
		t.Run(name, func(t *testing.T) {
			v := verifier(c.code, false).Verify(t.Context(), c.history)
			d := v.Divergence
			if c.kind == "" {
				if v.Outcome != Same {
					t.Errorf("%+v %+v", v, d)
				}
				return
			}
			if v.Outcome != Diverged || d == nil {
				t.Fatalf("%+v", v)
			}
			t.Logf("%s (%s)", d.Sentence, d.SDK)
			if d.Kind != c.kind || d.EventID != c.event || c.expected != "" && !strings.HasPrefix(d.Expected.String(), c.expected) ||
				c.actual != "" && !strings.HasPrefix(d.Actual.String(), c.actual) {
				t.Errorf("%s at %d: expected %q, actual %q", d.Kind, d.EventID, d.Expected, d.Actual)
			}
			if d.Sentence == "" || d.Advice == "" || d.EventType == "" {
				t.Errorf("%+v", d)
			}
		})
	}
}

// Code that does not end its turn is named, and does not hold up anybody for long.
func TestStuck(t *testing.T) {
	quit := make(chan struct{})
	defer close(quit)
	for name, c := range map[string]struct {
		code  code
		event int64
	}{
		"loops": {func(ctx workflow.Context) (string, error) {
			if err := do(withOptions(ctx), "one"); err != nil {
				return "", err
			}
			for {
				select {
				case <-quit: // the test is over
					return "", nil
				default:
				}
			}
		}, 11},
		"waits for the world": {func(workflow.Context) (string, error) { <-quit; return "", nil }, 5},
	} {
		v := verifier(c.code, false)
		v.Patience = 50 * time.Millisecond
		got := v.Verify(t.Context(), plainHistory())
		if d := got.Divergence; got.Outcome != Diverged || d == nil || d.Kind != KindStuck || d.EventID != c.event {
			t.Errorf("%s: %+v %+v", name, got, d)
		}
	}
}

// A loop of decisions ends by their number, and is told as what it is.
func TestEndlessDecisions(t *testing.T) {
	v := verifier(func(ctx workflow.Context) (string, error) {
		for {
			workflow.ExecuteActivity(withOptions(ctx), "one")
		}
	}, false)
	got := v.Verify(t.Context(), plainHistory())
	if d := got.Divergence; got.Outcome != Diverged || d == nil || d.EventID == 0 || !strings.Contains(d.SDK, "more than 100000 decisions") {
		t.Errorf("%+v %+v", got, d)
	}
}

// Who no longer wants to know does not wait.
func TestVerifyCancelled(t *testing.T) {
	quit := make(chan struct{})
	defer close(quit)
	ctx, cancel := context.WithCancelCause(t.Context())
	v := verifier(func(workflow.Context) (string, error) { cancel(errors.New("enough")); <-quit; return "", nil }, false)
	if got := v.Verify(ctx, plainHistory()); got.Outcome != Unverified || !strings.Contains(got.Why, "canceled") {
		t.Errorf("%+v", got)
	}
}

// A workflow that nobody registered is viewed, and verifying says why it is not verified.
func TestForeignIsViewed(t *testing.T) {
	m := begin("Elsewhere")
	m.done(m.activity(m.task(), "one"), nil)
	events := m.complete(m.task(), "done")
	if v := verifier(original, false).Verify(t.Context(), events); v.Outcome != Unverified || !strings.Contains(v.Why, `"Elsewhere"`) || !strings.Contains(v.Why, "W") {
		t.Errorf("%+v", v)
	}
	s := NewStepper(events, StepOptions{})
	for pos := 1; pos <= s.Len(); pos++ {
		if f := s.Frame(pos); f.EventID != int64(pos) {
			t.Fatal(fmt.Sprint(f))
		}
	}
}
