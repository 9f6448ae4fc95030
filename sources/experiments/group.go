package experiments

import (
	"context"
	"fmt"
	"math"
	"slices"

	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/learning/stats"
	"acescope/engine/temporal/compare"
	"acescope/sources/cluster"
)

// Group is a group of experiments with the same settings: its repeats that have started, in their order.
type Group struct {
	Name    string
	Planned int // repeats
	Repeats []*Series
}

// ReadGroup reads the experiment with this id or else the repeats of the group of this name. group is nil
// for an experiment, one is nil for a group. The error is [ErrNotFound] if there is neither.
func ReadGroup(ctx context.Context, c client.Client, id string) (one *Series, group *Group, err error) {
	workflowID, missing := Resolve(ctx, c, id)
	if missing == nil {
		one, err = ReadSeries(ctx, c, workflowID)
		return one, nil, err
	}
	group = &Group{Name: id, Planned: 1}
	for i := 1; i <= group.Planned; i++ {
		s, err := ReadSeries(ctx, c, ace.ExperimentWorkflowID(ace.RepeatID(id, i)))
		if cluster.NotFound(err) {
			continue // not started, or deleted
		}
		if err != nil {
			return nil, nil, err
		}
		if s.Input.Group == id {
			group.Planned = s.Input.Repeats
			group.Repeats = append(group.Repeats, s)
		}
	}
	if len(group.Repeats) == 0 {
		return nil, nil, missing
	}
	return nil, group, nil
}

// Closed returns the repeats that completed. Only they count in a [Band].
func (g *Group) Closed() []*Series {
	return slices.DeleteFunc(slices.Clone(g.Repeats), func(s *Series) bool {
		return s.Status != ace.Completed
	})
}

// Band is the spread of a number over the repeats of a group. Low and High are the limits of the interval of
// the mean by Student's t distribution, nil for less than two repeats and if they do not vary. It covers the
// variation between repeats, not between items: all repeats have the same ones.
type Band struct {
	Name    string    `json:"name"`
	Unit    string    `json:"unit,omitempty"`
	Values  []float64 `json:"values"`
	Mean    float64   `json:"mean"`
	Low     *float64  `json:"low,omitempty"`
	High    *float64  `json:"high,omitempty"`
	Lowest  float64   `json:"lowest"`
	Highest float64   `json:"highest"`
}

// measure is a number of an experiment, NaN if it is unknown.
type measure struct {
	name, unit string
	of         func(*Series) float64
}

// measures are the numbers that have a [Band].
var measures = []measure{
	{"accuracy", "rate", func(s *Series) float64 { return s.Totals().Accuracy }},
	{"last evaluation", "rate", func(s *Series) float64 {
		if last := s.Progress.LastEval(); last != nil {
			return stats.Share(last.Correct, last.Labeled())
		}
		return math.NaN()
	}},
	{"cost per correct", "USD", func(s *Series) float64 { return s.Totals().CostPerCorrect }},
	{"tokens per correct", "", func(s *Series) float64 { return s.Totals().TokensPerCorrect }},
	{"bullets", "", func(s *Series) float64 { return float64(s.Progress.Bullets) }},
}

// Bands returns the spreads of the numbers that all closed repeats have. It is empty before the first closes.
func (g *Group) Bands() []Band {
	list, out := g.Closed(), []Band{}
	for _, m := range measures {
		if b, ok := m.band(list); ok {
			out = append(out, b)
		}
	}
	return out
}

func (m measure) band(list []*Series) (Band, bool) {
	b := Band{Name: m.name, Unit: m.unit}
	for _, s := range list {
		v := m.of(s)
		if math.IsNaN(v) {
			return b, false
		}
		b.Values = append(b.Values, v)
	}
	if len(list) == 0 || m.unit == "USD" && WithoutCost(list...) {
		return b, false
	}
	var i stats.Interval
	b.Mean, i = stats.Mean(b.Values)
	b.Lowest, b.Highest = slices.Min(b.Values), slices.Max(b.Values)
	if i.Known() && b.Lowest < b.Highest {
		if m.unit == "rate" {
			i = stats.Interval{Low: max(i.Low, 0), High: min(i.High, 1)}
		}
		b.Low, b.High = &i.Low, &i.High
	}
	return b, true
}

// GroupComparison compares the repeats of two groups. The conditions are those of the first repeats.
type GroupComparison struct {
	A           *Group           `json:"-"`
	B           *Group           `json:"-"`
	Differences []BandDifference `json:"differences"`
	Conditions
}

// BandDifference is the difference of the means of a number, B minus A, with its interval by Welch's t-test:
// nil if a group has less than two closed repeats, or if the repeats of both do not vary.
type BandDifference struct {
	Name            string   `json:"name"`
	Unit            string   `json:"unit,omitempty"`
	A               Band     `json:"a"`
	B               Band     `json:"b"`
	Mean            float64  `json:"mean"`
	Low             *float64 `json:"low,omitempty"`
	High            *float64 `json:"high,omitempty"`
	Distinguishable bool     `json:"distinguishable"`
}

