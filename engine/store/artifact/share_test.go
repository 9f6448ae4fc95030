package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"acescope/engine/ace"
	"acescope/engine/store/bucket"
	"acescope/engine/store/bucket/buckettest"
)

// sharedLogs returns the logs of two machines with one store.
func sharedLogs(t *testing.T) (writer, reader *Logs) {
	url := "file://" + t.TempDir()
	var logs [2]*Logs
	for i := range logs {
		b, err := bucket.Make(t.Context(), url, nil)
		if err != nil {
			t.Fatal(err)
		}
		store, err := OpenShared(t.TempDir(), b)
		if err != nil {
			t.Fatal(err)
		}
		logs[i] = NewLogs(t.TempDir(), store)
	}
	return logs[0], logs[1]
}

// mirrored returns the content of the only log of the run w/r that was mirrored.
func mirrored(t *testing.T, l *Logs) string {
	t.Helper()
	if err := l.Mirror(t.Context(), "w", "r"); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(l.Path(ace.RunLogsDir("w", "r") + "/*@*.jsonl"))
	if len(files) == 0 {
		return ""
	}
	content, err := os.ReadFile(files[0])
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	return string(content)
}

func TestFollowAnotherMachine(t *testing.T) {
	writer, reader := sharedLogs(t)
	l, err := writer.Create(LogName{"w", "r", "agent", 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	add := func(line string) {
		if err := l.Line([]byte(line)); err != nil {
			t.Fatal(err)
		}
		want += line + "\n"
	}
	add("first")
	for mirrored(t, reader) != want {
		time.Sleep(10 * time.Millisecond)
	}
	add("second")
	add(strings.Repeat("x", maxPart))
	add("last")
	ref, err := l.Seal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := mirrored(t, reader); got != want {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
	if got := mirrored(t, writer); got != "" {
		t.Errorf("the writer mirrored its own log: %q", got)
	}
	if data, err := reader.store.Get(t.Context(), ref, 1<<30); err != nil || string(data) != want {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// A mirror continues a file that ends within a part, and ignores what is no part.
func TestMirrorContinues(t *testing.T) {
	_, reader := sharedLogs(t)
	dir := ace.RunLogsDir("w", "r")
	for key, content := range map[string]string{
		"a-1-1.jsonl/other-000000000000-4": "one\n", "a-1-1.jsonl/other-000000000004-4": "two\n",
		"a-1-1.jsonl/other-000000000100-6": "later\n", "a-1-1.jsonl/other": "x", "a-1-1.jsonl/-1": "x",
		"stray":                                 "x",
		"a-1-1.jsonl/deep/other-000000000000-1": "x",
	} {
		if err := reader.store.shared.Create(t.Context(), dir+"/"+key,
			strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
	file := reader.Path(dir + "/a-1-1@other.jsonl")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("one\ntw"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := mirrored(t, reader); got != "one\ntwo\n" {
		t.Errorf("%q", got)
	}
}

// A log that ended before it was copied the first time is not copied if that is not wanted.
func TestShortLogIsNotShared(t *testing.T) {
	writer, reader := sharedLogs(t)
	name := LogName{"w", "r", "generate", 0, 1}.Path()
	if err := os.MkdirAll(filepath.Dir(writer.Path(name)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(writer.Path(name), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ifShared := range []bool{true, false} {
		c := writer.Copy(name)
		c.Grew(len("one\n"))
		if err := c.Finish(t.Context(), ifShared); err != nil {
			t.Error(err)
		}
		if got := mirrored(t, reader); (got == "") != ifShared {
			t.Errorf("only if shared %t: %q", ifShared, got)
		}
	}
}

// shaky is a bucket that fails a few times.
type shaky struct {
	bucket.Bucket
	failures int
}

func (b *shaky) Create(ctx context.Context, key string, content io.Reader) error {
	if b.failures--; b.failures >= 0 {
		return fmt.Errorf("write %s: %w", key, bucket.ErrUnavailable)
	}
	return b.Bucket.Create(ctx, key, content)
}

func TestUploadIsRepeated(t *testing.T) {
	b, err := bucket.Make(t.Context(), "file://"+t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	store, err := OpenShared(t.TempDir(), &shaky{b, 2})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := store.PutBytes(t.Context(), []byte("paid for"), "")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := bucket.Get(t.Context(), b, store.key(ref), 100); err != nil || string(got) != "paid for" {
		t.Errorf("%q, %v", got, err)
	}
	store.shared = &shaky{b, 1000}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := store.PutBytes(ctx, []byte("something else"), ""); !errors.Is(err, bucket.ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

// A damaged copy is replaced by the content of the shared store, and damaged content there is not accepted.
func TestDamagedCopies(t *testing.T) { buckettest.Each(t, testDamagedCopies) }

func testDamagedCopies(t *testing.T, url string) {
	b, err := bucket.Make(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	store, err := OpenShared(t.TempDir(), b)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := store.PutBytes(t.Context(), []byte("right"), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []string{"wrong", "longer than it was", ""} {
		if err := os.WriteFile(store.path(ref.SHA256), []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Get(t.Context(), ref, 100); err != nil || string(got) != "right" {
			t.Errorf("%q: %q, %v", damage, got, err)
		}
	}
	if err := b.Put(t.Context(), store.key(ref), strings.NewReader("wrong")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(store.path(ref.SHA256)); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Get(t.Context(), ref, 100); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%q, %v", got, err)
	}
}

// counted counts the requests that write.
type counted struct {
	bucket.Bucket
	writes int
}

func (b *counted) Create(ctx context.Context, key string, content io.Reader) error {
	b.writes++
	return b.Bucket.Create(ctx, key, content)
}

// A machine trusts what it stored itself a short time ago, but not what it fetched: that may be old, and is
// renewed before it is referred to, with the artifacts to which it refers.
func TestTrust(t *testing.T) {
	url := "file://" + t.TempDir()
	machine := func() (*Store, *counted) {
		t.Helper()
		b, err := bucket.Make(t.Context(), url, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := &counted{Bucket: b}
		s, err := OpenShared(t.TempDir(), c)
		if err != nil {
			t.Fatal(err)
		}
		return s, c
	}
	put := func(s *Store, content string) ace.Ref {
		t.Helper()
		ref, err := s.PutBytes(t.Context(), []byte(content), "")
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	first, requests := machine()
	text := put(first, "text")
	content := fmt.Sprintf(`{"ref":{"sha256":"%s","size":%d}}`, text.SHA256, text.Size)
	record := put(first, content)
	put(first, content)
	if requests.writes != 2 {
		t.Errorf("%d requests to write", requests.writes)
	}
	old := time.Now().Add(-10 * 24 * time.Hour)
	check := func(want bool, refs ...ace.Ref) {
		t.Helper()
		for _, ref := range refs {
			path := filepath.Join(strings.TrimPrefix(url, "file://"), first.key(ref))
			info, err := os.Stat(path)
			if err != nil || time.Since(info.ModTime()) < time.Hour != want {
				t.Errorf("%v, renewed at %s", err, info.ModTime())
			}
			if err := os.Chtimes(path, time.Time{}, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	check(true, text, record)
	second, _ := machine()
	if _, err := second.Get(t.Context(), record, 1000); err != nil {
		t.Fatal(err)
	}
	check(false, record)
	put(second, content)
	check(true, record)
	check(false, text)
	third, _ := machine()
	for _, ref := range []ace.Ref{record, {SHA256: strings.Repeat("0", 64), Size: 1}} {
		if has, err := third.Renew(t.Context(), ref); err != nil || has != (ref == record) {
			t.Errorf("renew %s: %t, %v", ref.SHA256, has, err)
		}
	}
	check(true, record, text)
}
