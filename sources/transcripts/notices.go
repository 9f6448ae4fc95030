package transcripts

import (
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// maxWatched bounds the directories that are watched; what happens in others is found by
// looking through them.
const maxWatched = 1000

// notices tells which paths have changed. Where the system gives no notices, it says
// nothing, and the scans find what there is.
type notices struct {
	w       *fsnotify.Watcher
	roots   []string
	watched map[string]bool
	paths   chan string
	done    chan struct{}
}

// maxNotices wait; more than that is left to the next scan.
const maxNotices = 1024

func newNotices(roots []string) *notices {
	n := &notices{roots: roots, watched: map[string]bool{}, paths: make(chan string, maxNotices), done: make(chan struct{})}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		close(n.done)
		return n
	}
	n.w = w
	go n.pass()
	return n
}

// pass hands on the names. It never waits: what nobody takes is dropped, and found later.
func (n *notices) pass() {
	defer close(n.done)
	for {
		select {
		case e, ok := <-n.w.Events:
			if !ok {
				return
			}
			if e.Op == fsnotify.Chmod {
				continue
			}
			select {
			case n.paths <- e.Name:
			default:
			}
		case _, ok := <-n.w.Errors: // an overflow: the next scan finds what was missed
			if !ok {
				return
			}
		}
	}
}

func (n *notices) changed() <-chan string { return n.paths }

// watch watches the directories of projects and those given, as many as may be.
func (n *notices) watch(dirs []string) {
	for _, root := range n.roots {
		n.add(filepath.Join(root, "projects"))
	}
	for _, dir := range dirs {
		n.add(dir)
	}
}

func (n *notices) add(dir string) {
	if n.w == nil || n.watched[dir] || len(n.watched) >= maxWatched || n.w.Add(dir) != nil {
		return
	}
	n.watched[dir] = true
}

// gone forgets a directory that is not there any more: one that comes in its place has to be
// watched anew.
func (n *notices) gone(path string) {
	if n.watched[path] && !isDirectory(path) {
		delete(n.watched, path)
	}
}

func (n *notices) close() {
	if n.w != nil {
		n.w.Close() // it only ever was read
	}
	<-n.done
}
