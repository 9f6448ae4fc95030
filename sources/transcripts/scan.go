package transcripts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"acescope/engine/agents/transcript"
)

// entry is a transcript in the index.
type entry struct {
	path, project  string
	session, agent string // from the path; session may be "" if only its lines contain it
	size           int64
	modTime        time.Time

	done    bool // the summary is that of this size and time
	cached  bool // it comes from the cache
	queued  bool
	seen    int                // the last scan that found it
	used    int64              // the tick of its last use
	reader  *transcript.Reader // nil if reading must start again
	fold    *transcript.Fold
	offset  int64
	summary transcript.Summary
	err     string
}

// owner returns the ID of the session that the transcript belongs to, and its key.
func (e *entry) owner() (id, key string) {
	id = e.session
	if id == "" {
		id = e.summary.SessionID
	}
	dir := filepath.Dir(e.path)
	if e.agent != "" && e.session != "" {
		dir = filepath.Dir(filepath.Dir(dir)) // SESSION/subagents
	}
	return id, filepath.Join(dir, id)
}

// cool drops what is needed only to continue reading.
func (e *entry) cool() { e.reader, e.fold = nil, nil }

// byAge compares entries, the newest first.
func byAge(a, b *entry) int {
	if c := b.modTime.Compare(a.modTime); c != 0 {
		return c
	}
	return strings.Compare(a.path, b.path)
}

// scan searches all directories.
func (x *Index) scan() {
	x.scans++
	x.p.Trouble = ""
	for _, root := range x.o.Roots {
		projects := filepath.Join(root, "projects")
		for _, d := range x.list(projects) {
			if dir := filepath.Join(projects, d.Name()); isDir(dir) {
				x.scanProject(dir)
			}
		}
	}
	for _, e := range x.entries {
		if e.seen != x.scans {
			x.drop(e)
		}
	}
	x.dropOldest()
	x.p.Scanned = time.Now()
	slices.SortFunc(x.queue, byAge)
}

func (x *Index) list(dir string) []os.DirEntry {
	list, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		x.p.Trouble = err.Error()
	}
	return list
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (x *Index) scanProject(dir string) {
	for _, d := range x.list(dir) {
		path := filepath.Join(dir, d.Name())
		if strings.HasSuffix(d.Name(), transcript.Ext) {
			x.add(path, filepath.Base(dir))
		} else if isDir(path) {
			x.scanAgents(path)
		}
	}
}

func (x *Index) scanAgents(session string) {
	dir := filepath.Join(session, "subagents")
	list, err := os.ReadDir(dir)
	if err != nil {
		return // most sessions have none
	}
	for _, d := range list {
		if strings.HasSuffix(d.Name(), transcript.Ext) {
			x.add(filepath.Join(dir, d.Name()), filepath.Base(filepath.Dir(session)))
		}
	}
}

// add adds a transcript, and queues it if it has changed.
func (x *Index) add(path, project string) {
	session, agent, ok := transcript.SessionOf(path)
	if !ok {
		return
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	e := x.entries[path]
	if e == nil {
		e = &entry{path: path}
		x.entries[path] = e
	}
	fresh := e.project == ""
	e.project, e.session, e.agent, e.seen = project, session, agent, x.scans
	if fresh {
		x.touch(e)
	}
	if e.size == info.Size() && e.modTime.Equal(info.ModTime()) && e.done && e.err == "" {
		return
	}
	e.size, e.modTime, e.done = info.Size(), info.ModTime(), false
	x.touch(e)
	if !e.queued {
		e.queued = true
		x.queue = append(x.queue, e)
	}
}

func (x *Index) drop(e *entry) {
	delete(x.entries, e.path)
	delete(x.kin, e.path)
	x.queue = slices.DeleteFunc(x.queue, func(q *entry) bool { return q == e })
	if e.reader != nil {
		x.warm--
	}
	x.touch(e)
	x.stale = true
}

// dropOldest drops the oldest transcripts beyond MaxFiles.
func (x *Index) dropOldest() {
	x.p.Dropped = max(len(x.entries)-MaxFiles, 0)
	if x.p.Dropped == 0 {
		return
	}
	all := make([]*entry, 0, len(x.entries))
	for _, e := range x.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, byAge)
	for _, e := range all[MaxFiles:] {
		x.drop(e)
	}
}

