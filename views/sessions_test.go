package views

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/sources/runs"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/views/agents"
	"acescope/views/console"
)

// engineSnap has sessions on the engine, the first of which waits for approval.
func engineSnap() *snapshot {
	s := ready(many(5)...)
	s.Transcripts = someTranscripts()
	s.Transcripts.Rows = s.Transcripts.Rows[3:9]
	s.Talk, s.Transcripts.Dropped = nil, 0
	s.Sessions = &sessions.Sessions{}
	for i, status := range []session.Status{session.Waiting, session.Working, session.Idle,
		session.Starting, session.Stopping, session.Ended, session.Ended} {
		s.Sessions.Rows = append(s.Sessions.Rows, madeUpSession(i, status))
	}
	first := s.Sessions.Rows[0]
	s.Details = talkOf(first)
	s.Approvals = &sessions.Approvals{Rows: sessions.ApprovalsOf(first.State)}
	return s
}

func madeUpSession(i int, status session.Status) *sessions.EngineSession {
	id := fmt.Sprintf("s-20260504-%d", i)
	st := &session.State{Status: status, Turns: 2 + i, Model: "claude-sonnet-4-5-20250929",
		AgentSessionID: fmt.Sprintf("a9e4%04d", i), Runs: 1, Exit: ace.Running}
	st.Input = session.Input{SessionID: id, Name: "Tidy the till", Agent: "claude",
		WorkingDir: "/home/user/shop", PermissionMode: "default",
		Rules: []session.Rule{{Tool: "Bash(git *)", Action: "allow"}}, AllowedTools: []string{"Read"}}
	st.Usage = ace.Usage{InputTokens: 12_000, OutputTokens: 900, CostUSD: 0.31}
	st.Recent = []session.TurnRecord{{Turn: 1, Status: "completed", Prompt: "Tidy the till",
		DurationMS: 41_000, Usage: ace.Usage{InputTokens: 9000, CostUSD: 0.2}},
		{Turn: 2, Status: "failed", Prompt: "Go on", DurationMS: 900, Attempt: 2,
			Failure: &ace.Failure{Type: "APIError", Message: "529 overloaded"}}}
	e := &sessions.EngineSession{WorkflowID: "session/" + id, RunID: "run-" + id, ID: id, Status: status,
		Exit: ace.Running, Start: noon.Add(-time.Hour),
		State: st, From: runs.FromQuery, Last: noon.Add(-time.Duration(i*i) * time.Minute)}
	switch {
	case status == session.Waiting:
		args, _ := json.Marshal(map[string]string{"command": "rm -rf build\ngo build ./...",
			"description": "Build again"})
		st.Pending = []session.ToolRequest{{ID: "toolu_1", Name: "Bash", Args: args, Turn: 2},
			{ID: "toolu_2", Name: "Write",
				Args: json.RawMessage(`{"file_path":"/home/user/shop/a.go","content":"x"}`), Turn: 2}}
		st.Queue = []session.Message{{ID: "m9", Text: "and the receipt printer"}}
	case status == session.Idle:
		e.From = runs.FromHistory
	case status == session.Ended:
		e.Close, e.Exit, e.From = noon.Add(-10*time.Minute), ace.Completed, runs.FromHistory
		if i > 5 {
			e.Exit, st.Failure = ace.Failed,
				&ace.Failure{Type: "AgentMissing", Message: "claude is not installed"}
		}
	}
	return e
}

func talkOf(e *sessions.EngineSession) *sessions.Detail {
	c := &transcripts.Conversation{Path: e.WorkflowID, Queued: 1}
	at := noon.Add(-5 * time.Minute)
	for _, x := range []transcripts.Entry{
		{Kind: transcripts.KindUser, Name: "ada", At: at, Text: "Tidy the till"},
		{Kind: transcripts.KindText, Text: "I look at the till first.", Model: "claude-sonnet-4-5-20250929"},
		{Kind: transcripts.KindCall, Name: "Bash", Text: `{"command":"git status"}`, CallID: "t0", Done: true,
			OK: true, Result: "clean", Note: "allowed by rule", Took: time.Second},
		{Kind: transcripts.KindCall, Name: "Write", Text: `{"file_path":"/etc/till"}`, CallID: "t9",
			Done: true, Denied: true, Result: "not there", Note: "denied by person ada: not there"},
		{Kind: transcripts.KindStatus, Name: "turn 1 completed", At: at.Add(41 * time.Second),
			Text: "took 41s, 9000 tokens, $0.2000"},
		{Kind: transcripts.KindUser, At: at.Add(time.Minute), Text: "Go on"},
		{Kind: transcripts.KindCall, Name: "Bash", Text: string(e.State.Input.AllowedTools[0]),
			CallID: "toolu_1", Waits: true},
		{Kind: transcripts.KindText, Open: true, Text: "While that waits, I thi"},
		{Kind: transcripts.KindUser, Text: "and the receipt printer", Note: "waits for the agent"},
	} {
		c.Entries = append(c.Entries, &x)
	}
	return &sessions.Detail{WorkflowID: e.WorkflowID, RunID: e.RunID, State: e.State, From: runs.FromQuery,
		Conversation: c, Log: "/data/logs/run_turn-2-1.jsonl"}
}

func TestEngineScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		for look, styles := range map[string]theme.Styles{"dark": theme.New(true, false),
			"nocolor": theme.New(true, true)} {
			t.Run(fmt.Sprintf("%dx%d-%s", size[0], size[1], look), func(t *testing.T) {
				sc := newScreen(t, engineSnap(), styles, size[0], size[1])
				sc.press("0")
				golden.RequireEqual(t, sc.drawn())
			})
		}
	}
}

func TestPlainEngineScreens(t *testing.T) {
	dead := engineSnap()
	dead.Sessions.Err = "no answer in time"
	dead.Details.From = runs.FromHistory
	for name, c := range map[string]struct {
		snap *snapshot
		keys []string
	}{
		"elsewhere":    {engineSnap(), nil},
		"session":      {engineSnap(), []string{"0", "tab"}},
		"talk":         {engineSnap(), []string{"0", "enter"}},
		"answer":       {engineSnap(), []string{"0", "w"}},
		"message":      {engineSnap(), append([]string{"0", "enter", "i"}, letters("one")...)},
		"start":        {engineSnap(), []string{"0", "n"}},
		"stop":         {engineSnap(), []string{"0", "x"}},
		"callbacks":    {calledBack(), []string{"0", "tab"}},
		"calls-back":   {calledBack(), []string{"0", "enter"}},
		"dead":         {dead, []string{"0", "tab"}},
		"hostile":      {hostileEngine(), []string{"0", "tab"}},
		"hostile-talk": {hostileEngine(), []string{"0", "enter"}},
		"hostile-ask":  {hostileEngine(), []string{"0", "w"}},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScreen(t, c.snap, theme.New(true, true), 80, 24)
			sc.run(sc.press(c.keys...))
			golden.RequireEqual(t, sc.plain())
		})
	}
}

// calledBack has a session with callbacks of the runs that it started.
func calledBack() *snapshot {
	s := engineSnap()
	e := *s.Sessions.Rows[0]
	st := *e.State
	st.Queue = []session.Message{{ID: "run.1", Callback: true, From: "run 7d21 (crawler)",
		Text: `<agent-callback run="7d21" status="completed">41 pages</agent-callback>`},
		{ID: "m1", From: "ada", Text: "and the receipt printer"}}
	st.Recent = []session.TurnRecord{{Turn: 1, Status: "completed", Prompt: "the crawler has ended",
		Callbacks: 3, DurationMS: 900}}
	st.Pending, st.ReportsSent, st.ReportsUndelivered, st.Dropped = nil, 4, 1, 2
	e.State = &st
	s.Sessions.Rows[0] = &e
	talk := *s.Details
	c := *talk.Conversation
	c.Entries = append(c.Entries[:len(c.Entries):len(c.Entries)],
		&transcripts.Entry{Kind: transcripts.KindUser, Name: "run 7d21 (crawler)", Callback: true,
			Text: st.Queue[0].Text, Note: "waits for the agent"})
	talk.Conversation, talk.State = &c, &st
	s.Details = &talk
	return s
}

