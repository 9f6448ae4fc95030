package playbook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"acescope/engine/ace"
)

// mergeTask merges the operations of task n.
func mergeTask(t testing.TB, s *Store, branch string, n int, ops ...ace.Operation) Version {
	t.Helper()
	return merge(t, s, Version{DeltaID: fmt.Sprint(branch, n), Operations: ops,
		Source: Source{Branch: branch, TaskID: fmt.Sprint("t", n),
			WorkflowID: fmt.Sprint("ace/t", n), RunID: fmt.Sprint("r", n), Rationale: fmt.Sprint("why ", n),
			At: time.Unix(int64(1000+n), 0)}})
}

func readHistory(t testing.TB, s *Store, h *History, to int) *History {
	t.Helper()
	if err := s.Read(t.Context(), h, to); err != nil {
		t.Fatal(err)
	}
	return h
}

// small returns a store with a branch of five merges onto a playbook of one bullet.
func small(t testing.TB) *Store {
	s := openStore(t, t.TempDir())
	start(t, s, "main", &Playbook{Bullets: []Bullet{bullet("a-00001", "A", "from a file", 2, 1)}, NextID: 2})
	mergeTask(t, s, "main", 1, op(ace.OpAdd, "", "A", "first"), op(ace.OpRemove, "unknown", "", ""))
	mergeTask(t, s, "main", 2, tag("a-00002", map[string]int{"helpful": 2}),
		tag("a-00001", map[string]int{"harmful": 1}))
	mergeTask(t, s, "main", 3, op(ace.OpUpdate, "a-00002", "", "first, better"),
		op(ace.OpAdd, "", "A", "second"))
	mergeTask(t, s, "main", 4, tag("a-00002", map[string]int{"helpful": 1, "harmful": 1}),
		op(ace.OpRemove, "a-00003", "", ""))
	mergeTask(t, s, "main", 5, tag("a-00002", map[string]int{"neutral": 1}))
	return s
}

func TestBlame(t *testing.T) {
	s := small(t)
	h := readHistory(t, s, NewHistory("main", "a-00003"), -1)
	book, err := s.Get(t.Context(), h.Head())
	if err != nil {
		t.Fatal(err)
	}
	lives := h.Blame(book)
	if len(lives) != 2 || lives[0].Added != nil || lives[0].Tags != 1 || lives[0].Last().TaskID != "t2" {
		t.Fatalf("%+v", lives)
	}
	l := lives[1]
	if l.Bullet != book.Bullets[1] || l.Added == nil || l.Added.TaskID != "t1" || l.Added.RunID != "r1" ||
		l.Added.Seq != 1 || l.Added.Rationale != "why 1" {
		t.Errorf("%+v, added by %+v", l, l.Added)
	}
	var got []string
	for _, c := range l.Touches {
		got = append(got, fmt.Sprint(c.Seq, c.Type, c.Before, ">", c.Content, c.Helpful, c.Harmful,
			c.Neutral))
	}
	want := []string{"1 ADD > first 0 0 0", "2 TAG > 2 0 0", "3 UPDATE first > first, better 0 0 0",
		"4 TAG > 1 1 0", "5 TAG > 0 0 1"}
	for i := range want {
		if i >= len(got) || squash(got[i]) != squash(want[i]) {
			t.Fatalf("touches %q, want %q", got, want)
		}
	}
	if c := l.Counts; c.At(0).Helpful != 0 || c.At(2).Helpful != 2 || c.At(3).Helpful != 2 ||
		c.At(5).Harmful != 1 {
		t.Errorf("%+v", c)
	}
	gone, ok := h.Bullet("a-00003")
	if !ok || !gone.Gone || gone.Last().TaskID != "t4" || gone.Last().Before != "second" {
		t.Errorf("%+v", gone)
	}
	if h.Totals() != (Totals{Merges: 5, Added: 2, Updated: 1, Removed: 1, Tagged: 4, Refused: 1}) {
		t.Errorf("%+v", h.Totals())
	}
	var sizes []int
	for _, size := range h.Sizes() {
		sizes = append(sizes, size.Bullets)
	}
	last := h.Sizes()[5]
	if !slices.Equal(sizes, []int{1, 2, 2, 3, 2, 2}) || last.Helpful != 5 || last.Harmful != 3 ||
		last.Bytes != len("from a file"+"first, better") {
		t.Errorf("%+v", h.Sizes())
	}
	if _, ok := readHistory(t, s, NewHistory("main"), -1).Bullet("a-00003"); ok {
		t.Error("a removed bullet was kept, though it is not watched")
	}
}

func squash(s string) string {
	return string(slices.DeleteFunc([]byte(s), func(c byte) bool { return c == ' ' }))
}

