package sources

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/historytest"
	"acescope/sources/runs"
)

// watchedEvents reads the events of a run from a client and waits for published logs.
type watchedEvents struct {
	t     *testing.T
	store *Feeds
}

func watchEvents(t *testing.T, c *historytest.Client, runID string) *watchedEvents {
	t.Helper()
	s := NewFeeds()
	s.Link.Deps = cluster.Deps{Client: c, Namespace: "test"}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	s.Select(runs.ID{WorkflowID: "w", RunID: runID})
	s.Events.Look(true)
	go func() {
		defer close(done)
		s.Events.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return &watchedEvents{t, s}
}

// until waits for a log that satisfies a condition.
func (w *watchedEvents) until(what string, ok func(*histories.EventLog) bool) *histories.EventLog {
	w.t.Helper()
	limit := time.After(time.Minute)
	for {
		if l := w.store.Events.Value(); l != nil && ok(l) {
			return l
		}
		select {
		case <-w.store.Link.Changed():
		case <-limit:
			w.t.Fatalf("never: %s; the log is %+v", what, w.store.Events.Value())
		}
	}
}

func whole(t *testing.T, l *histories.EventLog, n int) {
	t.Helper()
	if l.Len() != n {
		t.Fatalf("%d events, want %d", l.Len(), n)
	}
	for i := range n {
		if id := l.Row(i).ID; id != int64(i+1) {
			t.Fatalf("row %d is event %d", i, id)
		}
	}
}

func TestNewestPageComesFirst(t *testing.T) {
	c := historytest.NewClient()
	events := historytest.Long(5_000).Events
	c.Put("r", events...)
	gate := make(chan struct{})
	calls := 0
	c.Fail(func(call string) error {
		if call == "forward" {
			if calls++; calls > 1 {
				<-gate
			}
		}
		return nil
	})
	w := watchEvents(t, c, "r")
	l := w.until("the newest page", func(l *histories.EventLog) bool { return l.Len() > 0 })
	if l.Row(l.Len()-1).ID != int64(len(events)) || l.Unread == 0 || l.Len() > cluster.NewestBatches {
		t.Errorf("first are %d events to %d, %d left", l.Len(), l.Row(l.Len()-1).ID, l.Unread)
	}
	close(gate)
	l = w.until("all", func(l *histories.EventLog) bool { return !l.Reading })
	whole(t, l, len(events))
	if !l.Closed || l.Unread != 0 || l.Err != "" {
		t.Errorf("at the end: %+v", l)
	}
	if n := c.Calls("backward"); n != 1 {
		t.Errorf("%d pages were read backward", n)
	}
}

func TestFollowingEvents(t *testing.T) {
	c := historytest.NewClient()
	events := historytest.Long(2_000).Events
	c.Put("r", events[:1_200]...)
	w := watchEvents(t, c, "r")
	whole(t, w.until("what is recorded", func(l *histories.EventLog) bool {
		return l.Len() == 1_200 && !l.Reading
	}), 1_200)
	for i := 1_200; i < len(events); i += 100 {
		c.Put("r", events[i:min(i+100, len(events))]...)
		w.until("what happened", func(l *histories.EventLog) bool {
			return l.Len() == min(i+100, len(events))
		})
	}
	whole(t, w.until("the end", func(l *histories.EventLog) bool { return l.Closed }), len(events))
}

// Events stay while they are not shown; only new events are read afterwards.
func TestLookingAgain(t *testing.T) {
	c := historytest.NewClient()
	events := historytest.Long(3_000).Events
	c.Put("r", events[:2_000]...)
	w := watchEvents(t, c, "r")
	w.until("all", func(l *histories.EventLog) bool { return l.Len() == 2_000 && !l.Reading })
	w.store.Events.Look(false)
	c.Put("r", events[2_000:]...)
	before := c.Calls("backward") + c.Calls("forward")
	w.store.Events.Look(true)
	whole(t, w.until("the rest", func(l *histories.EventLog) bool {
		return l.Len() == len(events) && !l.Reading
	}), len(events))
	if n := c.Calls("backward") + c.Calls("forward") - before; n > 12 {
		t.Errorf("%d pages were read for 1,000 new events", n)
	}
}

// Late events of another run are never shown as those of the selected run.
func TestAnotherRunIsSelected(t *testing.T) {
	c := historytest.NewClient()
	for i := range 4 {
		c.Put(fmt.Sprint("r", i), historytest.Long(400*(i+1)).Events...)
	}
	w := watchEvents(t, c, "r0")
	for i := range 40 {
		run := fmt.Sprint("r", i%4)
		w.store.Select(runs.ID{WorkflowID: "w", RunID: run})
		if i%4 == 3 {
			w.until("its events", func(l *histories.EventLog) bool {
				if l.RunID != run {
					t.Fatalf("%s while %s is selected", l.RunID, run)
				}
				return l.RunID == run && !l.Reading && l.Closed
			})
		}
	}
	w.store.Select(runs.ID{WorkflowID: "", RunID: ""})
	for w.store.Events.Value() != nil {
		<-w.store.Link.Changed()
	}
}

func TestEventsSurviveALostServer(t *testing.T) {
	c := historytest.NewClient()
	events := historytest.Long(3_000).Events
	c.Put("r", events...)
	var n atomic.Int64
	c.Fail(func(string) error {
		if n.Add(1)%3 == 2 {
			return serviceerror.NewUnavailable("away")
		}
		return nil
	})
	w := watchEvents(t, c, "r")
	whole(t, w.until("all", func(l *histories.EventLog) bool { return !l.Reading && l.Unread == 0 }),
		len(events))
}

func TestARunThatIsNotThere(t *testing.T) {
	w := watchEvents(t, historytest.NewClient(), "r")
	if l := w.until("an error", func(l *histories.EventLog) bool {
		return l.Err != ""
	}); !strings.Contains(l.Err, "no run r") || l.Len() != 0 {
		t.Errorf("%+v", l)
	}
}

// A server that cannot read backward is read forward.
func TestOldServer(t *testing.T) {
	c := historytest.NewClient()
	c.Put("r", historytest.Long(800).Events...)
	c.Fail(func(call string) error {
		if call == "backward" {
			return serviceerror.NewUnimplemented("unknown method")
		}
		return nil
	})
	w := watchEvents(t, c, "r")
	l := w.until("all", func(l *histories.EventLog) bool { return l.Closed })
	whole(t, l, l.Len())
}

func TestFilterAndOpenWhileReading(t *testing.T) {
	c := historytest.NewClient()
	c.Put("r", historytest.Long(2_000).Events...)
	w := watchEvents(t, c, "r")
	w.store.Events.Filter(histories.EventFilter{Include: "timer", Exclude: "fired"})
	l := w.until("filtered", func(l *histories.EventLog) bool {
		return !l.Reading && l.Filter.Include == "timer"
	})
	if len(l.Matches) == 0 {
		t.Fatal("nothing matches")
	}
	for _, id := range l.Matches {
		if e := l.Event(id); e.Name() != "TimerStarted" {
			t.Errorf("%s matches", e.Name())
		}
	}
	w.store.Events.Open(l.Matches[0])
	o := w.until("opened", func(l *histories.EventLog) bool {
		return l.Opened != nil && l.Opened.ID == l.Matches[0]
	}).Opened
	if !strings.Contains(o.Text, `"timerId": "pace-`) || o.Err != "" {
		t.Errorf("opened %+v", o)
	}
}

func TestFollowGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	c := historytest.NewClient()
	events := historytest.Long(2_500).Events
	c.Put("r", events...)
	n, pagesBefore := 0, (len(events)+255)/256
	c.Fail(func(call string) error {
		if call != "forward" {
			return nil
		}
		if n++; n%2 == 0 {
			return serviceerror.NewUnavailable("away")
		}
		return nil
	})
	var got []int64
	var told []bool
	err := cluster.Follow(t.Context(), c, "test", "w", "r", func(err error) {
		told = append(told, err != nil)
	}, func(e *historypb.HistoryEvent) error {
		got = append(got, e.GetEventId())
		return nil
	})
	if err != nil || len(got) != len(events) || !slices.IsSorted(got) ||
		len(slices.Compact(got)) != len(events) {
		t.Fatalf("%d of %d events, %v", len(got), len(events), err)
	}
	if worked := c.Calls("forward") - len(told)/2; worked > pagesBefore {
		t.Errorf("%d pages were read, there are %d", worked, pagesBefore)
	}
	if len(told) == 0 || len(told)%2 != 0 {
		t.Errorf("told %v", told)
	}
}

