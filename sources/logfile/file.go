package logfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// file is a followed name. cur is the file of that name, old the previous one, to which its
// writer may still append.
type file struct {
	File
	given    bool // by path, not found in a directory
	names    []string
	cur, old *stream
	had      bool // a file of that name was read before
	late     bool // it did not exist at the beginning: read it from its start
}

// turnBytes is how much of one file is read before the next file has its turn.
const turnBytes = 4 << 20

var errNotRegular = errors.New("not a regular file")

// turn checks a file and reads its new data, at most turnBytes of each stream. It reports
// whether there is more.
func (fo *follower) turn(f *file) (more bool, err error) {
	if f.old != nil {
		if more, err = fo.readOld(f); err != nil || more {
			return more, err
		}
	}
	st, statErr := os.Stat(f.Path)
	if f.cur != nil {
		more, err = fo.readCurrent(f, st)
		if err != nil || more || f.cur != nil && sameFile(f.cur.info, st) {
			return more, err
		}
	}
	switch {
	case statErr == nil:
		return fo.openFile(f, st)
	case errors.Is(statErr, fs.ErrNotExist):
		return false, fo.missing(f)
	}
	return false, fo.unreadable(f, statErr)
}

func sameFile(a, b os.FileInfo) bool { return a != nil && b != nil && os.SameFile(a, b) }

// readCurrent reads the current stream; st is the file that has the name now, or nil. If that
// is another file and this one is read to its end, this one becomes the old one.
func (fo *follower) readCurrent(f *file, st os.FileInfo) (bool, error) {
	s := f.cur
	now, err := s.h.Stat()
	if err != nil {
		return false, fo.unreadable(f, err)
	}
	if s.truncated(now.Size()) {
		if err := fo.restart(f); err != nil {
			return false, err
		}
	}
	f.Size = now.Size()
	more, err := fo.readStream(f, s)
	if err != nil || more || f.cur == nil || sameFile(s.info, st) {
		return more, err
	}
	if err := fo.dropOld(f); err != nil {
		return false, err
	}
	f.old, f.cur = s, nil
	_, err = fo.readOld(f)
	return false, err
}

// restart reads a truncated file from its start.
func (fo *follower) restart(f *file) error {
	if err := fo.torn(f, f.cur); err != nil {
		return err
	}
	f.cur.restart()
	f.State, f.Read = Truncated, 0
	f.Truncated++
	return fo.event(WasEmptied, f.Path, "was truncated; reading from its start")
}

// readOld reads what is still appended to the old file, and drops it when it has no name left.
func (fo *follower) readOld(f *file) (bool, error) {
	s := f.old
	more, err := fo.readStream(f, s)
	if err != nil || more || f.old == nil {
		return more, err
	}
	if now, err := s.h.Stat(); err != nil || unlinked(now) {
		return false, fo.dropOld(f)
	}
	return false, nil
}

func (fo *follower) dropOld(f *file) error {
	if f.old == nil {
		return nil
	}
	err := fo.torn(f, f.old)
	f.old.h.Close()
	f.old = nil
	return err
}

// torn reports the unfinished line, whose end will not come.
func (fo *follower) torn(f *file, s *stream) error {
	l, ok := s.lines.unfinished()
	if !ok {
		return nil
	}
	l.Torn = true
	return fo.report(f, []Line{l})
}

// readStream reads at most turnBytes.
func (fo *follower) readStream(f *file, s *stream) (more bool, err error) {
	for read := 0; read < turnBytes; read += len(fo.buf) {
		lines, more, err := s.read(fo.buf, fo.lines[:0])
		fo.lines = lines[:0]
		if s == f.cur {
			f.Read = s.at
			f.Size = max(f.Size, s.at)
		}
		if len(lines) > 0 {
			if s == f.cur {
				f.State, f.Err = Following, ""
			}
			if err := fo.report(f, lines); err != nil {
				return false, err
			}
		}
		if err != nil {
			return false, fo.unreadable(f, err)
		}
		if !more {
			return false, fo.reportPartial(f, s)
		}
		if fo.ctx.Err() != nil {
			return true, nil
		}
	}
	return true, nil
}