// Reading a history in parts equals reading it at once, and returned values never change.
func TestHistoryIncremental(t *testing.T) {
	s := small(t)
	h := NewHistory("main")
	for to := range 6 {
		before := fmt.Sprintf("%+v", h.Sizes())
		sizes := h.Sizes()
		readHistory(t, s, h, to)
		if got := fmt.Sprintf("%+v", sizes); got != before {
			t.Errorf("handed out %s became %s", before, got)
		}
		hash, err := s.At("main", to)
		if err != nil {
			t.Fatal(err)
		}
		book, err := s.Get(t.Context(), hash)
		if err != nil || h.Head() != hash || len(h.lives) != len(book.Bullets) ||
			h.size.now.Bullets != len(book.Bullets) {
			t.Fatalf("after %d: %d lives of %d bullets, %v", to, len(h.lives), len(book.Bullets), err)
		}
		for _, b := range book.Bullets {
			if l, ok := h.Bullet(b.ID); !ok || l.Bullet != b {
				t.Errorf("after %d: %+v, want %+v", to, l.Bullet, b)
			}
		}
	}
	if got := readHistory(t, s, h, 2); got.Seq != 2 || got.Totals().Merges != 2 {
		t.Errorf("going back: %+v", got.Totals())
	}
	if err := s.Read(t.Context(), h, 9); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
	if err := s.Read(t.Context(), NewHistory("missing"), -1); !errors.Is(err, ErrNoBranch) {
		t.Errorf("%v", err)
	}
}

