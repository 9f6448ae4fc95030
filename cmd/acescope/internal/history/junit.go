package history

import (
	"cmp"
	"fmt"
	"slices"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/temporal/replay"
)

// writeJUnit writes a report. A divergence is a failure. An unverified history is skipped, or an error if it
// could not be read or all are required.
func writeJUnit(path string, list []VerdictLine, end VerifyEnd, requireAll bool) error {
	s := cli.JUnitSuite{
		Name: "acescope replay verify", Tests: end.Histories, Failures: end.Nondeterministic + end.Drifted,
		Time: seconds(end.DurationMS),
	}
	slices.SortStableFunc(list, func(a, b VerdictLine) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), a.Number-b.Number)
	})
	for _, l := range list {
		c := cli.JUnitCase{Class: l.WorkflowType, Name: cmp.Or(l.WorkflowID, l.Source),
			Time: seconds(l.DurationMS)}
		if l.RunID != "" {
			c.Name += " " + l.RunID
		}
		unverified := &cli.JUnitProblem{l.Why, string(l.Outcome), l.Source}
		switch d := l.Divergence; {
		case d != nil:
			c.Failure = &cli.JUnitProblem{d.Sentence, string(d.Kind), d.Advice}
		case l.Outcome == replay.Unverified && (requireAll || l.readErr != nil):
			c.Error = unverified
			s.Errors++
		case l.Outcome == replay.Unverified:
			c.Skipped = unverified
			s.Skipped++
		}
		s.Cases = append(s.Cases, c)
	}
	if end.Incomplete { // otherwise the report would look like a success
		s.Tests++
		s.Errors++
		s.Cases = append(s.Cases, cli.JUnitCase{
			Class: "acescope", Name: "complete", Time: seconds(end.DurationMS),
			Error: &cli.JUnitProblem{"not all histories were verified", "incomplete", ""},
		})
	}
	return cli.WriteJUnit(path, s)
}

func seconds(ms float64) string { return fmt.Sprintf("%.3f", ms/1000) }
