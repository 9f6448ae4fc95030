package logfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// patience is how long a test waits for a condition.
const patience = 20 * time.Second

// seen collects what a follower reports.
type seen struct {
	t       *testing.T
	mu      sync.Mutex
	changed chan struct{}
	lines   []Line // texts copied
	events  []Event
	files   []File
	done    chan error
	stop    context.CancelFunc
}

func follow(t *testing.T, o Options) *seen {
	t.Helper()
	s := &seen{t: t, changed: make(chan struct{}, 1), done: make(chan error, 1)}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.done <- Follow(ctx, o, s.handler()) }()
	t.Cleanup(func() {
		stop()
		if err := <-s.done; err != nil {
			t.Errorf("Follow: %v", err)
		}
	})
	return s
}

func (s *seen) handler() Handler {
	return Handler{
		Lines: func(batch []Line) error {
			s.note(func() {
				for _, l := range batch {
					l.Text = slices.Clone(l.Text)
					s.lines = append(s.lines, l)
				}
			})
			return nil
		},
		Event: func(e Event) error { s.note(func() { s.events = append(s.events, e) }); return nil },
		Files: func(f []File) error { s.note(func() { s.files = f }); return nil },
	}
}

func (s *seen) note(fn func()) {
	s.mu.Lock()
	fn()
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// until waits for a condition, which is checked under the lock.
func (s *seen) until(what string, ok func() bool) {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		s.mu.Lock()
		good := ok()
		s.mu.Unlock()
		if good {
			return
		}
		select {
		case <-s.changed:
		case <-deadline:
			s.mu.Lock()
			defer s.mu.Unlock()
			s.t.Fatalf("timeout waiting for %s; lines %q, events %v, files %+v", what, s.texts(), s.events,
				s.files)
		}
	}
}

func (s *seen) texts() (all []string) {
	for _, l := range s.lines {
		if !l.Partial {
			all = append(all, string(l.Text))
		}
	}
	return all
}

// has waits until exactly these lines were reported.
func (s *seen) has(want ...string) {
	s.t.Helper()
	s.until(fmt.Sprintf("%q", want), func() bool { return slices.Equal(s.texts(), want) })
}

func (s *seen) event(kind Kind) {
	s.t.Helper()
	s.until(string(kind), func() bool {
		return slices.ContainsFunc(s.events, func(e Event) bool { return e.Kind == kind })
	})
}

func (s *seen) state(name string, want State) {
	s.t.Helper()
	s.until(name+" "+string(want), func() bool {
		return slices.ContainsFunc(s.files, func(f File) bool {
			return filepath.Base(f.Path) == name && f.State == want
		})
	})
}

func put(t *testing.T, path, content string) {
	t.Helper()
	check(t, os.WriteFile(path, []byte(content), 0o600))
}

func add(t *testing.T, path, content string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	check(t, err)
	_, err = f.WriteString(content)
	check(t, errors.Join(err, f.Close()))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	put(t, path, "one\ntwo\n")
	s := follow(t, Options{Paths: []string{path}, Tail: 1})
	s.has("two")
	add(t, path, "three\r\nfo")
	s.has("two", "three")
	add(t, path, "ur\n\n\xff\x00\x1b[31mred\n")
	s.has("two", "three", "four", "", "\xff\x00\x1b[31mred")
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, l := range s.lines {
		if l.Number != int64(i+2) {
			t.Errorf("line %d has the number %d", i, l.Number)
		}
	}
	if got := s.lines[2]; got.Offset != 15 || got.Path != path {
		t.Errorf("the third line is %+v", got)
	}
}

func TestPartial(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	put(t, path, "be")
	s := follow(t, Options{Paths: []string{path}, FromStart: true, Partial: true})
	partial := func(text string) {
		t.Helper()
		s.until("partial "+text, func() bool {
			n := len(s.lines)
			return n > 0 && s.lines[n-1].Partial && string(s.lines[n-1].Text) == text
		})
	}
	partial("be")
	add(t, path, "gin")
	partial("begin")
	add(t, path, "ning\n")
	s.has("beginning")
	add(t, path, "last")
	partial("last")
	check(t, os.Remove(path))
	s.has("beginning", "last")
	s.until("torn", func() bool { return s.lines[len(s.lines)-1].Torn })
}

