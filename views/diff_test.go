package views

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/temporal/compare"
	"acescope/engine/temporal/historyfile"
	"acescope/sources/histories"
	"acescope/theme"
)

// twoRuns returns a comparison of two runs.
func twoRuns() *histories.RunDiff {
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	step := func(kind, name string, nth int, event int64, ms float64, status string) *compare.Step {
		key := kind + " " + name
		if nth > 0 {
			key += fmt.Sprintf(" #%d", nth)
		}
		return &compare.Step{Key: key, Kind: kind, Name: name, Event: event, End: event + 2,
			At: at(int(event)), DurationMS: ms, Attempt: 1, Status: status}
	}
	raw := func(v any) json.RawMessage { data, _ := json.Marshal(v); return data }
	d := &compare.Diff{A: compare.About{Type: "AceTaskWorkflow", WorkflowID: "ace/plain-e1-0004",
		RunIDs: []string{"run-a"}, Runs: 1, Events: 38, Steps: 12, Status: "done"},
		B: compare.About{Type: "AceTaskWorkflow", WorkflowID: "ace/tuned-e1-0004",
			RunIDs: []string{"run-b"}, Runs: 1, Events: 44, Steps: 13, Status: "failed"},
		Metrics: []compare.Metric{{Name: "duration", Unit: "ms", A: 41_000, B: 12_500},
			{Name: "input tokens", A: 1200, B: 1210}, {Name: "cost", Unit: "USD", A: 0.012, B: 0.0115},
			{Name: "skills", A: 4, B: 4}, {Name: "bullets", A: 12, B: 13}}}
	same := func(kind, name string, nth int, event int64) compare.Pair {
		return compare.Pair{Status: compare.Same, A: step(kind, name, nth, event, 12, "done"),
			B: step(kind, name, nth, event+2, 14, "done")}
	}
	d.Pairs = []compare.Pair{
		{Status: compare.Changed, A: step("start", "AceTaskWorkflow", 0, 1, 0, "done"),
			B:     step("start", "AceTaskWorkflow", 0, 1, 0, "done"),
			Input: []compare.Change{{Path: "/playbook_hash", A: raw("7f4e84b6"), B: raw("1a6efecf")}}},
		same("activity", "run_generator", 1, 5),
		{Status: compare.Changed, A: step("activity", "run_skills_session", 1, 11, 1200, "done"),
			B: step("activity", "run_skills_session", 1, 13, 2400, "done"),
			Result: []compare.Change{{Path: "/answer", A: raw("17.2"), B: raw("17.25")},
				{Path: "/rationale", A: raw("round to two places at each step of the calculation"),
					B: raw("round to three decimal places at the end of the calculation")},
				{Path: "/used/3", B: raw(map[string]any{"id": "calc-00012", "section": "formulas",
					"content": "net income divided by equity"})}}},
		same("tool call", "look_up", 1, 11), same("tool call", "inspect", 1, 11),
		same("tool call", "calculate", 1, 11), same("tool call", "calculate", 2, 11),
		{Status: compare.OnlyB, B: step("tool call", "calculate", 3, 13, 4, "done")},
		{Status: compare.Moved, Moved: true, A: step("tool call", "plot", 1, 11, 4, "done"),
			B: step("tool call", "plot", 1, 13, 4, "done")},
		{Status: compare.OnlyA, A: step("activity", "run_reflector", 1, 18, 40, "done")},
		{Status: compare.Unreadable, A: step("signal", "encrypted", 1, 19, 0, "done"),
			B: step("signal", "encrypted", 1, 20, 0, "done")},
		{Status: compare.Changed, A: step("end", "run", 0, 38, 0, "done"),
			B: step("end", "run", 0, 44, 0, "failed")},
	}
	d.Pairs[7].B.Input = raw(map[string]any{"formula": "a/b", "values": []int{17, 100}})
	d.Pairs[11].B.Error = "permanent: the reflector refused\nthe answer"
	d.Counts = map[string]int{compare.Same: 5, compare.Changed: 3, compare.OnlyA: 1,
		compare.OnlyB: 1, compare.Moved: 1, compare.Unreadable: 1}
	d.First = &compare.Divergence{Pair: 1,
		Text: `start AceTaskWorkflow (event 1 in A, 1 in B): input differs at /playbook_hash: "7f4e84b6" in A, "1a6efecf" in B.`}
	d.FirstResult = &compare.Divergence{Pair: 3,
		Text: `activity run_skills_session #1 (event 11 in A, 13 in B): result differs at /answer: "17.2" in A, "17.25" in B, and in 2 more places.`}
	d.Notes = []string{"Payloads of 1 step are encoded and not the same byte for byte: whether they differ cannot be told here."}
	return &histories.RunDiff{A: histories.DiffRef{WorkflowID: "ace/plain-e1-0004", RunID: "run-a",
		TaskID: "plain-e1-0004"},
		B:     histories.DiffRef{WorkflowID: "ace/tuned-e1-0004", RunID: "run-b", TaskID: "tuned-e1-0004"},
		ReadA: 38, ReadB: 44, Diff: d, Duration: 12 * time.Millisecond, Updated: noon}
}

