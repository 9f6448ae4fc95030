package transcripts

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"time"

	"acescope/engine/agents/transcript"
)

// Bounds of the cache file. A larger file is not read; entries that do not fit are not
// written, the oldest transcripts first.
const (
	maxCache     = 64 << 20
	maxCacheLine = 1 << 20
)

// cacheVersion is the version of the cache file's layout and of the meaning of summaries.
// Other versions are not read.
const cacheVersion = 2

// cacheHead is the first line of a cache file. Prices identifies those of the costs.
type cacheHead struct {
	Version int    `json:"version"`
	Prices  string `json:"prices"`
}

// cached is a transcript as it was read from a file of this size and time.
type cached struct {
	Path    string             `json:"path"`
	Size    int64              `json:"size"`
	ModTime time.Time          `json:"mod_time"`
	Offset  int64              `json:"offset"`
	Summary transcript.Summary `json:"summary"`
	Kin     *kinship           `json:"kin,omitempty"`
}

// load reads the cache once. Each line begins with its checksum; damaged lines are ignored.
func (x *Index) load() {
	if x.loaded {
		return
	}
	x.loaded = true
	info, err := os.Stat(x.o.Cache)
	if x.o.Cache == "" || err != nil || info.Size() > maxCache {
		return
	}
	f, err := os.Open(x.o.Cache)
	if err != nil {
		return
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxCacheLine)
	var head cacheHead
	if !lines.Scan() || !decodeLine(lines.Bytes(), &head) || head != (cacheHead{cacheVersion, x.o.Prices.Digest()}) {
		return
	}
	for lines.Scan() {
		var c cached
		if decodeLine(lines.Bytes(), &c) && len(x.entries) < MaxFiles {
			x.addCached(c)
		}
	}
}

func (x *Index) addCached(c cached) {
	session, agent, ok := transcript.SessionOf(c.Path)
	if !ok || !filepath.IsAbs(c.Path) {
		return
	}
	x.entries[c.Path] = &entry{path: c.Path, session: session, agent: agent, size: c.Size, modTime: c.ModTime,
		offset: c.Offset, summary: c.Summary, done: true, cached: true}
	if c.Kin != nil {
		x.kin[c.Path] = *c.Kin
	}
}

// decodeLine decodes a line whose checksum is right.
func decodeLine(line []byte, v any) bool {
	hexSum, data, ok := bytes.Cut(line, []byte(" "))
	var sum uint32
	if _, err := fmt.Sscanf(string(hexSum), "%08x", &sum); !ok || err != nil || len(hexSum) != 8 {
		return false
	}
	return crc32.ChecksumIEEE(data) == sum && json.Unmarshal(data, v) == nil
}

// save writes the cache file if it is out of date and due, or now. If that fails, the next
// process reads the transcripts again.
func (x *Index) save(now bool) {
	if x.o.Cache == "" || !x.stale || !now && time.Since(x.saved) < saveInterval {
		return
	}
	x.saved = time.Now()
	if err := x.writeCache(); err != nil {
		x.p.Trouble = "cannot write the cache: " + err.Error()
		return
	}
	x.stale = false
}

// writeCache writes a temporary file and renames it.
func (x *Index) writeCache() (err error) {
	dir := filepath.Dir(x.o.Cache)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(x.o.Cache)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil { // the first error is returned
			f.Close()
			os.Remove(f.Name())
		}
	}()
	out := bufio.NewWriterSize(f, 1<<16)
	size := 0
	put := func(v any) error {
		data, err := json.Marshal(v)
		if err != nil || len(data)+9 > maxCacheLine || size+len(data) > maxCache {
			return err
		}
		n, err := fmt.Fprintf(out, "%08x %s\n", crc32.ChecksumIEEE(data), data)
		size += n
		return err
	}
	if err := put(cacheHead{cacheVersion, x.o.Prices.Digest()}); err != nil {
		return err
	}
	for _, e := range x.complete() {
		c := cached{Path: e.path, Size: e.size, ModTime: e.modTime, Offset: e.offset, Summary: e.summary}
		if k, ok := x.kin[e.path]; ok {
			c.Kin = &k
		}
		if err := put(c); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), x.o.Cache)
}

// complete returns the transcripts that are read to their end, the newest first.
func (x *Index) complete() (list []*entry) {
	for _, e := range x.entries {
		if e.done && e.err == "" {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, byAge)
	return list
}
