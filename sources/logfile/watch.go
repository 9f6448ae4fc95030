package logfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
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

// watchedDir is a watched directory as it was when the watch began.
type watchedDir struct {
	info os.FileInfo
	scan int // the last scan that needed it
}

// watch watches a directory for a scan. A directory that is gone or unreadable is no reason
// to poll.
func (fo *follower) watch(dir string, scan int) error {
	if fo.w == nil {
		return nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil
	}
	if old, ok := fo.watched[real]; ok {
		if sameFile(old.info, info) {
			fo.watched[real] = watchedDir{info, scan}
			return nil
		}
		fo.unwatch(real)
	}
	err = fo.w.Add(real)
	switch {
	case err == nil:
		fo.watched[real] = watchedDir{info, scan}
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission):
		return fo.event(NotReadable, dir, "cannot be watched: "+err.Error())
	}
	return fo.poll("cannot watch " + dir + ": " + err.Error())
}

func (fo *follower) unwatch(real string) {
	delete(fo.watched, real)
	if fo.w != nil {
		_ = fo.w.Remove(real) // the system may have dropped it already
	}
}

// settleTime is how long after the removal of a directory all watches are renewed.
const settleTime = 250 * time.Millisecond

// rewatch renews all watches and checks everything. When a directory is removed and made again
// at once, often with the same inode, the new watch can be lost: the notification that the old
// watch ended may arrive after the new one was added.
func (fo *follower) rewatch() {
	if fo.w == nil {
		return
	}
	for real := range fo.watched {
		if fo.w.Add(real) != nil {
			fo.unwatch(real)
		}
	}
	fo.allDirty()
}

// watchParent watches the nearest existing parent of a path.
func (fo *follower) watchParent(path string, scan int) error {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if !isDir(dir) && dir != filepath.Dir(dir) {
			continue
		}
		if err := fo.watch(dir, scan); err != nil || dir == filepath.Dir(path) {
			return err
		}
		if !isDir(childOf(dir, path)) {
			return nil
		}
		dir = path // a directory was made before the watch was added: start again
	}
}

// childOf returns the directory below dir that leads to path.
func childOf(dir, path string) string {
	for filepath.Dir(path) != dir && filepath.Dir(path) != path {
		path = filepath.Dir(path)
	}
	return path
}

// watchFile watches the directory of a file's name, and that of the target of a link.
func (fo *follower) watchFile(path string, scan int) error {
	if err := fo.watchParent(path, scan); err != nil {
		return err
	}
	if target, ok := linkTarget(path); ok {
		return fo.watchParent(target, scan)
	}
	return nil
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

// scan is one look at all roots.
type scan struct {
	number int
	found  []found
	dirs   map[string]bool // roots that are directories
}

type found struct {
	path  string
	given bool // not found in a directory
	at    time.Time
}

// rescan scans all roots, watches what must be watched and marks every file. A directory is
// watched before it is read, so that no change is missed.
func (fo *follower) rescan(first bool) error {
	sc := &scan{number: 1, dirs: map[string]bool{}}
	for _, d := range fo.watched {
		sc.number = max(sc.number, d.scan+1)
	}
	for _, root := range fo.roots {
		if err := fo.scanRoot(sc, root); err != nil {
			return err
		}
	}
	for real, d := range fo.watched {
		if d.scan != sc.number {
			fo.unwatch(real)
		}
	}
	if err := fo.accept(sc, first); err != nil {
		return err
	}
	fo.index()
	for _, f := range fo.files {
		fo.dirty(f)
	}
	return nil
}

func (fo *follower) scanRoot(sc *scan, root string) error {
	if !isDir(root) {
		sc.found = append(sc.found, found{path: root, given: true})
		return fo.watchFile(root, sc.number)
	}
	sc.dirs[root] = true
	if link, err := os.Lstat(root); err == nil && link.Mode()&os.ModeSymlink != 0 {
		if err := fo.watchParent(root, sc.number); err != nil {
			return err
		}
	}
	return fo.scanDir(sc, root, fo.o.Depth)
}

func (fo *follower) scanDir(sc *scan, dir string, depth int) error {
	if err := fo.watch(dir, sc.number); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fo.event(NotReadable, dir, err.Error())
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		var err error
		switch {
		case e.IsDir():
			if depth > 1 && !strings.HasPrefix(e.Name(), ".") && !matches(fo.o.Skip, e.Name()) {
				err = fo.scanDir(sc, path, depth-1)
			}
		case matches(fo.o.Match, e.Name()):
			err = fo.scanFile(sc, path, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// scanFile adds a file of a directory, unless it is neither a file nor a link to one.
func (fo *follower) scanFile(sc *scan, path string, e os.DirEntry) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	sc.found = append(sc.found, found{path: path, at: info.ModTime()})
	if e.Type()&os.ModeSymlink != 0 {
		return fo.watchFile(path, sc.number)
	}
	return nil
}

// accept follows the files that were found, given ones first, then the newest, up to MaxFiles.
func (fo *follower) accept(sc *scan, first bool) error {
	slices.SortStableFunc(sc.found, func(a, b found) int {
		if a.given != b.given {
			return map[bool]int{true: -1, false: 1}[a.given]
		}
		return b.at.Compare(a.at)
	})
	leftOut := 0
	for _, m := range sc.found {
		if fo.byPath[m.path] != nil {
			continue
		}
		if len(fo.byPath) >= MaxFiles && !fo.forgetRemoved() {
			leftOut++
			continue
		}
		fo.byPath[m.path] = &file{File: File{Path: m.path, State: Waiting}, given: m.given, late: !first}
	}
	for path, f := range fo.byPath {
		if f.given && sc.dirs[path] {
			f.close()
			delete(fo.byPath, path)
		}
	}
	if leftOut == fo.leftOut {
		return nil
	}
	fo.leftOut = leftOut
	return fo.event(LeftOut, "", fmt.Sprintf("%d files are left out: only the newest %d are followed", leftOut, MaxFiles))
}

// forgetRemoved drops a removed file and reports whether there was one.
func (fo *follower) forgetRemoved() bool {
	for path, f := range fo.byPath {
		if f.State == Removed && !f.given && f.old == nil && f.cur == nil {
			delete(fo.byPath, path)
			return true
		}
	}
	return false
}

// index sorts the files and records the names that notifications use for them.
func (fo *follower) index() {
	fo.files = fo.files[:0]
	fo.byName = map[string][]*file{}
	for _, f := range fo.byPath {
		fo.files = append(fo.files, f)
		f.resolve()
		for i, n := range f.names {
			if i == 0 || n != f.names[0] {
				fo.byName[n] = append(fo.byName[n], f)
			}
		}
	}
	slices.SortFunc(fo.files, func(a, b *file) int { return cmp.Compare(a.Path, b.Path) })
	fo.work = slices.DeleteFunc(fo.work, func(f *file) bool { return fo.byPath[f.Path] != f })
}