// diffing returns a console that shows the diff screen.
func diffing(t testing.TB, of *histories.RunDiff, s theme.Styles, width, height int, keys ...string) *screen {
	t.Helper()
	snap := full(12)
	sc := newScreen(t, snap, s, width, height)
	sc.press("space", "space", "=")
	next := *snap
	next.RunDiff = of
	sc.show(&next)
	sc.press(keys...)
	return sc
}

// hostileDiff returns a comparison whose texts try to control the terminal.
func hostileDiff() *histories.RunDiff {
	r := twoRuns()
	evil := "\x1b[2J\u202eevil 🙂 名前\x00\r\n"
	r.A.TaskID = evil
	p := &r.Diff.Pairs[2]
	p.A.Key, p.B.Error = evil+"step", evil
	data, _ := json.Marshal(strings.Repeat(evil, 40))
	p.Result[0] = compare.Change{Path: "/" + evil, A: data, B: json.RawMessage(`"x y"`), Cut: true}
	r.Diff.First.Text = evil
	return r
}

func TestDiffScreens(t *testing.T) {
	reading := twoRuns()
	reading.Diff, reading.Reading = nil, true
	missing := twoRuns()
	missing.Diff, missing.ErrB = nil, `run "tuned-e1-0004" not found`
	same := twoRuns()
	for i := range same.Diff.Pairs {
		p := &same.Diff.Pairs[i]
		p.Status, p.Input, p.Result, p.Moved = compare.Same, nil, nil, false
		if p.A == nil {
			p.A = p.B
		}
		p.B = p.A
	}
	same.Diff.First, same.Diff.FirstResult, same.Diff.Counts = nil, nil,
		map[string]int{compare.Same: 12}
	same.Diff.Notes = []string{"A and B are the same run, run-a."}
	for name, c := range map[string]struct {
		of            *histories.RunDiff
		width, height int
		keys          []string
	}{
		"list": {twoRuns(), 80, 24, nil}, "list-wide": {twoRuns(), 200, 50, nil},
		"change":      {twoRuns(), 80, 24, []string{"ctrl+n", "ctrl+n", "tab"}},
		"change-wide": {twoRuns(), 200, 50, []string{"ctrl+n", "ctrl+n"}},
		"end":         {twoRuns(), 80, 24, []string{"G", "tab"}},
		"only":        {twoRuns(), 200, 50, []string{"ctrl+n", "ctrl+n", "ctrl+n"}},
		"unfolded":    {twoRuns(), 80, 24, []string{"a", "G"}},
		"kind":        {twoRuns(), 80, 24, []string{"F", "F"}},
		"differences": {twoRuns(), 80, 24, []string{"m"}}, "reading": {reading, 80, 24, nil},
		"missing": {missing, 80, 24, nil},
		"same":    {same, 200, 50, []string{"j"}}, "hostile": {hostileDiff(), 200, 50, []string{"ctrl+n", "ctrl+n"}},
		"none": {nil, 80, 24, nil},
	} {
		for look, styles := range map[string]theme.Styles{"dark": theme.New(true, false),
			"nocolor": theme.New(true, true)} {
			t.Run(name+"/"+look, func(t *testing.T) {
				golden.RequireEqual(t, diffing(t, c.of, styles, c.width, c.height, c.keys...).drawn())
			})
		}
	}
}