func TestRotate(t *testing.T) {
	dir := t.TempDir()
	path, old := filepath.Join(dir, "a.log"), filepath.Join(dir, "a.log.1")
	put(t, path, "one\n")
	s := follow(t, Options{Paths: []string{path}, FromStart: true})
	s.has("one")
	writer, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	check(t, err)
	defer writer.Close()
	check(t, os.Rename(path, old))
	s.state("a.log", Removed)
	_, err = writer.WriteString("after the move\n")
	check(t, err)
	s.has("one", "after the move")
	put(t, path, "new\n")
	s.has("one", "after the move", "new")
	s.event(WasRotated)
	_, err = writer.WriteString("late\n")
	check(t, err)
	s.has("one", "after the move", "new", "late")
	// The next rotation drops the first file.
	check(t, os.Rename(path, filepath.Join(dir, "a.log.2")))
	put(t, path, "newer\n")
	s.has("one", "after the move", "new", "late", "newer")
}

// TestRenamedInDirectory checks that a file renamed within a followed directory is read once.
func TestRenamedInDirectory(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.log"), "one\n")
	s := follow(t, Options{Paths: []string{dir}, FromStart: true})
	s.has("one")
	check(t, os.Rename(filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log")))
	s.state("b.log", Following)
	add(t, filepath.Join(dir, "b.log"), "two\n")
	s.has("one", "two")
	put(t, filepath.Join(dir, "a.log"), "three\n")
	s.has("one", "two", "three")
}

func TestTruncated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	put(t, path, "one\ntwo\nhal")
	s := follow(t, Options{Paths: []string{path}, FromStart: true})
	s.has("one", "two")
	check(t, os.Truncate(path, 0))
	s.state("a.log", Truncated)
	s.has("one", "two", "hal")
	add(t, path, "x\n")
	s.has("one", "two", "hal", "x")
	s.state("a.log", Following)
	// Rewritten at once and longer than before: the size alone does not show it.
	put(t, path, "other\nlines\n")
	s.has("one", "two", "hal", "x", "other", "lines")
	s.until("two truncations", func() bool { return s.files[0].Truncated == 2 })
}

func TestRemovedAndRecreated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	put(t, path, "one\n")
	s := follow(t, Options{Paths: []string{path}, FromStart: true})
	s.has("one")
	check(t, os.Remove(path))
	s.event(WasRemoved)
	s.state("a.log", Removed)
	put(t, path, "two\n")
	s.has("one", "two")
	s.state("a.log", Following)
}

func TestDirectoryCreatedLater(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "x", "y", "logs")
	s := follow(t, Options{Paths: []string{dir}})
	s.state("logs", Waiting)
	check(t, os.MkdirAll(filepath.Join(dir, "deep"), 0o700))
	put(t, filepath.Join(dir, "a.log"), "one\n")
	s.has("one")
	put(t, filepath.Join(dir, "deep", "b.jsonl"), "two\n")
	put(t, filepath.Join(dir, "deep", "c.txt"), "not matched\n")
	s.has("one", "two")
	// The whole tree is removed and created again.
	check(t, os.RemoveAll(filepath.Join(base, "x")))
	s.state("logs", Waiting)
	check(t, os.MkdirAll(dir, 0o700))
	put(t, filepath.Join(dir, "a.log"), "three\n")
	s.has("one", "two", "three")
}

func TestFileCreatedLater(t *testing.T) {
	base := t.TempDir()
	path := filepath.Join(base, "x", "y.txt")
	s := follow(t, Options{Paths: []string{path}})
	s.state("y.txt", Waiting)
	check(t, os.Mkdir(filepath.Join(base, "x"), 0o700))
	put(t, path, "one\n")
	s.has("one")
}

