package playbook

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/store/bucket"
	"acescope/engine/store/bucket/buckettest"
)

// machines returns the stores of n machines that share a bucket, and its directory.
func machines(t *testing.T, n int) (stores []*Store, dir string) {
	t.Helper()
	dir = t.TempDir()
	return machinesAt(t, n, "file://"+dir), dir
}

func machinesAt(t *testing.T, n int, url string) (stores []*Store) {
	t.Helper()
	for range n {
		b, err := bucket.Make(t.Context(), url, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := OpenShared(t.TempDir(), b, "team")
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
	}
	return stores
}

// Merges of several machines into one branch form one sequence that all of them read.
func TestMachinesShareABranch(t *testing.T) { buckettest.Each(t, testMachinesShareABranch) }

func testMachinesShareABranch(t *testing.T, url string) {
	const each, atOnce = 12, 3
	all := machinesAt(t, 3, url)
	initial := start(t, all[0], "b", &Playbook{})
	var wg sync.WaitGroup
	for m, s := range all {
		wg.Go(func() {
			if hash, err := s.Start(t.Context(), "b", ""); err != nil || m > 0 && hash == "" {
				t.Errorf("start: %q, %v", hash, err)
			}
			var merging sync.WaitGroup
			for from := range atOnce {
				merging.Go(func() {
					for i := from; i < each; i += atOnce {
						if _, err := s.Merge(t.Context(), request("b", m*each+i)); err != nil {
							t.Error(err)
						}
					}
				})
			}
			merging.Wait()
		})
	}
	wg.Wait()
	var want []string
	for i, s := range all {
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		page, err := s.Page("b", 1, 1000)
		if err != nil || len(page) != len(all)*each || page[0].Parent != initial {
			t.Fatalf("machine %d has %d merges, %v", i, len(page), err)
		}
		var got, tasks []string
		for _, v := range page {
			got, tasks = append(got, v.Hash), append(tasks, v.TaskID)
		}
		if want == nil {
			want = got
		}
		slices.Sort(tasks)
		if !slices.Equal(got, want) || len(slices.Compact(tasks)) != len(all)*each {
			t.Errorf("machine %d read other merges", i)
		}
		if book, err := s.Get(t.Context(), got[len(got)/2]); err != nil || book.Hash() != got[len(got)/2] {
			t.Errorf("machine %d: %v", i, err)
		}
	}
	again, err := all[1].Merge(t.Context(), request("b", 0))
	if err != nil || again.TaskID != "task 0" || head(t, all[1], "b") != want[len(want)-1] {
		t.Errorf("a delta was merged twice: %+v, %v", again, err)
	}
}

// TestTwoWriters merges random deltas on two machines, some of them on both, and checks on a third one that
// the branch has each delta once, and that every version is the one before it with the accepted operations.
func TestTwoWriters(t *testing.T) { buckettest.Each(t, testTwoWriters) }

func testTwoWriters(t *testing.T, url string) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 0))
		branch, deltas := fmt.Sprint("b", seed), 4+random.IntN(12)
		writers := machinesAt(t, 2, url)
		start(t, writers[0], branch, largePlaybook(8))
		var all sync.WaitGroup
		for i := range deltas {
			v := request(branch, i)
			v.Operations = randomOperations(random)
			for _, s := range [][]*Store{writers[:1], writers[1:], writers}[random.IntN(3)] {
				all.Go(func() { merge(t, s, v) })
			}
		}
		all.Wait()
		reader := machinesAt(t, 1, url)[0]
		if err := reader.Sync(t.Context(), branch); err != nil {
			t.Fatal(err)
		}
		log, err := reader.Page(branch, 1, 1000)
		if err != nil || len(log) != deltas {
			t.Errorf("seed %d: %d merges of %d deltas, %v", seed, len(log), deltas, err)
		}
		parent, once := largePlaybook(8), map[string]bool{}
		for _, v := range log {
			var accepted []ace.Operation
			for _, o := range v.Operations {
				if o.Outcome == ace.OutcomeAccepted {
					accepted = append(accepted, o)
				}
			}
			book, _ := Apply(parent, accepted)
			if v.Parent != parent.Hash() || v.Hash != book.Hash() || once[v.DeltaID] {
				t.Errorf("seed %d, version %d: %+v", seed, v.Seq, v)
			}
			parent, once[v.DeltaID] = book, true
		}
	}
}

