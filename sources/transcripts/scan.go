package transcripts

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"acescope/engine/agents/transcript"
)

// file is a transcript in the index.
type file struct {
	path           string
	session, agent string // from the path; session may be "" if only its lines contain it
	size           int64
	modTime        time.Time

	done    bool               // the summary is that of this size and time
	cached  bool               // it comes from the cache
	reader  *transcript.Reader // nil if reading must start again
	fold    *transcript.Fold
	offset  int64
	summary transcript.Summary
	copied  *copiedPart // nil before it was compared with others
	err     string
}

// owner returns the ID of the session that the transcript belongs to, and its path without the
// extension, which identifies the session.
func (f *file) owner() (id, key string) {
	id = cmp.Or(f.session, f.summary.SessionID)
	return id, filepath.Join(f.projectDir(), id)
}

// projectDir returns the directory with the transcripts of the file's project.
func (f *file) projectDir() string {
	dir := filepath.Dir(f.path)
	if f.agent != "" && f.session != "" {
		return filepath.Dir(filepath.Dir(dir)) // SESSION/subagents
	}
	return dir
}

// byAge compares transcripts, the newest first.
func byAge(a, b *file) int {
	if c := b.modTime.Compare(a.modTime); c != 0 {
		return c
	}
	return strings.Compare(a.path, b.path)
}

// scan searches all directories and returns the transcripts to read, the newest first.
func (x *Index) scan() (queue []*file) {
	x.progress.Trouble = ""
	var paths []string
	for _, root := range x.o.Roots {
		projects := filepath.Join(root, "projects")
		for _, project := range x.list(projects) {
			dir := filepath.Join(projects, project)
			if info, err := os.Stat(dir); err != nil || !info.IsDir() {
				continue
			}
			for _, name := range x.list(dir) {
				path := filepath.Join(dir, name)
				if strings.HasSuffix(name, transcript.Ext) {
					paths = append(paths, path)
				} else {
					paths = append(paths, transcript.AgentPaths(path)...)
				}
			}
		}
	}
	found := x.scanPaths(paths)
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

// list returns the names in a directory.
func (x *Index) list(dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		x.progress.Trouble = err.Error()
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// scanPaths returns the newest transcripts of the paths. Changed ones are to be read.
func (x *Index) scanPaths(paths []string) map[string]*file {
	found := map[string]*file{}
	for _, path := range paths {
		session, agent, ok := transcript.SessionOf(path)
		info, err := os.Stat(path)
		if !ok || err != nil || !info.Mode().IsRegular() {
			continue
		}
		f := x.files[path]
		if f == nil {
			f = &file{path: path, session: session, agent: agent}
			x.changed = true
		}
		found[path] = f
		if f.size != info.Size() || !f.modTime.Equal(info.ModTime()) {
			f.size, f.modTime, f.done = info.Size(), info.ModTime(), false
			x.changed = true
		}
	}
	x.progress.Dropped = max(len(found)-MaxFiles, 0)
	if x.progress.Dropped > 0 {
		for _, f := range slices.SortedFunc(maps.Values(found), byAge)[MaxFiles:] {
			delete(found, f.path)
		}
	}
	return found
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
