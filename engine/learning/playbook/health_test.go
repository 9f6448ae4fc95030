package playbook

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"acescope/engine/ace"
)

// past builds a history without a store.
func past(book *Playbook, merges ...[]ace.Operation) (*Playbook, *History) {
	h := NewHistory("main")
	h.lives = map[string]*BulletHistory{}
	for _, b := range book.Bullets {
		h.lives[b.ID] = &BulletHistory{Bullet: b, Counts: startCounts(b)}
	}
	h.size.begin(time.Unix(0, 0), h.lives)
	for i, ops := range merges {
		var done []ace.Operation
		book, done = Apply(book, ops)
		h.add(&Version{Operations: done, Source: Source{Branch: "main", Seq: i + 1, Hash: fmt.Sprint(i + 1),
			At: time.Unix(int64(i+1), 0), TaskID: fmt.Sprint("t", i+1)}}, nil)
		h.Seq = i + 1
	}
	return book, h
}

func of(h *Health, kind FindingKind) (list []Finding) {
	for _, f := range h.Findings {
		if f.Kind == kind {
			list = append(list, f)
		}
	}
	return list
}

func onlyFinding(t *testing.T, h *Health, kind FindingKind, severity Severity, says string) Finding {
	t.Helper()
	list := of(h, kind)
	if len(list) != 1 || list[0].Severity != severity || !strings.Contains(list[0].Text, says) ||
		list[0].Advice == "" || len(list[0].Numbers) == 0 {
		t.Fatalf("%+v, want one %s finding that says %q", list, severity, says)
	}
	return list[0]
}

func none(t *testing.T, h *Health, kind FindingKind) {
	t.Helper()
	if list := of(h, kind); len(list) > 0 {
		t.Fatalf("found %+v", list)
	}
}

func TestHarmful(t *testing.T) {
	book := book(bullet("a-00001", "A", "x", 0, 1), bullet("a-00002", "A", "y", 3, 2),
		bullet("a-00003", "A", "z", 4, 6),
		bullet("a-00004", "A", "w", 1, 5))
	list := of(Check(book, nil, Evidence{}), FindingHarmful)
	if len(list) != 2 || list[0].BulletIDs[0] != "a-00004" || list[0].Severity != SeverityError ||
		list[1].BulletIDs[0] != "a-00003" || list[1].Severity != SeverityWarning {
		t.Errorf("%+v", list)
	}
	if list[0].Text != "a-00004 was voted harmful 5 times and helpful once." {
		t.Error(list[0].Text)
	}
}

func TestNearDuplicates(t *testing.T) {
	book := book(
		bullet("a-00001", "A", "Always check the balance before a payment is made, and say so in the answer.",
			1, 0),
		bullet("a-00002", "A", "Ratio: answer = a / b", 1, 0),
		bullet("a-00003", "B", "always check the BALANCE before a payment is made; and say so in the answer",
			1, 0),
		bullet("a-00004", "A", "Ratio: answer = b / a", 1, 0),
		bullet("a-00005", "A", "Always check the balance before a payment is made, and then say so in the final answer.", 1, 0),
		bullet("a-00006", "A", "Never pay twice.", 1, 0),
		bullet("a-00007", "A", "!", 1, 0),
		bullet("a-00008", "A", "?", 1, 0),
	)
	f := onlyFinding(t, Check(book, nil, Evidence{}), FindingDuplicate, SeverityWarning,
		"a-00001, a-00003 and a-00005 say the same")
	if !slices.Equal(f.BulletIDs, []string{"a-00001", "a-00003", "a-00005"}) ||
		f.Numbers["share_most"] != 1 || f.Numbers["share_least"] >= 1 {
		t.Errorf("%+v", f)
	}
	book.Bullets = slices.Delete(book.Bullets, 2, 3)
	onlyFinding(t, Check(book, nil, Evidence{}), FindingDuplicate, SeverityInfo,
		"a-00001 and a-00005 say nearly the same")
	book.Bullets = book.Bullets[1:3]
	none(t, Check(book, nil, Evidence{}), FindingDuplicate)
}

// The index must find the same groups as a comparison of all pairs.
func TestNearDuplicatesFindsAll(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		p := &Playbook{}
		var pairs [][]uint64
		for i := range 60 {
			words := make([]string, 2+r.IntN(9))
			for j := range words {
				words[j] = fmt.Sprint("w", r.IntN(6))
			}
			p.Bullets = append(p.Bullets, bullet(fmt.Sprintf("a-%05d", i), "A", strings.Join(words, " "), 0,
				0))
			pairs = append(pairs, shingles(p.Bullets[i].Content))
		}
		grouped := map[string]bool{}
		leader := map[string]bool{}
		for _, g := range NearDuplicates(p, NearShare) {
			leader[g.IDs[0]] = true
			for _, id := range g.IDs[1:] {
				grouped[id] = true
			}
		}
		for i := range p.Bullets {
			alike := false
			for j := range i {
				if !grouped[p.Bullets[j].ID] && jaccard(pairs[i], pairs[j]) >= NearShare {
					alike = true
				}
			}
			if alike != grouped[p.Bullets[i].ID] {
				t.Fatalf("bullet %d: grouped %v, alike to an earlier leader %v", i, grouped[p.Bullets[i].ID],
					alike)
			}
		}
	}
}

