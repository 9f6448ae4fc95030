//go:build unix

package views_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"charm.land/bubbles/v2/table"
	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/views"
)

// BenchmarkTyping types a key every 10 ms while 1,000 tool events a second come: in the console,
// and in the table of Bubbles with the same runs.
func BenchmarkTyping(b *testing.B) {
	b.Run("console", func(b *testing.B) {
		s := newBusyRuns(10_000)
		typeKeys(b, s, openConsole(b, s))
	})
	b.Run("bubbles", func(b *testing.B) {
		s := newBusyRuns(10_000)
		typeKeys(b, s, runProbe(b, newBubblesTable(b.Context(), s), nil))
	})
}

func typeKeys(b *testing.B, s *busyRuns, p *probe) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	stop := inBackground(b, s.run)
	began, cpu := time.Now(), cpuTime()
	sent := 0
	for b.Loop() {
		<-tick.C
		p.press(upOrDown(sent, 200))
		sent++
	}
	b.ReportMetric(100*float64(cpuTime()-cpu)/float64(time.Since(began)), "cpu-%")
	b.ReportMetric(float64(p.bytes.Load())/float64(max(p.writes.Load(), 1)), "B/frame")
	stop()
	p.quit()
	b.ReportMetric(float64(sent-len(p.keys)), "keys-lost")
	b.ReportMetric(percentile(p.keys, 50), "key-p50-ms")
	b.ReportMetric(percentile(p.keys, 99), "key-p99-ms")
	b.ReportMetric(percentile(p.data, 99), "data-p99-ms")
}

// busyRuns is a source of synthetic runs, the newest of which calls tools. Controls go to feeds
// without a server.
type busyRuns struct {
	*sources.Feeds
	changed chan struct{}
	taken   atomic.Pointer[moment] // by the newest Status

	mu     sync.Mutex
	events int
	runs   []runs.Run
	detail histories.Detail
}

func newBusyRuns(n int) *busyRuns {
	now := time.Now()
	s := &busyRuns{Feeds: sources.NewFeeds(), changed: make(chan struct{}, 1)}
	for i := range n {
		id := fmt.Sprintf("task-%06d", n-i)
		r := runs.Run{WorkflowID: ace.WorkflowID(id), RunID: "run-" + id, Type: ace.TaskWorkflow, TaskID: id,
			Experiment: "finance-7", Dataset: "finance", Model: "builtin-recipes-1", Adapter: "offline",
			Status: ace.Completed, Phase: ace.PhaseDone, Start: now.Add(-time.Duration(i+1) * time.Second),
			Summary: &ace.Summary{Skills: 7, SkillsOK: 6, Added: i % 3, Tagged: 2,
				Usage: ace.Usage{InputTokens: 900, OutputTokens: 100, CostUSD: 0.012}}}
		if i < 3 {
			r.Status, r.Phase = ace.Running, ace.PhaseSkills
		} else {
			r.Close = r.Start.Add(1800 * time.Millisecond)
		}
		s.runs = append(s.runs, r)
	}
	first := s.runs[0]
	s.detail = histories.Detail{WorkflowID: first.WorkflowID, RunID: first.RunID, Type: first.Type,
		Start: first.Start,
		From:  runs.FromQuery, TaskState: histories.TaskState{Phase: ace.PhaseAnswer{Phase: ace.PhaseSkills,
			Status: ace.Running},
			Skills: ace.SkillAnswer{Skills: []ace.SkillUsage{{Name: "calculate"}, {Name: "look_up"}}}}}
	return s
}

func (s *busyRuns) Used() {}

func (s *busyRuns) Changed() <-chan struct{} { return s.changed }

// Status takes copies of the lists, as the feeds of a server publish them.
func (s *busyRuns) Status() *tui.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.detail
	d.Log = slices.Clone(d.Log)
	d.Skills.Skills = slices.Clone(d.Skills.Skills)
	d.Skills.Recent = slices.Clone(d.Skills.Recent)
	d.Updated = time.Now()
	rows := slices.Clone(s.runs)
	summary := *rows[0].Summary
	summary.Skills = d.Skills.Total
	rows[0].Summary = &summary
	list := runs.RunList{Rows: rows, Total: int64(len(rows)), Loaded: time.Now(),
		Interval: cluster.DefaultInterval, ErrAt: -1,
		Counts: runs.Counts{Status: map[ace.Status]int64{ace.Running: 3,
			ace.Completed: int64(len(rows) - 3)}}}
	s.taken.Store(&moment{Runs: list, Detail: &d})
	return &tui.Status{Seq: uint64(s.events), Interval: list.Interval, Loaded: list.Loaded,
		Connection: tui.Connection{Names: []string{ace.DefaultNamespace, "embedded"}, State: "ready",
			Ready: true, Live: true},
		Counts: map[string]int64{string(ace.Running): 3, string(ace.Completed): int64(len(rows) - 3)}}
}