func TestDepth(t *testing.T) {
	dir := t.TempDir()
	check(t, os.MkdirAll(filepath.Join(dir, "1", "2"), 0o700))
	check(t, os.MkdirAll(filepath.Join(dir, ".hidden"), 0o700))
	put(t, filepath.Join(dir, "1", "a.out"), "one\n")
	put(t, filepath.Join(dir, "1", "2", "b.out"), "two\n")
	put(t, filepath.Join(dir, ".hidden", "c.out"), "three\n")
	s := once(t, Options{Paths: []string{dir}, Match: []string{"*.out"}, Depth: 2, FromStart: true})
	if got := s.texts(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("read %q", got)
	}
}

func once(t *testing.T, o Options) *seen {
	t.Helper()
	o.Once = true
	s := &seen{t: t, changed: make(chan struct{}, 1)}
	check(t, Follow(context.Background(), o, s.handler()))
	return s
}

func TestSymlinks(t *testing.T) {
	dir, far := t.TempDir(), t.TempDir()
	link := filepath.Join(dir, "current.log")
	first, second := filepath.Join(far, "1.out"), filepath.Join(far, "2.out")
	put(t, first, "one\n")
	check(t, os.Symlink(first, link))
	s := follow(t, Options{Paths: []string{link}, FromStart: true})
	s.has("one")
	add(t, first, "two\n")
	s.has("one", "two")
	put(t, second, "three\n")
	check(t, os.Symlink(second, link+".new"))
	check(t, os.Rename(link+".new", link))
	s.has("one", "two", "three")
	add(t, second, "four\n")
	s.has("one", "two", "three", "four")
}

func TestDanglingLink(t *testing.T) {
	dir, far := t.TempDir(), t.TempDir()
	check(t, os.Symlink(filepath.Join(far, "data"), filepath.Join(dir, "a.log")))
	s := follow(t, Options{Paths: []string{filepath.Join(dir, "a.log")}})
	s.state("a.log", Waiting)
	put(t, filepath.Join(far, "data"), "one\n")
	s.has("one")
}

func TestTwoNames(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.log"), "one\n")
	check(t, os.Symlink("a.log", filepath.Join(dir, "b.log")))
	s := follow(t, Options{Paths: []string{dir, dir}, FromStart: true})
	s.state("b.log", Same)
	add(t, filepath.Join(dir, "a.log"), "two\n")
	s.has("one", "two")
}

func TestLongLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	put(t, path, strings.Repeat("x", 3*bufSize)+"\nshort\n"+strings.Repeat("y", 20)+"\n")
	s := once(t, Options{Paths: []string{path}, FromStart: true, MaxLine: 10})
	if got := s.texts(); !slices.Equal(got, []string{strings.Repeat("x", 10), "short",
		strings.Repeat("y", 10)}) {
		t.Fatalf("read %q", got)
	}
	if s.lines[0].Cut != 3*bufSize-10 || s.lines[1].Cut != 0 || s.lines[2].Cut != 10 || s.files[0].Cut != 2 {
		t.Errorf("cut %d, %d, %d; %+v", s.lines[0].Cut, s.lines[1].Cut, s.lines[2].Cut, s.files)
	}
	if s.lines[2].Offset != 3*bufSize+1+6 {
		t.Errorf("offset %d", s.lines[2].Offset)
	}
}

func TestPipe(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "p.log")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	put(t, filepath.Join(dir, "a.log"), "one\n")
	s := follow(t, Options{Paths: []string{dir, pipe}, FromStart: true})
	s.has("one")
	s.state("p.log", Unreadable)
}

func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.log")
	put(t, bad, "secret\n")
	put(t, filepath.Join(dir, "a.log"), "one\n")
	var mu sync.Mutex
	denied := true
	s := follow(t, Options{Paths: []string{dir}, FromStart: true, open: func(path string) (*os.File, error) {
		mu.Lock()
		defer mu.Unlock()
		if denied && path == bad {
			return nil, &os.PathError{Op: "open", Path: path, Err: syscall.EACCES}
		}
		return openFile(path)
	}})
	s.has("one")
	s.event(NotReadable)
	s.state("bad.log", Unreadable)
	mu.Lock()
	denied = false
	mu.Unlock()
	check(t, os.Chmod(bad, 0o644))
	s.has("one", "secret")
	s.state("bad.log", Following)
}

