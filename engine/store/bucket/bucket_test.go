package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"acescope/engine/store/bucket/buckettest"
)

// each runs a test with a store of each kind, also in memory and with encoded content.
func each(t *testing.T, test func(t *testing.T, url string)) {
	t.Run("memory", func(t *testing.T) { test(t, "mem://") })
	t.Run("encoded", func(t *testing.T) { test(t, "file://"+t.TempDir()+"?codec=true") })
	buckettest.Each(t, test)
}

// reverse is a codec that reverses bytes and adds one.
type reverse struct{}

func (reverse) EncodeData(_ context.Context, data []byte) ([]byte, error) {
	data = slices.Clone(data)
	slices.Reverse(data)
	return append(data, '!'), nil
}

func (reverse) DecodeData(_ context.Context, data []byte) ([]byte, error) {
	data = slices.Clone(data[:len(data)-1])
	slices.Reverse(data)
	return data, nil
}

func open(t *testing.T, url string) Bucket {
	t.Helper()
	b, err := Make(t.Context(), url, reverse{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func TestObjects(t *testing.T) {
	each(t, func(t *testing.T, url string) {
		b, ctx := open(t, url), t.Context()
		prefix := fmt.Sprintf("test-%d/", os.Getpid())
		for _, key := range []string{"a/1", "a/2", "b/%20x"} {
			if err := b.Create(ctx, prefix+key, strings.NewReader("content of "+key)); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Create(ctx, prefix+"a/1", strings.NewReader("other")); !errors.Is(err, ErrExists) {
			t.Errorf("create again: %v", err)
		}
		if got, err := Get(ctx, b, prefix+"a/1", 100); err != nil || string(got) != "content of a/1" {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := Get(ctx, b, prefix+"a/1", 3); err == nil {
			t.Error("an object over the limit was read")
		}
		if _, err := b.Open(ctx, prefix+"a/3"); !errors.Is(err, ErrNotFound) {
			t.Errorf("missing object: %v", err)
		}
		for part, want := range map[string]int{"": 3, "a/": 2, "a": 2, "b/%20": 1, "c/": 0} {
			listed := map[Object]error{}
			maps.Insert(listed, b.List(ctx, prefix+part))
			for o, err := range listed {
				if strings.Contains(url, "codec") {
					o.Size -= 2 // length and mark
				}
				if err != nil || o.Size != int64(len("content of ")+len(o.Key)-len(prefix)) ||
					time.Since(o.Written) > time.Hour {
					t.Errorf("%+v, %v", o, err)
				}
			}
			if len(listed) != want {
				t.Errorf("objects of %q: %v", part, listed)
			}
		}
		if err := b.Put(ctx, prefix+"a/1", strings.NewReader("new")); err != nil {
			t.Error(err)
		}
		if got, err := Get(ctx, b, prefix+"a/1", 100); err != nil || string(got) != "new" {
			t.Errorf("%q, %v", got, err)
		}
		if err := b.Delete(ctx, prefix+"a/1"); err != nil {
			t.Error(err)
		}
		if _, err := b.Open(ctx, prefix+"a/1"); !errors.Is(err, ErrNotFound) {
			t.Errorf("deleted object: %v", err)
		}
	})
}

// Of several writers of a key, one succeeds, and its content is read.
func TestOneWriterWins(t *testing.T) {
	const keys, writers = 20, 8
	each(t, func(t *testing.T, url string) {
		b, prefix := open(t, url), fmt.Sprintf("race-%d/", os.Getpid())
		var winner [keys]atomic.Int32
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for k := range keys {
					err := b.Create(t.Context(), fmt.Sprint(prefix, k), strings.NewReader(fmt.Sprint(w+1)))
					if err == nil && !winner[k].CompareAndSwap(0, int32(w+1)) {
						t.Errorf("key %d: two writers succeeded", k)
					}
					if err != nil && !errors.Is(err, ErrExists) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for k := range keys {
			got, err := Get(t.Context(), b, fmt.Sprint(prefix, k), 10)
			if err != nil || string(got) != fmt.Sprint(winner[k].Load()) {
				t.Errorf("key %d has the content of %s, writer %d succeeded, %v", k, got, winner[k].Load(),
					err)
			}
		}
	})
}

// failing returns an error after some content.
type failing struct{ n int }

func (f *failing) Read(p []byte) (int, error) {
	if f.n--; f.n < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return copy(p, "half"), nil
}

func TestFailedCreateLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, url string) {
		b, prefix := open(t, url), fmt.Sprintf("failed-%d/", os.Getpid())
		if err := b.Create(t.Context(), prefix+"x", &failing{1}); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%v", err)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.Create(canceled, prefix+"x", strings.NewReader("x")); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if _, err := b.Open(t.Context(), prefix+"x"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%v", err)
		}
	})
}

func TestEncoded(t *testing.T) {
	dir := t.TempDir()
	b := open(t, "file://"+dir+"?codec=true")
	large := strings.Repeat("0123456789", maxPiece/4)
	for key, content := range map[string]string{"empty": "", "small": "secret", "large": large} {
		if err := b.Put(t.Context(), key, strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := Get(t.Context(), b, key, 1<<30); err != nil || string(got) != content {
			t.Errorf("%s: %d bytes, %v", key, len(got), err)
		}
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "small")); err != nil || string(raw) != "\x07terces!" {
		t.Errorf("%q, %v", raw, err)
	}
	for _, damage := range []string{"\x07terces", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x", "plain text",
		"\x80"} {
		if err := os.WriteFile(filepath.Join(dir, "small"), []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Get(t.Context(), b, "small", 100); err == nil {
			t.Errorf("%q was read as %q", damage, got)
		}
	}
	if _, err := Open(t.Context(), "file://"+dir+"?codec=true", nil); !errors.Is(err, ErrURL) {
		t.Errorf("without a codec: %v", err)
	}
}

// A directory that is not there is not an empty store.
func TestMissingDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	b, err := Open(t.Context(), "file://"+dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Open(t.Context(), "x")
	if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read: %v", err)
	}
	if err := b.Create(t.Context(), "x", strings.NewReader("x")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("write: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory was created")
	}
	for _, what := range []string{"missing", "a mount point"} {
		listed := false
		for o, err := range b.List(t.Context(), "a/") {
			if listed = true; !errors.Is(err, ErrUnavailable) {
				t.Errorf("list, %s: %v, %v", what, o, err)
			}
		}
		if !listed {
			t.Errorf("list, %s: empty", what)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "format.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for o, err := range b.List(t.Context(), "a/") {
		t.Errorf("list of a data directory: %v, %v", o, err)
	}
}

// moving is content that moves the store away while it is read.
type moving struct{ from, to string }

func (m moving) Read([]byte) (int, error) {
	if err := os.Rename(m.from, m.to); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

func TestDirectoryGoneDuringAWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	b := open(t, "file://"+dir)
	err := b.Create(t.Context(), "a/x", moving{dir, dir + "-away"})
	if !errors.Is(err, ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a second store was created: %v", err)
	}
	listed := false
	for o, err := range b.List(t.Context(), "a/") {
		listed = true
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("%v, %v", o, err)
		}
	}
	if !listed {
		t.Error("the store that is gone has an empty list")
	}
}

func TestBadURLs(t *testing.T) {
	for _, url := range []string{"", "/var/lib", "s3", "file://host/dir", "file:dir", "file:///dir?x=1",
		"ftp://host/x",
		"s3://bucket?no_such=1", "\x00"} {
		if b, err := Open(t.Context(), url, nil); !errors.Is(err, ErrURL) {
			t.Errorf("%q: %v, %v", url, b, err)
		}
	}
	b, err := Open(t.Context(), "mem://user:secret@host", nil)
	if err == nil && strings.Contains(b.String(), "secret") {
		t.Errorf("%s has the secret", b)
	}
}

func TestKeysStayInTheDirectory(t *testing.T) {
	dir := t.TempDir()
	b := open(t, "file://"+filepath.Join(dir, "store"))
	for _, key := range []string{"", "..", "../x", "a/../../x", "/x", "a//x", ".tmp/x", "a/.x", "a\\x",
		"a\x00"} {
		if err := b.Create(t.Context(), key, strings.NewReader("x")); err == nil {
			t.Errorf("%q was created", key)
		}
		if _, err := b.Open(t.Context(), key); err == nil {
			t.Errorf("%q was opened", key)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%v", entries)
	}
}
