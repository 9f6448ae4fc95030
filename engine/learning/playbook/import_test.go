package playbook

import (
	"errors"
	"os"
	"strings"
	"testing"

	"acescope/engine/store/bucket"
)

func TestImport(t *testing.T) {
	b, err := bucket.Make(t.Context(), "file://"+t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	local, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	machine := func() *Store {
		s, err := OpenShared(t.TempDir(), b, "ns")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	add := func(s *Store, i int) {
		merge(t, s, request("x", i))
	}
	if _, err := local.Start(t.Context(), "x", ""); err != nil {
		t.Fatal(err)
	}
	for i := range snapshotEvery + 3 {
		add(local, i)
	}
	shared := machine()
	for _, want := range []int{snapshotEvery + 3, 0} {
		if n, err := shared.Import(t.Context(), local, "x"); err != nil || n != want {
			t.Errorf("%d versions, %v; want %d", n, err, want)
		}
	}
	add(local, 100)
	if n, err := shared.Import(t.Context(), local, "x"); err != nil || n != 1 {
		t.Errorf("one more: %d, %v", n, err)
	}
	head, _, err := local.Head("x")
	if err != nil {
		t.Fatal(err)
	}
	other := machine()
	if err := other.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, _, err := other.Head("x"); err != nil || got != head {
		t.Errorf("%s, %v", got, err)
	}
	for seq := range snapshotEvery + 4 {
		hash, err := other.At("x", seq)
		if err == nil {
			_, err = other.Get(t.Context(), hash)
		}
		if err != nil {
			t.Errorf("version %d: %v", seq, err)
		}
	}
	add(other, 200)
	add(local, 300)
	if n, err := shared.Import(t.Context(), local, "x"); !errors.Is(err, ErrDiffers) || n != 0 {
		t.Errorf("other versions: %d, %v", n, err)
	}
	if _, err := local.Import(t.Context(), shared, "x"); err == nil {
		t.Error("a directory is no shared store")
	}
}

// TestImportBooks checks that playbooks on no branch are copied, and that a damaged one is named.
func TestImportBooks(t *testing.T) {
	shared, _ := machines(t, 2)
	local, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var hashes []string
	for i := range 3 {
		hash, err := local.Put(t.Context(), largePlaybook(i+1))
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, hash)
	}
	if err := os.WriteFile(local.books.path(hashes[0]), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{2, 0} {
		n, err := shared[0].ImportBooks(t.Context(), OpenStoreReadOnly(local.dir))
		if n != want || !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), hashes[0]) {
			t.Errorf("%d playbooks, %v; want %d", n, err, want)
		}
	}
	for i, hash := range hashes {
		if _, err := shared[1].Get(t.Context(), hash); (err == nil) != (i > 0) {
			t.Errorf("playbook %d: %v", i, err)
		}
	}
	if n, err := shared[0].ImportBooks(t.Context(), OpenStoreReadOnly(t.TempDir())); n != 0 || err != nil {
		t.Errorf("an empty directory: %d, %v", n, err)
	}
}
