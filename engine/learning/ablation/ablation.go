// Package ablation measures what the bullets of a playbook do: it plans trials that answer items again
// without parts of the playbook, and compares the answers with those of the whole playbook, item by item.
// Only [Get] does I/O.
//
// A trial answers only the items whose answer cited a bullet that it leaves out; it is assumed not to change
// the other answers. A bullet that the model follows without citing it is not measured.
package ablation

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/learning/stats"
)

// Base holds the answers with the whole playbook to the items of an evaluation.
type Base struct {
	Book  *playbook.Playbook
	items map[int]ace.EvalItem // the labeled ones
	cites map[string][]int     // items by bullet, ascending
	held  map[int]bool         // held out of the ablation
}

// NewBase returns the answers of an evaluation. With [ace.Ablation.Prune], items are held out.
func NewBase(book *playbook.Playbook, items []ace.EvalItem, in ace.Ablation) *Base {
	b := &Base{Book: book, items: map[int]ace.EvalItem{}, cites: map[string][]int{}, held: map[int]bool{}}
	for _, item := range items {
		if item.Correct != nil {
			b.items[item.Index] = item
		}
	}
	for _, index := range b.heldOut(in) {
		b.held[index] = true
	}
	for _, index := range b.measured() {
		for _, id := range b.items[index].BulletIDs {
			if list := b.cites[id]; len(list) == 0 || list[len(list)-1] != index {
				b.cites[id] = append(list, index)
			}
		}
	}
	return b
}

func (b *Base) heldOut(in ace.Ablation) []int {
	if in.Prune == nil {
		return nil
	}
	all := slices.Sorted(maps.Keys(b.items))
	if from := in.Prune.HeldOutFrom; from > 0 {
		return slices.DeleteFunc(all, func(index int) bool { return index < from })
	}
	random(in.Seed).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:len(all)/2]
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// measured returns the labeled items that are not held out, ascending.
func (b *Base) measured() []int {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(b.items)), func(index int) bool { return b.held[index] })
}

// Labeled returns the number of labeled items that are not held out.
func (b *Base) Labeled() int { return len(b.items) - len(b.held) }

// Trials returns the trials of the first round that the budget allows, and the number of the others. Bullets
// come first, the most cited first.
func (b *Base) Trials(in ace.Ablation) (trials []ace.Trial, skipped int) {
	budget := in.Budget - len(b.held)
	for _, list := range b.groups(in) {
		cost := 0
		for _, t := range list {
			cost += len(t.Items)
		}
		switch {
		case cost == 0:
		case cost > budget:
			skipped += len(list)
		default:
			budget -= cost
			trials = append(trials, list...)
		}
	}
	return trials, skipped
}

// groups returns all trials in their order. The trials of a group are useful only together.
func (b *Base) groups(in ace.Ablation) (groups [][]ace.Trial) {
	add := func(kind ace.TrialKind, name string, without []string) {
		groups = append(groups, []ace.Trial{b.without(kind, name, without)})
	}
	var ids []string
	sections := map[string][]string{}
	var names []string
	for _, bullet := range b.Book.Bullets {
		ids = append(ids, bullet.ID)
		if sections[bullet.Section] == nil {
			names = append(names, bullet.Section)
		}
		sections[bullet.Section] = append(sections[bullet.Section], bullet.ID)
	}
	byCitations := slices.Clone(ids)
	slices.SortStableFunc(byCitations, func(x, y string) int { return len(b.cites[y]) - len(b.cites[x]) })
	for _, id := range byCitations {
		add(ace.TrialBullet, id, []string{id})
	}
	if in.Twins {
		for _, near := range playbook.NearDuplicates(b.Book, playbook.NearShare) {
			add(ace.TrialTwins, near.IDs[0], near.IDs)
		}
	}
	if in.Sections {
		for _, name := range names {
			add(ace.TrialSection, name, sections[name])
		}
	}
	if in.Control {
		groups = append(groups, []ace.Trial{{Kind: ace.TrialControl, Name: "whole playbook",
			Items: b.measured()}})
	}
	draw := random(in.Seed + 1)
	for pair := range in.Halves {
		halves := make([]ace.Trial, 2)
		for i := range halves {
			halves[i] = ace.Trial{Kind: ace.TrialHalf, Name: strconv.Itoa(pair + 1), Items: b.measured()}
		}
		for _, id := range ids {
			h := &halves[draw.IntN(2)]
			h.Without = append(h.Without, id)
		}
		groups = append(groups, halves)
	}
	return groups
}

