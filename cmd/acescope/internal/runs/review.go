package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/detail"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/tui/text"
)

// ReviewLine is an operation that waits for review.
type ReviewLine struct {
	WorkflowID string        `json:"workflow_id"`
	RunID      string        `json:"run_id"`
	Number     int           `json:"operation"`        // its position in the delta, from 1
	Op         ace.Operation `json:"proposal"`         // as the curator proposed it
	Before     string        `json:"before,omitempty"` // text of the bullet, if it exists and can be read
	Insights   string        `json:"insights,omitempty"`
	Until      time.Time     `json:"until,omitzero"` // end of the time limit
	OnTimeout  string        `json:"on_timeout"`     // reject or approve
}

type ReviewDecisionLine struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	ace.ReviewDecision
}

// all stands for the operations that no other flag names.
const all = "all"

type reviewFlags struct {
	approve, reject []string
	reason, run     string
}

func ReviewCommand(a *cli.App) *cobra.Command {
	var f reviewFlags
	cmd := &cobra.Command{
		Use:   "review [TASK]",
		Short: "Approve or reject the operations of a run that wait for review",
		Long: "Without TASK, lists the runs that wait for review. With TASK, lists the operations of the run that wait;\n" +
			"--approve and --reject decide on them by number. A decision covers all operations of the run: name each,\n" +
			"or use all for those that are not named. A run waits if it was started with --review.",
		Example: "acescope review\n" +
			"acescope review finance-1-e1-0042\n" +
			"acescope review finance-1-e1-0042 --approve all --reject 2 --reason 'too specific'",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cli.CompleteIDs(a, runs.ReviewQuery),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := f.decision()
			switch {
			case err != nil:
				return err
			case len(args) == 0 && (d != nil || f.run != ""):
				return cli.UsageError("name the run to decide on; \"acescope review\" lists those that wait")
			case len(args) == 0:
				return listReviews(a, cmd.Context())
			}
			return f.review(a, cmd.Context(), args[0], d)
		},
	}
	fs := cmd.Flags()
	fs.StringSliceVar(&f.approve, "approve", nil, "numbers of operations to approve, or all")
	fs.StringSliceVar(&f.reject, "reject", nil, "numbers of operations to reject, or all")
	fs.StringVar(&f.reason, "reason", "", "reason of --reject, which the run keeps")
	fs.StringVar(&f.run, "run", "", "run ID, if the workflow has several runs")
	return cmd
}

// reviewSetting holds the flags of run that ask for reviews.
type reviewSetting struct {
	on      bool
	timeout time.Duration
	choice  string
}

func (r *reviewSetting) add(fs *pflag.FlagSet) {
	fs.BoolVar(&r.on, "review", false,
		"wait for your decision on the curator's operations before they are merged: \"acescope review\" or the console")
	fs.DurationVar(&r.timeout, "review-timeout", ace.DefaultReviewTimeout,
		"with --review: time limit of a decision")
	fs.StringVar(&r.choice, "review-default", string(ace.ChooseReject),
		"with --review: what happens to the operations after the time limit: reject or approve")
}

func (r *reviewSetting) check() error {
	if r.choice == "" { // the command does not have these flags
		return nil
	}
	switch changed := r.timeout != ace.DefaultReviewTimeout || r.choice != string(ace.ChooseReject); {
	case changed && !r.on:
		return cli.UsageError("--review-timeout and --review-default need --review")
	case r.timeout < time.Second:
		return cli.UsageError("--review-timeout %s: must be at least 1s", r.timeout)
	case r.choice != string(ace.ChooseReject) && r.choice != string(ace.ChooseApprove):
		return cli.UsageError("--review-default %q: use reject or approve", r.choice)
	}
	return nil
}

// setting returns the setting of the runs, nil without --review.
func (r *reviewSetting) setting() *ace.Review {
	if !r.on {
		return nil
	}
	return &ace.Review{TimeoutMS: r.timeout.Milliseconds(), OnTimeout: ace.ReviewChoice(r.choice)}
}

// decision returns the decision of the flags, nil without one.
func (f *reviewFlags) decision() (*ace.ReviewDecision, error) {
	if len(f.approve)+len(f.reject) == 0 {
		if f.reason != "" {
			return nil, cli.UsageError("--reason needs --reject")
		}
		return nil, nil
	}
	d := &ace.ReviewDecision{By: ace.User()}
	for _, word := range slices.Concat(f.approve, f.reject) {
		approves := slices.Contains(f.approve, word)
		if approves && slices.Contains(f.reject, word) {
			return nil, cli.UsageError("%s: approve it or reject it, not both", word)
		}
		reason := f.reason
		if approves {
			reason = ""
		}
		if word == all {
			d.Approve, d.Reason = &approves, reason
			continue
		}
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, cli.UsageError("%q is not the number of an operation; use numbers or all", word)
		}
		d.Operations = append(d.Operations, ace.OperationDecision{Operation: n, Approve: approves,
			Reason: reason})
	}
	return d, nil
}

