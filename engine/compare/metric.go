package compare

import "acescope/engine/ace"

// Metric is a figure of both runs. Of a fork, TakenA or TakenB is what comes with the steps
// that were taken over: it belongs to the original, and is not part of A or B.
type Metric struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit,omitempty"`
	A      float64 `json:"a"`
	B      float64 `json:"b"`
	TakenA float64 `json:"taken_over_a,omitempty"`
	TakenB float64 `json:"taken_over_b,omitempty"`
}

// figure is one that a run has. taken is the part of it that belongs to the run's original,
// nil where none can.
type figure struct {
	name, unit string
	of, taken  func(*stepper) float64
}

// counting is how many steps are of a kind: those that were executed, and those that were
// taken over.
func counting(name string, is func(*Step) bool) figure {
	count := func(taken bool) func(*stepper) float64 {
		return func(s *stepper) float64 {
			n := 0
			for i := range s.steps {
				if st := &s.steps[i]; st.Taken == taken && is(st) {
					n++
				}
			}
			return float64(n)
		}
	}
	return figure{name: name, of: count(false), taken: count(true)}
}

// using is a figure of what the steps of a run used.
func using(name, unit string, of func(ace.Usage) float64) figure {
	return figure{name: name, unit: unit, of: func(s *stepper) float64 { return of(s.tokens()) },
		taken: func(s *stepper) float64 { used, _ := s.borrowed(); return of(used) }}
}

// figures in the order in which they are listed.
func figures() []figure {
	list := []figure{
		{name: "duration", unit: "ms", of: func(s *stepper) float64 {
			return max(float64(s.about.last.Sub(s.about.start).Microseconds()), 0) / 1000
		},
			taken: func(s *stepper) float64 { _, ms := s.borrowed(); return ms }},
		using("input tokens", "", func(u ace.Usage) float64 { return float64(u.InputTokens) }),
		using("output tokens", "", func(u ace.Usage) float64 { return float64(u.OutputTokens) }),
		using("cost", "USD", func(u ace.Usage) float64 { return u.CostUSD }),
		counting("skills", func(x *Step) bool { return x.Kind == KindTool }),
		counting("skills ok", func(x *Step) bool { return x.Kind == KindTool && x.Status == Done }),
		counting("skills denied", func(x *Step) bool { return x.Kind == KindTool && x.Status == Denied }),
	}
	for _, k := range []struct{ kind, name string }{{KindActivity, "activities"}, {KindChild, "child workflows"}, {KindTimer, "timers"}, {KindSignal, "signals"}} {
		list = append(list, counting(k.name, func(x *Step) bool { return x.Kind == k.kind }))
	}
	list = append(list,
		counting("failed steps", func(x *Step) bool { return x.Status == Failed || x.Status == TimedOut }),
		figure{name: "retries", of: func(s *stepper) float64 {
			n := 0
			for i := range s.steps {
				n += int(max(s.steps[i].Attempt-1, 0))
			}
			return float64(n)
		}})
	delta := func(name string, of func(ace.Summary) int) figure {
		return figure{name: name, of: func(s *stepper) float64 { return float64(of(s.fold.Summary())) }}
	}
	return append(list,
		delta("bullets added", func(s ace.Summary) int { return s.Added }),
		delta("bullets updated", func(s ace.Summary) int { return s.Updated }),
		delta("bullets removed", func(s ace.Summary) int { return s.Removed }),
		delta("bullets tagged", func(s ace.Summary) int { return s.Tagged }),
		delta("operations rejected", func(s ace.Summary) int { return s.Rejected }),
		figure{name: "bullets", of: func(s *stepper) float64 { return float64(s.fold.Bullets) }},
		figure{name: "events", of: func(s *stepper) float64 { return float64(s.about.Events) }})
}

// metrics are the figures that at least one of the runs has.
func metrics(a, b *stepper) []Metric {
	out := []Metric{}
	for _, f := range figures() {
		m := Metric{Name: f.name, Unit: f.unit, A: f.of(a), B: f.of(b)}
		if f.taken != nil {
			m.TakenA, m.TakenB = f.taken(a), f.taken(b)
		}
		if m.A != 0 || m.B != 0 || m.TakenA != 0 || m.TakenB != 0 {
			out = append(out, m)
		}
	}
	return out
}

// tokens are those of all runs of the chain.
func (s *stepper) tokens() ace.Usage { return s.usage.Add(s.fold.Usage) }
