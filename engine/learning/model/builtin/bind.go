package builtin

import "acescope/engine/learning/model"

// Weights for the assignment of a quantity to a slot.
const (
	weightOrdinal = 0.25
	weightSide    = -0.6
	weightSecond  = 0.35 // factor of each further cue
	cueDecay      = 0.35 // loss per word of distance
	impossible    = -1e9
)

// classesOf are the class of the quantities that a measure is for, and another class that it
// can read with a penalty.
var classesOf = map[measure]struct{ own, other class }{
	asAmount:  {classMoney, classNumber},
	asNumber:  {classNumber, classMoney},
	asPercent: {classPercent, classNumber},
	asPoints:  {classPercent, classNumber},
	asYears:   {classPeriod, classNumber},
	asMonths:  {classPeriod, classNumber},
	asDays:    {classPeriod, classNumber},
	asCount:   {classPeriod, classNumber},
	asTimes:   {classFrequency, classNumber},
}

// read returns the value of a quantity in a slot with the measure. Fit is 0 if the measure is
// the quantity's own, and negative if it is a stretch. ok is false if it cannot be read so.
func read(q quantity, m measure) (value, fit float64, ok bool) {
	switch q.Class {
	case classesOf[m].other:
		return q.Value, -0.4, true
	case classesOf[m].own:
	default:
		return 0, 0, false
	}
	per, known := perYear[q.Unit]
	switch {
	case m == asPercent:
		return q.Value / 100, 0, true
	case m == asYears && known:
		return q.Value / per, 0, true
	case m == asMonths && known:
		return q.Value * 12 / per, 0, true
	case m == asDays && known:
		return q.Value * 365 / per, 0, true
	}
	return q.Value, 0, true
}

// affinity measures how well a slot's cues match the words near a quantity: 0 for no cue, about
// 1 for an adjacent cue.
func affinity(s slot, q quantity) float64 {
	sum, weight := 0.0, 1.0
	for _, n := range q.Near { // nearest first
		for _, c := range s.Cues {
			if c == n.Word {
				sum += weight / (1 + cueDecay*(n.Distance-1))
				weight *= weightSecond
			}
		}
	}
	return sum
}

// binding assigns a quantity to each slot of a recipe.
type binding struct {
	at      []int // quantity of each slot
	values  []float64
	quality float64 // mean affinity of the slots, each counted up to 1
}

// bind finds the best assignment of distinct quantities to the slots. accept may be nil. bind
// returns false if no assignment is possible and accepted.
func bind(slots []slot, qs []quantity, accept func(at []int) bool) (binding, bool) {
	if len(slots) > len(qs) {
		return binding{}, false
	}
	m := newMatrix(slots, qs)
	m.accept = accept
	m.search(0, 0)
	if !m.found {
		return binding{}, false
	}
	return m.binding(m.best), true
}

// matrix is the state of the search for the best assignment: the score of each slot with each
// quantity.
type matrix struct {
	slots  []slot
	qs     []quantity
	score  [][]float64
	rest   []float64 // the maximum score of the slots from i on
	used   [maxQuantities]bool
	at     []int
	best   []int
	most   float64
	found  bool
	accept func(at []int) bool // nil accepts every assignment
	budget int
}

// maxAssignments bounds the steps of one search. After that, the best assignment so far counts.
const maxAssignments = 20_000

func newMatrix(slots []slot, qs []quantity) *matrix {
	m := &matrix{slots: slots, qs: qs, at: make([]int, len(slots)), rest: make([]float64, len(slots)+1),
		score: make([][]float64, len(slots)), most: impossible, budget: maxAssignments}
	ranks := ranksOf(qs)
	for i, s := range slots {
		row := make([]float64, len(qs))
		top := impossible
		for j, q := range qs {
			row[j] = slotScore(s, q, ranks[j])
			top = max(top, row[j])
		}
		m.score[i] = row
		m.rest[i] = top
	}
	for i := len(slots) - 1; i >= 0; i-- {
		m.rest[i] += m.rest[i+1]
	}
	return m
}

// ranksOf returns the 1-based position of each quantity among those of its class.
func ranksOf(qs []quantity) []int {
	seen := map[class]int{}
	ranks := make([]int, len(qs))
	for j, q := range qs {
		seen[q.Class]++
		ranks[j] = seen[q.Class]
	}
	return ranks
}

func slotScore(s slot, q quantity, rank int) float64 {
	_, fit, ok := read(q, s.Measure)
	if !ok {
		return impossible
	}
	score := fit + affinity(s, q)
	if s.Ordinal == rank {
		score += weightOrdinal
	}
	if q.Side && s.Measure != asTimes {
		score += weightSide
	}
	return score
}

// search assigns slot i and the following ones. Among equal totals, the first wins.
func (m *matrix) search(i int, sum float64) {
	if m.budget--; m.budget < 0 || sum+m.rest[i] <= m.most+1e-12 {
		return
	}
	if i == len(m.slots) {
		if m.accept == nil || m.accept(m.at) {
			m.most, m.found = sum, true
			m.best = append(m.best[:0], m.at...)
		}
		return
	}
	for j := range m.qs {
		if m.used[j] || m.score[i][j] <= impossible/2 {
			continue
		}
		m.used[j], m.at[i] = true, j
		m.search(i+1, sum+m.score[i][j])
		m.used[j] = false
	}
}

func (m *matrix) binding(at []int) binding {
	b := binding{at: at}
	for i, j := range at {
		v, _, _ := read(m.qs[j], m.slots[i].Measure)
		b.values = append(b.values, v)
		b.quality += min(1, affinity(m.slots[i], m.qs[j]))
	}
	b.quality /= float64(len(at))
	return b
}

// bindTo finds the best binding with which the recipe produces the label.
func bindTo(r recipe, qs []quantity, label float64) (binding, bool) {
	values := make([]float64, len(r.slots))
	return bind(r.slots, qs, func(at []int) bool {
		for i, j := range at {
			values[i], _, _ = read(qs[j], r.slots[i].Measure)
		}
		v, err := r.expr.Eval(values)
		return err == nil && model.SameNumber(v, label)
	})
}
