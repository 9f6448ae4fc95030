package views

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/sources/detail"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
)

// recordedFlow returns the recorded history of a run of a flow: parallel branches, a loop of 30 iterations, a
// step that failed, a wait, and an approval.
func recordedFlow(t testing.TB) []*historypb.HistoryEvent {
	t.Helper()
	return historyIn(t, "../sources/flows/testdata/release.json")
}

func historyIn(t testing.TB, path string) []*historypb.HistoryEvent {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return h.GetEvents()
}

// flowSnapshot returns the data of a console that shows the run after its first events: those before the
// decision if open is set.
func flowSnapshot(t testing.TB, open bool) *snapshot {
	t.Helper()
	events := recordedFlow(t)
	if open {
		end := slices.IndexFunc(events, func(e *historypb.HistoryEvent) bool {
			return e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName() == "decide"
		})
		events = events[:end]
	}
	return flowSnapshotOf(t, events)
}

func flowSnapshotOf(t testing.TB, events []*historypb.HistoryEvent) *snapshot {
	t.Helper()
	d, err := detail.ReadEvents(events)
	if err != nil {
		t.Fatal(err)
	}
	shift(d, noon.Add(-time.Minute).Sub(events[len(events)-1].GetEventTime().AsTime()))
	r := runs.Run{WorkflowID: d.WorkflowID, RunID: d.RunID, Type: d.Type, TaskID: d.Input.TaskID,
		Flow:  d.Flow.Name,
		Phase: d.Flow.Phase, Status: d.Phase.Status, Start: d.Start, Close: d.Close}
	snap := ready(r)
	snap.Detail = d
	return snap
}

// shift moves the times of a run.
func shift(d *histories.Detail, by time.Duration) {
	move := func(times ...*time.Time) {
		for _, at := range times {
			if !at.IsZero() {
				*at = at.Add(by)
			}
		}
	}
	move(&d.Start, &d.Close, &d.Until)
	for i := range d.Flow.Steps {
		s := &d.Flow.Steps[i]
		move(&s.Start, &s.End)
		if s.Op != nil {
			op := *s.Op
			move(&op.Start, &op.End)
			s.Op = &op
		}
	}
	for i := range d.Log {
		move(&d.Log[i].At)
	}
}

func TestFlowScreens(t *testing.T) {
	for name, open := range map[string]bool{"approval": true, "completed": false} {
		for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
			t.Run(fmt.Sprintf("%s-%dx%d", name, size[0], size[1]), func(t *testing.T) {
				sc := newScreen(t, flowSnapshot(t, open), theme.New(true, false), size[0], size[1])
				sc.press("2")
				golden.RequireEqual(t, sc.drawn())
			})
		}
	}
}

func TestPlainFlowScreens(t *testing.T) {
	for name, c := range map[string]struct {
		open bool
		keys []string
	}{
		"list":    {true, nil},
		"facts":   {true, []string{"tab"}},
		"loop":    {false, []string{"2", "ctrl+d"}},
		"inspect": {false, []string{"2", "/", "l", "i", "n", "t", "enter", "ctrl+n", "tab"}},
		"end":     {false, []string{"2", "G"}},
		"decide":  {true, []string{"2", "w"}},
		"reject":  {true, []string{"2", "w", "d"}},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScreen(t, flowSnapshot(t, c.open), theme.New(true, true), 100, 30)
			sc.press(c.keys...)
			golden.RequireEqual(t, sc.plain())
		})
	}
}

// A run that continues others says which run of the chain it is, and that its steps and its cost are those
// since the first.
func TestContinuedFlowScreen(t *testing.T) {
	snap := flowSnapshotOf(t, historyIn(t, "../engine/workflows/testdata/flow-continued.json"))
	snap.Detail.Phase.Usage = ace.Usage{InputTokens: 25_000, OutputTokens: 5_000, CostUSD: 0.08125}
	sc := newScreen(t, snap, theme.New(true, true), 120, 40)
	sc.press("2")
	sc.has("run 2 of its chain, 1,214 of 1,214 steps")
	sc.has("$0.0813 since run 1")
}

// A decision applies to the step and the run that the dialog shows.
func TestDecideFlow(t *testing.T) {
	for name, c := range map[string]struct {
		keys []string
		want string
	}{
		"approve": {[]string{"2", "w", "y"}, `decide flow ace-flow/rel-1 %s decide true ""`},
		"comment": {[]string{"2", "w", "c", "o", "k", "enter"},
			`decide flow ace-flow/rel-1 %s decide true "ok"`},
		"reject": {[]string{"2", "w", "d", "n", "o", "enter"},
			`decide flow ace-flow/rel-1 %s decide false "no"`},
	} {
		t.Run(name, func(t *testing.T) {
			snap := flowSnapshot(t, true)
			sc := newScreen(t, snap, theme.New(true, true), 100, 30)
			sc.run(sc.press(c.keys...))
			if want := fmt.Sprintf(c.want, snap.Detail.RunID); !slices.Contains(sc.store.heard(), want) {
				t.Errorf("%q, want %s", sc.store.heard(), want)
			}
		})
	}
	sc := newScreen(t, flowSnapshot(t, false), theme.New(true, true), 100, 30)
	sc.press("2", "w")
	sc.has("nothing waits for a decision")
}

