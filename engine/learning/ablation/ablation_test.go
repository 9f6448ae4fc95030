package ablation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
)

// book returns a playbook with bullets a to h in two sections. The first two are near-duplicates.
func book() *playbook.Playbook {
	b := &playbook.Playbook{NextID: 1}
	for i, id := range strings.Split("abcdefgh", "") {
		content := fmt.Sprintf("rule %s is unlike rule %d in all of its words %s", id, i,
			strings.Repeat(id, 4))
		if i < 2 {
			content = "divide the total revenue by the number of shares outstanding" + strings.Repeat("!", i)
		}
		b.Bullets = append(b.Bullets, playbook.Bullet{ID: id,
			Section: map[bool]string{true: "ONE", false: "TWO"}[i < 4],
			Content: content, Helpful: 8 - i})
	}
	return b
}

// answers are the items of ten problems: the bullet that each cites first. Item 0 is solved by a or b, item 3
// by c, items 4 and 5 by d; e breaks item 6; item 8 has no label; the others are solved without any bullet.
var cites = []string{"a", "b", "c", "c", "d", "d", "e", "f", "f", ""}

func answer(index int, has func(id string) bool) ace.EvalItem {
	item := ace.EvalItem{Index: index}
	correct := true
	switch index {
	case 0, 1:
		correct = has("a") || has("b")
	case 3:
		correct = has("c")
	case 4, 5:
		correct = has("d")
	case 6:
		correct = !has("e")
	}
	if index != 8 {
		item.Correct = &correct
	}
	if id := cites[index]; id != "" && has(id) {
		item.BulletIDs = []string{id, id}
	}
	return item
}

func evaluated(b *playbook.Playbook, n int) (items []ace.EvalItem) {
	for i := range n {
		item := answer(i%10, func(id string) bool { _, ok := b.Find(id); return ok })
		item.Index = i
		items = append(items, item)
	}
	return items
}

