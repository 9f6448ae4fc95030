package views

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/transcript"
	"acescope/engine/flow"
	"acescope/sources/costs"
	"acescope/sources/runs"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/theme"
)

func init() { time.Local = time.UTC } // days are of the local time zone

// someCosts has sessions on forty days up to today, of three projects and models, one without a price.
func someCosts() *snapshot {
	s := full(3)
	t := &sessions.Transcripts{Dirs: []string{"/home/user/.claude"}}
	t.Progress.Scanned, t.Progress.Files, t.Progress.Done = noon, 43, 43
	for i := range 40 {
		at := noon.AddDate(0, 0, -i)
		one := &transcripts.Session{ID: fmt.Sprintf("c057%04d", i), Agent: agentcli.Claude,
			Path: fmt.Sprintf("/t/%d.jsonl", i), Read: true, ModTime: at}
		one.Prompt, one.Summary.Last, one.WorkDir = fmt.Sprintf("Fix the till, part %d", i+1), at,
			"/home/user/"+[]string{"shop", "till", "infra"}[i%3]
		for j, model := range []string{"claude-opus-4-5-20251101", "claude-haiku-4-5-20251001",
			"house-model-1"}[:i%3+1] {
			use := transcript.DayUse{Day: at.Format(time.DateOnly), Model: model, Priced: j < 2,
				Tokens: transcript.Tokens{Input: int64(900 + i), Output: int64(40_000 * (1 + i%5)),
					CacheRead: 2_300_000, CacheWrite5m: 51_000}}
			if use.Priced {
				use.CostUSD = 1.5 + float64(i%7)*0.75
			}
			one.Summary.Days = append(one.Summary.Days, use)
		}
		t.Sessions = append(t.Sessions, one)
		t.Rows = append(t.Rows, sessions.RowOf(one))
	}
	unpriced := *t.Sessions[1]
	unpriced.ID, unpriced.Path, unpriced.WorkDir = "c057none", "/t/none.jsonl", "/home/user/house"
	unpriced.Summary.Days = []transcript.DayUse{{Day: "2026-01-31", Model: "house-model-1",
		Tokens: transcript.Tokens{Input: 1000}}}
	t.Sessions = append(t.Sessions, &unpriced)
	s.Transcripts = t
	return s
}

func TestCostScreen(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
		for name, keys := range map[string][]string{"day": {"$"}, "month": {"$", "j", "]", "]"},
			"model": {"$", "]", "]", "]"}, "project": {"$", "[", "[", "j", "enter"}} {
			t.Run(fmt.Sprintf("%d-%s", size[0], name), func(t *testing.T) {
				sc := newScreen(t, someCosts(), plainLook, size[0], size[1])
				sc.press(keys...)
				golden.RequireEqual(t, sc.plain())
			})
		}
	}
}

// The screen follows the index. The cursor stays on its row, and on the newest one until the user moves it.
func TestCostFollows(t *testing.T) {
	sc := newScreen(t, someCosts(), plainLook, 120, 24)
	sc.press("$")
	sc.has("▸ 2026-05-04")
	more := someCosts()
	tomorrow := *more.Transcripts.Sessions[0]
	tomorrow.Path = "/t/tomorrow.jsonl"
	tomorrow.Summary.Days = []transcript.DayUse{{Day: "2026-05-05", Model: "claude-opus-4-5-20251101",
		CostUSD: 7, Priced: true,
		Tokens: transcript.Tokens{Input: 1000}}}
	more.Transcripts.Sessions = append(more.Transcripts.Sessions, &tomorrow)
	sc.show(more)
	sc.has("▸ 2026-05-05")
	sc.has("Sessions of 2026-05-05")
	sc.press("j", "j")
	sc.has("▸ 2026-05-03")
	sc.show(someCosts())
	sc.has("▸ 2026-05-03")
	sc.press("]")
	sc.has("▸ 2026-W19")
	sc.press("[", "[")
	sc.has("▸ no experiment")
	sc.press("[")
	sc.has("▸ /home/user/")
	sc.press("[")
	sc.has("▸ claude")
	sc.press("tab", "[", "[", "[")
	sc.has("Sessions of 2026-W19")
}