// hostileEngine has a session whose texts attack the terminal.
func hostileEngine() *snapshot {
	s := engineSnap()
	evil := "\x1b[2J\x1b]0;owned\a\u202egnp.exe\u2066\r\n\tgreen 😀 " + strings.Repeat("wide 漢字 ", 40)
	e := *s.Sessions.Rows[0]
	st := *e.State
	args, _ := json.Marshal(map[string]string{"command": evil, evil: evil})
	st.Input.Name, st.Input.WorkingDir, st.Input.PermissionMode, st.Model = evil, "/"+evil, evil, evil
	st.Pending = []session.ToolRequest{{ID: evil, Name: evil, Args: args}}
	st.Queue = []session.Message{{ID: evil, Text: evil}}
	st.Recent = []session.TurnRecord{{Turn: 1, Status: "failed", Prompt: evil,
		Failure: &ace.Failure{Type: evil, Message: evil}}}
	st.Stop, st.Failure = &session.Note{By: evil, Reason: evil}, &ace.Failure{Type: evil, Message: evil}
	e.State, e.Err = &st, evil
	s.Sessions.Rows[0] = &e
	s.Details = talkOf(&e)
	s.Details.Err, s.Details.Log = evil, evil
	for _, x := range s.Details.Conversation.Entries {
		x.Name, x.Text, x.Note, x.Result = evil, evil, evil, evil
	}
	s.Approvals = &sessions.Approvals{Rows: sessions.ApprovalsOf(&st)}
	return s
}

func TestEveryEngineSize(t *testing.T) {
	t.Parallel()
	for _, snap := range []*snapshot{engineSnap(), hostileEngine()} {
		for _, keys := range [][]string{{}, {"0"}, {"0", "tab"}, {"0", "enter"}, {"0", "w"},
			{"0", "i", "a", "ctrl+j", "b"}, {"0", "enter", "a", "g"}} {
			sc := newScreen(t, snap, theme.New(true, false), 80, 24)
			sc.press(keys...)
			for w := 40; w <= 220; w += 9 {
				for _, h := range []int{10, 11, 17, 24, 50} {
					sc.resize(w, h)
					out := sc.drawn()
					if strings.Contains(out, "\x1b[2J") || strings.Contains(out, "\u202e") ||
						strings.Contains(out, "\a") {
						t.Fatalf("what would do harm is drawn after %v", keys)
					}
				}
			}
			if t.Failed() {
				t.Fatalf("after %v", keys)
			}
		}
	}
}

func last(sc *screen) string { return sc.told(1) }

func TestAnswer(t *testing.T) {
	sc := newScreen(t, engineSnap(), theme.New(true, true), 80, 24)
	if !strings.Contains(sc.plain(), "2 approvals pending: H") {
		t.Error("another screen does not tell of them")
	}
	sc.press("0", "w")
	// What comes meanwhile does not change what is answered.
	other := engineSnap()
	other.Sessions.Rows[0].State.Pending = other.Sessions.Rows[0].State.Pending[1:]
	other.Approvals = nil
	sc.show(other)
	sc.run(sc.press("y"))
	if strings.Contains(strings.Join(sc.store.heard(), "\n"), "decide") {
		t.Fatal("a dangerous call is allowed at the first answer")
	}
	if !strings.Contains(sc.plain(), "Allow Bash despite the risk?") {
		t.Errorf("there is no second question:\n%s", sc.plain())
	}
	sc.run(sc.press("y"))
	if got := last(sc); got != `decide s-20260504-0 toolu_1 true ""` {
		t.Errorf("%s", got)
	}
	sc = newScreen(t, engineSnap(), theme.New(true, true), 80, 24)
	sc.press("0", "w", "d")
	sc.press(letters("not here")...)
	sc.run(sc.press("enter"))
	if got := last(sc); got != `decide s-20260504-0 toolu_1 false "not here"` {
		t.Errorf("%s", got)
	}
	sc.press("w", "n")
	if got := last(sc); !strings.Contains(got, "not here") {
		t.Errorf("leaving it does %s", got)
	}
	// A call whose arguments are elsewhere is read whole first.
	far := engineSnap()
	far.Sessions.Rows[0].State.Pending[0].ArgsRef = &ace.Ref{SHA256: "abc", Size: 99}
	sc = newScreen(t, far, theme.New(true, true), 80, 24)
	sc.run(sc.press("0", "w"))
	if !strings.Contains(sc.plain(), "command: echo whole") ||
		!slices.Contains(sc.store.heard(), "arguments abc") {
		t.Errorf("%s", sc.plain())
	}
}

