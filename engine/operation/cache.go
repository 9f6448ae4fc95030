package operation

import (
	"bytes"
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

	"acescope/engine/ace"
)

// Cache keeps results on the worker's side. Several goroutines may use it.
type Cache interface {
	// Get gives the entry of a key; false where there is none.
	Get(ctx context.Context, key string) (Entry, bool, error)
	Put(ctx context.Context, e Entry) error
}

// Entry is a result in a cache.
type Entry struct {
	Key        string          `json:"key"`
	Type       Type            `json:"operation_type"`
	Step       string          `json:"step"`
	Version    string          `json:"handler_version"`
	Value      json.RawMessage `json:"result,omitempty"`
	Ref        *ace.Ref        `json:"result_ref,omitempty"`
	ExecutedAt time.Time       `json:"executed_at"`
	DurationMS float64         `json:"duration_ms"`
}

// CacheKey is the SHA-256, in lower-case hexadecimal, of the canonical JSON of an object
// with the type, the step, the parameters and the version of the handler.
func CacheKey(t Type, step string, parameters json.RawMessage, version string) (string, error) {
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

// FileCache is a directory of results, each in a file ab/<key>.json (ab being the first two
// digits). Files are written whole or not at all, with mode 0600. Several processes may
// share one. Beyond its bounds the results that were used least recently go; a file that
// cannot be read counts as none and goes too.
type FileCache struct {
	dir     string
	entries int
	bytes   int64

	mu      sync.Mutex
	have    int   // about; other processes write too
	size    int64 // about
	removed int64
}

// OpenFileCache makes the directory where there is none. It keeps at most so many entries
// and bytes.
func OpenFileCache(dir string, entries int, bytes int64) (*FileCache, error) {
	if entries < 1 || bytes < 1 {
		return nil, fmt.Errorf("result cache %s: give room for at least one entry and one byte", dir)
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

// Removed is how many entries had to go to make room.
func (c *FileCache) Removed() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.removed
}

func (c *FileCache) path(key string) (string, error) {
	if len(key) != 64 || strings.Trim(key, "0123456789abcdef") != "" {
		return "", fmt.Errorf("%q is no key of a result", key)
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
		return nil // it would push all others out and not stay
	}
	if err := writeFile(path, data); err != nil {
		return err
	}
	c.mu.Lock()
	c.have++
	c.size += int64(len(data))
	full := c.have > c.entries || c.size > c.bytes
	c.mu.Unlock()
	if full {
		return c.shrink()
	}
	return nil
}

// writeFile writes a file whole or not at all.
func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already where it was renamed
	_, err = bytes.NewReader(data).WriteTo(f)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// leftover is how old a file under a temporary name is that a killed process left.
const leftover = time.Hour

// shrink counts what is there and, where that is too much, removes the least recently used
// down to nine tenths.
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
			return skipMissing(err)
		}
		info, err := d.Info()
		if err != nil {
			return skipMissing(err)
		}
		switch {
		case strings.HasSuffix(path, ".json"):
			all = append(all, file{path, info.ModTime(), info.Size()})
			c.size += info.Size()
		case time.Since(info.ModTime()) > leftover:
			return skipMissing(os.Remove(path))
		}
		return nil
	})
	c.have = len(all)
	if err != nil || c.have <= c.entries && c.size <= c.bytes {
		return err
	}
	slices.SortFunc(all, func(a, b file) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.path, b.path)) })
	for _, f := range all {
		if c.have <= c.entries*9/10 && c.size <= c.bytes/10*9 || c.have == 1 {
			break
		}
		if err := skipMissing(os.Remove(f.path)); err != nil {
			return err
		}
		c.have--
		c.size -= f.size
		c.removed++
	}
	return nil
}

func skipMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
