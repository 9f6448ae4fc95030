package logfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	roots []string // absolute paths
	files []*file  // sorted by path
	err   error    // of a handler; it ends the reading

	w        watcher
	watched  map[string]bool // real paths of directories
	needed   map[string]bool // those that the current scan needs
	tick     <-chan time.Time
	stopTick func()
	settled  <-chan time.Time // after a watched directory was removed

	scanDue  bool             // the directories must be scanned again
	leftOut  int              // files beyond MaxFiles
	reported time.Time        // when Files was called last
	due      <-chan time.Time // for the next call

	buf   []byte
	lines []Line
}

const (
	bufSize = 256 << 10 // bytes that are read at once
	// reportEvery is the shortest time between two calls of Handler.Files.
	reportEvery = 50 * time.Millisecond
	// settleTime is how long after the removal of a directory all watches are renewed.
	settleTime = 250 * time.Millisecond
)

// Follow reads until ctx ends, which is not an error, or a handler fails. With Options.Once it
// returns when everything is read.
func Follow(ctx context.Context, o Options, h Handler) error {
	fo, err := newFollower(ctx, o, h)
	if err != nil {
		return err
	}
	defer fo.close()
	fo.startWatching()
	fo.scan(true)
	first := true // reading has not paused yet
	for ctx.Err() == nil && fo.err == nil {
		idle := !fo.readFiles() && !fo.scanDue
		switch rest := reportEvery - time.Since(fo.reported); {
		case idle && o.Once:
			fo.reportFiles()
			for _, f := range fo.files {
				fo.torn(f, f.cur)
			}
			return fo.err
		case rest <= 0 || idle && first:
			fo.reportFiles()
			first = first && !idle
		default:
			fo.due = time.After(rest)
		}
		fo.wait(idle)
		if fo.scanDue {
			fo.scan(false)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return fo.err
}

func newFollower(ctx context.Context, o Options, h Handler) (*follower, error) {
	if len(o.Match) == 0 {
		o.Match = []string{"*.log", "*.jsonl", "*.ndjson"}
	}
	o.Depth = cmp.Or(o.Depth, DefaultDepth)
	o.MaxLine = cmp.Or(o.MaxLine, DefaultMaxLine)
	if o.open == nil {
		o.open = openFile
	}
	if o.watcher == nil {
		o.watcher = newNotifier
	}
	if o.ticks == nil {
		o.ticks = func() (<-chan time.Time, func()) { t := time.NewTicker(PollEvery); return t.C, t.Stop }
	}
	fo := &follower{
		ctx: ctx, o: o, h: h, reported: time.Now(), watched: map[string]bool{}, buf: make([]byte, bufSize),
	}
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

// readFiles gives each file that may have changed its turn, and reports whether there is more to read.
func (fo *follower) readFiles() (more bool) {
	for _, f := range fo.files {
		if fo.err != nil || fo.ctx.Err() != nil {
			return true
		}
		if f.dirty {
			f.dirty = false
			f.dirty = fo.turn(f) || f.dirty
		}
	}
	return slices.ContainsFunc(fo.files, func(f *file) bool { return f.dirty })
}

// wait handles the pending notifications. If idle, it returns after the next one.
func (fo *follower) wait(idle bool) {
	var events <-chan fsnotify.Event
	var failures <-chan error
	if fo.w != nil {
		events, failures = fo.w.Events(), fo.w.Errors()
	}
	for fo.err == nil && (idle || len(events) > 0) {
		idle = false
		select {
		case <-fo.ctx.Done():
			return
		case ev := <-events:
			fo.handle(ev)
		case err := <-failures:
			fo.lost(err)
		case <-fo.due:
		case <-fo.tick:
			fo.scanDue = true
		case <-fo.settled:
			fo.settled = nil
			fo.unwatchAll()
		}
	}
}

// handle marks what a notification is about.
func (fo *follower) handle(ev fsnotify.Event) {
	removed := ev.Op&(fsnotify.Remove|fsnotify.Rename) != 0
	if removed && fo.watched[ev.Name] {
		// If the directory is made again at once, often with the same inode, its new watch can be lost: the
		// notification that the old watch ended may arrive after the new one was added.
		fo.unwatch(ev.Name)
		fo.scanDue = true
		fo.settled = time.After(settleTime)
	}
	known := false
	for _, f := range fo.files {
		named := slices.Contains(f.names, ev.Name)
		known = known || named
		f.dirty = f.dirty || named || f.old != nil // a renamed file has another name
	}
	if ev.Op.Has(fsnotify.Create) || removed && known {
		fo.scanDue = fo.scanDue || known || fo.concerns(ev.Name)
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
	return slices.ContainsFunc(fo.roots, func(root string) bool {
		return strings.Contains(root+separator, part)
	})
}

// lost checks everything again because notifications were lost.
func (fo *follower) lost(err error) {
	cause := "the system lost notifications of changes"
	if !errors.Is(err, fsnotify.ErrEventOverflow) {
		cause = "watching failed: " + err.Error()
	}
	fo.unwatchAll()
	fo.event(Overflow, "", cause+"; checking everything again")
}

func (fo *follower) event(kind Kind, path, text string) {
	if fo.h.Event != nil && fo.err == nil {
		fo.err = fo.h.Event(Event{At: time.Now(), Kind: kind, Path: path, Text: text})
	}
}

// report passes lines to the handler, with their path and the current time.
func (fo *follower) report(f *file, lines ...Line) {
	now := time.Now()
	for i := range lines {
		lines[i].Path, lines[i].At = f.Path, now
		if lines[i].Partial {
			continue
		}
		f.Lines++
		if lines[i].Cut > 0 {
			f.Cut++
		}
	}
	if fo.h.Lines != nil && fo.err == nil && len(lines) > 0 {
		fo.err = fo.h.Lines(lines)
	}
}

// reportFiles passes the state of all files to the handler.
func (fo *follower) reportFiles() {
	fo.reported, fo.due = time.Now(), nil
	if fo.h.Files == nil || fo.err != nil {
		return
	}
	all := make([]File, len(fo.files))
	for i, f := range fo.files {
		all[i] = f.File
	}
	fo.err = fo.h.Files(all)
}
