package transcript

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"acescope/engine/agents/agentcli"
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

// BenchmarkFormats folds recorded transcripts of an agent, repeated to 8 MB, from memory.
func BenchmarkFormats(b *testing.B) {
	prices := price.Shipped()
	for _, agent := range []agentcli.CLI{agentcli.Codex, agentcli.Gemini, agentcli.OpenCode} {
		f := Of(agent)
		entries, err := f.List(b.Context(), formatRoot(b, agent))
		if err != nil {
			b.Fatal(err)
		}
		var lines [][]byte
		size := int64(0)
		for size < 8<<20 {
			for _, e := range entries {
				_, err := f.Open(e.Path).Read(b.Context(), 0, nil, func(raw []byte, _ int64) {
					lines = append(lines, bytes.Clone(raw))
					size += int64(len(raw))
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		b.Run(string(agent), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				fold := f.Fold(prices)
				for _, l := range lines {
					fold.Add(l)
				}
			}
		})
	}
}