// After a refused token, as after a failover, reading starts over without repeating events.
func TestFollowWithARefusedToken(t *testing.T) {
	c := historytest.NewClient()
	events := historytest.Long(1_000).Events
	c.Put("r", events...)
	n := 0
	c.Fail(func(string) error {
		if n++; n == 3 {
			return serviceerror.NewInvalidArgument("invalid token")
		}
		return nil
	})
	var got []int64
	err := cluster.Follow(t.Context(), c, "test", "w", "r", nil, func(e *historypb.HistoryEvent) error {
		got = append(got, e.GetEventId())
		return nil
	})
	if err != nil || len(slices.Compact(got)) != len(events) || len(got) != len(events) {
		t.Errorf("%d of %d events, %v", len(got), len(events), err)
	}
}

func TestFollowEndsWithItsContextAndItsCallback(t *testing.T) {
	c := historytest.NewClient()
	c.Put("r", historytest.Long(100).Events[:50]...)
	stop := errors.New("stop")
	if err := cluster.Follow(t.Context(), c, "test", "w", "r", nil, func(*historypb.HistoryEvent) error {
		return stop
	}); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := cluster.Follow(ctx, c, "test", "w", "r", nil, func(*historypb.HistoryEvent) error {
		if n++; n == 50 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A server shows a workflow task before it is recorded; another event may get its id.
func TestUnrecordedTasksAreLeftOut(t *testing.T) {
	recordedEvents := historytest.Long(40).Events[:8]
	tentative := &historypb.HistoryEvent{EventId: 9, EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED}
	if got := cluster.Recorded(append(slices.Clone(recordedEvents), tentative)); len(got) != 8 {
		t.Errorf("%d events", len(got))
	}
}

func TestRows(t *testing.T) {
	b := historytest.Task(true)
	l := histories.NewEventLog("w", "r", b.Events, time.Now())
	var titles []string
	for i := range l.Len() {
		e := l.Row(i)
		titles = append(titles, fmt.Sprintf("%d %s %s %q %q %d %v", e.ID, e.Kind, e.Name(), l.Title(e),
			e.Message, e.Root, e.Error))
	}
	all := strings.Join(titles, "\n")
	for _, want := range []string{
		`1 run WorkflowExecutionStarted "AceTaskWorkflow" "" 1 false`,
		`6 activity ActivityTaskStarted "run_generator" "attempt 3 after ModelError: model: 529 overloaded" 5 false`,
		`tool call WorkflowExecutionSignaled "record_tool_event" "look_up began, look_up failed"`,
		`timer TimerStarted "pace" "for 500ms"`,
		`timer TimerFired "pace"`,
		`activity ActivityTaskFailed "run_curator" "ModelError: the curator gave no operations"`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no row %s in\n%s", want, all)
		}
	}
	if got := []int64{l.Related(5, 1), l.Related(6, 1), l.Related(7, -1), l.Related(5, -1),
		l.Related(7, 1)}; !slices.Equal(got, []int64{6, 7, 6, 0, 0}) {
		t.Errorf("related events are %v", got)
	}
}

func TestStrangeEvents(t *testing.T) {
	b := historytest.New("W", nil)
	b.Add(time.Millisecond, enumspb.EventType(999), nil)
	// the clock went backward, and there are no attributes
	b.Add(-5*time.Second, enumspb.EVENT_TYPE_MARKER_RECORDED, nil)
	b.Events = append(b.Events, &historypb.HistoryEvent{EventId: int64(len(b.Events) + 1),
		EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED})
	b.Signal(time.Millisecond, ace.SignalToolEvent, "no tool event")
	b.Add(0, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{
			SignalName: "secret", Input: historytest.Payload("binary/encrypted", []byte{1, 2, 3})}}
	})
	b.Add(0, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{
			SignalName: "torn", Input: historytest.Payload("json/plain", []byte(`{"a":`))}}
	})
	l := histories.NewEventLog("w", "r", b.Events, time.Now())
	if len(l.Spans) == 0 {
		t.Fatal("no spans")
	}
	for i := range l.Len() {
		o := l.Open(l.Row(i).ID)
		if o.Err != "" || o.Text == "" {
			t.Errorf("event %d: %+v", l.Row(i).ID, o)
		}
	}
	n := l.Row(l.Len() - 2).ID
	if o := l.Open(n); !strings.Contains(o.Text, `"encoding": "binary/encrypted"`) ||
		!strings.Contains(o.Text, `"bytes": 3`) {
		t.Errorf("encrypted: %s", o.Text)
	}
	if o := l.Open(n + 1); !strings.Contains(o.Text, "invalid JSON") {
		t.Errorf("truncated: %s", o.Text)
	}
	if o := l.Open(12_345); o.Err == "" {
		t.Error("an event that is not there was opened")
	}
}