// The history of a branch includes the branch that it started from.
func TestBlameAcrossBranches(t *testing.T) {
	s := small(t)
	from, err := s.At("main", 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(t.Context(), "side", from); err != nil {
		t.Fatal(err)
	}
	mergeTask(t, s, "side", 9, tag("a-00002", map[string]int{"helpful": 1}))
	h := readHistory(t, s, NewHistory("side"), -1)
	l, ok := h.Bullet("a-00002")
	if !ok || l.Added.Branch != "main" || l.Added.TaskID != "t1" || len(l.Touches) != 4 ||
		l.Last().Branch != "side" || l.Last().Seq != 1 {
		t.Errorf("%+v", l)
	}
	if branch, seq, err := s.Place(from); err != nil || branch != "main" || seq != 3 {
		t.Errorf("%s %d %v", branch, seq, err)
	}
	if h.Totals().Merges != 1 || h.Sizes()[0].Bullets != 3 || l.Counts.At(0).Helpful != 2 {
		t.Errorf("%+v %+v", h.Totals(), h.Sizes())
	}
}

// A history detects that its branch was deleted and recreated.
func TestHistoryOfRecreatedBranch(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	start(t, s, "main", &Playbook{})
	mergeTask(t, s, "main", 1, op(ace.OpAdd, "", "A", "x"))
	h := readHistory(t, s, NewHistory("main"), -1)
	if err := os.Remove(filepath.Join(dir, branchesDir, "main"+logSuffix)); err != nil {
		t.Fatal(err)
	}
	start(t, s, "main", &Playbook{})
	mergeTask(t, s, "main", 2, op(ace.OpAdd, "", "A", "y"))
	if l, _ := readHistory(t, s, h, -1).Bullet("a-00001"); l.Bullet.Content != "y" || h.Totals().Merges != 1 {
		t.Errorf("%+v", l)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	s := openStore(t, t.TempDir())
	start(t, s, "main", &Playbook{})
	h := NewHistory("main")
	w := NewHistory("main", "a-00001")
	for _, each := range []*History{h, w} {
		each.lives = map[string]*BulletHistory{}
		each.size.begin(time.Unix(0, 0), nil)
		each.add(&Version{Source: Source{Branch: "main", Seq: 1},
			Operations: []ace.Operation{accepted(op(ace.OpAdd, "a-00001", "A", "x"))}}, nil)
		for i := 2; i <= 5000; i++ {
			each.add(&Version{Source: Source{Branch: "main", Seq: i, At: time.Unix(int64(i), 0)},
				Operations: []ace.Operation{accepted(tag("a-00001", map[string]int{"helpful": 1}))}}, nil)
		}
	}
	l, _ := h.Bullet("a-00001")
	if len(l.Touches) > MaxTouches || len(l.Touches)+l.Dropped != 5000 || l.Touches[0].Type != ace.OpAdd ||
		l.Last().Seq != 5000 || len(l.Counts) > maxCounts ||
		len(h.Sizes()) > maxSizes || h.Sizes()[len(h.Sizes())-1].Seq != 5000 {
		t.Errorf("%d touches, %d dropped, %d counts, %d sizes", len(l.Touches), l.Dropped, len(l.Counts),
			len(h.Sizes()))
	}
	if got := l.Counts.At(2500).Helpful; got < 2300 || got > 2500 {
		t.Errorf("in the middle it was tagged %d times", got)
	}
	if helpful, _ := l.Counts.Sample(5000, 10); len(helpful) != 10 || helpful[9] != 4999 {
		t.Errorf("%v", helpful)
	}
	if l, _ := w.Bullet("a-00001"); len(l.Touches) != 5000 || l.Dropped != 0 {
		t.Errorf("of a watched bullet %d touches are kept", len(l.Touches))
	}
}

func accepted(op ace.Operation) ace.Operation {
	op.Outcome = ace.OutcomeAccepted
	return op
}

func TestReadResumesAfterCancel(t *testing.T) {
	s := small(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h := NewHistory("main")
	if err := s.Read(ctx, h, -1); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	if readHistory(t, s, h, -1).Totals().Merges != 5 {
		t.Errorf("%+v", h.Totals())
	}
}

func TestPages(t *testing.T) {
	s := small(t)
	page, err := s.Page("main", 2, 3)
	if err != nil || len(page) != 2 || page[0].TaskID != "t2" || page[1].TaskID != "t3" {
		t.Errorf("%+v, %v", page, err)
	}
	if page, err = s.Page("main", -5, 99); err != nil || len(page) != 5 {
		t.Errorf("%d, %v", len(page), err)
	}
	if page, err = s.Page("main", 9, 12); err != nil || len(page) != 0 {
		t.Errorf("%d, %v", len(page), err)
	}
	if _, err := s.At("main", 6); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// The error names the damaged line, and the history keeps what was read before it.
func TestReadDamagedLog(t *testing.T) {
	s := small(t)
	h := readHistory(t, s, NewHistory("main"), 2)
	path := filepath.Join(s.dir, branchesDir, "main"+logSuffix)
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	log[bytes.LastIndexByte(log[:len(log)-1], '\n')+1] = 'x'
	if err := os.WriteFile(path, log, 0o600); err != nil {
		t.Fatal(err)
	}
	err = s.Read(t.Context(), h, -1)
	if !errors.Is(err, ErrCorrupt) || h.Totals().Merges < 2 {
		t.Errorf("%v, %+v", err, h.Totals())
	}
}

// BenchmarkBlame10000 reads the history of 10,000 merges, each of an ADD and three TAGs,
// and the blame of all bullets.
func BenchmarkBlame10000(b *testing.B) {
	s := openStore(b, b.TempDir())
	start(b, s, "main", largePlaybook(300))
	for i := range 10_000 {
		ops := append(delta(i%1000), tag("s3-00151", map[string]int{"harmful": 1}),
			tag("s3-00152", map[string]int{"helpful": 1}))
		merge(b, s, Version{DeltaID: fmt.Sprint(i), Operations: ops,
			Source: Source{Branch: "main", TaskID: fmt.Sprint("task-", i),
				WorkflowID: fmt.Sprint("ace/task-", i),
				RunID:      "01a1fd6d-386b-73aa-8d57-f2c78bde9cf9",
				Rationale:  "One recipe was missing, and two were tried.", At: time.Unix(int64(i), 0)}})
	}
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		h := readHistory(b, s, NewHistory("main"), -1)
		book, err := s.Get(b.Context(), h.Head())
		if err != nil || len(h.Blame(book)) != 1300 {
			b.Fatal(len(book.Bullets), err)
		}
	}
}

// An imported series has a history, in which a collapse is found.
func TestHistoryOfImportedVersions(t *testing.T) {
	s := openStore(t, t.TempDir())
	long := strings.Repeat("long-", 3000)
	x := &Series{Branch: "series", Start: book(bullet("a-00001", "A", long, 1, 0),
		bullet("a-00002", "A", "x", 0, 0)),
		Steps: []Snapshot{
			{Book: book(bullet("a-00001", "A", long, 4, 1), bullet("a-00003", "B", "y", 0, 0))},
			{Book: book(bullet("a-00001", "A", "short", 4, 1), bullet("a-00003", "B", "y", 0, 0))},
		}}
	if _, _, err := s.Append(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	h := NewHistory("series")
	if err := openStore(t, s.dir).Read(t.Context(), h, -1); err != nil {
		t.Fatal(err)
	}
	if got := h.Totals(); got.Merges != 2 || got.Added != 1 || got.Updated != 1 || got.Removed != 1 {
		t.Errorf("%+v", got)
	}
	sizes := h.Sizes()
	if now := sizes[len(sizes)-1]; now.Bullets != 2 || now.Bytes != 6 || now.Helpful != 4 ||
		now.Harmful != 1 {
		t.Errorf("%+v", now)
	}
	onlyFinding(t, Check(x.Steps[1].Book, h, Evidence{}), FindingCollapse, SeverityError,
		"from 15001 bytes to 6")
}
