package logfile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watcher is the part of fsnotify that is used.
type watcher interface {
	Add(dir string) error
	Remove(dir string) error
	Events() <-chan fsnotify.Event
	Errors() <-chan error
	Close() error
}

type notifier struct{ *fsnotify.Watcher }

func (n notifier) Events() <-chan fsnotify.Event { return n.Watcher.Events }
func (n notifier) Errors() <-chan error          { return n.Watcher.Errors }

// eventBuffer is how many notifications wait, besides those that the system keeps.
const eventBuffer = 256

func newNotifier() (watcher, error) {
	w, err := fsnotify.NewBufferedWatcher(eventBuffer)
	return notifier{w}, err
}

// startWatching opens the watcher, unless everything is read only once.
func (fo *follower) startWatching() {
	switch {
	case fo.o.Once:
	case fo.o.Poll:
		fo.poll("watches are turned off")
	default:
		w, err := fo.o.watcher()
		if err != nil {
			fo.poll("cannot create a watch: " + err.Error())
			return
		}
		fo.w = w
	}
}

// poll replaces watches by regular checks.
func (fo *follower) poll(why string) {
	if fo.w != nil {
		fo.w.Close()
		fo.w = nil
	}
	fo.tick, fo.stopTick = fo.o.ticks()
	fo.event(Polling, "", "checking files every "+PollEvery.String()+": "+why)
}

// watch watches a directory. A directory that is gone or unreadable is no reason to poll.
func (fo *follower) watch(dir string) {
	real, err := filepath.EvalSymlinks(dir)
	if fo.w == nil || err != nil {
		return
	}
	fo.needed[real] = true
	if fo.watched[real] {
		return
	}
	err = fo.w.Add(real)
	switch {
	case err == nil:
		fo.watched[real] = true
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, fs.ErrPermission):
		fo.event(NotReadable, dir, "cannot be watched: "+err.Error())
	default:
		fo.poll("cannot watch " + dir + ": " + err.Error())
	}
}

func (fo *follower) unwatch(real string) {
	delete(fo.watched, real)
	if fo.w != nil {
		_ = fo.w.Remove(real) // the system may have dropped it already
	}
}

// unwatchAll lets the next scan renew all watches.
func (fo *follower) unwatchAll() {
	for real := range fo.watched {
		fo.unwatch(real)
	}
	fo.scanDue = true
}

// watchFile watches the directory of a file's name, and that of the target of a link.
func (fo *follower) watchFile(path string) {
	fo.watchParent(path)
	if target, ok := linkTarget(path); ok {
		fo.watchParent(target)
	}
}

// watchParent watches the nearest existing parent of a path.
func (fo *follower) watchParent(path string) {
	for {
		dir := parent(path)
		fo.watch(dir)
		if parent(path) == dir { // otherwise a directory was made before the watch was added
			return
		}
	}
}

// parent returns the nearest existing parent of a path.
func parent(path string) string {
	dir := filepath.Dir(path)
	for !isDir(dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	return dir
}

// linkTarget returns the target of a symbolic link, existing or not; ok is false if path is
// not a link.
func linkTarget(path string) (target string, ok bool) {
	target, err := os.Readlink(path)
	if err != nil {
		return "", false
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, true
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(path), target)
	}
	return target, true
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, _ := filepath.Match(pattern, name)
		return ok
	})
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// found is a file that a scan found.
type found struct {
	path  string
	given bool // not found in a directory
	at    time.Time
}

// scan looks at all roots, watches what must be watched and marks every file. A directory is
// watched before it is read, so that no change is missed.
func (fo *follower) scan(first bool) {
	fo.scanDue = false
	fo.needed = map[string]bool{}
	var all []found
	for _, root := range fo.roots {
		if !isDir(root) {
			all = append(all, found{path: root, given: true})
			fo.watchFile(root)
			continue
		}
		if i, ok := fo.find(root); ok { // it was made at the path of a missing file
			fo.files[i].close()
			fo.files = slices.Delete(fo.files, i, i+1)
		}
		if _, link := linkTarget(root); link {
			fo.watchParent(root)
		}
		all = fo.scanDir(all, root, fo.o.Depth)
	}
	for _, dir := range slices.Collect(maps.Keys(fo.watched)) {
		if !fo.needed[dir] {
			fo.unwatch(dir)
		}
	}
	fo.accept(all, first)
	for _, f := range fo.files {
		f.resolve()
		f.dirty = true
	}
}

// scanDir adds the files of a directory, and of those below it, to all.
func (fo *follower) scanDir(all []found, dir string, depth int) []found {
	fo.watch(dir)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		fo.event(NotReadable, dir, err.Error())
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if depth > 1 && !strings.HasPrefix(e.Name(), ".") && !matches(fo.o.Skip, e.Name()) {
				all = fo.scanDir(all, path, depth-1)
			}
		case matches(fo.o.Match, e.Name()):
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				all = append(all, found{path: path, at: info.ModTime()})
				if e.Type()&os.ModeSymlink != 0 {
					fo.watchFile(path)
				}
			}
		}
	}
	return all
}

// accept follows the files that were found, given ones first, then the newest, up to MaxFiles.
func (fo *follower) accept(all []found, first bool) {
	slices.SortStableFunc(all, func(a, b found) int {
		if a.given != b.given {
			return map[bool]int{true: -1, false: 1}[a.given]
		}
		return b.at.Compare(a.at)
	})
	leftOut := 0
	for _, m := range all {
		if _, ok := fo.find(m.path); ok {
			continue
		}
		if len(fo.files) >= MaxFiles {
			fo.files = slices.DeleteFunc(fo.files, func(f *file) bool { // gone and read
				return f.State == Removed && !f.given && f.old == nil && f.cur == nil
			})
		}
		if len(fo.files) >= MaxFiles {
			leftOut++
			continue
		}
		i, _ := fo.find(m.path)
		added := &file{File: File{Path: m.path, State: Waiting}, given: m.given, late: !first}
		fo.files = slices.Insert(fo.files, i, added)
	}
	if leftOut != fo.leftOut {
		fo.leftOut = leftOut
		fo.event(LeftOut, "", fmt.Sprintf("only the newest %d files are followed; left out: %d",
			MaxFiles, leftOut))
	}
}

// find returns the position of a file by its path, and whether it is followed.
func (fo *follower) find(path string) (int, bool) {
	return slices.BinarySearchFunc(fo.files, path, func(f *file, path string) int {
		return strings.Compare(f.Path, path)
	})
}
