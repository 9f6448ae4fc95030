package views

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	"acescope/sources/logfile"
	"acescope/sources/logs"
	"acescope/theme"
	logsview "acescope/views/logs"
)

// logged has three log files, the second of which was rotated.
func logged() *snapshot {
	s := full(5)
	l := &logs.Logs{Description: "of the run, and lines elsewhere that name it", Base: "/data/logs",
		Session: 1, Mention: []string{"run-q-00005"}, Dropped: 120, First: 120}
	file := func(name string, size int64, state logfile.State, rate float64) logs.File {
		return logs.File{File: logfile.File{Path: "/data/logs/" + name, Size: size, State: state},
			PerSecond: rate, RatedAt: noon.Add(-time.Second)}
	}
	l.Files = []logs.File{file("acescope.log", 48_213, logfile.Following, 12.4),
		file("runs/ace%2Fq-00005/run-q-00005/agent.jsonl", 1_204_233_118, logfile.Following, 1043),
		file("secret.log", 12, logfile.Unreadable, 0), file("old.log", 0, logfile.Removed, 0),
		file("app.log", 0, logfile.Truncated, 0)}
	l.Files[2].Err = "permission denied"
	for i := range 60 {
		e := logs.Entry{File: l.Files[i%2].Path, Number: int64(i + 1), At: noon}
		at := noon.Add(time.Duration(i) * 20 * time.Millisecond).Format(time.RFC3339Nano)
		switch i % 6 {
		case 0:
			e.Text = fmt.Sprintf(
				`time=%s level=INFO msg="activity started" pid=4711 attempt=%d run=run-q-00005`, at, i)
		case 1:
			e.Text = fmt.Sprintf(
				`{"time":"%s","level":"info","msg":"tool call","name":"calculate","args":{"expr":"17.2/%d"},"ms":12}`, at, i)
		case 2:
			e.Text = fmt.Sprintf(`time=%s level=WARN msg="model answered late" seconds=%d`, at, i)
		case 3:
			e.Text = fmt.Sprintf(
				`{"ts":"%s","level":"error","msg":"no such formula: retrun on equity","attempt":%d}`, at, i)
		case 4:
			e.Text = "\x1b[31mplain\x1b[0m text \u202ereversed, 長い行 🙂 and a tab\there"
		case 5:
			e.Text = `{"level":"debug","msg":"` + strings.Repeat("long ", 60) + `"}`
		}
		if i == 40 {
			e.Text, e.Note = "was emptied; reading it from its start", logfile.WasEmptied
		}
		l.Lines = append(l.Lines, e)
	}
	l.Open = []logs.Entry{{File: l.Files[0].Path, Text: "half a li"}}
	s.Logs = l
	return s
}

func onLogs(t testing.TB, s *snapshot, look theme.Styles, width, height int) *screen {
	sc := newScreen(t, s, look, width, height)
	sc.press("6")
	return sc
}

func TestLogScreens(t *testing.T) {
	for look, styles := range map[string]theme.Styles{"dark": theme.New(true, false),
		"nocolor": theme.New(true, true)} {
		for _, size := range [][2]int{{80, 24}, {200, 50}} {
			t.Run(fmt.Sprintf("%dx%d-%s", size[0], size[1], look), func(t *testing.T) {
				golden.RequireEqual(t, onLogs(t, logged(), styles, size[0], size[1]).drawn())
			})
		}
	}
	polling := logged()
	polling.Logs.Problem = "looking at files every 1s: no watch can be had: too many open files"
	empty := full(5)
	empty.Logs = &logs.Logs{Description: "of the data directory", Session: 1}
	broken := full(5)
	broken.Logs = &logs.Logs{Err: "there is no data directory here: choose files to follow", Session: 1}
	for name, c := range map[string]struct {
		snap *snapshot
		keys []string
	}{
		"files":   {logged(), []string{"tab"}},
		"wrap":    {logged(), []string{"Z", "k", "k"}},
		"raw":     {logged(), []string{"m", "l", "l"}},
		"search":  {logged(), append(append([]string{"/"}, letters("equity")...), "enter", "ctrl+p")},
		"level":   {logged(), []string{"L", "L"}},
		"one":     {logged(), []string{"F", "a"}},
		"top":     {logged(), []string{"g", "j"}},
		"held":    {logged(), []string{"p"}},
		"cleared": {logged(), []string{"ctrl+l"}},
		"polling": {polling, nil},
		"empty":   {empty, nil},
		"broken":  {broken, nil},
		"reading": {full(5), nil},
	} {
		t.Run(name, func(t *testing.T) {
			sc := onLogs(t, c.snap, theme.New(true, true), 80, 24)
			sc.press(c.keys...)
			golden.RequireEqual(t, sc.plain())
		})
	}
}

func TestEveryLogSize(t *testing.T) {
	sc := onLogs(t, logged(), theme.New(true, false), 80, 24)
	for _, keys := range [][]string{nil, {"Z"}, {"g"}, {"m"}, {"Z", "l"}, {"tab"}} {
		sc.press(keys...)
		for w := 40; w <= 220; w += 13 {
			for _, h := range []int{10, 11, 24, 50} {
				sc.resize(w, h)
				sc.drawn()
			}
		}
		if t.Failed() {
			t.Fatalf("after %v", keys)
		}
	}
}