// unfinished says how many repeats have a final result, or "" if all have one.
func (g *Group) unfinished() string {
	open := len(slices.DeleteFunc(slices.Clone(g.Repeats),
		func(s *Series) bool { return s.Unfinished() == "" }))
	if done := len(g.Repeats) - open; done < g.Planned {
		return fmt.Sprintf("has finished %d of %s", done, ace.Count(g.Planned, "repeat"))
	}
	return ""
}

// CompareGroups compares two groups. If one is not finished, there are no differences. If their work differs,
// only the last evaluations on an equal data set and the sizes of the playbooks have one.
func CompareGroups(a, b *Group) *GroupComparison {
	first := Compare(a.Repeats[0], b.Repeats[0])
	c := &GroupComparison{A: a, B: b, Differences: []BandDifference{}, Conditions: first.Conditions}
	c.NoVerdict = first.noVerdict(a.unfinished(), b.unfinished())
	if len(c.NoVerdict) > 0 {
		return c
	}
	for _, m := range measures {
		evaluation := m.name == "last evaluation"
		if evaluation && first.Eval == nil || !evaluation && m.name != "bullets" && len(c.Unlike) > 0 {
			continue
		}
		bandA, okA := m.band(a.Closed())
		bandB, okB := m.band(b.Closed())
		if !okA || !okB {
			continue
		}
		d := BandDifference{Name: m.name, Unit: m.unit, A: bandA, B: bandB, Mean: bandB.Mean - bandA.Mean}
		if i := stats.Welch(bandA.Values, bandB.Values); i.Known() {
			d.Low, d.High, d.Distinguishable = &i.Low, &i.High, !i.Contains(0)
		}
		c.Differences = append(c.Differences, d)
	}
	return c
}

// Headline says what the repeats show about the last evaluation or, without one, about the accuracy.
func (c *GroupComparison) Headline() string {
	if len(c.NoVerdict) > 0 {
		return c.Refusal()
	}
	var of *BandDifference
	for i := range c.Differences {
		if d := &c.Differences[i]; d.Unit == "rate" {
			of = d // the last evaluation follows the accuracy in the list
		}
	}
	if of == nil {
		return "nothing is comparable: the groups have no accuracy on the same tasks"
	}
	text := fmt.Sprintf("%s: mean %.1f%% over %s and %.1f%% over %s", of.Name, 100*of.A.Mean,
		ace.Count(len(of.A.Values), "repeat"), 100*of.B.Mean, ace.Count(len(of.B.Values), "repeat"))
	switch {
	case of.Low == nil && min(len(of.A.Values), len(of.B.Values)) < 2:
		return text + ": too few repeats for a test"
	case of.Low == nil:
		return fmt.Sprintf("%s: the repeats do not vary; compare %s and %s item by item", text,
			c.A.Repeats[0].Name(),
			c.B.Repeats[0].Name())
	}
	verdict := "not distinguishable"
	if of.Distinguishable && of.Mean > 0 {
		verdict = "B is more accurate"
	} else if of.Distinguishable {
		verdict = "A is more accurate"
	}
	return text + fmt.Sprintf(": %s (difference %+.1f to %+.1f pp)", verdict, 100**of.Low, 100**of.High)
}

// Metrics returns the means of both groups with their intervals.
func (c *GroupComparison) Metrics() []compare.Metric {
	var list []compare.Metric
	for _, d := range c.Differences {
		list = append(list, compare.Metric{Name: d.Name, Unit: d.Unit, A: d.A.Mean, B: d.B.Mean,
			RangeA: d.A.limits(), RangeB: d.B.limits()})
	}
	return list
}

func (b *Band) limits() [2]float64 {
	if b.Low == nil {
		return [2]float64{}
	}
	return [2]float64{*b.Low, *b.High}
}

// BandChart returns the mean of a metric over the repeats, and its lowest and highest value dashed, by the
// number of the task. It ends with the shortest repeat.
func BandChart(list []*Series, m Metric, window int) Chart {
	c := NewChart(list, m, window, false)
	if len(c.Curves) != len(list) { // a repeat has two curves: accepted and rejected operations
		return c
	}
	n := math.MaxInt
	for _, curve := range c.Curves {
		n = min(n, len(curve.Y))
	}
	mean := Curve{Name: "mean"}
	lowest, highest := Curve{Name: "lowest", Series: 1, Dashed: true},
		Curve{Name: "highest", Series: 2, Dashed: true}
	for i := range n {
		values := make([]float64, len(list))
		for at, curve := range c.Curves {
			values[at] = curve.Y[i]
		}
		x, y := c.Curves[0].X[i], 0.0
		y, _ = stats.Mean(values) // NaN if a value is NaN
		mean.X, mean.Y = append(mean.X, x), append(mean.Y, y)
		lowest.X, lowest.Y = append(lowest.X, x), append(lowest.Y, slices.Min(values))
		highest.X, highest.Y = append(highest.X, x), append(highest.Y, slices.Max(values))
	}
	c.Curves = []Curve{mean, lowest, highest}
	return c
}
