package runs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/trace"
	"acescope/sources/cluster"
)

// fakeTraces has the trace of a run once it was read: a hundred tokens for each ten runs that are newer.
type fakeTraces struct {
	mu    sync.Mutex
	order []string // run IDs as they were read
}

func (f *fakeTraces) Fill(r *Run) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := 0; slices.Contains(f.order, r.RunID) {
		_, _ = fmt.Sscanf(r.RunID, "run-%d", &i)
		r.Trace = &trace.Summary{Sum: trace.Sum{Requests: 1, Input: int64(i / 10 * 100)}}
		r.Summary = &ace.Summary{Usage: ace.Usage{InputTokens: r.Trace.Sum.Input}}
	}
}

func (f *fakeTraces) Unread(list []Run, most int) (unread []Run, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, r := range list {
		if i == most {
			return unread, true
		}
		if !slices.Contains(f.order, r.RunID) {
			unread = append(unread, r)
		}
	}
	return unread, false
}

func (f *fakeTraces) Read(ctx context.Context, list []Run, _ func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range list {
		f.order = append(f.order, r.RunID)
	}
	return ctx.Err()
}

func (f *fakeTraces) Save() error { return nil }

func (f *fakeTraces) read() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.order)
}

// foreignRuns returns closed runs of another workflow type, newest first.
func foreignRuns(n int) []Run {
	list := simRuns(n)
	for i := range list {
		list[i].Type, list[i].Summary, list[i].Verdict = "Desk", nil, ""
	}
	return list
}

// watchTraced is watch with a reader of histories.
func watchTraced(t *testing.T, s *sim, traces Traces) *watched {
	link := cluster.NewLink()
	list := NewListFeed(link)
	list.Traces = traces
	w := &watched{t, s, link, list, NewFacetFeed(link, list)}
	w.run()
	return w
}

func tracedRows(l RunList) (n int) {
	for _, r := range l.Rows {
		if r.Trace != nil {
			n++
		}
	}
	return n
}

// Histories are read only while the list is shown, those on the screen first.
func TestTracesOfShownRows(t *testing.T) {
	traces := &fakeTraces{}
	w := watchTraced(t, newSim(foreignRuns(100)...), traces)
	if n := len(traces.read()); n != 0 {
		t.Errorf("%d histories read of a list that is not shown", n)
	}
	shown := []string{"run-000070", "run-000071"}
	w.Runs.Show(shown)
	w.until("all rows have traces", func(l RunList) bool { return tracedRows(l) == 100 })
	if order := traces.read(); !slices.Equal(order[:2], shown) || order[2] != "run-000000" {
		t.Errorf("read in the order %v", order[:4])
	}
}

// A query about tokens reads the histories before it selects, in a list and in the console.
func TestQueryReadsTraces(t *testing.T) {
	const query = TokensCondition + ">=500"
	s := newSim(foreignRuns(60)...)
	w := watchTraced(t, s, &fakeTraces{})
	w.SetQuery(query)
	w.until("the runs with tokens", func(l RunList) bool { return l.Query == query && len(l.Rows) == 10 })
	got := 0
	err := Reader{Client: s, Traces: &fakeTraces{}}.List(t.Context(), query, 0, func(r Run) error {
		if got++; r.Tokens().N < 500 {
			t.Errorf("%s has %d tokens", r.RunID, r.Tokens().N)
		}
		return nil
	})
	if err != nil || got != 10 {
		t.Errorf("%d runs, %v", got, err)
	}
	for query, want := range map[string]bool{query: true, CostCondition + " > 1": true, `Text="Tokens"`: false,
		`TaskId="x"`: false} {
		if NeedsTraces(query) != want {
			t.Errorf("%s: needs traces: %v", query, !want)
		}
	}
}

// A sum says what it lacks: absent is not zero.
func TestFigures(t *testing.T) {
	traced := func(s trace.Sum) Run { return Run{Trace: &trace.Summary{Sum: s}} }
	cut := traced(trace.Sum{Requests: 1, Input: 7})
	cut.TraceEvents = 10_000
	for name, c := range map[string]struct {
		run    Run
		tokens Figure
		calls  Figure
	}{
		"not read":   {Run{}, Figure{}, Figure{}},
		"whole":      {traced(trace.Sum{Requests: 2, Input: 5, CacheRead: 7}), Figure{12, true, false}, Figure{2, true, false}},
		"one lacks":  {traced(trace.Sum{Requests: 2, Unrecorded: 1, Input: 5}), Figure{5, true, true}, Figure{2, true, false}},
		"all lack":   {traced(trace.Sum{Requests: 2, Unrecorded: 2}), Figure{0, false, true}, Figure{2, true, false}},
		"failed":     {traced(trace.Sum{Failed: 3}), Figure{}, Figure{3, true, false}},
		"cut":        {cut, Figure{7, true, true}, Figure{1, true, true}},
		"of a task":  {Run{Summary: &ace.Summary{Usage: ace.Usage{InputTokens: 3}}}, Figure{3, true, false}, Figure{}},
		"empty memo": {Run{Summary: &ace.Summary{}}, Figure{}, Figure{}},
	} {
		if got := c.run.Tokens(); got != c.tokens {
			t.Errorf("%s: tokens %+v, want %+v", name, got, c.tokens)
		}
		if got := c.run.Calls(); got != c.calls {
			t.Errorf("%s: calls %+v, want %+v", name, got, c.calls)
		}
	}
}
