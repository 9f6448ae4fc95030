package views

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	"acescope/sources/experiments"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/widget"
	"acescope/views/run"
	"acescope/views/timeline"
)

// rich returns the data of a run with all kinds of rows.
func rich() *snapshot {
	s := full(3)
	s.Runs.Rows[0].Status, s.Runs.Rows[0].Close = ace.Failed, noon
	d := s.Detail
	no, label := false, "0.172"
	d.Close, d.CloseEvent, d.From, d.Events = noon, 61, runs.FromHistory, 61
	d.Start = noon.Add(-12 * time.Second)
	at := func(ms int) time.Time { return d.Start.Add(time.Duration(ms) * time.Millisecond) }
	d.Phase.Status, d.Phase.Correct, d.Phase.Answer = ace.Failed, &no, "17.2"
	d.Phase.Failure = &ace.Failure{Kind: ace.Failed, Type: "Overloaded", Message: "model: 529 overloaded"}
	d.Phase.Steps[1].Usage = &ace.Usage{InputTokens: 1204, OutputTokens: 90, CostUSD: 0.0081}
	d.Phase.Steps[2].Status = ace.StatusFailed
	d.Causes = []histories.Cause{
		{Kind: "activity", Activity: ace.ActivityReflector, Retry: "out of attempts",
			Message: "activity error"},
		{Kind: "application", Type: "Overloaded", Message: "model: 529 overloaded", Final: true},
	}
	d.Activities = []histories.Activity{
		{Name: ace.ActivityGenerator, Phase: ace.PhaseGenerator, Scheduled: at(10), Started: at(30),
			Closed: at(842), ScheduledEvent: 5, StartedEvent: 6, ClosedEvent: 7, Attempt: 1, Worker: "w-1"},
		{Name: ace.ActivitySkills, Phase: ace.PhaseSkills, Scheduled: at(850), Started: at(4000),
			Closed: at(5430), ScheduledEvent: 11, StartedEvent: 40, ClosedEvent: 41, Attempt: 2,
			LastError: &ace.Failure{Kind: ace.TimedOut, Type: "heartbeat",
				Message: "activity Heartbeat timeout"}},
		{Name: ace.ActivityReflector, Phase: ace.PhaseReflector, Scheduled: at(5500), Started: at(11000),
			Closed: at(11900), ScheduledEvent: 45, StartedEvent: 58, ClosedEvent: 59, Attempt: 5,
			LastError: d.Phase.Failure, Failure: d.Phase.Failure, Retry: "out of attempts", Causes: d.Causes},
	}
	d.Pending = nil
	d.Encoded = []histories.EncodedPayload{{Event: 23, What: "signal record_tool_event",
		Encoding: "binary/encrypted", Size: 1234}}
	d.Input.Label = &label
	d.Plan, d.TrajectoryID, d.BulletIDs = "1. look the formula up\n2. put the numbers in", "traj-0182",
		[]string{"calc-00002", "calc-00007"}
	d.OldBullets = map[string]histories.OldBullet{
		"calc-00007": {Section: "rounding",
			Content: "Round to two places at each step, only at the end of the sum."},
		"calc-00031": {Section: "rounding", Content: "Never round."},
		"calc-00002": {Section: "formulae", Content: "Look formulae up before calculating.", Helpful: 4},
	}
	big := `{"rows":["` + strings.Repeat(`income 17.2 \"net\"","`, 100_000) + `end"]}`
	ref := `{"sha256":"` + strings.Repeat("ab", 32) + `","size":123456,"media_type":"application/jsonl"}`
	calls := []struct {
		name, args, result, err string
		accepted, ok, pending   bool
		ms                      float64
	}{
		{"lookup", `{"name":"retrun on equity"}`, ``, "no such formula: retrun on equity", true, false, false,
			4},
		{"lookup", `{"name":"return on equity","exact":true,"limit":3,"units":null}`, `"net income / equity"`,
			"", true, true, false, 0.0042},
		{"calculate", `{"expr":"rm -rf"}`, ``, "", false, false, false, 0},
		{"calculate", `{"expr":"17.2/100"}`, `0.172`, "", true, true, false, 12},
		{"read_table", `{"path":"income.csv"}`, big, "", true, true, false, 310},
		{"read_secret", `{"name":"key"}`,
			`{"metadata":{"encoding":"YmluYXJ5L2VuY3J5cHRlZA=="},"data":"AAECAwQFBgcICQ=="}`, "", true, true,
			false, 1.5},
		{"shell", `{"cmd":"cat e\u001b[2Jvil"}`, `"\u001b[31mred\u001b]0;owned\u0007 財務 \u202eexe.gnp"`, "",
			true, true, false, 9},
		{"fetch", `{"url":"https://example.org"}`, ref, "", true, true, false, 88},
		{"plot", `{"format":"png"}`, `"\u0000\u0001\u0002PNG\u0000\u0003"`, "", true, true, false, 40},
		{"nested", `{"a":{"b":[1,2.5,-3e4,true,null,{}]}}`, `"{\"inner\":[]}"`, "", true, true, false, 2},
		{"search", `{"q":"equity"}`, ``, "", true, false, true, 0},
	}
	var all []*histories.ToolCall
	for i, c := range calls {
		call := &histories.ToolCall{Call: ace.Call{Pending: c.pending,
			Invocation: ace.Invocation{ID: fmt.Sprint("call-", i+1), Name: c.name,
				Args:   json.RawMessage(c.args),
				Result: json.RawMessage(c.result), Error: c.err, Accepted: c.accepted, OK: c.ok,
				At: at(1000 + 300*i), DurationMS: c.ms}}, UseEvent: int64(13 + 2*i)}
		if !c.pending {
			call.ResultEvent = int64(14 + 2*i)
		}
		all = append(all, call)
	}
	d.Calls = histories.Calls(all...)
	d.Lineage = histories.Lineage{Prev: "run-q-00003-before", How: "reset",
		Parent: "ace-experiment/finance-7", ParentRun: "run-exp"}
	return s
}

