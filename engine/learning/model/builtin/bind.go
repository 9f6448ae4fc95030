package builtin

import (
	"slices"

	"acescope/engine/learning/model"
)

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

// read returns the value of a quantity in a slot with the measure. fit is 0 if the quantity has the class of
// the measure, and negative if it has the other class that the measure can read. ok is false for a third
// class.
func read(q quantity, m measure) (value, fit float64, ok bool) {
	if m == asUsual {
		value, fit, _ = read(q, readings(q)[0].measure)
		return value, fit, true
	}
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
	quality float64 // mean affinity of the slots; an affinity above 1 counts as 1
}

// maxAssignments bounds the steps of one search. After that, the best assignment so far counts.
const maxAssignments = 20_000

// bind finds the best assignment of distinct quantities to the slots. Among equal scores, the first
// wins. accept may be nil. bind returns false if no assignment is possible and accepted.
func bind(slots []slot, qs []quantity, accept func(at []int) bool) (binding, bool) {
	if len(slots) > len(qs) {
		return binding{}, false
	}
	ranks := ranksOf(qs)
	score := make([][]float64, len(slots))
	rest := make([]float64, len(slots)+1) // the maximum score of the slots from i on
	for i := len(slots) - 1; i >= 0; i-- {
		top := impossible
		for j, q := range qs {
			score[i] = append(score[i], slotScore(slots[i], q, ranks[j]))
			top = max(top, score[i][j])
		}
		rest[i] = top + rest[i+1]
	}
	at := make([]int, len(slots))
	var best []int
	most, budget := impossible, maxAssignments
	var search func(i int, sum float64) // assigns slot i and the following ones
	search = func(i int, sum float64) {
		if budget--; budget < 0 || sum+rest[i] <= most+1e-12 {
			return
		}
		if i == len(slots) {
			if accept == nil || accept(at) {
				most, best = sum, slices.Clone(at)
			}
			return
		}
		for j := range qs {
			if score[i][j] > impossible/2 && !slices.Contains(at[:i], j) {
				at[i] = j
				search(i+1, sum+score[i][j])
			}
		}
	}
	search(0, 0)
	if best == nil {
		return binding{}, false
	}
	return newBinding(slots, qs, best), true
}

func newBinding(slots []slot, qs []quantity, at []int) binding {
	b := binding{at: at}
	for i, j := range at {
		v, _, _ := read(qs[j], slots[i].Measure)
		b.values = append(b.values, v)
		b.quality += min(1, affinity(slots[i], qs[j]))
	}
	b.quality /= float64(len(at))
	return b
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
