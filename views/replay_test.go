package views

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	"acescope/engine/kind"
	"acescope/engine/learning/playbook"
	"acescope/engine/temporal/replay"
	"acescope/engine/temporal/replay/replaytest"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
)

// replaySnapshot returns the time machine at the event that produced the wrong answer of a recorded run, with
// what a hostile worker may report.
func replaySnapshot() *snapshot { return replayAt(0) }

// replayAt returns the time machine at a position of the recorded run, or with 0 at its start position.
func replayAt(pos int) *snapshot {
	s := &snapshot{Connection: cluster.Connection{State: cluster.ConnReady, Mode: "embedded",
		Namespace: "ace-dev"}, Runs: runs.RunList{Total: -1, ErrAt: -1}}
	w := wrongWalk()
	if pos == 0 {
		pos = w.Start(true)
	}
	verdict := &replay.Verdict{Outcome: "nondeterministic", WorkflowType: ace.TaskWorkflow,
		Events: 38}
	const divergence = `{"kind":"other","event_id":17,"event_type":"ActivityTaskScheduled",
		"expected":{"kind":"activity","name":"run_mirror"},"actual":{"kind":"activity","name":"run_reflector"},
		"recorded_by":"old","code":"new","sentence":"the code does another thing","advice":"guard the change"}`
	if err := json.Unmarshal([]byte(divergence), &verdict.Divergence); err != nil {
		panic(err)
	}
	s.Replay = &histories.Replay{WorkflowID: w.About.WorkflowID, RunID: w.About.RunID, About: w.About,
		Log:   w.Log,
		Frame: w.Frame(pos), Words: w.Words(pos), Sections: w.Sections(pos), Wrong: w.Wrong(),
		Known:   w.Values(pos),
		Bullets: w.Books.Given, Verdict: verdict, Closed: true}
	s.Replay.Frame.ClockBackMS = 3000
	s.Replay.Frame.Notes = []string{"a payload is binary/encrypted"}
	return s
}

// wrongWalk returns the history of a wrong answer with its playbook, of which one bullet has an author.
func wrongWalk() *histories.Walk {
	w := histories.NewWalk(replaytest.WrongTask(), nil, nil)
	w.Books.Given = map[string]*playbook.BulletHistory{
		"calc-1": {Bullet: playbook.Bullet{ID: "calc-1", Content: "Divide \x1b[31m numbers 日本."},
			Added: &playbook.Source{TaskID: "q-0", WorkflowID: "ace/q-0", RunID: "r-0", Branch: "books",
				Seq: 1}},
		"calc-2": {Bullet: playbook.Bullet{ID: "calc-2", Content: "Guess if no recipe is known."}},
	}
	w.Books.Before = w.Books.Given
	return w
}

// calling returns a time machine at the event at which a phase with requests to a model completed.
func calling() *snapshot {
	s := replaySnapshot()
	s.Replay.Verdict = nil
	s.Replay.Calls = []histories.StepCalls{{Step: "skills", Event: 14,
		Log:   ace.CallLog{Ref: recordRef, Requests: 2, Omitted: 1},
		Model: "m-1\x1b[31m", Usage: &ace.Usage{InputTokens: 1200, OutputTokens: 34, CostUSD: 0.0125}}}
	s.Replay.Calls[0].Prompt = "\n--- system\nYou solve problems.\x1b[31m\n\n--- user\nHow much interest is due?\n"
	s.Replay.Calls[0].Response = "\n--- answer\n23076.92\n"
	return s
}

func TestReplayRequests(t *testing.T) {
	for name, snap := range map[string]*snapshot{"closed": calling(), "open": recorded(calling())} {
		for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
			t.Run(fmt.Sprintf("%s-%dx%d", name, size[0], size[1]), func(t *testing.T) {
				sc := newScreen(t, snap, plainLook, size[0], size[1])
				sc.press("9", "O")
				if asked := slices.Contains(sc.store.heard(), "artifact "+
					recordRef.SHA256); asked != (name == "closed") {
					t.Errorf("asked for the record: %v", asked)
				}
				golden.RequireEqual(t, sc.plain())
			})
		}
	}
	sc := newScreen(t, replaySnapshot(), plainLook, 120, 40)
	sc.press("9", "O")
	sc.has("no request to a model is on record at this event")
}

// The screen at the event that produced the wrong answer, at a tool call, at the curator's result and at the
// merge.
func TestReplayDraws(t *testing.T) {
	for name, look := range map[string]theme.Styles{"dark": theme.New(true, false), "plain": plainLook,
		"ascii": theme.NoColor().Styles(theme.ASCII())} {
		for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
			if name != "plain" && size[0] != 80 {
				continue
			}
			t.Run(fmt.Sprintf("wrong-%s-%dx%d", name, size[0], size[1]), func(t *testing.T) {
				sc := newScreen(t, replaySnapshot(), look, size[0], size[1])
				sc.press("9")
				golden.RequireEqual(t, sc.drawn())
			})
		}
	}
	for name, pos := range map[string]int{"call": positionOf("Tool calls", "ok"),
		"curator": positionOf("Operations", "rejected"),
		"persist": positionOf("Playbook", "")} {
		t.Run(name, func(t *testing.T) {
			sc := newScreen(t, replayAt(pos), plainLook, 120, 40)
			sc.press("9")
			golden.RequireEqual(t, sc.plain())
		})
	}
}

