package builtin

import (
	"fmt"
	"slices"

	"acescope/engine/model"
	"acescope/engine/model/builtin/calc"
)

// Bounds of a search for recipes that reproduce a label.
const (
	maxTrials     = 40_000 // expressions evaluated, some 100 ns each
	maxHits       = 1000   // a label that more calculations give tells nothing
	maxHypotheses = 5
)

// Plausibility of a hypothesis, in points.
const (
	priorStated  = 3.0
	priorSolved  = 2.0
	costPart     = 0.08 // per part of the expression
	costUnused   = 0.7  // per quantity of the question that is left out
	costScaled   = 0.6  // the shape had to be multiplied by 100 or 0.01
	costReading  = 0.35 // a quantity read in a second-choice way
	costSide     = 0.3  // a side quantity used
	costInverted = 0.02 // operands in another order than in the question
	gainWord     = 0.7  // a word that describes the operand is near the quantity
)

// hypothesis is a recipe that reproduces a label.
type hypothesis struct {
	recipe recipe
	value  float64
	score  float64
	unused int
	source string
	at     []int
}

// reading is one way to read a quantity.
type reading struct {
	measure measure
	value   float64
	cost    float64
}

// readings lists the ways to read a quantity, the most likely first.
func readings(q quantity) []reading {
	var ms []measure
	switch q.Class {
	case classMoney:
		ms = []measure{asAmount}
	case classNumber:
		ms = []measure{asNumber}
	case classPercent:
		ms = []measure{asPercent, asPoints}
	case classFrequency:
		ms = []measure{asTimes}
	default:
		ms = periodMeasures[q.Unit]
	}
	var out []reading
	for i, m := range ms {
		v, _, ok := read(q, m)
		if ok {
			out = append(out, reading{m, v, costReading * float64(i)})
		}
	}
	return out
}

var periodMeasures = map[string][]measure{
	"years": {asYears, asMonths}, "months": {asYears, asCount}, "weeks": {asCount, asYears}, "days": {asDays, asYears},
	"quarters": {asCount, asYears}, "half-years": {asCount, asYears}, "periods": {asCount}, "decades": {asYears},
}

// searcher tries shapes on the quantities of one question.
type searcher struct {
	formula string
	qs      []quantity
	reads   [][]reading
	label   float64
	trials  int
	hits    int
	capped  bool           // trials or hits ran out
	found   map[string]int // twin key to its place in best
	best    []hypothesis

	shape  shape
	at     []int
	chosen []reading
	values []float64
	used   [maxQuantities]bool
}

