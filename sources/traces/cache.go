package traces

import (
	"os"
	"sync"
	"time"

	"acescope/engine/store/durable"
	"acescope/engine/trace/adapter"
	"acescope/sources/histories"
)

// maxFile bounds the content of the file, in bytes. Larger content is not read.
const maxFile = 64 << 20

// fileVersion is the version of the file's layout. Other versions are not read.
const fileVersion = 1

// cacheFile is the file with what is known of closed runs. Several processes may write it.
type cacheFile struct {
	path, version string

	mu     sync.Mutex
	loaded bool
	at     time.Time // of the file's content that was read or written last
}

// content is the content of the file.
type content struct {
	Version  int      `json:"version"`
	Program  string   `json:"program"`
	Adapters string   `json:"adapters"` // with the prices; see [adapter.Digest]
	Runs     []cached `json:"runs"`
}

// cached is a closed run.
type cached struct {
	Namespace string    `json:"namespace"`
	RunID     string    `json:"run_id"`
	Close     time.Time `json:"close"`
	histories.Traced
}

// load reads the file once. A file that cannot be read is replaced.
func (x *Index) load() {
	x.file.mu.Lock()
	defer x.file.mu.Unlock()
	if !x.file.loaded {
		x.file.loaded = true
		x.merge()
	}
}

// merge adds the runs of the file that are not known, if another process has written it since. The lock of the
// file is held.
func (x *Index) merge() {
	if x.file.path == "" {
		return
	}
	info, err := os.Stat(x.file.path)
	if err != nil || info.ModTime().Equal(x.file.at) {
		return
	}
	x.file.at = info.ModTime()
	var c content
	if durable.LoadCache(x.file.path, maxFile, &c) != nil || c.Version != fileVersion ||
		c.Program != x.file.version || c.Adapters != adapter.Digest() {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range c.Runs {
		k := key{r.Namespace, r.RunID}
		if e, ok := x.known[k]; (!ok || !e.lasting()) && !r.Close.IsZero() {
			x.known[k] = entry{Traced: r.Traced, close: r.Close}
		}
	}
}

// Save writes the file if closed runs were read since the last time.
func (x *Index) Save() error {
	x.file.mu.Lock()
	defer x.file.mu.Unlock()
	x.mu.Lock()
	changed := x.changed
	x.changed = false
	x.mu.Unlock()
	if !changed || x.file.path == "" {
		return nil
	}
	x.merge()
	err := durable.SaveCache(x.file.path, x.content())
	if info, statErr := os.Stat(x.file.path); err == nil && statErr == nil {
		x.file.at = info.ModTime()
	}
	return err
}

// content returns what the file is to have.
func (x *Index) content() content {
	c := content{Version: fileVersion, Program: x.file.version, Adapters: adapter.Digest(), Runs: []cached{}}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.trim()
	for k, e := range x.known {
		if e.lasting() {
			c.Runs = append(c.Runs, cached{k.namespace, k.run, e.close, e.Traced})
		}
	}
	return c
}
