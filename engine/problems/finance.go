package problems

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// formula is one kind of problem.
type formula struct {
	name    string
	stated  string // the formula, "" to keep it back
	symbols string // what the stated formula's symbols mean
	hint    string // a vague description where the formula is kept back
	values  []variable
	ok      func(v []float64) bool // refuses draws that make no sense; nil takes all
	answer  func(v []float64) float64
	asks    []string // questions; {0} is the first value
}

// smallest and largest label that a problem may have, in absolute terms: below, two
// decimals would say nothing.
const (
	smallest = 0.1
	largest  = 1e10
)

// asides are sentences with a number that does not matter; one question in asideEvery
// begins with one.
var asides = []string{
	"This is case {} of the seminar.",
	"The file has {} pages, of which one matters.",
	"A clerk with {} colleagues asks:",
}

const asideEvery = 7

// maxDraws bounds the attempts to draw sensible values.
const maxDraws = 1000

// Formulas is the number of different formulas.
func Formulas() int { return len(formulas()) }

// Finance draws n problems. Training and held-out sets come from different seeds.
func Finance(seed uint64, n int) []Problem {
	r := rand.New(rand.NewPCG(seed, 0x66696e616e6365))
	all := formulas()
	out := make([]Problem, 0, max(n, 0))
	for len(out) < n {
		out = append(out, all[r.IntN(len(all))].draw(r))
	}
	return out
}

func (f formula) draw(r *rand.Rand) Problem {
	v, answer := f.sensible(r)
	question := f.asks[r.IntN(len(f.asks))]
	for i, x := range v {
		question = strings.ReplaceAll(question, "{"+strconv.Itoa(i)+"}", f.values[i].write(x, r))
	}
	if r.IntN(asideEvery) == 0 {
		question = strings.ReplaceAll(asides[r.IntN(len(asides))], "{}", strconv.Itoa(3+r.IntN(90))) + " " + question
	}
	return Problem{Context: f.context(question), Target: target(answer)}
}

// sensible draws values until they pass; after too many attempts the last ones count.
func (f formula) sensible(r *rand.Rand) (v []float64, answer float64) {
	v = make([]float64, len(f.values))
	for range maxDraws {
		for i, x := range f.values {
			v[i] = x.draw(r)
		}
		if f.ok != nil && !f.ok(v) {
			continue
		}
		answer = f.answer(v)
		if size := math.Abs(answer); size >= smallest && size <= largest {
			break
		}
	}
	return v, answer
}

func (f formula) context(question string) string {
	var b strings.Builder
	b.WriteString("Use formula " + f.name + " to answer the question. Reply with one number, rounded to two decimals, and nothing else. ")
	switch {
	case f.stated != "":
		b.WriteString("Formula: " + f.stated + ", Explanation: " + f.symbols + ". ")
	default:
		b.WriteString("About it: " + f.hint + " ")
	}
	b.WriteString("Question: " + question + " Answer:")
	return b.String()
}

// target writes a label: two decimals at most, one at least.
func target(v float64) string {
	s := strings.TrimSuffix(strconv.FormatFloat(v, 'f', 2, 64), "0")
	if s == "-0.0" {
		return "0.0"
	}
	return s
}
