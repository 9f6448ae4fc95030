package learning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine/ace"
	"acescope/engine/learning/grade"
	"acescope/engine/learning/stats"
	"acescope/sources/evaluations"
)

type gateFlags struct {
	minEval   string
	confident bool
	base      string
	maxCost   float64
	costs     bool // maxCost is given
	junit     string
}

func GateCommand(a *cli.App) *cobra.Command {
	var f gateFlags
	cmd := &cobra.Command{
		Use:   "gate EXPERIMENT",
		Short: "Check conditions on an experiment, for a CI system; exits with 1 unless all hold",
		Long: "Check that an experiment has completed, and the conditions of the flags. The evaluation\n" +
			"is the last complete one; a condition on it does not hold if the experiment has learned more\n" +
			"after it, because a budget was spent, or if it does not hold should the failed items of the\n" +
			"evaluation be wrong. A regression is an item that the last evaluation of the other\n" +
			"experiment answered correctly and this one does not, also because it failed; both need the\n" +
			"same items, and the other experiment must have completed.",
		Example: "acescope run --dataset train.jsonl --eval held-out.jsonl --experiment $CI_COMMIT &&\n" +
			"  acescope gate $CI_COMMIT --min-eval 0.9 --no-regressions main --max-cost 5 --junit gate.xml",
		RunE: func(cmd *cobra.Command, args []string) error {
			f.costs = cmd.Flags().Changed("max-cost")
			return gate(a, cmd.Context(), args[0], f)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.minEval, "min-eval", "", "least accuracy of the evaluation, such as 0.9 or 90%")
	fs.BoolVar(&f.confident, "confident", false, "compare --min-eval with the lower end of the 95% interval")
	fs.StringVar(&f.base, "no-regressions", "",
		"no item may be worse than in the evaluation of the `EXPERIMENT`")
	fs.Float64Var(&f.maxCost, "max-cost", 0, "most that the experiment may have cost, in US dollars")
	fs.StringVar(&f.junit, "junit", "", "also write a JUnit report to this file")
	return cmd
}

type GateLine struct {
	ExperimentID string `json:"experiment_id"`
	Condition    string `json:"condition"`
	OK           bool   `json:"ok"`
	Text         string `json:"text"` // what was found
}

func gate(a *cli.App, ctx context.Context, name string, f gateFlags) error {
	least, err := parseShare(f.minEval)
	switch {
	case err != nil:
		return cli.UsageError("--min-eval %q: must be from 0 to 1, or a percentage", f.minEval)
	case f.confident && f.minEval == "":
		return cli.UsageError("--confident needs --min-eval")
	case !(f.maxCost >= 0):
		return cli.UsageError("--max-cost %g: must not be negative", f.maxCost)
	}
	g, err := f.judge(a, ctx, name, least)
	if err != nil && f.junit != "" { // the report of an earlier call must not remain
		problem := &cli.JUnitProblem{Message: cli.OneLine(err), Type: "error"}
		err = errors.Join(err, cli.WriteJUnit(f.junit, cli.JUnitSuite{
			Name: "acescope gate " + name, Tests: 1, Errors: 1, Time: "0",
			Cases: []cli.JUnitCase{{Class: name, Name: "gate", Time: "0", Error: problem}}}))
	}
	if err != nil {
		return err
	}
	return g.report(a, f.junit)
}

// judge reads an experiment and checks the conditions.
func (f gateFlags) judge(a *cli.App, ctx context.Context, name string, least float64) (*gated, error) {
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return nil, err
	}
	grid, err := runs.ReadEvaluations(ctx, e, name)
	if err != nil {
		return nil, err
	}
	g := &gated{Grid: grid}
	g.completed()
	if f.minEval != "" {
		g.accuracy(least, f.confident)
	}
	if f.base != "" {
		base, err := runs.ReadEvaluations(ctx, e, f.base)
		if err != nil {
			return nil, fmt.Errorf("--no-regressions: %w", err)
		}
		g.regressions(base)
	}
	if f.costs {
		g.cost(f.maxCost)
	}
	return g, nil
}

// parseShare parses a share or a percentage, "" as 0.
func parseShare(s string) (share float64, err error) {
	if s == "" {
		return 0, nil
	}
	number, percent := strings.CutSuffix(s, "%")
	if share, err = strconv.ParseFloat(number, 64); percent {
		share /= 100
	}
	if err == nil && !(share >= 0 && share <= 1) {
		err = strconv.ErrRange
	}
	return share, err
}

// gated is an experiment and the conditions that were checked.
type gated struct {
	*evaluations.Grid
	lines []GateLine
}

func (g *gated) check(condition string, ok bool, format string, args ...any) {
	g.lines = append(g.lines, GateLine{g.Input.ExperimentID, condition, ok, fmt.Sprintf(format, args...)})
}

func (g *gated) completed() {
	failed, closed := g.Progress.Failed()
	text := fmt.Sprintf("%s, %s of %s failed", g.Status, ace.Number(failed), ace.Count(closed, "task"))
	if g.Progress.Stopped != "" {
		text += ", stopped: " + g.Progress.Stopped
	}
	g.check("completed", g.Status == ace.Completed, "%s", text)
}

// last returns the last complete evaluation with labels, or nil. It may be older than what was learned.
func last(g *evaluations.Grid) *evaluations.Version {
	for i := range slices.Backward(g.Versions) {
		if v := &g.Versions[i]; v.Labeled() > 0 && !v.Incomplete {
			return v
		}
	}
	return nil
}