func TestLargeEventIsCut(t *testing.T) {
	b := historytest.New("W", nil)
	id := b.Signal(0, "big", strings.Repeat("財務", 200_000))
	l := histories.NewEventLog("w", "r", b.Events, time.Now())
	if o := l.Open(id); len(o.Text) > histories.MaxOpened || o.Size < 1_200_000 {
		t.Errorf("%d of %d bytes", len(o.Text), o.Size)
	}
}

func TestFilters(t *testing.T) {
	l := histories.NewEventLog("w", "r", historytest.Task(true).Events, time.Now())
	for _, c := range []struct {
		f    histories.EventFilter
		some string
		n    int
	}{
		{histories.EventFilter{Include: "run_generator"}, "ActivityTaskScheduled", 3},
		{histories.EventFilter{Include: "RUN_Generator"}, "ActivityTaskScheduled", 3},
		{histories.EventFilter{Include: `^\d+ activity.*(curator|reflector)`}, "ActivityTaskFailed", 6},
		{histories.EventFilter{Include: `[A-Z]urator`}, "ActivityTaskFailed", 3},
		{histories.EventFilter{Include: `RUN_\S+ator\b`}, "ActivityTaskFailed", 6},
		{histories.EventFilter{Include: `(?-i:RUN)_generator`}, "", 0},
		{histories.EventFilter{Include: "activity", Exclude: "started|scheduled"}, "ActivityTaskCompleted",
			4},
		{histories.EventFilter{Errors: true}, "ActivityTaskFailed", 2},
		{histories.EventFilter{Include: "misspelt"}, "", 0},
		{histories.EventFilter{Include: "misspelt", Full: true}, "ActivityTaskCompleted", 1},
	} {
		m, err := c.f.Compile()
		if err != nil {
			t.Fatal(err)
		}
		got := m.Events(l)
		if len(got) != c.n {
			t.Errorf("%+v: %d events match, want %d", c.f, len(got), c.n)
		}
		if c.some != "" && !slices.ContainsFunc(got, func(id int64) bool {
			return l.Event(id).Name() == c.some
		}) {
			t.Errorf("%+v: no %s", c.f, c.some)
		}
	}
	if _, err := (histories.EventFilter{Include: "a(b"}).Compile(); err == nil ||
		strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "a(b") {
		t.Errorf("a bad pattern gives %v", err)
	}
}