// without returns a trial without some bullets on the items that cite one of them.
func (b *Base) without(kind ace.TrialKind, name string, ids []string) ace.Trial {
	t := ace.Trial{Kind: kind, Name: name, Without: ids}
	for _, id := range ids {
		t.Items = append(t.Items, b.cites[id]...)
	}
	slices.Sort(t.Items)
	t.Items = slices.Compact(t.Items)
	return t
}

// Rest returns the playbook without the bullets of a trial.
func (b *Base) Rest(t ace.Trial) *playbook.Playbook {
	rest := *b.Book
	rest.Bullets = slices.DeleteFunc(slices.Clone(b.Book.Bullets), func(bullet playbook.Bullet) bool {
		return slices.Contains(t.Without, bullet.ID)
	})
	return &rest
}

// Result is a trial with its answers so far.
type Result struct {
	ace.Trial
	Answers []ace.EvalItem
}

// results assigns the answers of a round to its trials, whose items must be those of the evaluation.
func (b *Base) results(trials []ace.Trial, items []ace.EvalItem) ([]Result, error) {
	list := make([]Result, len(trials))
	for i, t := range trials {
		list[i].Trial = t
		for _, index := range t.Items {
			if _, ok := b.items[index]; !ok {
				return nil, fmt.Errorf("trial %d names item %d, which the evaluation does not have", i+1,
					index)
			}
		}
	}
	for _, item := range items {
		if item.Trial < 1 || item.Trial > len(trials) {
			return nil, fmt.Errorf("an answer names trial %d of %d", item.Trial, len(trials))
		}
		r := &list[item.Trial-1]
		if !slices.Contains(r.Items, item.Index) {
			return nil, fmt.Errorf("an answer of trial %d is to item %d, which it does not have", item.Trial,
				item.Index)
		}
		r.Answers = append(r.Answers, item)
	}
	return list, nil
}

// Pairs counts items by the verdicts of the whole playbook and of a trial. Helped are those that only the
// whole playbook answers correctly: what the trial leaves out helped. Hurt are the reverse.
type Pairs struct {
	Both    int `json:"both"`
	Helped  int `json:"helped"`
	Hurt    int `json:"hurt"`
	Neither int `json:"neither"`
}

// Items returns the number of items.
func (p Pairs) Items() int { return p.Both + p.Helped + p.Hurt + p.Neither }

// Interval returns the 95 % interval of the effect: of the accuracy with the bullets minus that without them.
func (p Pairs) Interval() stats.Interval {
	return stats.NewcombePaired(p.Both, p.Helped, p.Hurt, p.Neither)
}

// pairs compares the answers of a trial with those of the whole playbook.
func (b *Base) pairs(r Result) (p Pairs) {
	for _, answer := range r.Answers {
		whole, ok := b.items[answer.Index]
		if !ok || answer.Correct == nil {
			continue
		}
		switch {
		case *whole.Correct && *answer.Correct:
			p.Both++
		case *whole.Correct:
			p.Helped++
		case *answer.Correct:
			p.Hurt++
		default:
			p.Neither++
		}
	}
	return p
}

// Effect is the effect of a bullet, or of another part of the playbook, on the accuracy. Difference is the
// accuracy with the part minus that without it on the Pairs, nil if no answer without it is known; Overall is
// the difference on all labeled items.
type Effect struct {
	Kind       ace.TrialKind `json:"kind"`
	Name       string        `json:"name"`
	Bullets    []string      `json:"bullet_ids,omitempty"`
	Helpful    int           `json:"helpful"` // votes
	Harmful    int           `json:"harmful"`
	Cited      int           `json:"cited"` // items
	Correct    int           `json:"correct_when_cited"`
	Pairs      Pairs         `json:"pairs"`
	Difference *float64      `json:"effect,omitempty"`
	Low        *float64      `json:"low,omitempty"` // of the 95 % interval
	High       *float64      `json:"high,omitempty"`
	P          *float64      `json:"p,omitempty"` // of the exact McNemar test
	Overall    *float64      `json:"effect_overall,omitempty"`
	// Halves is the effect on all labeled items by random halves, nil without pairs of halves.
	Halves *Halves `json:"halves,omitempty"`
}

