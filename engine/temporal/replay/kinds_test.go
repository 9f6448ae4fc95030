package replay

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/temporal/history"
	"acescope/engine/temporal/replay/replaytest"
)

// marker adds the marker of a side effect or a local activity.
func marker(m *replaytest.History, task int64, name string, details map[string]any) {
	all := map[string]*commonpb.Payloads{}
	for k, v := range details {
		all[k] = replaytest.Encoded(v)
	}
	m.Append(&historypb.MarkerRecordedEventAttributes{MarkerName: name, WorkflowTaskCompletedEventId: task,
		Details: all})
}

func sideEffect(m *replaytest.History, task int64, id int, value any) {
	marker(m, task, history.MarkerSideEffect, map[string]any{"side-effect-id": id, "data": value})
}

func localActivity(m *replaytest.History, task int64, id, kind string) {
	marker(m, task, history.MarkerLocalActivity,
		map[string]any{"data": map[string]any{"ActivityID": id, "ActivityType": kind,
			"ReplayTime": replaytest.Noon, "Attempt": 1, "Backoff": 0}})
}

func addSignal(m *replaytest.History, name string, arg any) {
	m.Append(&historypb.WorkflowExecutionSignaledEventAttributes{SignalName: name,
		Input: replaytest.Encoded(arg)})
}

func continued(m *replaytest.History, task int64, kind string) []*historypb.HistoryEvent {
	m.Append(&historypb.WorkflowExecutionContinuedAsNewEventAttributes{WorkflowTaskCompletedEventId: task,
		NewExecutionRunId: "r-2", WorkflowType: &commonpb.WorkflowType{Name: kind},
		TaskQueue: &taskqueuepb.TaskQueue{Name: "q"}})
	return m.Events
}

// updated adds an update that was accepted and completed in the task. Flag 3 says that the
// worker ordered the update messages among the commands.
func updated(m *replaytest.History, task int64, name string) {
	m.Events[task-1].GetWorkflowTaskCompletedEventAttributes().SdkMetadata = &sdkpb.WorkflowTaskCompletedMetadata{LangUsedFlags: []uint32{3, 4}}
	m.Append(&historypb.WorkflowExecutionUpdateAcceptedEventAttributes{ProtocolInstanceId: "u-1",
		AcceptedRequestMessageId: "u-1/request", AcceptedRequestSequencingEventId: task - 2,
		AcceptedRequest: &updatepb.Request{Meta: &updatepb.Meta{UpdateId: "u-1"},
			Input: &updatepb.Input{Name: name, Args: replaytest.Encoded(1)}}})
	m.Append(&historypb.WorkflowExecutionUpdateCompletedEventAttributes{Meta: &updatepb.Meta{UpdateId: "u-1"},
		AcceptedEventId: int64(len(m.Events)),
		Outcome: &updatepb.Outcome{Value: &updatepb.Outcome_Success{Success: replaytest.Encoded(
			"ok")}}})
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
	m := replaytest.Begin("W")
	t := m.Task()
	sideEffect(m, t, 1, 7)            // 5
	m.Done(m.Activity(t, "one"), nil) // 6
	return m.Complete(m.Task(), "done")
}

func local(kind string) code {
	return func(ctx workflow.Context) (string, error) {
		ctx = workflow.WithLocalActivityOptions(ctx,
			workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute})
		if err := workflow.ExecuteLocalActivity(ctx, kind).Get(ctx, nil); err != nil {
			return "", err
		}
		return noEffects(ctx)
	}
}

// locals runs two parallel local activities, each followed by an activity.
func locals(ctx workflow.Context) (string, error) {
	local := workflow.WithLocalActivityOptions(ctx,
		workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute})
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
	m := replaytest.Begin("W")
	t := m.Task()
	localActivity(m, t, "2", "quick")
	a := m.Activity(t, "after quick")
	localActivity(m, t, "1", "slow")
	b := m.Activity(t, "after slow")
	m.Done(a, nil)
	m.Done(b, nil)
	return m.Complete(m.Task(), "done")
}

func localHistory() []*historypb.HistoryEvent {
	m := replaytest.Begin("W")
	t := m.Task()
	localActivity(m, t, "1", "quick") // 5
	m.Done(m.Activity(t, "one"), nil) // 6
	return m.Complete(m.Task(), "done")
}

