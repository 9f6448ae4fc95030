// Package costs reads what runs of tasks, experiments and flows cost, and those of agents of frameworks, as
// rows beside the transcripts of coding agents. It imports sources/experiments, sources/runs and
// sources/transcripts and knows no screen.
//
// The usage of a run is the part in its memo that no transcript of an agent's CLI contains; that of an
// experiment is the usage of its evaluations, while it is open of those that have finished. It counts on the
// day on which the run began. Runs of earlier versions do not record that part and do not count. Runs that
// continue, retry or reset others repeat their usage, so only the newest run of a workflow ID counts. The usage
// of agents of frameworks is that in the histories. Bounds: the [MaxRuns] newest runs, the maxOpen newest open
// experiments, and the [MaxTraced] newest runs whose histories are read.
package costs

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/transcript"
	"acescope/engine/flow"
	"acescope/sources/experiments"
	"acescope/sources/runs"
	"acescope/sources/transcripts"
)

// Agent is the agent of the rows of runs.
const Agent = transcripts.RunsAgent

// MaxRuns bounds the runs that are read.
const MaxRuns = 100_000

// pathPrefix begins the path of a run's row, so that it differs from the paths of transcripts, which are
// absolute.
const pathPrefix = "run:"

// Costs are the runs that cost something. They are immutable.
type Costs struct {
	Rows    []*transcripts.Session // the newest first
	Runs    map[string]runs.Run    // by the path of the row
	Dropped bool                   // there are more than MaxRuns runs
	// Untraced reports whether older runs of agents of frameworks are not read.
	Untraced bool
	Err      string // why newer runs are not read
}

// Index keeps runs, so that only open ones and those that have closed since are read again.
type Index struct {
	// Traces reads the histories of workflows of other types; nil leaves these out.
	Traces runs.Traces

	newest  map[string]runs.Run // by workflow ID
	read    time.Time           // when the last read began
	dropped bool
	// untraced reports whether the histories of older runs are not read.
	untraced bool
}

// NewIndex returns an index of no runs.
func NewIndex() *Index { return &Index{newest: map[string]runs.Run{}} }

const (
	maxOpen   = 20   // open experiments whose progress is read
	MaxTraced = 1000 // histories that are read
)

var errEnough = errors.New("enough runs")

// overlap is how far a read goes back before the start of the last one, because the visibility store lags
// behind and clocks differ.
const overlap = 5 * time.Minute