func TestLogKeys(t *testing.T) {
	sc := onLogs(t, logged(), theme.New(true, true), 200, 50)
	if told := sc.store.heard(); !slices.Contains(told, "look logs true") {
		t.Errorf("told %q", told)
	}
	sc.press("o")
	sc.press(letters("~/a.log, /b")...)
	sc.press("enter")
	sc.press("backspace", "1")
	told := sc.store.heard()
	for _, want := range []string{`follow ["~/a.log" "/b"]`, `follow []`, "look logs false"} {
		if !slices.Contains(told, want) {
			t.Errorf("%q was not told: %q", want, told)
		}
	}
}

func TestLogSettingsAndCalls(t *testing.T) {
	snap := logged()
	sc := onLogs(t, snap, theme.New(true, true), 80, 24)
	v := sc.named("logs").Views[0].(*logsview.Lines)
	sc.press("L", "m", "a", "o")
	sc.press(letters("/b")...)
	sc.press("enter")
	kept := v.Keep()
	other := onLogs(t, snap, theme.New(true, true), 80, 24)
	w := other.named("logs").Views[0].(*logsview.Lines)
	w.Restore(kept)
	if got := w.Keep(); !maps.Equal(got, kept) || kept["level"] == "" || kept["paths"] != "/b" ||
		kept["raw"] != "yes" || kept["mention"] != "yes" {
		t.Errorf("%v became %v", kept, got)
	}
	w.Restore(map[string]string{"level": "loud"})
	if told := other.store.heard(); !slices.Contains(told, `follow ["/b"]`) ||
		w.Want.Level != logfile.Unknown {
		t.Errorf("told %q, level %v", told, w.Want.Level)
	}

	sc.press("O")
	sc.has("in its history")
	d := *snap.Detail
	d.CallLog = &ace.Ref{SHA256: "abc"}
	with := *snap
	with.Detail = &d
	sc.show(&with)
	sc.press("O")
	if told := sc.store.heard(); !slices.Contains(told, "calls abc") {
		t.Errorf("told %q", told)
	}
}

// grown returns the snapshot with n more lines and drop fewer old ones.
func grown(s *snapshot, n, drop int) *snapshot {
	next, l := *s, *s.Logs
	for i := range n {
		l.Lines = append(slices.Clone(l.Lines),
			logs.Entry{File: l.Files[0].Path, Text: fmt.Sprintf("fresh %d", i), At: noon})
	}
	l.Lines, l.First, l.Dropped = l.Lines[drop:], l.First+int64(drop), l.Dropped+int64(drop)
	next.Logs = &l
	return &next
}

func TestLogFollowsAndStays(t *testing.T) {
	s := logged()
	sc := onLogs(t, s, theme.New(true, true), 120, 30)
	s = grown(s, 3, 0)
	sc.show(s)
	if !strings.Contains(sc.plain(), "fresh 2") {
		t.Error("it does not follow the end")
	}
	v := sc.named("logs").Views[0].(*logsview.Lines)
	sc.press("k", "k", "k", "k")
	stays := v.Cursor
	sc.show(grown(s, 30, 25))
	if out := sc.plain(); v.Cursor != stays || !strings.Contains(out, "34 below") {
		t.Errorf("the cursor went from %d to %d\n%s", stays, v.Cursor, out)
	}
	sc.press("G")
	if !strings.Contains(sc.plain(), "fresh 29") {
		t.Error("G does not follow again")
	}
	sc.press("g")
	sc.show(grown(s, 3, 60)) // the cursor's line has fallen out
	sc.drawn()
}

func TestLogHold(t *testing.T) {
	s := logged()
	sc := onLogs(t, s, theme.New(true, true), 120, 30)
	sc.press("p")
	sc.show(grown(s, 7, 7))
	if out := sc.plain(); strings.Contains(out, "fresh") || !strings.Contains(out, "paused, 7 new") {
		t.Errorf("held:\n%s", out)
	}
	sc.press("p")
	if !strings.Contains(sc.plain(), "fresh 6") {
		t.Error("it does not go on")
	}
}

func TestLogCopyAndFilters(t *testing.T) {
	sc := onLogs(t, logged(), theme.New(true, true), 120, 30)
	v := sc.named("logs").Views[0].(*logsview.Lines)
	sc.press("k", "k")
	if what, got := v.Copy(); what != "line" || got != logged().Logs.Lines[57].Text {
		t.Errorf("copied %s %q", what, got)
	}
	sc.press("E", "E")
	if e := v.Entry(v.Cursor); !logsview.IsError(e) {
		t.Errorf("E went to %+v", e)
	}
	sc.press("L", "L")
	if n := len(v.Picked); n != 11 { // ten errors and a note
		t.Errorf("%d lines are errors", n)
	}
	sc.press("L", "L", "L", "a")
	if n := len(v.Picked); n != 11 {
		t.Errorf("%d lines mention the run", n)
	}
}

// A search covers all kept lines.
func BenchmarkLogSearch(b *testing.B) {
	s := logged()
	l := *s.Logs
	for i := range logs.MaxLines {
		l.Lines = append(l.Lines, logs.Entry{File: l.Files[0].Path,
			Text: fmt.Sprintf(`{"time":"2026-05-04T12:00:00Z","level":"info","seq":%d,"msg":"%s"}`, i,
				strings.Repeat("learning by doing ", 10))})
	}
	s.Logs = &l
	sc := onLogs(b, s, theme.New(true, true), 200, 50)
	v := sc.named("logs").Views[0].(*logsview.Lines)
	sc.drawn()
	for b.Loop() {
		v.Away = false
		v.Find(sc.model, `name":"calculate".*17\.2/1,|nowhere`)
	}
}
