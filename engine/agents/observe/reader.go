package observe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/observe/spool"
)

// rotateBytes is the size from which the active file is rotated.
const rotateBytes = 4 << 20

// maxRecord is the longest line of a record, in bytes.
const maxRecord = spool.MaxPayload + 1<<10

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
	lines   *agentcli.LineReader
	rotated bool
}

func newSpoolFile(number int64, f *os.File, from int64) *spoolFile {
	lines := agentcli.NewLineReaderAt(io.NewSectionReader(f, from, math.MaxInt64-from), from)
	lines.Follow, lines.Max = true, maxRecord
	return &spoolFile{number: number, f: f, lines: lines}
}

// read returns the end of the last complete line.
func (f *spoolFile) read() int64 { return f.lines.Offset() }

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
		file := newSpoolFile(number, f, p.Offsets[number])
		file.rotated = true
		r.files = append(r.files, file)
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
	r.files = append(r.files, newSpoolFile(r.active, f, from))
}

// current returns the active file, or nil.
func (r *reader) current() *spoolFile {
	if n := len(r.files); n > 0 && !r.files[n-1].rotated {
		return r.files[n-1]
	}
	return nil
}

// next reads the next record and reports whether there was one.
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
	return false, r.rotate(rotateBytes)
}

// readFile reads the next record of a file and reports whether there was one. In a file without
// writers the last line may lack its line break.
func (r *reader) readFile(f *spoolFile) (more bool, err error) {
	if f.rotated && f.lines.Follow && !r.readOnly {
		f.lines.Follow = !spool.Lock(f.f)
	}
	line, err := f.lines.Next()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the spool: %w", err)
	}
	end := location{f.number, f.read()}
	if rec, ok := spool.Parse(line.Bytes); ok {
		rec.Payload = bytes.Clone(rec.Payload)
		r.record(end, rec)
	} else {
		r.malformed(end)
	}
	return true, nil
}

// rotate renames the active file if all its complete lines were read and it has at least minBytes: the rest
// is no record if no writer ends it. Writers that have it open still write to it, so it is read until they
// have closed it.
func (r *reader) rotate(minBytes int64) error {
	f := r.current()
	if f == nil {
		return nil
	}
	info, err := f.f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < minBytes {
		return r.checkReplaced(f, info)
	}
	err = os.Rename(r.path(f.number, false), r.path(f.number, true))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f.rotated = true
	r.active = f.number + 1
	return nil
}

// checkReplaced treats the active file as rotated if another process removed or replaced it.
func (r *reader) checkReplaced(f *spoolFile, opened os.FileInfo) error {
	info, err := os.Stat(r.path(f.number, false))
	if err == nil && os.SameFile(opened, info) && info.Size() >= f.read() {
		return nil
	}
	f.rotated = true
	r.active = f.number + 1
	return nil
}

// rotateDelivered renames the active file if all its records were delivered, so that they are removed: the
// spool has them with their secrets.
func (r *reader) rotateDelivered(offsets map[int64]int64) error {
	if f := r.current(); f != nil && f.read() > 0 && offsets[f.number] == f.read() {
		return r.rotate(1)
	}
	return nil
}

// removeDelivered removes the rotated files that were delivered completely and returns their
// numbers.
func (r *reader) removeDelivered(offsets map[int64]int64) (removed []int64) {
	r.files = slices.DeleteFunc(r.files, func(f *spoolFile) bool {
		if f.lines.Follow || offsets[f.number] < f.read() {
			return false
		}
		if info, err := f.f.Stat(); err == nil && info.Size() > f.read() {
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

func (r *reader) close() {
	for _, f := range r.files {
		f.f.Close()
	}
}