// searchRecipes finds the recipes that reproduce the label, most plausible first. The
// stated formula is tried before the common shapes, which are tried only where it
// explains nothing.
func searchRecipes(p problem, qs []quantity, label float64) result {
	s := &searcher{formula: p.Formula, qs: qs, label: label, found: map[string]int{}}
	for _, q := range qs {
		s.reads = append(s.reads, readings(q))
	}
	s.try(statedShapes(p))
	if len(s.best) == 0 {
		s.try(commonShapes())
	}
	slices.SortStableFunc(s.best, func(a, b hypothesis) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	return result{s.best[:min(len(s.best), maxHypotheses)], s.trials, s.capped}
}

// result is what a search found, and how much it tried.
type result struct {
	found  []hypothesis
	trials int
	capped bool
}

func (s *searcher) try(shapes []shape) {
	for _, sh := range shapes {
		n := len(sh.operands)
		if n == 0 || n > len(s.qs) || n > maxSlots {
			continue
		}
		s.shape, s.at, s.chosen, s.values = sh, make([]int, n), make([]reading, n), make([]float64, n)
		s.assign(0)
	}
}

func (s *searcher) assign(i int) {
	if s.capped = s.capped || s.trials >= maxTrials || s.hits >= maxHits; s.capped {
		return
	}
	if i == len(s.at) {
		s.evaluate()
		return
	}
	for j, q := range s.qs {
		if s.used[j] || !s.shape.operands[i].takes(q) {
			continue
		}
		s.used[j], s.at[i] = true, j
		for _, r := range s.reads[j] {
			s.chosen[i], s.values[i] = r, r.value
			s.assign(i + 1)
		}
		s.used[j] = false
	}
}

func (o operand) takes(q quantity) bool {
	if o.classes == nil {
		return true
	}
	return slices.Contains(o.classes, q.Class)
}

func (s *searcher) evaluate() {
	s.trials++
	v, err := s.shape.expr.Eval(s.values)
	if err != nil {
		return
	}
	switch {
	case model.SameNumber(v, s.label):
		s.keep(s.shape.expr, v, 0)
	case model.SameNumber(v*100, s.label) && s.label != 0:
		s.keepScaled(100, v*100)
	case model.SameNumber(v/100, s.label) && s.label != 0:
		s.keepScaled(0.01, v/100)
	}
}

func (s *searcher) keepScaled(factor, v float64) {
	if e, err := s.shape.expr.Scale(factor); err == nil {
		s.keep(e, v, costScaled)
	}
}

// keep notes a hypothesis, the best of its twins only.
func (s *searcher) keep(e *calc.Expr, v, cost float64) {
	s.hits++
	h := hypothesis{value: v, source: s.shape.source, at: slices.Clone(s.at), unused: unused(s.qs, s.at)}
	h.recipe = recipe{formula: s.formula, expr: e}
	for i, name := range e.Names() {
		h.recipe.slots = append(h.recipe.slots, slot{Name: name, Measure: s.chosen[i].measure})
	}
	h.score = s.plausibility(h) - cost - costPart*float64(e.Size())
	key := s.twinKey(h)
	at, known := s.found[key]
	if known && s.best[at].score >= h.score {
		return
	}
	s.teach(&h)
	if known {
		s.best[at] = h
		return
	}
	s.found[key] = len(s.best)
	s.best = append(s.best, h)
}

// twinKey is equal for hypotheses that this question cannot tell apart and that differ
// in the roles of their operands only, such as a * b and b * a.
func (s *searcher) twinKey(h hypothesis) string {
	places := slices.Sorted(slices.Values(h.at))
	return fmt.Sprintf("%s|%v|%.9g", h.recipe.expr, places, h.value)
}

func (s *searcher) plausibility(h hypothesis) float64 {
	score := -costUnused * float64(h.unused)
	switch s.shape.source {
	case fromText:
		score += priorStated
	case fromSolved:
		score += priorSolved
	}
	for i, j := range h.at {
		score -= s.chosen[i].cost
		if s.qs[j].Side && s.chosen[i].measure != asTimes {
			score -= costSide
		}
		if i > 0 && h.at[i-1] > j {
			score -= costInverted
		}
		score += gainWord * min(1, affinity(slot{Cues: s.shape.operands[i].words}, s.qs[j]))
	}
	return score
}

// teach gives the slots of a new recipe their cues and places.
func (s *searcher) teach(h *hypothesis) {
	ranks := ranksOf(s.qs)
	for i, j := range h.at {
		sl := &h.recipe.slots[i]
		sl.Ordinal = ranks[j]
		sl.Cues = statedCues(s.shape.operands, i)
		for _, w := range telling(s.qs, j, h.at) {
			if len(sl.Cues) < firstCues {
				sl.Cues = addCue(sl.Cues, w)
			}
		}
	}
}

// Cues that a slot starts with.
const (
	firstCues  = 6
	namedCues  = 3
	learntCues = 2 // added by one example to a recipe that is known
)

// statedCues are the words that describe the i-th operand and no other.
func statedCues(operands []operand, i int) []string {
	var cues []string
	for _, w := range operands[i].words {
		shared := false
		for k, o := range operands {
			shared = shared || k != i && slices.Contains(o.words, w)
		}
		if !shared && len(cues) < namedCues {
			cues = addCue(cues, w)
		}
	}
	return cues
}

// telling lists the words near quantity j that stand nearer to it than to any other
// quantity in use, nearest first.
func telling(qs []quantity, j int, at []int) []string {
	var words []string
	for _, n := range qs[j].Near {
		if !elsewhere(qs, j, at, n) {
			words = append(words, n.Word)
		}
	}
	return words
}

func elsewhere(qs []quantity, j int, at []int, n near) bool {
	for _, k := range at {
		if k == j {
			continue
		}
		for _, m := range qs[k].Near {
			if m.Word == n.Word && m.Distance <= n.Distance {
				return true
			}
		}
	}
	return false
}

func addCue(cues []string, w string) []string {
	if w == "" || fold(w) != w || slices.Contains(cues, w) || len(cues) >= maxCues {
		return cues
	}
	return append(cues, w)
}
