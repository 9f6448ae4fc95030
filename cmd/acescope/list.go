package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"

	"acescope/sources"
	"acescope/views"
)

// listOptions are what list was asked for.
type listOptions struct {
	query    string
	filter   string
	limit    int
	sort     string
	reverse  bool
	columns  []string
	retrying bool
	facets   bool
	summary  bool
	kind     string
}

func (a *app) listCommand() *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, newest first",
		Example: "acescope list -q 'ExitStatus = \"wrong\"' --limit 20\n" +
			"acescope list --sort cost --limit 10 --columns task,cost,model\n" +
			"acescope list --type run -q 'BlueprintName = \"crawler\"' --columns task,phase,runner,took,status\n" +
			"acescope list --facets\n" +
			"acescope list --json | jq -r 'select(.exit_status == \"wrong\") | .task_id'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.list(cmd, o) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.query, "query", "q", "", "Temporal visibility query over the search attributes")
	f.StringVar(&o.kind, "type", "", "only "+strings.Join(views.RunTypes(), ", ")+": of tasks, experiments, blueprints, or agents' sessions")
	f.StringVar(&o.filter, "filter", "", "name of a saved filter; --query narrows it further")
	f.IntVar(&o.limit, "limit", 0, "at most so many runs (default all)")
	f.StringVar(&o.sort, "sort", "", "sort by a column; all runs are read first, at most "+strconv.Itoa(maxSorted))
	f.BoolVar(&o.reverse, "reverse", false, "sort the other way round")
	f.StringSliceVar(&o.columns, "columns", nil, "columns of the table: "+strings.Join(views.ColumnNames(), ", "))
	f.BoolVar(&o.retrying, "retrying", false, "only open runs with an activity that is being retried; each open run is looked at")
	f.BoolVar(&o.facets, "facets", false, "count the values of the search attributes instead")
	f.BoolVar(&o.summary, "summary", false, "end with what the last "+strconv.Itoa(sources.RecentRuns)+" ended tasks of the list cost and learnt")
	return cmd
}

// narrow narrows the query to a type of runs.
func (o *listOptions) narrow() error {
	if o.kind == "" {
		return nil
	}
	workflow, ok := views.RunType(o.kind)
	if !ok {
		return usage("--type %s: there are %s", o.kind, strings.Join(views.RunTypes(), ", "))
	}
	o.query = sources.And(o.query, "WorkflowType = "+sources.Quote(workflow))
	return nil
}

// check refuses what makes no sense, and gives the whole query.
func (o *listOptions) check(a *app) error {
	if o.limit < 0 {
		return usage("--limit %d: give a number above 0", o.limit)
	}
	for _, c := range append(o.columns, o.sort) {
		if _, ok := views.Cell(c, sources.Run{}, time.Time{}); !ok && c != "" {
			return usage("there is no column %q; there are %s", c, strings.Join(views.ColumnNames(), ", "))
		}
	}
	if a.json && len(o.columns) > 0 {
		return usage("--columns is for the table; --json always has all fields")
	}
	if err := o.narrow(); err != nil || o.filter == "" {
		return err
	}
	saved, err := a.filterNamed(o.filter)
	if err != nil {
		return err
	}
	if o.query != "" {
		saved = sources.And(saved, "("+o.query+")")
	}
	o.query = saved
	return nil
}

func (a *app) list(cmd *cobra.Command, o listOptions) error {
	if err := o.check(a); err != nil {
		return err
	}
	ctx := cmd.Context()
	e, done, err := a.look(ctx)
	if err != nil {
		return err
	}
	defer done()
	if o.facets {
		return queryError(o.query, a.listFacets(ctx, e.Client, o))
	}
	table := &runTable{app: a, columns: o.columns}
	var out runSink = table
	if a.json {
		out = &runStream{out: newLines(a.out)}
	}
	if o.summary {
		out = &summing{runSink: out, app: a}
	}
	err = a.listInto(ctx, e.Client, o, out.put)
	if closeErr := out.close(); err == nil {
		err = closeErr
	}
	if err == nil && !a.json && table.rows == 0 {
		fmt.Fprintln(a.err, "acescope: no run to list; acescope run starts one")
	}
	return queryError(o.query, err)
}

// runSink takes the runs of a list, one by one.
type runSink interface {
	put(sources.Run) error
	close() error
}

// runStream writes runs as JSON lines, the first at once.
type runStream struct {
	out   *lines
	given int
}

func (l *runStream) put(r sources.Run) error {
	err := l.out.put(listLine(r))
	if l.given++; err == nil && l.given%200 == 1 {
		err = l.out.flush()
	}
	return err
}

func (l *runStream) close() error { return l.out.flush() }

// shortened is the beginning of a text that goes into an error.
func shortened(s string) string { return cut([]byte(s), 300) }

// queryError shows where a query is wrong.
func queryError(query string, err error) error {
	var invalid *serviceerror.InvalidArgument
	if query == "" || !errors.As(err, &invalid) {
		return err
	}
	text := strings.Join(strings.Fields(invalid.Error()), " ")
	if at := sources.QueryErrorAt(query, err); at >= 0 {
		return usage("query, column %d, at %q: %s", at+1, shortened(query[at:]), shortened(text))
	}
	return usage("query %q: %s", shortened(query), shortened(text))
}