func jaccard(a, b []uint64) float64 {
	both := 0
	for _, s := range a {
		if slices.Contains(b, s) {
			both++
		}
	}
	return float64(both) / float64(len(a)+len(b)-both)
}

func adds(from, to int) (merges [][]ace.Operation) {
	for i := from; i < to; i++ {
		merges = append(merges, []ace.Operation{op(ace.OpAdd, "", "A",
			fmt.Sprintf("lesson %d of %d tells what %d did", i, i*i, i*7))})
	}
	return merges
}

func TestGrowthWithoutEdit(t *testing.T) {
	f := onlyFinding(t, Check2(past(&Playbook{}, adds(0, GrowthAdds)...)), FindingGrowth, SeverityWarning,
		"No bullet was ever updated or removed; 40 bullets")
	if f.Numbers["adds"] != GrowthAdds {
		t.Errorf("%+v", f)
	}
	none(t, Check2(past(&Playbook{}, adds(0, GrowthAdds-1)...)), FindingGrowth)
	edited := append(adds(0, 30), []ace.Operation{op(ace.OpUpdate, "a-00001", "", "better")})
	none(t, Check2(past(&Playbook{}, append(edited, adds(30, 60)...)...)), FindingGrowth)
	onlyFinding(t, Check2(past(&Playbook{}, append(edited, adds(30, 70)...)...)), FindingGrowth,
		SeverityWarning, "last update or removal was in version 31; 40 bullets")
}

// Check2 checks the result of [past].
func Check2(book *Playbook, h *History) *Health { return Check(book, h, Evidence{}) }

func TestNeverUsed(t *testing.T) {
	tags := func(n int) (merges [][]ace.Operation) {
		for range n {
			merges = append(merges, []ace.Operation{tag("a-00002", map[string]int{"helpful": 1})})
		}
		return merges
	}
	first := []ace.Operation{op(ace.OpAdd, "", "A", "one thing"), op(ace.OpAdd, "", "A", "something else")}
	merges := append([][]ace.Operation{first}, tags(UnusedAfter)...)
	f := onlyFinding(t, Check2(past(&Playbook{}, merges...)), FindingUnused, SeverityInfo,
		"a-00001 got no vote in the 50 versions")
	if !slices.Equal(f.BulletIDs, []string{"a-00001"}) {
		t.Errorf("%+v", f)
	}
	none(t, Check2(past(&Playbook{}, append([][]ace.Operation{first}, tags(UnusedAfter-1)...)...)),
		FindingUnused)
	used := append(append([][]ace.Operation{first},
		[]ace.Operation{tag("a-00001", map[string]int{"neutral": 1})}), tags(99)...)
	none(t, Check2(past(&Playbook{}, used...)), FindingUnused)
}

func TestCollapse(t *testing.T) {
	remove := func(from, to int) (ops []ace.Operation) {
		for i := from; i < to; i++ {
			ops = append(ops, op(ace.OpRemove, fmt.Sprintf("a-%05d", i), "", ""))
		}
		return ops
	}
	f := onlyFinding(t, Check2(past(&Playbook{}, append(adds(0, 30), remove(1, 11))...)), FindingCollapse,
		SeverityError, "Version 31 (task t31) shrank the playbook from 30 bullets to 20")
	if f.By == nil || f.By.TaskID != "t31" {
		t.Errorf("%+v", f.By)
	}
	none(t, Check2(past(&Playbook{}, append(adds(0, 30), remove(1, 9))...)), FindingCollapse)
	none(t, Check2(past(&Playbook{}, append(adds(0, CollapseLeast-1), remove(1, 9))...)), FindingCollapse)

	slow := adds(0, 398)
	for i := 1; i <= 40*6; i += 6 {
		slow = append(slow, remove(i, i+6), remove(i+300, i+301))
	}
	e := onlyFinding(t, Check2(past(&Playbook{}, slow...)), FindingErosion, SeverityError,
		"shrank the playbook from 398 bullets to")
	if e.Numbers["from"] != 399 || e.Numbers["bullets_after"] > 199 {
		t.Errorf("%+v", e)
	}
	none(t, Check2(past(&Playbook{}, slow...)), FindingCollapse)

	large := &Playbook{}
	var ops []ace.Operation
	for i := range 6 {
		content := strings.Repeat("a long text ", 1100)
		large.Bullets = append(large.Bullets, bullet(fmt.Sprintf("a-%05d", i+1), "A", content, 0, 0))
		ops = append(ops, op(ace.OpUpdate, fmt.Sprintf("a-%05d", i+1), "",
			fmt.Sprint("twenty short bytes ", i)))
	}
	onlyFinding(t, Check2(past(large, ops)), FindingCollapse, SeverityError,
		"from 6 bullets to 6, from 79200 bytes to 120.")

	long := strings.Repeat("a long text that says much ", 20)
	var first, second []ace.Operation
	for i := range 12 {
		first = append(first, op(ace.OpAdd, "", "A", fmt.Sprint(long, i)))
		second = append(second, op(ace.OpUpdate, fmt.Sprintf("a-%05d", i+1), "", fmt.Sprint("short ", i)))
	}
	onlyFinding(t, Check2(past(&Playbook{}, first, second)), FindingCollapse, SeverityError,
		"from 12 bullets to 12, from 6494 bytes to 86")
}

