package sources

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/historytest"
)

func spansText(spans []histories.Span) string {
	var b strings.Builder
	for i := range spans {
		s := &spans[i]
		fmt.Fprintf(&b, "%s%s %q %s wait=%v ran=%v attempt=%d error=%q\n", strings.Repeat("  ", int(s.Depth)),
			s.Kind, s.Name, s.State,
			s.Waited(historytest.Start.Add(time.Hour)), s.Ran(historytest.Start.Add(time.Hour)), s.Attempt,
			s.Error)
	}
	return b.String()
}

func TestTimelineOfATask(t *testing.T) {
	l := histories.NewEventLog("w", "r", historytest.Task(true).Events, time.Now())
	got := spansText(l.Spans)
	for _, want := range []string{
		`run "AceTaskWorkflow" done`,
		`  phase "generator" done`,
		`    activity "run_generator" done wait=1.2s ran=800ms attempt=3`,
		`      attempt "attempts 1-2" failed wait=0s ran=1.2s attempt=2 error="ModelError: model: 529 overloaded"`,
		`      attempt "attempt 3" done wait=0s ran=800ms`,
		`      tool call "look_up" failed wait=0s ran=40ms attempt=0 error="no such formula: retrun on equity"`,
		`      tool call "calculate" done wait=0s ran=900ms`,
		`      tool call "shell" refused`,
		`  phase "curator" failed`,
		`  group "timers" done`,
		`    timer "pace for 500ms" done wait=0s ran=500ms`,
		`  group "workflow tasks" done`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	for i := 1; i < len(l.Spans); i++ {
		if p := l.Spans[i].Parent; p < 0 || int(p) >= i || l.Spans[p].Depth != l.Spans[i].Depth-1 {
			t.Errorf("span %d stands under %d", i, p)
		}
	}
}

func TestTimelineOfAnOpenTask(t *testing.T) {
	b := historytest.Task(false)
	l := histories.NewEventLog("w", "r", b.Events, time.Now())
	last := b.Events[len(b.Events)-1]
	work := histories.PendingOf(pendingInfo(ace.ActivityCurator, last.GetEventId(), 4,
		last.GetEventTime().AsTime()))
	got := spansText(histories.Timeline(l, []histories.PendingActivity{work}))
	for _, want := range []string{
		`run "AceTaskWorkflow" running`, `phase "curator" running`, `activity "run_curator" retrying`,
		`attempt "attempts 1-3" failed wait=0s ran=2s attempt=3 error="ModelError: connection refused"`,
		`attempt "attempt 4" retrying`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if plain := spansText(l.Spans); !strings.Contains(plain, `activity "run_curator" scheduled`) {
		t.Errorf("an activity that has not begun:\n%s", plain)
	}
}

// A timeline of the last page alone has unknown starts.
func TestTimelineOfTheLastPage(t *testing.T) {
	events := historytest.Task(true).Events
	for from := range events {
		x := histories.NewEventIndex("w", "r", nil)
		x.Append(events[from:])
		spans := histories.Timeline(x.Log(time.Now()), nil)
		if len(spans) == 0 || spans[0].Kind != histories.SpanRun || spans[0].Cut != (from > 0) {
			t.Fatalf("from %d: %+v", from, spans)
		}
	}
}

// Pages that overlap give the same as the complete history.
func TestOverlappingPages(t *testing.T) {
	events := historytest.Long(1_500).Events
	want := histories.NewEventLog("w", "r", events, time.Now())
	x := histories.NewEventIndex("w", "r", nil)
	x.Append(events[:1_100])
	x.Append(events[1_050:1_300])
	x.Append(events[1_300:])
	got := x.Log(time.Now())
	if !slices.Equal(histories.Timeline(got, nil), want.Spans) {
		t.Error("the spans differ")
	}
	for i := range events {
		a, b := got.Row(i), want.Row(i)
		if a.ID != b.ID || got.Title(a) != want.Title(b) || a.Message != b.Message {
			t.Fatalf("row %d: %+v, %+v", i, a, b)
		}
		if o := got.Open(a.ID); o.Err != "" ||
			!strings.Contains(o.Text, fmt.Sprintf(`"eventId": "%d"`, a.ID)) {
			t.Fatalf("event %d is %v", a.ID, o)
		}
	}
}

func TestTimelineOfOtherEnds(t *testing.T) {
	for end, want := range map[enumspb.EventType]histories.SpanState{
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW: histories.SpanContinued,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:       histories.SpanTerminated,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:        histories.SpanTimedOut,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:         histories.SpanCanceled,
	} {
		b := historytest.Task(false)
		b.Add(time.Second, end, func(e *historypb.HistoryEvent) {
			if end == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW {
				e.Attributes = &historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{WorkflowExecutionContinuedAsNewEventAttributes: &historypb.WorkflowExecutionContinuedAsNewEventAttributes{NewExecutionRunId: "next"}}
			}
		})
		l := histories.NewEventLog("w", "r", b.Events, time.Now())
		if l.Spans[0].State != want {
			t.Errorf("%s leaves the run %s", end, l.Spans[0].State)
		}
		for i := range l.Spans {
			if l.Spans[i].State.Open() {
				t.Errorf("%s leaves %q %s", end, l.Spans[i].Name, l.Spans[i].State)
			}
		}
	}
}

func TestBars(t *testing.T) {
	ms := int64(time.Millisecond)
	w := histories.Window{0, 100 * ms}
	for _, c := range []struct {
		s    histories.Span
		want string
	}{
		{histories.Span{Start: 0, Run: 20 * ms, End: 50 * ms}, "wwrrrr...."},
		{histories.Span{Start: 0, Run: 20 * ms, State: histories.SpanRunning}, "wwoooooooo"},
		{histories.Span{Start: 30 * ms, State: histories.SpanScheduled}, "...wwwwwww"},
		{histories.Span{Start: 10 * ms, Run: 40 * ms, End: 60 * ms, State: histories.SpanFailed,
			Kind: histories.SpanActivity, Attempt: 2}, ".~~~fff..."[:6] + "x..."},
		{histories.Span{Start: 55 * ms, Run: 55 * ms, End: 55 * ms, Point: true}, ".....p...."},
		// a clock that went backward
		{histories.Span{Start: 55 * ms, Run: 55 * ms, End: 20 * ms}, ".....r...."},
		{histories.Span{Start: 200 * ms, Run: 200 * ms, End: 300 * ms}, ".........."},
		{histories.Span{Start: 100 * ms, Run: 100 * ms, End: 100 * ms}, ".........r"},
		{histories.Span{Start: -50 * ms, Run: -50 * ms, End: 300 * ms}, "rrrrrrrrrr"},
	} {
		cells := make([]histories.Cell, 10)
		w.Draw(cells, &c.s, time.Unix(0, 100*ms))
		var got strings.Builder
		for _, x := range cells {
			got.WriteByte(".w~rofpx"[x])
		}
		if got.String() != c.want {
			t.Errorf("%+v is %s, want %s", c.s, got.String(), c.want)
		}
	}
}

func TestTicks(t *testing.T) {
	s := int64(time.Second)
	for _, c := range []struct {
		w    histories.Window
		n    int
		want []int64
	}{
		{histories.Window{0, 10 * s}, 5, []int64{0, 2 * s, 4 * s, 6 * s, 8 * s}},
		{histories.Window{3 * s, 10 * s}, 4, []int64{4 * s, 6 * s, 8 * s, 10 * s}},
		{histories.Window{0, 0}, 4, nil},
	} {
		if got := c.w.Ticks(0, c.n); !slices.Equal(got, c.want) {
			t.Errorf("%v in %d: %v", c.w, c.n, got)
		}
	}
	if got := (histories.Window{0, int64(400 * 24 * time.Hour)}).Ticks(0, 6); len(got) < 2 {
		t.Errorf("a long run has %d ticks", len(got))
	}
}
