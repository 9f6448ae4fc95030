package builtin

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"acescope/engine/learning/model/builtin/calc"
	"acescope/engine/learning/playbook"
)

// Section is the playbook section of recipes.
const Section = "FORMULAS & CALCULATIONS"

// recipeMark separates the formula of a recipe from its expression.
const recipeMark = ": answer = "

// Bounds of a recipe.
const (
	maxSlots  = 7
	maxCues   = 8
	maxRecipe = 2000 // bytes
)

// measure is the way in which a slot reads a quantity.
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

// asUsual reads a quantity in the most likely way. Recipes do not use it.
const asUsual measure = "usual"

// slot is one operand of a recipe: which quantity of a question to take, and how. Ordinal is
// its 1-based position among the question's quantities of its class in the examples, or 0 if
// they disagree.
type slot struct {
	Name    string   `json:"name"`
	Measure measure  `json:"measure"`
	Cues    []string `json:"cues,omitempty"`
	Ordinal int      `json:"ordinal,omitempty"`
}

// recipe computes the answer of a formula. Its bullet is one line:
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
	separator := " where "
	for _, s := range r.slots {
		b.WriteString(separator + s.String())
		separator = "; "
	}
	return b.String()
}

func (s slot) String() string {
	text := s.Name + " = " + string(s.Measure)
	if len(s.Cues) > 0 {
		text += ` near "` + strings.Join(s.Cues, `", "`) + `"`
	}
	if s.Ordinal > 0 {
		text += " (often " + strconv.Itoa(s.Ordinal) + ending(s.Ordinal) + ")"
	}
	return text
}

// ending returns the ending of an ordinal number.
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

// parseRecipe parses the content of a bullet.
func parseRecipe(content string) (recipe, error) {
	if len(content) > maxRecipe {
		return recipe{}, fmt.Errorf("the recipe has %d bytes, at most %d are allowed", len(content),
			maxRecipe)
	}
	formula, rest, ok := strings.Cut(content, recipeMark)
	if !ok || cleanName(formula) != formula || formula == "" {
		return recipe{}, fmt.Errorf("not a recipe: %q is missing", strings.TrimSpace(recipeMark))
	}
	source, list, _ := strings.Cut(rest, " where ")
	expr, err := calc.Parse(source)
	if err != nil {
		return recipe{}, err
	}
	r := recipe{formula: formula, expr: expr}
	names := expr.Names()
	if len(names) == 0 || len(names) > maxSlots {
		return recipe{}, fmt.Errorf("a recipe has 1 to %d operands, this has %d", maxSlots, len(names))
	}
	parts := strings.Split(list, "; ")
	if len(parts) != len(names) {
		return recipe{}, fmt.Errorf("operands described: %d, needed: %d", len(parts), len(names))
	}
	for i, part := range parts {
		s, err := parseSlot(part)
		if err != nil {
			return recipe{}, err
		}
		if s.Name != names[i] {
			return recipe{}, fmt.Errorf("operand %q described in place of %q", s.Name, names[i])
		}
		r.slots = append(r.slots, s)
	}
	return r, nil
}

// slotPattern matches a slot as [slot.String] formats it: name, measure, cues, ordinal, ending.
var slotPattern = regexp.MustCompile(
	`^(.*?) = (percent points|times per year|amount|number|percent|years|months|days|periods)` +
		`(?: near ("[^"]*"(?:, "[^"]*")*))?(?: \(often ([0-9]+)(st|nd|rd|th)\))?$`)

func parseSlot(text string) (slot, error) {
	m := slotPattern.FindStringSubmatch(text)
	if m == nil {
		return slot{}, fmt.Errorf("%q does not describe an operand", text)
	}
	s := slot{Name: m[1], Measure: measure(m[2])}
	if m[4] != "" {
		s.Ordinal, _ = strconv.Atoi(m[4])
		if s.Ordinal < 1 || s.Ordinal > maxQuantities || m[5] != ending(s.Ordinal) {
			return slot{}, fmt.Errorf("operand %q: %s is not a position", s.Name, m[4]+m[5])
		}
	}
	if m[3] == "" {
		return s, nil
	}
	for quoted := range strings.SplitSeq(m[3], ", ") {
		// A user may write "assets" where tokenize produces "asset".
		cue := fold(strings.Trim(quoted, `"`))
		if fold(cue) != cue || cue == "" || len(s.Cues) == maxCues {
			return slot{}, fmt.Errorf("operand %q: %s is not a cue", s.Name, quoted)
		}
		s.Cues = append(s.Cues, cue)
	}
	return s, nil
}

// key is equal for recipes that compute the same from operands with the same measures.
func (r recipe) key() string {
	key := r.expr.Shape()
	for _, s := range r.slots {
		key += "|" + string(s.Measure)
	}
	return key
}

// clone returns a deep copy of the slots.
func (r recipe) clone() recipe {
	r.slots = slices.Clone(r.slots)
	for i := range r.slots {
		r.slots[i].Cues = slices.Clone(r.slots[i].Cues)
	}
	return r
}

// entry is a bullet with its recipe.
type entry struct {
	bullet playbook.Bullet
	recipe recipe
}

// recipesFor returns the recipes of a formula in the order of the playbook. It ignores bullets
// without a recipe.
func recipesFor(book *playbook.Playbook, formula string) []entry {
	if book == nil || formula == "" {
		return nil
	}
	var found []entry
	for _, b := range book.Bullets {
		rest, ok := strings.CutPrefix(b.Content, formula)
		if !ok || !strings.HasPrefix(rest, recipeMark) {
			continue
		}
		if r, err := parseRecipe(b.Content); err == nil {
			found = append(found, entry{b, r})
		}
	}
	return found
}

// Weights of the choice between recipes.
const (
	weightTrust    = 1.0
	weightQuality  = 0.8
	weightUnused   = 0.25 // penalty per unused quantity of the question
	weightUnfitted = 0.3
)

// trust estimates the probability that a bullet helps, by Laplace's rule of succession. It
// ignores neutral tags.
func trust(b playbook.Bullet) float64 {
	return float64(b.Helpful+1) / float64(b.Helpful+b.Harmful+2)
}

// option is a recipe for which a question has all operands.
type option struct {
	entry
	binding binding
	value   float64
	score   float64
	covers  bool // it uses every quantity except side quantities
}

// options returns the recipes that can be computed for a question, best first. Equal scores
// keep the order of the playbook.
func options(entries []entry, qs []quantity) []option {
	var found []option
	for _, e := range entries {
		b, ok := bind(e.recipe.slots, qs, nil)
		if !ok {
			continue
		}
		v, err := e.recipe.expr.Eval(b.values)
		if err != nil {
			continue
		}
		left := unused(qs, b.at)
		found = append(found, option{entry: e, binding: b, value: v, covers: left == 0,
			score: weightTrust*trust(e.bullet) + weightQuality*b.quality - weightUnused*float64(left) +
				weightUnfitted*misfit(e.recipe.slots, qs, b.at)})
	}
	slices.SortStableFunc(found, func(a, b option) int { return cmp.Compare(b.score, a.score) })
	return found
}

// unused counts the quantities outside a binding, except side quantities.
func unused(qs []quantity, at []int) int {
	n := 0
	for j, q := range qs {
		if !q.Side && !slices.Contains(at, j) {
			n++
		}
	}
	return n
}

// misfit sums the fits of the measures, at most 0.
func misfit(slots []slot, qs []quantity, at []int) float64 {
	sum := 0.0
	for i, j := range at {
		_, fit, _ := read(qs[j], slots[i].Measure)
		sum += fit
	}
	return sum
}
