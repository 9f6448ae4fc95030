package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/sources/runs"
	"acescope/sources/traces"
	runsview "acescope/views/runs"
)

type listOptions struct {
	query   string
	filter  string
	limit   int
	sort    string
	reverse bool
	columns []string
	chosen  bool // the user chose the columns
	// histories is the maximum number of histories that are read for what agents did, if no memo says it.
	histories int64
	retrying  bool
	facets    bool
	summary   bool
	kind      string
	parent    string // only blueprint runs that this session started
	exit      bool   // exit with 1 unless the closed runs completed
}

const (
	maxSorted    = 100_000 // runs that are read to sort them, about 60 MB
	facetRuns    = 1000    // newest runs that are searched for values to count
	maxDescribed = 200     // runs that are described
	maxHistories = 1000    // histories that are read unless the user chooses another number
)

// usualColumns are the default columns of the table. Those that say nothing about any run are left out.
var usualColumns = []string{"task", "phase", "skills", "delta", "agent", "model", "calls", "tokens", "cost",
	"took", "status", "verdict", "experiment", "type"}

// blueprintColumns are those of a list of blueprint runs only.
var blueprintColumns = []string{"workflow", "session", "blueprint", "phase", "runner", "age", "took",
	"status", "parent"}

func ListCommand(a *cli.App) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, newest first",
		Example: "acescope list -q 'Verdict = \"correct\"' --limit 20\n" +
			"acescope list --sort cost --limit 10 --columns task,cost,model\n" +
			"acescope list --type blueprint -q 'blueprint=crawler phase=pending'\n" +
			"acescope list --facets\n" +
			"acescope list --json | jq -r 'select(.verdict == \"wrong\") | .task_id'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return list(a, cmd.Context(), o) },
	}
	columns := strings.Join(runsview.ColumnNames(), ", ")
	f := cmd.Flags()
	f.StringVarP(&o.query, "query", "q", "", "only runs that match: "+cli.FilterHelp)
	f.BoolVar(&o.exit, "exit-status", false, "exit with 1 if a listed run has closed and did not complete")
	types := strings.Join(runs.RunTypes(), ", ")
	f.StringVar(&o.kind, "type", "", "only runs of this type: "+types)
	f.StringVar(&o.parent, "parent", "", "only blueprint runs that this session started")
	f.StringVar(&o.filter, "filter", "",
		"a filter by name: all, running, wrong, failed, expensive, or a saved one; --query narrows it")
	f.IntVar(&o.limit, "limit", 0, "maximum number of runs (default all)")
	f.StringVar(&o.sort, "sort", "", fmt.Sprintf("sort by this column; reads all runs first, at most %d",
		maxSorted))
	f.BoolVar(&o.reverse, "reverse", false, "reverse the order of --sort")
	f.StringSliceVar(&o.columns, "columns", usualColumns, "columns of the table: "+columns)
	f.BoolVar(&o.retrying, "retrying", false,
		"only open runs with a retried activity, or a workflow task that fails or waits; "+
			"describes each open run")
	f.Int64Var(&o.histories, "histories", maxHistories,
		"maximum number of histories that are read for what the agents of workflows of other types did; 0 reads none")
	f.BoolVar(&o.facets, "facets", false, "count the values of the search attributes instead")
	f.BoolVar(&o.summary, "summary", false,
		fmt.Sprintf("end with verdicts, cost and playbook changes of the last %d closed tasks that match, whatever --limit",
			runs.RecentRuns))
	cmd.MarkFlagsMutuallyExclusive("facets", "exit-status")
	cmd.MarkFlagsMutuallyExclusive("facets", "parent")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		o.chosen = cmd.Flags().Changed("columns")
		if o.chosen && a.JSON {
			return cli.UsageError("--columns is for the table; --json always writes all fields")
		}
		if !o.chosen {
			o.columns = o.defaultColumns()
		}
		return o.check(a)
	}
	return cmd
}