func (f *reviewFlags) review(a *cli.App, ctx context.Context, id string, d *ace.ReviewDecision) error {
	e, exec, err := cli.OpenRun(a, ctx, id, f.run)
	if err != nil {
		return err
	}
	of := runs.ID{WorkflowID: exec.GetWorkflowId(), RunID: exec.GetRunId()}
	if d == nil {
		return listOperations(a, ctx, e, of)
	}
	err = engine.DecideReview(ctx, e, of.WorkflowID, of.RunID, *d)
	if errors.Is(err, engine.ErrNoReview) {
		return cli.NotFound("%w; \"acescope review %s\" lists what waits", err, id)
	} else if err != nil {
		return err
	}
	var decided []string
	if len(f.approve) > 0 {
		decided = append(decided, "approved "+strings.Join(f.approve, ", "))
	}
	if len(f.reject) > 0 {
		decided = append(decided, "rejected "+strings.Join(f.reject, ", "))
	}
	return cli.Report(a, ReviewDecisionLine{of.WorkflowID, of.RunID, *d}, "%s: %s", id,
		strings.Join(decided, ", "))
}

// listOperations lists the operations of a run that wait for review.
func listOperations(a *cli.App, ctx context.Context, e *engine.Engine, of runs.ID) error {
	deps := cluster.Deps{Client: e.Client, Playbooks: e.Books, Artifact: e.Artifacts.Get}
	d, err := detail.ReadAll(ctx, deps, of.WorkflowID, of.RunID)
	if err != nil {
		return err
	}
	out := cli.NewLines(a)
	waiting := d.UnderReview()
	if len(waiting) == 0 {
		return cli.NotFound("%s does not wait for a review; \"acescope review\" lists the runs that do",
			of.WorkflowID)
	}
	say := func(format string, args ...any) {
		if !a.JSON {
			out.Printf(format, args...)
		}
	}
	say("%s %s", of.WorkflowID, ReviewText(d, time.Now()))
	for _, n := range waiting {
		op := d.Delta.Operations[n-1]
		before := d.OldBullets[op.BulletID].Content
		line := ReviewLine{of.WorkflowID, of.RunID, n, op, before, d.Delta.Insights,
			d.ReviewUntil, string(d.Input.Review.TimeoutChoice())}
		out.Line(line, "%3d  %-6s %s", n, op.Type, strings.TrimSpace(op.BulletID+" "+proposalText(op)))
		if before != "" {
			say("     %-6s %s", "before", before)
		}
	}
	say("because  %s", cmp.Or(d.Delta.Insights, "-"))
	return out.Flush()
}

// ReviewText says that a run waits, and until when.
func ReviewText(d *histories.Detail, now time.Time) string {
	left := "the time limit begins when a worker continues the run"
	if !d.ReviewUntil.IsZero() {
		left = text.Span(max(d.ReviewUntil.Sub(now), 0)) + " left, then " +
			string(d.Input.Review.TimeoutChoice())
	}
	return fmt.Sprintf("waits for review of %s (%s)", ace.Count(len(d.UnderReview()), "operation"), left)
}

// listReviews lists the runs that wait for review.
func listReviews(a *cli.App, ctx context.Context) error {
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	rows, more, err := runs.ListOnce(ctx, e.Client, runs.ReviewQuery, maxReviews)
	if err != nil {
		return cli.QueryError(runs.ReviewQuery, err)
	}
	if len(more) > 0 {
		cli.Warn(a, "only the newest %d are listed; use acescope list -q waiting", maxReviews)
	}
	now := time.Now()
	return cli.WriteRows(a, cli.Mapped(rows, cli.ListLine), "RUN\tOPERATIONS\tLEFT\tEXPERIMENT",
		func(r cli.RunLine) []any {
			if r.Review == nil {
				return []any{r.TaskID, "-", "-", cmp.Or(r.Experiment, "-")}
			}
			return []any{r.TaskID, r.Review.Operations, text.Span(max(r.Review.Until.Sub(now), 0)),
				cmp.Or(r.Experiment, "-")}
		})
}

// reviewInterval is the time between two searches for runs that wait for review.
const reviewInterval = 5 * time.Second

// reportReviews names on standard error each run that waits for review, once: the run itself, or the tasks of
// an experiment. It returns a function that ends it.
func reportReviews(a *cli.App, ctx context.Context, e *engine.Engine, workflowID string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	of := "WorkflowId = " + runs.Quote(workflowID)
	if id, ok := strings.CutPrefix(workflowID, ace.ExperimentIDPrefix); ok {
		of = ace.AttrExperiment + " = " + runs.Quote(id)
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		seen := map[string]bool{}
		for ctx.Err() == nil {
			rows, _, _ := runs.ListOnce(ctx, e.Client, runs.And(runs.ReviewQuery, of), maxReviews)
			for _, r := range rows { // none if the server cannot list them
				if seen[r.RunID] {
					continue
				}
				runID, open, err := e.Newest(ctx, r.WorkflowID)
				if err == nil && open && runID == r.RunID { // a list can be older than the end of a run
					seen[r.RunID] = true
					cli.Warn(a, "%s waits for review; decide with \"acescope review %s\"", r.TaskID, r.TaskID)
				}
			}
			_ = cluster.Sleep(ctx, reviewInterval)
		}
	})
	return func() {
		cancel()
		watching.Wait()
	}
}

// maxReviews bounds the runs that review lists.
const maxReviews = 500
