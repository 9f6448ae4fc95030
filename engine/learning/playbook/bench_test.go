package playbook

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkMerge300 merges an ADD and a TAG into a playbook of 300 bullets. The fsync
// sub-benchmark measures one append to a file, for comparison.
func BenchmarkMerge300(b *testing.B) {
	b.Run("merge", func(b *testing.B) {
		s := openStore(b, b.TempDir())
		start(b, s, "main", largePlaybook(300))
		for i := 0; b.Loop(); i++ {
			req := request("main", i)
			req.Operations = delta(i % 100) // later ADDs are duplicates, so the playbook stays at 400 bullets
			merge(b, s, req)
		}
	})
	b.Run("fsync", func(b *testing.B) {
		line := make([]byte, 600)
		f, err := os.Create(b.TempDir() + "/log")
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		for b.Loop() {
			if _, err := f.Write(line); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkBranch5000 reads a branch of 5,000 versions: its head in a fresh store, versions
// that are not in memory, and the newest version.
func BenchmarkBranch5000(b *testing.B) {
	dir := b.TempDir()
	s := openStore(b, dir)
	start(b, s, "main", largePlaybook(300))
	for i := range 5000 {
		req := request("main", i)
		req.Operations = delta(i % 100)
		merge(b, s, req)
	}
	log, err := s.Page("main", 1, 5000)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			s := openStore(b, dir)
			if _, err := s.Get(b.Context(), head(b, s, "main")); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("get", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := s.Get(b.Context(), log[i*137%len(log)].Hash); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("head", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Get(b.Context(), head(b, s, "main")); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("log20", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Page("main", 4981, 5000); err != nil {
				b.Fatal(err)
			}
		}
	})
	size := int64(0)
	b.Run("size", func(b *testing.B) {
		for b.Loop() {
			size = treeSize(b, filepath.Join(dir, booksDir)) + treeSize(b, filepath.Join(dir, branchesDir))
		}
		b.ReportMetric(float64(size)/5000, "bytes/version")
	})
}

func treeSize(b *testing.B, dir string) (size int64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return size
}
