package bucket

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"
)

// How often a cache is trimmed.
const (
	trimEvery = 24 * time.Hour
	trimStamp = "trimmed" // file that was written when the cache was last trimmed
	trimShare = 8         // of the limit; after so much was added, too
)

// Cache bounds a directory with copies of objects, which several processes may use at the same time. A user
// of a copy must expect that it is gone. A nil cache is not bounded.
type Cache struct {
	dir   string
	limit int64
	added atomic.Int64
}

// NewCache returns the cache in an existing directory, with at most limit bytes, and trims it if that was not
// done for a day.
func NewCache(dir string, limit int64) *Cache {
	c := &Cache{dir: dir, limit: limit}
	info, err := os.Stat(filepath.Join(dir, trimStamp))
	if err != nil || time.Since(info.ModTime()) > trimEvery {
		c.trim()
	}
	return c
}

// Added says that a file of n bytes was added.
func (c *Cache) Added(n int64) {
	if c != nil && c.added.Add(n) > c.limit/trimShare {
		c.added.Store(0)
		c.trim()
	}
}

// trim deletes the oldest files until the rest has a few bytes less than the limit. Files that cannot be
// deleted stay.
func (c *Cache) trim() {
	type copied struct {
		path string
		fs.FileInfo
	}
	var files []copied
	var size int64
	_ = filepath.WalkDir(c.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		if info, err := e.Info(); err == nil && e.Name() != trimStamp {
			files = append(files, copied{path, info})
			size += info.Size()
		}
		return nil
	})
	if size > c.limit {
		slices.SortFunc(files, func(a, b copied) int { return a.ModTime().Compare(b.ModTime()) })
		for _, f := range files {
			if size <= c.limit-c.limit/trimShare {
				break
			}
			if os.Remove(f.path) == nil {
				size -= f.Size()
			}
		}
	}
	_ = os.WriteFile(filepath.Join(c.dir, trimStamp), nil, 0o600)
}