// run answers trials.
func run(t *testing.T, base *Base, trials []ace.Trial) []Result {
	t.Helper()
	var items []ace.EvalItem
	for i, trial := range trials {
		rest := evaluated(base.Rest(trial), 10*len(base.items))
		for _, index := range trial.Items {
			item := rest[index]
			item.Trial = i + 1
			items = append(items, item)
		}
	}
	results, err := base.results(trials, items)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func TestEffects(t *testing.T) {
	in := ace.Ablation{Budget: 1000, Sections: true, Twins: true, Control: true, Halves: 40}
	base := NewBase(book(), evaluated(book(), 10), in)
	trials, skipped := base.Next(in, nil)
	if skipped != 0 || base.Labeled() != 9 {
		t.Errorf("%d skipped, %d labeled", skipped, base.Labeled())
	}
	var effects []string
	halves := map[string]*Halves{}
	for _, e := range base.Effects(run(t, base, trials)) {
		text := fmt.Sprintf("%s %s %d/%d", e.Kind, e.Name, e.Correct, e.Cited)
		if e.Difference != nil {
			text += fmt.Sprintf(" %+.2f %+.2f", *e.Difference, *e.Overall)
			if !(*e.Low <= *e.Difference && *e.Difference <= *e.High) {
				t.Errorf("%s: interval %v to %v", text, *e.Low, *e.High)
			}
		}
		effects = append(effects, text)
		halves[e.Name] = e.Halves
	}
	want := []string{
		"bullet a 1/1 +0.00 +0.00", "bullet b 1/1 +0.00 +0.00", "bullet c 2/2 +0.50 +0.11",
		"bullet d 2/2 +1.00 +0.22",
		"bullet e 0/1 -1.00 -0.11", "bullet f 1/1 +0.00 +0.00", "bullet g 0/0", "bullet h 0/0",
		"twins a 2/2 +1.00 +0.22", "section ONE 6/6 +0.83 +0.56", "section TWO 1/2 -0.50 -0.11",
		"control whole playbook 8/9 +0.00 +0.00",
	}
	if !slices.Equal(effects, want) {
		t.Errorf("got\n%s", strings.Join(effects, "\n"))
	}
	// The effects add up except for the twins, so the halves find them: 2/9 for d, none for g.
	d := halves["d"]
	g := halves["g"]
	if d.Pairs != 40 || math.Abs(d.Effect-2.0/9) > 0.1 || *d.Low > 2.0/9 || *d.High < 2.0/9 ||
		*g.Low > 0 || *g.High < 0 {
		t.Errorf("halves: d %+v from %v to %v, g %+v", *d, *d.Low, *d.High, *g)
	}
}

// The most cited bullets are measured first, and pairs of halves only together.
func TestBudget(t *testing.T) {
	in := ace.Ablation{Budget: 5, Halves: 1}
	base := NewBase(book(), evaluated(book(), 10), in)
	trials, skipped := base.Trials(in)
	var names []string
	for _, trial := range trials {
		names = append(names, trial.Name)
	}
	if got := strings.Join(names, " "); got != "c d a" || skipped != 5 {
		t.Errorf("%q, %d skipped", got, skipped)
	}
	e := base.Effects(run(t, base, trials))
	if e[1].Measured() || e[1].Difference != nil || !e[0].Measured() {
		t.Errorf("%+v", e[:2])
	}
}

// rounds runs an ablation to its end.
func rounds(t *testing.T, in ace.Ablation, items int) (*Base, [][]Result) {
	t.Helper()
	base := NewBase(book(), evaluated(book(), items), in)
	var done [][]Result
	for {
		trials, _ := base.Next(in, done)
		if len(trials) == 0 {
			return base, done
		}
		done = append(done, run(t, base, trials))
	}
}

// Pruning leaves out what does not help, but one of the twins stays.
func TestPrune(t *testing.T) {
	in := ace.Ablation{Budget: 1000, Prune: &ace.Prune{Margin: 0.05, HeldOutFrom: 100}}
	base, done := rounds(t, in, 300)
	p := base.Pruned(in, done)
	if p == nil || !p.Kept || p.Before != 8 || p.Bullets != 3 || p.HeldOut != 180 || p.Broken != 0 ||
		p.Fixed != 20 {
		t.Fatalf("%+v", p)
	}
	without := done[len(done)-1][0].Without
	if !slices.Equal(without, []string{"b", "e", "f", "g", "h"}) {
		t.Errorf("without %q", without)
	}
	if p.Low > 0.1111 || p.High < 0.1112 {
		t.Errorf("difference 0.111, interval %v to %v", p.Low, p.High)
	}
}

// Bullets with a small effect are left out on demand; then the proof fails.
func TestPruneMinEffect(t *testing.T) {
	in := ace.Ablation{Budget: 1000, Prune: &ace.Prune{Margin: 0.01, MinEffect: 0.12, HeldOutFrom: 100}}
	base, done := rounds(t, in, 300)
	p := base.Pruned(in, done)
	if p == nil || p.Kept || p.Broken != 60 {
		t.Fatalf("%+v", p)
	}
	if without := done[len(done)-1][0].Without; !slices.Contains(without, "c") ||
		slices.Contains(without, "d") {
		t.Errorf("without %q", without)
	}
}

// Without --held-out, a random half is held out, of which no answer is used before the proof; the budget
// covers it.
func TestPruneHalf(t *testing.T) {
	in := ace.Ablation{Budget: 150, Seed: 7, Prune: &ace.Prune{Margin: 0.2}}
	base, done := rounds(t, in, 100)
	held := done[len(done)-1][0].Items
	answers := 0
	for _, round := range done {
		for _, r := range round {
			answers += len(r.Answers)
			if r.Kind != ace.TrialProof && slices.ContainsFunc(r.Items, func(i int) bool {
				return slices.Contains(held, i)
			}) {
				t.Errorf("%s %s uses held-out items", r.Kind, r.Name)
			}
		}
	}
	if len(held) != 45 || base.Labeled() != 45 || answers > in.Budget {
		t.Errorf("%d held out, %d labeled, %d answers", len(held), base.Labeled(), answers)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`[{"kind":"bullet","name":"a","without":["a"],"items":[0]}]`),
		[]byte(`{"index":0,"correct":true,"trial":1}`))
	f.Add([]byte(`[{"items":[-1]}]`), []byte(`{"trial":-3}`))
	f.Fuzz(func(t *testing.T, trials, items []byte) {
		get := Get(func(_ context.Context, ref ace.Ref, _ int64) ([]byte, error) {
			return map[string][]byte{"trials": trials, "items": items}[ref.SHA256], nil
		})
		whole, err := json.Marshal(evaluated(book(), 1)[0])
		if err != nil {
			t.Fatal(err)
		}
		first := Get(func(ctx context.Context, ref ace.Ref, n int64) ([]byte, error) {
			if ref.SHA256 == "whole" {
				return whole, nil
			}
			return get(ctx, ref, n)
		})
		in := ace.Ablation{Budget: 10, Halves: 1, Prune: &ace.Prune{HeldOutFrom: 1}}
		base, done, err := first.Load(t.Context(), book(), in, &ace.AblationProgress{
			Evaluated: []ace.Ref{{SHA256: "whole"}},
			Rounds: []ace.AblationRound{{Trials: ace.Ref{SHA256: "trials"},
				Items: []ace.Ref{{SHA256: "items"}}}},
		})
		if err != nil {
			return
		}
		base.Effects(slices.Concat(done...))
		if len(done[0]) > 0 {
			base.Next(in, done)
			base.Pruned(in, done)
		}
	})
}

func TestLoadWithoutItems(t *testing.T) {
	_, _, err := Get(nil).Load(t.Context(), book(), ace.Ablation{}, &ace.AblationProgress{})
	if !errors.Is(err, ErrNoItems) {
		t.Errorf("%v", err)
	}
}
