package transcripts

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"acescope/engine/agents/transcript"
)

// file is a transcript in the index.
type file struct {
	transcript.Entry
	format transcript.Format

	done    bool                  // the summary is that of this size and time
	cached  bool                  // it comes from the cache
	reader  transcript.LineReader // nil if reading must start again
	fold    transcript.Folder
	offset  int64
	summary transcript.Summary
	copied  *copiedPart // nil before it was compared with others
	err     string
}

// owner returns the ID of the session that the transcript belongs to, and what identifies the session.
func (f *file) owner() (id, key string) {
	if id = cmp.Or(f.summary.Parent, f.Session, f.summary.SessionID); id == "" {
		return "", f.Path // not read yet
	}
	return id, filepath.Join(f.Project, id)
}

// agent returns the ID of the subagent whose transcript it is, or "".
func (f *file) agent() string {
	if f.summary.Parent != "" {
		return f.summary.AgentID
	}
	return f.Agent
}

// byAge compares transcripts, the newest first.
func byAge(a, b *file) int {
	if c := b.ModTime.Compare(a.ModTime); c != 0 {
		return c
	}
	return strings.Compare(a.Path, b.Path)
}

// scan searches all directories and returns the transcripts to read, the newest first.
func (x *Index) scan(ctx context.Context) (queue []*file) {
	x.progress.Trouble = ""
	found := map[string]*file{}
	for _, root := range x.o.Roots {
		entries, err := root.Format.List(ctx, root.Dir)
		if err != nil {
			x.progress.Trouble = err.Error()
			x.keep(found, root)
		}
		x.note(found, root.Format, entries)
	}
	x.bound(found)
	for path := range x.files {
		if found[path] == nil {
			x.changed, x.related, x.stale = true, false, true
		}
	}
	x.files = found
	if x.progress.Scanned.IsZero() {
		x.progress.Scanned = time.Now()
	}
	return x.queue()
}

// keep adds the known transcripts of a directory that could not be listed to those that were found.
func (x *Index) keep(found map[string]*file, root Root) {
	for path, f := range x.files {
		if f.format == root.Format && strings.HasPrefix(path, root.Dir+string(filepath.Separator)) {
			found[path] = f
		}
	}
}

// note adds transcripts to those that were found. Changed ones are to be read.
func (x *Index) note(found map[string]*file, format transcript.Format, entries []transcript.Entry) {
	for _, e := range entries {
		f := x.files[e.Path]
		if f == nil || f.format != format {
			f = &file{format: format}
		}
		found[e.Path] = f
		if f.Size != e.Size || !f.ModTime.Equal(e.ModTime) || f.Path == "" {
			f.done = false
			x.changed = true
		}
		f.Entry = e
	}
}

// bound drops the oldest transcripts over the bound.
func (x *Index) bound(found map[string]*file) {
	x.progress.Dropped = max(len(found)-MaxFiles, 0)
	if x.progress.Dropped > 0 {
		for _, f := range slices.SortedFunc(maps.Values(found), byAge)[MaxFiles:] {
			delete(found, f.Path)
		}
	}
}

// queue returns the transcripts to read, the newest first.
func (x *Index) queue() (list []*file) {
	for _, f := range x.files {
		if !f.done || f.err != "" {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, byAge)
	return list
}
