package builtin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
)

// Bounds and thresholds of curation.
const (
	maxPerFormula  = 6   // recipes of one formula
	maxAdds        = 2   // competing recipes from one task
	removeHarmful  = 3   // harmful tags from which a recipe may be removed
	trustedHelpful = 3   // helpful tags from which a recipe is proven
	clearlyBetter  = 1.2 // points above a second recipe, which is then a coincidence
)

func (learner) Curate(ctx context.Context, in ace.CuratorInput, book *playbook.Playbook) (ace.CuratorResult,
	error) {
	if err := ctx.Err(); err != nil {
		return ace.CuratorResult{}, err
	}
	book = cmp.Or(book, &playbook.Playbook{})
	c := curation{book: book, f: readFindings(in.Findings),
		removed: map[string]bool{}, updated: map[string]bool{}, added: map[string]bool{}}
	c.entries = recipesFor(book, c.f.Formula)
	c.tags(in.BulletTags)
	c.updates()
	c.removals(in.BulletTags)
	c.duplicates()
	c.additions()
	c.out.Rationale = c.rationale()
	c.out.Usage = countWords(in.Insights, c.out.Rationale)
	return c.out, nil
}

// curation is the state of one Curate.
type curation struct {
	book    *playbook.Playbook
	f       findings
	entries []entry
	removed map[string]bool // by bullet ID
	updated map[string]bool // by bullet ID
	added   map[string]bool // by recipe key
	out     ace.CuratorResult
}

func (c *curation) accept(op ace.Operation) {
	op.Outcome = ace.OutcomeAccepted
	c.out.Accepted = append(c.out.Accepted, op)
}

func (c *curation) reject(op ace.Operation, format string, args ...any) {
	op.Outcome, op.Reason = ace.OutcomeRejected, fmt.Sprintf(format, args...)
	c.out.Rejected = append(c.out.Rejected, op)
}

func (c *curation) tags(tags []ace.BulletTag) {
	for _, t := range tags {
		op := ace.Operation{Type: ace.OpTag, BulletID: t.ID, Metadata: map[string]int{t.Tag: 1}}
		_, ok := c.book.Find(t.ID)
		switch {
		case t.Tag != helpful && t.Tag != harmful && t.Tag != neutral:
			c.reject(op, "%q is not a tag", t.Tag)
		case !ok:
			c.reject(op, "bullet %s not found", t.ID)
		default:
			c.accept(op)
		}
	}
}

func (c *curation) updates() {
	for _, r := range c.f.Refine {
		op := ace.Operation{Type: ace.OpUpdate, Section: Section, BulletID: r.BulletID, Content: r.After,
			Reason: r.Why}
		b, ok := c.book.Find(r.BulletID)
		if ok {
			op.Content = merged(b.Content, r)
		}
		switch {
		case !ok:
			c.reject(op, "bullet %s not found", r.BulletID)
		case op.Content == "":
			c.reject(op, "[%s] was changed meanwhile to another calculation", b.ID)
		case op.Content == b.Content:
			c.reject(op, "[%s] already says this", b.ID)
		default:
			c.accept(op)
			c.updated[op.BulletID] = true
		}
	}
}

// removals removes harmful recipes, including the tags of this task.
func (c *curation) removals(tags []ace.BulletTag) {
	proven := false
	for _, e := range c.entries {
		proven = proven || e.bullet.Helpful >= trustedHelpful && e.bullet.Helpful > 2*e.bullet.Harmful
	}
	for _, e := range c.entries {
		good, bad := counted(e.bullet, tags)
		hopeless := bad >= removeHarmful && bad > good
		outdone := proven && good == 0 && bad >= removeHarmful-1
		if !hopeless && !outdone {
			continue
		}
		c.removed[e.bullet.ID] = true
		c.accept(ace.Operation{Type: ace.OpRemove, Section: e.bullet.Section, BulletID: e.bullet.ID,
			Reason: fmt.Sprintf("harmful %d times, helpful %d", bad, good)})
	}
}

func counted(b playbook.Bullet, tags []ace.BulletTag) (good, bad int) {
	good, bad = b.Helpful, b.Harmful
	for _, t := range tags {
		switch {
		case t.ID == b.ID && t.Tag == helpful:
			good++
		case t.ID == b.ID && t.Tag == harmful:
			bad++
		}
	}
	return good, bad
}

func (c *curation) additions() {
	for i, f := range c.f.Candidates {
		op := ace.Operation{Type: ace.OpAdd, Section: Section, Content: f.Recipe}
		r, err := parseRecipe(f.Recipe)
		if err != nil {
			c.reject(op, "unreadable: %v", err)
			continue
		}
		key := r.key()
		if reason := c.objection(i, f, key, len(r.slots)); reason != "" {
			c.reject(op, "%s", reason)
			continue
		}
		op.Metadata = map[string]int{helpful: 1}
		op.Reason = "reproduces the label; from " + f.Source
		c.accept(op)
		c.added[key] = true
	}
}

