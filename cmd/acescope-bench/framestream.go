package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// stream is a store of made-up runs, of which the newest calls tools all the time. What
// it is told to do goes to a store that has no server.
type stream struct {
	*sources.Store
	changed chan struct{}
	events  atomic.Int64

	mu     sync.Mutex
	seq    uint64
	runs   []runs.Run
	detail histories.Detail
}

func newStream(n int) *stream {
	now := time.Now()
	st := &stream{Store: sources.NewStore(), changed: make(chan struct{}, 1)}
	for i := range n {
		id := fmt.Sprintf("task-%06d", n-i)
		r := runs.Run{WorkflowID: ace.WorkflowID(id), RunID: "run-" + id, Type: ace.TaskWorkflow, TaskID: id, Experiment: "finance-7",
			Dataset: "finance", Model: "builtin-recipes-1", Adapter: "offline", Exit: ace.Success, Phase: ace.PhaseDone,
			Start: now.Add(-time.Duration(i+1) * time.Second), Summary: &ace.Summary{Skills: 7, SkillsOK: 6, Added: i % 3, Tagged: 2,
				Usage: ace.Usage{InputTokens: 900, OutputTokens: 100, CostUSD: 0.012}}}
		if i < 3 {
			r.Exit, r.Phase = ace.Running, ace.PhaseSkills
		} else {
			r.Close = r.Start.Add(1800 * time.Millisecond)
		}
		st.runs = append(st.runs, r)
	}
	first := st.runs[0]
	st.detail = histories.Detail{WorkflowID: first.WorkflowID, RunID: first.RunID, Type: first.Type, Start: first.Start, From: runs.FromQuery,
		Phase: ace.PhaseAnswer{Phase: ace.PhaseSkills, ExitStatus: ace.Running}, Skills: ace.SkillAnswer{Skills: []ace.SkillUsage{{Name: "calculate"}, {Name: "look_up"}}}}
	return st
}

func (st *stream) Changed() <-chan struct{} { return st.changed }

// Snapshot is what the store of a real server would hand out: lists that nobody writes
// to any more.
func (st *stream) Snapshot() *sources.Snapshot {
	st.mu.Lock()
	defer st.mu.Unlock()
	d := st.detail
	d.Log = append([]runs.LogLine(nil), d.Log...)
	d.Skills.Skills = append([]ace.SkillUsage(nil), d.Skills.Skills...)
	d.Skills.Recent = append([]ace.Call(nil), d.Skills.Recent...)
	d.Updated = time.Now()
	rows := append([]runs.Run(nil), st.runs...)
	sum := *rows[0].Summary
	sum.Skills = d.Skills.Total
	rows[0].Summary = &sum
	s := st.Store.Snapshot()
	s.Seq = st.seq
	s.Connection = cluster.Connection{State: cluster.ConnReady, Mode: "embedded", Namespace: ace.DefaultNamespace}
	s.Runs = runs.RunList{Rows: rows, Total: int64(len(rows)), Loaded: time.Now(), Interval: cluster.DefaultInterval, ErrAt: -1,
		Counts: map[ace.ExitStatus]int64{ace.Running: 3, ace.Success: int64(len(rows) - 3)}}
	s.Detail = &d
	return s
}

// run makes tool events until ctx ends.
func (st *stream) run(ctx context.Context) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	begun := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for want := int64(time.Since(begun) * frameEvents / time.Second); st.events.Load() < want; st.events.Add(1) {
			st.event()
		}
		select {
		case st.changed <- struct{}{}:
		default:
		}
	}
}

// event is one more tool call of the newest run.
func (st *stream) event() {
	st.mu.Lock()
	defer st.mu.Unlock()
	n := int(st.seq)
	st.seq++
	d := &st.detail
	u := &d.Skills.Skills[n%2]
	u.Calls, u.OK, u.LastAt = u.Calls+1, u.OK+1, time.Now()
	call := ace.Call{Invocation: ace.Invocation{ID: fmt.Sprint(n), Name: u.Name, Accepted: true, OK: true, At: u.LastAt, DurationMS: 0.4,
		Args: json.RawMessage(fmt.Sprintf(`{"expression":"%d / 3"}`, n)), Result: json.RawMessage(fmt.Sprint(n / 3))}}
	d.Skills.Total++
	d.Skills.Recent = append(d.Skills.Recent, call)
	d.Skills.Recent = d.Skills.Recent[max(0, len(d.Skills.Recent)-ace.RecentCalls):]
	d.Log = append(d.Log, runs.LogLine{Event: int64(n), At: u.LastAt, Kind: "skill", Text: fmt.Sprintf("%s ok %s", u.Name, call.Args)})
	if over := len(d.Log) - histories.MaxLog; over > 0 {
		d.Log, d.LogDropped = d.Log[over:], d.LogDropped+over
	}
	d.Events = int64(n)
}
