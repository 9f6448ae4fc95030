package playbook

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"acescope/engine/ace"
)

func mergeOp(keep, content string, sources ...string) ace.Operation {
	return ace.Operation{Type: ace.OpMerge, BulletID: keep, Content: content, SourceIDs: sources}
}

// TestL7Merge applies MERGE and DELETE as kayba's skillbooks and ace-agent's curators define them.
func TestL7Merge(t *testing.T) {
	base := &Playbook{Bullets: []Bullet{bullet("a-00001", "A", "one", 1, 2),
		bullet("a-00002", "A", "two", 3, 0),
		bullet("b-00003", "B", "three", 5, maxCount), bullet("b-00004", "B", "four", 0, 0)}, NextID: 5}
	for _, c := range []struct {
		name   string
		op     ace.Operation
		says   string // why it was not applied, or ""
		result string
	}{
		{"counters", mergeOp("a-00001", "both", "a-00001", "a-00002", "a-00002"), "",
			"a-00001 both 4/2, b-00003 three, b-00004 four"},
		{"content", mergeOp("a-00002", "", "a-00001"), "", "a-00002 two 4/2, b-00003 three, b-00004 four"},
		{"other section", mergeOp("b-00004", "", "a-00001", "a-00002"), "",
			"b-00003 three, b-00004 four 4/2"},
		{"no bullet to keep", mergeOp("", "x", "a-00002", "a-00001"), "",
			"a-00002 x 4/2, b-00003 three, b-00004 four"},
		{"the content of a source", mergeOp("a-00001", "two", "a-00002"), "",
			"a-00001 two 4/2, b-00003 three, b-00004 four"},
		{"a missing source", mergeOp("a-00001", "", "a-00002", "z-00009"), "",
			"a-00001 one 4/2, b-00003 three, b-00004 four"},
		{"delete", ace.Operation{Type: "delete", BulletID: "a-00001"}, "",
			"a-00002 two 3/0, b-00003 three, b-00004 four"},

		{"no source", mergeOp("a-00001", "x"), "names no other bullet", ""},
		{"itself", mergeOp("a-00001", "x", "a-00001"), "names no other bullet", ""},
		{"unknown sources", mergeOp("a-00001", "x", "z-00009"), `"z-00009" not found`, ""},
		{"unknown bullet", mergeOp("z-00009", "x", "a-00001"), `"z-00009" not found`, ""},
		{"another's content", mergeOp("b-00003", "four", "a-00002"), "exact duplicate of b-00004", ""},
		{"counter", mergeOp("b-00003", "", "a-00001"), "leave its range", ""},
	} {
		p, done := Apply(base, []ace.Operation{c.op})
		if c.says != "" {
			if done[0].Outcome != ace.OutcomeRejected || !strings.Contains(done[0].Reason, c.says) ||
				p.Hash() != base.Hash() {
				t.Errorf("%s: %+v", c.name, done[0])
			}
			continue
		}
		var got []string
		for _, b := range p.Bullets {
			s := b.ID + " " + b.Content
			if b.Harmful < maxCount && b.ID+b.Content != "b-00004four" || b.Helpful == 4 {
				s += " " + strconv.Itoa(b.Helpful) + "/" + strconv.Itoa(b.Harmful)
			}
			got = append(got, s)
		}
		if s := strings.Join(got, ", "); s != c.result || done[0].Outcome != ace.OutcomeAccepted {
			t.Errorf("%s: %s, want %s; %+v", c.name, s, c.result, done[0])
		}
		if r := replay(base, done); r.Hash() != p.Hash() {
			t.Errorf("%s: replay gives %s", c.name, r.Canonical())
		}
	}
}