// Both panes fill every size exactly.
func TestDiffEverySize(t *testing.T) {
	for _, of := range []*histories.RunDiff{twoRuns(), hostileDiff(), nil} {
		for _, keys := range [][]string{nil, {"ctrl+n", "ctrl+n"}, {"G"}, {"tab"}} {
			sc := diffing(t, of, theme.New(true, true), 80, 24, keys...)
			for w := 40; w <= 220; w += 9 {
				for h := 10; h <= 50; h += 5 {
					sc.resize(w, h)
					sc.drawn()
				}
			}
		}
	}
}

func TestDiffKeys(t *testing.T) {
	sc := diffing(t, twoRuns(), theme.New(true, true), 80, 24)
	st := sc.store
	heard := func() string { return strings.Join(st.heard(), "; ") }
	sc.resize(120, 40)
	sc.has("B–A")
	sc.has("-$0.0005")
	sc.resize(80, 24)
	if got := heard(); !strings.Contains(got, "diff ") || !strings.Contains(got, "look diff true") {
		t.Errorf("d sent %s", got)
	}
	sc.press("ctrl+n", "ctrl+n", "J")
	if got := heard(); !strings.Contains(got, "select ace/plain-e1-0004 run-a") {
		t.Errorf("J sent %s", got)
	}
	sc.press("esc", "l", "O")
	if got := heard(); !strings.Contains(got, "select ace/tuned-e1-0004 run-b") {
		t.Errorf("O sent %s", got)
	}
	sc.press("esc", "P", "~")
	if got := heard(); !strings.Contains(got, "diff ace/plain-e1-0004 ace/tuned-e1-0004 true") ||
		!strings.Contains(got, "diff ace/tuned-e1-0004 ace/plain-e1-0004 false") {
		t.Errorf("P, ~ sent %s", got)
	}
}

// d on a task that flipped between two experiments compares its two runs.
func TestDiffOfFlippedTask(t *testing.T) {
	sc := newScreen(t, three(), theme.New(true, true), 200, 50)
	sc.press(append(append([]string{}, comparing...), "=")...)
	if got := strings.Join(sc.store.heard(), "; "); !strings.Contains(got, "diff ace/") {
		t.Errorf("d sent %s", got)
	}
}

// forkDiff compares a fork with its original, as recorded from a server.
func forkDiff(t *testing.T) *histories.RunDiff {
	t.Helper()
	var sides [2]compare.Side
	for i, name := range []string{"original", "original-fork"} {
		f, err := os.Open("../engine/workflows/testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		list, err := historyfile.Read(f)
		if _ = f.Close(); err != nil {
			t.Fatal(err)
		}
		sides[i] = compare.Side{Runs: [][]*historypb.HistoryEvent{list[0].Events}}
	}
	d := compare.Of(sides[0], sides[1], compare.Options{})
	return &histories.RunDiff{A: histories.DiffRef{WorkflowID: d.A.WorkflowID, RunID: d.A.RunIDs[0],
		TaskID: "original-hello"},
		B: histories.DiffRef{WorkflowID: d.B.WorkflowID, RunID: d.B.RunIDs[0],
			TaskID: "original-hello~f1"},
		ReadA: d.A.Events, ReadB: d.B.Events, Diff: d, Duration: 2 * time.Millisecond, Updated: noon}
}

// The steps that a fork reused are marked.
func TestForkDiffScreens(t *testing.T) {
	of := forkDiff(t)
	for name, c := range map[string]struct {
		width, height int
		keys          []string
	}{
		"list": {80, 24, []string{"a"}}, "list-wide": {200, 50, []string{"a"}},
		"figures": {80, 24, []string{"tab", "G"}},
		"step":    {80, 24, []string{"a", "j", "j", "tab"}},
	} {
		for look, styles := range map[string]theme.Styles{"dark": theme.New(true, false),
			"nocolor": theme.New(true, true)} {
			t.Run(name+"/"+look, func(t *testing.T) {
				golden.RequireEqual(t, diffing(t, of, styles, c.width, c.height, c.keys...).drawn())
			})
		}
	}
}
