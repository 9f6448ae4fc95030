package views

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/agents/transcript"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/theme"
	"acescope/views/agents"
)

// agentSnap has transcripts on the machine and no engine yet.
func agentSnap() *snapshot {
	s := starting()
	s.Transcripts, s.Talk = someTranscripts(), someTalk()
	return s
}

func someTranscripts() *sessions.Transcripts {
	t := &sessions.Transcripts{Dirs: []string{"/home/user/.claude/projects"}}
	for i := range 30 {
		one := madeUpTranscript(i)
		t.Rows = append(t.Rows, sessions.RowOf(one))
	}
	t.Progress.Scanned, t.Progress.Files, t.Progress.Done, t.Progress.Read, t.Progress.Busy = noon, 44, 40,
		450e6, time.Second
	t.Dropped = 3
	return t
}

func madeUpTranscript(i int) *transcripts.Session {
	at := noon.Add(-time.Duration(i*i) * 7 * time.Minute).Add(-4 * time.Second)
	one := &transcripts.Session{Agent: "claude", ID: fmt.Sprintf("5e55%04d-0000-4000-8000-00000000a001", i),
		Path: fmt.Sprintf("/t/%d.jsonl", i), Project: "-home-user-shop",
		Size: 40_000, ModTime: at, Read: i < 20}
	sum := &one.Summary
	sum.Prompt, sum.Title, sum.WorkDir = "Tidy the till and add a test for it", "",
		fmt.Sprintf("/home/user/shop-%d", i%4)
	sum.Model, sum.Branch, sum.Version, sum.Started, sum.Last = "claude-sonnet-4-5-20250929", "tidy",
		"2.1.90", at.Add(-time.Hour), at
	if !one.Read {
		sum.Prompt, sum.Last = "", time.Time{}
		return one
	}
	sum.Turns, sum.Messages, sum.Calls, sum.Failed, sum.Denied = 3+i, 12+i, 41+i, (i+1)%3, i%2
	sum.Tokens.Input, sum.Tokens.Output, sum.Tokens.CacheRead, sum.Tokens.CacheWrite5m = int64(1200*(i+1)),
		900, 61_000, 4_000
	sum.Priced, sum.CostUSD = sum.Tokens.Total(), 0.12*float64(i+1)
	if i == 2 {
		sum.Priced, sum.Unpriced, sum.CostUSD = 0, sum.Tokens.Total(), 0
	}
	sum.Models = []transcript.ModelUse{{Name: "claude-sonnet-4-5-20250929", Messages: sum.Messages,
		CostUSD: sum.CostUSD, Priced: true}, {Name: "house-model-1", Messages: 1}}
	sum.Tools = []transcript.ToolUse{{Name: "Bash", Calls: 30, Failed: 1, Ended: 30, Timed: 30,
		TotalMS: 90_000, MaxMS: 41_000, Last: at},
		{Name: "mcp__house__look_up", Calls: 11, Denied: 1, Ended: 10, Last: at.Add(-time.Minute)}}
	switch i {
	case 0:
		sum.Title, sum.Unfinished, sum.Compactions = "Till work", true, 1
		sum.Errors, sum.LastError, sum.Unreadable = 1, "API Error: 529 overloaded", 2
		one.Agents = []transcripts.Agent{{ID: "a1", Path: "/t/a1.jsonl", Type: "Explore",
			Description: "Find who calls the till"},
			{ID: "a2", Path: "/t/a2.jsonl", Parent: "a1", Type: "general-purpose",
				Description: "Read the old notes"}, {ID: "a3", Path: "/t/a3.jsonl"}}
		one.Agents[0].Summary.Calls, one.Agents[0].Summary.Tokens.Output, one.Agents[2].Summary.Prompt = 4,
			9000, "Warm up"
	case 1:
		one.ForkedFrom, one.Shared, one.Inherits.CostUSD, one.Inherits.Priced = "5e550004", 40, 0.02, 100
		one.Inherits.Tokens.Input = 100
	case 4:
		sum.Unfinished = true
	}
	return one
}

