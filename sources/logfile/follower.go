package logfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// follower follows files. Only its own goroutine uses it.
type follower struct {
	ctx   context.Context
	o     Options
	h     Handler
	now   func() time.Time
	roots []string // absolute paths

	w        watcher
	watched  map[string]watchedDir // by real path
	tick     <-chan time.Time      // when polling
	stopTick func()
	settled  <-chan time.Time // after a watched directory was removed

	files     []*file // sorted by path
	byPath    map[string]*file
	byName    map[string][]*file // by the names in notifications
	work      []*file            // to check, in order
	rescanDue bool               // the directories must be scanned again
	leftOut   int                // files beyond MaxFiles
	failed    error              // of a handler, outside step
	reported  time.Time          // when Files was called last

	buf   []byte
	lines []Line
}

const (
	bufSize = 256 << 10 // bytes that are read at once
	// reportEvery is how often Handler.Files is called while reading does not pause.
	reportEvery = 100 * time.Millisecond
)

// Follow reads until ctx ends, which is not an error, or a handler fails. With Options.Once it
// returns when everything is read.
func Follow(ctx context.Context, o Options, h Handler) error {
	fo, err := newFollower(ctx, o, h)
	if err != nil {
		return err
	}
	defer fo.close()
	if err := fo.start(); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := fo.step(); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		idle := len(fo.work) == 0 && !fo.rescanDue && fo.failed == nil
		if idle || fo.now().Sub(fo.reported) > reportEvery {
			err := fo.reportFiles()
			if idle && o.Once {
				return errors.Join(err, fo.reportTorn())
			}
			if err != nil {
				return err
			}
		}
		if idle {
			fo.wait()
		}
		fo.drain()
	}
	return nil
}

func newFollower(ctx context.Context, o Options, h Handler) (*follower, error) {
	if len(o.Match) == 0 {
		o.Match = DefaultMatch()
	}
	if o.Depth <= 0 {
		o.Depth = DefaultDepth
	}
	if o.MaxLine <= 0 {
		o.MaxLine = DefaultMaxLine
	}
	if o.open == nil {
		o.open = openFile
	}
	if o.watcher == nil {
		o.watcher = newNotifier
	}
	if o.ticks == nil {
		o.ticks = func() (<-chan time.Time, func()) { t := time.NewTicker(PollEvery); return t.C, t.Stop }
	}
	fo := &follower{ctx: ctx, o: o, h: h, now: time.Now, watched: map[string]watchedDir{},
		byPath: map[string]*file{}, buf: make([]byte, bufSize)}
	for _, pattern := range slices.Concat(o.Match, o.Skip) {
		if _, err := filepath.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("invalid pattern of file names %q: %w", pattern, err)
		}
	}
	for _, p := range o.Paths {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, err
		}
		fo.roots = append(fo.roots, abs)
	}
	return fo, nil
}

func (fo *follower) close() {
	if fo.w != nil {
		fo.w.Close()
	}
	if fo.stopTick != nil {
		fo.stopTick()
	}
	for _, f := range fo.files {
		f.close()
	}
}

// start opens the watcher and scans for the first time.
func (fo *follower) start() error {
	fo.reported = fo.now()
	var err error
	switch {
	case fo.o.Once:
	case fo.o.Poll:
		err = fo.poll("watches are turned off")
	default:
		if fo.w, err = fo.o.watcher(); err != nil {
			fo.w = nil
			err = fo.poll("cannot create a watch: " + err.Error())
		}
	}
	if err != nil {
		return err
	}
	return fo.rescan(true)
}

// reportTorn reports the unfinished lines when reading ends.
func (fo *follower) reportTorn() error {
	for _, f := range fo.files {
		if f.cur == nil {
			continue
		}
		if err := fo.torn(f, f.cur); err != nil {
			return err
		}
	}
	return nil
}

// step scans the directories if that is due, and gives each file that may have changed its
// turn.
func (fo *follower) step() error {
	if fo.failed != nil {
		return fo.failed
	}
	if fo.rescanDue {
		fo.rescanDue = false
		if err := fo.rescan(false); err != nil {
			return err
		}
	}
	work := fo.work
	fo.work = nil
	for i, f := range work {
		more, err := fo.turn(f)
		if err != nil {
			return err
		}
		if more {
			fo.dirty(f)
		}
		if fo.ctx.Err() != nil {
			fo.work = append(fo.work, work[i+1:]...)
			return nil
		}
	}
	return nil
}

