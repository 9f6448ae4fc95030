package durable

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	var wg sync.WaitGroup
	seen := make(chan string, 8)
	for i := range cap(seen) {
		wg.Go(func() {
			err := Create(path, []byte{byte('a' + i)})
			data, readErr := os.ReadFile(path)
			if err != nil || readErr != nil {
				t.Error(err, readErr)
			}
			seen <- string(data)
		})
	}
	wg.Wait()
	first := <-seen
	for range cap(seen) - 1 {
		if got := <-seen; got != first || got == "" {
			t.Errorf("one call read %q, another one %q", first, got)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Error("temporary files stay", entries, err)
	}
}