func TestErrorsAndMatchesAreFound(t *testing.T) {
	l := histories.NewEventLog("w", "r", historytest.Task(true).Events, time.Now())
	var errs []int64
	for id := l.NextError(0, 1); id != 0; id = l.NextError(id, 1) {
		errs = append(errs, id)
	}
	var back []int64
	for id := l.NextError(1_000, -1); id != 0; id = l.NextError(id, -1) {
		back = append(back, id)
	}
	slices.Reverse(back)
	if len(errs) != 2 || !slices.Equal(errs, back) {
		t.Errorf("errors %v, backwards %v", errs, back)
	}
	l.Matches = []int64{2, 5, 9}
	if got := []int64{l.NextMatch(2, 1), l.NextMatch(3, 1), l.NextMatch(9, 1), l.NextMatch(9, -1),
		l.NextMatch(2, -1), l.NextMatch(7, -1)}; !slices.Equal(got, []int64{5, 5, 0, 5, 0, 5}) {
		t.Errorf("matches %v", got)
	}
}

func BenchmarkEvents50k(b *testing.B) {
	events := historytest.Long(50_000).Events
	c := historytest.NewClient()
	c.Put("r", events...)
	l := histories.NewEventLog("w", "r", events, time.Now())
	b.Run("first-page", func(b *testing.B) {
		var took time.Duration
		for b.Loop() {
			took += readUntil(b, c, func(l *histories.EventLog) bool { return l.Len() > 0 })
		}
		b.ReportMetric(float64(took.Milliseconds())/float64(b.N), "ms-to-first-page")
	})
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			readUntil(b, c, func(l *histories.EventLog) bool { return !l.Reading })
		}
	})
	b.Run("spans", func(b *testing.B) {
		for b.Loop() {
			histories.Timeline(l, nil)
		}
	})
	for name, f := range map[string]histories.EventFilter{"literal": {Include: "calculate"},
		"regex":   {Include: `run_(gen|ref).*turn \d+ gave`},
		"folding": {Include: `Turn \S+ gave`}, "two": {Include: "activity", Exclude: "started"},
		"full": {Include: "shareholders", Full: true}} {
		b.Run("search-"+name, func(b *testing.B) {
			m, _ := f.Compile()
			for b.Loop() {
				m.Events(l)
			}
		})
	}
	b.Run("memory", func(b *testing.B) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		kept := histories.NewEventLog("w", "r", events, time.Now())
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MB")
		b.ReportMetric(float64(kept.Bytes)/(1<<20), "MB-history")
		runtime.KeepAlive(kept)
	})
}

