package transcript

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"acescope/engine/agents/price"
	"acescope/engine/agents/transcript/transcripttest"
)

// BenchmarkFold folds a session of 16 MB from memory.
func BenchmarkFold(b *testing.B) {
	data, err := os.ReadFile(generate(b, 16<<20))
	if err != nil {
		b.Fatal(err)
	}
	prices := price.Shipped()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		f := NewFold(prices)
		for rest := data; len(rest) > 0; {
			n := bytes.IndexByte(rest, '\n')
			f.Add(rest[:n])
			rest = rest[n+1:]
		}
		if f.Summary().Unreadable > 0 {
			b.Fatal("lines could not be read")
		}
	}
}

// BenchmarkReadAll folds the same session from a file.
func BenchmarkReadAll(b *testing.B) {
	path := generate(b, 16<<20)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	prices := price.Shipped()
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewFold(prices).readAll(context.Background(), NewReader(path)); err != nil {
			b.Fatal(err)
		}
	}
}

func generate(t testing.TB, size int64) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := transcripttest.Write(dir, transcripttest.Options{Sessions: 1, Bytes: size}); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "projects", "*", "*.jsonl"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	return paths[0]
}
