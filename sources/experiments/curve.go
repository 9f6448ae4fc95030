package experiments

import "math"

// Metric is the quantity of a curve.
type Metric string

// Metrics.
const (
	MetricAccuracy   Metric = "accuracy"   // share of correct answers among the judged ones, 0 to 1
	MetricPlaybook   Metric = "playbook"   // bullets
	MetricOperations Metric = "operations" // total accepted and rejected: two curves
	MetricCost       Metric = "cost"       // US dollars per correct answer
	MetricTokens     Metric = "tokens"     // tokens per correct answer
)

// DefaultWindow is the default number of tasks of a rolling value.
const DefaultWindow = 50

// Curve holds values over tasks or time. Y is NaN for a missing value.
type Curve struct {
	Name string // of a metric with several curves: "accepted"
	X, Y []float64
}

// Curves returns the curves of a metric, one point per task. Rates cover the last window tasks, 0 for all so
// far. X is the number of the task in the order of completion, from 1, or with byTime the seconds since the
// experiment's start.
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
		return []Curve{{X: x, Y: s.PerCorrect(window, func(i int) float64 { return t.Cost[i] })}}
	case MetricTokens:
		return []Curve{{X: x, Y: s.PerCorrect(window, s.tokens)}}
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

// Accuracy returns after each task the share of correct answers among the judged ones of the last window tasks,
// 0 for all so far; NaN if no task is judged.
func (s *Series) Accuracy(window int) []float64 {
	return rate(s.Tasks.Len(), window,
		func(i int) float64 { return s.is(i, AnsweredRight) },
		func(i int) float64 { return 1 - s.is(i, NotJudged) })
}

// PerCorrect returns after each task the amount that the last window tasks used per correct answer, 0 for all so
// far; NaN without a correct answer.
func (s *Series) PerCorrect(window int, took func(i int) float64) []float64 {
	return rate(s.Tasks.Len(), window, took, func(i int) float64 { return s.is(i, AnsweredRight) })
}

func (s *Series) is(i int, v Verdict) float64 {
	if s.Tasks.Verdict[i] == v {
		return 1
	}
	return 0
}

// rate divides the sums of above by the sums of below over a rolling window. Sums restart when below is 0, so
// that rounding errors do not accumulate.
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

// bullets returns the size of the playbook after each task. A task without a size keeps the previous one.
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

// WithoutCost reports whether no experiment has a cost, so that tokens are more useful.
func WithoutCost(list ...*Series) bool {
	for _, s := range list {
		if s.Progress.Usage.CostUSD > 0 {
			return false
		}
	}
	return true
}

// Totals sums up an experiment so far. Rates are NaN if their divisor is 0.
type Totals struct {
	Tasks, Judged, Right int
	Accuracy             float64
	Cost                 float64 // of all tasks and evaluations, US dollars
	Tokens               int64
	CostPerCorrect       float64 // of the tasks only
	TokensPerRight       float64
	MeanDurationMS       float64 // per task
	Bullets              int
	Accepted, Rejected   int
}

// Totals returns the totals of the series.
func (s *Series) Totals() Totals {
	t, p := &s.Tasks, s.Progress
	out := Totals{Tasks: t.Len() + s.Dropped, Cost: p.Usage.CostUSD, Tokens: p.Usage.InputTokens + p.Usage.OutputTokens,
		Bullets: p.Bullets, Accepted: p.Accepted, Rejected: p.Rejected}
	var cost, tokens, took float64
	for i := range t.Len() {
		cost, tokens, took = cost+t.Cost[i], tokens+s.tokens(i), took+float64(t.Duration[i])
		if t.Verdict[i] != NotJudged {
			out.Judged++
		}
		if t.Verdict[i] == AnsweredRight {
			out.Right++
		}
	}
	out.Accuracy = divide(float64(out.Right), out.Judged)
	out.CostPerCorrect, out.TokensPerRight = divide(cost, out.Right), divide(tokens, out.Right)
	out.MeanDurationMS = divide(took, t.Len())
	return out
}

func divide(a float64, by int) float64 {
	if by == 0 {
		return math.NaN()
	}
	return a / float64(by)
}