func (o *listOptions) defaultColumns() []string {
	columns := slices.Clone(usualColumns)
	if o.kind == blueprintType || o.parent != "" {
		columns = slices.Clone(blueprintColumns)
	}
	if o.retrying {
		columns = append(columns, "reason")
	}
	return columns
}

// blueprintType is the short name of the workflow type of blueprint runs.
var blueprintType = runs.TypeOf(run.Workflow)

// check validates the flags and combines those that narrow the list into one query.
func (o *listOptions) check(a *cli.App) error {
	var err error
	if o.query, err = cli.FilterOf(o.query); err != nil {
		return err
	}
	if o.limit < 0 {
		return cli.UsageError("--limit %d: must not be negative", o.limit)
	}
	if o.histories < 0 {
		return cli.UsageError("--histories %d: must not be negative", o.histories)
	}
	for _, c := range append(o.columns, o.sort) {
		if _, ok := runsview.Plain(c); !ok && c != "" {
			return cli.UsageError("column %q not found; columns: %s", c,
				strings.Join(runsview.ColumnNames(), ", "))
		}
	}
	if o.parent != "" {
		if o.kind != "" && o.kind != blueprintType {
			return cli.UsageError("--parent is for blueprint runs, not for --type %s", o.kind)
		}
		o.kind = blueprintType
	}
	if o.kind != "" {
		workflow, ok := runs.RunType(o.kind)
		if !ok {
			return cli.UsageError("--type %s: use one of %s", o.kind, strings.Join(runs.RunTypes(), ", "))
		}
		o.query = runs.And(o.query, "WorkflowType = "+runs.Quote(workflow))
	}
	if o.filter == "" {
		return nil
	}
	saved, err := a.FilterNamed(o.filter)
	if err != nil {
		return err
	}
	if o.query = both(saved.Query, o.query); o.sort == "" {
		o.sort = saved.Sort
	}
	return nil
}

// both returns the query for the runs that match two queries, each of which may be empty.
func both(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return runs.And(a, "("+b+")")
}

func list(a *cli.App, ctx context.Context, o listOptions) error {
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	if o.facets {
		return cli.QueryError(o.query, listFacets(a, ctx, e.Client, o))
	}
	var count exitCounter
	var readErr error
	rows := func(yield func(runs.Run) bool) {
		readErr = o.read(a, ctx, e, func(r runs.Run) error {
			count.add(r)
			if !yield(r) {
				return errStopped
			}
			return nil
		})
	}
	err = cmp.Or(o.write(a, rows), readErr)
	if err == nil && o.summary {
		err = summarize(a, ctx, e.Client, o.query)
	}
	if err == nil && !a.JSON && count.all == 0 {
		if o.query != "" || o.parent != "" || o.retrying {
			cli.Warn(a, "no run matches; \"acescope list\" shows all runs")
		} else {
			cli.Warn(a, "no runs found; start one with \"acescope run\"")
		}
	}
	if err == nil && o.exit {
		err = count.err()
	}
	return cli.QueryError(o.query, err)
}

// ofHistories are the columns of which the histories of some runs have the values.
var ofHistories = []string{"agent", "model", "calls", "tokens", "cost", "skills", "subject", "answer", "reason"}

// traced returns a reader of the histories, and put for runs with what their histories say, if the list shows
// it. The user of put calls end with the error of the list.
func (o *listOptions) traced(a *cli.App, ctx context.Context, e *engine.Engine, put func(runs.Run) error) (
	reader *traces.Reader, traced func(runs.Run) error, end func(error) error,
) {
	reader = cli.Traces(e)
	reader.Most = o.histories
	reader.Report = func(err error) { cli.Warn(a, "not read: %s", cli.OneLine(err)) }
	shows := a.JSON || slices.ContainsFunc(append(o.columns, o.sort),
		func(c string) bool { return slices.Contains(ofHistories, c) })
	stream := reader.NewStream(ctx, put)
	end = func(err error) error {
		err = stream.Flush(err)
		if n := reader.Skipped(); n > 0 && o.histories > 0 && err == nil {
			cli.Warn(a, "%s not read for what agents did; --histories N reads more, --limit N lists fewer runs",
				ace.Count(n, "older history"))
		}
		if err := reader.Save(); err != nil {
			cli.Warn(a, "what was read from histories is not kept: %s", cli.OneLine(err))
		}
		return err
	}
	if !shows {
		return reader, put, end
	}
	return reader, stream.Add, end
}