// Enter goes to the sessions of a row, enter there opens the session, and esc leads back.
func TestCostOpensSession(t *testing.T) {
	sc := newScreen(t, someCosts(), plainLook, 80, 24)
	sc.press("$", "j", "enter")
	sc.has("Sessions of 2026-05-03")
	sc.press("enter")
	sc.has("▸ – ended    Fix the till, part 2 ")
	sc.press("esc")
	sc.has("Sessions of 2026-05-03")
	sc.press("tab")
	sc.has("Cost by day, UTC")
	sc.press("y")
	sc.has("2026-05-03")
}

// A cost without a price is never shown as zero dollars.
func TestCostUnknown(t *testing.T) {
	s := someCosts()
	s.Transcripts.Sessions = s.Transcripts.Sessions[40:]
	sc := newScreen(t, s, plainLook, 120, 24)
	sc.press("$")
	sc.has("set [[prices]]")
	if strings.Contains(sc.plain(), "$0") || !strings.Contains(sc.plain(), "?") {
		t.Error(sc.plain())
	}
}

func TestCostEmpty(t *testing.T) {
	s := full(3)
	sc := newScreen(t, s, plainLook, 80, 24)
	sc.press("$")
	sc.has("looking for transcripts")
	s.Transcripts = &sessions.Transcripts{Dirs: []string{"/home/user/.claude"}}
	s.Transcripts.Progress.Scanned = noon
	sc.show(s)
	sc.has("no transcripts of coding agents")
	sc.has("/home/user/.claude")
	sc.press("enter", "enter", "y")
	sc.has("no transcripts of coding agents")

	s.Transcripts.Dirs = nil
	sc.show(s)
	sc.has(transcripts.NoHome)
	sc.press("0")
	sc.has(transcripts.NoHome)
}

// Text from transcripts does not reach the terminal as it is, at any size.
func TestCostEverySize(t *testing.T) {
	t.Parallel()
	evil := someCosts()
	for _, one := range evil.Transcripts.Sessions {
		one.Prompt, one.WorkDir = "a\x1b[2J\x1b]0;owned\x07b財務\u202e", "/home/\x1b[31m財務\n"
		one.Summary.Days[0].Model = "evil\x1b]0;owned\x07\n"
		one.Summary.Days[0].Priced = false
	}
	sc := newScreen(t, evil, theme.New(true, false), 80, 24)
	for _, keys := range [][]string{{"$"}, {"]"}, {"["}, {"enter"}, {"esc", "]"}} {
		sc.press(keys...)
		for w := 40; w <= 220; w += 9 {
			for _, h := range []int{10, 11, 17, 24, 50} {
				sc.resize(w, h)
				if out := sc.drawn(); strings.ContainsAny(out, "\a\r") || strings.Contains(out, "\x1b]") {
					t.Fatal("text of a transcript reached the terminal")
				}
			}
		}
	}
}

// Runs count beside sessions, and enter opens them.
func TestCostOfRuns(t *testing.T) {
	s := someCosts()
	r := runs.Run{WorkflowID: "ace-flow/review-1", RunID: "r-9", TaskID: "review-1", Flow: "review",
		Type: flow.Workflow}
	row := &transcripts.Session{ID: "review-1", Agent: costs.Agent, Path: "run:r-9"}
	row.Summary.WorkDir = "review"
	row.Summary.Days = []transcript.DayUse{{Day: "2026-05-04", Model: "m-1", CostUSD: 1000, Priced: true,
		Tokens: transcript.Tokens{Input: 5}}}
	s.Costs = &costs.Costs{Rows: []*transcripts.Session{row}, Runs: map[string]runs.Run{row.Path: r}}
	sc := newScreen(t, s, plainLook, 120, 24)
	sc.press("$")
	sc.has("today $100") // $1,001.50
	sc.press("]", "]", "]", "]")
	sc.has("▸ acescope")
	sc.press("]")
	sc.has("▸ review")
	sc.press("enter", "enter")
	if got := strings.Join(sc.store.heard(), "; "); !strings.Contains(got, "select ace-flow/review-1 r-9") {
		t.Errorf("enter told %s", got)
	}
	s.Costs = &costs.Costs{Err: "the server does not answer"}
	sc.show(s)
	sc.press("$")
	sc.has("runs: the server does not answer")
}
