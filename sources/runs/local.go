package runs

import (
	"slices"
	"time"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// localAttributes are the search attributes of which a run in memory has the server's value.
var localAttributes = []string{history.AttrStatus, ace.AttrExperiment, ace.AttrDataset, ace.AttrModel,
	ace.AttrPhase}

// matcher returns a function that selects the runs of a query among those in memory. It reports false for a
// query that only the server can evaluate.
func matcher(query string) (matches func(*Run) bool, ok bool) {
	e, err := parse(query)
	if err != nil {
		return nil, false
	}
	var all []func(*Run) bool
	for _, part := range e.conjuncts() {
		one := matcherOf(part.comparison)
		if one == nil {
			return nil, false
		}
		all = append(all, one)
	}
	return func(r *Run) bool {
		return !slices.ContainsFunc(all, func(one func(*Run) bool) bool { return !one(r) })
	}, true
}

func matcherOf(c comparison) func(*Run) bool {
	values := c.texts()
	is := c.op == "=" || c.op == "IN"
	switch {
	case c.name == "CloseTime" && (c.op == "IS" || c.op == "IS NOT"):
		return func(r *Run) bool { return r.Open() == (c.op == "IS") }
	case len(values) == 0 || !is && !c.negated():
	case c.op == "=" && (c.name == SinceCondition || c.name == UntilCondition):
		return func(r *Run) bool {
			at, err := TimeAt(values[0], time.Now())
			return err == nil && r.Start.Before(at) == (c.name == UntilCondition)
		}
	case c.name == ace.AttrExit && is && slices.Equal(values, []string{string(ace.ExitWrong)}):
		return func(r *Run) bool { return r.Status == ace.Completed && r.Verdict == ace.Wrong }
	case slices.Contains(localAttributes, c.name):
		return func(r *Run) bool { return slices.Contains(values, r.Value(c.name)) == is }
	}
	return nil
}
