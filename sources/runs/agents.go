package runs

import (
	"slices"

	"acescope/engine/trace"
)

// Agents lists the agents of the run's trace, each once, the first one first.
func (r *Run) Agents() []string {
	return r.named(func(s *trace.Summary) string { return s.Agent },
		func(p trace.Part) string { return p.Agent })
}

// Models lists the models of the run, each once, the first one first.
func (r *Run) Models() []string {
	if r.Trace == nil && r.Model != "" {
		return []string{r.Model}
	}
	return r.named(func(s *trace.Summary) string { return s.Model },
		func(p trace.Part) string { return p.Model })
}

// Frameworks lists the frameworks of the run's trace, each once, the first one first.
func (r *Run) Frameworks() []string {
	return r.named(func(s *trace.Summary) string { return s.Framework },
		func(p trace.Part) string { return p.Framework })
}

func (r *Run) named(first func(*trace.Summary) string, of func(trace.Part) string) (names []string) {
	if r.Trace == nil {
		return nil
	}
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	add(first(r.Trace))
	for _, p := range r.Trace.Parts {
		add(of(p))
	}
	return names
}

// Figure is a sum over the requests of a run. It is unknown if no source records any of it, and partial if some
// requests lack a figure or not all events were read.
type Figure struct {
	N              int64
	Known, Partial bool
}

// Calls returns the number of requests to models that ended, with failed ones.
func (r *Run) Calls() Figure {
	if r.Trace == nil {
		return Figure{}
	}
	return Figure{int64(r.Trace.Sum.Requests + r.Trace.Sum.Failed), true, r.TraceEvents > 0}
}

// Tokens returns the number of all tokens, with cached ones.
func (r *Run) Tokens() Figure {
	switch {
	case r.Trace != nil && r.Trace.Sum.Requests > 0:
		s := r.Trace.Sum
		return Figure{s.Tokens(), s.Unrecorded < s.Requests, s.Unrecorded > 0 || r.TraceEvents > 0}
	case r.Summary != nil && r.Summary.Usage.Tokens() > 0:
		return Figure{r.Summary.Usage.Tokens(), true, r.TraceEvents > 0}
	}
	return Figure{}
}