// on selects the n-th row of a kind.
func on(t *testing.T, sc *screen, kind string, n int) {
	t.Helper()
	v := outlineOf(t, sc)
	sc.plain()
	for i, r := range v.Rows {
		if r.Kind == kind && r.N == n && !r.Sub {
			v.Move(i)
			sc.resize(sc.width, sc.height)
			return
		}
	}
	t.Fatalf("no row of kind %s, %d", kind, n)
}

func outlineOf(t *testing.T, sc *screen) *run.Outline {
	t.Helper()
	for _, s := range sc.screens {
		if s.Name == "run" {
			return s.Views[0].(*run.Outline)
		}
	}
	t.Fatal("no run screen")
	return nil
}

func TestRunScreen(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		for look, styles := range map[string]theme.Styles{"dark": theme.New(true, false),
			"nocolor": theme.New(true, true)} {
			t.Run(fmt.Sprintf("%dx%d-%s", size[0], size[1], look), func(t *testing.T) {
				sc := newScreen(t, rich(), styles, size[0], size[1])
				sc.press("2")
				golden.RequireEqual(t, sc.drawn())
			})
		}
	}
}

func TestRunScreenRows(t *testing.T) {
	for name, c := range map[string]struct {
		kind          string
		n             int
		width, height int
		keys          []string
	}{
		"failure":      {"failure", 0, 80, 24, []string{"tab"}},
		"phase":        {"phase", 2, 80, 24, []string{"tab"}},
		"update":       {"operation", 1, 80, 24, []string{"tab"}},
		"rejected":     {"operation", 4, 200, 50, nil},
		"tag":          {"operation", 3, 80, 24, []string{"tab"}},
		"call":         {"call", 1, 200, 50, nil},
		"call-big":     {"call", 4, 80, 24, []string{"tab", "G"}},
		"call-encoded": {"call", 5, 80, 24, []string{"tab"}},
		"call-hostile": {"call", 6, 80, 24, []string{"tab"}},
		"call-ref":     {"call", 7, 80, 24, []string{"tab", "O"}},
		"call-binary":  {"call", 8, 80, 24, []string{"tab"}},
		"call-nested":  {"call", 9, 80, 40, []string{"tab"}},
		"calls":        {"call", 0, 80, 24, nil},
		"answer":       {"answer", 0, 80, 24, []string{"tab"}},
		"plan-open":    {"plan", 0, 80, 24, []string{"l"}},
		"folded":       {"call", 0, 80, 24, []string{"h", "h"}},
		"encoded":      {"encoded", 0, 80, 24, []string{"tab"}},
		"skill":        {"skill", 1, 80, 24, []string{"tab"}},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScreen(t, rich(), theme.New(true, true), c.width, c.height)
			sc.press("2")
			on(t, sc, c.kind, c.n)
			sc.press(c.keys...)
			golden.RequireEqual(t, sc.plain())
		})
	}
}