func TestFlatAccuracy(t *testing.T) {
	outcomes := func(tasks int, right func(i int) bool) (e Evidence) {
		for i := range tasks {
			at := time.Unix(0, int64(float64(i+1)/float64(tasks)*300e9))
			e.Outcomes = append(e.Outcomes, Outcome{At: at, Correct: right(i)})
		}
		slices.Reverse(e.Outcomes)
		return e
	}
	half := func(i int) bool { return i%2 == 0 }
	check := func(e Evidence) *Health { return Check(&Playbook{}, rising, e) }
	f := onlyFinding(t, check(outcomes(1200, half)), FindingFlat, SeverityError,
		"The helpful votes rose from 99 to 299, but accuracy went from 50 % (45–55) in the first 400 tasks "+
			"to 50 % (45–55) in the last 400: by 7 points at most (95 % intervals).")
	if f.Numbers["tasks"] != 1200 {
		t.Errorf("%+v", f)
	}
	none(t, check(outcomes(90, func(i int) bool { return half(i) || i > 60 })), FindingFlat)
	none(t, check(outcomes(90, func(int) bool { return true })), FindingFlat)
	still, quiet := past(&Playbook{}, adds(0, 10)...)
	none(t, Check(still, quiet, outcomes(1200, half)), FindingFlat)
	for tasks, why := range map[int]string{FlatTasks - 1: "only 29 graded tasks",
		90: "90 graded tasks are too few to tell: accuracy changed by -24 to +24 points"} {
		h := check(outcomes(tasks, half))
		none(t, h, FindingFlat)
		if !slices.ContainsFunc(h.Unchecked, func(u UncheckedReason) bool {
			return u.Kind == FindingFlat && strings.Contains(u.Why, why)
		}) {
			t.Errorf("%+v", h.Unchecked)
		}
	}
}

func TestZeroAccuracyAndGap(t *testing.T) {
	var e Evidence
	for i := range 90 {
		e.Outcomes = append(e.Outcomes, Outcome{At: time.Unix(int64(i), 0), Correct: i < 50 && i%5 > 0})
	}
	h := Check(&Playbook{}, rising, e)
	onlyFinding(t, h, FindingZero, SeverityError,
		"None of the last 40 answers was correct; the accuracy is below 9 %")
	if slices.Contains(h.Checked, FindingGap) {
		t.Error("a gap needs an evaluation")
	}
	e.Outcomes = e.Outcomes[:50]
	e.Evaluations = []Evaluation{{"1", 16, 20}, {"2", 0, 20}}
	h = Check(&Playbook{}, rising, e)
	none(t, h, FindingZero)
	onlyFinding(t, h, FindingGap, SeverityError,
		"30 training tasks were answered with 80 % (63–90) accuracy, 20 held-out items with 0 % (0–16): "+
			"56 to 90 points less")
	e.Evaluations[0].Playbook = rising.Head()
	none(t, Check(&Playbook{}, rising, e), FindingGap) // the evaluation of this version counts
}

