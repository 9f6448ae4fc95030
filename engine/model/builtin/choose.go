package builtin

import (
	"slices"
	"strings"

	"acescope/engine/playbook"
)

// entry is a bullet that holds a recipe.
type entry struct {
	bullet playbook.Bullet
	recipe recipe
}

// recipesFor reads the recipes of a formula from a playbook, in its order. Bullets
// that hold no recipe are left alone.
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

// Weights of a choice between recipes.
const (
	weightTrust    = 1.0
	weightQuality  = 0.8
	weightUnused   = 0.25 // lost per quantity of the question that the recipe leaves out
	weightUnfitted = 0.3
)

// trust is the chance that a bullet helps as its counters tell, by Laplace's rule of
// succession. Neutral tags do not count.
func trust(b playbook.Bullet) float64 {
	return float64(b.Helpful+1) / float64(b.Helpful+b.Harmful+2)
}

// option is a recipe that a question gives all operands for.
type option struct {
	entry
	binding binding
	value   float64
	score   float64
	covers  bool // it uses every quantity that is not a side quantity
}

// options lists the recipes that can be computed for a question, best first. Equal
// scores keep the playbook's order.
func options(entries []entry, qs []quantity) []option {
	var found []option
	for _, e := range entries {
		b, ok := bind(e.recipe.slots, qs)
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
	slices.SortStableFunc(found, func(a, b option) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	return found
}

// unused counts the quantities that a binding leaves out; side quantities do not count.
func unused(qs []quantity, at []int) int {
	n := 0
	for j, q := range qs {
		if !q.Side && !slices.Contains(at, j) {
			n++
		}
	}
	return n
}

// misfit sums up, as a number of at most 0, how far measures are stretched.
func misfit(slots []slot, qs []quantity, at []int) float64 {
	sum := 0.0
	for i, j := range at {
		_, fit, _ := read(qs[j], slots[i].Measure)
		sum += fit
	}
	return sum
}
