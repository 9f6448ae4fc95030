package builtin

import (
	"context"
	"fmt"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/playbook"
)

// Rules of curation.
const (
	maxPerFormula  = 6   // recipes kept of one formula
	maxAdds        = 2   // competing recipes added by one task
	removeHarmful  = 3   // harmful tags from which a recipe may be removed
	trustedHelpful = 3   // helpful tags from which a recipe counts as proven
	clearlyBetter  = 1.2 // points by which the best recipe makes a second one a coincidence
)

// Curate implements [model.Provider]. It proposes from the findings and the playbook
// only.
func (learner) Curate(ctx context.Context, in ace.CuratorInput, book *playbook.Playbook) (ace.CuratorResult, error) {
	if err := ctx.Err(); err != nil {
		return ace.CuratorResult{}, err
	}
	if book == nil {
		book = &playbook.Playbook{}
	}
	c := curation{book: book, f: readFindings(in.Findings),
		removed: map[string]bool{}, updated: map[string]bool{}, added: map[string]bool{}}
	c.entries = recipesFor(book, c.f.Formula)
	c.tags(in.BulletTags)
	c.updates()
	c.removals(in.BulletTags)
	c.twins()
	c.additions()
	c.out.Rationale = c.rationale()
	c.out.Usage = countWords(in.Insights, c.out.Rationale)
	return c.out, nil
}

// curation gathers the result of one Curate.
type curation struct {
	book    *playbook.Playbook
	f       findings
	entries []entry
	removed map[string]bool // bullet ids
	updated map[string]bool // bullet ids
	added   map[string]bool // recipe keys
	out     ace.CuratorResult
}

func (c *curation) accept(op ace.Operation) {
	op.Fate = ace.FateAccepted
	c.out.Accepted = append(c.out.Accepted, op)
}

func (c *curation) reject(op ace.Operation, format string, args ...any) {
	op.Fate, op.Reason = ace.FateRejected, fmt.Sprintf(format, args...)
	c.out.Rejected = append(c.out.Rejected, op)
}

func (c *curation) bullet(id string) (playbook.Bullet, bool) {
	for _, b := range c.book.Bullets {
		if b.ID == id {
			return b, true
		}
	}
	return playbook.Bullet{}, false
}

func (c *curation) tags(tags []ace.BulletTag) {
	for _, t := range tags {
		op := ace.Operation{Type: ace.OpTag, BulletID: t.ID, Metadata: map[string]int{t.Tag: 1}}
		_, ok := c.bullet(t.ID)
		switch {
		case t.Tag != helpful && t.Tag != harmful && t.Tag != neutral:
			c.reject(op, "%q is no tag", t.Tag)
		case !ok:
			c.reject(op, "there is no bullet %s", t.ID)
		default:
			c.accept(op)
		}
	}
}

func (c *curation) updates() {
	for _, r := range c.f.Refine {
		op := ace.Operation{Type: ace.OpUpdate, Section: Section, BulletID: r.BulletID, Content: r.After, Reason: r.Why}
		b, ok := c.bullet(r.BulletID)
		if !ok {
			c.reject(op, "there is no bullet %s", r.BulletID)
			continue
		}
		if op.Content = merged(b.Content, r); op.Content == "" {
			c.reject(op, "[%s] was changed meanwhile to another calculation", b.ID)
			continue
		}
		if op.Content == b.Content {
			c.reject(op, "[%s] says this already", b.ID)
			continue
		}
		c.accept(op)
		c.updated[op.BulletID] = true
	}
}

// removals drops the recipes that do harm, with the tags of this task counted.
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
			Reason: fmt.Sprintf("harmful %d times, helpful %d times", bad, good)})
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
	room := maxPerFormula - len(c.entries) + len(c.removed)
	added := 0
	for i, f := range c.f.Candidates {
		op := ace.Operation{Type: ace.OpAdd, Section: Section, Content: f.Recipe}
		if reason := c.objection(i, f, added); reason != "" {
			c.reject(op, "%s", reason)
			continue
		}
		if room <= 0 {
			c.reject(op, "full: %s has %d recipes already", c.f.Formula, maxPerFormula)
			continue
		}
		op.Metadata = map[string]int{helpful: 1}
		op.Reason = "reproduces the label; from " + f.Source
		c.accept(op)
		room--
		added++
		if r, err := parseRecipe(f.Recipe); err == nil {
			c.added[r.key()] = true
		}
	}
}

// objection says why a recipe should not be added, "" where nothing speaks against it.
func (c *curation) objection(i int, f finding, added int) string {
	r, err := parseRecipe(f.Recipe)
	if err != nil {
		return "unreadable: " + err.Error()
	}
	key := r.key()
	for _, e := range c.entries {
		if !c.removed[e.bullet.ID] && e.recipe.key() == key {
			return "duplicate of [" + e.bullet.ID + "]"
		}
	}
	if c.added[key] {
		return "duplicate: the same calculation with more plausible operands was added"
	}
	if id := c.proven(); f.Unused > 0 && id != "" {
		return fmt.Sprintf("unsupported: it leaves %d quantities out and [%s] is proven", f.Unused, id)
	}
	if f.Unused > 0 && (len(r.slots) == 1 || f.Unused > 1 && f.Source == fromList) {
		return fmt.Sprintf("coincidence likely: it leaves %d of %d quantities out", f.Unused, c.f.Question)
	}
	best := c.f.Candidates[0]
	if i > 0 && best.Score-f.Score >= clearlyBetter {
		return "coincidence: a more plausible recipe gives the same value: " + calculation(best.Recipe)
	}
	if added >= maxAdds {
		return fmt.Sprintf("one task adds at most %d competing recipes", maxAdds)
	}
	return ""
}

// proven is the bullet of a recipe of the formula that helped often, "" for none.
func (c *curation) proven() string {
	for _, e := range c.entries {
		if e.bullet.Helpful >= trustedHelpful && e.bullet.Helpful > e.bullet.Harmful && !c.removed[e.bullet.ID] {
			return e.bullet.ID
		}
	}
	return ""
}

// calculation is the expression within a recipe's text.
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
	for _, part := range []struct {
		op   ace.OperationType
		text string
	}{{ace.OpAdd, "%d new"}, {ace.OpUpdate, "%d reworded"}, {ace.OpRemove, "%d removed"}, {ace.OpTag, "%d counted"}} {
		if n := count[part.op]; n > 0 {
			did = append(did, fmt.Sprintf(part.text, n))
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
		text += fmt.Sprintf("; turned down: %d, the first because: %s", n, c.out.Rejected[0].Reason)
	}
	return text + "."
}
