package transcripts

import (
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

// cacheFile is the content of the cache file.
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
	var cache cacheFile
	err := durable.LoadCache(x.o.Cache, maxCache, &cache)
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
	return durable.SaveCache(x.o.Cache, c)
}
