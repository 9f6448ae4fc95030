package scoreboard

import (
	"testing"
	"time"

	"acescope/engine/ace"
	"acescope/sources/runs"
)

var closed = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func ended(status ace.Status, verdict ace.Verdict) runs.Run {
	return runs.Run{Status: status, Verdict: verdict, Close: closed}
}

func TestOutcomeOf(t *testing.T) {
	right, wrong := ended(ace.Completed, ace.Correct), ended(ace.Completed, ace.Wrong)
	failed, ungraded := ended(ace.Failed, ""), ended(ace.Completed, ace.Ungraded)
	for _, c := range []struct {
		original, fork runs.Run
		want           Outcome
	}{
		{wrong, right, Fixed}, {failed, right, Fixed}, {right, wrong, Broken}, {right, right, Unchanged},
		{wrong, wrong, Unchanged}, {failed, wrong, Unchanged}, {wrong, failed, Failed},
		{right, failed, Failed},
		{wrong, runs.Run{Status: ace.Running}, Running}, {wrong, ungraded, Unknown},
		{ungraded, right, Unknown},
		{runs.Run{}, right, Unknown},
	} {
		if got := OutcomeOf(c.original, c.fork); got != c.want {
			t.Errorf("%s %s forked to %s %s: %s, want %s", c.original.Status, c.original.Verdict,
				c.fork.Status,
				c.fork.Verdict, got, c.want)
		}
	}
}

// The totals test fixed against broken. They say how to read the test if no original was correct.
func TestScoreboardText(t *testing.T) {
	paid := &ace.Summary{Usage: ace.Usage{CostUSD: 0.02}}
	row := func(original ace.Verdict, outcome Outcome) Row {
		return Row{Original: ended(ace.Completed, original), Fork: runs.Run{Summary: paid}, Outcome: outcome}
	}
	s := Of("forks-1", []Row{row(ace.Wrong, Unchanged), row(ace.Wrong, Failed), row(ace.Wrong, Fixed)})
	if got, want := s.Text(), "1 fixed, 0 broken, 1 unchanged, 1 failed; p 1; cost $0.0600"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if s.Rows[0].Outcome != Fixed || s.Caution() == "" {
		t.Errorf("rows %v, caution %q", s.Rows, s.Caution())
	}
	if s = Of("forks-1", []Row{row(ace.Wrong, Fixed), row(ace.Correct, Broken)}); s.Caution() != "" {
		t.Errorf("caution %q", s.Caution())
	}
	s = Of("forks-1", []Row{row(ace.Wrong, Fixed), row(ace.Wrong, Running)})
	if got := s.Text(); s.P != nil || got != "1 fixed, 0 broken, 0 unchanged, 1 running; cost $0.0400" {
		t.Errorf("an open batch: %q", got)
	}
	if s = Of("forks-1", nil); s.P != nil {
		t.Errorf("p %g of nothing", *s.P)
	}
}