func TestMessage(t *testing.T) {
	sc := newScreen(t, engineSnap(), theme.New(true, true), 80, 24)
	sc.press("0", "enter", "enter")
	sc.press(letters("one")...)
	sc.press("ctrl+j")
	sc.model.Update(tea.PasteMsg{Content: "two\nthree"})
	sc.run(sc.press("enter"))
	if got := last(sc); got != `send s-20260504-0 "one\ntwo\nthree"` {
		t.Errorf("%s", got)
	}
	sc.press("i", "up")
	if !strings.Contains(sc.plain(), "three") {
		t.Errorf("the last message does not come back:\n%s", sc.plain())
	}
	sc.press("esc", "esc", "j", "j", "I")
	if !strings.Contains(sc.plain(), "no turn is in progress") {
		t.Errorf("%s", sc.plain())
	}
	sc.run(sc.press("x", "y"))
	if got := last(sc); !strings.HasPrefix(got, "stop s-20260504-2") {
		t.Errorf("%s", got)
	}
	sc.press("G", "i")
	if !strings.Contains(sc.plain(), "a transcript accepts no messages") {
		t.Errorf("%s", sc.plain())
	}
}

func TestStartSession(t *testing.T) {
	sc := newScreen(t, engineSnap(), theme.New(true, true), 80, 24)
	sc.press(":")
	sc.press(letters(`session start agent=claude dir=/w name="a b" rule=Bash(git*)=allow do it = now`)...)
	sc.run(sc.press("enter"))
	if got := last(sc); got != `start claude in /w model "" name "a b": "do it = now"` {
		t.Errorf("%s", got)
	}
	in, first, err := agents.ParseStart("agent=claude resume=5e551011 and now the tests")
	if err != nil || !in.Resume || in.AgentSessionID != "5e551011" || in.WorkingDir != "" ||
		first != "and now the tests" {
		t.Errorf("resume: %+v, %q, %v", in, first, err)
	}
	for _, line := range []string{"agent=unknown dir=/w x", "agent=codex resume=5e551011 x", "dir=w",
		"agent=claude", `dir=/w rule=Bash`, `dir=/w otherwise=perhaps`, `agent=codex dir=/w rule=Bash=deny x`,
		`dir="/w`} {
		if _, _, err := agents.ParseStart(line); err == nil {
			t.Errorf("%s is taken", line)
		}
	}
}

// TestStartOffersInstalledAgents checks that + starts no session with a program that is not on this machine.
func TestStartOffersInstalledAgents(t *testing.T) {
	sc := newScreen(t, engineSnap(), plainLook, 100, 30)
	sc.press("0")
	sc.typed("n")
	sc.has("New session")
	sc.has("codex")
	sc.lacks("gemini")
	sc.typed("ctrl+u")
	sc.typed(letters("gemini")...)
	sc.typed("tab")
	sc.has("/shop-0")
	sc.typed(letters("/w")...)
	sc.typed("tab")
	sc.typed(letters("do it")...)
	sc.typed("enter")
	sc.has("gemini is not installed: npm install -g @google/gemini-cli")
	sc.typed("ctrl+u")
	sc.typed(letters("codex")...)
	sc.has("starts codex in /w with a first message")
	sc.typed("enter")
	if got := last(sc); got != `start codex in /w model "" name "": "do it"` {
		t.Errorf("told %s", got)
	}
}

func TestReadOnlySessions(t *testing.T) {
	st := newStore(engineSnap())
	screens, global := Screens(console.Options{Controls: st, Actions: st.actions(), Location: time.UTC},
		st.feeds())
	m, err := tui.New(tui.Options{Source: st, Screens: screens, Global: global, Styles: theme.New(true, true),
		ReadOnly: true, Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	sc := &screen{t: t, store: st, model: m, screens: screens}
	sc.resize(80, 24)
	for _, key := range []string{"w", "i", "x", "I", "n"} {
		sc.press("0")
		sc.run(sc.press(key))
		if !strings.Contains(sc.plain(), "read-only") {
			t.Errorf("%s: %s", key, sc.plain())
		}
	}
	for _, h := range st.heard() {
		for _, verb := range []string{"send", "decide", "start", "interrupt", "stop"} {
			if strings.HasPrefix(h, verb+" s") {
				t.Errorf("%s", h)
			}
		}
	}
}

func TestArgumentLines(t *testing.T) {
	for args, want := range map[string]string{
		`{"command":"a\nb","n":3}`:          "command:|  a|  b|n: 3",
		`{"x":{"y":[1]}}`:                   "x:|  {|    \"y\": [|      1|    ]|  }",
		`[1]`:                               "[|  1|]",
		`not json`:                          "not json",
		`{}`:                                "(no arguments)",
		"{\"c\":\"rm \\u001b[2J\\u202ex\"}": "c: rm x||",
	} {
		if got := strings.Join(text.Members([]byte(args)), "|"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q", args, got)
		}
	}
}
