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

	"acescope/engine/transcript"
)

// Bounds of the cache file. A larger one is not read; what does not fit is not written, the
// oldest transcripts first.
const (
	maxCache     = 64 << 20
	maxCacheLine = 1 << 20
)

// cacheVersion is the layout of the cache file, and of what summaries mean. Another one is
// not read.
const cacheVersion = 1

// cacheHead is the first line of a cache file. Costs were worked out with prices.
type cacheHead struct {
	Version int    `json:"version"`
	Prices  string `json:"prices"`
}

// cached is a transcript as it was read: of a file of this size and time.
type cached struct {
	Path    string             `json:"path"`
	Size    int64              `json:"size"`
	ModTime time.Time          `json:"mod_time"`
	Offset  int64              `json:"offset"`
	Summary transcript.Summary `json:"summary"`
	Kin     *cachedKin         `json:"kin,omitempty"`
}

type cachedKin struct {
	Family   string            `json:"family"`
	Grown    bool              `json:"grown,omitempty"`
	Parent   string            `json:"parent,omitempty"`
	Shared   int               `json:"shared,omitempty"`
	Inherits transcript.Totals `json:"inherits"`
}

// load takes what an earlier process has read. Each line has a check sum before it; one
// that is damaged is as if it were not there.
func (x *Index) load() {
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
	for first := true; lines.Scan(); first = false {
		data, ok := checked(lines.Bytes())
		if first {
			var head cacheHead
			if !ok || json.Unmarshal(data, &head) != nil || head != (cacheHead{cacheVersion, x.o.Prices.Digest()}) {
				return
			}
			continue
		}
		var c cached
		if ok && json.Unmarshal(data, &c) == nil && len(x.entries) < MaxFiles {
			x.recall(c)
		}
	}
}

func (x *Index) recall(c cached) {
	session, agent, ok := transcript.SessionOf(c.Path)
	if !ok || !filepath.IsAbs(c.Path) {
		return
	}
	x.entries[c.Path] = &entry{path: c.Path, session: session, agent: agent, size: c.Size, modTime: c.ModTime, offset: c.Offset,
		summary: c.Summary, done: true, cached: true}
	if k := c.Kin; k != nil {
		x.kin[c.Path] = kinship{family: k.Family, grown: k.Grown, parent: k.Parent, shared: k.Shared, inherits: k.Inherits}
	}
}

// checked is a line without its check sum; ok is false where that is wrong.
func checked(line []byte) (data []byte, ok bool) {
	var sum uint32
	at := bytes.IndexByte(line, ' ')
	if at != 8 {
		return nil, false
	}
	if _, err := fmt.Sscanf(string(line[:at]), "%08x", &sum); err != nil {
		return nil, false
	}
	data = line[at+1:]
	return data, crc32.ChecksumIEEE(data) == sum
}

// save writes the cache file whole beside its place and moves it there. Nothing is lost
// where that fails: the next process reads the transcripts again.
func (x *Index) save(now bool) {
	if x.o.Cache == "" || !x.stale || !now && time.Since(x.saved) < saveEvery {
		return
	}
	x.saved = time.Now()
	if err := x.writeCache(); err != nil {
		x.p.Trouble = "what was read is not kept: " + err.Error()
		return
	}
	x.stale = false
}

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
		if err != nil {
			f.Close()           // the first error is told
			os.Remove(f.Name()) // the same
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
	for _, e := range x.byAge() {
		if err := put(x.cachedOf(e)); err != nil {
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

// byAge is the transcripts that are read whole, the newest first.
func (x *Index) byAge() (list []*entry) {
	for _, e := range x.entries {
		if e.done && e.err == "" {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, byAge)
	return list
}

func (x *Index) cachedOf(e *entry) cached {
	c := cached{Path: e.path, Size: e.size, ModTime: e.modTime, Offset: e.offset, Summary: e.summary}
	if k, ok := x.kin[e.path]; ok {
		c.Kin = &cachedKin{k.family, k.grown, k.parent, k.shared, k.inherits}
	}
	return c
}