// onlyLocals waits for two local activities in the order of their start.
func onlyLocals(ctx workflow.Context) (string, error) {
	ctx = workflow.WithLocalActivityOptions(ctx,
		workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute})
	a, b := workflow.ExecuteLocalActivity(ctx, "slow"), workflow.ExecuteLocalActivity(ctx, "quick")
	return "done", errors.Join(a.Get(ctx, nil), b.Get(ctx, nil))
}

func onlyLocalsHistory() []*historypb.HistoryEvent {
	m := replaytest.Begin("W")
	t := m.Task()
	localActivity(m, t, "2", "quick")
	localActivity(m, t, "1", "slow")
	return m.Complete(t, "done")
}

func localsRenamed() []*historypb.HistoryEvent {
	events := localsHistory()
	m := &replaytest.History{Events: events[:6]}
	localActivity(m, 4, "1", "late")
	return events
}

// signaled waits for a signal and runs the activity that it names.
func signaled(name string) code {
	return func(ctx workflow.Context) (string, error) {
		var what string
		workflow.GetSignalChannel(ctx, name).Receive(ctx, &what)
		return "done", do(withOptions(ctx), what)
	}
}

func signalHistory() []*historypb.HistoryEvent {
	m := replaytest.Begin("W")
	m.Task()
	addSignal(m, "go", "one")                // 5
	m.Done(m.Activity(m.Task(), "one"), nil) // 9
	return m.Complete(m.Task(), "done")
}

func updatable(name string) code {
	return func(ctx workflow.Context) (string, error) {
		done := false
		err := workflow.SetUpdateHandler(ctx, name, func(workflow.Context, int) (string, error) {
			done = true
			return "ok", nil
		})
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
	m := replaytest.Begin("W")
	m.Task()
	t := m.Task()
	updated(m, t, "change")           // 8, 9
	m.Done(m.Activity(t, "one"), nil) // 10
	return m.Complete(m.Task(), "done")
}

func queryable(with bool) code {
	return func(ctx workflow.Context) (string, error) {
		if with {
			if err := workflow.SetQueryHandler(ctx, "state",
				func() (string, error) { return "fine", nil }); err != nil {
				return "", err
			}
		}
		return noEffects(ctx)
	}
}

func continueAsNew(ctx workflow.Context) (string, error) {
	if err := do(withOptions(ctx), "one"); err != nil {
		return "", err
	}
	return "", workflow.NewContinueAsNewError(ctx, "W")
}

func plainHistory() []*historypb.HistoryEvent {
	m := replaytest.Begin("W")
	m.Done(m.Activity(m.Task(), "one"), nil) // 5
	return m.Complete(m.Task(), "done")      // 11
}

// completeBesideTimer completes while another coroutine starts a timer in the same task.
func completeBesideTimer(ctx workflow.Context) (string, error) {
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

func besideTimerHistory() []*historypb.HistoryEvent {
	m := replaytest.Begin("W")
	m.Done(m.Activity(m.Task(), "one"), nil)
	t := m.Task()
	m.Timer(t, time.Hour)
	return m.Complete(t, "done")
}

func continueHistory() []*historypb.HistoryEvent {
	m := replaytest.Begin("W")
	m.Done(m.Activity(m.Task(), "one"), nil)
	return continued(m, m.Task(), "W") // 11
}

// Changed and removed commands of the other kinds are reported at their events.
func TestMoreDivergences(t *testing.T) {
	for name, c := range map[string]struct {
		code             code
		history          []*historypb.HistoryEvent
		kind             Kind
		event            int64
		expected, actual string
	}{
		"side effect kept":    {effects, effectHistory(), "", 0, "", ""},
		"side effect removed": {noEffects, effectHistory(), KindMissing, 5, "marker SideEffect", ""},
		// the SDK stops there,
		"side effect added": {effects, plainHistory(), KindOther, 5, "activity one", "marker SideEffect"},
		"side effect becomes local": {local("quick"), effectHistory(), KindOther, 5, "marker SideEffect",
			"local activity quick"},
		"local activity kept":    {local("quick"), localHistory(), "", 0, "", ""},
		"local activity removed": {noEffects, localHistory(), KindMissing, 5, "local activity quick", ""},
		"local activity renamed": {local("slow"), localHistory(), KindOther, 5, "local activity quick",
			"local activity slow"},
		"local activities at once": {locals, localsHistory(), "", 0, "", ""},
		"only local activities":    {onlyLocals, onlyLocalsHistory(), "", 0, "", ""},
		"one of them renamed": {locals, localsRenamed(), KindOther, 7, "local activity late",
			"local activity slow"},
		"signal handler kept": {signaled("go"), signalHistory(), "", 0, "", ""},
		"signal handler gone": {signaled("start"), signalHistory(), KindMissing, 9, "activity one",
			"nothing"},
		"update handler kept": {updatable("change"), updateHistory(), "", 0, "", ""},
		"update handler gone": {updatable("other"), updateHistory(), KindMissing, 8, "update change",
			"nothing"},
		"query handler kept": {queryable(true), plainHistory(), "", 0, "", ""},
		// queries are in no history
		"query handler gone":         {queryable(false), plainHistory(), "", 0, "", ""},
		"ends beside a timer":        {completeBesideTimer, besideTimerHistory(), "", 0, "", ""},
		"continues as new as before": {continueAsNew, continueHistory(), "", 0, "", ""},
		"completes, did continue": {noEffects, continueHistory(), KindResult, 11, "continue as new W",
			"completion"},
		"continues, did complete": {continueAsNew, plainHistory(), KindResult, 11, "completion",
			"continue as new W"},
	} {
		t.Run(name, func(t *testing.T) {
			v := verifier(c.code, false).Verify(t.Context(), c.history)
			d := v.Divergence
			if c.kind == "" {
				if v.Outcome != Deterministic {
					t.Errorf("%+v %+v", v, d)
				}
				return
			}
			if v.Outcome != Nondeterministic || d == nil {
				t.Fatalf("%+v", v)
			}
			t.Logf("%s (%s)", d.Sentence, d.SDK)
			if d.Kind != c.kind || d.EventID != c.event || c.expected != "" &&
				!strings.HasPrefix(d.Expected.String(), c.expected) ||
				c.actual != "" && !strings.HasPrefix(d.Actual.String(), c.actual) {
				t.Errorf("%s at %d: expected %q, actual %q", d.Kind, d.EventID, d.Expected, d.Actual)
			}
			if d.Sentence == "" || d.Advice == "" || d.EventType == "" {
				t.Errorf("%+v", d)
			}
		})
	}
}

// Code that does not yield is reported after the verifier's patience.
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
		"waits outside the workflow": {func(workflow.Context) (string, error) { <-quit; return "", nil }, 5},
	} {
		v := verifier(c.code, false)
		v.Patience = 50 * time.Millisecond
		got := v.Verify(t.Context(), plainHistory())
		if d := got.Divergence; got.Outcome != Nondeterministic || d == nil || d.Kind != KindStuck ||
			d.EventID != c.event {
			t.Errorf("%s: %+v %+v", name, got, d)
		}
	}
}

