package ablation

import (
	"cmp"
	"maps"
	"slices"

	"acescope/engine/ace"
)

// maxPruned bounds the rounds that restore bullets.
const maxPruned = 8

// Next returns the trials of the next round: first all that measure; then, if the playbook is to be pruned,
// one without the bullets that were not shown to help, and further ones as long as some have to be restored;
// then the proof on the held-out items. It returns none at the end.
func (b *Base) Next(in ace.Ablation, rounds [][]Result) (trials []ace.Trial, skipped int) {
	if len(rounds) == 0 {
		return b.Trials(in)
	}
	last := rounds[len(rounds)-1][0]
	if in.Prune == nil || last.Kind == ace.TrialProof {
		return nil, 0
	}
	least := in.Prune.MinEffect * float64(b.Labeled()) // items
	pruned := b.without(ace.TrialPruned, "pruned", b.candidates(rounds[0], least))
	if last.Kind == ace.TrialPruned {
		pruned = b.restore(last, least)
	}
	spent := 0
	for _, round := range rounds {
		for _, r := range round {
			spent += len(r.Items)
		}
	}
	fits := spent+len(pruned.Items)+len(b.held) <= in.Budget
	if len(pruned.Items) > 0 && fits && len(rounds) <= maxPruned {
		return []ace.Trial{pruned}, 0
	}
	if len(pruned.Without) == 0 || len(b.held) == 0 {
		return nil, 0
	}
	held := slices.Sorted(maps.Keys(b.held))
	return []ace.Trial{{Kind: ace.TrialProof, Name: "held-out items", Without: pruned.Without, Items: held}},
		0
}

// candidates returns the bullets to leave out: those that no item cites, and those that were measured on all
// items that cite them and helped at most least more items than they hurt.
func (b *Base) candidates(measured []Result, least float64) (ids []string) {
	for _, e := range b.Effects(measured) {
		if e.Kind != ace.TrialBullet {
			break
		}
		if e.Cited == 0 || e.Measured() && float64(e.Pairs.Helped-e.Pairs.Hurt) <= least {
			ids = append(ids, e.Name)
		}
	}
	return ids
}

// restore returns a trial that leaves out fewer bullets than the last one, on its broken items: those that
// only the whole playbook answers correctly. Of the bullets that more than least broken items cite, it
// restores the more cited half, because one of several bullets that replace each other is enough. If there is
// no such bullet, the trial has no items.
func (b *Base) restore(last Result, least float64) ace.Trial {
	t := ace.Trial{Kind: last.Kind, Name: last.Name, Without: last.Without}
	var broken []int
	cited := map[string]int{}
	for _, answer := range last.Answers {
		whole := b.items[answer.Index]
		if !*whole.Correct || answer.Correct == nil || *answer.Correct {
			continue
		}
		broken = append(broken, answer.Index)
		for _, id := range last.Without {
			if slices.Contains(whole.BulletIDs, id) {
				cited[id]++
			}
		}
	}
	maps.DeleteFunc(cited, func(_ string, items int) bool { return float64(items) <= least })
	needed := slices.SortedFunc(maps.Keys(cited), func(x, y string) int {
		return cmp.Or(cmp.Compare(cited[y], cited[x]), cmp.Compare(x, y))
	})
	if len(needed) == 0 {
		return t
	}
	needed = needed[:(len(needed)+1)/2]
	t.Without = slices.DeleteFunc(slices.Clone(last.Without), func(id string) bool {
		return slices.Contains(needed, id)
	})
	t.Items = broken
	return t
}

// Pruned returns the outcome of the proof, or nil if the rounds have no proof.
func (b *Base) Pruned(in ace.Ablation, rounds [][]Result) *ace.Pruned {
	if len(rounds) == 0 {
		return nil
	}
	proof := rounds[len(rounds)-1][0]
	if proof.Kind != ace.TrialProof {
		return nil
	}
	pairs := b.pairs(proof)
	interval := pairs.Interval()
	return &ace.Pruned{
		Playbook: proof.Playbook,
		Before:   len(b.Book.Bullets),
		Bullets:  len(b.Book.Bullets) - len(proof.Without),
		HeldOut:  pairs.Items(),
		Correct:  pairs.Both + pairs.Hurt,
		Fixed:    pairs.Hurt,
		Broken:   pairs.Helped,
		Low:      -interval.High,
		High:     -interval.Low,
		Kept:     -interval.High >= -in.Prune.Margin,
	}
}
