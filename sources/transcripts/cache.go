package transcripts

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/transcript"
	"acescope/engine/store/durable"
)

// maxCache bounds the content of the cache file, in bytes. Larger content is not read.
const maxCache = 256 << 20

// cacheVersion is the version of the cache file's layout and of the meaning of summaries.
// Other versions are not read.
const cacheVersion = 9

// cacheFile is the content of the cache file: compressed JSON, whose checksum detects damage.
type cacheFile struct {
	Version int      `json:"version"`
	Prices  string   `json:"prices"` // digest of those of the costs
	Zone    string   `json:"zone"`   // of the days
	Files   []cached `json:"files"`
}

// cached is a transcript as it was read from a file of this size and time.
type cached struct {
	Format agentcli.CLI `json:"format"`
	transcript.Entry
	Offset  int64              `json:"offset"`
	Summary transcript.Summary `json:"summary"`
	Copied  *copiedPart        `json:"copied,omitempty"`
}

// load reads the cache once. A cache that cannot be read is replaced.
func (x *Index) load() {
	if x.loaded || x.o.Cache == "" {
		return
	}
	x.loaded = true
	cache, err := readCache(x.o.Cache)
	if err != nil || cache.Version != cacheVersion || cache.Prices != x.o.Prices.Digest() ||
		cache.Zone != zone() {
		return
	}
	for _, c := range cache.Files {
		if format := transcript.Of(c.Format); format != nil && filepath.IsAbs(c.Path) {
			x.files[c.Path] = &file{Entry: c.Entry, format: format, offset: c.Offset, summary: c.Summary,
				copied: c.Copied, done: true, cached: true}
		}
	}
	x.changed = true
}

// zone names the local time zone: its offset and abbreviation of now.
func zone() string { return time.Now().Format("-0700 MST") }

func readCache(path string) (c cacheFile, err error) {
	f, err := os.Open(path)
	if err != nil {
		return c, err
	}
	defer f.Close()
	content, err := gzip.NewReader(f)
	if err != nil {
		return c, err
	}
	data, err := io.ReadAll(io.LimitReader(content, maxCache))
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(data, &c)
}

// save writes the cache file if it is out of date and due, or now. If that fails, the next
// process reads the transcripts again.
func (x *Index) save(now bool) {
	if x.o.Cache == "" || !x.stale || !now && time.Since(x.saved) < saveInterval {
		return
	}
	x.saved = time.Now()
	if err := x.writeCache(); err != nil {
		x.unsaved = "cannot write the cache: " + err.Error()
		return
	}
	x.stale, x.unsaved = false, ""
}

// writeCache writes the transcripts that are read to their end.
func (x *Index) writeCache() error {
	c := cacheFile{Version: cacheVersion, Prices: x.o.Prices.Digest(), Zone: zone()}
	for _, f := range x.files {
		if f.done && f.err == "" {
			c.Files = append(c.Files, cached{f.format.Agent(), f.Entry, f.offset, f.summary, f.copied})
		}
	}
	var out bytes.Buffer
	content := gzip.NewWriter(&out)
	if err := json.NewEncoder(content).Encode(c); err != nil {
		return err
	}
	if err := content.Close(); err != nil {
		return err
	}
	dir := filepath.Dir(x.o.Cache)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return durable.WriteFile(x.o.Cache, dir, out.Bytes(), false)
}
