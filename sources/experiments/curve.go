package experiments

import (
	"math"
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/learning/stats"
)

// Metric is the quantity of a curve.
type Metric string

// Metrics.
const (
	MetricAccuracy   Metric = "accuracy"   // share of correct answers among the graded ones, 0 to 1
	MetricPlaybook   Metric = "playbook"   // bullets
	MetricOperations Metric = "operations" // total accepted and rejected: two curves
	MetricCost       Metric = "cost"       // US dollars per correct answer
	MetricTokens     Metric = "tokens"     // tokens per correct answer
)

// Metrics returns all metrics.
func Metrics() []Metric {
	return []Metric{MetricAccuracy, MetricPlaybook, MetricOperations, MetricCost, MetricTokens}
}

// DefaultWindow is the default number of tasks of a rolling value.
const DefaultWindow = 50

// Curve holds values of an experiment over tasks or time. Y is NaN for a missing value.
type Curve struct {
	Name   string
	Series int // index of the experiment
	X, Y   []float64
	Dashed bool
}

// Chart is a metric of experiments. Unit is "rate", "USD", "total" for a count from 0, or "" for another
// count.
type Chart struct {
	Title  string
	Unit   string
	Empty  string // why there are no points
	Curves []Curve
}

// NewChart returns the curves of a metric. If no experiment reports a cost, tokens replace it.
func NewChart(list []*Series, m Metric, window int, byTime bool) Chart {
	over := ", all so far"
	if window > 0 {
		over = ", last " + strconv.Itoa(window)
	}
	if m == MetricCost && WithoutCost(list...) {
		m = MetricTokens
	}
	c := map[Metric]Chart{
		MetricAccuracy:   {"Accuracy" + over, "rate", "no closed task yet", nil},
		MetricPlaybook:   {"Playbook, bullets", "", "no closed task yet", nil},
		MetricOperations: {"Operations so far, rejected dashed", "total", "no closed task yet", nil},
		MetricCost:       {"US$ per correct answer" + over, "USD", "no correct answer yet", nil},
		MetricTokens: {"Tokens per correct answer" + over + ", no cost known", "",
			"no correct answer yet", nil},
	}[m]
	for i, s := range list {
		for j, curve := range s.Curves(m, window, byTime) {
			curve.Name = strings.TrimSpace(s.Name() + " " + curve.Name)
			curve.Series, curve.Dashed = i, j > 0
			c.Curves = append(c.Curves, curve)
		}
	}
	return c
}

// Curves returns the curves of a metric, one point per task. Rates cover the last window tasks, 0 for all so
// far. X is the number of the task in the order of completion, from 1, or with byTime the seconds since the
// experiment's start.
func (s *Series) Curves(m Metric, window int, byTime bool) []Curve {
	x := make([]float64, len(s.Tasks))
	for i := range x {
		x[i] = float64(i + 1)
		if byTime {
			x[i] = float64(s.Tasks[i].At) / 1000
		}
	}
	switch m {
	case MetricAccuracy:
		curves := []Curve{{X: x, Y: s.Accuracy(window)}}
		if held := s.heldOut(); len(held.X) > 0 && !byTime {
			curves = append(curves, held)
		}
		return curves
	case MetricPlaybook:
		return []Curve{{X: x, Y: s.bullets()}}
	case MetricOperations:
		return []Curve{
			{Name: "accepted", X: x, Y: s.last(0, func(t *Task) float64 { return float64(t.Accepted) })},
			{Name: "rejected", X: x, Y: s.last(0, func(t *Task) float64 { return float64(t.Rejected) })},
		}
	case MetricCost:
		return []Curve{{X: x, Y: s.CostPerCorrect(window)}}
	case MetricTokens:
		return []Curve{{X: x, Y: s.rate(window, (*Task).tokens, (*Task).correct)}}
	}
	return nil
}

// heldOut returns the accuracy of the evaluations, whose times are unknown.
func (s *Series) heldOut() Curve {
	c := Curve{Name: "held-out"}
	for i := range s.Progress.Eval {
		e := &s.Progress.Eval[i]
		if e.Labeled() == 0 || e.Incomplete {
			continue
		}
		at := e.Epoch * s.Progress.TotalTasks
		if e.Learned > 0 {
			at += e.Learned - s.Progress.TotalTasks
		}
		c.X = append(c.X, float64(at))
		c.Y = append(c.Y, e.Accuracy)
	}
	return c
}

// Accuracy returns after each task the share of correct answers among the graded ones of the last window
// tasks, 0 for all so far; NaN if no task is graded.
func (s *Series) Accuracy(window int) []float64 {
	return s.rate(window, (*Task).correct, (*Task).graded)
}

// Recent counts the correct and the graded answers of the last n tasks.
func (s *Series) Recent(n int) (correct, graded int) {
	for i := max(len(s.Tasks)-n, 0); i < len(s.Tasks); i++ {
		correct += int(s.Tasks[i].correct())
		graded += int(s.Tasks[i].graded())
	}
	return correct, graded
}

