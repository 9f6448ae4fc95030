package main

import (
	"context"
	"fmt"
	"strconv"
	"text/tabwriter"

	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/views"
)

// maxSorted bounds the runs that are read in order to sort them: about 60 MB.
const maxSorted = 100_000

// facetRuns is how many of the newest runs are looked at for values to count.
const facetRuns = 1000

// listInto gives the runs that were asked for to put, in the order that was asked for.
func (a *app) listInto(ctx context.Context, c client.Client, o listOptions, put func(sources.Run) error) error {
	read := func(limit int, fn func(sources.Run) error) error {
		if o.retrying {
			return sources.ListRetrying(ctx, c, o.query, limit, fn)
		}
		return sources.ListNewest(ctx, c, o.query, limit, fn)
	}
	if o.sort == "" {
		return read(o.limit, put)
	}
	var rows []sources.Run
	if err := read(maxSorted+1, func(r sources.Run) error { rows = append(rows, r); return nil }); err != nil {
		return err
	}
	if len(rows) > maxSorted {
		fmt.Fprintf(a.err, "acescope: sorted over the newest %d runs; there are more\n", maxSorted)
		rows = rows[:maxSorted]
	}
	views.SortRuns(rows, o.sort, o.reverse)
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

// facetsLine is the values of the search attributes with their counts.
type facetsLine struct {
	Type   string          `json:"type"` // facets
	Query  string          `json:"query"`
	Facets []sources.Facet `json:"facets"`
}

func (a *app) listFacets(ctx context.Context, c client.Client, o listOptions) error {
	known := sources.Known()
	if err := sources.Learn(ctx, c, known); err != nil {
		return err
	}
	err := sources.ListNewest(ctx, c, o.query, facetRuns, func(r sources.Run) error { known.Add(r); return nil })
	if err != nil {
		return err
	}
	f, err := sources.CountFacets(ctx, c, o.query, known)
	if err != nil {
		return err
	}
	if a.json {
		for i := range f.List {
			if f.List[i].Values == nil {
				f.List[i].Values = []sources.FacetValue{}
			}
		}
		return newLines(a.out).write(facetsLine{"facets", o.query, f.List})
	}
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	for _, facet := range f.List {
		for _, v := range facet.Values {
			count := "not counted"
			if v.Count >= 0 {
				count = strconv.FormatInt(v.Count, 10)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", facet.Attribute, safe(v.Value), count)
		}
		if facet.Others > 0 {
			fmt.Fprintf(w, "%s\t(other values, or none)\t%d\n", facet.Attribute, facet.Others)
		}
	}
	return w.Flush()
}

// recentLine sums up the tasks of a list that ended last.
type recentLine struct {
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
	app  *app
	last []sources.Run
}

func (s *summing) put(r sources.Run) error {
	if r.Type == ace.TaskWorkflow && !r.Open() {
		if s.last = append(s.last, r); len(s.last) >= 2*sources.RecentRuns {
			s.last = sources.LastEnded(s.last, sources.RecentRuns)
		}
	}
	return s.runSink.put(r)
}

func (s *summing) close() error {
	if err := s.runSink.close(); err != nil {
		return err
	}
	r := sources.RecentOf(s.last, sources.RecentRuns)
	if r == nil {
		r = &sources.Recent{}
	}
	if s.app.json {
		return newLines(s.app.out).write(recentLine{"recent", r.Runs, r.Counts[ace.Success], r.Counts[ace.Wrong], r.Counts[ace.Failed],
			r.Counts[ace.Timeout], r.Counts[ace.Cancelled], r.Sum, millis(r.P50), millis(r.P95)})
	}
	_, err := fmt.Fprintln(s.app.out, views.RecentText(r))
	return err
}
