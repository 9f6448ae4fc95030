package logfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// file is a name that is followed. cur is the file of that name, old the one that had it
// before, to which its writer may still add.
type file struct {
	File
	given    bool // by path, not found in a directory
	names    []string
	cur, old *stream
	had      bool // some file had the name and was read
	late     bool // it was not there at the beginning: read it from its start
}

// turnBytes is how much of one file is read before it is the others' turn.
const turnBytes = 4 << 20

// turn looks at a file and reads what is new of it, turnBytes at most of each stream;
// more is true where there is more.
func (fo *follower) turn(f *file) (more bool, err error) {
	if f.old != nil {
		if more, err = fo.readOld(f); err != nil || more {
			return more, err
		}
	}
	st, statErr := os.Stat(f.Path)
	if f.cur != nil {
		if more, err = fo.readCurrent(f, st); err != nil || more || f.cur != nil && sameFile(f.cur.info, st) {
			return more, err
		}
	}
	switch {
	case statErr == nil:
		return fo.opened(f, st)
	case errors.Is(statErr, fs.ErrNotExist):
		return false, fo.gone(f)
	}
	return false, fo.unreadable(f, statErr)
}

func sameFile(a, b os.FileInfo) bool { return a != nil && b != nil && os.SameFile(a, b) }

// readCurrent reads on; st is the file that has the name now, nil for none. When another
// file has it and this one is read to its end, it becomes the old one.
func (fo *follower) readCurrent(f *file, st os.FileInfo) (bool, error) {
	s := f.cur
	now, err := s.h.Stat()
	if err != nil {
		return false, fo.unreadable(f, err)
	}
	if s.emptied(now.Size()) {
		if err := fo.emptied(f); err != nil {
			return false, err
		}
	}
	f.Size = now.Size()
	more, err := fo.readStream(f, s)
	if err != nil || more || f.cur == nil {
		return more, err
	}
	if sameFile(s.info, st) {
		return false, nil
	}
	if err := fo.dropOld(f); err != nil {
		return false, err
	}
	f.old, f.cur = s, nil
	_, err = fo.readOld(f)
	return false, err
}

func (fo *follower) emptied(f *file) error {
	if err := fo.torn(f, f.cur); err != nil {
		return err
	}
	f.cur.restart()
	f.State, f.Read = Truncated, 0
	f.Truncated++
	return fo.event(WasEmptied, f.Path, "was emptied; reading it from its start")
}

// readOld reads what is still added to the file that had the name before, and lets go of
// it once it has no name at all.
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

// torn gives the line under way, whose end will not come.
func (fo *follower) torn(f *file, s *stream) error {
	l, ok := s.split.open()
	if !ok {
		return nil
	}
	l.Torn = true
	return fo.give(f, []Line{l})
}

// readStream reads at most turnBytes.
func (fo *follower) readStream(f *file, s *stream) (bool, error) {
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
			if err := fo.give(f, lines); err != nil {
				return false, err
			}
		}
		if err != nil {
			return false, fo.unreadable(f, err)
		}
		if !more {
			return false, fo.showPartial(f, s)
		}
		if fo.ctx.Err() != nil {
			return true, nil
		}
	}
	return true, nil
}

func (fo *follower) showPartial(f *file, s *stream) error {
	if !fo.o.Partial {
		return nil
	}
	if l, changed := s.partial(); changed {
		return fo.give(f, []Line{l})
	}
	return nil
}

// give hands lines over, all with the path and the time of now.
func (fo *follower) give(f *file, lines []Line) error {
	now := fo.now()
	for i := range lines {
		lines[i].Path, lines[i].At = f.Path, now
		if !lines[i].Partial {
			f.Lines++
		}
		if lines[i].Cut > 0 && !lines[i].Partial {
			f.Cut++
		}
	}
	if fo.h.Lines == nil {
		return nil
	}
	return fo.h.Lines(lines)
}

// opened begins with the file that has the name now.
func (fo *follower) opened(f *file, st os.FileInfo) (bool, error) {
	if !st.Mode().IsRegular() {
		if st.IsDir() && f.given { // a directory has come where a file was waited for
			fo.structure = true
			return false, nil
		}
		return false, fo.unreadable(f, errors.New("is no regular file"))
	}
	switch other, moved := fo.holder(f, st); {
	case other != "":
		f.State, f.Err = Same, other
		return false, nil
	case moved != nil:
		f.cur, f.State, f.Err, f.late, f.had = moved, Following, "", true, true
		return true, nil
	}
	h, err := fo.open(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, fo.gone(f)
	}
	if err != nil {
		return false, fo.unreadable(f, err)
	}
	info, err := h.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("is no regular file")
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
	f.cur, f.State, f.Err, f.late, f.had = s, Following, "", true, true
	f.Size, f.Read = info.Size(), s.at
	if again {
		f.Rotated++
		err = fo.event(WasRotated, f.Path, "another file has the name; reading it from its start")
	} else {
		err = fo.event(Opened, f.Path, "followed")
	}
	return true, err
}

// holder is the name under which a file is followed already, "" for none. One that was
// renamed to f's name goes on under that: its stream is given.
func (fo *follower) holder(f *file, st os.FileInfo) (string, *stream) {
	for _, other := range fo.files {
		if other == f {
			continue
		}
		var s *stream
		switch {
		case other.cur != nil && sameFile(other.cur.info, st):
			if now, err := os.Stat(other.Path); err == nil && sameFile(now, st) {
				return other.Path, nil
			}
			s, other.cur = other.cur, nil
		case other.old != nil && sameFile(other.old.info, st):
			s, other.old = other.old, nil
		default:
			continue
		}
		fo.dirty(other)
		return "", s
	}
	return "", nil
}

// gone notes that nothing has the name.
func (fo *follower) gone(f *file) error {
	f.late = true
	was := f.State
	if was == Waiting || was == Removed {
		return nil
	}
	f.State, f.Err = Waiting, ""
	if f.had {
		f.State = Removed
		return fo.event(WasRemoved, f.Path, "is gone; waiting for it to come again")
	}
	return nil
}

// unreadable notes why a file cannot be read; the others go on.
func (fo *follower) unreadable(f *file, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
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

// known notes the names by which events tell of the file: where it really lies, and what
// it links to.
func (f *file) known() {
	f.names = f.names[:0]
	if dir, err := filepath.EvalSymlinks(filepath.Dir(f.Path)); err == nil {
		f.names = append(f.names, filepath.Join(dir, filepath.Base(f.Path)))
	}
	if target, ok := linkTarget(f.Path); ok {
		f.names = append(f.names, target)
	}
}
