package experiments

import "math"

// Metric is what a curve of an experiment shows.
type Metric string

// Metrics.
const (
	MetricAccuracy   Metric = "accuracy"   // right answers of those judged, 0 to 1
	MetricPlaybook   Metric = "playbook"   // bullets
	MetricOperations Metric = "operations" // accepted and rejected so far: two curves
	MetricCost       Metric = "cost"       // US dollars for each right answer
	MetricTokens     Metric = "tokens"     // tokens for each right answer
)

// DefaultWindow is over how many of the last tasks a rolling value goes.
const DefaultWindow = 50

// Curve is values over tasks or time. Y is NaN where there is none.
type Curve struct {
	Name string // what it is of the metric where that has several: "accepted"
	X, Y []float64
}

// Curves are the curves of a metric, one point a task. Window is over how many of the
// last tasks a rate goes, 0 for all so far. X is the task's number in the order of
// ending, from 1, or with byTime seconds since the experiment's start.
func (s *Series) Curves(m Metric, window int, byTime bool) []Curve {
	x := s.axis(byTime)
	t := &s.Tasks
	switch m {
	case MetricAccuracy:
		return []Curve{{X: x, Y: s.Accuracy(window)}}
	case MetricPlaybook:
		return []Curve{{X: x, Y: s.bullets()}}
	case MetricOperations:
		return []Curve{{"accepted", x, cumulative(t.Accepted)}, {"rejected", x, cumulative(t.Rejected)}}
	case MetricCost:
		return []Curve{{X: x, Y: s.PerRight(window, func(i int) float64 { return t.Cost[i] })}}
	case MetricTokens:
		return []Curve{{X: x, Y: s.PerRight(window, s.tokens)}}
	}
	return nil
}

func (s *Series) tokens(i int) float64 { return float64(s.Tasks.Input[i]) + float64(s.Tasks.Output[i]) }

func (s *Series) axis(byTime bool) []float64 {
	x := make([]float64, s.Tasks.Len())
	for i := range x {
		x[i] = float64(i + 1)
		if byTime {
			x[i] = float64(s.Tasks.At[i]) / 1000
		}
	}
	return x
}

// Accuracy is after each task the share of right answers among the judged ones of the
// last window tasks, 0 for all so far; NaN where none was judged.
func (s *Series) Accuracy(window int) []float64 {
	return rate(s.Tasks.Len(), window,
		func(i int) float64 { return s.is(i, AnsweredRight) },
		func(i int) float64 { return 1 - s.is(i, NotJudged) })
}

// PerRight is after each task what the last window tasks took for each right answer
// among them, 0 for all so far; NaN where none was right.
func (s *Series) PerRight(window int, took func(i int) float64) []float64 {
	return rate(s.Tasks.Len(), window, took, func(i int) float64 { return s.is(i, AnsweredRight) })
}

func (s *Series) is(i int, v Verdict) float64 {
	if s.Tasks.Verdict[i] == v {
		return 1
	}
	return 0
}

// rate is the sum of above by the sum of below over a rolling window. Sums begin anew
// where below is empty, so that rounding does not stay in them.
func rate(n, window int, above, below func(i int) float64) []float64 {
	out := make([]float64, n)
	var a, b float64
	for i := range out {
		a, b = a+above(i), b+below(i)
		if window > 0 && i >= window {
			a, b = a-above(i-window), b-below(i-window)
		}
		if out[i] = math.NaN(); b > 0 {
			out[i] = max(a, 0) / b
		}
	}
	return out
}

// bullets is the playbook's size after each task. Of a task that does not tell it, it is
// as before.
func (s *Series) bullets() []float64 {
	out := make([]float64, s.Tasks.Len())
	last := math.NaN()
	for i, n := range s.Tasks.Bullets {
		if n > 0 {
			last = float64(n)
		}
		out[i] = last
	}
	return out
}

func cumulative(counts []int32) []float64 {
	out := make([]float64, len(counts))
	sum := 0.0
	for i, n := range counts {
		sum += float64(n)
		out[i] = sum
	}
	return out
}

// Free tells whether none of the experiments reports a cost, so that tokens say more.
func Free(list ...*Series) bool {
	for _, s := range list {
		if s.Progress.Usage.CostUSD > 0 {
			return false
		}
	}
	return true
}

// Totals are the numbers of a whole experiment as far as it has come. Rates are NaN
// where there is nothing to divide by.
type Totals struct {
	Tasks, Judged, Right int
	Accuracy             float64
	Cost                 float64 // of all its tasks and evaluations, US dollars
	Tokens               int64
	CostPerRight         float64 // of its tasks alone
	TokensPerRight       float64
	MeanTookMS           float64 // of a task
	Bullets              int
	Accepted, Rejected   int
}

// Totals sums the series up.
func (s *Series) Totals() Totals {
	t, p := &s.Tasks, s.Progress
	out := Totals{Tasks: t.Len() + s.Dropped, Cost: p.Usage.CostUSD, Tokens: p.Usage.InputTokens + p.Usage.OutputTokens,
		Bullets: p.Bullets, Accepted: p.Accepted, Rejected: p.Rejected}
	var cost, tokens, took float64
	for i := range t.Len() {
		cost, tokens, took = cost+t.Cost[i], tokens+s.tokens(i), took+float64(t.Took[i])
		if t.Verdict[i] != NotJudged {
			out.Judged++
		}
		if t.Verdict[i] == AnsweredRight {
			out.Right++
		}
	}
	out.Accuracy = divide(float64(out.Right), out.Judged)
	out.CostPerRight, out.TokensPerRight = divide(cost, out.Right), divide(tokens, out.Right)
	out.MeanTookMS = divide(took, t.Len())
	return out
}

func divide(a float64, by int) float64 {
	if by == 0 {
		return math.NaN()
	}
	return a / float64(by)
}
