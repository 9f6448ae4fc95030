package runs

import (
	"context"
	"fmt"
	"strconv"
	"text/tabwriter"

	"go.temporal.io/sdk/client"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/sources/runs"
	runsview "acescope/views/runs"
)

// maxSorted bounds the runs that are read in order to sort them: about 60 MB.
const maxSorted = 100_000

// facetRuns is how many of the newest runs are looked at for values to count.
const facetRuns = 1000

// listInto gives the runs that were asked for to put, in the order that was asked for.
func listInto(a *cli.App, ctx context.Context, c client.Client, o listOptions, put func(runs.Run) error) error {
	read := func(limit int, fn func(runs.Run) error) error {
		if o.retrying {
			return runs.ListRetrying(ctx, c, o.query, limit, fn)
		}
		return runs.ListNewest(ctx, c, o.query, limit, fn)
	}
	if o.sort == "" {
		return read(o.limit, put)
	}
	var rows []runs.Run
	if err := read(maxSorted+1, func(r runs.Run) error { rows = append(rows, r); return nil }); err != nil {
		return err
	}
	if len(rows) > maxSorted {
		fmt.Fprintf(a.Err, "acescope: sorted over the newest %d runs; there are more\n", maxSorted)
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

// FacetsLine is the values of the search attributes with their counts.
type FacetsLine struct {
	Type   string       `json:"type"` // facets
	Query  string       `json:"query"`
	Facets []runs.Facet `json:"facets"`
}

func listFacets(a *cli.App, ctx context.Context, c client.Client, o listOptions) error {
	known := runs.Known()
	if err := runs.Learn(ctx, c, known); err != nil {
		return err
	}
	err := runs.ListNewest(ctx, c, o.query, facetRuns, func(r runs.Run) error { known.Add(r); return nil })
	if err != nil {
		return err
	}
	f, err := runs.CountFacets(ctx, c, o.query, known)
	if err != nil {
		return err
	}
	if a.JSON {
		for i := range f.List {
			if f.List[i].Values == nil {
				f.List[i].Values = []runs.FacetValue{}
			}
		}
		return cli.NewLines(a.Out).Write(FacetsLine{"facets", o.query, f.List})
	}
	w := tabwriter.NewWriter(a.Out, 0, 4, 2, ' ', 0)
	for _, facet := range f.List {
		for _, v := range facet.Values {
			count := "not counted"
			if v.Count >= 0 {
				count = strconv.FormatInt(v.Count, 10)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", facet.Attribute, cli.SafeText(v.Value), count)
		}
		if facet.Others > 0 {
			fmt.Fprintf(w, "%s\t(other values, or none)\t%d\n", facet.Attribute, facet.Others)
		}
	}
	return w.Flush()
}

// RecentLine sums up the tasks of a list that ended last.
type RecentLine struct {
	Type      string      `json:"type"` // recent
	Runs      int         `json:"runs"`
	Right     int         `json:"right"`
	Wrong     int         `json:"wrong"`
	Failed    int         `json:"failed"`
	Timeout   int         `json:"timeout"`
	Cancelled int         `json:"cancelled"`
	Summary   ace.Summary `json:"summary"`
	P50       float64     `json:"p50_ms"`
	P95       float64     `json:"p95_ms"`
}

// summing passes runs on and ends with what the last ended ones of them cost and learnt.
// A list is newest first, so it need not keep more than these.
type summing struct {
	runSink
	app  *cli.App
	last []runs.Run
}

func (s *summing) put(r runs.Run) error {
	if r.Type == ace.TaskWorkflow && !r.Open() {
		if s.last = append(s.last, r); len(s.last) >= 2*runs.RecentRuns {
			s.last = runs.LastEnded(s.last, runs.RecentRuns)
		}
	}
	return s.runSink.put(r)
}

func (s *summing) close() error {
	if err := s.runSink.close(); err != nil {
		return err
	}
	r := runs.RecentOf(s.last, runs.RecentRuns)
	if r == nil {
		r = &runs.Recent{}
	}
	if s.app.JSON {
		return cli.NewLines(s.app.Out).Write(RecentLine{"recent", r.Runs, r.Counts[ace.Success], r.Counts[ace.Wrong], r.Counts[ace.Failed],
			r.Counts[ace.Timeout], r.Counts[ace.Canceled], r.Sum, cli.Millis(r.P50), cli.Millis(r.P95)})
	}
	_, err := fmt.Fprintln(s.app.Out, runsview.RecentText(r))
	return err
}
