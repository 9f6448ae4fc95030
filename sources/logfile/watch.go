package logfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watcher is what is used of fsnotify.
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

// noticeBuffer is how many notices wait beside those that the system keeps.
const noticeBuffer = 256

func newNotifier() (watcher, error) {
	w, err := fsnotify.NewBufferedWatcher(noticeBuffer)
	if err != nil {
		return nil, err
	}
	return notifier{w}, nil
}

// watchedDir is a watched directory as it was when the watch began.
type watchedDir struct {
	info os.FileInfo
	seen int // the last scan that wanted it
}

func (fo *follower) openWatcher() error {
	open := fo.o.watcher
	if open == nil {
		open = newNotifier
	}
	w, err := open()
	if err != nil {
		return fo.poll("no watch can be had: " + err.Error())
	}
	fo.w = w
	return nil
}

// watch watches a directory, and tells whether it could; one that is gone meanwhile or
// may not be read is no reason to poll. The scan in which a watch is wanted keeps it.
func (fo *follower) watch(dir string, scan int) (bool, error) {
	if fo.w == nil {
		return true, nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false, nil
	}
	info, err := os.Stat(real)
	if err != nil {
		return false, nil
	}
	if old, ok := fo.watched[real]; ok {
		if sameFile(old.info, info) {
			fo.watched[real] = watchedDir{info, scan}
			return true, nil
		}
		fo.unwatch(real)
	}
	err = fo.w.Add(real)
	switch {
	case err == nil:
		fo.watched[real] = watchedDir{info, scan}
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, fs.ErrPermission):
		return false, fo.event(NotReadable, dir, "cannot be watched: "+err.Error())
	}
	return true, fo.poll("no watch for " + dir + ": " + err.Error())
}

func (fo *follower) unwatch(real string) {
	delete(fo.watched, real)
	if fo.w != nil {
		_ = fo.w.Remove(real) // the system may have dropped it already
	}
}

// settleAfter is when, after a directory went, all watches are made sure of.
const settleAfter = 250 * time.Millisecond

// rewatch makes sure of all watches and looks at everything again. A directory that goes and
// at once comes again under its old name, often with its old inode, can lose the watch of the
// new one: the notice that the old watch is over comes after the new watch was made.
func (fo *follower) rewatch() {
	if fo.w == nil {
		return
	}
	for real := range fo.watched {
		if fo.w.Add(real) != nil {
			fo.unwatch(real)
		}
	}
	fo.structure = true
	fo.allDirty()
}

// watchParent watches the nearest existing parent of a path that is not there.
func (fo *follower) watchParent(path string, scan int) error {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if !isDir(dir) && dir != filepath.Dir(dir) {
			continue
		}
		if _, err := fo.watch(dir, scan); err != nil || dir == filepath.Dir(path) {
			return err
		}
		if !isDir(childOf(dir, path)) {
			return nil
		}
		dir = path // it came while the watch was made: begin anew
	}
}

// childOf is the directory below dir that leads to path.
func childOf(dir, path string) string {
	for filepath.Dir(path) != dir && filepath.Dir(path) != path {
		path = filepath.Dir(path)
	}
	return path
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