// positionOf returns the last position that changes a section, in items of an outcome.
func positionOf(section string, outcome kind.Outcome) (pos int) {
	w := wrongWalk()
	for at := 1; at <= w.Len(); at++ {
		for _, s := range w.Sections(at) {
			if s.Title == section && slices.ContainsFunc(s.Items, func(i kind.Item) bool {
				return i.Changed && (i.Outcome == outcome)
			}) {
				pos = at
			}
		}
	}
	return pos
}

// A key leads from a bullet to the run that added it, and another one to the playbook.
func TestReplayBullets(t *testing.T) {
	snap := replaySnapshot()
	snap.Replay.Verdict = nil
	sc := newScreen(t, snap, plainLook, 120, 40)
	sc.press("9", "tab", "A")
	sc.has("move to a bullet")
	for range 7 {
		sc.press("j")
	}
	sc.press("b")
	sc.has("▸4 playbook")
	if got := sc.last("books "); !strings.Contains(got, "Branch:books Seq:1") ||
		!strings.Contains(got, "Bullets:true") {
		t.Errorf("asked for %s", got)
	}
	sc.press("esc", "A")
	sc.has("▸2 run")
	if got := sc.last("select "); got != "ace/q-0 r-0" {
		t.Errorf("selected %s", got)
	}
	sc.press("esc")
	sc.has("▸9 replay")
	if got, step := sc.last("select "), sc.last("step to "); got != "w-1 r-1" || step != "17" {
		t.Errorf("esc led back to %s, %s", got, step)
	}
}

// A key leads from the event that completes a task of an experiment to the run of the task, and back.
func TestReplayTaskOfExperiment(t *testing.T) {
	snap := replaySnapshot()
	frame := *snap.Replay.Frame
	frame.Task = &ace.TaskResult{TaskID: "q-7"}
	snap.Replay.Frame = &frame
	sc := newScreen(t, snap, plainLook, 120, 40)
	sc.press("9", "O")
	sc.has("▸2 run")
	if got := sc.last("select "); got != "ace/q-7 " {
		t.Errorf("selected %q", got)
	}
	sc.press("esc")
	sc.has("▸9 replay")
	if got := sc.last("step to "); got != "17" {
		t.Errorf("esc led back to event %s", got)
	}
}

// Both panes fill every size exactly, also without data.
func TestReplayEverySize(t *testing.T) {
	empty := replaySnapshot()
	empty.Replay = nil
	failed := replaySnapshot()
	failed.Replay = &histories.Replay{WorkflowID: "w", Err: "away"}
	for _, snap := range []*snapshot{replaySnapshot(), empty, failed} {
		sc := newScreen(t, snap, theme.New(true, true), 80, 24)
		sc.press("9")
		for width := 40; width <= 220; width += 9 {
			for height := 10; height <= 50; height += 7 {
				sc.resize(width, height)
				sc.drawn()
			}
		}
	}
}

func TestReplayKeys(t *testing.T) {
	sc := newScreen(t, replaySnapshot(), theme.New(true, true), 80, 24)
	sc.press("9")
	for key, want := range map[string]string{"right": "step by 0 true", "left": "step by 0 false",
		"]": "step by 1 true", "[": "step by 1 false",
		"}": "step by 2 true", "{": "step by 2 false", "e": "step by 3 true", "E": "step by 3 false",
		"home": "step to position 1", "G": "step to 0",
		"ctrl+n": "next change true", "ctrl+p": "next change false", "r": "verify false", "&": "verify true",
		"ctrl+s": "write page"} {
		sc.press(key)
		if told := sc.store.heard(); len(told) == 0 || !slices.Contains(told, want) {
			t.Errorf("%s: the store received %q, want %q", key, strings.Join(told, "; "), want)
		}
	}
}

// The remarks of the time machine are complete on small screens, and name no key for bullets without bullets.
func TestReplayRemarks(t *testing.T) {
	snap := replaySnapshot()
	snap.Replay.Verdict = nil
	sc := newScreen(t, snap, plainLook, 120, 40)
	sc.press("9", "tab")
	sc.has("; & compares strictly")
	sc.has("A opens the author of a bullet")
	wrong, without := *snap.Replay.Wrong, *snap.Replay
	wrong.Bullets = nil
	without.Wrong = &wrong
	snap.Replay = &without
	sc.show(snap)
	sc.has("graded at event 23")
	sc.lacks("A opens the author")
}
