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
	trimStamp = "trimmed" // file whose modification time is that of the last trim
	trimShare = 8         // a process also trims after it has added the limit divided by trimShare
)

// Cache bounds a directory with copies of objects, which several processes may use at the same time. A caller
// must expect that a copy was deleted. A nil Cache does not bound its directory.
type Cache struct {
	dir   string
	limit int64
	added atomic.Int64
}

// NewCache returns the cache in an existing directory, with at most limit bytes. It trims the cache if the
// last trim was more than a day ago.
func NewCache(dir string, limit int64) *Cache {
	c := &Cache{dir: dir, limit: limit}
	info, err := os.Stat(filepath.Join(dir, trimStamp))
	if err != nil || time.Since(info.ModTime()) > trimEvery {
		c.trim()
	}
	return c
}

// Added notes that a file of n bytes was added.
func (c *Cache) Added(n int64) {
	if c != nil && c.added.Add(n) > c.limit/trimShare {
		c.added.Store(0)
		c.trim()
	}
}

// trim deletes the oldest files until the rest is smaller than the limit. Files that cannot be deleted stay.
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