// TestL7History keeps where the merged bullets came from.
func TestL7History(t *testing.T) {
	s := openStore(t, t.TempDir())
	start(t, s, "main", &Playbook{Bullets: []Bullet{bullet("a-00001", "A", "from a file", 2, 1)}, NextID: 2})
	mergeTask(t, s, "main", 1, op(ace.OpAdd, "", "A", "learned"),
		tag("a-00001", map[string]int{"helpful": 1}))
	mergeTask(t, s, "main", 2, op(ace.OpAdd, "", "B", "another"),
		tag("a-00002", map[string]int{"harmful": 4}))
	v := mergeTask(t, s, "main", 3, mergeOp("b-00003", "all of it", "a-00001", "a-00002"))
	if v.Merged != 1 || v.Removed != 0 || v.Bullets != 1 {
		t.Errorf("%+v", v)
	}
	h := readHistory(t, s, NewHistory("main", "a-00002"), -1)
	book, err := s.Get(t.Context(), h.Head())
	if err != nil {
		t.Fatal(err)
	}
	kept := h.Blame(book)[0]
	last := kept.Last()
	if kept.Bullet != (Bullet{"b-00003", "B", "all of it", 3, 5, 0, ""}) || last.Before != "another" ||
		last.Helpful != 3 || last.Harmful != 5 {
		t.Errorf("%+v", kept)
	}
	var from []string
	for _, m := range last.Merged {
		task := "start"
		if m.Added != nil {
			task = m.Added.TaskID
		}
		from = append(from, m.ID+" "+m.Content+" "+task)
	}
	if want := []string{"a-00001 from a file start", "a-00002 learned t1"}; !slices.Equal(from, want) {
		t.Errorf("%q", from)
	}
	gone, ok := h.Bullet("a-00002")
	if !ok || !gone.Gone || gone.Last().Into != "b-00003" || gone.Last().Before != "learned" {
		t.Errorf("%+v", gone)
	}
	if _, ok := h.Bullet("a-00001"); ok {
		t.Error("a bullet that is not watched was kept")
	}
	sizes := h.Sizes()
	if now := sizes[len(sizes)-1]; now.Bullets != 1 || now.Helpful != 3 || now.Harmful != 5 ||
		now.Bytes != len("all of it") {
		t.Errorf("%+v", now)
	}
	if want := (Totals{Merges: 3, Added: 2, Tagged: 2, Merged: 1}); !reflect.DeepEqual(h.Totals(), want) {
		t.Errorf("%+v", h.Totals())
	}
}

// Deduplicate rejects additions like another bullet, merges bullets of the playbook and keeps the older ones;
// ADDs are compared in their place in the playbook, which is before that of an older bullet of a later
// section.
func TestDeduplicate(t *testing.T) {
	book := &Playbook{NextID: 4, Bullets: []Bullet{
		{ID: "calc-00001", Section: "FORMULAS & CALCULATIONS", Content: "east"},
		{ID: "misc-00002", Section: "OTHERS", Content: "east by north", Helpful: 2},
		{ID: "misc-00003", Section: "OTHERS", Content: "west"},
	}}
	vectors := map[string][]float64{"east": {1, 0}, "east by north": {0.96, 0.28}, "west": {-1, 0},
		"west, far": {-0.8, 0.6}, "north": {0, 1}, "north again": {0, 1}}
	near := func(similarity float64) func(p *Playbook) ([]Near, error) {
		return func(p *Playbook) ([]Near, error) {
			var list [][]float64
			for _, b := range p.Bullets {
				list = append(list, vectors[b.Content])
			}
			return NearVectors(p, list, similarity), nil
		}
	}
	ops := []ace.Operation{
		op(ace.OpAdd, "", "FORMULAS & CALCULATIONS", "west, far"),
		tag("calc-00001", map[string]int{"helpful": 1}),
		op(ace.OpAdd, "", "OTHERS", "north"), op(ace.OpAdd, "", "OTHERS", "north again"),
	}
	const calc = "FORMULAS & CALCULATIONS"
	kept, left, err := Deduplicate(book, ops, "embeddings of p/m", near(0.9))
	want := []ace.Operation{ops[0], ops[1], ops[2], {Type: ace.OpMerge, BulletID: "calc-00001",
		SourceIDs: []string{"misc-00002"},
		Reason:    "near-duplicates, similarity at least 0.96 by embeddings of p/m"}}
	if err != nil || !reflect.DeepEqual(kept, want) || len(left) != 1 ||
		left[0].Outcome != ace.OutcomeRejected ||
		left[0].Reason != "near-duplicate of another new bullet, similarity at least 1.00 by embeddings of p/m" {
		t.Errorf("%+v\n%+v %v", kept, left, err)
	}
	after, done := Apply(book, kept)
	if done[3].Reason != want[3].Reason || len(after.Bullets) != 4 || after.Bullets[0].Helpful != 3 {
		t.Errorf("%+v\n%+v", done, after)
	}

	kept, left, err = Deduplicate(book, ops, "words", near(0.8))
	if err != nil || len(kept) != 3 || len(left) != 2 || left[1].Content != "west, far" ||
		left[1].Section != calc ||
		left[1].Reason != "near-duplicate of misc-00003, similarity at least 0.80 by words" {
		t.Errorf("%+v\n%+v %v", kept, left, err)
	}
	failing := func(*Playbook) ([]Near, error) { return nil, errors.New("no vectors") }
	if _, _, err := Deduplicate(book, ops, "", failing); err == nil {
		t.Error("no error")
	}
}
