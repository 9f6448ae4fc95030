package views

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
)

// rich is a run with a bit of everything that a run screen must cope with.
func rich() *sources.Snapshot {
	s := full(3)
	s.Runs.Rows[0].Exit, s.Runs.Rows[0].Close = ace.Failed, noon
	d := s.Detail
	no, label := false, "0.172"
	d.Close, d.CloseEvent, d.From, d.Events = noon, 61, sources.FromHistory, 61
	d.Start = noon.Add(-12 * time.Second)
	at := func(ms int) time.Time { return d.Start.Add(time.Duration(ms) * time.Millisecond) }
	d.Phase.ExitStatus, d.Phase.Correct, d.Phase.Answer = ace.Failed, &no, "17.2"
	d.Phase.Failure = &ace.Failure{Kind: ace.Failed, Type: "Overloaded", Message: "model: 529 overloaded"}
	d.Phase.Steps[1].Usage = &ace.Usage{InputTokens: 1204, OutputTokens: 90, CostUSD: 0.0081}
	d.Phase.Steps[2].Status = ace.StatusFailed
	d.Causes = []sources.Cause{
		{Kind: "activity", Activity: ace.ActivityReflector, Retry: "out of attempts", Message: "activity error"},
		{Kind: "application", Type: "Overloaded", Message: "model: 529 overloaded", Final: true},
	}
	d.Activities = []sources.Activity{
		{Name: ace.ActivityGenerator, Phase: ace.PhaseGenerator, Scheduled: at(10), Started: at(30), Closed: at(842), ScheduledEvent: 5, StartedEvent: 6, ClosedEvent: 7, Attempt: 1, Worker: "w-1"},
		{Name: ace.ActivitySkills, Phase: ace.PhaseSkills, Scheduled: at(850), Started: at(4000), Closed: at(5430), ScheduledEvent: 11, StartedEvent: 40, ClosedEvent: 41, Attempt: 2,
			LastError: &ace.Failure{Kind: ace.Timeout, Type: "heartbeat", Message: "activity Heartbeat timeout"}},
		{Name: ace.ActivityReflector, Phase: ace.PhaseReflector, Scheduled: at(5500), Started: at(11000), Closed: at(11900), ScheduledEvent: 45, StartedEvent: 58, ClosedEvent: 59, Attempt: 5,
			LastError: d.Phase.Failure, Failure: d.Phase.Failure, Retry: "out of attempts", Causes: d.Causes},
	}
	d.Pending = nil
	d.Sealed = []sources.Sealed{{Event: 23, What: "signal record_tool_event", Encoding: "binary/encrypted", Size: 1234}}
	d.Input.Label = &label
	d.Plan, d.TrajectoryID, d.BulletIDs = "1. look the formula up\n2. put the numbers in", "traj-0182", []string{"calc-00002", "calc-00007"}
	d.Old = map[string]sources.OldBullet{
		"calc-00007": {Section: "rounding", Content: "Round to two places at each step, only at the end of the sum."},
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
		{"lookup", `{"name":"retrun on equity"}`, ``, "no such formula: retrun on equity", true, false, false, 4},
		{"lookup", `{"name":"return on equity","exact":true,"limit":3,"units":null}`, `"net income / equity"`, "", true, true, false, 0.0042},
		{"calculate", `{"expr":"rm -rf"}`, ``, "", false, false, false, 0},
		{"calculate", `{"expr":"17.2/100"}`, `0.172`, "", true, true, false, 12},
		{"read_table", `{"path":"income.csv"}`, big, "", true, true, false, 310},
		{"read_secret", `{"name":"key"}`, `{"metadata":{"encoding":"YmluYXJ5L2VuY3J5cHRlZA=="},"data":"AAECAwQFBgcICQ=="}`, "", true, true, false, 1.5},
		{"shell", `{"cmd":"cat e\u001b[2Jvil"}`, `"\u001b[31mred\u001b]0;owned\u0007 財務 \u202eexe.gnp"`, "", true, true, false, 9},
		{"fetch", `{"url":"https://example.org"}`, ref, "", true, true, false, 88},
		{"plot", `{"format":"png"}`, `"\u0000\u0001\u0002PNG\u0000\u0003"`, "", true, true, false, 40},
		{"nested", `{"a":{"b":[1,2.5,-3e4,true,null,{}]}}`, `"{\"inner\":[]}"`, "", true, true, false, 2},
		{"search", `{"q":"equity"}`, ``, "", true, false, true, 0},
	}
	var all []*sources.ToolCall
	for i, c := range calls {
		call := &sources.ToolCall{Call: ace.Call{Pending: c.pending, Invocation: ace.Invocation{ID: fmt.Sprint("call-", i+1), Name: c.name, Args: json.RawMessage(c.args),
			Result: json.RawMessage(c.result), Error: c.err, Accepted: c.accepted, OK: c.ok, At: at(1000 + 300*i), DurationMS: c.ms}}, UseEvent: int64(13 + 2*i)}
		if !c.pending {
			call.ResultEvent = int64(14 + 2*i)
		}
		all = append(all, call)
	}
	d.Calls = sources.Calls(all...)
	d.Lineage = sources.Lineage{Prev: "run-q-00003-before", How: "reset", Parent: "ace-experiment/finance-7", ParentRun: "run-exp"}
	return s
}

// on presses 2 and then moves to the first row of that kind, the n-th.
func on(t *testing.T, sc *screen, kind itemKind, n int32) {
	t.Helper()
	v := storyOf(t, sc)
	sc.plain()
	for i, r := range v.rows {
		if r.kind == kind && r.n == n && !r.sub {
			v.move(i)
			sc.resize(sc.width, sc.height)
			return
		}
	}
	t.Fatalf("no row of kind %d, %d", kind, n)
}

func storyOf(t *testing.T, sc *screen) *story {
	t.Helper()
	for _, s := range sc.screens {
		if s.Name == "run" {
			return s.Views[0].(*story)
		}
	}
	t.Fatal("no run screen")
	return nil
}

func TestRunScreen(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		for look, styles := range map[string]theme.Styles{"dark": theme.New(true, false), "nocolor": theme.New(true, true)} {
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
		kind          itemKind
		n             int32
		width, height int
		keys          []string
	}{
		"failure":      {itemFailure, 0, 80, 24, []string{"tab"}},
		"phase":        {itemPhase, 2, 80, 24, []string{"tab"}},
		"update":       {itemOperation, 1, 80, 24, []string{"tab"}},
		"rejected":     {itemOperation, 4, 200, 50, nil},
		"tag":          {itemOperation, 3, 80, 24, []string{"tab"}},
		"call":         {itemCall, 1, 200, 50, nil},
		"call-big":     {itemCall, 4, 80, 24, []string{"tab", "G"}},
		"call-sealed":  {itemCall, 5, 80, 24, []string{"tab"}},
		"call-hostile": {itemCall, 6, 80, 24, []string{"tab"}},
		"call-ref":     {itemCall, 7, 80, 24, []string{"tab", "o"}},
		"call-binary":  {itemCall, 8, 80, 24, []string{"tab"}},
		"call-nested":  {itemCall, 9, 80, 40, []string{"tab"}},
		"calls":        {itemCall, 0, 80, 24, nil},
		"answer":       {itemAnswer, 0, 80, 24, []string{"tab"}},
		"plan-open":    {itemPlan, 0, 80, 24, []string{"l"}},
		"folded":       {itemCall, 0, 80, 24, []string{"h", "h"}},
		"sealed":       {itemSealed, 0, 80, 24, []string{"tab"}},
		"skill":        {itemSkill, 1, 80, 24, []string{"tab"}},
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
