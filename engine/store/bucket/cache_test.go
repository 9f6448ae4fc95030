package bucket

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestCacheIsBounded(t *testing.T) {
	dir := t.TempDir()
	names := func() (list []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() != trimStamp {
				list = append(list, e.Name())
			}
		}
		return list
	}
	c := NewCache(dir, 800)
	for i := range 9 {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Duration(i-100)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	c.Added(100)
	if got := names(); len(got) != 9 {
		t.Errorf("trimmed too early: %q", got)
	}
	c.Added(1)
	if got := names(); len(got) != 7 || got[0] != "2" {
		t.Errorf("%q", got)
	}
	// A new process does not trim again on the same day.
	if err := os.WriteFile(filepath.Join(dir, "large"), make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	NewCache(dir, 800)
	if got := names(); len(got) != 8 {
		t.Errorf("%q", got)
	}
	if err := os.Chtimes(filepath.Join(dir, trimStamp), time.Time{},
		time.Now().Add(-25*time.Hour)); err != nil {
		t.Fatal(err)
	}
	NewCache(dir, 800)
	if got := names(); len(got) != 0 {
		t.Errorf("%q", got)
	}
}