func (s *busyRuns) Connection() cluster.Connection {
	return cluster.Connection{State: cluster.ConnReady, Mode: "embedded", Namespace: ace.DefaultNamespace}
}

func (s *busyRuns) moment() *moment { return s.taken.Load() }

// screens returns feeds of which the list and the detail are synthetic.
func (s *busyRuns) screens() views.Feeds {
	f := views.FeedsOf(s.Feeds)
	detail := busyDetail{s}
	f.Runs.List = busyList{s.Feeds.Runs, s}
	f.Runs.Detail, f.Run.Detail = detail, detail
	return f
}

type busyList struct {
	*runs.ListFeed
	runs *busyRuns
}

func (l busyList) Value() runs.RunList { return l.runs.moment().Runs }

type busyDetail struct{ runs *busyRuns }

func (d busyDetail) Value() *histories.Detail { return d.runs.moment().Detail }

// run adds 1,000 tool events a second until ctx ends.
func (s *busyRuns) run(ctx context.Context) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for added := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for ; added < int(time.Since(began)/time.Millisecond); added++ {
			s.addCall()
		}
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
}

// addCall adds a tool call of the newest run.
func (s *busyRuns) addCall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.events
	s.events++
	d := &s.detail
	u := &d.Skills.Skills[n%2]
	u.Calls, u.OK, u.LastAt = u.Calls+1, u.OK+1, time.Now()
	args := fmt.Sprintf(`{"expression":"%d / 3"}`, n)
	call := ace.Call{Invocation: ace.Invocation{ID: fmt.Sprint(n), Name: u.Name, Accepted: true, OK: true,
		At:         u.LastAt,
		DurationMS: 0.4, Args: json.RawMessage(args), Result: json.RawMessage(fmt.Sprint(n / 3))}}
	d.Skills.Total++
	d.Skills.Recent = append(d.Skills.Recent, call)
	d.Skills.Recent = d.Skills.Recent[max(0, len(d.Skills.Recent)-ace.RecentCalls):]
	d.Log = append(d.Log, runs.LogLine{Event: int64(n), At: u.LastAt, Kind: "skill", Text: u.Name + " ok " +
		args})
	if over := len(d.Log) - histories.MaxLog; over > 0 {
		d.Log, d.LogDropped = d.Log[over:], d.LogDropped+over
	}
	d.Events = int64(n)
}

// bubblesTable is the list alone in the table of Bubbles, without details and header. It gets the
// row that changed instead of all rows, as often as the console does.
type bubblesTable struct {
	table table.Model
	rows  []table.Row
	ctx   context.Context
	runs  *busyRuns
}

// changedRow is the message that a run has changed.
type changedRow struct{ table.Row }

func newBubblesTable(ctx context.Context, s *busyRuns) *bubblesTable {
	t := &bubblesTable{ctx: ctx, runs: s}
	for _, r := range s.runs {
		t.rows = append(t.rows, bubblesRow(r))
	}
	t.table = table.New(table.WithColumns([]table.Column{{Title: "TASK", Width: 30},
		{Title: "EXPERIMENT", Width: 16},
		{Title: "MODEL", Width: 18}, {Title: "PHASE", Width: 9}, {Title: "SKILLS", Width: 10},
		{Title: "COST", Width: 7},
		{Title: "TOOK", Width: 6}, {Title: "STATUS", Width: 12}}), table.WithRows(t.rows),
		table.WithFocused(true),
		table.WithWidth(benchWidth), table.WithHeight(benchHeight-4))
	return t
}

func bubblesRow(r runs.Run) table.Row {
	return table.Row{r.TaskID, r.Experiment, r.Model, string(r.Phase),
		fmt.Sprintf("%d/%d", r.Summary.SkillsOK, r.Summary.Skills),
		fmt.Sprintf("$%.3f", r.Summary.Usage.CostUSD), text.Duration(r.Age(time.Now())), string(r.Status)}
}

// Init implements [tea.Model].
func (t *bubblesTable) Init() tea.Cmd { return t.awaitChange }

func (t *bubblesTable) awaitChange() tea.Msg {
	select {
	case <-t.ctx.Done():
		return nil
	case <-t.runs.Changed():
	}
	time.Sleep(tui.DefaultFrame)
	t.runs.Status()
	return changedRow{bubblesRow(t.runs.moment().Runs.Rows[0])}
}

// Update implements [tea.Model].
func (t *bubblesTable) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case changedRow:
		t.rows[0] = msg.Row
		t.table.SetRows(t.rows)
		return t, t.awaitChange
	case tea.KeyPressMsg:
		t.table, _ = t.table.Update(msg)
	}
	return t, nil
}

// View implements [tea.Model].
func (t *bubblesTable) View() tea.View {
	v := tea.NewView(t.table.View())
	v.AltScreen = true
	return v
}