// lister reads at most limit runs, or all for 0.
type lister func(ctx context.Context, query string, limit int, put func(runs.Run) error) error

// ofParent restricts a list to the runs of the parent session, which the server cannot select.
func (o *listOptions) ofParent(read lister) lister {
	return func(ctx context.Context, query string, limit int, put func(runs.Run) error) error {
		found := 0
		err := read(ctx, query, 0, func(r runs.Run) error {
			if r.Parent != o.parent {
				return nil
			}
			if found++; limit > 0 && found > limit {
				return errEnough
			}
			return put(r)
		})
		if errors.Is(err, errEnough) {
			return nil
		}
		return err
	}
}

// errEnough ends a list that has reached its limit.
var errEnough = errors.New("limit reached")

// errStopped ends reading when a row cannot be written.
var errStopped = errors.New("stopped")

// read calls put for each run of the list, in its order.
func (o *listOptions) read(
	a *cli.App, ctx context.Context, e *engine.Engine, put func(runs.Run) error,
) error {
	if o.sort == "" {
		reader, put, end := o.traced(a, ctx, e, put)
		return end(o.lister(e, reader)(ctx, o.query, o.limit, put))
	}
	var rows []runs.Run
	reader, collect, end := o.traced(a, ctx, e, func(r runs.Run) error {
		rows = append(rows, r)
		return nil
	})
	if err := end(o.lister(e, reader)(ctx, o.query, maxSorted+1, collect)); err != nil {
		return err
	}
	if len(rows) > maxSorted {
		cli.Warn(a, "the list has more than %s; only the newest are sorted", ace.Count(maxSorted, "run"))
		rows = rows[:maxSorted]
	}
	runsview.SortRuns(rows, o.sort, o.reverse)
	if o.limit > 0 && len(rows) > o.limit {
		rows = rows[:o.limit]
	}
	for _, r := range rows {
		if err := put(r); err != nil {
			return err
		}
	}
	return nil
}

// lister returns the function that lists the runs that the flags select.
func (o *listOptions) lister(e *engine.Engine, reader *traces.Reader) lister {
	c, described := e.Client, 0
	list := runs.Reader{Client: c, Traces: reader}
	read := func(ctx context.Context, query string, limit int, put func(runs.Run) error) error {
		if o.retrying {
			return runs.ListRetrying(ctx, c, e.Namespace(), query, limit, put)
		}
		return list.ListNewest(ctx, query, limit, func(r runs.Run) error {
			if described++; r.Retried != "" && described <= maxDescribed {
				if err := r.ReadRetry(ctx, c, e.Namespace()); err != nil {
					return err
				}
			}
			return put(r)
		})
	}
	if o.parent != "" {
		return o.ofParent(read)
	}
	return read
}

// write writes the runs: as JSON lines, or as a table.
func (o *listOptions) write(a *cli.App, rows iter.Seq[runs.Run]) error {
	if a.JSON {
		lines := func(yield func(cli.RunLine) bool) {
			rows(func(r runs.Run) bool { return yield(cli.ListLine(r)) })
		}
		return cli.WriteRows(a, lines, "", nil)
	}
	t := runTable{Table: cli.NewTable(a.Out), chosen: o.chosen}
	for _, name := range o.columns {
		c, _ := runsview.Plain(name)
		t.columns = append(t.columns, c)
	}
	var ahead []runs.Run
	for r := range rows {
		if ahead = append(ahead, r); len(ahead) == tableRows {
			if err := t.write(ahead); err != nil {
				return err
			}
			ahead = nil
		}
	}
	return t.write(ahead)
}

