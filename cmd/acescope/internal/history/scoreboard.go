package history

import (
	"cmp"
	"context"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/sources/scoreboard"
)

// ScoreLine is a fork of a batch beside its original.
type ScoreLine struct {
	Batch    string             `json:"batch_id"`
	Outcome  scoreboard.Outcome `json:"outcome"` // fixed, broken, unchanged, failed, running or unknown
	Original ScoredRun          `json:"original"`
	Fork     ScoredRun          `json:"fork"`
}

type ScoredRun struct {
	TaskID     string      `json:"task_id"`
	WorkflowID string      `json:"workflow_id"`
	RunID      string      `json:"run_id"`
	Status     ace.Status  `json:"status,omitempty"`  // "" if the run is gone
	Verdict    ace.Verdict `json:"verdict,omitempty"` // "" if it is unknown
	Usage      *ace.Usage  `json:"usage,omitempty"`   // nil if it is unknown
}

// ScoreboardLine ends a scoreboard.
type ScoreboardLine struct {
	Batch     string   `json:"batch_id"`
	Fixed     int      `json:"fixed"`
	Broken    int      `json:"broken"`
	Unchanged int      `json:"unchanged"`
	Failed    int      `json:"failed"`
	Running   int      `json:"running"`
	Unknown   int      `json:"unknown"`
	P         *float64 `json:"p,omitempty"` // of McNemar's test on fixed and broken
	ace.Usage          // of the forks that have closed
	Caution   string   `json:"caution,omitempty"`
}

func scoredRun(r runs.Run) ScoredRun {
	s := ScoredRun{TaskID: r.TaskID, WorkflowID: r.WorkflowID, RunID: r.RunID, Status: r.Status,
		Verdict: r.Verdict}
	if r.Summary != nil {
		s.Usage = &r.Summary.Usage
	}
	return s
}

// printScoreboard writes the forks of a batch and the totals.
func printScoreboard(a *cli.App, s *scoreboard.Scoreboard) error {
	lines := cli.Mapped(s.Rows, func(r scoreboard.Row) ScoreLine {
		return ScoreLine{s.Batch, r.Outcome, scoredRun(r.Original), scoredRun(r.Fork)}
	})
	err := cli.WriteRows(a, lines, "OUTCOME\tTASK\tORIGINAL\tFORK\tCOST\tFORKED AS", func(l ScoreLine) []any {
		cost := "-"
		if u := l.Fork.Usage; u != nil {
			cost = u.Cost()
		}
		return []any{l.Outcome, l.Original.TaskID, l.Original.result(), l.Fork.result(), cost, l.Fork.TaskID}
	})
	if err != nil {
		return err
	}
	n := s.Counts
	end := ScoreboardLine{s.Batch, n[scoreboard.Fixed], n[scoreboard.Broken], n[scoreboard.Unchanged],
		n[scoreboard.Failed], n[scoreboard.Running], n[scoreboard.Unknown], s.P, s.Usage, s.Caution()}
	if err := cli.Report(a, end, "%s", s.Text()); err != nil || s.Caution() == "" {
		return err
	}
	cli.Warn(a, "%s", s.Caution())
	return nil
}

// result returns the verdict of a run, or its status if it has no verdict.
func (r ScoredRun) result() string {
	return cmp.Or(string(r.Verdict), string(r.Status), "-")
}

func lineageOfBatch(a *cli.App, ctx context.Context, batch string) error {
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	s, err := scoreboard.Read(ctx, e.Client, batch)
	if err != nil {
		return err
	}
	return printScoreboard(a, s)
}
