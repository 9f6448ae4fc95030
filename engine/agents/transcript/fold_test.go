package transcript

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"acescope/engine/agents/price"
	"acescope/engine/agents/transcript/transcripttest"
)

func read(t testing.TB, path string) Summary {
	t.Helper()
	s, err := NewFold(price.Shipped()).readAll(context.Background(), NewReader(path))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func at(clock string) time.Time {
	t, err := time.Parse(time.RFC3339, "2026-11-20T"+clock+"Z")
	if err != nil {
		panic(err)
	}
	return t
}

func TestSummary(t *testing.T) {
	got := read(t, "testdata/session.jsonl")
	if math.Abs(got.CostUSD-0.008715) > 1e-9 {
		t.Errorf("cost %v", got.CostUSD)
	}
	for i := range got.Models {
		got.Models[i].CostUSD = 0
	}
	for i := range got.Days {
		got.Days[i].CostUSD = 0
	}
	for i := range got.Tools {
		got.Tools[i].Last = time.Time{}
	}
	day := at("09:00:00").Local().Format(time.DateOnly)
	sonnet := Tokens{Input: 100, Output: 255, CacheRead: 5300, CacheWrite5m: 800}
	house := Tokens{Input: 5, Output: 10, CacheRead: 100}
	want := Summary{
		SessionID: "5e551011-0000-4000-8000-00000000a001", WorkDir: "/home/user/shop", Branch: "tidy",
		Version: "2.1.90",
		Prompt:  "Tidy the till and add a test", Title: "Till work", Model: "house-model-1",
		Started: at("09:00:00"), Last: at("09:06:04"),
		Turns: 3, Messages: 10, Unfinished: true, Compactions: 1, Errors: 1,
		LastError: "API Error: 529 overloaded",
		Models: []ModelUse{{Name: "claude-sonnet-4-5-20250929", Messages: 5, Tokens: sonnet, Priced: true},
			{Name: "house-model-1", Messages: 1, Tokens: house}},
		Totals: Totals{Tokens: sonnet.Add(house), Priced: sonnet.Total(), Unpriced: house.Total(),
			CostUSD: got.CostUSD, Calls: 6, Failed: 1, Denied: 1},
		Tools: []ToolUse{
			{Name: "Bash", Calls: 3, Failed: 1, Ended: 2, Timed: 2, TotalMS: 2500, MaxMS: 2000},
			{Name: "Read", Calls: 1, Ended: 1, Timed: 1, TotalMS: 500, MaxMS: 500},
			{Name: "Write", Calls: 1, Denied: 1, Ended: 1, Timed: 1, TotalMS: 1000, MaxMS: 1000},
			{Name: "Agent", Calls: 1, Ended: 1, Timed: 1, TotalMS: 8500, MaxMS: 8500},
		},
		Agents: []AgentCall{{CallID: "toolu_5", AgentID: "a1b2c3d", Type: "Explore",
			Description: "Find callers", Ended: true}},
		Days: []DayUse{{Day: day, Model: "claude-sonnet-4-5-20250929", Tokens: sonnet, Priced: true},
			{Day: day, Model: "house-model-1", Tokens: house}},
		LineCounts: LineCounts{Lines: 26, Unknown: 1}, First: "u-001",
	}
	if !reflect.DeepEqual(got, want) {
		a, _ := json.MarshalIndent(got, "", " ")
		b, _ := json.MarshalIndent(want, "", " ")
		t.Errorf("got %s\nwant %s", a, b)
	}
}

func TestOddLines(t *testing.T) {
	s := read(t, "testdata/odd.jsonl")
	if s.Lines != 14 || s.Unreadable != 4 || s.Odd != 3 || s.Unknown != 2 || s.Repeated != 1 {
		t.Errorf("lines %d, unreadable %d, odd %d, unknown %d, repeated %d", s.Lines, s.Unreadable, s.Odd,
			s.Unknown, s.Repeated)
	}
	if s.Prompt != "mended" || s.Turns != 1 || s.Calls != 1 || s.Tokens != (Tokens{CacheRead: 1000}) {
		t.Errorf("prompt %q, turns %d, calls %d, tokens %v", s.Prompt, s.Turns, s.Calls, s.Tokens)
	}
	if s.Tools[0].Ended != 1 || s.Tools[0].Timed != 0 {
		t.Errorf("a result older than its call has a duration: %+v", s.Tools[0])
	}
}

func TestEmpty(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s := read(t, path); !reflect.DeepEqual(s, Summary{}) {
		t.Errorf("%+v", s)
	}
}

// TestTotals compares totals with those counted by transcripttest.
func TestTotals(t *testing.T) {
	dir := t.TempDir()
	made, err := transcripttest.Write(dir, transcripttest.Options{Sessions: 3, Bytes: 600_000, Subagent: 2})
	if err != nil {
		t.Fatal(err)
	}
	var all Totals
	files := 0
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files++
			all = all.Add(read(t, path).Totals)
		}
		return err
	})
	if err != nil || files != made.Files || all.Tokens.Total() != made.Tokens || all.Calls != made.Calls ||
		all.Unpriced != 0 {
		t.Errorf("%v: %d files, %+v of %+v", err, files, all, made)
	}
}

