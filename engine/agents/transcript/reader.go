package transcript

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"os"
)

// Bounds of reading.
const (
	// MaxLine is the longest line that is read, in bytes.
	MaxLine = 16 << 20
	// chunk is the size of a read, in bytes.
	chunk = 256 << 10
	// lastBytes before the offset are fingerprinted, to detect that the file was replaced.
	lastBytes = 256
)

// Buffer is memory that several readers share, one at a time.
type Buffer struct{ b []byte }

// Reader reads a growing transcript. It opens the file only while it reads.
type Reader struct {
	path   string
	buf    *Buffer
	offset int64 // of the first byte not returned as a line
	over   bool  // inside a line that is too long
	info   os.FileInfo
	print  uint64 // of the bytes before offset
}

// NewReader starts at the beginning of a file, which need not exist yet. With a nil buf the
// reader has its own buffer.
func NewReader(path string, buf *Buffer) *Reader {
	if buf == nil {
		buf = &Buffer{}
	}
	return &Reader{path: path, buf: buf}
}

// Progress is the state after a read.
type Progress struct {
	Offset    int64 // of the first byte that was not read
	Size      int64 // of the file
	More      bool  // the budget ended before the file
	Restarted bool  // the file was replaced or truncated, so it was read from the start
	Oversized int   // skipped lines
}

// Read calls fn with each new complete line, without its line ending, and its offset, until
// the end of the file or until about budget bytes were read (0: no limit). A last line without
// a line ending counts once it is a complete object. restart, if set, is called before the
// lines of a file that was replaced or truncated.
func (r *Reader) Read(
	ctx context.Context, budget int64, restart func(), fn func(raw []byte, at int64),
) (p Progress, err error) {
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
		return p, fmt.Errorf("%s is not a regular file", r.path)
	}
	if r.replaced(file, info) {
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

// replaced reports whether the file is not just a longer version of the one read before.
func (r *Reader) replaced(file *os.File, info os.FileInfo) bool {
	if r.info == nil {
		return false
	}
	if !os.SameFile(r.info, info) || info.Size() < r.offset {
		return true
	}
	print, err := fingerprint(file, r.offset)
	return err == nil && print != r.print
}

// fingerprint hashes the bytes before an offset.
func fingerprint(file *os.File, offset int64) (uint64, error) {
	var last [lastBytes]byte
	n := min(offset, lastBytes)
	if _, err := file.ReadAt(last[:n], offset-n); err != nil {
		return 0, err
	}
	return maphash.Bytes(seed, last[:n]), nil
}

func (r *Reader) lines(
	ctx context.Context, file io.ReaderAt, budget int64, p *Progress, fn func([]byte, int64),
) error {
	if cap(r.buf.b) < chunk || cap(r.buf.b) > 4*chunk {
		r.buf.b = make([]byte, chunk) // release a buffer that a long line has grown
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
			r.lastLine(r.buf.b[:held], fn)
			return nil
		case err != nil:
			return err
		case budget > 0 && read >= budget && held < chunk:
			p.More = true
			return nil
		}
	}
}

// grow enlarges the buffer. It returns false, and skips the buffered bytes, if the line is too
// long.
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

// split passes on the complete lines and moves the rest to the beginning.
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

// lastLine passes on a last line without a line ending if it is a complete object.
func (r *Reader) lastLine(raw []byte, fn func([]byte, int64)) {
	raw = bytes.TrimRight(raw, "\r")
	if len(raw) > 0 && raw[0] == '{' && valueEnd(raw, 0) == len(raw) {
		fn(raw, r.offset)
		r.offset += int64(len(raw))
	}
}

// SkipTo makes a new reader start with the first line that begins after offset.
func (r *Reader) SkipTo(offset int64) { r.offset, r.over = offset, true }

func (f *Fold) readAll(ctx context.Context, r *Reader) (Summary, error) {
	p, err := r.Read(ctx, 0, nil, func(raw []byte, _ int64) { f.Add(raw) })
	f.Oversize(p.Oversized)
	return f.Summary(), err
}