// fakeWatcher reports the notifications that a test sends.
type fakeWatcher struct {
	add    error
	events chan fsnotify.Event
	errors chan error
}

func (w fakeWatcher) Add(string) error              { return w.add }
func (w fakeWatcher) Remove(string) error           { return nil }
func (w fakeWatcher) Events() <-chan fsnotify.Event { return w.events }
func (w fakeWatcher) Errors() <-chan error          { return w.errors }
func (w fakeWatcher) Close() error                  { return nil }

func TestOverflow(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.log"), "one\n")
	w := fakeWatcher{events: make(chan fsnotify.Event), errors: make(chan error)}
	s := follow(t, Options{Paths: []string{dir}, FromStart: true, watcher: func() (watcher, error) {
		return w, nil
	}})
	s.has("one")
	add(t, filepath.Join(dir, "a.log"), "two\n")
	put(t, filepath.Join(dir, "b.log"), "three\n")
	w.errors <- fsnotify.ErrEventOverflow
	s.event(Overflow)
	s.has("one", "two", "three")
}

func TestNoWatches(t *testing.T) {
	for name, open := range map[string]func() (watcher, error){
		"none":     func() (watcher, error) { return nil, syscall.EMFILE },
		"too many": func() (watcher, error) { return fakeWatcher{add: syscall.ENOSPC}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, filepath.Join(dir, "a.log"), "one\n")
			tick := make(chan time.Time)
			s := follow(t, Options{Paths: []string{dir}, FromStart: true, watcher: open,
				ticks: func() (<-chan time.Time, func()) { return tick, func() {} }})
			s.event(Polling)
			s.has("one")
			add(t, filepath.Join(dir, "a.log"), "two\n")
			put(t, filepath.Join(dir, "b.log"), "three\n")
			tick <- time.Now()
			s.has("one", "two", "three")
		})
	}
}

func TestPolling(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	s := follow(t, Options{Paths: []string{path}, Poll: true})
	s.event(Polling)
	s.state("a.log", Waiting) // checked once: later files are new
	put(t, path, "one\n")
	s.has("one")
}

func TestMaxFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range MaxFiles + 3 {
		put(t, filepath.Join(dir, fmt.Sprintf("%04d.log", i)), "x\n")
	}
	s := once(t, Options{Paths: []string{dir}, FromStart: true})
	if len(s.lines) != MaxFiles || len(s.events) == 0 || s.events[0].Kind != LeftOut ||
		!strings.HasSuffix(s.events[0].Text, "left out: 3") {
		t.Errorf("%d lines, first event %+v", len(s.lines), s.events[:1])
	}
}

func TestHandlerError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	put(t, path, "one\n")
	broken := errors.New("broken")
	err := Follow(context.Background(), Options{Paths: []string{path}, FromStart: true},
		Handler{Lines: func([]Line) error { return broken }})
	if !errors.Is(err, broken) {
		t.Errorf("Follow: %v", err)
	}
}

func TestInvalidPattern(t *testing.T) {
	if err := Follow(context.Background(), Options{Paths: []string{"."}, Match: []string{"["}},
		Handler{}); err == nil {
		t.Error("the pattern [ was accepted")
	}
}

// TestManyWriters checks that files that grow while they are read keep their order and lose nothing.
func TestManyWriters(t *testing.T) {
	dir := t.TempDir()
	const files, each = 4, 5000
	s := follow(t, Options{Paths: []string{dir}, FromStart: true})
	var wg sync.WaitGroup
	for i := range files {
		wg.Go(func() {
			f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%d.log", i)))
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			for n := range each {
				fmt.Fprintf(f, "%d %d\n", i, n)
			}
		})
	}
	wg.Wait()
	s.until("all lines", func() bool { return len(s.lines) == files*each })
	next := map[byte]int{}
	for _, l := range s.lines {
		if want := fmt.Sprintf("%c %d", l.Text[0], next[l.Text[0]]); string(l.Text) != want ||
			l.Number != int64(next[l.Text[0]]+1) {
			t.Fatalf("%q, number %d, reported instead of %q", l.Text, l.Number, want)
		}
		next[l.Text[0]]++
	}
}
