package history

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/fork"
	"acescope/sources/cluster"
	sourceruns "acescope/sources/runs"
)

// parallelPlans bounds the histories that are read at the same time to plan a batch.
const parallelPlans = 8

// BatchPlan is planned forks of several runs with the same changes. Their deltas are only recorded unless the
// changes name a branch.
type BatchPlan struct {
	ID       string
	Plans    []*fork.Plan
	Skipped  []SkippedLine
	Estimate ace.Usage // as much as the originals used for the phases to rerun
	Costs    bool      // a fork may cost money
	warnings []string
}

// PlanBatch plans forks of runs. Runs that cannot be forked are skipped. If none can be, the error is that of
// the first.
func PlanBatch(a *cli.App, ctx context.Context, e *engine.Engine, originals []sourceruns.Run, at fork.Point,
	changes []sourceruns.Field, progress sourceruns.Progress) (*BatchPlan, error) {
	c, err := forkChanges(ctx, e, changes)
	if err != nil {
		return nil, err
	}
	plans, errs := make([]*fork.Plan, len(originals)), make([]error, len(originals))
	var done atomic.Int64
	var readers errgroup.Group
	readers.SetLimit(parallelPlans)
	for i, r := range originals {
		readers.Go(func() error {
			plans[i], errs[i] = planOf(a, ctx, e, r, at, c)
			progress(done.Add(1), int64(len(originals)))
			return ctx.Err()
		})
	}
	if err := readers.Wait(); err != nil {
		return nil, err
	}
	b := &BatchPlan{ID: cli.NewID(strings.TrimSuffix(ace.BatchPrefix, "-")), Skipped: []SkippedLine{}}
	for i, r := range originals {
		b.add(cmp.Or(r.TaskID, r.WorkflowID), plans[i], errs[i])
	}
	if len(b.Plans) == 0 {
		return nil, fmt.Errorf("%s: %w", b.Skipped[0].TaskID, errs[0])
	}
	about, err := AboutCluster(ctx, e, b.Plans[0])
	b.warnings = about.warnings
	return b, err
}

func planOf(a *cli.App, ctx context.Context, e *engine.Engine, r sourceruns.Run, at fork.Point,
	c fork.Changes) (*fork.Plan, error) {
	if r.Type != ace.TaskWorkflow {
		return nil, fmt.Errorf("%w: %s", fork.ErrForeign, r.Type)
	}
	events, err := cluster.ReadHistory(ctx, e.Client, e.Namespace(), r.WorkflowID, r.RunID)
	if err != nil {
		return nil, err
	}
	o, err := fork.Read(r.WorkflowID, r.RunID, events)
	if err != nil {
		return nil, err
	}
	return planFork(a, ctx, e, o, at, c)
}

func (b *BatchPlan) add(name string, p *fork.Plan, err error) {
	if err != nil {
		b.Skipped = append(b.Skipped, SkippedLine{name, cli.OneLine(err)})
		return
	}
	p.Input.ExperimentID = b.ID
	if p.OwnBranch {
		p.Input.Branch, p.OwnBranch = "", false
	}
	b.Plans = append(b.Plans, p)
	b.Estimate = b.Estimate.Add(p.Estimate)
	b.Costs = b.Costs || p.Costs()
}

// shownSkipped bounds the skipped runs that a question names.
const shownSkipped = 4

// Prepared returns the batch as it waits for confirmation.
func (b *BatchPlan) Prepared(e *engine.Engine) sourceruns.Batch {
	first := *b.Plans[0]
	first.Estimate = b.Estimate
	lines := slices.Concat(
		Labeled("runs", fmt.Sprintf("%d to fork, %d skipped", len(b.Plans), len(b.Skipped))),
		Labeled("reused", formatPhases(first.Reused)),
		Labeled("will rerun", rerunText(&first)...),
		Labeled("changed", b.changedText()...),
		Labeled("merges into", branchText(&first)),
		Labeled("costs", costText(&first)))
	for _, s := range b.Skipped[:min(len(b.Skipped), shownSkipped)] {
		lines = append(lines, Labeled("skipped", s.TaskID+": "+s.Error)...)
	}
	for _, w := range b.warnings {
		lines = append(lines, Labeled("warning", w)...)
	}
	return sourceruns.Batch{ID: b.ID, Title: "Fork " + ace.Count(len(b.Plans), "run") + "?", Lines: lines,
		Yes: "fork the runs", Do: func(ctx context.Context, progress sourceruns.Progress) (int, error) {
			return b.start(ctx, e, progress)
		}}
}

// changedText lists the inputs that the forks change, and how many forks change them unless all do.
func (b *BatchPlan) changedText() (lines []string) {
	changes := map[string][]ace.ForkChange{}
	for _, p := range b.Plans {
		for name, c := range p.Changed {
			changes[name] = append(changes[name], c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		shown, list := changes[name][0], changes[name]
		if n := distinct(list, func(c ace.ForkChange) string { return c.From }); n > 1 {
			shown.From = fmt.Sprintf("%d different values", n)
		}
		if n := distinct(list, func(c ace.ForkChange) string { return c.To }); n > 1 {
			shown.To = fmt.Sprintf("%d different values", n)
		}
		line := name + ": " + ShortChange(shown)
		if len(list) < len(b.Plans) {
			line += fmt.Sprintf(" (in %d of the runs)", len(list))
		}
		lines = append(lines, line)
	}
	if lines == nil {
		lines = []string{"nothing"}
	}
	return lines
}

// distinct counts the different values of a list.
func distinct[T any](list []T, of func(T) string) int {
	values := map[string]bool{}
	for _, v := range list {
		values[of(v)] = true
	}
	return len(values)
}

// start starts the forks one after the other until ctx ends or one cannot start.
func (b *BatchPlan) start(ctx context.Context, e *engine.Engine, progress sourceruns.Progress) (started int,
	err error) {
	for _, p := range b.Plans {
		if _, err := e.StartFork(ctx, p); err != nil {
			return started, fmt.Errorf("%d of %s started; %s: %w", started, ace.Count(len(b.Plans), "fork"),
				p.Name(), err)
		}
		started++
		progress(int64(started), int64(len(b.Plans)))
	}
	return started, nil
}
