package artifact

import (
	"acescope/engine/ace"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func newLogs(t *testing.T) (*Logs, *Store) {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(filepath.Join(dir, "artifacts"))
	if err != nil {
		t.Fatal(err)
	}
	return NewLogs(dir, s), s
}

var logName = LogName{WorkflowID: "session/../é", RunID: "run-1", Activity: "run_turn", Seq: 3, Attempt: 1}

func TestLiveLog(t *testing.T) {
	logs, store := newLogs(t)
	l, err := logs.Create(logName)
	if err != nil {
		t.Fatal(err)
	}
	if want := "logs/runs/session%2F..%2F%C3%A9/run-1/run_turn-3-1.jsonl"; l.Path() != want ||
		logName.Path() != want {
		t.Errorf("path %s", l.Path())
	}
	for _, line := range []string{`{"a":1}`, `{"b":2}` + "\r\n"} {
		if err := l.Line([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	want := "{\"a\":1}\n{\"b\":2}\n"
	if data, _ := os.ReadFile(logs.Path(l.Path())); string(data) != want {
		t.Errorf("while it is written: %q", data)
	}
	ref, err := l.Seal(t.Context())
	if err != nil || !l.Complete() {
		t.Fatalf("%v, complete %t", err, l.Complete())
	}
	if data, err := store.Get(t.Context(), ref, 100); err != nil || string(data) != want ||
		ref.Size != int64(len(want)) {
		t.Errorf("artifact %q, %+v, %v", data, ref, err)
	}
	if info, err := os.Stat(logs.Path(l.Path())); err != nil || info.Mode().Perm() != 0o400 {
		t.Errorf("finished: %v, %v", info, err)
	}
	if again, err := logs.Seal(t.Context(), l.Path()); err != nil || again != ref {
		t.Errorf("finished again: %+v, %v", again, err)
	}
	second, err := logs.Create(logName)
	if err != nil || !strings.HasSuffix(second.Path(), "run_turn-3-1.2.jsonl") {
		t.Errorf("a second one: %v, %v", second, err)
	}
}

// TestSealOrphanedLog seals the log of a killed process without its partial last line.
func TestSealOrphanedLog(t *testing.T) {
	logs, store := newLogs(t)
	l, err := logs.Create(logName)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Line([]byte(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.f.Write([]byte(`{"torn`)); err != nil {
		t.Fatal(err)
	}
	_ = l.f.Close()
	ref, err := logs.Seal(t.Context(), l.Path())
	if err != nil {
		t.Fatal(err)
	}
	if data, err := store.Get(t.Context(), ref, 100); err != nil || string(data) != "{\"a\":1}\n" {
		t.Errorf("%q, %v", data, err)
	}
}

// full is a file on a disk that becomes full in the middle of a line.
type full struct {
	*os.File
	room int
}

func (f *full) Write(b []byte) (int, error) {
	n := min(f.room, len(b))
	f.room -= n
	if n, err := f.File.Write(b[:n]); err != nil || n == len(b) {
		return n, err
	}
	return n, &fs.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
}

func TestLogOnFullDisk(t *testing.T) {
	logs, store := newLogs(t)
	l, err := logs.Create(logName)
	if err != nil {
		t.Fatal(err)
	}
	l.f = &full{l.f.(*os.File), 10}
	if err := l.Line([]byte(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var e *LogError
		if err := l.Line([]byte(`{"b":2}`)); !errors.As(err, &e) || !e.full() ||
			!strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("error %v", err)
		}
	}
	if l.Complete() || l.Dropped() != 2 {
		t.Errorf("complete %t, dropped %d", l.Complete(), l.Dropped())
	}
	if _, err := os.Stat(logs.Path(l.Path()) + ".incomplete"); err != nil {
		t.Error(err)
	}
	ref, err := l.Seal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if data, err := store.Get(t.Context(), ref, 100); err != nil || string(data) != "{\"a\":1}\n" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestLogTooLarge(t *testing.T) {
	logs, _ := newLogs(t)
	l, err := logs.Create(logName)
	if err != nil {
		t.Fatal(err)
	}
	l.limit = 10
	for range 3 {
		if err := l.Line([]byte(`{"a":1}`)); err != nil {
			t.Fatal(err)
		}
	}
	if l.Complete() || l.Dropped() != 2 || l.Size() != 8 {
		t.Errorf("dropped %d of %d bytes", l.Dropped(), l.Size())
	}
}

func TestEscape(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{"", "%", "a", ".", "..", ".a", "a/b", "a%2Fb", "session/x", "NUL\x00",
		strings.Repeat("é", 200),
		strings.Repeat("é", 199) + "x", "con.", "a b"} {
		name := ace.FileName(text)
		if other, twice := seen[name]; twice || name == "" || strings.ContainsAny(name, "/\x00 ") ||
			name[0] == '.' || len(name) > 255 {
			t.Errorf("%q becomes %q, as %q", text, name, other)
		}
		seen[name] = text
	}
}
