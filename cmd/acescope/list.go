package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/sources"
)

func (a *app) listCommand() *cobra.Command {
	var query string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, newest first",
		Example: "acescope list -q 'ExitStatus = \"wrong\"' --limit 20\n" +
			"acescope list --json | jq -r 'select(.exit_status == \"wrong\") | .task_id'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.list(cmd, query, limit) },
	}
	cmd.Flags().StringVarP(&query, "query", "q", "", "Temporal visibility query over the search attributes")
	cmd.Flags().IntVar(&limit, "limit", 0, "at most so many runs (default all)")
	return cmd
}

func (a *app) list(cmd *cobra.Command, query string, limit int) error {
	if limit < 0 {
		return usage("--limit %d: give a number above 0", limit)
	}
	ctx := cmd.Context()
	e, done, err := a.look(ctx)
	if err != nil {
		return err
	}
	defer done()
	if a.json {
		out := newLines(a.out)
		given := 0
		err = sources.List(ctx, e.Client, query, limit, func(r sources.Run) error {
			err := out.put(listLine(r))
			if given++; err == nil && given%200 == 1 {
				err = out.flush()
			}
			return err
		})
		if flushErr := out.flush(); err == nil {
			err = flushErr
		}
		return queryError(query, err)
	}
	return queryError(query, a.listTable(ctx, e, query, limit))
}

func (a *app) listTable(ctx context.Context, e *engine.Engine, query string, limit int) error {
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	now := time.Now()
	rows := 0
	err := sources.List(ctx, e.Client, query, limit, func(r sources.Run) error {
		if rows == 0 {
			fmt.Fprintln(w, "TASK\tPHASE\tSKILLS\tΔ\tCOST\tAGE\tSTATUS\tEXPERIMENT")
		}
		skills, delta, cost := "", "", ""
		if s := r.Summary; s != nil {
			skills = fmt.Sprintf("%d/%d", s.SkillsOK, s.Skills)
			delta = fmt.Sprintf("+%d ~%d -%d", s.Added, s.Updated, s.Removed)
			cost = fmt.Sprintf("%.4f", s.Usage.CostUSD)
		}
		name := r.TaskID
		if r.Type == ace.ExperimentWorkflow {
			name = r.WorkflowID
		}
		_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", safe(name), safe(string(r.Phase)), skills, delta, cost,
			r.Age(now).Round(10*time.Millisecond), r.Exit, safe(r.Experiment))
		if rows++; err == nil && rows%100 == 0 {
			err = w.Flush()
		}
		return err
	})
	if flushErr := w.Flush(); err == nil {
		err = flushErr
	}
	return err
}

// queryError shows where a query is wrong.
func queryError(query string, err error) error {
	var invalid *serviceerror.InvalidArgument
	if query == "" || !errors.As(err, &invalid) {
		return err
	}
	text := strings.Join(strings.Fields(invalid.Error()), " ")
	if at := sources.QueryErrorAt(query, err); at >= 0 {
		return usage("query, column %d, at %q: %s", at+1, query[at:], text)
	}
	return usage("query %q: %s", query, text)
}
