package playbook

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"acescope/engine/ace"
)

func openStore(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func start(t testing.TB, s *Store, name string, book *Playbook) string {
	t.Helper()
	hash, err := s.Put(t.Context(), book)
	if err == nil {
		hash, err = s.Start(t.Context(), name, hash)
	}
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func request(branch string, i int) Version {
	return Version{DeltaID: fmt.Sprint("delta ", i), Operations: delta(i),
		Source: Source{Branch: branch, TaskID: fmt.Sprint("task ", i),
			WorkflowID: "ace/task", RunID: "run", Rationale: "because", At: time.Unix(int64(1000+i), 0)}}
}

func merge(t testing.TB, s *Store, req Version) Version {
	t.Helper()
	m, err := s.Merge(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func head(t testing.TB, s *Store, name string) string {
	t.Helper()
	hash, ok, err := s.Head(name)
	if err != nil || !ok {
		t.Fatalf("head: %v, %v", ok, err)
	}
	return hash
}

// wholeLog checks every version of a branch in a fresh store: its parent, and that its
// playbook can be rebuilt with the right hash.
func wholeLog(t testing.TB, dir, name string) []Version {
	t.Helper()
	s := openStore(t, dir)
	log, err := s.Page(name, 1, math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(log)
	for i, v := range log {
		if i+1 < len(log) && v.Parent != log[i+1].Hash {
			t.Fatalf("version %d does not follow its parent", i)
		}
		book, err := s.Get(t.Context(), v.Hash)
		if err != nil || book.Hash() != v.Hash || len(book.Bullets) != v.Bullets {
			t.Fatalf("version %d: %v", i, err)
		}
	}
	return log
}

func TestMerge(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	base := largePlaybook(300)
	root := start(t, s, "main", base)
	want, last := base, root
	for i := range 3*snapshotEvery + 5 {
		var fates []ace.Operation
		want, fates = Apply(want, delta(i))
		m := merge(t, s, request("main", i))
		if m.Parent != last || m.Hash != want.Hash() || m.Bullets != len(want.Bullets) ||
			m.Operations[0].BulletID != fates[0].BulletID {
			t.Fatalf("merge %d: %+v", i, m)
		}
		last = m.Hash
	}
	if got := head(t, openStore(t, dir), "main"); got != last {
		t.Fatalf("head %s, want %s", got, last)
	}
	log := wholeLog(t, dir, "main")
	if len(log) != 3*snapshotEvery+5 || log[0].Hash != last || log[len(log)-1].Parent != root {
		t.Fatalf("%d versions", len(log))
	}
	v := log[0]
	if v.Seq != len(log) || v.Branch != "main" || v.TaskID != "task 100" || v.Added != 1 || v.Tagged != 1 ||
		v.Rationale != "because" ||
		v.RunID != "run" || v.DeltaID != "delta 100" || !v.At.Equal(time.Unix(1100, 0)) ||
		v.Operations[0].BulletID != "s3-00401" {
		t.Fatalf("%+v", v)
	}
	if few, err := s.Page("main", len(log)-1, len(log)+9); err != nil || len(few) != 2 ||
		few[1].Hash != last {
		t.Fatalf("%d, %v", len(few), err)
	}
}

func TestMergeIsIdempotent(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	start(t, s, "main", largePlaybook(300))
	first := merge(t, s, request("main", 1))
	later := merge(t, s, request("main", 2))
	for _, s := range []*Store{s, openStore(t, dir)} {
		again := merge(t, s, request("main", 1))
		if fmt.Sprint(again) != fmt.Sprint(first) {
			t.Fatalf("%+v, want %+v", again, first)
		}
		if head(t, s, "main") != later.Hash {
			t.Fatal("the head moved")
		}
	}
}

func TestMergeWithoutEffect(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	root := start(t, s, "main", &Playbook{})
	m := merge(t, s, Version{Source: Source{Branch: "main"}, DeltaID: "none"})
	if m.Parent != root || m.Hash != root {
		t.Fatalf("%+v", m)
	}
	req := Version{Source: Source{Branch: "main"}, DeltaID: "refused",
		Operations: []ace.Operation{op(ace.OpRemove, "a-00001", "", "")}}
	m = merge(t, s, req)
	if m.Hash != root || m.Operations[0].Outcome != ace.OutcomeRejected {
		t.Fatalf("%+v", m)
	}
	req2 := req
	req2.DeltaID, req2.Operations = "add", []ace.Operation{op(ace.OpAdd, "", "A", "x")}
	merge(t, s, req2)
	if again := merge(t, s, req); again.Hash != root || len(again.Operations) != 1 {
		t.Fatalf("%+v", again)
	}
	if log := wholeLog(t, dir, "main"); len(log) != 2 {
		t.Fatalf("%d records, want the refused and the added", len(log))
	}
}

// TestRevertedChange restores earlier content, so that two merges have one hash.
func TestRevertedChange(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	root := start(t, s, "main", largePlaybook(8))
	for i, text := range []string{"changed", largePlaybook(8).Bullets[0].Content, "changed"} {
		merge(t, s, Version{Source: Source{Branch: "main"}, DeltaID: fmt.Sprint(i),
			Operations: []ace.Operation{op(ace.OpUpdate, "s0-00001", "", text)}})
	}
	log := wholeLog(t, dir, "main")
	if len(log) != 3 || log[0].Hash != log[2].Hash || log[1].Hash != root {
		t.Fatalf("%+v", log)
	}
}

func TestStart(t *testing.T) {
	s := openStore(t, t.TempDir())
	empty, err := s.Start(t.Context(), "main", "")
	if err != nil || empty != (&Playbook{}).Hash() {
		t.Fatalf("%s, %v", empty, err)
	}
	m := merge(t, s, request("main", 1))
	if again, err := s.Start(t.Context(), "main", empty); err != nil || again != m.Hash {
		t.Fatalf("%s, %v", again, err)
	}
	if _, err := s.Start(t.Context(), "other", strings.Repeat("0", 64)); !errors.Is(err, ErrNotFound) {
		t.Fatalf("%v", err)
	}
	if _, ok, err := s.Head("other"); ok || err != nil {
		t.Fatalf("%v, %v", ok, err)
	}
	// A branch that starts from another branch must not depend on it.
	if _, err := s.Start(t.Context(), "fork", m.Hash); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(s.dir, branchesDir, "main"+logSuffix)); err != nil {
		t.Fatal(err)
	}
	if book, err := openStore(t, s.dir).Get(t.Context(), head(t, s, "fork")); err != nil ||
		len(book.Bullets) != 1 {
		t.Fatalf("%v", err)
	}
	if _, err := s.Merge(t.Context(), request("main", 2)); !errors.Is(err, ErrNoBranch) {
		t.Fatalf("%v", err)
	}
	if _, err := s.Merge(t.Context(), Version{Source: Source{Branch: "fork"}}); err == nil {
		t.Fatal("a delta without an ID was accepted")
	}
}

func TestPutRefuses(t *testing.T) {
	s := openStore(t, t.TempDir())
	good := Bullet{ID: "a-00001", Section: "A", Content: "x"}
	for name, change := range map[string]func(*Bullet){
		"id":      func(b *Bullet) { b.ID = "a b" },
		"content": func(b *Bullet) { b.Content = "\x1b" },
		"section": func(b *Bullet) { b.Section = "" },
		"counter": func(b *Bullet) { b.Helpful = -1 },
	} {
		bad := good
		change(&bad)
		if _, err := s.Put(t.Context(), &Playbook{Bullets: []Bullet{bad}}); err == nil ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Put(t.Context(), &Playbook{Bullets: []Bullet{good, good}}); err == nil {
		t.Error("the same id twice")
	}
}

func TestResolve(t *testing.T) {
	s := openStore(t, t.TempDir())
	start(t, s, "main", largePlaybook(20))
	m := merge(t, s, request("main", 1))
	if got, err := s.Resolve(strings.ToUpper(m.Hash[:7])); err != nil || got != m.Hash {
		t.Fatalf("%s, %v", got, err)
	}
	if got, err := s.Resolve(m.Parent); err != nil || got != m.Parent {
		t.Fatalf("%s, %v", got, err)
	}
	for _, prefix := range []string{m.Hash[:5], "", "../../x", m.Hash + "0"} {
		if _, err := s.Resolve(prefix); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", prefix, err)
		}
	}
	twin := m.Hash[:10] + strings.Repeat("0", 54)
	if err := os.MkdirAll(filepath.Dir(s.books.path(twin)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.books.path(twin), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resolve(m.Hash[:10]); !errors.Is(err, ErrAmbiguous) {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "../../etc/passwd"); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
}

func TestBranchNames(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	names := []string{"a", "A", "../../x", "a/b", ".hidden", "%61", "con:1", strings.Repeat("長", 300),
		strings.Repeat("長", 299) + "x"}
	for i, name := range names {
		start(t, s, name, &Playbook{NextID: i + 1})
	}
	list, err := openStore(t, dir).Branches()
	if err != nil || len(list) != len(names) {
		t.Fatalf("%d branches, %v", len(list), err)
	}
	for i, name := range names {
		if got := head(t, openStore(t, dir), name); got != (&Playbook{NextID: i + 1}).Hash() {
			t.Errorf("%q has the head of another", name)
		}
	}
	files, err := os.ReadDir(filepath.Join(dir, branchesDir))
	if err != nil || len(files) != 2*len(names) {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 || len(f.Name()) > 200 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
	for _, bad := range []string{"", "\xff", strings.Repeat("x", maxBranchName+1)} {
		if _, err := s.Start(t.Context(), bad, ""); err == nil {
			t.Errorf("%.20q was taken", bad)
		}
	}
}

func TestConcurrentMerges(t *testing.T) {
	dir := t.TempDir()
	stores := []*Store{openStore(t, dir), openStore(t, dir), openStore(t, dir)}
	start(t, stores[0], "main", largePlaybook(40))
	var wg sync.WaitGroup
	const each = 30
	for w := range 6 {
		wg.Go(func() {
			for i := range each {
				s := stores[(w+i)%len(stores)]
				// Two workers merge every delta, like a retry concurrent with its first attempt.
				m, err := s.Merge(t.Context(), request("main", w/2*each+i))
				if err == nil {
					_, err = stores[w%len(stores)].Get(t.Context(), m.Hash)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	log := wholeLog(t, dir, "main")
	seen := map[string]bool{}
	for _, v := range log {
		seen[v.DeltaID] = true
	}
	if len(log) != 3*each || len(seen) != 3*each || log[0].Bullets != 40+3*each {
		t.Fatalf("%d versions, %d deltas, %d bullets", len(log), len(seen), log[0].Bullets)
	}
	for _, s := range stores {
		if head(t, s, "main") != log[0].Hash {
			t.Fatal("stores differ")
		}
	}
}