func TestRejectionRate(t *testing.T) {
	merges := make([][]ace.Operation, 90)
	for i := range merges {
		for j := range 5 {
			kind := ace.OpAdd
			if j < 2 || j == 2 && i%5 == 0 {
				kind = "REWRITE"
			}
			merges[i] = append(merges[i], op(kind, "", "A", fmt.Sprintf("lesson %d of %d", j, i)))
		}
	}
	onlyFinding(t, Check2(past(&Playbook{}, merges...)), FindingRejected, SeverityWarning,
		"198 of 450 operations were rejected, 44 % (34–54)")
	none(t, Check2(past(&Playbook{}, merges[:RejectedTasks-1]...)), FindingRejected)
	book, h := past(&Playbook{}, adds(0, 90)...)
	if slices.Contains(Check(book, h, Evidence{}).Checked, FindingRejected) {
		t.Error("the versions do not tell which operations the curator rejected")
	}
	onlyFinding(t, Check(book, h, Evidence{Proposals: Proposals{90, 447, 198}}), FindingRejected,
		SeverityWarning,
		"198 of 447 operations")
	none(t, Check(book, h, Evidence{Proposals: Proposals{90, 447, 70}}), FindingRejected)
}

func TestHealthOfAFile(t *testing.T) {
	h := Check(book(), nil, Evidence{})
	if len(h.Findings) != 0 || len(h.Checked) != 2 || len(h.Unchecked) != 8 || len(h.FalseAlarms) != 2 {
		t.Errorf("%+v", h)
	}
}

func TestFindingsAreBounded(t *testing.T) {
	p := &Playbook{}
	for i := range 3000 {
		p.Bullets = append(p.Bullets, bullet(fmt.Sprintf("a-%05d", i), "A", "the very same", 0, 9))
	}
	h := Check(p, nil, Evidence{})
	if len(of(h, FindingHarmful)) != MaxFindings || h.Dropped != 3000-MaxFindings {
		t.Errorf("%d, %d dropped", len(of(h, FindingHarmful)), h.Dropped)
	}
	if f := of(h, FindingDuplicate); len(f) != 1 || len(f[0].BulletIDs) != maxFindingIDs ||
		f[0].More != 2000 || f[0].Numbers["bullets"] != 3000 {
		t.Errorf("%+v", f)
	}
}

// BenchmarkHealth10000 checks playbooks of 10,000 bullets of about forty words: with a large
// vocabulary, with a small one, and nearly identical.
func BenchmarkHealth10000(b *testing.B) {
	for _, vocabulary := range []int{20_000, 300, 1} {
		r := rand.New(rand.NewPCG(1, 2))
		p := &Playbook{}
		for i := range 10_000 {
			var text strings.Builder
			for range 40 {
				fmt.Fprintf(&text, "word%d ", r.IntN(vocabulary))
			}
			fmt.Fprintf(&text, "in case %d", i)
			p.Bullets = append(p.Bullets, bullet(fmt.Sprintf("a-%05d", i), "A", text.String(), i%7, i%5))
		}
		b.Run(fmt.Sprintf("words=%d", vocabulary), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Check(p, nil, Evidence{})
			}
		})
	}
}

// Check and Diff accept every playbook that Parse returns.
func FuzzCheck(f *testing.F) {
	f.Add("## A\n[a-00001] helpful=1 harmful=2 :: x / y\n[a-00002] helpful=0 harmful=0 :: x / y\n",
		"## A\n[a-00001] z\n")
	f.Add("[a-00001] 財務 !", `{"skills": {"a": {"id": "a", "content": "..."}}}`)
	f.Fuzz(func(t *testing.T, one, other string) {
		a, _, err := Parse(strings.NewReader(one))
		if err != nil {
			t.Skip()
		}
		Check(a, nil, Evidence{})
		if d := Diff(a, a); !d.Empty() || d.Same != len(a.Bullets) {
			t.Fatalf("%+v", d)
		}
		b, _, err := Parse(strings.NewReader(other))
		if err != nil {
			t.Skip()
		}
		there, back := Diff(a, b), Diff(b, a)
		if len(there.Added) != len(back.Removed) || len(there.Removed) != len(back.Added) ||
			len(there.Changed) != len(back.Changed) ||
			there.Same+len(there.Changed)+len(there.Added) != len(b.Bullets) {
			t.Fatalf("there %+v, back %+v", there, back)
		}
	})
}

// A spent budget is a finding; without a budget it is not checked.
func TestBudgetOverrun(t *testing.T) {
	h := NewHistory("b")
	spent := Evidence{Usage: ace.Usage{InputTokens: 6014}, Budget: &ace.Budget{Tokens: 6000}}
	onlyFinding(t, Check(&Playbook{}, h, spent), FindingBudget, SeverityWarning,
		"budget: 6014 of 6000 tokens used")
	for _, e := range []Evidence{{},
		{Usage: ace.Usage{InputTokens: 5999}, Budget: &ace.Budget{Tokens: 6000}}} {
		if health := Check(&Playbook{}, h, e); len(health.Findings) > 0 {
			t.Errorf("%+v: %+v", e, health.Findings)
		}
	}
}
