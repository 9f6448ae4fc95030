package views

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/exp/golden"
	historypb "go.temporal.io/api/history/v1"

	"acescope/sources/histories"
	"acescope/sources/historytest"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/views/timeline"
)

// timed returns the data of a console whose first run has a history.
func timed(events []*historypb.HistoryEvent, change func(*histories.EventLog)) *snapshot {
	s := full(60)
	r := s.Runs.Rows[0]
	s.Events = histories.NewEventLog(r.WorkflowID, r.RunID, events, noon)
	if len(events) > 0 {
		s.Events.Opened = s.Events.Open(events[len(events)-1].GetEventId())
	}
	if change != nil {
		change(s.Events)
	}
	return s
}

func filtered(l *histories.EventLog, f histories.EventFilter) {
	m, err := f.Compile()
	if err != nil {
		panic(err)
	}
	l.Filter, l.Matches = f, m.Events(l)
}

func openAt(id int64) func(*histories.EventLog) {
	return func(l *histories.EventLog) { l.Opened = l.Open(id) }
}

func timelineCases() map[string]struct {
	snap *snapshot
	keys []string
} {
	task := historytest.Task(true).Events
	type c = struct {
		snap *snapshot
		keys []string
	}
	return map[string]c{
		"bars":      {timed(task, openAt(1)), nil},
		"open":      {timed(historytest.Task(false).Events, nil), []string{"j", "j", "j"}},
		"zoomed":    {timed(task, openAt(16)), []string{"j", "j", "j", "j", "j", "j", ".", "-"}},
		"list":      {timed(task, nil), []string{"m", "G"}},
		"inspector": {timed(task, openAt(7)), []string{"m", "g", "j", "j", "j", "j", "j", "j", "tab"}},
		"filter": {timed(task, func(l *histories.EventLog) {
			filtered(l, histories.EventFilter{Include: "activity"})
		}),
			append(append([]string{"m", "/"}, letters("activity")...), "enter")},
		"filter-bars": {timed(task, nil), append(append([]string{"/"}, letters("call|timer")...), "enter")},
		"errors":      {timed(task, nil), []string{"m", "g", "e", "e"}},
		"empty":       {timed(nil, nil), nil},
		"nothing":     {full(60), nil},
		"reading": {timed(task, func(l *histories.EventLog) { l.Unread, l.Reading = 48_000, true }),
			[]string{"m", "G"}},
		"failed": {timed(nil, func(l *histories.EventLog) { l.Err = "the history is corrupted" }), nil},
	}
}

func TestTimelineScreens(t *testing.T) {
	looks := map[string]theme.Styles{"dark": theme.New(true, false), "nocolor": theme.New(true, true)}
	for name, c := range timelineCases() {
		for _, size := range [][2]int{{80, 24}, {200, 50}} {
			for look, styles := range looks {
				t.Run(fmt.Sprintf("%s-%dx%d-%s", name, size[0], size[1], look), func(t *testing.T) {
					sc := newScreen(t, c.snap, styles, size[0], size[1])
					sc.press("3")
					sc.press(c.keys...)
					golden.RequireEqual(t, sc.drawn())
				})
			}
		}
	}
}

