package views

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
)

func replaySnapshot() *snapshot {
	s := &snapshot{Connection: cluster.Connection{State: cluster.ConnReady, Mode: "embedded", Namespace: "ace-dev"}, Runs: runs.RunList{Total: -1, ErrAt: -1}}
	verdict := &histories.ReplayVerdict{Outcome: "nondeterministic", WorkflowType: ace.TaskWorkflow, Events: 38}
	if err := json.Unmarshal([]byte(`{"kind":"other","event_id":17,"event_type":"ActivityTaskScheduled","expected":{"kind":"activity","name":"run_mirror"},
		"actual":{"kind":"activity","name":"run_reflector"},"recorded_by":"old","code":"new","sentence":"the code does another thing","advice":"guard the change"}`), &verdict.Divergence); err != nil {
		panic(err)
	}
	change := func(path, before, after string) histories.StepChange {
		c := histories.StepChange{Path: path, After: json.RawMessage(after)}
		if before != "" {
			c.Before = json.RawMessage(before)
		}
		return c
	}
	s.Replay = &histories.Replay{WorkflowID: "ace/q-1", RunID: "r", About: histories.StepRun{TaskID: "q-1", Events: 38, LastEvent: 38, WorkflowType: ace.TaskWorkflow},
		Phases: []int{1, 8, 14, 20, 26}, Tools: []int{14}, Errors: []int{14}, Watched: "phase", WatchedValue: `"reflector"`, Verdict: verdict, Closed: true,
		Known: []histories.StepChange{change("phase", "", `"reflector"`), change("answer", "", `"42\u001b[31m 日本"`),
			change("operations.accepted", "", "2"), change("usage.cost_usd", "", "0.001"), change("skills.look_up.calls", "", "3"),
			change("playbook.before", "", `"1a6e"`), change("bullet.b-1", "", `"tagged helpful"`)},
		Frame: &histories.StepFrame{Position: 14, EventID: 14, EventType: "ActivityTaskCompleted", ElapsedMS: 16.2, Error: true, ClockBackMS: 3000,
			Notes: []string{"a payload is binary/encrypted"}, Changes: []histories.StepChange{change("phase", `"skills"`, `"reflector"`), change("answer", "", `"42"`)},
			Phase: &ace.PhaseAnswer{Phase: ace.PhaseReflector, Steps: []ace.StepState{{Phase: ace.PhaseGenerator, Status: ace.StatusDone}, {Phase: ace.PhaseSkills, Status: ace.StatusDone},
				{Phase: ace.PhaseReflector, Status: ace.StatusRunning}, {Phase: ace.PhaseCurator, Status: ace.StatusPending}}}}}
	return s
}

// calling returns a time machine at the event at which a phase with requests to a model completed.
func calling() *snapshot {
	s := replaySnapshot()
	s.Replay.Verdict = nil
	s.Replay.Calls = []histories.StepCalls{{Step: "skills", Event: 14, Log: ace.CallLog{Ref: recordRef, Requests: 2, Omitted: 1},
		Model: "m-1\x1b[31m", Usage: &ace.Usage{InputTokens: 1200, OutputTokens: 34, CostUSD: 0.0125}}}
	return s
}

func TestReplayRequests(t *testing.T) {
	for name, snap := range map[string]*snapshot{"closed": calling(), "open": recorded(calling())} {
		for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
			t.Run(fmt.Sprintf("%s-%dx%d", name, size[0], size[1]), func(t *testing.T) {
				sc := newScreen(t, snap, plainLook, size[0], size[1])
				sc.press("9", "O")
				if asked := slices.Contains(sc.store.heard(), "artifact "+recordRef.SHA256); asked != (name == "closed") {
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

func TestReplayDraws(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		for name, styles := range map[string]theme.Styles{"dark": theme.New(true, false), "nocolor": theme.New(true, true)} {
			t.Run(fmt.Sprintf("%s-%dx%d", name, size[0], size[1]), func(t *testing.T) {
				sc := newScreen(t, replaySnapshot(), styles, size[0], size[1])
				sc.press("9")
				golden.RequireEqual(t, sc.drawn())
			})
		}
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
	for key, want := range map[string]string{"right": "step by 0 true", "left": "step by 0 false", "]": "step by 1 true", "[": "step by 1 false",
		"}": "step by 2 true", "{": "step by 2 false", "e": "step by 3 true", "E": "step by 3 false", "home": "step to position 1", "G": "step to 0",
		"n": "next change true", "N": "next change false", "r": "verify false", "=": "verify true"} {
		sc.press(key)
		if told := sc.store.heard(); len(told) == 0 || !slices.Contains(told, want) {
			t.Errorf("%s: the store received %q, want %q", key, strings.Join(told, "; "), want)
		}
	}
}