// handle checks the transcript or directory of a notification. A new directory is watched
// before it is scanned, so that no change is missed.
func (x *Index) handle(w *watcher, path string) {
	dir := filepath.Dir(path)
	w.forgetMissing(path)
	switch {
	case strings.HasSuffix(path, transcript.Ext) && filepath.Base(dir) == "subagents":
		x.update(path, filepath.Base(filepath.Dir(filepath.Dir(dir))))
	case strings.HasSuffix(path, transcript.Ext):
		x.update(path, filepath.Base(dir))
	case filepath.Base(dir) == "projects":
		w.add(path)
		x.scanProject(path)
	case filepath.Base(path) == "subagents":
		w.add(path)
		x.scanAgents(dir)
	case filepath.Base(filepath.Dir(dir)) == "projects" && isDir(path):
		w.add(path)
		w.add(filepath.Join(path, "subagents"))
		x.scanAgents(path)
	default:
		return
	}
	slices.SortFunc(x.queue, byAge)
}

// update checks one transcript again.
func (x *Index) update(path, project string) {
	e := x.entries[path]
	if _, err := os.Lstat(path); err != nil {
		if e != nil {
			x.drop(e)
		}
		return
	}
	if e == nil && len(x.entries) >= MaxFiles {
		return // the next scan makes room
	}
	x.add(path, project)
}

// dirs returns the directories that may change: those of projects, the newest first, and
// those of subagents of recent sessions.
func (x *Index) dirs() (dirs []string) {
	newest := map[string]time.Time{}
	recent := time.Now().Add(-24 * time.Hour)
	for _, e := range x.entries {
		if e.agent != "" && e.session != "" && e.modTime.Before(recent) {
			continue
		}
		if dir := filepath.Dir(e.path); e.modTime.After(newest[dir]) {
			newest[dir] = e.modTime
		}
	}
	for dir := range newest {
		dirs = append(dirs, dir)
	}
	slices.SortFunc(dirs, func(a, b string) int { return newest[b].Compare(newest[a]) })
	return dirs
}

const (
	// maxWatched bounds the watched directories; changes in others are found by scans.
	maxWatched = 1000
	// maxPending bounds the notifications that wait; the rest is found by scans.
	maxPending = 1024
)

// watcher reports changed paths. If the system offers no notifications, it reports nothing,
// and scans find the changes.
type watcher struct {
	w       *fsnotify.Watcher // nil without notifications
	roots   []string
	watched map[string]bool
	paths   chan string
	done    chan struct{}
}

func newWatcher(roots []string) *watcher {
	w := &watcher{roots: roots, watched: map[string]bool{}, paths: make(chan string, maxPending),
		done: make(chan struct{})}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		close(w.done)
		return w
	}
	w.w = notify
	go w.run()
	return w
}

// run passes on the paths. It never blocks: paths beyond maxPending are dropped.
func (w *watcher) run() {
	defer close(w.done)
	for {
		select {
		case e, ok := <-w.w.Events:
			if !ok {
				return
			}
			if e.Op == fsnotify.Chmod {
				continue
			}
			select {
			case w.paths <- e.Name:
			default:
			}
		case _, ok := <-w.w.Errors: // an overflow: the next scan finds what was missed
			if !ok {
				return
			}
		}
	}
}

// watch watches the directories of projects, then dirs, up to maxWatched.
func (w *watcher) watch(dirs []string) {
	for _, root := range w.roots {
		w.add(filepath.Join(root, "projects"))
	}
	for _, dir := range dirs {
		w.add(dir)
	}
}

func (w *watcher) add(dir string) {
	if w.w == nil || w.watched[dir] || len(w.watched) >= maxWatched || w.w.Add(dir) != nil {
		return
	}
	w.watched[dir] = true
}

// forgetMissing forgets a directory that no longer exists, so that its successor is watched.
func (w *watcher) forgetMissing(path string) {
	if w.watched[path] && !isDir(path) {
		delete(w.watched, path)
	}
}

func (w *watcher) close() {
	if w.w != nil {
		w.w.Close() // it was only read
	}
	<-w.done
}
