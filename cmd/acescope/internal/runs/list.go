package runs

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/sources/runs"
	"acescope/views/console"
	runsview "acescope/views/runs"
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

func ListCommand(a *cli.App) *cobra.Command {
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
		RunE: func(cmd *cobra.Command, _ []string) error { return list(a, cmd, o) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.query, "query", "q", "", "Temporal visibility query over the search attributes")
	f.StringVar(&o.kind, "type", "", "only "+strings.Join(console.RunTypes(), ", ")+": of tasks, experiments, blueprints, or agents' sessions")
	f.StringVar(&o.filter, "filter", "", "name of a saved filter; --query narrows it further")
	f.IntVar(&o.limit, "limit", 0, "at most so many runs (default all)")
	f.StringVar(&o.sort, "sort", "", "sort by a column; all runs are read first, at most "+strconv.Itoa(maxSorted))
	f.BoolVar(&o.reverse, "reverse", false, "sort the other way round")
	f.StringSliceVar(&o.columns, "columns", nil, "columns of the table: "+strings.Join(runsview.ColumnNames(), ", "))
	f.BoolVar(&o.retrying, "retrying", false, "only open runs with an activity that is being retried; each open run is looked at")
	f.BoolVar(&o.facets, "facets", false, "count the values of the search attributes instead")
	f.BoolVar(&o.summary, "summary", false, "end with what the last "+strconv.Itoa(runs.RecentRuns)+" ended tasks of the list cost and learnt")
	return cmd
}

// narrow narrows the query to a type of runs.
func (o *listOptions) narrow() error {
	if o.kind == "" {
		return nil
	}
	workflow, ok := console.RunType(o.kind)
	if !ok {
		return cli.UsageError("--type %s: there are %s", o.kind, strings.Join(console.RunTypes(), ", "))
	}
	o.query = runs.And(o.query, "WorkflowType = "+runs.Quote(workflow))
	return nil
}

// check refuses what makes no sense, and gives the whole query.
func (o *listOptions) check(a *cli.App) error {
	if o.limit < 0 {
		return cli.UsageError("--limit %d: give a number above 0", o.limit)
	}
	for _, c := range append(o.columns, o.sort) {
		if _, ok := runsview.Cell(c, runs.Run{}, time.Time{}); !ok && c != "" {
			return cli.UsageError("there is no column %q; there are %s", c, strings.Join(runsview.ColumnNames(), ", "))
		}
	}
	if a.JSON && len(o.columns) > 0 {
		return cli.UsageError("--columns is for the table; --json always has all fields")
	}
	if err := o.narrow(); err != nil || o.filter == "" {
		return err
	}
	saved, err := a.FilterNamed(o.filter)
	if err != nil {
		return err
	}
	if o.query != "" {
		saved = runs.And(saved, "("+o.query+")")
	}
	o.query = saved
	return nil
}

func list(a *cli.App, cmd *cobra.Command, o listOptions) error {
	if err := o.check(a); err != nil {
		return err
	}
	ctx := cmd.Context()
	e, done, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	defer done()
	if o.facets {
		return cli.QueryError(o.query, listFacets(a, ctx, e.Client, o))
	}
	table := &runTable{app: a, columns: o.columns}
	var out runSink = table
	if a.JSON {
		out = &runStream{out: cli.NewLines(a.Out)}
	}
	if o.summary {
		out = &summing{runSink: out, app: a}
	}
	err = listInto(a, ctx, e.Client, o, out.put)
	if closeErr := out.close(); err == nil {
		err = closeErr
	}
	if err == nil && !a.JSON && table.rows == 0 {
		fmt.Fprintln(a.Err, "acescope: no run to list; acescope run starts one")
	}
	return cli.QueryError(o.query, err)
}

// runSink takes the runs of a list, one by one.
type runSink interface {
	put(runs.Run) error
	close() error
}

// runStream writes runs as JSON lines, the first at once.
type runStream struct {
	out   *cli.Lines
	given int
}

func (l *runStream) put(r runs.Run) error {
	err := l.out.Put(cli.ListLine(r))
	if l.given++; err == nil && l.given%200 == 1 {
		err = l.out.Flush()
	}
	return err
}

func (l *runStream) close() error { return l.out.Flush() }