// dirty marks a file for a check.
func (fo *follower) dirty(f *file) {
	if !slices.Contains(fo.work, f) {
		fo.work = append(fo.work, f)
	}
}

// allDirty marks everything for a check.
func (fo *follower) allDirty() {
	fo.rescanDue = true
	for _, f := range fo.files {
		fo.dirty(f)
	}
}

// wait returns after the next notification.
func (fo *follower) wait() {
	var events <-chan fsnotify.Event
	var failures <-chan error
	if fo.w != nil {
		events, failures = fo.w.Events(), fo.w.Errors()
	}
	select {
	case <-fo.ctx.Done():
	case ev := <-events:
		fo.handle(ev)
	case err := <-failures:
		fo.lost(err)
	case <-fo.tick:
		fo.allDirty()
	case <-fo.settled:
		fo.settled = nil
		fo.rewatch()
	}
}

// drain handles the pending notifications.
func (fo *follower) drain() {
	if fo.w == nil {
		return
	}
	for {
		select {
		case ev := <-fo.w.Events():
			fo.handle(ev)
		case err := <-fo.w.Errors():
			fo.lost(err)
		default:
			return
		}
	}
}

// lost checks everything again because notifications were lost.
func (fo *follower) lost(err error) {
	if err == nil {
		return
	}
	cause := "the system lost notifications of changes"
	if !errors.Is(err, fsnotify.ErrEventOverflow) {
		cause = "watching failed: " + err.Error()
	}
	fo.allDirty()
	fo.failed = fo.event(Overflow, "", cause+"; checking everything again")
}

// handle marks what a notification is about.
func (fo *follower) handle(ev fsnotify.Event) {
	removed := ev.Op&(fsnotify.Remove|fsnotify.Rename) != 0
	if _, dir := fo.watched[ev.Name]; dir && removed {
		fo.unwatch(ev.Name)
		fo.rescanDue = true
		fo.settled = time.After(settleTime)
	}
	files := fo.byName[ev.Name]
	for _, f := range files {
		fo.dirty(f)
		isLink := len(f.names) > 1 && f.names[0] != f.names[1]
		fo.rescanDue = fo.rescanDue || isLink && ev.Op&fsnotify.Write == 0
	}
	switch {
	case len(files) > 0:
	case ev.Op.Has(fsnotify.Create):
		fo.rescanDue = fo.rescanDue || fo.concerns(ev.Name)
	case ev.Op.Has(fsnotify.Write): // perhaps to a renamed file
		for _, f := range fo.files {
			if f.old != nil {
				fo.dirty(f)
			}
		}
	}
}

// concerns reports whether a new name may have to be followed, or lead to such a name.
func (fo *follower) concerns(name string) bool {
	if matches(fo.o.Match, filepath.Base(name)) || isDir(name) {
		return true
	}
	// Notifications contain real paths, so only the last part can be compared.
	const separator = string(filepath.Separator)
	part := separator + filepath.Base(name) + separator
	return slices.ContainsFunc(fo.roots, func(root string) bool { return strings.Contains(root+separator, part) })
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { ok, _ := filepath.Match(pattern, name); return ok })
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (fo *follower) event(kind Kind, path, text string) error {
	if fo.h.Event == nil {
		return nil
	}
	return fo.h.Event(Event{At: fo.now(), Kind: kind, Path: path, Text: text})
}

// reportFiles passes the state of all files to the handler.
func (fo *follower) reportFiles() error {
	fo.reported = fo.now()
	if fo.h.Files == nil {
		return nil
	}
	all := make([]File, len(fo.files))
	for i, f := range fo.files {
		all[i] = f.File
	}
	return fo.h.Files(all)
}

// poll replaces watches by regular checks.
func (fo *follower) poll(why string) error {
	if fo.tick != nil {
		return nil
	}
	if fo.w != nil {
		fo.w.Close()
		fo.w, fo.watched = nil, map[string]watchedDir{}
	}
	fo.tick, fo.stopTick = fo.o.ticks()
	return fo.event(Polling, "", "checking files every "+PollEvery.String()+": "+why)
}