// Read reads the runs of a server that began at or after since; the zero time means all runs.
func (x *Index) Read(ctx context.Context, c client.Client, since, now time.Time) error {
	query := ""
	if x.Traces == nil {
		query = "WorkflowType IN (" + runs.Quote(ace.TaskWorkflow) + ", " + runs.Quote(ace.ExperimentWorkflow) +
			", " + runs.Quote(flow.Workflow) + ")"
	}
	if !since.IsZero() {
		query = runs.And(query, "StartTime >= "+stamp(since))
	}
	if !x.read.IsZero() {
		query = runs.And(query, `(ExecutionStatus = "Running" OR CloseTime >= `+stamp(x.read.Add(-overlap))+
			")")
	}
	count := 0
	var open []string // experiments, newest first; their memos have no usage yet
	err := runs.ListNewest(ctx, c, query, 0, func(r runs.Run) error {
		if count++; count > MaxRuns {
			x.dropped = true
			return errEnough
		}
		if x.counts(r.Type) {
			x.put(r)
		}
		if r.Type == ace.ExperimentWorkflow && r.Open() && len(open) < maxOpen {
			open = append(open, r.WorkflowID)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	for _, id := range open {
		r := x.newest[id]
		r.Summary = experiments.ReadSummary(ctx, c, r)
		x.newest[id] = r
	}
	err = x.trace(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	x.read = now
	return err
}

// counts reports whether runs of a workflow type may have a cost of their own.
func (x *Index) counts(workflowType string) bool {
	return slices.Contains([]string{ace.TaskWorkflow, ace.ExperimentWorkflow, flow.Workflow}, workflowType) ||
		x.Traces != nil && runs.TypeOf(workflowType) == runs.OtherType
}

// trace reads what the agents of workflows of other types used, of the newest runs.
func (x *Index) trace(ctx context.Context) error {
	if x.Traces == nil {
		return nil
	}
	list := slices.SortedFunc(maps.Values(x.newest), func(a, b runs.Run) int { return b.Start.Compare(a.Start) })
	unread, more := x.Traces.Unread(list, MaxTraced)
	x.untraced = more
	if err := x.Traces.Read(ctx, unread, nil); err != nil {
		return err
	}
	for _, r := range list {
		x.Traces.Fill(&r)
		x.newest[r.WorkflowID] = r
	}
	return x.Traces.Save()
}

// put keeps a run unless a newer one of its workflow ID is known.
func (x *Index) put(r runs.Run) {
	if old, ok := x.newest[r.WorkflowID]; !ok || !r.Start.Before(old.Start) {
		x.newest[r.WorkflowID] = r
	}
}

func stamp(t time.Time) string { return runs.Quote(t.UTC().Format(time.RFC3339)) }

// Costs returns the costs of the runs that were read.
func (x *Index) Costs() *Costs {
	c := &Costs{Runs: map[string]runs.Run{}, Dropped: x.dropped, Untraced: x.untraced}
	for _, r := range x.newest {
		if row := rowOf(r); row != nil {
			c.Rows = append(c.Rows, row)
			c.Runs[row.Path] = r
		}
	}
	slices.SortFunc(c.Rows, func(a, b *transcripts.Session) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.Path, b.Path))
	})
	return c
}

// With returns sessions with transcripts, and the runs that do not observe one of these sessions. c may be
// nil.
func (c *Costs) With(list []*transcripts.Session) []*transcripts.Session {
	if c == nil {
		return list
	}
	known := map[string]bool{}
	for _, s := range list {
		known[s.ID] = known[s.ID] || s.Machine == "" // copies do not count
	}
	return slices.Concat(list, slices.DeleteFunc(slices.Clone(c.Rows), func(s *transcripts.Session) bool {
		o := c.Runs[s.Path].Observed
		return o != nil && o.SessionID != "" && known[o.SessionID]
	}))
}

// rowOf returns a run as a session of one day. It returns nil if transcripts contain all usage of the run. In
// the memo of an agent's observed run, earlier versions have usage that its transcript contains.
func rowOf(r runs.Run) *transcripts.Session {
	if r.Trace != nil {
		return tracedRow(r)
	}
	observesAgent := r.Observed != nil && ace.AgentOf(r.Observed.Source) != ""
	if r.Summary == nil || r.Summary.Metered == nil || observesAgent {
		return nil
	}
	metered := *r.Summary.Metered
	var days []transcript.DayUse
	for _, model := range slices.Sorted(maps.Keys(metered)) {
		u := metered[model]
		d := transcript.DayUse{Day: transcripts.Today(r.Began()), Model: model, CostUSD: u.CostUSD,
			Priced: !u.Unpriced,
			Tokens: transcript.Tokens{Input: u.InputTokens, Output: u.OutputTokens,
				CacheRead: u.CacheReadTokens}}
		if d.Tokens != (transcript.Tokens{}) || d.CostUSD > 0 {
			days = append(days, d)
		}
	}
	return sessionOf(r, Agent, cmp.Or(r.Experiment, r.Flow), days)
}

// tracedRow returns a run of agents of a framework as a session of that framework, whose project is the
// workflow type.
func tracedRow(r runs.Run) *transcripts.Session {
	var days []transcript.DayUse
	for _, p := range r.Trace.Parts {
		if s := p.Sum; s.Tokens() > 0 || s.Cost > 0 {
			days = append(days, transcript.DayUse{Day: transcripts.Today(r.Began()), Model: p.Model, CostUSD: s.Cost,
				Priced: s.Unpriced == 0, Tokens: transcript.Tokens{Input: s.Input, Output: s.Output,
					CacheRead: s.CacheRead, CacheWrite1h: s.CacheWrite1h, CacheWrite5m: s.CacheWrite - s.CacheWrite1h}})
		}
	}
	return sessionOf(r, agentcli.CLI(cmp.Or(r.Trace.Framework, runs.OtherType)), r.Type, days)
}

// sessionOf returns a run as a session of an agent, or nil if it used nothing.
func sessionOf(
	r runs.Run, agent agentcli.CLI, project string, days []transcript.DayUse,
) *transcripts.Session {
	if len(days) == 0 {
		return nil
	}
	return &transcripts.Session{ID: cmp.Or(r.TaskID, r.WorkflowID), Agent: agent, Path: pathPrefix + r.RunID,
		ModTime: r.Start,
		Summary: transcript.Summary{WorkDir: project, Started: r.Began(), Last: r.Began(), Days: days}}
}
