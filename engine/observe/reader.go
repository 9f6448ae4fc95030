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

	"acescope/engine/observe/spool"
)

// rotateBytes is from what size on the file that is written to is put aside.
const rotateBytes = 4 << 20

const chunkBytes = 256 << 10

// reader reads the files of a spool: the one that is written to and those that were put
// aside, each record once. It belongs to one goroutine.
type reader struct {
	dir     string
	active  int64        // number of the file that is written to
	files   []*spoolFile // in the order of their numbers
	record  func(at spot, r spool.Record)
	broken  func(at spot) // a line that is no record
	looking bool          // it only looks, and locks nothing
}

// spot is where a record ends.
type spot struct {
	file int64
	end  int64
}

type spoolFile struct {
	number int64
	f      *os.File
	read   int64 // up to the last whole line
	old    bool  // it was put aside
	locked bool  // nobody writes to it any more
}

func (r *reader) path(number int64, old bool) string {
	if old {
		return filepath.Join(r.dir, fmt.Sprintf("%016d%s", number, spool.Old))
	}
	return filepath.Join(r.dir, spool.Active)
}

// begin finds the files that were put aside, and where to go on in them.
func (r *reader) begin(p position) error {
	r.active = p.Active
	names, err := filepath.Glob(filepath.Join(r.dir, "*"+spool.Old))
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		number, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(name), spool.Old), 10, 64)
		if err != nil || number < 1 {
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		r.files = append(r.files, &spoolFile{number: number, f: f, read: p.Offsets[number], old: true})
		r.active = max(r.active, number+1)
	}
	r.openActive(p.Offsets[r.active])
	return nil
}

// openActive opens the file that is written to, if it is there.
func (r *reader) openActive(from int64) {
	f, err := os.Open(r.path(r.active, false))
	if err != nil {
		return
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return
	} else if info.Size() < from {
		from = 0 // it is another one
	}
	r.files = append(r.files, &spoolFile{number: r.active, f: f, read: from})
}

// current is the file that is written to, nil where there is none.
func (r *reader) current() *spoolFile {
	if n := len(r.files); n > 0 && !r.files[n-1].old {
		return r.files[n-1]
	}
	return nil
}

// next reads what is new, at most about a chunk of each file, and tells whether there may
// be more at once.
func (r *reader) next() (more bool, err error) {
	if r.current() == nil {
		r.openActive(0)
	}
	for _, f := range r.files {
		again, err := r.readFile(f)
		if err != nil {
			return false, err
		}
		if more = more || again; again {
			return true, nil // later files hold later records
		}
	}
	return more, r.rotate()
}

// readFile reads whole lines from where it stands; true where it did not come to the end.
// The rest of a file that is written to no more is a line too.
func (r *reader) readFile(f *spoolFile) (bool, error) {
	if f.old && !f.locked && !r.looking {
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
		if end == 0 && n == size && size <= 4*spool.MaxPayload {
			continue // a line that is longer
		}
		if end == 0 && n == size {
			end = n // no line is so long
		}
		r.lines(f, buf[:end])
		return n == size, nil
	}
}

func (r *reader) lines(f *spoolFile, data []byte) {
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte{'\n'})
		f.read += int64(len(data) - len(rest))
		data = rest
		if len(line) == 0 {
			continue
		}
		at := spot{f.number, f.read}
		if rec, ok := spool.Parse(line); ok {
			r.record(at, rec)
		} else {
			r.broken(at)
		}
	}
}

// rotate puts the file that is written to aside when it is large. Writers that have it
// open still write to it, and it is read until none can.
func (r *reader) rotate() error {
	f := r.current()
	if f == nil || f.read < rotateBytes {
		return r.replaced(f)
	}
	if err := os.Rename(r.path(f.number, false), r.path(f.number, true)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f.old = true
	r.active = f.number + 1
	return nil
}

// replaced notices that somebody removed the file that is written to.
func (r *reader) replaced(f *spoolFile) error {
	if f == nil {
		return nil
	}
	mine, err := f.f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(r.path(f.number, false))
	if err == nil && os.SameFile(mine, there) && there.Size() >= f.read {
		return nil
	}
	f.old = true // read to its end, and then forgotten
	r.active = f.number + 1
	return nil
}

// remove removes the files that were put aside and are delivered whole.
func (r *reader) remove(delivered map[int64]int64) (gone []int64) {
	keep := r.files[:0]
	for _, f := range r.files {
		if !f.old || !f.locked || delivered[f.number] < f.read {
			keep = append(keep, f)
			continue
		}
		if info, err := f.f.Stat(); err == nil && info.Size() > f.read {
			keep = append(keep, f)
			continue
		}
		if err := os.Remove(r.path(f.number, true)); err != nil && !errors.Is(err, os.ErrNotExist) {
			keep = append(keep, f)
			continue
		}
		f.f.Close()
		gone = append(gone, f.number)
	}
	r.files = keep
	return gone
}

// extras reads the files that hold a single record and gives their names.
func (r *reader) extras(read func(path string, rec spool.Record)) {
	names, _ := filepath.Glob(filepath.Join(r.dir, spool.Extra+"*"))
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
