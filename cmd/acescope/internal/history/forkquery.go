package history

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/sources/cluster"
	sourceruns "acescope/sources/runs"
	"acescope/sources/scoreboard"
)

// BatchLine is a batch of forks. A dry run has no ID.
type BatchLine struct {
	DryRun   bool          `json:"dry_run,omitempty"`
	Batch    string        `json:"batch_id,omitempty"`
	Forks    int           `json:"forks"`
	Skipped  []SkippedLine `json:"skipped"`
	Estimate *ace.Usage    `json:"estimate,omitempty"` // if the forks may cost money
}

// SkippedLine is a run that cannot be forked.
type SkippedLine struct {
	TaskID string `json:"task_id"`
	Error  string `json:"error"`
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