func TestUnfinished(t *testing.T) {
	user := `{"type":"user","message":{"role":"user","content":"do"}}`
	result := `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}}`
	say := func(stop, kind string) string {
		return `{"type":"assistant","message":{"id":"` + strings.Trim(stop, `"`) + kind +
			`","content":[{"type":"` + kind + `","id":"a","name":"B","text":"x"}],"stop_reason":` + stop +
			`}}`
	}
	for name, c := range map[string]struct {
		lines []string
		want  bool
	}{
		"nothing":               {nil, false},
		"prompt":                {[]string{user}, true},
		"answered":              {[]string{user, say(`"end_turn"`, "text")}, false},
		"call":                  {[]string{user, say(`"tool_use"`, "tool_use")}, true},
		"result":                {[]string{user, say(`"tool_use"`, "tool_use"), result}, true},
		"refused":               {[]string{user, say(`"refusal"`, "text")}, false},
		"old version, answered": {[]string{user, say("null", "text")}, false},
		"old version, call":     {[]string{user, say("null", "tool_use")}, true},
		"text without a stop reason": {[]string{user, say(`"end_turn"`, "text"), user, say("null", "text")},
			true},
		"interrupted": {[]string{user,
			`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]}}`}, false},
		"API error": {[]string{user,
			`{"type":"assistant","isApiErrorMessage":true,"message":{"content":[{"type":"text","text":"API Error"}]}}`}, false},
		"then a local command": {[]string{user, say(`"end_turn"`, "text"),
			`{"type":"user","message":{"role":"user","content":"<command-name>/cost</command-name>"}}`},
			false},
		"subagent prompt": {[]string{user, say(`"end_turn"`, "text"),
			`{"type":"user","isSidechain":true,"message":{"role":"user","content":"sub"}}`}, false},
	} {
		f := NewFold(nil)
		for _, l := range c.lines {
			f.Add([]byte(l))
		}
		if got := f.Summary().Unfinished; got != c.want {
			t.Errorf("%s: unfinished is %v", name, got)
		}
	}
}

// TestFoldIsBounded checks that a fold does not grow with the file.
func TestFoldIsBounded(t *testing.T) {
	f := NewFold(nil)
	for i := range 3 * maxSeen {
		n := time.Duration(i).String()
		f.Add([]byte(`{"type":"assistant","message":{"id":"m` + n + `","model":"model-` + n +
			`","content":[{"type":"tool_use","id":"t` + n + `","name":"tool-` + n + `","input":{}}]}}`))
	}
	s := f.Summary()
	if len(s.Models) != maxModels+1 || len(s.Tools) != maxTools+1 || len(f.called.young)+
		len(f.called.old) > 2*maxSeen {
		t.Errorf("%d models, %d tools, %d calls", len(s.Models), len(s.Tools), len(f.called.young)+
			len(f.called.old))
	}
	if s.Calls != 3*maxSeen || s.Tools[maxTools].Name != Others ||
		s.Tools[maxTools].Calls != 3*maxSeen-maxTools {
		t.Errorf("%d calls, %+v", s.Calls, s.Tools[maxTools])
	}
}

func TestPaths(t *testing.T) {
	for path, want := range map[string][2]string{
		"/c/projects/-p/s1.jsonl":                       {"s1", ""},
		"/c/projects/-p/s1/subagents/agent-a9.jsonl":    {"s1", "a9"},
		"/c/projects/-p/agent-a9.jsonl":                 {"", "a9"},
		"/c/projects/-p/sessions-index.json":            {"-", ""},
		"/c/projects/-p/s1/subagents/agent-a.meta.json": {"-", ""},
	} {
		session, agent, ok := SessionOf(path)
		if !ok {
			session = "-"
		}
		if [2]string{session, agent} != want {
			t.Errorf("%s: %q %q", path, session, agent)
		}
	}
}

// TestPublicSamples reads samples that exist only on the project's machines.
func TestPublicSamples(t *testing.T) {
	paths, _ := filepath.Glob("/work/shared/data/transcripts/*.jsonl")
	for _, p := range paths {
		s := read(t, p)
		if s.Turns == 0 || s.Prompt == "" || s.SessionID == "" {
			t.Errorf("%s: %+v", p, s)
		}
		t.Logf("%s: %d lines, %d unreadable, %d odd, %d unknown, %d repeated, %d calls, $%.4f",
			filepath.Base(p), s.Lines, s.Unreadable, s.Odd, s.Unknown, s.Repeated, s.Calls, s.CostUSD)
	}
}

func TestUsageByDay(t *testing.T) {
	f := NewFold(price.Shipped())
	for i, at := range []time.Time{
		time.Date(2026, 3, 1, 23, 59, 59, 0, time.Local), time.Date(2026, 3, 2, 0, 0, 0, 0, time.Local), {},
	} {
		stamp := ""
		if !at.IsZero() {
			stamp = `"timestamp":"` + at.UTC().Format(time.RFC3339Nano) + `",`
		}
		f.Add(fmt.Appendf(nil, `{%s"type":"assistant","uuid":"u%d","message":{"id":"m%d","model":"claude-sonnet-4-5",`+
			`"content":[],"usage":{"input_tokens":1000,"output_tokens":1}}}`, stamp, i, i))
	}
	s := f.Summary()
	var days []string
	var usd float64
	for _, d := range s.Days {
		days = append(days, d.Day)
		usd += d.CostUSD
		if d.Model != "claude-sonnet-4-5" || d.Tokens.Input != 1000 || !d.Priced {
			t.Errorf("%+v", d)
		}
	}
	if want := []string{"2026-03-01", "2026-03-02", ""}; !slices.Equal(days, want) || usd != s.CostUSD {
		t.Errorf("days %q with %v USD, want %q with %v", days, usd, want, s.CostUSD)
	}
}
