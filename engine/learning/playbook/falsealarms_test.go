package playbook

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"acescope/engine/ace"
)

// A simulation draws playbooks with histories and evidence, and counts how often Check finds a kind in them.
type simulation func(r *rand.Rand) (*Playbook, *History, Evidence)

// shares returns the share of runs in which each kind is found.
func (s simulation) shares(runs int) map[FindingKind]float64 {
	r := rand.New(rand.NewPCG(1, 2))
	found := map[FindingKind]int{}
	for range runs {
		seen := map[FindingKind]bool{}
		for _, f := range Check(s(r)).Findings {
			if !seen[f.Kind] {
				found[f.Kind]++
			}
			seen[f.Kind] = true
		}
	}
	shares := map[FindingKind]float64{}
	for kind, n := range found {
		shares[kind] = float64(n) / float64(runs)
	}
	return shares
}

// Healthy playbooks have a finding at most as often as its rate says. Where a threshold divides healthy from
// unhealthy, the playbooks are at the threshold, the worst case. The simulation of whole histories found
// nothing in 1200 of them either, which take minutes.
func TestFalseAlarms(t *testing.T) {
	of := func(kinds ...FindingKind) []FindingKind { return kinds }
	for _, c := range []struct {
		kinds []FindingKind
		runs  int
		cases []simulation
	}{
		{of(FindingCollapse, FindingErosion, FindingDuplicate), 150,
			[]simulation{evolving(40), evolving(150)}},
		{of(FindingGrowth), 4000, []simulation{edited(0.10, 100), edited(0.10, 400), edited(0.30, 100)}},
		{of(FindingUnused), 400, []simulation{
			voted(100, 200, UnusedShare), voted(20, 80, UnusedShare), voted(200, 120, 0.2)}},
		{of(FindingHarmful), 1000, []simulation{
			votes(70, 0, 0, HarmfulShare), votes(20, 0, 0, HarmfulShare), votes(300, 0, 0, HarmfulShare)}},
		{of(FindingRejected), 4000, []simulation{
			rejecting(20, RejectedShare, true), rejecting(60, RejectedShare, true),
			rejecting(200, RejectedShare, true),
			rejecting(20, RejectedShare, false), rejecting(200, RejectedShare, false)}},
		{of(FindingZero), 8000, []simulation{learning(40, ZeroAccuracy, ZeroAccuracy),
			learning(200, ZeroAccuracy, 0.5)}},
		{of(FindingGap), 4000, []simulation{
			held(40, 0.9, 0.8, 40), held(300, 0.6, 0.5, 100), held(100, 0.3, 0.2, 30),
			held(90, 0.5, 0.5, 50)}},
		{of(FindingFlat), 4000, []simulation{
			learning(30, 0.4, 0.6), learning(90, 0.4, 0.5), learning(300, 0.5, 0.6),
			learning(900, 0.7, 0.8)}},
	} {
		for i, s := range c.cases {
			shares := s.shares(c.runs)
			for _, kind := range c.kinds {
				if got := shares[kind]; got > falseAlarms[kind] {
					t.Errorf("%s, case %d: %.1f %% false alarms, %.0f %% are stated", kind, i, 100*got,
						100*falseAlarms[kind])
				} else {
					t.Logf("%s, case %d: %.1f %%", kind, i, 100*got)
				}
			}
		}
	}
	for _, kind := range findingOrder {
		if falseAlarms[kind] == 0 && kind != FindingBudget { // which compares two known numbers
			t.Errorf("%s has no rate", kind)
		}
	}
}

// Unhealthy playbooks have the finding.
func TestDetection(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  FindingKind
		least float64
		s     simulation
	}{
		{"a rise of nothing in 600 tasks", FindingFlat, 0.4, learning(600, 0.5, 0.5)},
		{"a rise of nothing in 1500 tasks", FindingFlat, 0.85, learning(1500, 0.5, 0.5)},
		{"90 tasks at 0 %", FindingZero, 1, learning(90, 0, 0)},
		{"80 % to 0 %", FindingGap, 1, held(40, 0.8, 0, 20)},
		{"80 % to 50 %", FindingGap, 0.8, held(100, 0.8, 0.5, 100)},
		{"198 of 447 rejected", FindingRejected, 0.99, rejecting(90, 0.44, true)},
		{"10 votes on one bullet of 70, 80 % harmful", FindingHarmful, 0.6, votes(70, 10, 0.8, 0.1)},
		{"20 votes on one bullet of 70, 80 % harmful", FindingHarmful, 0.95, votes(70, 20, 0.8, 0.1)},
		{"no edit", FindingGrowth, 1, edited(0, 60)},
		{"no vote", FindingUnused, 1, voted(50, 80, 0)},
	} {
		if got := c.s.shares(300)[c.kind]; got < c.least {
			t.Errorf("%s: %s is found in %.0f %%, want at least %.0f %%", c.name, c.kind, 100*got,
				100*c.least)
		} else {
			t.Logf("%s: %s is found in %.0f %%", c.name, c.kind, 100*got)
		}
	}
}

// text draws a text from a vocabulary in which the n-th word has a frequency of about 1/n.
func text(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "w%d ", int(math.Exp(r.Float64()*math.Log(3000))))
	}
	return b.String()
}

func poisson(r *rand.Rand, mean float64) int {
	n, p := 0, r.Float64()
	for ; p > math.Exp(-mean); n++ {
		p *= r.Float64()
	}
	return n
}