// Halves is the mean, over pairs of random halves, of the accuracy of the half with a bullet minus that of
// the half without it. If the effects of bullets add up, it estimates the Shapley value. Low and High are nil
// for one pair.
type Halves struct {
	Pairs  int      `json:"pairs"`
	Effect float64  `json:"effect"`
	Low    *float64 `json:"low,omitempty"`
	High   *float64 `json:"high,omitempty"`
}

// Measured reports whether there are answers without the bullet to all items that cite it.
func (e *Effect) Measured() bool { return e.Cited > 0 && e.Pairs.Items() == e.Cited }

// Effects returns a row for each bullet, in the order of the playbook, and then for each other trial of the
// results.
func (b *Base) Effects(results []Result) []Effect {
	byBullet := map[string]Result{}
	var others []Effect
	for _, r := range results {
		switch r.Kind {
		case ace.TrialBullet:
			byBullet[r.Name] = r
		case ace.TrialSection, ace.TrialTwins, ace.TrialControl:
			others = append(others, b.effect(r))
		}
	}
	halves := b.halves(results)
	var list []Effect
	for _, bullet := range b.Book.Bullets {
		r, ok := byBullet[bullet.ID]
		if !ok {
			r.Trial = b.without(ace.TrialBullet, bullet.ID, []string{bullet.ID})
		}
		e := b.effect(r)
		e.Helpful = bullet.Helpful
		e.Harmful = bullet.Harmful
		e.Halves = halves[bullet.ID]
		list = append(list, e)
	}
	return append(list, others...)
}

func (b *Base) effect(r Result) Effect {
	e := Effect{Kind: r.Kind, Name: r.Name, Bullets: r.Without, Cited: len(r.Items), Pairs: b.pairs(r)}
	for _, index := range r.Items {
		if *b.items[index].Correct {
			e.Correct++
		}
	}
	n := e.Pairs.Items()
	if n == 0 {
		return e
	}
	difference := float64(e.Pairs.Helped - e.Pairs.Hurt)
	interval := e.Pairs.Interval()
	e.Difference = new(difference / float64(n))
	e.Low = &interval.Low
	e.High = &interval.High
	e.P = new(stats.McNemar(e.Pairs.Helped, e.Pairs.Hurt))
	e.Overall = new(difference / float64(b.Labeled()))
	return e
}

// halves returns the effects of the bullets by the complete pairs of halves.
func (b *Base) halves(results []Result) map[string]*Halves {
	differences := map[string][]float64{}
	open := map[string]Result{}
	for _, r := range results {
		failed := func(answer ace.EvalItem) bool { return answer.Error != "" }
		if r.Kind != ace.TrialHalf || len(r.Answers) < len(r.Items) || slices.ContainsFunc(r.Answers,
			failed) {
			continue
		}
		other, ok := open[r.Name]
		if !ok {
			open[r.Name] = r
			continue
		}
		difference := (correct(other) - correct(r)) / float64(len(r.Items))
		for _, id := range r.Without { // the other half has it
			differences[id] = append(differences[id], difference)
		}
		for _, id := range other.Without {
			differences[id] = append(differences[id], -difference)
		}
	}
	effects := map[string]*Halves{}
	for id, list := range differences {
		mean, interval := stats.Mean(list)
		h := &Halves{Pairs: len(list), Effect: mean}
		if interval.Known() {
			h.Low, h.High = &interval.Low, &interval.High
		}
		effects[id] = h
	}
	return effects
}

func correct(r Result) (n float64) {
	for _, answer := range r.Answers {
		if answer.Correct != nil && *answer.Correct {
			n++
		}
	}
	return n
}

// Order sorts effects, the largest first and unknown ones last.
func Order(list []Effect) {
	slices.SortStableFunc(list, func(x, y Effect) int {
		if x.Difference == nil || y.Difference == nil {
			return cmp.Compare(y.Pairs.Items(), x.Pairs.Items())
		}
		return cmp.Or(cmp.Compare(*y.Difference, *x.Difference), cmp.Compare(*y.Low, *x.Low))
	})
}
