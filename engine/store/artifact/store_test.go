package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"acescope/engine/ace"
)

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func files(t testing.TB, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestPutGet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := open(t, dir)
	for _, content := range []string{"", "hello", strings.Repeat("x", 1<<20)} {
		ref, err := s.Put(t.Context(),
			iotest.OneByteReader(strings.NewReader(content[:min(len(content), 5)])), "text/plain")
		if err != nil {
			t.Fatal(err)
		}
		if ref.Size != int64(min(len(content), 5)) || ref.MediaType != "text/plain" {
			t.Fatalf("reference %+v", ref)
		}
		ref, err = s.PutBytes(t.Context(), []byte(content), "text/plain")
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Get(t.Context(), ref, 1<<20)
		if err != nil || string(got) != content {
			t.Fatalf("got %d bytes, %v", len(got), err)
		}
		if has, err := s.Has(t.Context(), ref); err != nil || !has {
			t.Fatalf("Has = %v, %v", has, err)
		}
	}
	if n := len(files(t, dir)); n != 4 { // "", "hello", "xxxxx" and the long one
		t.Fatalf("%d files, want 4: a second put must add none", n)
	}
	for _, name := range files(t, dir) {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		if info, err = os.Stat(filepath.Dir(name)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", filepath.Dir(name), info.Mode(), err)
		}
	}
	if ref, err := s.PutBytes(t.Context(), []byte("abc"), ""); err != nil ||
		// FIPS 180-4's own example
		ref.SHA256 != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Fatalf("%+v, %v", ref, err)
	}
}

func TestErrors(t *testing.T) {
	s := open(t, t.TempDir())
	ref, err := s.PutBytes(t.Context(), []byte("some content"), "")
	if err != nil {
		t.Fatal(err)
	}
	missing := ace.Ref{SHA256: strings.Repeat("0", 64), Size: 1}
	if _, err := s.Open(t.Context(), missing); !errors.Is(err, ErrNotFound) {
		t.Errorf("missing: %v", err)
	}
	if has, err := s.Has(t.Context(), missing); has || err != nil {
		t.Errorf("Has missing: %v, %v", has, err)
	}
	if _, err := s.Get(t.Context(), ref, 3); !errors.Is(err, ErrTooLarge) {
		t.Errorf("limit: %v", err)
	}
	for _, sum := range []string{"", "..", "../../../../etc/passwd", strings.ToUpper(ref.SHA256), ref.SHA256 +
		"0",
		strings.Repeat("/", 64), strings.Repeat("g", 64)} {
		if _, err := s.Get(t.Context(), ace.Ref{SHA256: sum, Size: 12}, 100); !errors.Is(err, ErrBadRef) {
			t.Errorf("%q: %v", sum, err)
		}
		if _, err := s.Has(t.Context(), ace.Ref{SHA256: sum}); !errors.Is(err, ErrBadRef) {
			t.Errorf("Has %q: %v", sum, err)
		}
	}
	if _, err := s.Get(t.Context(), ace.Ref{SHA256: ref.SHA256, Size: 11}, 100); !errors.Is(err, ErrCorrupt) {
		t.Errorf("wrong size: %v", err)
	}
}

func TestRepairsCorruptFile(t *testing.T) {
	s := open(t, t.TempDir())
	ref, err := s.PutBytes(t.Context(), []byte("some content"), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path(ref.SHA256), []byte("some CONTENT"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), ref, 100); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("Get: %v", err)
	}
	r, err := s.Open(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("Open: %v", err)
	}
	if _, err := s.PutBytes(t.Context(), []byte("some content"), ""); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), ref, 100); err != nil || string(got) != "some content" {
		t.Fatalf("after mending: %q, %v", got, err)
	}
}

func TestFailedPutLeavesNoFile(t *testing.T) {
	s := open(t, t.TempDir())
	boom := errors.New("boom")
	r := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(boom))
	if _, err := s.Put(t.Context(), r, ""); !errors.Is(err, boom) {
		t.Fatalf("err = %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.PutBytes(ctx, []byte("x"), ""); !errors.Is(err, context.Canceled) {
		t.Fatalf("err = %v", err)
	}
	if left := files(t, s.dir); len(left) != 0 {
		t.Fatalf("remaining files: %v", left)
	}
}

// TestFullDisk runs a process with a file size limit, which fails a write midway as a full disk
// does.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv("ARTIFACT_FULL_DISK"); dir != "" {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4096, Max: 4096}); err != nil {
			t.Fatal(err)
		}
		_, err := open(t, dir).PutBytes(t.Context(), make([]byte, 10_000), "")
		if !errors.Is(err, syscall.EFBIG) {
			t.Fatalf("err = %v", err)
		}
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$")
	cmd.Env = append(os.Environ(), "ARTIFACT_FULL_DISK="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if left := files(t, dir); len(left) != 0 {
		t.Fatalf("remaining files: %v", left)
	}
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	old, young := filepath.Join(dir, tmpDir, "put-old"), filepath.Join(dir, tmpDir, "put-young")
	for _, name := range []string{old, young} {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	when := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(old, when, when); err != nil {
		t.Fatal(err)
	}
	open(t, s.dir)
	if left := files(t, dir); len(left) != 1 || left[0] != young {
		t.Fatalf("left: %v", left)
	}
}

func TestConcurrent(t *testing.T) {
	dir := t.TempDir()
	stores := []*Store{open(t, dir), open(t, dir)}
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			content := bytes.Repeat(fmt.Appendf(nil, "%d", i%5), 10_000)
			ref, err := stores[i%2].PutBytes(t.Context(), content, "")
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := stores[(i+1)%2].Get(t.Context(), ref, 1<<20); err != nil ||
				!bytes.Equal(got, content) {
				t.Errorf("%d: %d bytes, %v", i, len(got), err)
			}
		})
	}
	wg.Wait()
	if n := len(files(t, dir)); n != 5 {
		t.Fatalf("%d files, want 5", n)
	}
}

func BenchmarkPut32K(b *testing.B) {
	s := open(b, b.TempDir())
	content := make([]byte, ace.InlineBytes)
	for i := 0; b.Loop(); i++ {
		copy(content, fmt.Sprint(i))
		if _, err := s.PutBytes(b.Context(), content, ""); err != nil {
			b.Fatal(err)
		}
	}
}
