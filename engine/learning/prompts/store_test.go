package prompts

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/store/artifact"
	"acescope/engine/store/bucket"
)

// machine returns the store of a machine. The bucket is nil for a data directory of its own.
func machine(t *testing.T, shared bucket.Bucket) *Store {
	t.Helper()
	dir := t.TempDir()
	texts, err := artifact.OpenShared(dir, shared)
	if err != nil {
		t.Fatal(err)
	}
	if shared != nil {
		return Open(shared, "default", texts)
	}
	s, err := OpenDir(t.Context(), dir, texts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s *Store, name, text, from string) Prompt {
	t.Helper()
	v, _, err := s.Put(t.Context(), ace.PhaseReflector, name, text, from)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func names(list []Prompt) string {
	var all []string
	for _, v := range list {
		all = append(all, fmt.Sprintf("%s/%s", v.Phase, &v.PhasePrompt))
	}
	return strings.Join(all, " ")
}

func TestVersions(t *testing.T) {
	s := machine(t, nil)
	first := put(t, s, "brief", "One.\r\n\r\n", "default")
	if again := put(t, s, "brief", "One.", ""); again.Version != 1 || again.From != "default" {
		t.Errorf("an equal text is %+v", again)
	}
	put(t, s, "brief", "Two.", "brief@1")
	put(t, s, "a", "A.", "")
	list, err := s.List(t.Context())
	if got := names(list); err != nil ||
		!strings.Contains(got, " reflector/a@1 reflector/brief@2 curator/") || len(list) != 6 {
		t.Errorf("list %s, %v", got, err)
	}
	for ref, want := range map[string]string{"brief": "Two.\n", "brief@1": "One.\n",
		"default": Default(ace.PhaseReflector).Text} {
		v, err := s.Find(t.Context(), ace.PhaseReflector, ref)
		if err != nil {
			t.Errorf("%s: %v", ref, err)
			continue
		}
		if text, err := s.Text(t.Context(), v.PhasePrompt); text != want || err != nil {
			t.Errorf("%s: %q, %v", ref, text, err)
		}
	}
	if found, err := s.Find(t.Context(), ace.PhaseReflector, "brief@1"); found != first || err != nil {
		t.Errorf("%+v, %v, want %+v", found, err, first)
	}
	for _, ref := range []string{"brief@0", "brief@3", "brief@x", "other", "default@1"} {
		if _, err := s.Find(t.Context(), ace.PhaseReflector, ref); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if _, err := s.Find(t.Context(), ace.PhaseCurator, "brief"); !errors.Is(err, ErrNotFound) {
		t.Errorf("of another phase: %v", err)
	}
}

func TestDelete(t *testing.T) {
	s := machine(t, nil)
	put(t, s, "brief", "One.", "")
	if err := s.Delete(t.Context(), ace.PhaseReflector, "brief"); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), ace.PhaseReflector, "brief"); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	if list, err := s.List(t.Context()); len(list) != 4 || err != nil {
		t.Errorf("%s, %v", names(list), err)
	}
	if v := put(t, s, "brief", "One.", ""); v.Version != 3 {
		t.Errorf("a number is used again: %+v", v)
	}
	if v, err := s.Find(t.Context(), ace.PhaseReflector, "brief@1"); err != nil || v.Version != 1 {
		t.Errorf("a run's version: %+v, %v", v, err)
	}
}

func TestRefused(t *testing.T) {
	s := machine(t, nil)
	for name, want := range map[string]error{"default": ErrShipped, "A": ErrName, "a b": ErrName, "": ErrName,
		"../x": ErrName,
		"a@1":  ErrName, strings.Repeat("a", 65): ErrName} {
		if _, _, err := s.Put(t.Context(), ace.PhaseReflector, name, "x", ""); !errors.Is(err, want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	var mistake *SyntaxError
	if _, _, err := s.Put(t.Context(), ace.PhaseReflector, "a", "{{x}}", ""); !errors.As(err, &mistake) {
		t.Errorf("%v", err)
	}
	if _, err := s.PutText(t.Context(), ace.PhaseCurator, "a.md", "no playbook"); !errors.As(err, &mistake) {
		t.Errorf("%v", err)
	}
}

// Another machine finds what one stored, and the text by its reference alone. Concurrent writers number all
// versions.
func TestTwoMachines(t *testing.T) {
	shared, err := bucket.Make(t.Context(), "file://"+t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b := machine(t, shared), machine(t, shared)
	v := put(t, a, "brief", "One.", "")
	if text, err := b.Text(t.Context(), ace.PhasePrompt{Ref: v.Ref}); text != "One.\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	var all sync.WaitGroup
	for i := range 4 {
		for _, s := range []*Store{a, b} {
			all.Go(func() {
				_, _, err := s.Put(t.Context(), ace.PhaseReflector, "brief", fmt.Sprintf("%d %p", i, s), "")
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	list, err := b.Versions(t.Context(), ace.PhaseReflector, "brief")
	if err != nil || len(list) != 9 {
		t.Fatalf("%s, %v", names(list), err)
	}
	for i, v := range list {
		if v.Version != i+1 {
			t.Errorf("version %d is %+v", i+1, v)
		}
	}
	other := Open(shared, "other", b.texts)
	if list, err := other.List(t.Context()); err != nil || len(list) != 4 {
		t.Errorf("another namespace has %s, %v", names(list), err)
	}
}

func TestImport(t *testing.T) {
	from, to := machine(t, nil), machine(t, nil)
	put(t, from, "brief", "One.", "")
	put(t, from, "brief", "Two.", "")
	put(t, to, "brief", "One.", "")
	if n, err := to.Import(t.Context(), from); n != 1 || err != nil {
		t.Errorf("%d versions, %v", n, err)
	}
	if n, err := to.Import(t.Context(), from); n != 0 || err != nil {
		t.Errorf("again: %d versions, %v", n, err)
	}
	put(t, from, "brief", "Three.", "")
	put(t, to, "brief", "Drei.", "")
	if _, err := to.Import(t.Context(), from); !errors.Is(err, ErrDiffers) {
		t.Errorf("%v", err)
	}
	var hashes []string
	if err := to.Hashes(t.Context(), func(hash string) { hashes = append(hashes, hash) }); err != nil ||
		len(hashes) != 3 {
		t.Errorf("%q, %v", hashes, err)
	}
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenDirReadOnly(t.Context(), dir, artifact.OpenReadOnly(dir))
	if err != nil {
		t.Fatal(err)
	}
	if list, err := s.List(t.Context()); err != nil || len(list) != 4 {
		t.Errorf("an empty directory has %s, %v", names(list), err)
	}
}

// TestBase returns the text that a change begins with.
func TestBase(t *testing.T) {
	s := machine(t, nil)
	put(t, s, "brief", "One.", "")
	put(t, s, "brief", "Two.", "")
	shipped := Default(ace.PhaseReflector).Text
	for ref, want := range map[string]string{"": shipped, "default": shipped, "other": shipped,
		"brief":   "Two.\n",
		"brief@1": "One.\n"} {
		if p, err := s.Base(t.Context(), ace.PhaseReflector, ref); p.Text != want || err != nil {
			t.Errorf("%q begins with %q, %v", ref, p.Text, err)
		}
	}
	if _, err := s.Base(t.Context(), ace.PhaseReflector, "brief@3"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a version that does not exist: %v", err)
	}
}
