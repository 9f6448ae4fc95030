package transcript

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"os"

	"acescope/engine/price"
)

// Bounds of reading.
const (
	// MaxLine is how long a line may be to be looked at, in bytes.
	MaxLine = 16 << 20
	// chunk is how much is read at a time.
	chunk = 256 << 10
	// lastBytes are remembered before the place where reading goes on, to notice that the
	// file is another one.
	lastBytes = 256
)

// Buffer is memory for reading that several readers share, one at a time.
type Buffer struct{ b []byte }

// Reader reads a transcript that grows. The file is opened for each reading only, as the
// one who writes it does.
type Reader struct {
	path   string
	buf    *Buffer
	offset int64 // of the first byte that was not read as a line
	over   bool  // in the middle of a line that is too long
	info   os.FileInfo
	print  uint64 // of the bytes before offset
}

// NewReader begins at the start of a file, which need not be there yet; nil for a buffer of
// its own.
func NewReader(path string, buf *Buffer) *Reader {
	if buf == nil {
		buf = &Buffer{}
	}
	return &Reader{path: path, buf: buf}
}

// Progress says how far a reading has come.
type Progress struct {
	Offset    int64 // of the first byte that was not read
	Size      int64 // of the file
	More      bool  // whole lines may be left
	Restarted bool  // the file is another one than before, or was cut: lines come from its start
	Oversized int   // lines that were passed by
}

// Read calls fn with each whole line that was added, without its end, and the place where
// it begins, until the end of the file or until about budget bytes were read (0: no
// bound). A last line without an end counts once it is whole JSON. restart, where it is
// set, is called before the lines of a file that is another one.
func (r *Reader) Read(ctx context.Context, budget int64, restart func(), fn func(raw []byte, at int64)) (p Progress, err error) {
	file, err := os.Open(r.path)
	if err != nil {
		return p, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return p, err
	}
	if !info.Mode().IsRegular() {
		return p, fmt.Errorf("%s is no regular file", r.path)
	}
	if r.another(file, info) {
		*r = Reader{path: r.path, buf: r.buf}
		p.Restarted = true
		if restart != nil {
			restart()
		}
	}
	r.info, p.Size = info, info.Size()
	err = r.lines(ctx, file, budget, &p, fn)
	p.Offset = r.offset
	if err == nil && (p.Offset > 0 || p.Restarted) {
		r.print, err = fingerprint(file, r.offset)
	}
	return p, err
}

// another tells whether the file is not the one that was read before, only longer.
func (r *Reader) another(file *os.File, info os.FileInfo) bool {
	if r.info == nil {
		return false
	}
	if !os.SameFile(r.info, info) || info.Size() < r.offset {
		return true
	}
	print, err := fingerprint(file, r.offset)
	return err == nil && print != r.print
}

// fingerprint tells the bytes before an offset from others.
func fingerprint(file *os.File, offset int64) (uint64, error) {
	var last [lastBytes]byte
	n := min(offset, lastBytes)
	if _, err := file.ReadAt(last[:n], offset-n); err != nil {
		return 0, err
	}
	return maphash.Bytes(seed, last[:n]), nil
}

func (r *Reader) lines(ctx context.Context, file io.ReaderAt, budget int64, p *Progress, fn func([]byte, int64)) error {
	if cap(r.buf.b) < chunk || cap(r.buf.b) > 4*chunk {
		r.buf.b = make([]byte, chunk) // one that a long line has grown is given back
	}
	held := 0 // bytes of an unfinished line at the beginning of the buffer
	for read := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if held == len(r.buf.b) && !r.grow(p) {
			held = 0
		}
		n, err := file.ReadAt(r.buf.b[held:], r.offset+int64(held))
		read += int64(n)
		held = r.split(r.buf.b[:held+n], p, fn)
		switch {
		case err == io.EOF:
			r.last(r.buf.b[:held], fn)
			return nil
		case err != nil:
			return err
		case budget > 0 && read >= budget && held < chunk:
			p.More = true
			return nil
		}
	}
}

// grow makes the buffer larger; it is false where the line is too long to be read, so
// that what is there of it is passed by.
func (r *Reader) grow(p *Progress) bool {
	if len(r.buf.b) < MaxLine {
		larger := make([]byte, min(2*len(r.buf.b), MaxLine))
		copy(larger, r.buf.b)
		r.buf.b = larger
		return true
	}
	r.offset += int64(len(r.buf.b))
	if !r.over {
		r.over = true
		p.Oversized++
	}
	return false
}

// split gives out the whole lines and moves what is left to the beginning.
func (r *Reader) split(data []byte, p *Progress, fn func([]byte, int64)) (held int) {
	from := 0
	for {
		n := bytes.IndexByte(data[from:], '\n')
		if n < 0 {
			break
		}
		switch raw := bytes.TrimRight(data[from:from+n], "\r"); {
		case r.over:
			r.over = false
		case len(raw) > 0:
			fn(raw, r.offset)
		}
		r.offset += int64(n + 1)
		from += n + 1
	}
	held = copy(data, data[from:])
	if r.over && held > 0 {
		r.offset += int64(held)
		return 0
	}
	return held
}

// last gives out a last line that has no end but is whole.
func (r *Reader) last(raw []byte, fn func([]byte, int64)) {
	raw = bytes.TrimRight(raw, "\r")
	if len(raw) > 0 && raw[0] == '{' && valueEnd(raw, 0) == len(raw) {
		fn(raw, r.offset)
		r.offset += int64(len(raw))
	}
}

// SkipTo lets the next reading begin with the first line after an offset. It is for a
// reader that has read nothing.
func (r *Reader) SkipTo(offset int64) {
	r.offset, r.over = offset, true
}

// ReadAll folds a whole file.
func ReadAll(ctx context.Context, path string, prices *price.Prices) (Summary, error) {
	f := NewFold(prices)
	p, err := NewReader(path, nil).Read(ctx, 0, nil, func(raw []byte, _ int64) { f.Add(raw) })
	f.Oversize(p.Oversized)
	return f.Summary(), err
}
