package builtin

import "acescope/engine/model"

// Weights of a binding: what speaks for giving a quantity to a slot.
const (
	weightOrdinal = 0.25
	weightSide    = -0.6
	weightSecond  = 0.35 // by how much each further cue counts less than the one before
	cueDecay      = 0.35 // by how much a word counts less per word of distance
	impossible    = -1e9
)

// read is what a slot of the measure makes of the quantity. Fit is 0 where the measure
// is the quantity's own and less where it is a stretch; ok is false where it has none.
func read(q quantity, m measure) (value, fit float64, ok bool) {
	switch m {
	case asAmount:
		return readPlain(q, classMoney, classNumber)
	case asNumber:
		return readPlain(q, classNumber, classMoney)
	case asTimes:
		return readPlain(q, classFrequency, classNumber)
	case asPoints:
		return readPlain(q, classPercent, classNumber)
	case asPercent:
		value, fit, ok = readPlain(q, classPercent, classNumber)
		if q.Class == classPercent {
			value /= 100
		}
		return value, fit, ok
	case asCount:
		return readPlain(q, classPeriod, classNumber)
	}
	value, fit, ok = readPlain(q, classPeriod, classNumber)
	per, known := perYear[q.Unit]
	if q.Class != classPeriod || !known {
		return value, fit, ok
	}
	switch m {
	case asYears:
		return value / per, fit, ok
	case asMonths:
		return value * 12 / per, fit, ok
	}
	return value * 365 / per, fit, ok
}

func readPlain(q quantity, own, other class) (value, fit float64, ok bool) {
	switch q.Class {
	case own:
		return q.Value, 0, true
	case other:
		return q.Value, -0.4, true
	}
	return 0, 0, false
}

// affinity says how well a slot's cues fit the words near a quantity: 0 for no cue,
// about 1 for a cue right beside it.
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

// binding gives each slot of a recipe a quantity.
type binding struct {
	at      []int // quantity of each slot
	values  []float64
	quality float64 // mean affinity of the slots, each counted up to 1
}

// bind finds the best binding of different quantities to the slots; false where a
// slot finds none.
func bind(slots []slot, qs []quantity) (binding, bool) {
	if len(slots) > len(qs) {
		return binding{}, false
	}
	m := newMatrix(slots, qs)
	m.search(0, 0)
	if !m.found {
		return binding{}, false
	}
	return m.binding(m.best), true
}

// matrix holds the score of each slot with each quantity and the state of the search
// for the best assignment.
type matrix struct {
	slots  []slot
	qs     []quantity
	score  [][]float64
	rest   []float64 // the most that the slots from i on can still add
	used   [maxQuantities]bool
	at     []int
	best   []int
	most   float64
	found  bool
	accept func(at []int) bool // nil accepts every assignment
	budget int
}

// maxAssignments bounds the steps of one search; beyond it the best so far counts.
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

// ranksOf gives each quantity its place among those of its class, from 1.
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

// search assigns slot i and those after it, best total first found wins a tie.
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

// bindTo finds the best binding with which the recipe reproduces the label.
func bindTo(r recipe, qs []quantity, label float64) (binding, bool) {
	if len(r.slots) > len(qs) {
		return binding{}, false
	}
	m := newMatrix(r.slots, qs)
	values := make([]float64, len(r.slots))
	m.accept = func(at []int) bool {
		for i, j := range at {
			values[i], _, _ = read(qs[j], r.slots[i].Measure)
		}
		v, err := r.expr.Eval(values)
		return err == nil && model.SameNumber(v, label)
	}
	m.search(0, 0)
	if !m.found {
		return binding{}, false
	}
	return m.binding(m.best), true
}