// Every row fills both panes exactly at every size; sc.drawn checks it.
func TestRunScreenEverySize(t *testing.T) {
	t.Parallel()
	for _, snap := range []*snapshot{rich(), hostile(), full(3), foreign(), experiment(), failedExperiment(),
		ready()} {
		sc := newScreen(t, snap, theme.New(true, false), 80, 24)
		sc.press("2")
		sc.drawn()
		v := outlineOf(t, sc)
		for i := 0; i < max(len(v.Rows), 1); i++ {
			v.Scroll(1)
			sc.resize(40+i*13%180, 10+i*7%40)
			sc.drawn()
			sc.press("l", "tab")
			sc.drawn()
			sc.press("G", "tab")
			sc.drawn()
			if t.Failed() {
				t.Fatalf("row %d, %+v", v.Cursor, v.Last)
			}
		}
	}
}

func failedExperiment() *snapshot {
	s := experiment()
	s.Detail.FailedTasks = []experiments.Finished{{WorkflowID: "ace/finance-7-e1-0004", RunID: "r-4",
		Event: 77, At: noon, Took: time.Second,
		Result: ace.TaskResult{TaskID: "finance-7-e1-0004"}, Status: ace.Failed,
		Failure: &ace.Failure{Kind: ace.Failed, Type: "Overloaded", Message: "model: 529 overloaded"}}}
	s.Detail.Activities = []histories.Activity{{Name: ace.ActivityEvaluate,
		Scheduled: noon.Add(-90 * time.Second), Started: noon.Add(-89 * time.Second),
		Closed: noon.Add(-80 * time.Second), ScheduledEvent: 5, Attempt: 1}}
	return s
}

