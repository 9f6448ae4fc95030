package builtin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"acescope/engine/learning/model"
	"acescope/engine/learning/model/builtin/calc"
)

// Bounds of a search for recipes that produce a label.
const (
	maxTrials     = 40_000 // evaluated expressions, about 100 ns each
	maxHits       = 1000   // a label with more hits is not informative
	maxHypotheses = 5
)

// Plausibility of a hypothesis, in points.
const (
	priorStated  = 3.0
	priorSolved  = 2.0
	costPart     = 0.08 // per part of the expression
	costUnused   = 0.7  // per unused quantity of the question
	costScaled   = 0.6  // the shape was multiplied by 100 or 0.01
	costReading  = 0.35 // a quantity is read in a second-choice way
	costSide     = 0.3  // a side quantity is used
	costInverted = 0.02 // operands are not in the order of the question
	gainWord     = 0.7  // a word that describes the operand is near the quantity
)

// hypothesis is a recipe that produces the label.
type hypothesis struct {
	finding
	recipe recipe
	at     []int
}

// reading is one way to read a quantity.
type reading struct {
	measure measure
	value   float64
	cost    float64
}

// readings returns the ways to read a quantity, most likely first.
func readings(q quantity) []reading {
	ms := measuresOf[string(q.Class)]
	if q.Class == classPeriod {
		ms = measuresOf[q.Unit]
	}
	var out []reading
	for i, m := range ms {
		v, _, _ := read(q, m)
		out = append(out, reading{m, v, costReading * float64(i)})
	}
	return out
}

// measuresOf are the measures of a class, or of the unit of a period.
var measuresOf = map[string][]measure{
	string(classMoney):     {asAmount},
	string(classNumber):    {asNumber},
	string(classPercent):   {asPercent, asPoints},
	string(classFrequency): {asTimes},

	"years": {asYears, asMonths}, "months": {asYears, asCount}, "weeks": {asCount, asYears},
	"days": {asDays, asYears}, "quarters": {asCount, asYears}, "half-years": {asCount, asYears},
	"periods": {asCount}, "decades": {asYears},
}

// searcher tries shapes on the quantities of one question.
type searcher struct {
	formula string
	qs      []quantity
	reads   [][]reading
	label   float64
	trials  int
	hits    int
	capped  bool           // trials or hits exceeded
	found   map[string]int // index in best by twin key
	best    []hypothesis

	shape  shape
	at     []int
	chosen []reading
	values []float64
}

// searchRecipes finds the best recipes that produce the label, most plausible first. It tries the
// common shapes only if the stated formula explains nothing.
func searchRecipes(p problem, qs []quantity, label float64) *searcher {
	s := &searcher{formula: p.Formula, qs: qs, label: label, found: map[string]int{}}
	for _, q := range qs {
		s.reads = append(s.reads, readings(q))
	}
	s.try(statedShapes(p))
	if len(s.best) == 0 {
		s.try(commonShapes())
	}
	slices.SortStableFunc(s.best, func(a, b hypothesis) int { return cmp.Compare(b.Score, a.Score) })
	s.best = s.best[:min(len(s.best), maxHypotheses)]
	return s
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
		classes := s.shape.operands[i].classes
		if slices.Contains(s.at[:i], j) || classes != nil && !slices.Contains(classes, q.Class) {
			continue
		}
		s.at[i] = j
		for _, r := range s.reads[j] {
			s.chosen[i], s.values[i] = r, r.value
			s.assign(i + 1)
		}
	}
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

