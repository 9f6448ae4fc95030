package playbook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"acescope/engine/ace"
)

func op(kind ace.OperationType, id, section, content string) ace.Operation {
	return ace.Operation{Type: kind, BulletID: id, Section: section, Content: content}
}

func tag(id string, counts map[string]int) ace.Operation {
	return ace.Operation{Type: ace.OpTag, BulletID: id, Metadata: counts}
}

func TestApplyOutcomes(t *testing.T) {
	base := &Playbook{NextID: 4, Bullets: []Bullet{
		{ID: "calc-00001", Section: "FORMULAS & CALCULATIONS", Content: "a = b  / c"},
		{ID: "calc-00002", Section: "FORMULAS & CALCULATIONS", Content: "keep", Helpful: maxCount},
		{ID: "misc-00003", Section: "OTHERS", Content: "other"},
	}}
	long := strings.Repeat("é", MaxContent)
	for _, c := range []struct {
		name string
		op   ace.Operation
		fate ace.Outcome
		says string
	}{
		{"add", op(ace.OpAdd, "mine-00001", "formulas_and_calculations", "new\r\none\x1b"),
			ace.OutcomeAccepted, ""},
		{"add in lower case", op("add ", "", "NEW SECTION", "x"), ace.OutcomeAccepted, ""},
		{"add empty", op(ace.OpAdd, "", "A", " \n\x07 "), ace.OutcomeRejected, "empty"},
		{"add long", op(ace.OpAdd, "", "A", long), ace.OutcomeRejected, "8192 bytes"},
		{"add duplicate", op(ace.OpAdd, "", "Formulas & Calculations", " a =\nb / c"), ace.OutcomeRejected,
			"exact duplicate of calc-00001"},
		{"add the same elsewhere", op(ace.OpAdd, "", "OTHERS", "a = b / c"), ace.OutcomeAccepted, ""},
		{"add bad counter", ace.Operation{Type: ace.OpAdd, Content: "x",
			Metadata: map[string]int{"helpful": -1}}, ace.OutcomeRejected, "helpful=-1"},
		{"update", op(ace.OpUpdate, "calc-00001", "", "a = b / d"), ace.OutcomeAccepted, ""},
		{"update the same", op(ace.OpUpdate, "calc-00002", "", "keep "), ace.OutcomeIgnored,
			"already the same"},
		{"update to a duplicate", op(ace.OpUpdate, "calc-00002", "", "a = b / c"), ace.OutcomeRejected,
			"exact duplicate of calc-00001"},
		{"update white space", op(ace.OpUpdate, "calc-00001", "", "a = b / c"), ace.OutcomeAccepted, ""},
		{"update unknown", op(ace.OpUpdate, "calc-00009", "", "x"), ace.OutcomeRejected,
			`bullet "calc-00009" not found`},
		{"update nothing", op(ace.OpUpdate, "", "", "x"), ace.OutcomeRejected, "names no bullet"},
		{"tag", tag("calc-00001", map[string]int{"helpful": 1, "neutral": 0}), ace.OutcomeAccepted, ""},
		{"tag with nothing", tag("calc-00001", nil), ace.OutcomeIgnored, "no counter"},
		{"tag with zero", tag("calc-00001", map[string]int{"harmful": 0}), ace.OutcomeIgnored, "no counter"},
		{"tag below zero", tag("calc-00001", map[string]int{"harmful": -1}), ace.OutcomeRejected,
			"harmful=-1"},
		{"tag above all", tag("calc-00002", map[string]int{"helpful": 1}), ace.OutcomeRejected,
			"leave its range"},
		{"tag another counter", tag("calc-00001", map[string]int{"useful": 1}), ace.OutcomeRejected,
			"more than the counters"},
		{"remove", op(ace.OpRemove, "misc-00003", "", ""), ace.OutcomeAccepted, ""},
		{"remove unknown", op(ace.OpRemove, "misc-00009", "", ""), ace.OutcomeRejected, "removed meanwhile"},
		{"merge", op(ace.OpMerge, "calc-00001", "", "x"), ace.OutcomeRejected,
			"names no other bullet to merge"},
		{"no type", op("", "", "A", "x"), ace.OutcomeUnparsable, "no type"},
		{"other type", op("SWAP", "", "A", "x"), ace.OutcomeUnparsable, `unknown operation type "SWAP"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := base.Hash()
			next, done := Apply(base, []ace.Operation{c.op})
			if base.Hash() != before {
				t.Fatal("the input playbook was changed")
			}
			if len(done) != 1 || done[0].Outcome != c.fate || !strings.Contains(done[0].Reason, c.says) ||
				c.says == "" && done[0].Reason != "" {
				t.Fatalf("%+v", done)
			}
			if changed := next.Hash() != before; changed != (c.fate == ace.OutcomeAccepted) {
				t.Fatalf("changed: %v, fate %s", changed, c.fate)
			}
			checkValid(t, next)
		})
	}
}

func TestApplyInOrder(t *testing.T) {
	p, done := Apply(&Playbook{}, []ace.Operation{
		op(ace.OpAdd, "", "FORMULAS & CALCULATIONS", "one"),
		op(ace.OpAdd, "", "Return Ratios", "two"),
		{Type: ace.OpAdd, Section: "formulas and calculations", Content: "three",
			Metadata: map[string]int{"helpful": 2, "harmful": 0}},
		op(ace.OpRemove, "calc-00001", "", ""),
		tag("calc-00001", map[string]int{"helpful": 1}),
		op(ace.OpAdd, "", "FORMULAS & CALCULATIONS", "one"),
		op(ace.OpUpdate, "rr-00002", "elsewhere", "two, better"),
		tag("rr-00002", map[string]int{"helpful": 1, "harmful": 2, "neutral": 3}),
		op(ace.OpAdd, "", "", "no section"),
	})
	want := []Bullet{
		{"rr-00002", "Return Ratios", "two, better", 1, 2, 3, ""},
		{"calc-00003", "FORMULAS & CALCULATIONS", "three", 2, 0, 0, ""},
		{"calc-00004", "FORMULAS & CALCULATIONS", "one", 0, 0, 0, ""},
		{"misc-00005", "OTHERS", "no section", 0, 0, 0, ""},
	}
	if !reflect.DeepEqual(p.Bullets, want) || p.NextID != 6 {
		t.Fatalf("%+v", p)
	}
	if done[2].BulletID != "calc-00003" || done[2].Section != "FORMULAS & CALCULATIONS" ||
		done[3].Content != "one" ||
		done[4].Outcome != ace.OutcomeRejected ||
		!strings.Contains(done[4].Reason, "removed by an earlier operation") {
		t.Fatalf("%+v", done)
	}
	if again := replay(&Playbook{}, done); again.Hash() != p.Hash() {
		t.Fatalf("replay gives %+v", again)
	}
}

func TestApplyBounds(t *testing.T) {
	ops := make([]ace.Operation, MaxOperations+2)
	for i := range ops {
		ops[i] = op(ace.OpAdd, "", "A", fmt.Sprint("bullet ", i))
	}
	p, done := Apply(&Playbook{}, ops)
	if len(p.Bullets) != MaxOperations || done[MaxOperations].Outcome != ace.OutcomeRejected ||
		done[MaxOperations-1].Outcome != ace.OutcomeAccepted {
		t.Fatalf("%d bullets, %+v", len(p.Bullets), done[MaxOperations])
	}
	_, done = Apply(&Playbook{}, []ace.Operation{op("X", strings.Repeat("i", 1<<20),
		strings.Repeat("s", 1<<20), strings.Repeat("c", 1<<20))})
	if line, err := encodeLine(done); err != nil || len(line) > 8<<10 {
		t.Fatalf("a rejected operation takes %d bytes, %v", len(line), err)
	}
}

func TestRemovedIDIsNotReused(t *testing.T) {
	p := &Playbook{Bullets: []Bullet{{ID: "misc-00007", Section: "OTHERS", Content: "x"}}}
	p, _ = Apply(p, []ace.Operation{op(ace.OpRemove, "misc-00007", "", "")})
	p, _ = Apply(p, []ace.Operation{op(ace.OpAdd, "", "OTHERS", "y")})
	if p.Bullets[0].ID != "misc-00008" {
		t.Fatalf("%+v", p)
	}
}

func TestSlug(t *testing.T) {
	for section, want := range map[string]string{
		"FORMULAS & CALCULATIONS": "calc", "code_snippets_and_templates": "code",
		"Common mistakes to avoid:":  "err",
		"PROBLEM-SOLVING HEURISTICS": "prob", "OTHERS": "misc", "critical_thinking": "ct", "Ratios": "rati",
		"VERIFICATION CHECKLIST": "vc", "введение": "sec", "***": "sec", "a b c d e f g": "abcde",
	} {
		if got := Slug(section); got != want {
			t.Errorf("%q: %q, want %q", section, got, want)
		}
	}
}

// TestCanonical compares with encoding/json of a map, which sorts its keys. Bullets without extra fields have
// no other key, so that versions keep their hashes.
func TestCanonical(t *testing.T) {
	p, _ := fixture(t, "skillbook.json")
	p.Bullets[0].Content = "<&> \"quoted\" \\ back\ttab\nline \u00e9 \U0001f600"
	list := []any{}
	for i, b := range p.Bullets {
		if i > 0 {
			p.Bullets[i].Extra = ""
		}
		list = append(list, map[string]any{"id": b.ID, "section": b.Section, "content": b.Content,
			"helpful": b.Helpful, "harmful": b.Harmful, "neutral": b.Neutral})
	}
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	if err := e.Encode(map[string]any{"bullets": list, "next_id": p.NextID}); err != nil {
		t.Fatal(err)
	}
	if got := string(p.Canonical()); got+"\n" != want.String() {
		t.Fatalf("%s\n%s", got, want.String())
	}
	// The output of sha256sum for {"bullets":[],"next_id":1}.
	if got := (&Playbook{}).Hash(); got != "7f4e84b632925a992cde25dbcdcaf37823e386990d1d19aaedc06347ecc37d61" {
		t.Fatal(got)
	}
	if got := string(appendString(nil, "\x00\x1f\x7f\u2028\b\f\r")); got != `"\u0000\u001f`+"\x7f\u2028"+
		`\b\f\r"` {
		t.Fatal(got)
	}
	split := &Playbook{Bullets: []Bullet{{ID: "a-1", Section: "A"}, {ID: "b-2", Section: "B"},
		{ID: "a-3", Section: "A"}}, NextID: 4}
	joined := &Playbook{Bullets: []Bullet{split.Bullets[0], split.Bullets[2], split.Bullets[1]}, NextID: 4}
	if split.Hash() != joined.Hash() || split.Bullets[1].ID != "b-2" {
		t.Fatal("the order between sections is not canonical")
	}
}

func FuzzApply(f *testing.F) {
	f.Add([]byte(`[{"type":"ADD","section":"a","content":"x"},{"type":"TAG","bullet_id":"calc-00002","metadata":{"helpful":1}}]`))
	f.Add([]byte(`[{"type":"REMOVE","bullet_id":"calc-00002"},{"type":"UPDATE","bullet_id":"calc-00003","content":"y\r"},{"type":"ADD","section":"!!","content":"x\u0001"}]`))
	f.Add([]byte(`[{"type":"ADD","content":"x","section":"FORMULAS & CALCULATIONS"},{"type":"REMOVE","bullet_id":"str-00001"},{"type":"ADD","content":"z","section":"strategies & insights"}]`))
	f.Add([]byte(`[{"type":"MERGE","bullet_id":"calc-00002","source_ids":["calc-00003","err-00001"],"content":"m"},{"type":"DELETE","bullet_id":"calc-00009"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var ops []ace.Operation
		if json.Unmarshal(data, &ops) != nil {
			return
		}
		base, _ := fixture(t, "ace.txt")
		before := base.Hash()
		next, done := Apply(base, ops)
		if base.Hash() != before {
			t.Fatal("the input playbook was changed")
		}
		checkValid(t, next)
		if len(done) != len(ops) {
			t.Fatalf("%d operations, %d fates", len(ops), len(done))
		}
		for _, d := range done {
			if d.Outcome == "" || d.Outcome != ace.OutcomeAccepted && d.Reason == "" {
				t.Fatalf("%+v", d)
			}
		}
		line, err := encodeLine(done)
		if err != nil {
			t.Fatal(err)
		}
		var read []ace.Operation
		if err := json.Unmarshal(line, &read); err != nil {
			t.Fatal(err)
		}
		if again := replay(base, read); again.Hash() != next.Hash() {
			t.Fatalf("replay of the record differs:\n%s\n%s", again.Canonical(), next.Canonical())
		}
		if twice, _ := Apply(base, ops); twice.Hash() != next.Hash() {
			t.Fatal("not deterministic")
		}
	})
}

func largePlaybook(n int) *Playbook {
	ops := make([]ace.Operation, n)
	for i := range ops {
		ops[i] = op(ace.OpAdd, "", fmt.Sprint("SECTION ", i*8/n),
			fmt.Sprintf("bullet %d: %s", i, strings.Repeat("some advice ", 25)))
	}
	p, _ := Apply(&Playbook{}, ops)
	return p
}

func delta(i int) []ace.Operation {
	return []ace.Operation{
		op(ace.OpAdd, "", "SECTION 3", fmt.Sprintf("learnt in task %d", i)),
		tag("s3-00150", map[string]int{"helpful": 1}),
	}
}

func BenchmarkApply(b *testing.B) {
	for _, n := range []int{300, 1000} {
		p := largePlaybook(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				Apply(p, delta(i))
			}
		})
	}
}

func BenchmarkHash300(b *testing.B) {
	p := largePlaybook(300)
	b.SetBytes(int64(len(p.Canonical())))
	for b.Loop() {
		p.Hash()
	}
}

// TestExistingDuplicates tracks every one of several equal bullets.
func TestExistingDuplicates(t *testing.T) {
	p := &Playbook{NextID: 4}
	for i := range 3 {
		p.Bullets = append(p.Bullets, Bullet{ID: formatID("a", i+1), Section: "A", Content: "same"})
	}
	_, done := Apply(p, []ace.Operation{
		op(ace.OpAdd, "", "A", "same"), op(ace.OpRemove, "a-00001", "", ""),
		op(ace.OpAdd, "", "A", "same"), op(ace.OpUpdate, "a-00003", "", "other"),
		op(ace.OpAdd, "", "A", "same"), op(ace.OpRemove, "a-00002", "", ""),
		op(ace.OpAdd, "", "A", "same"), op(ace.OpAdd, "", "A", "other"),
	})
	want := []string{"exact duplicate of a-00001", "", "exact duplicate of a-00002", "",
		"exact duplicate of a-00002", "", "", "exact duplicate of a-00003"}
	for i, d := range done {
		if d.Reason != want[i] {
			t.Errorf("operation %d: %q, want %q", i, d.Reason, want[i])
		}
	}
}

// A playbook at its bound of tokens takes no operation that enlarges it, and still takes the others.
func TestApplyWithin(t *testing.T) {
	book := &Playbook{NextID: 3, Bullets: []Bullet{bullet("a-00001", "A", "add the carry", 0, 0),
		bullet("a-00002", "A", "mind the sign of the result", 0, 0)}}
	ops := []ace.Operation{
		{Type: ace.OpAdd, Section: "A", Content: "round at the end"},
		{Type: ace.OpUpdate, BulletID: "a-00001", Content: "add the carry of every column"},
		{Type: ace.OpTag, BulletID: "a-00001", Metadata: map[string]int{"helpful": 1}},
		{Type: ace.OpUpdate, BulletID: "a-00002", Content: "mind the sign"},
		{Type: ace.OpAdd, Section: "A", Content: "sum"},
	}
	after, done := ApplyWithin(book, ops, book.Tokens())
	want := []ace.Outcome{ace.OutcomeRejected, ace.OutcomeRejected, ace.OutcomeAccepted, ace.OutcomeAccepted,
		ace.OutcomeRejected}
	for i, op := range done {
		if op.Outcome != want[i] {
			t.Errorf("%d: %s, not %s: %s", i, op.Outcome, want[i], op.Reason)
		}
	}
	if after.Tokens() > book.Tokens() ||
		done[0].Reason != "the playbook would have 25 tokens, at most 17 are allowed" {
		t.Errorf("%d tokens: %q", after.Tokens(), done[0].Reason)
	}
}