// randomOperations returns operations on the bullets of largePlaybook(8), and additions.
func randomOperations(random *rand.Rand) (list []ace.Operation) {
	for range 1 + random.IntN(3) {
		n, text := random.IntN(8), fmt.Sprint("text ", random.IntN(20))
		id := fmt.Sprintf("s%d-%05d", n, n+1)
		list = append(list, []ace.Operation{
			op(ace.OpAdd, "", fmt.Sprint("SECTION ", n), text),
			op(ace.OpUpdate, id, "", text),
			op(ace.OpRemove, id, "", ""),
			tag(id, map[string]int{"helpful": 1}),
		}[random.IntN(4)])
	}
	return list
}

// A machine with an empty cache reads what others have stored, also if only the record was stored.
func TestEmptyCache(t *testing.T) {
	all, dir := machines(t, 2)
	start(t, all[0], "b", &Playbook{})
	var last Version
	for i := range 40 {
		last = merge(t, all[0], request("b", i))
	}
	if err := os.Remove(filepath.Join(dir, filepath.FromSlash(sharedBookKey(last.Hash)))); err != nil {
		t.Fatal(err)
	}
	for _, hash := range []string{last.Parent, last.Hash} {
		if book, err := all[1].Get(t.Context(), hash); err != nil || book.Hash() != hash {
			t.Errorf("%v", err)
		}
	}
	if _, err := all[1].Get(t.Context(), strings.Repeat("0", 64)); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
}

func TestDamagedSharedStore(t *testing.T) {
	for name, damage := range map[string]func(entry, book string) (key, content string){
		"book":      func(_, book string) (string, string) { return book, "{}" },
		"entry":     func(entry, _ string) (string, string) { return entry, "{}\n" },
		"two lines": func(entry, _ string) (string, string) { return entry, "{}\n{}\n" },
		"no line":   func(entry, _ string) (string, string) { return entry, "" },
	} {
		t.Run(name, func(t *testing.T) {
			buckettest.Each(t, func(t *testing.T, url string) {
				all := machinesAt(t, 2, url)
				start(t, all[0], "b", &Playbook{})
				v := merge(t, all[0], request("b", 1))
				branch, err := all[0].shared.branchKey("b")
				if err != nil {
					t.Fatal(err)
				}
				key, content := damage(entryKey(branch, 1), sharedBookKey(v.Hash))
				if err := all[0].shared.Put(t.Context(), key, strings.NewReader(content)); err != nil {
					t.Fatal(err)
				}
				if name == "book" { // the record is enough
					if book, err := all[1].Get(t.Context(), v.Hash); err != nil || book.Hash() != v.Hash {
						t.Errorf("%v", err)
					}
					return
				}
				if err := all[1].Sync(t.Context(), "b"); !errors.Is(err, ErrCorrupt) {
					t.Errorf("%v", err)
				}
				if _, err := all[1].Branch("b"); !errors.Is(err, ErrNoBranch) {
					t.Errorf("the damaged branch was cached: %v", err)
				}
			})
		})
	}
}

func TestBranchesOfNamespaces(t *testing.T) {
	dir := "file://" + t.TempDir()
	var heads []string
	for i, namespace := range []string{"one", "two/../one", "a:b@c"} {
		b, err := bucket.Make(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := OpenShared(t.TempDir(), b, namespace)
		if err != nil {
			t.Fatal(err)
		}
		start(t, s, "b", &Playbook{})
		heads = append(heads, merge(t, s, request("b", i)).Hash)
		if err := s.Own(t.Context(), "b", "server "+fmt.Sprint(i)); err != nil {
			t.Error(err)
		}
		if err := s.Own(t.Context(), "b", "another"); !errors.Is(err, ErrOwner) {
			t.Errorf("%v", err)
		}
		if list, err := s.Branches(); err != nil || len(list) != 1 || list[0].Versions != 1 {
			t.Errorf("%+v, %v", list, err)
		}
	}
	if slices.Sort(heads); len(slices.Compact(heads)) != 3 {
		t.Error("namespaces share a branch")
	}
}