// keep adds a hypothesis, unless a better twin exists.
func (s *searcher) keep(e *calc.Expr, v, cost float64) {
	s.hits++
	h := hypothesis{recipe: recipe{formula: s.formula, expr: e}, at: slices.Clone(s.at),
		finding: finding{Value: v, Source: s.shape.source, Unused: unused(s.qs, s.at)}}
	for i, name := range e.Names() {
		h.recipe.slots = append(h.recipe.slots, slot{Name: name, Measure: s.chosen[i].measure})
	}
	h.Score = s.plausibility(h) - cost - costPart*float64(e.Size())
	// The key is equal for hypotheses that this question cannot distinguish and that differ only in
	// the roles of their operands, such as a * b and b * a.
	places := slices.Sorted(slices.Values(h.at))
	key := fmt.Sprintf("%s|%v|%.9g", h.recipe.expr, places, h.Value)
	at, known := s.found[key]
	if known && s.best[at].Score >= h.Score {
		return
	}
	s.setCues(&h)
	if known {
		s.best[at] = h
		return
	}
	s.found[key] = len(s.best)
	s.best = append(s.best, h)
}

func (s *searcher) plausibility(h hypothesis) float64 {
	score := -costUnused * float64(h.Unused)
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

func (s *searcher) setCues(h *hypothesis) {
	ranks := ranksOf(s.qs)
	for i, j := range h.at {
		sl := &h.recipe.slots[i]
		sl.Ordinal = ranks[j]
		sl.Cues = statedCues(s.shape.operands, i)
		for _, w := range nearestWords(s.qs, j, h.at) {
			if len(sl.Cues) < firstCues {
				sl.Cues = addCue(sl.Cues, w)
			}
		}
	}
}

// Numbers of cues.
const (
	firstCues   = 6 // of a new slot
	namedCues   = 3 // of these, from the formula's explanation
	learnedCues = 2 // added by one example to a known recipe
)

// statedCues returns the words that describe only the i-th operand.
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

// nearestWords returns the words that are nearer to quantity j than to any other quantity in use,
// nearest first.
func nearestWords(qs []quantity, j int, at []int) []string {
	var words []string
	for _, n := range qs[j].Near {
		if !nearerElsewhere(qs, j, at, n.Word) {
			words = append(words, n.Word)
		}
	}
	return words
}

// nearerElsewhere reports whether a word near quantity j is at least as near to another one in use.
func nearerElsewhere(qs []quantity, j int, at []int, word string) bool {
	own, _ := distance(qs[j], word)
	return slices.ContainsFunc(at, func(k int) bool {
		other, ok := distance(qs[k], word)
		return k != j && ok && other <= own
	})
}

// distance returns the distance of a word from a quantity, and false if it is not near.
func distance(q quantity, word string) (float64, bool) {
	i := slices.IndexFunc(q.Near, func(n near) bool { return n.Word == word })
	if i < 0 {
		return 0, false
	}
	return q.Near[i].Distance, true
}

func addCue(cues []string, w string) []string {
	if w == "" || fold(w) != w || slices.Contains(cues, w) || len(cues) >= maxCues {
		return cues
	}
	return append(cues, w)
}

// commonShapes are the calculations to try if the stated formula does not explain the label:
// common arithmetic in finance. The letters restrict the operands: r s i are rates, t n periods
// or counts, k times per year, other letters amounts, numbers or percentages.
var commonShapes = sync.OnceValue(func() []shape {
	var shapes []shape
	separator := func(r rune) bool { return r == ';' || r == '\n' }
	for source := range strings.FieldsFuncSeq(shapeSources, separator) {
		e, err := calc.Parse(source)
		if err != nil {
			panic("builtin: common shape " + source + ": " + err.Error())
		}
		s := shape{expr: e, source: fromList}
		for _, n := range e.Names() {
			s.operands = append(s.operands, operand{classes: letterClasses(n)})
		}
		shapes = append(shapes, s)
	}
	return shapes
})

func letterClasses(letter string) []class {
	switch letter {
	case "r", "s", "i":
		return []class{classPercent, classNumber}
	case "t", "n":
		return []class{classPeriod, classNumber}
	case "k":
		return []class{classFrequency, classNumber}
	}
	return []class{classMoney, classNumber, classPercent}
}

// shapeSources are sorted by the number of operands.
const shapeSources = `
72 / a; 1 / a; exp(r) - 1; (1 + r)^12 - 1; (1 + r)^4 - 1
a / b; a - b; a * b; a + b; (a - b) / b; (a - b) / a; (a + b) / 2; a / b * 365; a / b * 360; a * (1 + r)
a * (1 - r); a / (1 + r); a / (1 - r); a / r; a * t; a / t; r * t; 365 / a; a * r; (1 + r / k)^k - 1
(1 + r)^t - 1; (1 + r)^k - 1; (1 + r) / (1 + s) - 1; r / (1 - s); r * (1 - s); 1 / (1 + r)^t; a / (a + b)
a / (b - a); a * (1 + r) / r; sqrt(a * b); 1 - a / b; a * 12 / b; a / (b * 12); a * 12
(a - b) / c; (a + b) / c; a / (b + c); a / (b - c); a - b - c; a + b - c; a + b + c; a * b * c; a * b / c
a * b - c; a * b + c; a * t - c; a * t + c; a * b * (1 - r); a * b * (1 + r); a - b * c; a / b - c
a / b + c; a / (b * c); (a - b) * c; (a + b) * c; (a + b + c) / 3; a / ((b + c) / 2); a + b * (c - a)
a / b * t; (a - b) / t; a / t - b; a * r * t; a * (1 + r * t); a / (1 + r * t); a * (1 + r)^t
a / (1 + r)^t; a * (1 - r)^t; a * exp(r * t); a * exp(-r * t); (a / b)^(1 / t) - 1; ln(a / b) / r
a * (1 - (1 + r)^(-t)) / r; a * (1 - (1 + r)^(-t)) / r * (1 + r); a * ((1 + r)^t - 1) / r
a * r / (1 - (1 + r)^(-t)); a * (1 + r) / (s - r); a * (1 + r) / (1 + s); (a - b + c) / b; (a - b - c) / a
(a - b - c) / b; a * r * (1 - s); a * (1 - r) * (1 - s); (a - b) / (a - c); a / (b - c) - 1
a * (1 + r)^t - a; a * r * t / 360; a * r * t / 365; (a - b) / b * 365 / t; (a - b) / b * 360 / t
(a - b) / a * 360 / t; (a - b) / a * 365 / t; sqrt(2 * a * b / c); a / (1 + r) + b / (1 + r)^2
(a - b) / (c * b); a * (r - s); a * (b - c)
a - (b + c * (d - b)); a + b * c + d; (a - b) / (c - d); (a + b) / (c + d); (a - b - c) / d
(a + b - c) / d; (a + b + c) / d; a * (b - c) - d; a + b + c + d; a + b + c - d; a + b - c - d
a - b - c - d; a * b - c * d; a * b + c * d; a * b + c - d; (a * b + c * d) / (a + c); a * b * c * d
(a - b) / ((c + d) / 2); (a - b) / b / ((c - d) / d); (a + b) / c * 365 / t; (a + b) / c * 360 / t
a * (1 + r / k)^(k * t); a * (1 + r / k)^(k * t) - a; a / (1 + r) + b / (1 + r)^2 + c / (1 + r)^3
a * (1 - (1 + r)^(-t)) / r + b / (1 + r)^t; a * (1 - (1 + r)^(-t)) / r - b; a / (b - c) / d
(a - b) / (c * d); a / b + c / d; a * r / k / (1 - (1 + r / k)^(-k * t)); (a - b) * (1 - r) + c
(a + (b - c) / t) / ((b + c) / 2); (a * b - c) / d; (a - b) * c - d; a * (b - c) / d; a + b - c + d
a + b + c + d - f; a - b + c / (1 + r)^t; (a - b + c) * (1 + r)^t; a + b - c / (1 + r)^t
a / (1 + r) + b / (1 + r)^2 + c / (1 + r)^3 - d
a / (1 + r) + b / (1 + r)^2 + c / (1 + r)^3 + d / (1 + r)^4; a / (a + b) * r + b / (a + b) * s * (1 - i)
(a + b) / c * 365 / d
a * N((ln(a / b) + (r + s^2 / 2) * t) / (s * sqrt(t))) - b * exp(-r * t) * N((ln(a / b) + (r - s^2 / 2) * t) / (s * sqrt(t)))
a + b * (c - a) + d * f; (a - b) / (c + d + f)
`