func someTalk() *transcripts.Conversation {
	args, _ := json.Marshal(map[string]string{"command": "go test ./till",
		"description": "Run the tests of the till"})
	c := &transcripts.Conversation{Path: "/t/0.jsonl"}
	at := noon.Add(-10 * time.Minute)
	add := func(e transcripts.Entry) {
		at = at.Add(3 * time.Second)
		e.At = at
		c.Entries = append(c.Entries, &e)
	}
	add(transcripts.Entry{Kind: transcripts.KindStatus, Name: "command", Text: "/model sonnet"})
	add(transcripts.Entry{Kind: transcripts.KindUser, Text: "Tidy the till and add a test for it"})
	for range 6 {
		add(transcripts.Entry{Kind: transcripts.KindThinking,
			Text: "Where is the till?\nIt may be in two places.\nOne of them is old.\nThe other is older.\nOr not."})
		add(transcripts.Entry{Kind: transcripts.KindText, Model: "claude-sonnet-4-5-20250929",
			Text: "I look at **the till** first, then at who calls it, so that the test covers what they need and nothing else."})
		add(transcripts.Entry{Kind: transcripts.KindCall, Name: "Bash", Text: string(args), CallID: "t1",
			Done: true, OK: true, Took: 1300 * time.Millisecond, Result: "ok  \tshop/till\t0.3s"})
		add(transcripts.Entry{Kind: transcripts.KindCall, Name: "Bash", Text: string(args), CallID: "t2",
			Done: true, Took: 2 * time.Second,
			Result: "Exit code 1\n--- FAIL: TestTill\n    till_test.go:9: want 3, got 2\nFAIL\nFAIL shop/till"})
	}
	add(transcripts.Entry{Kind: transcripts.KindCall, Name: "Write", Text: `{"file_path":"/etc/passwd"}`,
		Done: true, Denied: true, Result: "The user doesn't want to proceed with this tool use."})
	add(transcripts.Entry{Kind: transcripts.KindError, Text: "API Error: 529 overloaded"})
	add(transcripts.Entry{Kind: transcripts.KindCall, Name: "Bash", Text: `{"command":"sleep 100"}`,
		CallID: "t9"})
	return c
}

func TestAgentScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		for look, styles := range map[string]theme.Styles{"dark": theme.New(true, false),
			"nocolor": theme.New(true, true)} {
			t.Run(fmt.Sprintf("%dx%d-%s", size[0], size[1], look), func(t *testing.T) {
				sc := newScreen(t, agentSnap(), styles, size[0], size[1])
				sc.press("0")
				golden.RequireEqual(t, sc.drawn())
			})
		}
	}
}

func TestPlainAgentScreens(t *testing.T) {
	nothing, none := starting(), starting()
	none.Transcripts = &sessions.Transcripts{Dirs: []string{"/home/user/.claude/projects"}}
	none.Transcripts.Progress.Scanned = noon
	trouble := agentSnap()
	trouble.Transcripts.Progress.Trouble = "open /home/user/.claude/projects: permission denied"
	gone := agentSnap()
	gone.Talk = &transcripts.Conversation{Path: "/t/0.jsonl",
		Err: "open /t/0.jsonl: no such file or directory"}
	for name, c := range map[string]struct {
		snap *snapshot
		keys []string
	}{
		"session":       {agentSnap(), []string{"0", "tab"}},
		"session-end":   {agentSnap(), []string{"0", "tab", "G"}},
		"forked":        {agentSnap(), []string{"0", "j", "tab"}},
		"talk":          {agentSnap(), []string{"0", "enter"}},
		"talk-start":    {agentSnap(), []string{"0", "enter", "g"}},
		"talk-unfolded": {agentSnap(), []string{"0", "enter", "E", "E", "E", "c"}},
		"talk-search": {agentSnap(), append(append([]string{"0", "enter", "/"}, letters("got 2")...),
			"enter")},
		"filter":        {agentSnap(), append(append([]string{"0", "/"}, letters("shop-3")...), "enter")},
		"sorted-marked": {agentSnap(), []string{"0", "s", "space", "space"}},
		"starting":      {nothing, []string{"0"}},
		"none":          {none, []string{"0"}},
		"trouble":       {trouble, []string{"0"}},
		"talk-gone":     {gone, []string{"0", "enter"}},
		"hostile":       {hostileAgents(), []string{"0"}},
		"hostile-talk":  {hostileAgents(), []string{"0", "enter"}},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScreen(t, c.snap, theme.New(true, true), 80, 24)
			sc.press(c.keys...)
			golden.RequireEqual(t, sc.plain())
		})
	}
}

func hostileAgents() *snapshot {
	s := agentSnap()
	bad := hostile().Runs.Rows
	c := &transcripts.Conversation{Path: "/t/0.jsonl"}
	for i := range s.Transcripts.Rows[:len(bad)] {
		one := *s.Transcripts.Rows[i].Transcript
		evil := bad[i].TaskID
		one.Summary.Title, one.Summary.WorkDir, one.Summary.Model, one.Summary.Branch,
			one.Summary.LastError = evil, "/x/"+evil, evil, evil, evil
		one.Summary.Tools = []transcript.ToolUse{{Name: evil, Calls: 1}}
		one.Agents = []transcripts.Agent{{ID: evil, Type: evil, Description: evil}}
		s.Transcripts.Rows[i] = sessions.RowOf(&one)
		c.Entries = append(c.Entries, &transcripts.Entry{Kind: transcripts.KindCall, Name: evil, Text: evil,
			Done: true, Result: evil},
			&transcripts.Entry{Kind: transcripts.KindText, Model: evil, Text: evil + "\n" + evil},
			&transcripts.Entry{Kind: transcripts.KindStatus, Name: evil, Text: evil})
	}
	s.Talk = c
	return s
}

