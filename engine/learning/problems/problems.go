// Package problems generates the project's own problem set: labeled finance calculations drawn
// from a seed. It imports only the standard library.
//
// Equal seeds and sizes give equal problems, and a longer set begins with the shorter one. All
// formulas are equally likely. Labels are the exact value rounded to two decimals. Some prompts
// state their formula; the others only describe it, so that it must be learned. Some questions
// contain an irrelevant number.
package problems

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Problem is one labeled problem, a line of a data set.
type Problem struct {
	Context string `json:"context"`
	Target  string `json:"target"`
}

// WriteJSONL writes the problems as JSON lines.
func WriteJSONL(w io.Writer, problems []Problem) error {
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	for i, p := range problems {
		if err := enc.Encode(p); err != nil {
			return fmt.Errorf("write problem %d: %w", i+1, err)
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write problems: %w", err)
	}
	return nil
}

// formula is one kind of problem.
type formula struct {
	name    string
	stated  string // the formula, or "" to withhold it
	symbols string // the meaning of the symbols of a stated formula
	hint    string // a vague description of a withheld formula
	values  []variable
	ok      func(v []float64) bool // rejects unreasonable values; nil accepts all
	answer  func(v []float64) float64
	asks    []string // questions; {0} is the first value
}

// Bounds of the absolute value of a label. For smaller values, two decimals are too few.
const (
	smallest = 0.1
	largest  = 1e10
)

// asides are sentences with an irrelevant number. One in asideEvery questions begins with one.
var asides = []string{
	"This is case {} of the seminar.",
	"The file has {} pages, of which one matters.",
	"A clerk with {} colleagues asks:",
}

const asideEvery = 7

// maxDraws bounds the attempts to draw reasonable values.
const maxDraws = 1000

// Formulas returns the number of formulas.
func Formulas() int { return len(formulas()) }

// Finance returns n problems. Use different seeds for training and held-out sets.
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
	v, answer := f.drawValues(r)
	question := f.asks[r.IntN(len(f.asks))]
	for i, x := range v {
		question = strings.ReplaceAll(question, "{"+strconv.Itoa(i)+"}", f.values[i].write(x, r))
	}
	if r.IntN(asideEvery) == 0 {
		question = strings.ReplaceAll(asides[r.IntN(len(asides))], "{}", strconv.Itoa(3+r.IntN(90))) + " " + question
	}
	return Problem{Context: f.context(question), Target: target(answer)}
}

// drawValues draws values until they are reasonable or maxDraws is reached.
func (f formula) drawValues(r *rand.Rand) (v []float64, answer float64) {
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
	about := "About it: " + f.hint
	if f.stated != "" {
		about = "Formula: " + f.stated + ", Explanation: " + f.symbols + "."
	}
	return "Use formula " + f.name + " to answer the question. Reply with one number, rounded to two decimals, and nothing else. " +
		about + " Question: " + question + " Answer:"
}

// target formats a label with one or two decimals.
func target(v float64) string {
	s := strings.TrimSuffix(strconv.FormatFloat(v, 'f', 2, 64), "0")
	if s == "-0.0" {
		return "0.0"
	}
	return s
}

// variable describes how to choose a random value and how to format it. Values are low +
// k*step, up to high; a percentage of 5 means 5%.
type variable struct {
	low, high, step float64
	unit            unit
}

type unit int

const (
	number unit = iota
	money
	percent
	years
	months
	days
)

func (v variable) draw(r *rand.Rand) float64 {
	steps := int(math.Round((v.high - v.low) / v.step))
	x := v.low + float64(r.IntN(steps+1))*v.step
	return math.Round(x*1e4) / 1e4
}

// write formats a value with its unit. Large amounts of money are sometimes in millions.
func (v variable) write(x float64, r *rand.Rand) string {
	switch v.unit {
	case money:
		if x >= 1e6 && r.IntN(2) == 0 {
			return "$" + plain(x/1e6) + " million"
		}
		return "$" + group(x)
	case percent:
		return plain(x) + "%"
	case number:
		return group(x)
	}
	word := periods[v.unit]
	if x != 1 {
		word += "s"
	}
	return plain(x) + " " + word
}

var periods = map[unit]string{years: "year", months: "month", days: "day"}

func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// group formats a number with commas between thousands and two digits for cents.
func group(x float64) string {
	whole, cents, found := strings.Cut(plain(x), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if !found {
		return whole
	}
	if len(cents) == 1 {
		cents += "0"
	}
	return whole + "." + cents
}

// Constructors, named for the format of the value.
func cash(low, high, step float64) variable  { return variable{low, high, step, money} }
func rate(low, high, step float64) variable  { return variable{low, high, step, percent} }
func count(low, high, step float64) variable { return variable{low, high, step, number} }
func inYears(low, high float64) variable     { return variable{low, high, 1, years} }
func inMonths(low, high float64) variable    { return variable{low, high, 1, months} }
func inDays(low, high float64) variable      { return variable{low, high, 5, days} }
