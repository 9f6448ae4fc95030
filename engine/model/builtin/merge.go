package builtin

import "acescope/engine/ace"

// merged is the refined wording, joined with what another task wrote into the bullet
// since; "" where the bullet computes something else by now.
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

// join gives the one recipe the cues of the other, which has the same key.
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

// twins merges recipes that compute the same, as tasks that ran side by side may have
// added them: the first takes the cues and the counts of the second.
func (c *curation) twins() {
	first := map[string]entry{}
	for _, e := range c.entries {
		if c.removed[e.bullet.ID] || c.updated[e.bullet.ID] {
			continue
		}
		key := e.recipe.key()
		one, ok := first[key]
		if !ok {
			first[key] = e
			continue
		}
		if c.updated[one.bullet.ID] {
			continue // a third one waits for the next task
		}
		c.merge(one, e)
	}
}

func (c *curation) merge(one, other entry) {
	c.removed[other.bullet.ID], c.updated[one.bullet.ID] = true, true
	if joined := join(one.recipe, other.recipe).String(); joined != one.bullet.Content {
		c.accept(ace.Operation{Type: ace.OpUpdate, Section: Section, BulletID: one.bullet.ID, Content: joined,
			Reason: "merged with [" + other.bullet.ID + "], which computes the same"})
	}
	counts := map[string]int{}
	for tag, n := range map[string]int{helpful: other.bullet.Helpful, harmful: other.bullet.Harmful, neutral: other.bullet.Neutral} {
		if n > 0 {
			counts[tag] = n
		}
	}
	if len(counts) > 0 {
		c.accept(ace.Operation{Type: ace.OpTag, BulletID: one.bullet.ID, Metadata: counts, Reason: "the counts of [" + other.bullet.ID + "]"})
	}
	c.accept(ace.Operation{Type: ace.OpRemove, Section: other.bullet.Section, BulletID: other.bullet.ID,
		Reason: "merged into [" + one.bullet.ID + "]"})
}