func (fo *follower) reportPartial(f *file, s *stream) error {
	if !fo.o.Partial {
		return nil
	}
	if l, changed := s.partial(); changed {
		return fo.report(f, []Line{l})
	}
	return nil
}

// report passes lines to the handler, with their path and the current time.
func (fo *follower) report(f *file, lines []Line) error {
	now := fo.now()
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
	if fo.h.Lines == nil {
		return nil
	}
	return fo.h.Lines(lines)
}

// openFile starts to read the file that has the name now.
func (fo *follower) openFile(f *file, st os.FileInfo) (more bool, err error) {
	if !st.Mode().IsRegular() {
		if st.IsDir() && f.given { // a directory appeared at the path of a missing file
			fo.rescanDue = true
			return false, nil
		}
		return false, fo.unreadable(f, errNotRegular)
	}
	other, moved := fo.follows(f, st)
	if other != "" {
		f.State, f.Err = Same, other
		return false, nil
	}
	if moved != nil {
		f.start(moved)
		return true, nil
	}
	h, err := fo.o.open(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, fo.missing(f)
	}
	if err != nil {
		return false, fo.unreadable(f, err)
	}
	info, err := h.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	s := newStream(h, info, fo.o.MaxLine)
	if err == nil {
		err = s.seek(f.late || fo.o.FromStart, fo.o.Tail)
	}
	if err != nil {
		h.Close()
		return false, fo.unreadable(f, err)
	}
	again := f.had
	f.start(s)
	f.Size, f.Read = info.Size(), s.at
	if again {
		f.Rotated++
		return true, fo.event(WasRotated, f.Path, "was replaced by another file; reading from its start")
	}
	return true, fo.event(Opened, f.Path, "following")
}

func (f *file) start(s *stream) {
	f.cur, f.State, f.Err = s, Following, ""
	f.late, f.had = true, true
}

// follows returns the name under which the file st is already followed, or "". If the file
// was renamed to f's name, it returns its stream instead, which continues under that name.
func (fo *follower) follows(f *file, st os.FileInfo) (name string, moved *stream) {
	for _, other := range fo.files {
		switch {
		case other == f:
			continue
		case other.cur != nil && sameFile(other.cur.info, st):
			if now, err := os.Stat(other.Path); err == nil && sameFile(now, st) {
				return other.Path, nil
			}
			moved, other.cur = other.cur, nil
		case other.old != nil && sameFile(other.old.info, st):
			moved, other.old = other.old, nil
		default:
			continue
		}
		fo.dirty(other)
		return "", moved
	}
	return "", nil
}

// missing records that no file has the name.
func (fo *follower) missing(f *file) error {
	f.late = true
	if f.State == Waiting || f.State == Removed {
		return nil
	}
	f.State, f.Err = Waiting, ""
	if f.had {
		f.State = Removed
		return fo.event(WasRemoved, f.Path, "was removed; waiting for a new file")
	}
	return nil
}

// unreadable records why a file cannot be read. Other files are not affected.
func (fo *follower) unreadable(f *file, err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	if f.State == Unreadable && f.Err == err.Error() {
		return nil
	}
	f.State, f.Err = Unreadable, err.Error()
	return fo.event(NotReadable, f.Path, err.Error())
}

func (f *file) close() {
	for _, s := range []*stream{f.cur, f.old} {
		if s != nil {
			s.h.Close()
		}
	}
	f.cur, f.old = nil, nil
}

// resolve sets the names that notifications use for the file: its real path, and the target
// of a symbolic link.
func (f *file) resolve() {
	f.names = f.names[:0]
	if dir, err := filepath.EvalSymlinks(filepath.Dir(f.Path)); err == nil {
		f.names = append(f.names, filepath.Join(dir, filepath.Base(f.Path)))
	}
	if target, ok := linkTarget(f.Path); ok {
		f.names = append(f.names, target)
	}
}
