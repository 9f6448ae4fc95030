package costs

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/trace"
	"acescope/sources/runs"
	"acescope/sources/transcripts"
)

// A run counts with its metered usage by model, on the day on which it began. Others do not count.
func TestCosts(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.Local)
	metered := func(m ace.ModelUsage) *ace.Summary {
		return &ace.Summary{Usage: ace.Usage{InputTokens: 99_999, CostUSD: 99}, Metered: &m}
	}
	x := NewIndex()
	for i, r := range []runs.Run{
		{WorkflowID: "ace-flow/a", Type: flow.Workflow, Flow: "review",
			Summary: metered(ace.ModelUsage{"m-1": {InputTokens: 10, OutputTokens: 2, CacheReadTokens: 3,
				CostUSD: 0.5},
				"m-2": {InputTokens: 1, Unpriced: true}})},
		{WorkflowID: "ace/b", TaskID: "b", Type: ace.TaskWorkflow, Experiment: "e1", Observed: &runs.Span{
			Start: noon.AddDate(0, 0, -2)},
			Summary: metered(ace.ModelUsage{"m-1": {InputTokens: 5, CostUSD: 0.25}})},
		{WorkflowID: "ace/old", TaskID: "old", Type: ace.TaskWorkflow, Summary: &ace.Summary{
			Usage: ace.Usage{InputTokens: 7, CostUSD: 7}}},
		{WorkflowID: "ace/none", TaskID: "none", Type: ace.TaskWorkflow},
		{WorkflowID: "ace/empty", TaskID: "empty", Summary: metered(ace.ModelUsage{"m-1": {}})},
		{WorkflowID: "ace/b", TaskID: "b", Type: ace.TaskWorkflow, RunID: "reset from it, earlier",
			Start: noon.AddDate(0, 0, -9), Summary: metered(ace.ModelUsage{"m-1": {InputTokens: 500}})},
	} {
		if r.RunID == "" {
			r.RunID = fmt.Sprint("r", i)
			r.Start = noon.Add(-time.Duration(i) * time.Minute)
		}
		x.put(r)
	}
	c := x.Costs()
	for by, want := range map[transcripts.By][]string{
		transcripts.ByDay:     {"2026-11-20 5+0+0 $0.25/1", "2026-11-22 11+2+3 $0.50/1"},
		transcripts.ByModel:   {"m-1 15+2+3 $0.75/2", "m-2 1+0+0 $0.00/1"},
		transcripts.ByAgent:   {"acescope 16+2+3 $0.75/2"},
		transcripts.ByProject: {"review 11+2+3 $0.50/1", "e1 5+0+0 $0.25/1"},
		transcripts.BySession: {"ace-flow/a 11+2+3 $0.50/1", "b 5+0+0 $0.25/1"},
	} {
		var got []string
		rows, total := transcripts.Costs(c.Rows, by, transcripts.CostQuery{})
		for _, r := range rows {
			got = append(got, fmt.Sprintf("%s %d+%d+%d $%.2f/%d", r.Key, r.Tokens.Input, r.Tokens.Output,
				r.Tokens.CacheRead, r.CostUSD, r.Sessions))
		}
		if !slices.Equal(got, want) || total.Unpriced != 1 {
			t.Errorf("%s: %q, want %q; %d without a price", by, got, want, total.Unpriced)
		}
	}
	if r := c.Runs[c.Rows[0].Path]; r.WorkflowID != "ace-flow/a" {
		t.Errorf("the first row is of %+v", r)
	}
}

// An observed run counts unless its observer is an agent, or its session has a transcript on this machine.
func TestObserved(t *testing.T) {
	x := NewIndex()
	usage := ace.ModelUsage{"m": {InputTokens: 10, CostUSD: 0.5}}
	for id, o := range map[string]runs.Span{
		"earlier version": {Source: ace.ClaudeCode, SessionID: "gone"},
		"agent":           {Source: "codex", SessionID: "gone"},
		"transcript":      {Source: "Claude Code", SessionID: "here"},
		"elsewhere":       {Source: "pipeline", SessionID: "copied"},
		"no session":      {Source: "pipeline"},
	} {
		x.put(runs.Run{WorkflowID: "ace/" + id, RunID: id, TaskID: id, Type: ace.TaskWorkflow, Observed: &o,
			Summary: &ace.Summary{Metered: &usage}})
	}
	list := x.Costs().With([]*transcripts.Session{{ID: "here", Path: "/a"}, {ID: "", Path: "/b"},
		{ID: "copied", Path: "/c", Machine: "other"}})
	var got []string
	for _, s := range list {
		got = append(got, s.ID)
	}
	if want := []string{"here", "", "copied", "elsewhere", "no session"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if list := (*Costs)(nil).With(list); len(list) != 5 {
		t.Errorf("without a server: %d sessions", len(list))
	}
}

// A run of agents of a framework counts with what its history says, by model; its project is the workflow type.
func TestTracedCosts(t *testing.T) {
	x := NewIndex()
	sum := trace.Sum{Requests: 1, Input: 200, CacheRead: 1000, CacheWrite: 50, CacheWrite1h: 20, Output: 45, Cost: 0.5}
	unpriced := sum
	unpriced.Cost, unpriced.Unpriced = 0, 1
	x.put(runs.Run{WorkflowID: "desk-1", RunID: "r", Type: "WeatherDesk", Trace: &trace.Summary{
		Framework: "openai-agents", Parts: []trace.Part{{Agent: "a", Model: "gpt-5", Sum: sum},
			{Agent: "b", Model: "gpt-5", Sum: sum}, {Agent: "b", Model: "own", Sum: unpriced}}}})
	x.put(runs.Run{WorkflowID: "desk-2", RunID: "s", Type: "WeatherDesk", Trace: &trace.Summary{
		Parts: []trace.Part{{Sum: trace.Sum{Requests: 1, Unrecorded: 1, Unpriced: 1}}}}})
	for by, want := range map[transcripts.By]string{transcripts.ByModel: "gpt-5 400+90+2000+100 $1.00/1",
		transcripts.ByAgent:   "openai-agents 600+135+3000+150 $1.00/1",
		transcripts.ByProject: "WeatherDesk 600+135+3000+150 $1.00/1"} {
		rows, total := transcripts.Costs(x.Costs().Rows, by, transcripts.CostQuery{})
		r := rows[0]
		got := fmt.Sprintf("%s %d+%d+%d+%d $%.2f/%d", r.Key, r.Tokens.Input, r.Tokens.Output, r.Tokens.CacheRead,
			r.Tokens.CacheWrite(), r.CostUSD, r.Sessions)
		if got != want || total.Unpriced != 1295 {
			t.Errorf("%s: %s, want %s; %d without a price", by, got, want, total.Unpriced)
		}
	}
}
