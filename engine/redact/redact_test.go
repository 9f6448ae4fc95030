package redact

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func BenchmarkLine(b *testing.B) {
	fs, _ := filepath.Glob("/work/shared/data/agent-streams/claude/*.jsonl")
	var all []byte
	for _, f := range fs {
		d, _ := os.ReadFile(f)
		all = append(all, d...)
	}
	lines := bytes.Split(all, []byte("\n"))
	r := New(Secret{"X", "abcdefghi123"})
	b.SetBytes(int64(len(all)))
	b.ReportAllocs()
	for b.Loop() {
		for _, l := range lines {
			r.Line(l)
		}
	}
}