func TestTimelineEverySize(t *testing.T) {
	t.Parallel()
	cases := timelineCases()
	cases["hostile"] = struct {
		snap *snapshot
		keys []string
	}{timed(hostileHistory(), nil), []string{"m", "m", "c"}}
	for name, c := range cases {
		sc := newScreen(t, c.snap, theme.New(true, false), 80, 24)
		sc.press("3")
		sc.press(c.keys...)
		for _, keys := range [][]string{nil, {"tab"}, {"tab", "m"}, {"+"}} {
			sc.press(keys...)
			for w := 40; w <= 220; w += 9 {
				for _, h := range []int{10, 11, 17, 24, 50} {
					sc.resize(w, h)
					sc.drawn()
				}
			}
		}
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

func hostileHistory() []*historypb.HistoryEvent {
	b := historytest.New("財務\x1b[2J📈👩‍👧", nil)
	for _, n := range []string{"שלום", "a\x1b]0;owned\x07b", "user\u202egnp.exe", "two\nlines\tand a tab",
		"e\u0301\u0301", "bad \xff utf-8", strings.Repeat("財務", 300)} {
		b.Signal(time.Millisecond, n, n)
		b.Activity(-time.Second, time.Millisecond, n, n, n)
		b.Timer(0, n)
	}
	return b.Events
}

func TestTimelineJump(t *testing.T) {
	task := historytest.Task(true).Events
	sc := newScreen(t, timed(task, nil), plainLook, 200, 50)
	v := sc.named("timeline").Views[0].(*timeline.Timeline)
	sc.shared.Navigation.Event = 7
	sc.press("3")
	sc.has("Event 7 ActivityTaskCompleted")
	if sc.shared.Navigation.Event != 0 {
		t.Error("the jump is kept")
	}
	sc.press("(")
	sc.has("Event 6 ActivityTaskStarted")
	sc.press("(")
	sc.has("Event 5 ActivityTaskScheduled")
	sc.press("(")
	sc.has("no earlier related event")
	sc.press(")", ")")
	sc.has("Event 7 ActivityTaskCompleted")
	if !slices.Contains(sc.store.heard(), "open 7") ||
		!slices.Contains(sc.store.heard(), "look events true") {
		t.Errorf("the store received %q", sc.store.heard())
	}
	filtered(v.Log, histories.EventFilter{Include: "completed"})
	sc.press("(") // to one that the filter keeps out
	sc.has("Event 6 ActivityTaskStarted")
	sc.press("1")
	if !slices.Contains(sc.store.heard(), "look events false") {
		t.Error("events are read while the timeline is hidden")
	}
}

func TestTimelineKeepsItsEvent(t *testing.T) {
	task := historytest.Task(true).Events
	sc := newScreen(t, timed(task[10:], func(l *histories.EventLog) { l.Reading = true }), plainLook, 200, 50)
	sc.press("3", "m", "g", "j", "j")
	sc.has("Event 13 ")
	sc.show(timed(task, nil))
	sc.has("Event 13 ")
}

func TestTimelineOfAnotherRunIsNotShown(t *testing.T) {
	s := timed(historytest.Task(true).Events, nil)
	s.Events.RunID = "another"
	sc := newScreen(t, s, plainLook, 80, 24)
	sc.press("3")
	sc.has("reading the events of q-00060")
}

func TestTimelineFilterKeys(t *testing.T) {
	sc := newScreen(t, timed(historytest.Task(true).Events, nil), plainLook, 200, 50)
	sc.press("3", "/")
	sc.press(letters("a(b")...)
	sc.press("enter")
	sc.has(`pattern "a(b"`)
	for _, l := range sc.store.heard() {
		if strings.HasPrefix(l, "events") {
			t.Errorf("the store received an invalid pattern: %s", l)
		}
	}
	sc.press("ctrl+u")
	sc.press(letters("!task")...)
	sc.press("enter", `\`, "s", "enter", "P")
	want := []string{"events // !/task/ full=false", "events // !/tasks/ full=false",
		"events // !/tasks/ full=true"}
	if heard := sc.store.heard(); !slices.Equal(heard[len(heard)-3:], want) {
		t.Errorf("the store received %q", heard)
	}
}

func TestTimelineZoom(t *testing.T) {
	sc := newScreen(t, timed(historytest.Task(true).Events, nil), plainLook, 200, 50)
	sc.press("3")
	v := sc.named("timeline").Views[0].(*timeline.Timeline)
	all := v.Shown()
	sc.press("j", "+", "+")
	if in := v.Shown(); in.To-in.From >= (all.To-all.From)/3 || in.From < all.From || in.To > all.To {
		t.Errorf("zoomed to %v of %v", in, all)
	}
	before := v.Shown()
	sc.press("l")
	if v.Shown().From <= before.From {
		t.Error("l does not pan")
	}
	sc.press("-", "-", "-", "-")
	if v.Shown() != all {
		t.Error("zooming out does not end at the whole run")
	}
	sc.press("+", ",")
	if v.Shown() != all {
		t.Error("0 does not show the whole run")
	}
}

func TestTimelineErrors(t *testing.T) {
	sc := newScreen(t, timed(historytest.Task(true).Events, nil), plainLook, 200, 50)
	sc.press("3")
	v := sc.named("timeline").Views[0].(*timeline.Timeline)
	for _, want := range []string{"attempts 1-2", "look_up", "shell", "curator", "run_curator"} {
		sc.press("e")
		if got := v.Span().Name; got != want {
			t.Errorf("the next error is %s, want %s", got, want)
		}
	}
	sc.press("E", "E")
	if got := v.Span().Name; got != "shell" {
		t.Errorf("the previous error is %s", got)
	}
	sc.press("m", "g", "e", "e", "e")
	sc.has("no later error")
}

func TestTimelineCopy(t *testing.T) {
	sc := newScreen(t, timed(historytest.Task(true).Events, openAt(7)), plainLook, 200, 50)
	v := sc.named("timeline").Views[0].(*timeline.Timeline)
	sc.shared.Navigation.Event = 7
	sc.press("3")
	sc.drawn()
	if what, copied := v.Copy(); what != "event 7" || !strings.Contains(copied, `"eventId": "7"`) {
		t.Errorf("copied %s: %s", what, copied)
	}
	sc.press("k")
	if what, copied := v.Copy(); what != "ID of event 6" || copied != "6" {
		t.Errorf("copied %s: %s", what, copied)
	}
}

func BenchmarkTimelineFrame50k(b *testing.B) {
	for name, keys := range map[string][]string{"bars": {"3"}, "list": {"3", "m"}} {
		b.Run(name, func(b *testing.B) {
			sc := newScreen(b, timed(historytest.Long(50_000).Events, nil), theme.New(true, false), 200, 50)
			sc.press(keys...)
			i := 0
			for b.Loop() {
				key := "j"
				if i/200%2 == 1 {
					key = "k"
				}
				sc.model.Update(keyPress(key))
				sc.model.View()
				i++
			}
		})
		b.Run(name+"-new-snapshot", func(b *testing.B) {
			sc := newScreen(b, timed(historytest.Long(50_000).Events, nil), theme.New(true, false), 200, 50)
			sc.press(keys...)
			wait := sc.model.Init()().(tea.BatchMsg)[0]
			msgs := make([]tea.Msg, 2)
			for i := range msgs {
				sc.store.set(timed(historytest.Long(50_000).Events, nil))
				msgs[i] = wait()
			}
			i := 0
			for b.Loop() {
				sc.model.Update(msgs[i%2])
				sc.model.View()
				i++
			}
		})
	}
}

func TestTimelineOpensAnotherRun(t *testing.T) {
	snap := timed(historytest.Task(true).Events, openAt(1))
	snap.Events.Opened.Target = runs.Run{WorkflowID: "ace/next", RunID: "run-next"}
	sc := newScreen(t, snap, plainLook, 200, 50)
	was := snap.Runs.Rows[0]
	sc.press("3", "m", "g", "O")
	sc.has("now ace/next; backspace leads back")
	if got := sc.toldLast(); got != "select ace/next run-next" {
		t.Errorf("the store received %q", got)
	}
	sc.press("backspace")
	if got := sc.toldLast(); got != "select "+was.WorkflowID+" "+was.RunID {
		t.Errorf("the store received %q", got)
	}
	sc.press("j", "O")
	sc.has("press O again")
	snap.Events.Opened = snap.Events.Open(2)
	sc.show(snap)
	sc.press("O")
	sc.has("leads to no other run")
}