func TestEveryAgentSize(t *testing.T) {
	t.Parallel()
	for _, snap := range []*snapshot{agentSnap(), hostileAgents(), starting()} {
		for _, keys := range [][]string{{"0"}, {"0", "tab"}, {"0", "enter"}, {"0", "enter", "a"},
			{"0", "enter", "a", "g", "ctrl+d"}} {
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

func TestAgentList(t *testing.T) {
	sc := newScreen(t, agentSnap(), theme.New(true, true), 80, 24)
	sc.press("0")
	heard := strings.Join(sc.store.heard(), "\n")
	if !strings.Contains(heard, "look transcripts true") || !strings.Contains(heard, "talk /t/0.jsonl") {
		t.Errorf("it asks for\n%s", heard)
	}
	// The cursor stays at the top when newer ones come, and on its session once it was moved.
	first := sc.named("agents").Views[0].(*agents.List)
	newer := agentSnap()
	one := madeUpTranscript(0)
	one.Path, one.Summary.Last = "/t/new.jsonl", noon
	newer.Transcripts.Rows = append([]sessions.Row{sessions.RowOf(one)}, newer.Transcripts.Rows...)
	sc.show(newer)
	if sc.drawn(); first.Cursor != "/t/new.jsonl" {
		t.Errorf("the cursor is on %s", first.Cursor)
	}
	sc.press("j", "j")
	on := first.Cursor
	sc.show(agentSnap())
	if sc.drawn(); first.Cursor != on {
		t.Errorf("the cursor went from %s to %s", on, first.Cursor)
	}
	sc.press("e")
	if r, _ := first.Row(); !r.Bad {
		t.Errorf("e goes to %+v", r)
	}
	if what, id := first.Copy(); what != "session id" || !strings.HasPrefix(id, "5e55") {
		t.Errorf("%s %s", what, id)
	}
	again := agents.NewList(&agents.Agents{})
	sc.press("s")
	again.Restore(first.Keep())
	if again.Order != 1 {
		t.Errorf("order %d is kept", again.Order)
	}
}

func TestAgentTalk(t *testing.T) {
	sc := newScreen(t, agentSnap(), theme.New(true, true), 80, 24)
	sc.press("0", "enter")
	v := sc.named("conversation").Views[0].(*agents.Conversation)
	last := len(v.Current.Entries) - 1
	if v.At.Entry != last || v.Away {
		t.Errorf("it begins at %+v", v.At)
	}
	more := agentSnap()
	more.Talk.Entries = append(more.Talk.Entries, &transcripts.Entry{Kind: transcripts.KindText,
		Text: "and more"})
	sc.show(more)
	if sc.drawn(); v.At.Entry != last+1 {
		t.Errorf("it does not follow: %+v", v.At)
	}
	sc.press("k")
	sc.show(agentSnap())
	sc.show(more)
	sc.press("g")
	if v.At != (agents.Place{}) {
		t.Errorf("g goes to %+v", v.At)
	}
	sc.press("e")
	if e := v.Entry(v.At.Entry); !e.Failed() {
		t.Errorf("e goes to %+v", e)
	}
	if what, content := v.Copy(); what != "call" || !strings.Contains(content, "want 3, got 2") {
		t.Errorf("%s %s", what, content)
	}
	// However one moves, every line is met once.
	sc.press("g", "a")
	seen := map[agents.Place]bool{}
	for {
		if seen[v.At] {
			t.Fatalf("%+v is met twice", v.At)
		}
		seen[v.At] = true
		before := v.At
		if sc.press("j"); v.At == before {
			break
		}
	}
	total := 0
	for n := range v.Current.Entries {
		total += len(v.Lines(n))
	}
	if len(seen) != total {
		t.Errorf("%d of %d lines are met", len(seen), total)
	}
	sc.press("B")
	if got := sc.store.heard(); got[len(got)-1] != "talk /t/a1.jsonl" {
		t.Errorf("a reads %s", got[len(got)-1])
	}
	if v.Loaded() != nil {
		t.Error("the subagent's conversation is that of the session")
	}
}