// Texts of a flow cannot control the terminal, and every size is drawn.
func TestFlowEverySize(t *testing.T) {
	t.Parallel()
	evil := "\x1b[2J\x1b]0;owned\a\u202egnp.exe\u2066\r\n\tgreen 😀 " + strings.Repeat("wide 漢字 ", 40)
	snap := flowSnapshot(t, true)
	f := snap.Detail.Flow
	f.Name, f.By, f.Dir, f.Problem = evil, evil, evil, evil
	f.Outputs = map[string]any{evil: evil}
	for i := range f.Steps {
		s := &f.Steps[i]
		s.Path, s.Label, s.Kind, s.Detail, s.Error, s.Operation = evil, evil, evil, evil, evil, evil
		s.Status = []flow.Status{flow.StepRunning, flow.StepWaiting, flow.StepFailed, flow.Status(evil),
			""}[i%5]
		s.Approval = i%2 == 0
		if s.Op != nil {
			op := *s.Op
			op.ID, op.Activity, op.Failure = evil, evil, &ace.Failure{Type: evil, Message: evil}
			s.Op = &op
		}
	}
	for _, keys := range [][]string{{}, {"2"}, {"2", "]", "j", "tab"}, {"tab"}, {"2", "w"}} {
		sc := newScreen(t, snap, theme.New(true, false), 80, 24)
		sc.press(keys...)
		for w := 40; w <= 220; w += 18 {
			for _, h := range []int{10, 17, 24, 50} {
				sc.resize(w, h)
				sc.drawn()
			}
		}
		if t.Failed() {
			t.Fatalf("after %v", keys)
		}
	}
}

// The fork key takes the step under the cursor, completes inputs and prompt, and passes the changes on after
// a yes.
func TestForkFlow(t *testing.T) {
	snap := flowSnapshot(t, false)
	sc := newScreen(t, snap, theme.New(true, true), 100, 30)
	run := "fork {ace-flow/rel-1 " + snap.Detail.RunID + "} "
	sc.press("2", "j", "f")
	sc.has("fork from=plan")
	sc.press(append(letters(`inputs.version=`), "tab")...)
	sc.has("inputs.version=1.2.0")
	sc.has("reuses the results before step plan; changes inputs.version")
	sc.run(sc.press("enter"))
	if got, want := sc.told(1), run+`{0 } from plan [{"inputs.version" "1.2.0"}]`; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
	sc.run(sc.press("y"))
	sc.has("fork done")

	for line, want := range map[string]string{
		`fork at=7 flow=other.yaml`: run + `{7 } [{"flow" "other.yaml"}]`,
		`fork from=each/3/lint inputs.targets:=["a"]`: run +
			`{0 } from each/3/lint [{"inputs.targets:" "[\"a\"]"}]`,
		`fork from=plan prompt="say \"hi\""`: run + `{0 } from plan [{"prompt" "say \"hi\""}]`,
	} {
		sc := newScreen(t, snap, theme.New(true, true), 100, 30)
		sc.press(append([]string{"2", ":"}, letters(line)...)...)
		sc.run(sc.press("enter"))
		if got := sc.told(1); got != want {
			t.Errorf("%s: told %s, want %s", line, got, want)
		}
	}
	for line, want := range map[string]string{
		`fork inputs.a=1`:           "missing point; give from=STEP or at=EVENT",
		`fork from=plan at=3`:       "not both",
		`fork from=plan model=x`:    "model: not possible for a run of a flow",
		`fork from=plan inputs.=1`:  "inputs.: not possible for a run of a flow",
		`fork phase=skills model=x`: "phase: not possible for a run of a flow",
	} {
		sc := newScreen(t, snap, theme.New(true, true), 100, 30)
		sc.press(append([]string{"2", ":"}, letters(line)...)...)
		sc.run(sc.press("enter"))
		sc.has(want)
	}
	sc = newScreen(t, snap, theme.New(true, true), 100, 30)
	sc.press(append([]string{"2", "f"}, append(repeated("backspace", 40), letters("from=nowhere")...)...)...)
	sc.has("the run did not begin a step nowhere")
}

func repeated(key string, n int) []string { return slices.Repeat([]string{key}, n) }
