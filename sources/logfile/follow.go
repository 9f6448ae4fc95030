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

// follower is one following. Only its own goroutine touches it.
type follower struct {
	ctx   context.Context
	o     Options
	h     Handler
	now   func() time.Time
	roots []string

	w       watcher
	watched map[string]watchedDir // by its real path
	tick    <-chan time.Time      // where there are no watches
	settled <-chan time.Time      // after a watched directory went
	untick  func()

	files     []*file // by path
	byPath    map[string]*file
	byName    map[string][]*file
	work      []*file // to look at, in order
	structure bool    // the directories must be read again
	leftOut   int
	failed    error     // of a handler, outside a step
	told      time.Time // when Files was called last

	buf   []byte
	lines []Line
}

// bufSize is how much is read at once.
const bufSize = 256 << 10

// filesEvery is how often Handler.Files is called while reading does not pause.
const filesEvery = 100 * time.Millisecond

// Follow reads until ctx ends, which is no error, or a handler fails. With Options.Once
// it ends when all was read.
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
		if fo.idle() {
			if err := fo.tell(); err != nil || o.Once {
				return errors.Join(err, fo.rest())
			}
			fo.wait()
		} else if fo.now().Sub(fo.told) > filesEvery {
			if err := fo.tell(); err != nil {
				return err
			}
			fo.drain()
		} else {
			fo.drain()
		}
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
	fo := &follower{ctx: ctx, o: o, h: h, now: time.Now, watched: map[string]watchedDir{}, byPath: map[string]*file{}, buf: make([]byte, bufSize)}
	for _, m := range slices.Concat(o.Match, o.Skip) {
		if _, err := filepath.Match(m, ""); err != nil {
			return nil, fmt.Errorf("%q is no pattern of file names: %w", m, err)
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
	if fo.untick != nil {
		fo.untick()
	}
	for _, f := range fo.files {
		f.close()
	}
}

// start looks at everything for the first time.
func (fo *follower) start() error {
	fo.told = fo.now()
	if !fo.o.Once {
		if fo.o.Poll {
			if err := fo.poll("no watches are asked for"); err != nil {
				return err
			}
		} else if err := fo.openWatcher(); err != nil {
			return err
		}
	}
	return fo.rescan(true)
}

// rest gives the lines without an end when reading ends for good.
func (fo *follower) rest() error {
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

func (fo *follower) idle() bool { return len(fo.work) == 0 && !fo.structure && fo.failed == nil }

// step reads the directories again where that is due, and gives each file that may have
// something new its turn.
func (fo *follower) step() error {
	if fo.failed != nil {
		return fo.failed
	}
	if fo.structure {
		fo.structure = false
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

func (fo *follower) dirty(f *file) {
	if !slices.Contains(fo.work, f) {
		fo.work = append(fo.work, f)
	}
}

func (fo *follower) allDirty() {
	for _, f := range fo.files {
		fo.dirty(f)
	}
}

// wait returns after the next notice, and takes all that are there.
func (fo *follower) wait() {
	var events <-chan fsnotify.Event
	var failures <-chan error
	if fo.w != nil {
		events, failures = fo.w.Events(), fo.w.Errors()
	}
	select {
	case <-fo.ctx.Done():
	case ev := <-events:
		fo.noticed(ev)
	case err := <-failures:
		fo.lost(err)
	case <-fo.tick:
		fo.structure = true
		fo.allDirty()
	case <-fo.settled:
		fo.settled = nil
		fo.rewatch()
	}
	fo.drain()
}

// drain takes the notices that are there.
func (fo *follower) drain() {
	if fo.w == nil {
		return
	}
	for {
		select {
		case ev := <-fo.w.Events():
			fo.noticed(ev)
		case err := <-fo.w.Errors():
			fo.lost(err)
		default:
			return
		}
	}
}

// lost is for notices that did not come: everything is looked at again.
func (fo *follower) lost(err error) {
	if err == nil {
		return
	}
	what := "the system lost notices of changes; everything is looked at again"
	if !errors.Is(err, fsnotify.ErrEventOverflow) {
		what = "watching: " + err.Error() + "; everything is looked at again"
	}
	fo.structure = true
	fo.allDirty()
	fo.failed = fo.event(Overflow, "", what)
}

// noticed marks what a notice is about.
func (fo *follower) noticed(ev fsnotify.Event) {
	went := ev.Op&(fsnotify.Remove|fsnotify.Rename) != 0
	if _, dir := fo.watched[ev.Name]; dir && went {
		fo.unwatch(ev.Name)
		fo.structure = true
		fo.settled = time.After(settleAfter)
	}
	files := fo.byName[ev.Name]
	for _, f := range files {
		fo.dirty(f)
		fo.structure = fo.structure || len(f.names) > 1 && f.names[0] != f.names[1] && ev.Op&fsnotify.Write == 0
	}
	switch {
	case len(files) > 0:
	case ev.Op.Has(fsnotify.Create):
		fo.structure = fo.structure || fo.concerns(ev.Name)
	case ev.Op.Has(fsnotify.Write):
		fo.oldDirty()
	}
}

// oldDirty marks files whose former file may have been written to under its new name.
func (fo *follower) oldDirty() {
	for _, f := range fo.files {
		if f.old != nil {
			fo.dirty(f)
		}
	}
}

// concerns tells whether a new name may be one to follow, or lead to one.
func (fo *follower) concerns(name string) bool {
	if matches(fo.o.Match, filepath.Base(name)) || isDir(name) {
		return true
	}
	for _, root := range fo.roots {
		// Names of notices are real paths, so only the last part can be compared.
		if strings.Contains(root+string(filepath.Separator), string(filepath.Separator)+filepath.Base(name)+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { ok, _ := filepath.Match(pattern, name); return ok })
}

func (fo *follower) event(kind Kind, path, text string) error {
	if fo.h.Event == nil {
		return nil
	}
	return fo.h.Event(Event{At: fo.now(), Kind: kind, Path: path, Text: text})
}

// tell gives the state of all files.
func (fo *follower) tell() error {
	fo.told = fo.now()
	if fo.h.Files == nil {
		return nil
	}
	all := make([]File, len(fo.files))
	for i, f := range fo.files {
		all[i] = f.File
	}
	return fo.h.Files(all)
}

// poll does without watches from now on.
func (fo *follower) poll(why string) error {
	if fo.tick != nil {
		return nil
	}
	if fo.w != nil {
		fo.w.Close()
		fo.w, fo.watched = nil, map[string]watchedDir{}
	}
	ticks := fo.o.ticks
	if ticks == nil {
		ticks = func() (<-chan time.Time, func()) { t := time.NewTicker(PollEvery); return t.C, t.Stop }
	}
	fo.tick, fo.untick = ticks()
	return fo.event(Polling, "", "looking at files every "+PollEvery.String()+": "+why)
}

func (fo *follower) open(path string) (*os.File, error) {
	if fo.o.open != nil {
		return fo.o.open(path)
	}
	return openFile(path)
}