// A loop of decisions is stopped by their number.
func TestEndlessDecisions(t *testing.T) {
	v := verifier(func(ctx workflow.Context) (string, error) {
		for {
			workflow.ExecuteActivity(withOptions(ctx), "one")
		}
	}, false)
	got := v.Verify(t.Context(), plainHistory())
	if d := got.Divergence; got.Outcome != Nondeterministic || d == nil || d.EventID == 0 ||
		!strings.Contains(d.SDK, "more than 100000 decisions") {
		t.Errorf("%+v %+v", got, d)
	}
}

// Verify returns when its context ends.
func TestVerifyCanceled(t *testing.T) {
	quit := make(chan struct{})
	defer close(quit)
	ctx, cancel := context.WithCancelCause(t.Context())
	v := verifier(func(workflow.Context) (string, error) {
		cancel(errors.New("enough"))
		<-quit
		return "", nil
	}, false)
	if got := v.Verify(ctx, plainHistory()); got.Outcome != Unverified ||
		!strings.Contains(got.Why, "canceled") {
		t.Errorf("%+v", got)
	}
}

// Verify has no verdict on a workflow type that is not registered.
func TestVerifyUnregistered(t *testing.T) {
	m := replaytest.Begin("Elsewhere")
	m.Done(m.Activity(m.Task(), "one"), nil)
	events := m.Complete(m.Task(), "done")
	if v := verifier(original, false).Verify(t.Context(), events); v.Outcome != Unverified ||
		!strings.Contains(v.Why, `"Elsewhere"`) {
		t.Errorf("%+v", v)
	}
}