// AccuracyIntervals returns the intervals of the values of [Series.Accuracy].
func (s *Series) AccuracyIntervals(window int) []stats.Interval {
	out := make([]stats.Interval, len(s.Tasks))
	correct, graded := s.last(window, (*Task).correct), s.last(window, (*Task).graded)
	for i := range out {
		out[i] = stats.Wilson(int(correct[i]), int(graded[i]))
	}
	return out
}

// CostPerCorrect returns after each task the US dollars that the last window tasks used per correct answer, 0
// for all so far; NaN without a correct answer.
func (s *Series) CostPerCorrect(window int) []float64 {
	return s.rate(window, func(t *Task) float64 { return t.Cost }, (*Task).correct)
}

// correct returns 1 for a correct answer, otherwise 0.
func (t *Task) correct() float64 {
	if t.Verdict == ace.Correct {
		return 1
	}
	return 0
}

// Graded reports whether the task counts in an accuracy, as in [ace.EpochResult]: it is a task with a label
// that was not canceled. A failed or ungraded task counts as one without a correct answer.
func (t *Task) Graded() bool {
	stopped := t.Status == ace.Completed && t.Verdict == ""
	return t.Status != ace.Canceled && t.Verdict != ace.Unlabeled && !stopped
}

func (t *Task) graded() float64 {
	if t.Graded() {
		return 1
	}
	return 0
}

// rate divides the sums of above by the sums of below over a rolling window of tasks.
func (s *Series) rate(window int, above, below func(*Task) float64) []float64 {
	out, under := s.last(window, above), s.last(window, below)
	for i, b := range under {
		if b > 0 {
			out[i] = max(out[i], 0) / b
		} else {
			out[i] = math.NaN()
		}
	}
	return out
}

// last returns after each task the sum over the last window tasks, 0 for all so far.
func (s *Series) last(window int, of func(*Task) float64) []float64 {
	out := make([]float64, len(s.Tasks))
	sum := 0.0
	for i := range out {
		sum += of(&s.Tasks[i])
		if window > 0 && i >= window {
			sum -= of(&s.Tasks[i-window])
		}
		out[i] = sum
	}
	return out
}

// bullets returns the size of the playbook after each task. A task without a size keeps the previous one.
func (s *Series) bullets() []float64 {
	out := make([]float64, len(s.Tasks))
	last := math.NaN()
	for i := range out {
		if n := s.Tasks[i].Bullets; n > 0 {
			last = float64(n)
		}
		out[i] = last
	}
	return out
}

// WithoutCost reports whether no experiment has a known cost; tokens are shown instead.
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
	Tasks, Graded, Correct int // without canceled tasks
	Accuracy               float64
	Cost                   float64 // of all tasks and evaluations, US dollars
	Tokens                 int64
	CostPerCorrect         float64 // of the tasks only
	TokensPerCorrect       float64
	MeanDurationMS         float64 // per task
	Bullets                int
	Accepted, Rejected     int
}

// Totals returns the totals of the series.
func (s *Series) Totals() Totals {
	p := s.Progress
	out := Totals{
		Tasks: len(s.Tasks) + s.Dropped - p.Canceled(), Cost: p.Usage.CostUSD, Tokens: p.Usage.InputTokens +
			p.Usage.OutputTokens,
		Bullets: p.Bullets, Accepted: p.Accepted, Rejected: p.Rejected,
	}
	var cost, tokens, took float64
	for i := range s.Tasks {
		t := &s.Tasks[i]
		cost, tokens, took = cost+t.Cost, tokens+t.tokens(), took+float64(t.Duration)
		out.Graded += int(t.graded())
		out.Correct += int(t.correct())
	}
	out.Accuracy = divide(float64(out.Correct), out.Graded)
	out.CostPerCorrect, out.TokensPerCorrect = divide(cost, out.Correct), divide(tokens, out.Correct)
	out.MeanDurationMS = divide(took, len(s.Tasks))
	return out
}

// Interval returns the interval of the accuracy.
func (t Totals) Interval() stats.Interval { return stats.Wilson(t.Correct, t.Graded) }

// MeanScore returns the mean score of all epochs, see [ace.ExperimentInput.MeanScore].
func (s *Series) MeanScore() *float64 {
	sum, labeled := 0.0, 0
	for _, e := range s.Progress.Epochs {
		sum += e.Score
		labeled += e.Labeled()
	}
	return s.Input.MeanScore(sum, labeled)
}

// CostInterval returns the bootstrap interval of [Totals.CostPerCorrect], which may take 10 ms.
func (s *Series) CostInterval() stats.Interval {
	return s.perCorrect(func(t *Task) float64 { return t.Cost })
}

// TokensInterval returns the bootstrap interval of [Totals.TokensPerCorrect], which may take 10 ms.
func (s *Series) TokensInterval() stats.Interval { return s.perCorrect((*Task).tokens) }

func (s *Series) perCorrect(of func(*Task) float64) stats.Interval {
	above, correct := make([]float64, len(s.Tasks)), make([]float64, len(s.Tasks))
	for i := range s.Tasks {
		above[i], correct[i] = of(&s.Tasks[i]), s.Tasks[i].correct()
	}
	return stats.BootstrapRatio(above, correct)
}

func divide(a float64, by int) float64 {
	if by == 0 {
		return math.NaN()
	}
	return a / float64(by)
}
