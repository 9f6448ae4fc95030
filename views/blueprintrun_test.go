package views

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	blueprintrun "acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/sources/histories"
	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/sources/transcripts"
	"acescope/theme"
)

// runningBlueprintRun returns a run of a program that is running after it was moved once.
func runningBlueprintRun() *blueprintrun.State {
	began := noon.Add(-80 * time.Second)
	return &blueprintrun.State{Status: blueprintrun.Running, Try: 2, Exit: ace.Running,
		Input: blueprintrun.Input{RunID: "crawl-7", SessionID: "ses_aaaaaaaaaaaa",
			Type: blueprintrun.ExecuteTask, TaskName: "site-crawler", ProjectDir: "/srv/site",
			Parameters: json.RawMessage(
				`{"url":"http://127.0.0.1:8000/","depth":3,"skip":["/admin","/logs"]}`),
			Requirements: runner.Requirements{ExecutorType: "deterministic", Tags: []string{"web"}},
			Mode:         blueprintrun.AsyncCallback, ParentSessionID: "ses_0123456789ab",
			ParentRunID: "plan-1",
			CreatedAt:   noon.Add(-90 * time.Second), By: "ada",
			Blueprint: &blueprintrun.Blueprint{Name: "site-crawler", Description: "Crawls a site",
				Type: blueprintrun.Deterministic, Digest: strings.Repeat("ab", 32), TimeoutSeconds: 600,
				OnRunnerLoss: blueprintrun.Move, Idempotent: true,
				Argv:     []string{"python3", "{blueprint_dir}/crawler.py", "--only text"},
				Strategy: blueprintrun.StdinJSON}},
		Claim: &runner.Claim{Number: 812, Try: 2, RunnerID: "lnch_0a1b2c3d4e5f",
			Capabilities: runner.Capabilities{Hostname: "gpu-7"}, At: noon.Add(-81 * time.Second)},
		ProgramStart: &blueprintrun.ProgramStart{Claim: 812, Try: 2, PID: 4211, At: began},
		TimeoutAt:    began.Add(600 * time.Second),
		Moves: []blueprintrun.MoveRecord{{Claim: 811, Runner: "lnch_ffffffffffff",
			Reason: "runner lnch_ffffffffffff did not answer any more: no heartbeat for 5s"}}, Ignored: 1}
}

// failedBlueprintRun returns the same run after it failed.
func failedBlueprintRun() *blueprintrun.State {
	s := runningBlueprintRun()
	code := 3
	s.Status, s.Exit, s.Notified = blueprintrun.Failed, ace.Failed, "told"
	s.Result = &blueprintrun.Result{RunID: "crawl-7", Status: blueprintrun.Failed,
		Reason: blueprintrun.ExitCode, Error: "it ended with exit code 3: no such host", ExitCode: &code,
		DurationSeconds: 61.5,
		Output:          json.RawMessage(`{"pages":41,"broken":[{"url":"/a","status":404}]}`),
		OutputIs:        "json",
		Stderr:          "GET /a 404\nno such host",
		StderrRef:       &ace.Ref{SHA256: strings.Repeat("cd", 32), Size: 20 << 20}, Dropped: 99,
		LogPath: "logs/runs/run%2Fcrawl-7/x/execute_run-10-1.jsonl"}
	return s
}

