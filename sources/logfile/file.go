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
	given    bool     // by path, not found in a directory
	names    []string // that notifications use: its real path, and the target of a symbolic link
	cur, old *stream
	had      bool // a file of that name was read before
	late     bool // it did not exist at the beginning: read it from its start
	dirty    bool // it may have changed
}

// turnBytes is how much of one file is read before the next file has its turn.
const turnBytes = 4 << 20

var errNotRegular = errors.New("not a regular file")

// turn checks a file and reads its new data, at most turnBytes of each stream. It reports
// whether there is more.
func (fo *follower) turn(f *file) (more bool) {
	if f.old != nil && fo.readOld(f) {
		return true
	}
	st, err := os.Stat(f.Path)
	if f.cur != nil {
		if fo.readCurrent(f) {
			return true
		}
		if sameFile(f.cur.info, st) {
			return false
		}
		fo.dropOld(f)
		f.old, f.cur = f.cur, nil
		fo.readOld(f)
	}
	switch {
	case err == nil:
		return fo.openFile(f, st)
	case errors.Is(err, fs.ErrNotExist):
		fo.missing(f)
	default:
		fo.unreadable(f, err)
	}
	return false
}

func sameFile(a, b os.FileInfo) bool { return a != nil && b != nil && os.SameFile(a, b) }

// readCurrent reads the current stream, from its start if it was truncated.
func (fo *follower) readCurrent(f *file) (more bool) {
	now, err := f.cur.h.Stat()
	if err != nil {
		fo.unreadable(f, err)
		return false
	}
	if f.cur.truncated(now.Size()) {
		fo.torn(f, f.cur)
		f.cur.restart()
		f.State = Truncated
		f.Truncated++
		fo.event(WasEmptied, f.Path, "was truncated; reading from its start")
	}
	f.Size = now.Size()
	return fo.readStream(f, f.cur)
}

// readOld reads what is still appended to the old file, and drops it when it has no name left.
func (fo *follower) readOld(f *file) (more bool) {
	if fo.readStream(f, f.old) {
		return true
	}
	if now, err := f.old.h.Stat(); err != nil || unlinked(now) {
		fo.dropOld(f)
	}
	return false
}

func (fo *follower) dropOld(f *file) {
	if f.old != nil {
		fo.torn(f, f.old)
		f.old.h.Close()
		f.old = nil
	}
}

// torn reports the unfinished line of a stream, which may be nil, because its end will not come.
func (fo *follower) torn(f *file, s *stream) {
	if s == nil {
		return
	}
	if l, ok := s.lines.unfinished(); ok {
		l.Torn = true
		fo.report(f, l)
	}
}

// readStream reads at most turnBytes.
func (fo *follower) readStream(f *file, s *stream) (more bool) {
	for read := 0; read < turnBytes && fo.err == nil && fo.ctx.Err() == nil; read += len(fo.buf) {
		lines, more, err := s.read(fo.buf, fo.lines[:0])
		fo.lines = lines[:0]
		if s == f.cur {
			f.Size = max(f.Size, s.at)
			if len(lines) > 0 {
				f.State, f.Err = Following, ""
			}
		}
		fo.report(f, lines...)
		if err != nil {
			fo.unreadable(f, err)
			return false
		}
		if !more {
			if l, changed := s.partial(); changed && fo.o.Partial {
				fo.report(f, l)
			}
			return false
		}
	}
	return true
}

// openFile starts to read the file that has the name now.
func (fo *follower) openFile(f *file, st os.FileInfo) (more bool) {
	if st.IsDir() && f.given { // a directory appeared at the path of a missing file
		fo.scanDue = true
		return false
	}
	other, moved := fo.follows(f, st)
	if other != "" {
		f.State, f.Err = Same, other
		return false
	}
	if moved != nil {
		f.start(moved)
		return true
	}
	s, err := fo.openStream(f, st)
	if errors.Is(err, fs.ErrNotExist) {
		fo.missing(f)
		return false
	}
	if err != nil {
		fo.unreadable(f, err)
		return false
	}
	if f.had {
		fo.event(WasRotated, f.Path, "was replaced by another file; reading from its start")
	} else {
		fo.event(Opened, f.Path, "following")
	}
	f.start(s)
	f.Size = s.info.Size()
	return true
}

// openStream opens a file at the position where reading starts.
func (fo *follower) openStream(f *file, st os.FileInfo) (*stream, error) {
	if !st.Mode().IsRegular() { // opening a pipe would wait
		return nil, errNotRegular
	}
	h, err := fo.o.open(f.Path)
	if err != nil {
		return nil, err
	}
	info, err := h.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	s := &stream{h: h, info: info, lines: splitter{max: fo.o.MaxLine, number: 1}}
	if err == nil {
		err = s.seek(f.late || fo.o.FromStart, fo.o.Tail)
	}
	if err != nil {
		h.Close()
		return nil, err
	}
	return s, nil
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
		other.dirty = true
		return "", moved
	}
	return "", nil
}

// missing records that no file has the name.
func (fo *follower) missing(f *file) {
	f.late = true
	if f.State == Waiting || f.State == Removed {
		return
	}
	f.State, f.Err = Waiting, ""
	if f.had {
		f.State = Removed
		fo.event(WasRemoved, f.Path, "was removed; waiting for a new file")
	}
}

// unreadable records why a file cannot be read. Other files are not affected.
func (fo *follower) unreadable(f *file, err error) {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	if f.State == Unreadable && f.Err == err.Error() {
		return
	}
	f.State, f.Err = Unreadable, err.Error()
	fo.event(NotReadable, f.Path, err.Error())
}

func (f *file) close() {
	for _, s := range []*stream{f.cur, f.old} {
		if s != nil {
			s.h.Close()
		}
	}
	f.cur, f.old = nil, nil
}

// resolve sets the names that notifications use for the file.
func (f *file) resolve() {
	f.names = f.names[:0]
	if dir, err := filepath.EvalSymlinks(filepath.Dir(f.Path)); err == nil {
		f.names = append(f.names, filepath.Join(dir, filepath.Base(f.Path)))
	}
	if target, ok := linkTarget(f.Path); ok {
		f.names = append(f.names, target)
	}
}
