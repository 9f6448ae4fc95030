package compare

import "acescope/engine/ace"

// Metric is a figure of both runs.
type Metric struct {
	Name string  `json:"name"`
	Unit string  `json:"unit,omitempty"`
	A    float64 `json:"a"`
	B    float64 `json:"b"`
}

// figure is one that a run has.
type figure struct {
	name, unit string
	of         func(*stepper) float64
}

// figures in the order in which they are listed.
func figures() []figure {
	list := []figure{
		{"duration", "ms", func(s *stepper) float64 { return float64(s.about.last.Sub(s.about.start).Microseconds()) / 1000 }},
		{"input tokens", "", func(s *stepper) float64 { return float64(s.tokens().InputTokens) }},
		{"output tokens", "", func(s *stepper) float64 { return float64(s.tokens().OutputTokens) }},
		{"cost", "USD", func(s *stepper) float64 { return s.tokens().CostUSD }},
		{"skills", "", func(s *stepper) float64 { return s.count(func(x *Step) bool { return x.Kind == KindTool }) }},
		{"skills ok", "", func(s *stepper) float64 {
			return s.count(func(x *Step) bool { return x.Kind == KindTool && x.Status == Done })
		}},
		{"skills denied", "", func(s *stepper) float64 {
			return s.count(func(x *Step) bool { return x.Kind == KindTool && x.Status == Denied })
		}},
	}
	for _, k := range []struct{ kind, name string }{{KindActivity, "activities"}, {KindChild, "child workflows"}, {KindTimer, "timers"}, {KindSignal, "signals"}} {
		list = append(list, figure{k.name, "", func(s *stepper) float64 { return s.count(func(x *Step) bool { return x.Kind == k.kind }) }})
	}
	list = append(list,
		figure{"failed steps", "", func(s *stepper) float64 {
			return s.count(func(x *Step) bool { return x.Status == Failed || x.Status == TimedOut })
		}},
		figure{"retries", "", func(s *stepper) float64 {
			n := 0
			for i := range s.steps {
				n += int(max(s.steps[i].Attempt-1, 0))
			}
			return float64(n)
		}})
	delta := func(name string, of func(ace.Summary) int) figure {
		return figure{name, "", func(s *stepper) float64 { return float64(of(s.fold.Summary())) }}
	}
	return append(list,
		delta("bullets added", func(s ace.Summary) int { return s.Added }),
		delta("bullets updated", func(s ace.Summary) int { return s.Updated }),
		delta("bullets removed", func(s ace.Summary) int { return s.Removed }),
		delta("bullets tagged", func(s ace.Summary) int { return s.Tagged }),
		delta("operations rejected", func(s ace.Summary) int { return s.Rejected }),
		figure{"bullets", "", func(s *stepper) float64 { return float64(s.fold.Bullets) }},
		figure{"events", "", func(s *stepper) float64 { return float64(s.about.Events) }})
}

// metrics are the figures that at least one of the runs has.
func metrics(a, b *stepper) []Metric {
	out := []Metric{}
	for _, f := range figures() {
		if m := (Metric{f.name, f.unit, f.of(a), f.of(b)}); m.A != 0 || m.B != 0 {
			out = append(out, m)
		}
	}
	return out
}

// tokens are those of all runs of the chain.
func (s *stepper) tokens() ace.Usage { return s.usage.Add(s.fold.Usage) }

func (s *stepper) count(is func(*Step) bool) float64 {
	n := 0
	for i := range s.steps {
		if is(&s.steps[i]) {
			n++
		}
	}
	return float64(n)
}
