package transcript

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"os"

	"acescope/engine/agents/agentcli"
	"acescope/engine/internal/jsonscan"
)

// Bounds of reading.
const (
	// MaxLine is the longest line that is read, in bytes.
	MaxLine = 16 << 20
	// lastBytes before the offset are fingerprinted, to detect that the file was replaced.
	lastBytes = 256
)

// Reader reads a growing transcript. It opens the file only while it reads.
type Reader struct {
	// Until, if set, ends a read before the first line for which it returns true.
	Until func(raw []byte) bool

	path   string
	offset int64 // of the first byte not returned as a line
	over   bool  // inside a line that is too long
	info   os.FileInfo
	print  uint64 // of the bytes before offset
}

// NewReader starts at the beginning of a file, which need not exist yet.
func NewReader(path string) *Reader { return &Reader{path: path} }

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
	file, info, err := openRegular(r.path)
	if err != nil {
		return p, err
	}
	defer file.Close()
	if r.replaced(file, info) {
		*r = Reader{path: r.path, Until: r.Until}
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

// openRegular opens a regular file. Opening a named pipe would block.
func openRegular(path string) (*os.File, os.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	if info, err = file.Stat(); err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
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
	start := r.offset
	lines := agentcli.NewLineReaderAt(io.NewSectionReader(file, start, math.MaxInt64-start), start)
	lines.Max = MaxLine
	for budget == 0 || r.offset-start < budget {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		isRest := r.over && line.Offset == start
		if r.Until != nil && !line.TooLong() && !isRest && r.Until(line.Bytes) {
			return nil
		}
		switch {
		case line.TooLong() && !isRest:
			p.Oversized++
		case line.TooLong(), isRest:
		case !line.Torn:
			fn(line.Bytes, line.Offset)
		case line.Bytes[0] == '{' && jsonscan.ValueEnd(line.Bytes, 0) == len(line.Bytes):
			fn(line.Bytes, line.Offset)
		default:
			return nil // the line may continue
		}
		r.over = line.Torn && (line.TooLong() || isRest)
		r.offset = lines.Offset()
	}
	p.More = r.offset < p.Size
	return nil
}

// SkipTo makes a new reader start with the first line that begins after offset.
func (r *Reader) SkipTo(offset int64) { r.offset, r.over = offset, true }

// wholeReader is the part of a [LineReader] that reads a session from its beginning each time.
type wholeReader struct {
	path string
	read bool
}

func (r *wholeReader) SkipTo(int64) {}

// begin reports whether this is not the first read, and calls restart then.
func (r *wholeReader) begin(restart func()) (restarted bool) {
	restarted = r.read
	if restarted && restart != nil {
		restart()
	}
	r.read = true
	return restarted
}

func (f *Fold) readAll(ctx context.Context, r *Reader) (Summary, error) {
	p, err := r.Read(ctx, 0, nil, func(raw []byte, _ int64) { f.Add(raw) })
	f.Oversize(p.Oversized)
	return f.Summary(), err
}
