package operation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"acescope/engine/store/durable"
)

// Cache stores results on the worker's side. Implementations are safe for concurrent use.
type Cache interface {
	// Get returns the entry of a key, or false if it is not cached.
	Get(ctx context.Context, key string) (Entry, bool, error)
	Put(ctx context.Context, e Entry) error
}

// Entry is a cached result.
type Entry struct {
	Key     string `json:"key"`
	Type    Type   `json:"operation_type"`
	Step    string `json:"step"`
	Version string `json:"handler_version"`
	Result
}

// cacheKey returns the SHA-256, in lower-case hexadecimal, of the canonical JSON of an object
// with the type, step, parameters and handler version.
func cacheKey(t Type, step string, parameters json.RawMessage, version string) (string, error) {
	data, err := encode(struct {
		Type       Type            `json:"operation_type"`
		Step       string          `json:"step"`
		Parameters json.RawMessage `json:"parameters"`
		Version    string          `json:"handler_version"`
	}{t, step, parameters, version})
	if err != nil {
		return "", err
	}
	return digest(data), nil
}

// FileCache is a [Cache] in a directory, with each result in a file ab/<key>.json, where ab are
// the first two digits of the key. Files are written atomically with mode 0600. Several
// processes may share the directory. Beyond its bounds the least recently used results are
// removed. Unreadable files are removed too.
type FileCache struct {
	dir     string
	entries int
	bytes   int64

	mu      sync.Mutex
	count   int   // estimate; other processes write too
	size    int64 // estimate
	removed int64
}

// OpenFileCache opens a cache and creates its directory if needed. The arguments bound its
// entries and bytes.
func OpenFileCache(dir string, entries int, bytes int64) (*FileCache, error) {
	if entries < 1 || bytes < 1 {
		return nil, fmt.Errorf("result cache %s: the limits must be at least one entry and one byte", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("result cache: %w", err)
	}
	c := &FileCache{dir: dir, entries: entries, bytes: bytes}
	if err := c.shrink(); err != nil {
		return nil, fmt.Errorf("result cache: %w", err)
	}
	return c, nil
}

// Removed returns the number of entries removed to make room.
func (c *FileCache) Removed() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.removed
}

func (c *FileCache) path(key string) (string, error) {
	if len(key) != 64 || strings.Trim(key, "0123456789abcdef") != "" {
		return "", fmt.Errorf("%q is not a cache key", key)
	}
	return filepath.Join(c.dir, key[:2], key+".json"), nil
}

// Get implements [Cache].
func (c *FileCache) Get(_ context.Context, key string) (Entry, bool, error) {
	path, err := c.path(key)
	if err != nil {
		return Entry{}, false, err
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Entry{}, false, nil
	}
	if err != nil {
		return Entry{}, false, err
	}
	var e Entry
	if json.Unmarshal(data, &e) != nil || e.Key != key || e.Value == nil && e.Ref == nil {
		return Entry{}, false, os.Remove(path)
	}
	now := time.Now()
	if err := os.Chtimes(path, now, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return e, true, err
	}
	return e, true, nil
}

// Put implements [Cache].
func (c *FileCache) Put(_ context.Context, e Entry) error {
	path, err := c.path(e.Key)
	if err != nil {
		return err
	}
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if int64(len(data)) > c.bytes {
		return nil // too large for the cache
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := durable.WriteFile(path, filepath.Dir(path), data, true); err != nil {
		return err
	}
	c.mu.Lock()
	c.count++
	c.size += int64(len(data))
	full := c.count > c.entries || c.size > c.bytes
	c.mu.Unlock()
	if full {
		return c.shrink()
	}
	return nil
}

// tempMaxAge is the age at which temporary files of killed processes are removed.
const tempMaxAge = time.Hour

// shrink counts the entries and, beyond the bounds, removes the least recently used ones down
// to nine tenths.
func (c *FileCache) shrink() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	type file struct {
		path string
		used time.Time
		size int64
	}
	var all []file
	c.size = 0
	err := filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreMissing(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreMissing(err)
		}
		switch {
		case strings.HasSuffix(path, ".json"):
			all = append(all, file{path, info.ModTime(), info.Size()})
			c.size += info.Size()
		case time.Since(info.ModTime()) > tempMaxAge:
			return ignoreMissing(os.Remove(path))
		}
		return nil
	})
	c.count = len(all)
	if err != nil || c.count <= c.entries && c.size <= c.bytes {
		return err
	}
	slices.SortFunc(all, func(a, b file) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.path, b.path))
	})
	for _, f := range all {
		if c.count <= c.entries*9/10 && c.size <= c.bytes/10*9 || c.count == 1 {
			break
		}
		if err := ignoreMissing(os.Remove(f.path)); err != nil {
			return err
		}
		c.count--
		c.size -= f.size
		c.removed++
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