// blueprintRunSnapshot returns the data of a console that shows a blueprint run.
func blueprintRunSnapshot(s *blueprintrun.State) *snapshot {
	r := runners.BlueprintRun("crawl-7")
	r.RunID, r.Blueprint, r.Runner, r.Phase, r.Status, r.Start = "x", "site-crawler", "lnch_0a1b2c3d4e5f",
		ace.Phase(s.Status), s.Exit, s.Input.CreatedAt
	if s.Result != nil {
		r.Close = noon.Add(-10 * time.Second)
	}
	snap := ready(r)
	d := &histories.Detail{WorkflowID: r.WorkflowID, RunID: r.RunID, Type: r.Type, Start: r.Start,
		Close: r.Close, Events: 23, From: runs.FromHistory, BlueprintRun: s}
	d.Phase = ace.PhaseAnswer{Phase: r.Phase, Status: r.Status, Steps: runners.Steps(s, d.Start, d.Close)}
	if s.Result != nil {
		d.CloseEvent, d.Phase.Failure = 23, &ace.Failure{Kind: ace.Failed, Type: string(s.Result.Reason),
			Message: s.Result.Error}
	}
	for i, l := range []runs.LogLine{{Kind: "phase", Text: "pending"},
		{Kind: "phase", Text: "claimed by lnch_0a1b2c3d4e5f"}, {Kind: "phase", Text: "running (started)"},
		{Kind: "out", Text: "GET / 200"}, {Kind: "err", Text: "GET /a 404"}} {
		l.At, l.Event = noon.Add(time.Duration(i-90)*time.Second), int64(i+1)
		d.Log = append(d.Log, l)
	}
	snap.Detail = d
	return snap
}

// hostileBlueprintRun returns a run whose texts try to control the terminal.
func hostileBlueprintRun() *snapshot {
	evil := "\x1b[2J\x1b]0;owned\a\u202egnp.exe\u2066\r\n\tgreen 😀 " + strings.Repeat("wide 漢字 ", 40)
	s := failedBlueprintRun()
	quoted, _ := json.Marshal(map[string]any{evil: evil})
	s.Input.TaskName, s.Input.ProjectDir, s.Input.ParentSessionID, s.Input.ParentRunID, s.Input.By,
		s.Input.SessionID = evil, evil, evil, evil, evil, evil
	s.Input.Parameters, s.Input.Requirements = quoted,
		runner.Requirements{Hostname: evil, Tags: []string{evil}, ExecutorType: evil, ProjectDir: evil}
	b := *s.Input.Blueprint
	b.Name, b.Description, b.Argv, b.Digest, b.Type = evil, evil, []string{evil}, evil,
		blueprintrun.BlueprintType(evil)
	s.Input.Blueprint = &b
	s.Claim.RunnerID, s.Claim.Capabilities.Hostname, s.Moves[0].Reason, s.Moves[0].Runner = evil, evil, evil,
		evil
	s.Stop = &blueprintrun.StopRequest{Reason: evil, By: evil}
	r := s.Result
	r.Error, r.Stdout, r.Stderr, r.Output, r.LogPath, r.Reason, r.Signal, r.OutputIs = evil, evil, evil,
		quoted, evil, blueprintrun.Reason(evil), evil, "text"
	snap := blueprintRunSnapshot(s)
	for i := range snap.Detail.Log {
		snap.Detail.Log[i].Text, snap.Detail.Log[i].Kind = evil, evil
	}
	row := &snap.Runs.Rows[0]
	row.Blueprint, row.Runner, row.Phase = evil, evil, ace.Phase(evil)
	return snap
}

func TestBlueprintRunScreens(t *testing.T) {
	for name, s := range map[string]*blueprintrun.State{"running": runningBlueprintRun(),
		"failed": failedBlueprintRun()} {
		for _, size := range [][2]int{{80, 24}, {200, 50}} {
			for look, styles := range map[string]theme.Styles{"dark": theme.New(true, false),
				"nocolor": theme.New(true, true)} {
				t.Run(fmt.Sprintf("%s-%dx%d-%s", name, size[0], size[1], look), func(t *testing.T) {
					sc := newScreen(t, blueprintRunSnapshot(s), styles, size[0], size[1])
					sc.press("2")
					golden.RequireEqual(t, sc.drawn())
				})
			}
		}
	}
}