// tableRows is the number of runs that are read before a table of them is written.
const tableRows = 1000

// runTable writes runs in columns. Unless the user chose the columns, it leaves out those that say nothing. If
// later runs need one of these, they begin another table.
type runTable struct {
	*cli.Table
	columns []runsview.PlainColumn
	chosen  bool
	titles  []string // of the columns that are written
}

func (t *runTable) write(rows []runs.Run) error {
	now := time.Now()
	traced := slices.ContainsFunc(rows, func(r runs.Run) bool { return r.Trace != nil })
	shown := slices.DeleteFunc(slices.Clone(t.columns), func(c runsview.PlainColumn) bool {
		says := func(r runs.Run) bool { return (traced || !c.Agents) && !c.Silent(c.Cell(r, now)) }
		return !t.chosen && !slices.Contains(t.titles, c.Title) && !slices.ContainsFunc(rows, says)
	})
	if len(rows) > 0 && len(shown) > len(t.titles) {
		if t.titles != nil {
			fmt.Fprintln(t)
		}
		t.titles = nil
		for _, c := range shown {
			t.titles = append(t.titles, c.Title)
		}
		fmt.Fprintln(t, strings.Join(t.titles, "\t"))
	}
	for _, r := range rows {
		cells := make([]any, len(shown))
		for i, c := range shown {
			cells[i] = c.Cell(r, now)
		}
		t.Row(cells...)
	}
	return t.Flush()
}

func summarize(a *cli.App, ctx context.Context, c client.Client, query string) error {
	var closed []runs.Run
	query = runs.And(query, `WorkflowType = "`+ace.TaskWorkflow+`" AND CloseTime IS NOT NULL`)
	err := runs.ListNewest(ctx, c, query, runs.RecentRuns, func(r runs.Run) error {
		closed = append(closed, r)
		return nil
	})
	if err != nil {
		return err
	}
	r := runs.RecentOf(closed)
	if r == nil {
		r = &runs.Recent{Status: map[ace.Status]int{}, Verdict: map[ace.Verdict]int{}}
	}
	return cli.Report(a, r, "%s", runsview.RecentText(r))
}

// FacetsLine is the values of the search attributes with their counts.
type FacetsLine struct {
	Query  string       `json:"query"`
	Facets []runs.Facet `json:"facets"`
}

func listFacets(a *cli.App, ctx context.Context, c client.Client, o listOptions) error {
	known := runs.Known()
	if err := runs.Learn(ctx, c, known); err != nil {
		return err
	}
	add := func(r runs.Run) error {
		known.Add(r)
		return nil
	}
	if err := runs.ListNewest(ctx, c, o.query, facetRuns, add); err != nil {
		return err
	}
	f, err := runs.CountFacets(ctx, c, o.query, known)
	if err != nil {
		return err
	}
	if a.JSON {
		for i := range f.List {
			f.List[i].Values = append([]runs.FacetValue{}, f.List[i].Values...)
		}
		return cli.NewLines(a).Write(FacetsLine{o.query, f.List})
	}
	if f.Err != "" {
		cli.Warn(a, "%s", f.Err)
	}
	w := cli.NewTable(a.Out)
	for _, facet := range f.List {
		for _, v := range facet.Values {
			count := "not counted"
			if v.Count >= 0 {
				count = strconv.FormatInt(v.Count, 10)
			}
			w.Row(facet.Attribute, v.Value, count)
		}
		if facet.Others > 0 {
			w.Row(facet.Attribute, "(other values or none)", facet.Others)
		}
	}
	return w.Flush()
}
