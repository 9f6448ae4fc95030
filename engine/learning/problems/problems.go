// Package problems generates the project's own problem set: labeled finance calculations drawn
// from a seed. It imports the calculator of the built-in provider and a parser of TOML.
//
// Equal seeds and sizes give equal problems, and a longer set begins with the shorter one. All
// formulas are equally likely. Labels are the exact value rounded to two decimals. Some prompts
// state their formula; the others only describe it, so that it must be learned. Some questions
// contain an irrelevant number.
package problems

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"acescope/engine/learning/model/builtin/calc"
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
	Name      string
	Stated    string // the formula, or "" to withhold it
	Symbols   string // the meaning of the symbols of a stated formula
	Hint      string // a vague description of a withheld formula
	Values    []variable
	Positive  []*calc.Expr // must be above 0 for reasonable values
	Answer    *calc.Expr
	Questions []string // {a} is the first value
}

//go:embed formulas.toml
var formulasFile string

var formulas = sync.OnceValue(func() []formula {
	var file struct{ Formula []formula }
	if err := toml.Unmarshal([]byte(formulasFile), &file); err != nil {
		panic("problems: formulas.toml: " + err.Error())
	}
	return file.Formula
})

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
	question := f.Questions[r.IntN(len(f.Questions))]
	for i, x := range f.Values {
		question = strings.ReplaceAll(question, "{"+letter(i)+"}", x.write(v[letter(i)], r))
	}
	if r.IntN(asideEvery) == 0 {
		question = strings.ReplaceAll(asides[r.IntN(len(asides))], "{}", strconv.Itoa(3+r.IntN(90))) + " " +
			question
	}
	return Problem{Context: f.context(question), Target: target(answer)}
}

// letter returns the name of the i-th value.
func letter(i int) string { return string(rune('a' + i)) }

// drawValues draws values until they are reasonable or maxDraws is reached.
func (f formula) drawValues(r *rand.Rand) (v map[string]float64, answer float64) {
	v = map[string]float64{}
	for range maxDraws {
		for i, x := range f.Values {
			v[letter(i)] = x.draw(r)
		}
		var ok bool
		if answer, ok = f.solve(v); ok {
			break
		}
	}
	return v, answer
}

// solve returns the answer, and whether the values and the answer are reasonable.
func (f formula) solve(v map[string]float64) (answer float64, ok bool) {
	for _, e := range f.Positive {
		if x, err := e.EvalNamed(v); err != nil || x <= 0 {
			return 0, false
		}
	}
	answer, err := f.Answer.EvalNamed(v)
	size := math.Abs(answer)
	return answer, err == nil && size >= smallest && size <= largest
}

func (f formula) context(question string) string {
	about := "About it: " + f.Hint
	if f.Stated != "" {
		about = "Formula: " + f.Stated + ", Explanation: " + f.Symbols + "."
	}
	return "Use formula " + f.Name + " to answer the question. " +
		"Reply with one number, rounded to two decimals, and nothing else. " + about + " Question: " +
		question + " Answer:"
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
// k*step, up to high. The unit is number, money, percent, year, month or day.
type variable struct {
	Unit            string
	Low, High, Step float64
}

func (v variable) draw(r *rand.Rand) float64 {
	steps := int(math.Round((v.High - v.Low) / v.Step))
	x := v.Low + float64(r.IntN(steps+1))*v.Step
	return math.Round(x*1e4) / 1e4
}

// write formats a value with its unit. Large amounts of money are sometimes in millions.
func (v variable) write(x float64, r *rand.Rand) string {
	switch v.Unit {
	case "money":
		if x >= 1e6 && r.IntN(2) == 0 {
			return "$" + plain(x/1e6) + " million"
		}
		return "$" + group(x)
	case "percent":
		return plain(x) + "%"
	case "number":
		return group(x)
	}
	if x == 1 {
		return "1 " + v.Unit
	}
	return plain(x) + " " + v.Unit + "s"
}

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