func TestPlainBlueprintRunScreens(t *testing.T) {
	for name, c := range map[string]struct {
		snap *snapshot
		keys []string
	}{
		"list":          {blueprintRunSnapshot(failedBlueprintRun()), nil},
		"facts":         {blueprintRunSnapshot(failedBlueprintRun()), []string{"tab"}},
		"log":           {blueprintRunSnapshot(runningBlueprintRun()), []string{"tab", "m", "g"}},
		"end":           {blueprintRunSnapshot(failedBlueprintRun()), []string{"2", "G"}},
		"stop":          {blueprintRunSnapshot(runningBlueprintRun()), []string{"2", "x"}},
		"hostile":       {hostileBlueprintRun(), []string{"2"}},
		"hostile-end":   {hostileBlueprintRun(), []string{"2", "G"}},
		"hostile-facts": {hostileBlueprintRun(), []string{"tab"}},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScreen(t, c.snap, theme.New(true, true), 80, 24)
			sc.press(c.keys...)
			golden.RequireEqual(t, sc.plain())
		})
	}
}

func TestBlueprintRunEverySize(t *testing.T) {
	t.Parallel()
	for _, snap := range []*snapshot{blueprintRunSnapshot(failedBlueprintRun()), hostileBlueprintRun()} {
		for _, keys := range [][]string{{}, {"tab"}, {"2"}, {"2", "j", "j", "tab"}, {"2", "G"},
			{"2", "l", "l"}} {
			sc := newScreen(t, snap, theme.New(true, false), 80, 24)
			sc.press(keys...)
			for w := 40; w <= 220; w += 9 {
				for _, h := range []int{10, 11, 17, 24, 50} {
					sc.resize(w, h)
					sc.drawn()
				}
			}
			if t.Failed() {
				t.Fatalf("after %v", keys)
			}
		}
	}
}

// A blueprint run is stopped instead of canceled, and it cannot be forked.
func TestStopBlueprintRun(t *testing.T) {
	sc := newScreen(t, blueprintRunSnapshot(runningBlueprintRun()), plainLook, 80, 24)
	if cmd := sc.press("2", "x", "y"); cmd != nil {
		sc.model.Update(cmd())
	}
	sc.press("f")
	sc.has("cannot be forked")
	heard := sc.store.heard()
	if !slices.Contains(heard, "stop run crawl-7") || slices.ContainsFunc(heard, func(s string) bool {
		return strings.HasPrefix(s, "cancel") || strings.HasPrefix(s, "fork")
	}) {
		t.Errorf("heard %q", heard)
	}
}

// A run links to its parent session, a session to its runs, and a callback to its run.
func TestFromRunToSessionAndBack(t *testing.T) {
	snap := engineSnap()
	parent := snap.Sessions.Rows[2]
	s := failedBlueprintRun()
	s.Input.ParentSessionID = parent.ID
	shown := blueprintRunSnapshot(s)
	one, two := shown.Runs.Rows[0], shown.Runs.Rows[0]
	two.WorkflowID = "run/crawl-8"
	shown.Sessions, shown.Transcripts = snap.Sessions, snap.Transcripts
	shown.Sessions.Runs = map[string][]runs.Run{parent.ID: {one, two}, snap.Sessions.Rows[3].ID: {one}}
	sc := newScreen(t, shown, plainLook, 80, 24)
	sc.press("2", "/")
	sc.press(letters("of the outcome")...)
	sc.press("enter", "O")
	if heard := sc.store.heard(); !slices.Contains(heard, "session "+parent.WorkflowID) {
		t.Fatalf("the session is not shown: %q\n%s", heard, sc.plain())
	}
	sc.press("tab", "G")
	sc.press("O")
	if heard := sc.store.heard(); !slices.Contains(heard,
		`query WorkflowId IN ("run/crawl-7", "run/crawl-8")`) {
		t.Errorf("heard %q", heard)
	}

	calls := engineSnap()
	talk := *calls.Details
	c := *talk.Conversation
	c.Entries = append(slices.Clone(c.Entries), &transcripts.Entry{Kind: transcripts.KindUser,
		Name: "run crawl-7", Callback: true, Text: "<agent-callback>"})
	talk.Conversation = &c
	calls.Details = &talk
	sc = newScreen(t, calls, plainLook, 80, 24)
	sc.press("0", "enter", "O")
	if heard := sc.store.heard(); !slices.Contains(heard, "select run/crawl-7 ") {
		t.Errorf("heard %q", heard)
	}
}
