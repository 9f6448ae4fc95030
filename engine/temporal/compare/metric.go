package compare

import "acescope/engine/ace"

// Metric is a figure of both runs. TakenA and TakenB are the parts of reused steps of a fork,
// which belong to its original and are not included in A and B.
type Metric struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit,omitempty"`
	A      float64 `json:"a"`
	B      float64 `json:"b"`
	TakenA float64 `json:"taken_over_a,omitempty"`
	TakenB float64 `json:"taken_over_b,omitempty"`
}

// figure computes a metric of one run. taken computes the part of reused steps, or is nil.
type figure struct {
	name, unit string
	of, taken  func(*builder) float64
}

// stepCount returns the figure that counts steps.
func stepCount(name string, is func(*Step) bool) figure {
	count := func(taken bool) func(*builder) float64 {
		return func(s *builder) float64 {
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

// usage returns a figure of the usage of a run.
func usage(name, unit string, of func(ace.Usage) float64) figure {
	return figure{name: name, unit: unit, of: func(s *builder) float64 { return of(s.usage.Add(s.fold.Usage)) },
		taken: func(s *builder) float64 { used, _ := s.reused(); return of(used) }}
}

// figures lists the figures in display order.
func figures() []figure {
	list := []figure{
		{name: "duration", unit: "ms", of: func(s *builder) float64 {
			return max(float64(s.about.last.Sub(s.about.start).Microseconds()), 0) / 1000
		},
			taken: func(s *builder) float64 { _, ms := s.reused(); return ms }},
		usage("input tokens", "", func(u ace.Usage) float64 { return float64(u.InputTokens) }),
		usage("output tokens", "", func(u ace.Usage) float64 { return float64(u.OutputTokens) }),
		usage("cost", "USD", func(u ace.Usage) float64 { return u.CostUSD }),
		stepCount("skills", func(x *Step) bool { return x.Kind == KindTool }),
		stepCount("skills ok", func(x *Step) bool { return x.Kind == KindTool && x.Status == Done }),
		stepCount("skills denied", func(x *Step) bool { return x.Kind == KindTool && x.Status == Denied }),
	}
	ofKind := func(name, kind string) figure {
		return stepCount(name, func(x *Step) bool { return x.Kind == kind })
	}
	list = append(list,
		ofKind("activities", KindActivity),
		ofKind("child workflows", KindChild),
		ofKind("timers", KindTimer),
		ofKind("signals", KindSignal),
		stepCount("failed steps", func(x *Step) bool { return x.Status == Failed || x.Status == TimedOut }),
		figure{name: "retries", of: func(s *builder) float64 {
			n := 0
			for i := range s.steps {
				n += int(max(s.steps[i].Attempt-1, 0))
			}
			return float64(n)
		}})
	delta := func(name string, of func(ace.Summary) int) figure {
		return figure{name: name, of: func(s *builder) float64 { return float64(of(s.fold.Summary())) }}
	}
	return append(list,
		delta("bullets added", func(s ace.Summary) int { return s.Added }),
		delta("bullets updated", func(s ace.Summary) int { return s.Updated }),
		delta("bullets removed", func(s ace.Summary) int { return s.Removed }),
		delta("bullets tagged", func(s ace.Summary) int { return s.Tagged }),
		delta("operations rejected", func(s ace.Summary) int { return s.Rejected }),
		figure{name: "bullets", of: func(s *builder) float64 { return float64(s.fold.Bullets) }},
		figure{name: "events", of: func(s *builder) float64 { return float64(s.about.Events) }})
}

// metrics returns the figures that are not 0 in both runs.
func metrics(a, b *builder) []Metric {
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
