package transcript

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"acescope/engine/agents/price"
)

// tail folds a growing file and restarts if it is replaced.
type tail struct {
	r    *Reader
	fold *Fold
}

func newTail(path string) *tail {
	return &tail{r: NewReader(path), fold: NewFold(price.Shipped())}
}

func (a *tail) read(t testing.TB, budget int64) Progress {
	t.Helper()
	p, err := a.r.Read(context.Background(), budget, func() { a.fold = NewFold(price.Shipped()) },
		func(raw []byte, _ int64) { a.fold.Add(raw) })
	if err != nil {
		t.Fatal(err)
	}
	a.fold.Oversize(p.Oversized)
	return p
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestReadInPieces checks that the summary does not depend on how a file grows.
func TestReadInPieces(t *testing.T) {
	data, err := os.ReadFile("testdata/session.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	want := read(t, "testdata/session.jsonl")
	path := filepath.Join(t.TempDir(), "s.jsonl")
	for _, step := range []int{61, 1000} {
		a := newTail(path)
		for n := 0; n < len(data); n += step {
			write(t, path, data[:n])
			a.read(t, 0)
		}
		write(t, path, data)
		if p := a.read(t, 0); p.Offset != int64(len(data)) || p.More {
			t.Errorf("%+v", p)
		}
		if got := a.fold.Summary(); !reflect.DeepEqual(got, want) {
			t.Errorf("in steps of %d: %+v\nwant %+v", step, got, want)
		}
	}
}

func TestBudget(t *testing.T) {
	path := generate(t, 3<<20)
	a, rounds := newTail(path), 0
	for a.read(t, 1<<19).More {
		rounds++
	}
	if want := read(t, path); rounds < 4 || !reflect.DeepEqual(a.fold.Summary(), want) {
		t.Errorf("%d rounds, %+v, want %+v", rounds, a.fold.Summary(), want)
	}
}

func TestTornAndWholeLastLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	one := `{"type":"user","uuid":"1","message":{"content":"one"}}`
	a := newTail(path)
	write(t, path, []byte(one+"\n"+one[:20]))
	a.read(t, 0)
	if s := a.fold.Summary(); s.Lines != 1 {
		t.Errorf("a torn line is counted: %+v", s)
	}
	two := strings.ReplaceAll(one, `"1"`, `"2"`)
	write(t, path, []byte(one+"\n"+two))
	a.read(t, 0)
	if s := a.fold.Summary(); s.Turns != 2 {
		t.Errorf("a complete line without a line ending is not counted: %+v", s)
	}
	write(t, path, []byte(one+"\n"+two+"\n"))
	if p := a.read(t, 0); a.fold.Summary().Lines != 2 || p.Restarted {
		t.Errorf("the line ending is counted as a line: %+v", a.fold.Summary())
	}
}

func TestFileIsReplacedOrTruncated(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.jsonl")
	line := func(id, says string) string {
		return `{"type":"user","uuid":"` + id + `","message":{"content":"` + says + `"}}` + "\n"
	}
	for name, change := range map[string]func(){
		"truncated": func() { write(t, path, []byte(line("9", "new"))) },
		"overwritten": func() {
			write(t, path, []byte(line("9", "new")+line("8", "longer than before, by far")))
		},
		"renamed over": func() { write(t, path+"2", []byte(line("9", "new"))); os.Rename(path+"2", path) },
	} {
		write(t, path, []byte(line("1", "one")+line("2", "two")))
		a := newTail(path)
		a.read(t, 0)
		change()
		if p := a.read(t, 0); !p.Restarted || a.fold.Summary().Prompt != "new" {
			t.Errorf("%s: %+v, %+v", name, p, a.fold.Summary())
		}
	}
	write(t, path, []byte(line("1", "one")))
	a := newTail(path)
	a.read(t, 0)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := a.r.Read(context.Background(), 0, nil, nil); !os.IsNotExist(err) {
		t.Errorf("deleted file: %v", err)
	}
}

func TestLongLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	says := func(id string, n int) []byte {
		return append(append([]byte(`{"type":"user","uuid":"`+id+`","message":{"content":"`),
			bytes.Repeat([]byte{'x'}, n)...), "\"}}\n"...)
	}
	data := append(says("1", 10), says("2", 50<<20)...)
	data = append(append(data, says("3", 5<<20)...), says("4", 10)...)
	write(t, path, data)
	for _, budget := range []int64{0, 1 << 20} {
		a := newTail(path)
		for a.read(t, budget).More {
		}
		if s := a.fold.Summary(); s.Turns != 3 || s.Oversized != 1 || s.Lines != 4 {
			t.Errorf("%d turns, %d oversized, %d lines", s.Turns, s.Oversized, s.Lines)
		}
	}
}

func TestNotRegularFile(t *testing.T) {
	if _, err := NewReader(t.TempDir()).Read(context.Background(), 0, nil, nil); err == nil {
		t.Error("reading a directory succeeded")
	}
}