func (g *gated) accuracy(least float64, confident bool) {
	condition := fmt.Sprintf("evaluation %g%% or more", 100*least)
	if confident {
		condition += ", with 95% confidence"
	}
	v := last(g.Grid)
	if v == nil {
		g.check(condition, false, "no complete evaluation; start experiments with --eval FILE")
		return
	}
	found := float64(v.Correct) / float64(v.Labeled())
	i := stats.Wilson(v.Correct, v.Labeled())
	text := fmt.Sprintf("%s: %d of %d correct, %.1f%% (%.1f to %.1f)", evaluations.When(v.EvalResult),
		v.Correct, v.Labeled(), 100*found, 100*i.Low, 100*i.High)
	if v.Failed > 0 {
		found, i = v.AtLeast(), stats.Wilson(v.Correct, v.Labeled()+v.Failed)
		text += fmt.Sprintf("; at least %.1f%% (%.1f to %.1f), if the failed items were wrong", 100*found,
			100*i.Low, 100*i.High)
	}
	if confident {
		found = i.Low
	}
	if outdated(g.Grid, v) {
		text += "; " + notEvaluated
	}
	g.check(condition, found >= least && !outdated(g.Grid, v), "%s", text)
}

// notEvaluated is the finding about an evaluation that is not of the playbook as it was learned.
const notEvaluated = "what was learned later was not evaluated"

// outdated reports whether the experiment has learned more after the evaluation.
func outdated(g *evaluations.Grid, v *evaluations.Version) bool {
	return v.Playbook != g.Progress.After
}

// maxListed is the number of items that a line names.
const maxListed = 10

func (g *gated) regressions(base *evaluations.Grid) {
	condition := "no regressions from " + base.Input.ExperimentID
	before, after := last(base), last(g.Grid)
	switch {
	case before == nil || after == nil:
		g.check(condition, false, "not both have a complete evaluation")
	case base.Input.Eval == nil || g.Input.Eval == nil || base.Input.Eval.SHA256 != g.Input.Eval.SHA256:
		g.check(condition, false, "the evaluations have different items: %s and %s", base.Input.EvalID,
			g.Input.EvalID)
	case before.Items == nil || after.Items == nil:
		g.check(condition, false, "the answers to the items were not kept")
	case base.Status != ace.Completed:
		g.check(condition, false, "%s has no final result: its status is %s", base.Input.ExperimentID,
			base.Status)
	case outdated(base, before):
		g.check(condition, false, "%s: %s: %s", base.Input.ExperimentID, evaluations.When(before.EvalResult),
			notEvaluated)
	case cmp.Or(base.Input.Grader, grade.Exact) != cmp.Or(g.Input.Grader, grade.Exact):
		g.check(condition, false, "the graders differ: %s and %s", cmp.Or(base.Input.Grader, grade.Exact),
			cmp.Or(g.Input.Grader, grade.Exact))
	case outdated(g.Grid, after):
		g.check(condition, false, "%s: %s", evaluations.When(after.EvalResult), notEvaluated)
	default:
		versions := []evaluations.Version{*before, *after}
		pair := evaluations.Grid{Versions: versions, Rows: evaluations.Rows(versions)}
		fixed, broken := pair.Flips(0, 1)
		worse := "worse"
		for _, r := range pair.Rows {
			if r.Marks[0] == evaluations.Correct && r.Marks[1] == evaluations.Failed {
				worse = "worse or failed"
				broken = append(broken, r.Index)
			}
		}
		text := fmt.Sprintf("%s %s, %d better", ace.Count(len(broken), "item"), worse, len(fixed))
		for i, item := range broken {
			if i == maxListed {
				text += ", …"
				break
			}
			text += fmt.Sprintf("%s%d", map[bool]string{true: ": ", false: ", "}[i == 0], item+1)
		}
		g.check(condition, len(broken) == 0, "%s (%s; %s: %s)", text, evaluations.When(after.EvalResult),
			base.Input.ExperimentID, evaluations.When(before.EvalResult))
	}
}

func (g *gated) cost(most float64) {
	u := g.Progress.Usage
	text := u.Cost()
	if u.Unpriced {
		text += ": some tokens have no known price"
	}
	known := !u.Unpriced && u != (ace.Usage{})
	g.check("cost of at most "+ace.Dollars(most), known && u.CostUSD <= most, "%s", text)
}

// report writes the conditions, and an error if one does not hold.
func (g *gated) report(a *cli.App, junit string) error {
	suite := cli.JUnitSuite{Name: "acescope gate " + g.Input.ExperimentID, Tests: len(g.lines), Time: "0"}
	var missed []string
	for _, l := range g.lines {
		c := cli.JUnitCase{Class: g.Input.ExperimentID, Name: l.Condition, Time: "0"}
		if !l.OK {
			c.Failure = &cli.JUnitProblem{Message: l.Text, Type: "condition"}
			suite.Failures++
			missed = append(missed, l.Condition)
		}
		suite.Cases = append(suite.Cases, c)
	}
	if junit != "" {
		if err := cli.WriteJUnit(junit, suite); err != nil {
			return err
		}
	}
	err := cli.WriteRows(a, slices.Values(g.lines), "CONDITION\tRESULT\tFOUND", func(l GateLine) []any {
		return []any{l.Condition, map[bool]string{true: "ok", false: "not met"}[l.OK], l.Text}
	})
	if err == nil && missed != nil {
		err = fmt.Errorf("%s: not met: %s", g.Input.ExperimentID, strings.Join(missed, "; "))
	}
	return err
}
