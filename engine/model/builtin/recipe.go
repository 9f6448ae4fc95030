package builtin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"acescope/engine/model/builtin/calc"
)

// Section is the playbook section in which recipes live.
const Section = "FORMULAS & CALCULATIONS"

// recipeMark separates a recipe's formula from its expression.
const recipeMark = ": answer = "

// Bounds of a recipe.
const (
	maxSlots  = 7
	maxCues   = 8
	maxRecipe = 2000 // bytes
)

// measure says how a slot reads a quantity.
type measure string

// Measures. A percent of 5 reads as 0.05 with percent and as 5 with points; a period of
// 6 months reads as 0.5 with years, 6 with months, 182.5 with days and 6 with count.
const (
	asAmount  measure = "amount"
	asNumber  measure = "number"
	asPercent measure = "percent"
	asPoints  measure = "percent points"
	asYears   measure = "years"
	asMonths  measure = "months"
	asDays    measure = "days"
	asCount   measure = "periods"
	asTimes   measure = "times per year"
)

var measures = []measure{asAmount, asNumber, asPoints, asPercent, asYears, asMonths, asDays, asCount, asTimes}

// slot is one operand of a recipe: which quantity of a question to take, and how.
// Ordinal is its place among the question's quantities of its class where examples had
// it, from 1; 0 where they disagree.
type slot struct {
	Name    string   `json:"name"`
	Measure measure  `json:"measure"`
	Cues    []string `json:"cues,omitempty"`
	Ordinal int      `json:"ordinal,omitempty"`
}

// recipe is a way to compute a formula's answer. As a bullet it is one line:
//
//	Return on Equity (ROE): answer = a / b * 100 where a = amount near "net",
//	"income" (often 1st); b = amount near "equity" (often 2nd)
type recipe struct {
	formula string
	expr    *calc.Expr
	slots   []slot // one for each of expr.Names, in their order
}

func (r recipe) String() string {
	var b strings.Builder
	b.WriteString(r.formula + recipeMark + r.expr.String())
	for i, s := range r.slots {
		b.WriteString(map[bool]string{true: " where ", false: "; "}[i == 0])
		b.WriteString(s.String())
	}
	return b.String()
}

func (s slot) String() string {
	text := s.Name + " = " + string(s.Measure)
	for i, c := range s.Cues {
		text += map[bool]string{true: " near ", false: ", "}[i == 0] + `"` + c + `"`
	}
	if s.Ordinal > 0 {
		text += " (often " + strconv.Itoa(s.Ordinal) + ending(s.Ordinal) + ")"
	}
	return text
}

func ending(n int) string {
	if n%100 >= 11 && n%100 <= 13 {
		return "th"
	}
	switch n % 10 {
	case 1:
		return "st"
	case 2:
		return "nd"
	case 3:
		return "rd"
	}
	return "th"
}

// parseRecipe reads a bullet's content.
func parseRecipe(content string) (recipe, error) {
	if len(content) > maxRecipe {
		return recipe{}, fmt.Errorf("a recipe of %d bytes: at most %d", len(content), maxRecipe)
	}
	formula, rest, ok := strings.Cut(content, recipeMark)
	if !ok || cleanName(formula) != formula || formula == "" {
		return recipe{}, fmt.Errorf("no recipe: %q is missing", strings.TrimSpace(recipeMark))
	}
	source, list, _ := strings.Cut(rest, " where ")
	expr, err := calc.Parse(source)
	if err != nil {
		return recipe{}, err
	}
	r := recipe{formula: formula, expr: expr}
	names := expr.Names()
	if len(names) == 0 || len(names) > maxSlots {
		return recipe{}, fmt.Errorf("a recipe needs 1 to %d operands, this has %d", maxSlots, len(names))
	}
	parts := strings.Split(list, "; ")
	if len(parts) != len(names) {
		return recipe{}, fmt.Errorf("%d operands described, %d needed", len(parts), len(names))
	}
	for i, part := range parts {
		s, err := parseSlot(part)
		if err != nil {
			return recipe{}, err
		}
		if s.Name != names[i] {
			return recipe{}, fmt.Errorf("operand %q described where %q should be", s.Name, names[i])
		}
		r.slots = append(r.slots, s)
	}
	return r, nil
}

func parseSlot(text string) (slot, error) {
	name, rest, ok := strings.Cut(text, " = ")
	if !ok {
		return slot{}, fmt.Errorf("operand %q: no \" = \"", text)
	}
	s := slot{Name: name}
	for _, m := range measures {
		if after, ok := strings.CutPrefix(rest, string(m)); ok {
			s.Measure, rest = m, after
			break
		}
	}
	if s.Measure == "" {
		return slot{}, fmt.Errorf("operand %q: unknown measure in %q", name, rest)
	}
	if i := strings.LastIndex(rest, " (often "); i >= 0 {
		n, err := parseOrdinal(rest[i:])
		if err != nil {
			return slot{}, fmt.Errorf("operand %q: %w", name, err)
		}
		s.Ordinal, rest = n, rest[:i]
	}
	cues, err := parseCues(rest)
	if err != nil {
		return slot{}, fmt.Errorf("operand %q: %w", name, err)
	}
	s.Cues = cues
	return s, nil
}

func parseOrdinal(text string) (int, error) {
	digits := strings.Trim(strings.TrimPrefix(text, " (often "), "stndrh)")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || n > maxQuantities || text != " (often "+digits+ending(n)+")" {
		return 0, fmt.Errorf("%q is no place", text)
	}
	return n, nil
}

func parseCues(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	list, ok := strings.CutPrefix(text, " near ")
	if !ok {
		return nil, fmt.Errorf("unexpected %q", text)
	}
	var cues []string
	for quoted := range strings.SplitSeq(list, ", ") {
		word := strings.Trim(quoted, `"`)
		// A person writes "assets" where the reader of questions keeps "asset".
		cue := fold(word)
		if quoted != `"`+word+`"` || fold(cue) != cue || cue == "" || len(cues) == maxCues {
			return nil, fmt.Errorf("%s is no cue", quoted)
		}
		cues = append(cues, cue)
	}
	return cues, nil
}

// key is equal for recipes that compute the same from operands of the same measures.
func (r recipe) key() string {
	var b strings.Builder
	b.WriteString(r.expr.Shape())
	for _, s := range r.slots {
		b.WriteByte('|')
		b.WriteString(string(s.Measure))
	}
	return b.String()
}

// clone is a copy whose slots may be changed.
func (r recipe) clone() recipe {
	r.slots = slices.Clone(r.slots)
	for i := range r.slots {
		r.slots[i].Cues = slices.Clone(r.slots[i].Cues)
	}
	return r
}
