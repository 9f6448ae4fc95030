package compare

import "acescope/engine/ace"

// Metric is a figure of both runs. TakenA and TakenB are the figures of reused steps of a fork, which belong
// to its original and are not included in A and B. The difference of an Unlike metric means nothing, because
// A and B count different work.
type Metric struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit,omitempty"`
	A      float64 `json:"a"`
	B      float64 `json:"b"`
	TakenA float64 `json:"taken_over_a,omitempty"`
	TakenB float64 `json:"taken_over_b,omitempty"`
	// RangeA and RangeB are the limits of the intervals of A and B, zero if unknown.
	RangeA [2]float64 `json:"-"`
	RangeB [2]float64 `json:"-"`
	Unlike bool       `json:"-"`
}

// figure is a figure of one run, without and for reused steps.
type figure struct {
	name, unit   string
	value, taken float64
	unknown      bool // not recorded
}

func (s *builder) figures() []figure {
	usage := s.usage.Add(s.fold.Usage)
	taken, takenMS := s.reused()
	delta := s.fold.Summary()
	duration := max(float64(s.about.last.Sub(s.about.start).Microseconds()), 0) / 1000
	var retries int32
	for i := range s.steps {
		retries += max(s.steps[i].Attempt-1, 0)
	}
	ofKind := func(name, kind string) figure {
		return s.count(name, func(x *Step) bool { return x.Kind == kind })
	}
	unused := usage == (ace.Usage{}) && taken == (ace.Usage{})
	return []figure{
		{"duration", "ms", duration, takenMS, false},
		{"input tokens", "", float64(usage.InputTokens), float64(taken.InputTokens), unused},
		{"output tokens", "", float64(usage.OutputTokens), float64(taken.OutputTokens), unused},
		{"cost", "USD", usage.CostUSD, taken.CostUSD, unused},
		ofKind("skills", KindTool),
		s.count("skills ok", func(x *Step) bool { return x.Kind == KindTool && x.Status == Done }),
		s.count("skills denied", func(x *Step) bool { return x.Kind == KindTool && x.Status == Denied }),
		ofKind("activities", KindActivity),
		ofKind("child workflows", KindChild),
		ofKind("timers", KindTimer),
		ofKind("signals", KindSignal),
		s.count("failed steps", func(x *Step) bool { return x.Status == Failed || x.Status == TimedOut }),
		{name: "retries", value: float64(retries)},
		{name: "bullets added", value: float64(delta.Added)},
		{name: "bullets updated", value: float64(delta.Updated)},
		{name: "bullets removed", value: float64(delta.Removed)},
		{name: "bullets tagged", value: float64(delta.Tagged)},
		{name: "bullets merged", value: float64(delta.Merged)},
		{name: "operations rejected", value: float64(delta.Rejected)},
		{name: "bullets", value: float64(s.fold.Delta.Bullets)},
		{name: "events", value: float64(s.about.Events)},
	}
}

func (s *builder) count(name string, is func(*Step) bool) figure {
	f := figure{name: name}
	for i := range s.steps {
		switch st := &s.steps[i]; {
		case !is(st):
		case st.Taken:
			f.taken++
		default:
			f.value++
		}
	}
	return f
}

// metrics returns the figures that both runs record and that are not 0 in both.
func metrics(a, b *builder) []Metric {
	out := []Metric{}
	figuresB := b.figures()
	for i, f := range a.figures() {
		g := figuresB[i]
		m := Metric{Name: f.name, Unit: f.unit, A: f.value, B: g.value, TakenA: f.taken, TakenB: g.taken}
		if (m.A != 0 || m.B != 0 || m.TakenA != 0 || m.TakenB != 0) && !f.unknown && !g.unknown {
			out = append(out, m)
		}
	}
	return out
}