// evolving simulates a playbook that grows to 20 to 80 bullets of 8 to 60 words; then about as many are added
// as removed, and each version rewrites one bullet in three.
func evolving(tasks int) simulation {
	return func(r *rand.Rand) (*Playbook, *History, Evidence) {
		full := 20 + r.IntN(60)
		fresh := func() string { return text(r, 8+r.IntN(53)) }
		var ids []string
		var merges [][]ace.Operation
		next := 0
		for range tasks {
			var ops []ace.Operation
			added := poisson(r, 1.5)
			for range added {
				next++
				ids = append(ids, fmt.Sprintf("a-%05d", next))
				ops = append(ops, op(ace.OpAdd, "", "A", fresh()))
			}
			for range added {
				if r.Float64() < float64(len(ids))/float64(2*full) {
					i := r.IntN(len(ids))
					ops = append(ops, op(ace.OpRemove, ids[i], "", ""))
					ids = append(ids[:i], ids[i+1:]...)
				}
			}
			if len(ids) > 0 && r.IntN(3) == 0 {
				ops = append(ops, op(ace.OpUpdate, ids[r.IntN(len(ids))], "", fresh()))
			}
			merges = append(merges, ops)
		}
		book, h := past(&Playbook{}, merges...)
		return book, h, Evidence{}
	}
}

// edited simulates a curator that edits with a share of its changes and adds with the others.
func edited(share float64, changes int) simulation {
	return func(r *rand.Rand) (*Playbook, *History, Evidence) {
		h := NewHistory("main")
		h.size.begin(time.Unix(0, 0), nil)
		for range changes {
			if h.since++; r.Float64() < share {
				h.since, h.edit = 0, &Source{Seq: 1}
			}
		}
		return &Playbook{}, h, Evidence{}
	}
}

// voted simulates bullets of the first version that each later version votes on with a probability.
func voted(bullets, versions int, share float64) simulation {
	return func(r *rand.Rand) (*Playbook, *History, Evidence) {
		h := NewHistory("main")
		h.Seq, h.lives = versions, map[string]*BulletHistory{}
		book := &Playbook{}
		h.size.begin(time.Unix(0, 0), nil)
		for i := range bullets {
			b := bullet(fmt.Sprintf("a-%05d", i+1), "A", fmt.Sprint(i), 0, 0)
			for range versions {
				if r.Float64() < share {
					b.Helpful++
				}
			}
			h.lives[b.ID] = &BulletHistory{Bullet: b, Tags: b.Helpful}
			book.Bullets = append(book.Bullets, b)
		}
		return book, h, Evidence{}
	}
}

// votes simulates bullets with up to 20 votes; the first has n votes, of which a share is harmful, unless n
// is 0.
func votes(bullets, n int, share, others float64) simulation {
	return func(r *rand.Rand) (*Playbook, *History, Evidence) {
		book := &Playbook{}
		for i := range bullets {
			b := bullet(fmt.Sprintf("a-%05d", i+1), "A", fmt.Sprint(i), 0, 0)
			count, harmful := r.IntN(21), others
			if i == 0 && n > 0 {
				count, harmful = n, share
			}
			for range count {
				if r.Float64() < harmful {
					b.Harmful++
				} else {
					b.Helpful++
				}
			}
			book.Bullets = append(book.Bullets, b)
		}
		return book, nil, Evidence{}
	}
}

// rejecting simulates tasks of 1 to 8 operations, all or none of which are rejected, or with alike false,
// each for itself.
func rejecting(tasks int, share float64, alike bool) simulation {
	return func(r *rand.Rand) (*Playbook, *History, Evidence) {
		known := Proposals{Tasks: tasks}
		for range tasks {
			n, all := 1+r.IntN(8), r.Float64() < share
			known.Operations += n
			for range n {
				if alike && all || !alike && r.Float64() < share {
					known.Rejected++
				}
			}
		}
		return &Playbook{}, rising, Evidence{Proposals: known}
	}
}

// rising is a history in which each of 300 versions adds a helpful vote.
var rising = func() *History {
	merges := [][]ace.Operation{{op(ace.OpAdd, "", "A", "one thing")}}
	for range 299 {
		merges = append(merges, []ace.Operation{tag("a-00001", map[string]int{"helpful": 1})})
	}
	_, h := past(&Playbook{}, merges...)
	return h
}()

// learning simulates tasks with one accuracy in their first third and another in the last, and between them
// in between.
func learning(tasks int, first, last float64) simulation {
	return func(r *rand.Rand) (*Playbook, *History, Evidence) {
		var known Evidence
		for i := range tasks {
			p := first + (last-first)*min(max(3*float64(i)/float64(tasks)-1, 0), 1)
			at := time.Unix(0, int64(float64(i+1)/float64(tasks)*300e9))
			known.Outcomes = append(known.Outcomes, Outcome{At: at, Correct: r.Float64() < p})
		}
		return &Playbook{}, rising, known
	}
}

// held simulates tasks with one accuracy, and an evaluation of items with another.
func held(tasks int, train, test float64, items int) simulation {
	s := learning(tasks, train, train)
	return func(r *rand.Rand) (*Playbook, *History, Evidence) {
		book, h, known := s(r)
		e := Evaluation{Labeled: items}
		for range items {
			if r.Float64() < test {
				e.Correct++
			}
		}
		known.Evaluations = []Evaluation{e}
		return book, h, known
	}
}
