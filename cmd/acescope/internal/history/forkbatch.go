package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/fork"
	"acescope/sources/cluster"
	sourceruns "acescope/sources/runs"
	"acescope/sources/scoreboard"
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

// BatchLine is a batch of forks. A dry run has no ID.
type BatchLine struct {
	DryRun   bool          `json:"dry_run,omitempty"`
	Batch    string        `json:"batch_id,omitempty"`
	Forks    int           `json:"forks" jsonschema:"number of forks"`
	Skipped  []SkippedLine `json:"skipped" jsonschema:"runs that cannot be forked"`
	Estimate *ace.Usage    `json:"estimate,omitempty"` // if the forks may cost money
}

// SkippedLine is a run that cannot be forked.
type SkippedLine struct {
	TaskID string `json:"task_id" jsonschema:"ID of the run"`
	Error  string `json:"error" jsonschema:"why it cannot be forked"`
}

// forkQuery forks all runs that match the query of the flags, and with --wait shows the scoreboard.
func forkQuery(a *cli.App, cmd *cobra.Command, f forkFlags) error {
	e, changes, err := f.open(a, cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	originals, err := f.originals(a, ctx, e)
	if err != nil {
		return err
	}
	bar := cli.NewProgressBar(a.Err)
	plan, err := PlanBatch(a, ctx, e, originals, f.at, changes, progressOn(bar, "planning"))
	bar.Clear()
	if err != nil {
		return err
	}
	line := BatchLine{DryRun: f.dry, Forks: len(plan.Plans), Skipped: plan.Skipped}
	if plan.Costs {
		line.Estimate = &plan.Estimate
	}
	b := plan.Prepared(e)
	if f.dry {
		return ReportDry(a, line, append([]string{"would fork " + ace.Count(len(plan.Plans),
			"run")}, b.Lines...))
	}
	question := sourceruns.Prepared{Title: b.Title, Lines: b.Lines, Yes: b.Yes}
	if err := a.Confirm(ctx, question, f.yes); err != nil {
		return err
	}
	line.Batch = b.ID
	line.Forks, err = b.Do(ctx, progressOn(bar, "forking"))
	bar.Clear()
	if err != nil {
		return err
	}
	if err := cli.Report(a, line, "started %s; show them with \"acescope lineage %s\"",
		ace.Count(line.Forks, "fork"), b.ID); err != nil {
		return err
	}
	if !f.wait {
		if e.Mode() != engine.Embedded {
			return nil
		}
		cli.Warn(a, "no other process runs workers for this data directory: this one waits until the forks close")
	}
	return awaitForks(a, ctx, e, b.ID, line.Forks, f.wait)
}

func progressOn(bar *cli.ProgressBar, note string) sourceruns.Progress {
	since := time.Now()
	return func(done, total int64) {
		bar.Draw(func() cli.Progress {
			return cli.Progress{Done: done, Total: total, Since: since, Note: note}
		})
	}
}

var errEnough = errors.New("enough runs")

// originals lists the runs to fork. It leaves out runs that are forks themselves.
func (f forkFlags) originals(a *cli.App, ctx context.Context, e *engine.Engine) (list []sourceruns.Run,
	err error) {
	query, err := cli.FilterOf(f.query)
	if err != nil {
		return nil, err
	}
	tasks := sourceruns.And(query, "WorkflowType = "+sourceruns.Quote(ace.TaskWorkflow))
	forks := 0
	err = sourceruns.ListNewest(ctx, e.Client, tasks, 0, func(r sourceruns.Run) error {
		if r.Fork != nil {
			forks++
			return nil
		}
		if list = append(list, r); len(list) == f.limit {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, cli.QueryError(query, err)
	}
	if forks > 0 {
		cli.Warn(a, "%s that match are left out", ace.Count(forks, "fork"))
	}
	if len(list) == 0 {
		return nil, cli.NotFound("no task matches %s", query)
	}
	return list, nil
}

// awaitForks waits until all forks of a batch have closed and, if show is set, writes the scoreboard.
func awaitForks(a *cli.App, ctx context.Context, e *engine.Engine, batch string, forks int, show bool) error {
	bar := cli.NewProgressBar(a.Err)
	defer bar.Clear()
	progress := progressOn(bar, "waiting for the forks")
	for {
		s, err := scoreboard.Read(ctx, e.Client, batch)
		switch {
		case errors.Is(err, scoreboard.ErrNotFound): // not listed yet
			s = &scoreboard.Scoreboard{}
		case err != nil:
			return err
		}
		closed := len(s.Rows) - s.Counts[scoreboard.Running]
		progress(int64(closed), int64(forks))
		if closed >= forks {
			bar.Clear()
			if !show {
				return nil
			}
			return errors.Join(printScoreboard(a, s), verdictOf(s))
		}
		if err := cluster.Sleep(ctx, scoreboard.Interval); err != nil {
			return cli.ErrInterrupted
		}
	}
}

// verdictOf returns the error for forks that failed or that broke an answer.
func verdictOf(s *scoreboard.Scoreboard) error {
	if n := s.Counts[scoreboard.Failed]; n > 0 {
		return errors.New(ace.Count(n, "fork") + " failed")
	}
	if n := s.Counts[scoreboard.Broken]; n > 0 {
		return cli.Diverged("%s broken", ace.Count(n, "answer"))
	}
	return nil
}
