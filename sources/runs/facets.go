package runs

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// Bounds of counting facets.
const (
	facetEvery    = 5 * time.Second  // shortest interval, if the list has changed
	facetLatest   = 30 * time.Second // longest interval
	facetTimeout  = 10 * time.Second
	facetValues   = 12  // counted values of one attribute
	facetCalls    = 64  // calls of one count
	facetKept     = 200 // remembered values of one attribute
	facetSample   = 200 // experiments whose values are remembered
	facetPollRate = 500 * time.Millisecond
)

// Facets holds the values by which a list can be narrowed, with the number of runs of each.
type Facets struct {
	Query   string
	List    []Facet
	Counted time.Time
	Calls   int // number of calls to the server
	Err     string
}

// Of returns the facet of an attribute, an empty one if it was not counted.
func (f *Facets) Of(attribute string) Facet {
	i := slices.IndexFunc(f.List, func(f Facet) bool { return f.Attribute == attribute })
	if i < 0 {
		return Facet{Attribute: attribute}
	}
	return f.List[i]
}

// Facet holds the known values of one search attribute.
type Facet struct {
	Attribute string       `json:"attribute"`
	Values    []FacetValue `json:"values"`
	// Others is the number of runs with another value or no value; -1 if unknown.
	Others  int64 `json:"others"`
	Dropped int   `json:"not_counted"` // known values that were not counted
}

// FacetValue is a value and its number of runs, among the runs that match all other conditions.
type FacetValue struct {
	Value  string `json:"value"`
	Count  int64  `json:"count"`
	Picked bool   `json:"picked"`
}

// KnownValues counts the values seen of each facet attribute.
type KnownValues map[string]map[string]int

// Known returns the values defined by the contract.
func Known() KnownValues {
	k := KnownValues{}
	for _, s := range ace.Statuses() {
		k.add(history.AttrStatus, history.ExecutionStatus(s), 0)
	}
	for _, e := range []ace.ExitStatus{ace.ExitSuccess, ace.ExitWrong} { // the others repeat the status
		k.add(ace.AttrExit, string(e), 0)
	}
	for _, a := range []ace.Adapter{ace.Offline, ace.Online} {
		k.add(ace.AttrAdapter, string(a), 0)
	}
	for _, p := range ace.Steps() {
		k.add(ace.AttrPhase, string(p), 0)
	}
	for _, s := range []string{ace.StageLearning, ace.StageEvaluating, ace.StageDone, ace.StageStopped} {
		k.add(ace.AttrPhase, s, 0)
	}
	return k
}

func (k KnownValues) add(name, value string, n int) {
	if value == "" {
		return
	}
	of := k[name]
	if of == nil {
		of = map[string]int{}
		k[name] = of
	}
	if _, ok := of[value]; ok || len(of) < facetKept {
		of[value] += n
	}
}

// Add adds the values of a run.
func (k KnownValues) Add(r Run) {
	for _, name := range FacetAttributes() {
		k.add(name, r.Value(name), 1)
	}
}

// frequent returns the values of an attribute, most frequent first.
func (k KnownValues) frequent(name string) []string {
	values := slices.Sorted(maps.Keys(k[name]))
	slices.SortStableFunc(values, func(a, b string) int { return cmp.Compare(k[name][b], k[name][a]) })
	return values
}

// CountFacets counts the runs of each known value among the runs that match the query without its picks of
// that attribute. The server cannot group by these attributes, so each value is a call: at most 64 calls, and
// 12 values of one attribute. Of a chain only the newest run counts; see [Newest].
func CountFacets(ctx context.Context, c client.Client, query string, known KnownValues) (*Facets, error) {
	return countFacets(ctx, c, query, Newest, known)
}

func countFacets(ctx context.Context, c client.Client, query string, newest func(string) string,
	known KnownValues) (*Facets, error) {
	ctx, cancel := context.WithTimeout(ctx, facetTimeout)
	defer cancel()
	picks := SplitQuery(query)
	out := &Facets{Query: query}
	totals := map[string]int64{}
	for _, name := range FacetAttributes() {
		base := newest(picks.without(name))
		total, ok := totals[base]
		if !ok {
			var err error
			if total, err = Count(ctx, c, base); err != nil {
				return nil, err
			}
			totals[base] = total
			out.Calls++
		}
		if total < 0 {
			out.Err = "the server cannot count runs by verdict, text or cost"
		}
		f, err := countFacet(ctx, c, facetOf(name, picks, known), base, total, &out.Calls)
		if err != nil && !badQuery(err) {
			return nil, err
		}
		if err == nil { // otherwise the server has no such attribute
			out.List = append(out.List, f)
		}
	}
	return out, nil
}

// facetOf returns the values of an attribute to count: the selected values, then the most frequent known
// ones.
func facetOf(name string, picks Picks, known KnownValues) Facet {
	f := Facet{Attribute: name}
	for _, v := range picks.Values[name] {
		f.Values = append(f.Values, FacetValue{v, -1, true})
	}
	for _, v := range known.frequent(name) {
		if !picks.Has(name, v) {
			f.Values = append(f.Values, FacetValue{v, -1, false})
		}
	}
	return f
}

func countFacet(ctx context.Context, c client.Client, f Facet, base string, total int64, calls *int) (Facet,
	error) {
	f.Others = total
	for i := range f.Values {
		v := &f.Values[i]
		if total < 0 || i >= facetValues || *calls >= facetCalls || f.Others <= 0 && !v.Picked {
			if v.Count = -1; f.Others == 0 {
				v.Count = 0 // the previous values already account for all runs
			}
			continue
		}
		n, err := Count(ctx, c, And(base, f.Attribute+" = "+Quote(v.Value)))
		if err != nil {
			return f, err
		}
		*calls++
		v.Count = n
		f.Others = max(f.Others-n, 0)
	}
	f.Values = slices.DeleteFunc(f.Values, func(v FacetValue) bool {
		if v.Count < 0 {
			f.Dropped++
		}
		return !v.Picked && v.Count <= 0
	})
	slices.SortStableFunc(f.Values, func(a, b FacetValue) int { return cmp.Compare(b.Count, a.Count) })
	return f, nil
}

// Learn adds the values of the newest experiments.
func Learn(ctx context.Context, c client.Client, known KnownValues) error {
	return List(ctx, c, "WorkflowType = "+Quote(ace.ExperimentWorkflow), facetSample, func(r Run) error {
		known.Add(r)
		return nil
	})
}