// objection returns why a recipe should not be added, or "".
func (c *curation) objection(i int, f finding, key string, operands int) string {
	for _, e := range c.entries {
		if !c.removed[e.bullet.ID] && e.recipe.key() == key {
			return "duplicate of [" + e.bullet.ID + "]"
		}
	}
	best := c.f.Candidates[0]
	id := c.proven()
	switch {
	case c.added[key]:
		return "duplicate: the same calculation with more plausible operands was added"
	case f.Unused > 0 && id != "":
		return fmt.Sprintf("unsupported: it leaves quantities out (%d) and [%s] is proven", f.Unused, id)
	case f.Unused > 0 && (operands == 1 || f.Unused > 1 && f.Source == fromList):
		return fmt.Sprintf("coincidence likely: it leaves %d of %d quantities out", f.Unused, c.f.Question)
	case i > 0 && best.Score-f.Score >= clearlyBetter:
		return "coincidence: a more plausible recipe gives the same value: " + calculation(best.Recipe)
	case len(c.added) >= maxAdds:
		return fmt.Sprintf("one task adds at most %d competing recipes", maxAdds)
	case len(c.entries)-len(c.removed)+len(c.added) >= maxPerFormula:
		return fmt.Sprintf("full: %s has %d recipes already", c.f.Formula, maxPerFormula)
	}
	return ""
}

// proven returns the bullet of a proven recipe of the formula, or "".
func (c *curation) proven() string {
	for _, e := range c.entries {
		if e.bullet.Helpful >= trustedHelpful && e.bullet.Helpful > e.bullet.Harmful &&
			!c.removed[e.bullet.ID] {
			return e.bullet.ID
		}
	}
	return ""
}

// calculation returns the expression in a recipe's text.
func calculation(content string) string {
	_, rest, _ := strings.Cut(content, recipeMark)
	expr, _, _ := strings.Cut(rest, " where ")
	return expr
}

func (c *curation) rationale() string {
	count := map[ace.OperationType]int{}
	for _, op := range c.out.Accepted {
		count[op.Type]++
	}
	if len(c.out.Accepted)+len(c.out.Rejected) == 0 {
		return "There was nothing to learn from this task."
	}
	var did []string
	for i, op := range []ace.OperationType{ace.OpAdd, ace.OpUpdate, ace.OpRemove, ace.OpTag} {
		if n := count[op]; n > 0 {
			did = append(did, fmt.Sprint(n, " ", []string{"new", "reworded", "removed", "counted"}[i]))
		}
	}
	text := "No change to the recipes"
	if len(did) > 0 {
		text = "Recipes: " + strings.Join(did, ", ")
	}
	if c.f.Formula != "" {
		text += " for " + c.f.Formula
	}
	if n := len(c.out.Rejected); n > 0 {
		text += fmt.Sprintf("; rejected: %d, the first because: %s", n, c.out.Rejected[0].Reason)
	}
	return text + "."
}

// merged returns the refined wording, joined with what other tasks wrote into the bullet
// meanwhile, or "" if the bullet now computes something else.
func merged(now string, r refined) string {
	if now == r.Before {
		return r.After
	}
	current, err1 := parseRecipe(now)
	wanted, err2 := parseRecipe(r.After)
	if err1 != nil || err2 != nil || current.key() != wanted.key() {
		return ""
	}
	return join(current, wanted).String()
}

// join adds the cues of the other recipe, which has the same key, to the first.
func join(one, other recipe) recipe {
	joined := one.clone()
	for i := range joined.slots {
		for _, w := range other.slots[i].Cues {
			joined.slots[i].Cues = addCue(joined.slots[i].Cues, w)
		}
		if joined.slots[i].Ordinal != other.slots[i].Ordinal {
			joined.slots[i].Ordinal = 0
		}
	}
	return joined
}

// duplicates merges recipes that compute the same, which concurrent tasks may have added. The
// first gets the cues and the counts of the second. The next task merges a third one.
func (c *curation) duplicates() {
	first := map[string]entry{}
	for _, e := range c.entries {
		key := e.recipe.key()
		one, repeated := first[key]
		switch {
		case c.removed[e.bullet.ID] || c.updated[e.bullet.ID]:
		case !repeated:
			first[key] = e
		case !c.updated[one.bullet.ID]:
			c.merge(one, e)
		}
	}
}

func (c *curation) merge(one, other entry) {
	c.removed[other.bullet.ID], c.updated[one.bullet.ID] = true, true
	if joined := join(one.recipe, other.recipe).String(); joined != one.bullet.Content {
		c.accept(ace.Operation{Type: ace.OpUpdate, Section: Section, BulletID: one.bullet.ID, Content: joined,
			Reason: "merged with [" + other.bullet.ID + "], which computes the same"})
	}
	counts := map[string]int{helpful: other.bullet.Helpful, harmful: other.bullet.Harmful,
		neutral: other.bullet.Neutral}
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n == 0 })
	if len(counts) > 0 {
		c.accept(ace.Operation{Type: ace.OpTag, BulletID: one.bullet.ID, Metadata: counts,
			Reason: "the counts of [" + other.bullet.ID + "]"})
	}
	c.accept(ace.Operation{Type: ace.OpRemove, Section: other.bullet.Section, BulletID: other.bullet.ID,
		Reason: "merged into [" + one.bullet.ID + "]"})
}