func TestRunScreenKeys(t *testing.T) {
	sc := newScreen(t, rich(), theme.New(true, true), 120, 40)
	sc.press("2")
	v := outlineOf(t, sc)
	sc.plain()
	sc.press("]")
	if v.Last.Kind != "section" || v.Last.Section != "Phases" {
		t.Errorf("] leads to %+v", v.Last)
	}
	sc.press("[", "[")
	if v.Last.Section != "About" {
		t.Errorf("[ leads to %+v", v.Last)
	}
	sc.press("g", "e")
	if v.Last.Kind != "failure" {
		t.Errorf("e leads to %+v", v.Last)
	}
	sc.press("E")
	if v.Last != (run.Key{"Tool calls", "call", 2}) {
		t.Errorf("E leads to %+v", v.Last)
	}
	sc.press(append(append([]string{"/"}, letters("17.2/100")...), "enter")...)
	if v.Last != (run.Key{"Tool calls", "call", 3}) {
		t.Errorf("the match is %+v", v.Last)
	}
	sc.press("ctrl+n")
	if v.Last != (run.Key{"Tool calls", "call", 3}) {
		t.Errorf("the next match of a single match is %+v", v.Last)
	}
	if what, text := v.Copy(); what != "call id" || text != "call-4" {
		t.Errorf("copied %s %q", what, text)
	}
	ins := sc.named("run").Views[1].(*run.Inspector)
	if what, text := ins.Copy(); what != "result" || text != "0.172" {
		t.Errorf("copied %s %q", what, text)
	}
	sc.press("J")
	if to := sc.named("timeline").Views[0].(*timeline.Timeline); to.Want != 20 {
		t.Errorf("J leads to event %d", to.Want)
	}
	sc.press("esc")
	sc.press("h")
	if v.Last.Kind != "section" || !v.Folded["Tool calls"] {
		t.Errorf("folded: %+v", v.Last)
	}
	sc.press("l")
	if v.Folded["Tool calls"] {
		t.Error("l does not unfold")
	}
	on(t, sc, "call", 7)
	sc.press("O")
	if !contained(sc.store.heard(), "artifact "+strings.Repeat("ab", 32)) {
		t.Errorf("o opens nothing: %v", sc.store.heard())
	}
	snap := rich()
	snap.Artifacts = &histories.Artifacts{List: []histories.Artifact{{Ref: ace.Ref{SHA256: strings.Repeat(
		"ab", 32)}, Data: []byte(`{"found":"it"}`)}}}
	sc.show(snap)
	if out := sc.plain(); !strings.Contains(out, `"found": "it"`) ||
		v.Last != (run.Key{"Tool calls", "call", 7}) {
		t.Errorf("the artifact is not shown on %+v:\n%s", v.Last, out)
	}
	snap = rich()
	snap.Artifacts = &histories.Artifacts{List: []histories.Artifact{{Ref: ace.Ref{SHA256: strings.Repeat(
		"ab", 32)}, Err: "artifact not found"}}}
	sc.show(snap)
	if out := sc.plain(); !strings.Contains(out, "artifact not found") {
		t.Errorf("no error for a missing artifact:\n%s", out)
	}
}

func TestFoldedSectionsAreKept(t *testing.T) {
	sc := newScreen(t, rich(), theme.New(true, true), 80, 24)
	v := outlineOf(t, sc)
	v.Restore(map[string]string{"folded": "Skills,Tool calls,no such part"})
	sc.press("2")
	if out := sc.plain(); !strings.Contains(out, "Skills  7 calls  (folded: l unfolds)") {
		t.Error(out)
	}
	if kept := v.Keep()["folded"]; kept != "Skills,Tool calls" {
		t.Error(kept)
	}
}

func contained(list []string, want string) bool {
	for _, l := range list {
		if l == want {
			return true
		}
	}
	return false
}

func TestRunScreenFollowsTheChain(t *testing.T) {
	sc := newScreen(t, rich(), theme.New(true, true), 80, 24)
	sc.press("2")
	on(t, sc, "link", 0)
	sc.press("O")
	if !contained(sc.store.heard(), "select ace/q-00003 run-q-00003-before") {
		t.Errorf("o does not select the linked run: %v", sc.store.heard())
	}
	sc.press("backspace")
	if heard := sc.store.heard(); heard[len(heard)-1] != "select ace/q-00003 run-q-00003" {
		t.Errorf("backspace does not select the previous run: %v", heard)
	}
}

