package sources

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/sources/cluster"
	"acescope/sources/playbooks"
)

func bookStore(t *testing.T) (*playbook.Store, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := playbook.OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func teach(t *testing.T, s *playbook.Store, branch string, n int, ops ...ace.Operation) {
	t.Helper()
	if _, err := s.Start(t.Context(), branch, ""); err != nil {
		t.Fatal(err)
	}
	_, err := s.Merge(t.Context(), playbook.Version{DeltaID: fmt.Sprint(n), Operations: ops,
		Source: playbook.Source{Branch: branch, TaskID: fmt.Sprint("t", n),
			WorkflowID: fmt.Sprint("ace/t", n), RunID: "r", Rationale: strings.Repeat("because ", 200),
			At: time.Unix(int64(n), 0)}})
	if err != nil {
		t.Fatal(err)
	}
}

func add(content string) ace.Operation {
	return ace.Operation{Type: ace.OpAdd, Section: "A", Content: content}
}

// watching returns feeds that read playbooks; until waits for a condition.
func watching(t *testing.T, d cluster.Deps) (*Feeds,
	func(what string, ok func(*playbooks.Playbooks) bool) *playbooks.Playbooks) {
	t.Helper()
	s := NewFeeds()
	s.Link.Deps = d
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Playbooks.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	s.Playbooks.Look(true)
	return s, func(what string, ok func(*playbooks.Playbooks) bool) *playbooks.Playbooks {
		t.Helper()
		deadline := time.After(time.Minute)
		for {
			if b := s.Playbooks.Value(); b != nil && ok(b) {
				return b
			}
			select {
			case <-s.Link.Changed():
			case <-deadline:
				t.Fatalf("no %s: %+v", what, s.Playbooks.Value())
			}
		}
	}
}

func TestBooks(t *testing.T) {
	books, _ := bookStore(t)
	teach(t, books, "old", 1, add("one"))
	for i := 2; i <= 5; i++ {
		teach(t, books, "new", i, add(fmt.Sprint("lesson ", i)))
	}
	s, until := watching(t, cluster.Deps{Playbooks: books})
	b := until("newest branch", func(b *playbooks.Playbooks) bool { return b.Version != nil })
	if b.Branch.Name != "new" || len(b.Branches) != 2 || b.Branch.Versions != 4 || b.From != 1 ||
		len(b.Versions) != 4 || b.Versions[3].Operations != nil ||
		len(b.Versions[0].Rationale) > playbooks.MaxRationale || b.Version.Seq != 4 || b.Version.HasBullets ||
		len(b.Version.Record.Operations) != 1 || len(b.Version.Changes.Added) != 1 {
		t.Errorf("%+v", b)
	}
	teach(t, books, "fork/t~f1", 7, add("a trial"))
	until("branch of a fork", func(b *playbooks.Playbooks) bool { return len(b.Branches) == 3 })
	s.Playbooks.Refine(playbooks.Ask{Seq: -1, Around: -1, Bullets: true})
	b = until("blame", func(b *playbooks.Playbooks) bool { return b.Version != nil && b.Version.HasBullets })
	if len(b.Version.Bullets) != 4 || b.Version.Bullets[1].Added.TaskID != "t3" ||
		b.Version.Totals.Added != 4 || len(b.Version.Sizes) != 5 {
		t.Errorf("%+v", b.Version)
	}
	teach(t, books, "new", 6, add("lesson 6"))
	until("new version", func(b *playbooks.Playbooks) bool {
		return b.Version != nil && b.Version.HasBullets && b.Version.Seq == 5 && len(b.Version.Bullets) == 5
	})

	s.Playbooks.Refine(playbooks.Ask{Branch: "new", Seq: 2, Around: -1, Bullets: true})
	b = until("older version", func(b *playbooks.Playbooks) bool {
		return b.Version != nil && b.Version.Seq == 2 && b.Version.HasBullets
	})
	if len(b.Version.Bullets) != 2 || b.Version.Totals.Merges != 2 {
		t.Errorf("%+v", b.Version)
	}
	s.Playbooks.Refine(playbooks.Ask{Branch: "new", Seq: 0, Around: -1, Compare: true,
		A: playbooks.VersionRef{"old", 1}, B: playbooks.VersionRef{"new", 5}, Health: true})
	b = until("pair and health", func(b *playbooks.Playbooks) bool {
		return b.Compared != nil && b.Health != nil && b.Version != nil && b.Version.Seq == 0 &&
			b.Version.HasBullets
	})
	if b.Compared.Err != "" || len(b.Compared.Diff.Changed) != 1 || len(b.Compared.Diff.Added) != 4 ||
		b.Health.Bullets != 0 || len(b.Health.Unchecked) == 0 {
		t.Errorf("%+v, %+v", b.Compared, b.Health)
	}
	s.Playbooks.Refine(playbooks.Ask{Branch: "new", Seq: -1, Around: -1, Compare: true,
		A: playbooks.VersionRef{"old", 9}, B: playbooks.VersionRef{"new", 5}})
	until("error of a pair", func(b *playbooks.Playbooks) bool {
		return b.Compared != nil && strings.Contains(b.Compared.Err, "0 to 1")
	})
}

func TestBooksMissing(t *testing.T) {
	_, until := watching(t, cluster.Deps{})
	until("remark", func(b *playbooks.Playbooks) bool {
		return strings.Contains(b.Missing, "no playbook store")
	})

	books, dir := bookStore(t)
	s, until := watching(t, cluster.Deps{Playbooks: books})
	until("empty store", func(b *playbooks.Playbooks) bool {
		return b.Err == "" && b.Branch.Name == "" && !b.Updated.IsZero()
	})
	s.Playbooks.Refine(playbooks.Ask{Branch: "unknown", Seq: -1, Around: -1})
	teach(t, books, "main", 1, add("one"))
	until("unknown branch", func(b *playbooks.Playbooks) bool {
		return strings.Contains(b.Err, `"unknown"`) && len(b.Branches) == 1
	})

	// A damaged branch is reported and does not hide the others.
	if err := os.WriteFile(filepath.Join(dir, "branches", "bad.log"), []byte("no log\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Playbooks.Refine(playbooks.Ask{Seq: -1, Around: -1})
	until("damage", func(b *playbooks.Playbooks) bool {
		return strings.Contains(b.Err, "bad.log") && b.Branch.Name == "main" && b.Version != nil
	})
}

// A long branch is listed in windows.
func TestBooksWindow(t *testing.T) {
	t.Parallel()
	store, _ := bookStore(t)
	for i := 1; i <= playbooks.VersionWindow+50; i++ {
		teach(t, store, "main", i, add(fmt.Sprint("lesson ", i)))
	}
	branch, err := store.Branch("main")
	if err != nil {
		t.Fatal(err)
	}
	for around, from := range map[int]int{-1: 51, 0: 1, 20: 1, 320: 20, 640: 51} {
		first, list, err := playbooks.Window(store, branch, around)
		if err != nil {
			t.Fatal(err)
		}
		if first != from || len(list) != playbooks.VersionWindow {
			t.Errorf("around %d: %d versions from %d, want from %d", around, len(list), first, from)
		}
	}
}