func readUntil(b *testing.B, c *historytest.Client, ok func(*histories.EventLog) bool) time.Duration {
	began := time.Now()
	s := NewFeeds()
	s.Select(runs.ID{WorkflowID: "w", RunID: "r"})
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	s.Link.Deps = cluster.Deps{Client: c}
	s.Events.Look(true)
	go func() { defer close(done); s.Events.Run(ctx) }()
	for {
		<-s.Link.Changed()
		if l := s.Events.Value(); l != nil && ok(l) {
			break
		}
	}
	took := time.Since(began)
	cancel()
	<-done
	return took
}

func pendingInfo(kind string, id int64, attempt int32, at time.Time) *workflowpb.PendingActivityInfo {
	return &workflowpb.PendingActivityInfo{ActivityId: fmt.Sprint(id),
		ActivityType: &commonpb.ActivityType{Name: kind},
		State:        enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, Attempt: attempt,
		ScheduledTime:           timestamppb.New(at.Add(3 * time.Second)),
		LastStartedTime:         timestamppb.New(at.Add(time.Second)),
		LastAttemptCompleteTime: timestamppb.New(at.Add(2 * time.Second)),
		NextAttemptScheduleTime: timestamppb.New(at.Add(3 * time.Second)),
		LastFailure:             historytest.Failure("connection refused")}
}

func TestEventsLeadToOtherRuns(t *testing.T) {
	x := &commonpb.WorkflowExecution{WorkflowId: "ace/child", RunId: "c"}
	for _, c := range []struct {
		e    *historypb.HistoryEvent
		want runs.Run
	}{
		{&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
			ContinuedExecutionRunId: "a", ParentWorkflowExecution: x}}},
			runs.Run{WorkflowID: "w", RunID: "a"}},
		{&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
			ParentWorkflowExecution: x}}}, runs.Run{WorkflowID: "ace/child", RunID: "c", TaskID: "child"}},
		{&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{}}}, runs.Run{}},
		{&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{WorkflowExecutionContinuedAsNewEventAttributes: &historypb.WorkflowExecutionContinuedAsNewEventAttributes{
			NewExecutionRunId: "b"}}}, runs.Run{WorkflowID: "w", RunID: "b"}},
		{&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionFailedEventAttributes{WorkflowExecutionFailedEventAttributes: &historypb.WorkflowExecutionFailedEventAttributes{
			NewExecutionRunId: "b"}}}, runs.Run{WorkflowID: "w", RunID: "b"}},
		{&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowTaskFailedEventAttributes{WorkflowTaskFailedEventAttributes: &historypb.WorkflowTaskFailedEventAttributes{
			Cause: enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW, BaseRunId: "base"}}},
			runs.Run{WorkflowID: "w", RunID: "base"}},
		{&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_ChildWorkflowExecutionStartedEventAttributes{ChildWorkflowExecutionStartedEventAttributes: &historypb.ChildWorkflowExecutionStartedEventAttributes{
			WorkflowExecution: x}}}, runs.Run{WorkflowID: "ace/child", RunID: "c", TaskID: "child"}},
		{&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_StartChildWorkflowExecutionInitiatedEventAttributes{StartChildWorkflowExecutionInitiatedEventAttributes: &historypb.StartChildWorkflowExecutionInitiatedEventAttributes{
			WorkflowId: "ace/child"}}}, runs.Run{WorkflowID: "ace/child", TaskID: "child"}},
		{&historypb.HistoryEvent{}, runs.Run{}},
	} {
		if got := histories.TargetRun("w", c.e); got.WorkflowID != c.want.WorkflowID ||
			got.RunID != c.want.RunID {
			t.Errorf("%v leads to %+v, want %+v", c.e, got, c.want)
		}
	}
}
