package observe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"acescope/engine/agents/observe/spool"
)

// rotateBytes is the size from which the active file is rotated.
const rotateBytes = 4 << 20

const chunkBytes = 256 << 10

// reader reads each record of a spool's active and rotated files once. It is not safe for
// concurrent use.
type reader struct {
	dir       string
	active    int64        // number of the active file
	files     []*spoolFile // by number
	record    func(end location, r spool.Record)
	malformed func(end location)
	readOnly  bool // take no locks
}

// location is the end of a record.
type location struct {
	file   int64
	offset int64
}

type spoolFile struct {
	number  int64
	f       *os.File
	read    int64 // end of the last complete line
	rotated bool
	locked  bool // no writer has it open
}

func (r *reader) path(number int64, rotated bool) string {
	if rotated {
		return filepath.Join(r.dir, fmt.Sprintf("%016d%s", number, spool.RotatedExt))
	}
	return filepath.Join(r.dir, spool.Active)
}

// open opens the files at a position.
func (r *reader) open(p position) error {
	r.active = p.Active
	names, err := filepath.Glob(filepath.Join(r.dir, "*"+spool.RotatedExt))
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		number, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(name), spool.RotatedExt), 10, 64)
		if err != nil || number < 1 {
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		r.files = append(r.files, &spoolFile{number: number, f: f, read: p.Offsets[number], rotated: true})
		r.active = max(r.active, number+1)
	}
	r.openActive(p.Offsets[r.active])
	return nil
}

// openActive opens the active file if it exists.
func (r *reader) openActive(from int64) {
	f, err := os.Open(r.path(r.active, false))
	if err != nil {
		return
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		f.Close()
		return
	}
	if info.Size() < from {
		from = 0 // the file was replaced
	}
	r.files = append(r.files, &spoolFile{number: r.active, f: f, read: from})
}

// current returns the active file, or nil.
func (r *reader) current() *spoolFile {
	if n := len(r.files); n > 0 && !r.files[n-1].rotated {
		return r.files[n-1]
	}
	return nil
}

// next reads about one chunk and reports whether more can be read at once.
func (r *reader) next() (more bool, err error) {
	if r.current() == nil {
		r.openActive(0)
	}
	for _, f := range r.files {
		more, err := r.readFile(f)
		if err != nil || more { // finish this file first: later files have later records
			return more, err
		}
	}
	return false, r.rotate()
}

// readFile reads complete lines and reports whether the end was not reached. In a file without
// writers the last line may lack its line break.
func (r *reader) readFile(f *spoolFile) (more bool, err error) {
	if f.rotated && !f.locked && !r.readOnly {
		f.locked = spool.Lock(f.f)
	}
	for size := chunkBytes; ; size *= 4 {
		buf := make([]byte, size)
		n, err := f.f.ReadAt(buf, f.read)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, fmt.Errorf("read the spool: %w", err)
		}
		end := bytes.LastIndexByte(buf[:n], '\n') + 1
		if n < size && f.locked {
			end = n
		}
		if end == 0 && n == size {
			if size <= 4*spool.MaxPayload {
				continue // read more of a long line
			}
			end = n // longer than any record
		}
		r.lines(f, buf[:end])
		return n == size, nil
	}
}

func (r *reader) lines(f *spoolFile, data []byte) {
	for line := range bytes.Lines(data) {
		f.read += int64(len(line))
		line = bytes.TrimSuffix(line, []byte{'\n'})
		if len(line) == 0 {
			continue
		}
		end := location{f.number, f.read}
		if rec, ok := spool.Parse(line); ok {
			r.record(end, rec)
		} else {
			r.malformed(end)
		}
	}
}

// rotate renames the active file if it is large. Writers that have it open still write to it, so
// it is read until they have closed it.
func (r *reader) rotate() error {
	f := r.current()
	if f == nil {
		return nil
	}
	if f.read < rotateBytes {
		return r.checkReplaced(f)
	}
	err := os.Rename(r.path(f.number, false), r.path(f.number, true))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f.rotated = true
	r.active = f.number + 1
	return nil
}

// checkReplaced treats the active file as rotated if another process removed or replaced it.
func (r *reader) checkReplaced(f *spoolFile) error {
	opened, err := f.f.Stat()
	if err != nil {
		return err
	}
	info, err := os.Stat(r.path(f.number, false))
	if err == nil && os.SameFile(opened, info) && info.Size() >= f.read {
		return nil
	}
	f.rotated = true
	r.active = f.number + 1
	return nil
}

// removeDelivered removes the rotated files that were delivered completely and returns their
// numbers.
func (r *reader) removeDelivered(offsets map[int64]int64) (removed []int64) {
	r.files = slices.DeleteFunc(r.files, func(f *spoolFile) bool {
		if !f.rotated || !f.locked || offsets[f.number] < f.read {
			return false
		}
		if info, err := f.f.Stat(); err == nil && info.Size() > f.read {
			return false
		}
		if err := os.Remove(r.path(f.number, true)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return false
		}
		f.f.Close()
		removed = append(removed, f.number)
		return true
	})
	return removed
}

// singles calls read for each file with a single record.
func (r *reader) singles(read func(path string, rec spool.Record)) {
	names, _ := filepath.Glob(filepath.Join(r.dir, spool.SinglePrefix+"*"))
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if rec, ok := spool.Parse(bytes.Trim(data, "\n")); ok {
			read(name, rec)
		}
	}
}

func (r *reader) close() {
	for _, f := range r.files {
		f.f.Close()
	}
}
