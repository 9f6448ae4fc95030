package agentcli

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
)

// MaxLine is the longest line that is read whole, in bytes.
const MaxLine = 8 << 20

// MaxText bounds the text that is kept of a line that is not an event, in bytes.
const MaxText = 4 << 10

// bufferSize is the size of a reader's buffer. Only longer lines are copied.
const bufferSize = 64 << 10

// Line is a line of a stream, without its line ending.
type Line struct {
	// Bytes is valid until the next line is read. Of a line that was too long it holds the
	// first MaxText bytes.
	Bytes  []byte
	Number int64 // from 1
	Offset int64 // of its first byte in the stream
	Size   int64 // in bytes; more than len(Bytes) if the line was too long
	Torn   bool  // the stream ended before the line did
}

// TooLong reports whether Bytes holds only the beginning of the line.
func (l Line) TooLong() bool { return l.Size > int64(len(l.Bytes)) }

// LineReader reads lines of any length. It drops a byte order mark at the beginning, carriage
// returns at the ends of lines, and empty lines.
type LineReader struct {
	// Follow keeps an unfinished last line for later: Next returns io.EOF and may be called
	// again when the stream has grown. Without Follow such a line is returned as torn.
	Follow bool
	// Max is the longest line that is read whole, in bytes; 0 for MaxLine.
	Max int

	r      *bufio.Reader
	held   []byte // the beginning of the current line, if it was not read at once
	size   int64  // bytes read of the current line, with its line ending
	offset int64  // of the current line in the stream
	number int64
}

// NewLineReader reads lines from r.
func NewLineReader(r io.Reader) *LineReader { return NewLineReaderAt(r, 0) }

// NewLineReaderAt continues where another reader stopped: r begins at offset bytes of its stream.
func NewLineReaderAt(r io.Reader, offset int64) *LineReader {
	return &LineReader{r: bufio.NewReaderSize(r, bufferSize), offset: offset}
}

// Next returns the next line that is not empty, or io.EOF. An error of the source comes after
// the lines that were read before it.
func (l *LineReader) Next() (Line, error) {
	for {
		line, err := l.next()
		if err != nil {
			return Line{}, err
		}
		if len(bytes.TrimSpace(line.Bytes)) > 0 || line.TooLong() {
			l.number++
			line.Number = l.number
			return line, nil
		}
	}
}

// next returns the next line, which may be empty.
func (l *LineReader) next() (Line, error) {
	for {
		part, err := l.r.ReadSlice('\n')
		l.size += int64(len(part))
		if err == nil && len(l.held) == 0 {
			return l.take(part, false), nil
		}
		l.hold(part)
		switch {
		case err == nil:
			return l.take(l.held, false), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case l.size == 0 || l.Follow && errors.Is(err, io.EOF):
			return Line{}, err
		default:
			return l.take(l.held, true), nil // the source repeats its error
		}
	}
}

// Offset returns the offset in the stream of the first byte after the lines that were returned.
func (l *LineReader) Offset() int64 { return l.offset }

func (l *LineReader) max() int { return cmp.Or(l.Max, MaxLine) }

// hold keeps a part of the current line, up to the longest line with its line ending.
func (l *LineReader) hold(part []byte) {
	most := l.max() + len("\r\n")
	part = part[:min(len(part), most-len(l.held))]
	if len(l.held)+len(part) > cap(l.held) {
		l.held = slices.Grow(l.held, min(max(len(part), len(l.held)), most-len(l.held)))
	}
	l.held = append(l.held, part...)
}

// take ends the current line, whose beginning is data.
func (l *LineReader) take(data []byte, torn bool) Line {
	line := Line{Bytes: data, Offset: l.offset, Size: l.size, Torn: torn}
	if l.size == int64(len(data)) {
		if mark := []byte("\ufeff"); l.offset == 0 && bytes.HasPrefix(data, mark) {
			line.Bytes = data[len(mark):]
			line.Offset += int64(len(mark))
		}
		line.Bytes = bytes.TrimSuffix(bytes.TrimSuffix(line.Bytes, []byte{'\n'}), []byte{'\r'})
		line.Size = int64(len(line.Bytes))
	} else if !torn {
		line.Size--
	}
	if line.Size > int64(l.max()) {
		line.Bytes = line.Bytes[:MaxText]
	}
	l.offset += l.size
	l.size = 0
	l.held = l.held[:0]
	return line
}