// TestRunScreenKeepsItsRow adds rows above the selected call.
func TestRunScreenKeepsItsRow(t *testing.T) {
	sc := newScreen(t, rich(), theme.New(true, true), 80, 24)
	sc.press("2")
	on(t, sc, "call", 3)
	v := outlineOf(t, sc)
	snap := rich()
	snap.Detail.Pending = []histories.PendingActivity{{Type: ace.ActivityCurator, State: "scheduled",
		Attempt: 4, MaxAttempts: 9, LastError: "x", Next: noon.Add(3 * time.Second)}}
	sc.show(snap)
	out := sc.plain()
	if v.Last != (run.Key{"Tool calls", "call", 3}) ||
		!strings.Contains(out, "▸  11:59:49 ✓ calculate(\"expr\":\"17.2/100\")") {
		t.Errorf("the cursor is on %+v:\n%s", v.Last, out)
	}
}

func TestRunScreenPlain(t *testing.T) {
	retrying := rich()
	d := retrying.Detail
	d.Close, d.CloseEvent, d.Phase.Failure, d.Causes, d.Phase.Status = time.Time{}, 0, nil, nil, ace.Running
	d.Phase.Steps[2].Status = ace.StatusRunning
	d.Activities = d.Activities[:2]
	d.Pending = []histories.PendingActivity{{Type: ace.ActivityReflector, State: "scheduled", Attempt: 3,
		MaxAttempts: 5, LastError: "model: 529 overloaded", Next: noon.Add(3 * time.Second)}}
	for name, c := range map[string]struct {
		snap *snapshot
		keys []string
	}{
		"retrying":   {retrying, nil},
		"foreign":    {foreign(), nil},
		"experiment": {failedExperiment(), nil},
		"empty":      {ready(), nil},
		"hostile":    {hostile(), nil},
		"help":       {rich(), []string{"?"}},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScreen(t, c.snap, theme.New(true, true), 80, 24)
			sc.press("2")
			sc.press(c.keys...)
			golden.RequireEqual(t, sc.plain())
		})
	}
}

func TestRunScreenASCII(t *testing.T) {
	snap := rich()
	snap.Detail.Calls = histories.Calls(snap.Detail.Calls.At(1), snap.Detail.Calls.At(4))
	sc := newScreen(t, snap, theme.NoColor().Styles(theme.ASCII()), 120, 60)
	sc.press("2")
	for range len(outlineOf(t, sc).Rows) {
		sc.press("j")
		for _, r := range sc.plain() {
			if r > 0x7e {
				t.Fatalf("%q is on a screen that must be ASCII:\n%s", r, sc.plain())
			}
		}
	}
}

// BenchmarkRunScreen20k draws a new snapshot of a run with 20,000 calls.
func BenchmarkRunScreen20k(b *testing.B) {
	snap := rich()
	all := make([]*histories.ToolCall, 20_000)
	for i := range all {
		c := *snap.Detail.Calls.At(1)
		c.ID = fmt.Sprint("call-", i)
		all[i] = &c
	}
	snap.Detail.Calls = histories.Calls(all...)
	sc := newScreen(b, snap, theme.New(true, false), 200, 50)
	sc.press("2", "G")
	b.ReportAllocs()
	for b.Loop() {
		d := *snap.Detail
		next := *snap
		next.Detail = &d
		sc.show(&next)
		sc.model.View()
	}
}

// BenchmarkRunSearch20k searches for a text that no call contains.
func BenchmarkRunSearch20k(b *testing.B) {
	snap := rich()
	all := make([]*histories.ToolCall, 20_000)
	for i := range all {
		all[i] = snap.Detail.Calls.At(1)
	}
	snap.Detail.Calls = histories.Calls(all...)
	sc := newScreen(b, snap, theme.New(true, false), 200, 50)
	sc.press("2", "/")
	sc.press(append(letters("nowhere to be found"), "enter")...)
	for b.Loop() {
		sc.press("ctrl+n")
		if sc.named("run").Views[0].(*run.Outline).Last.Kind == "call" {
			b.Fatal("found")
		}
	}
}

// BenchmarkBigPayload prepares a payload of 2 MB for drawing.
func BenchmarkBigPayload(b *testing.B) {
	raw := rich().Detail.Calls.At(4).Result
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		widget.Show(raw)
	}
}
