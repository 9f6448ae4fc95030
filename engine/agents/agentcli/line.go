package agentcli

import (
	"bytes"
	"errors"
	"io"
)

// MaxLine is the longest line that is read whole, in bytes.
const MaxLine = 8 << 20

// MaxText bounds the text that is kept of a line that is not an event, in bytes.
const MaxText = 4 << 10

// firstBuffer is the initial size of a reader's buffer, which grows with the longest line.
const firstBuffer = 64 << 10

// Line is a line of a stream, without its line ending, or an element of an array.
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
//
// If the stream begins with an array of objects, or with an object that spans several lines,
// the elements of the array, or the objects, are its lines.
type LineReader struct {
	// Follow keeps an unfinished last line for later: Next returns io.EOF and may be called
	// again when the stream has grown. Without Follow such a line is returned as torn.
	Follow bool

	r      io.Reader
	buf    []byte
	from   int   // the first byte not returned yet
	to     int   // the end of the bytes read
	seen   int   // bytes after from that were searched for an end
	offset int64 // of buf[from] in the stream
	number int64
	begun  bool
	values *valueSplitter // set if the stream holds values instead of lines
	err    error
}

// NewLineReader reads lines from r.
func NewLineReader(r io.Reader) *LineReader { return &LineReader{r: r} }

// NewLineReaderAt continues where another reader stopped: r begins at offset bytes and after
// the given number of lines of its stream.
func NewLineReaderAt(r io.Reader, offset, lines int64) *LineReader {
	return &LineReader{r: r, offset: offset, number: lines, begun: offset > 0}
}

// Next returns the next line that is not empty, or io.EOF. An error of the source comes after
// the lines that were read before it.
func (l *LineReader) Next() (line Line, err error) {
	for {
		if err = l.next(&line); err != nil {
			return Line{}, err
		}
		if len(bytes.TrimSpace(line.Bytes)) > 0 || line.TooLong() {
			l.number++
			line.Number = l.number
			return line, nil
		}
	}
}

// next reads the next line, which may be empty.
func (l *LineReader) next(line *Line) error {
	for {
		if !l.begun && !l.begin() {
			if !l.fill() {
				if l.Follow || l.from == l.to {
					return l.takeErr()
				}
				l.begun = true // the stream is too short to tell
			}
			continue
		}
		if length, taken := l.end(); length >= 0 {
			l.cut(line, length, taken)
			return nil
		}
		if l.to-l.from > MaxLine {
			l.skip(line)
			return nil
		}
		if l.fill() {
			continue
		}
		if l.Follow && errors.Is(l.err, io.EOF) || l.from == l.to {
			return l.takeErr()
		}
		l.cut(line, l.to-l.from, l.to-l.from)
		line.Torn = true
		return nil
	}
}

// takeErr returns the error of the source. A follower may try again after io.EOF.
func (l *LineReader) takeErr() error {
	err := l.err
	if l.Follow && errors.Is(err, io.EOF) {
		l.err = nil
	}
	return err
}

// begin detects the format of the stream. It returns false if that needs more bytes.
func (l *LineReader) begin() bool {
	head := l.buf[l.from:l.to]
	mark := []byte("\xef\xbb\xbf")
	if len(head) < len(mark) && bytes.HasPrefix(mark, head) {
		return false
	}
	if bytes.HasPrefix(head, mark) {
		l.drop(len(mark))
		head = head[len(mark):]
	}
	values, sure := beginsValues(head)
	if !sure && len(head) < firstBuffer {
		return false
	}
	if values {
		l.values = &valueSplitter{}
	}
	l.begun = true
	return true
}

// beginsValues reports whether a stream is an array of objects, or an object that spans several
// lines, and whether head suffices to be sure.
func beginsValues(head []byte) (values, sure bool) {
	rest := bytes.TrimLeft(head, " \t\r\n")
	if len(rest) == 0 {
		return false, false
	}
	after := bytes.TrimLeft(rest[1:], " \t\r")
	switch {
	case rest[0] != '[' && rest[0] != '{':
		return false, true
	case len(after) == 0:
		return false, false
	case rest[0] == '{':
		return after[0] == '\n', true
	case after[0] == '\n':
		return true, true
	}
	return after[0] == '{' || after[0] == ']', true
}

// end returns the length of the next line and of the bytes to drop with it, or -1.
func (l *LineReader) end() (length, taken int) {
	rest := l.buf[l.from+l.seen : l.to]
	at, with := 0, 0
	if l.values != nil {
		at, with = l.values.find(rest), 1 // the brace belongs to the object
	} else {
		at = bytes.IndexByte(rest, '\n')
	}
	if at < 0 {
		l.seen = l.to - l.from
		return -1, 0
	}
	return l.seen + at + with, l.seen + at + 1
}

// cut takes a line off the buffer, without the separators between values.
func (l *LineReader) cut(line *Line, length, taken int) {
	text, offset := l.buf[l.from:l.from+length], l.offset
	if l.values != nil {
		text = bytes.TrimLeft(text, " \t\r\n,[]")
		offset += int64(length - len(text))
	}
	text = bytes.TrimSuffix(text, []byte{'\r'})
	*line = Line{Bytes: text, Offset: offset, Size: int64(len(text))}
	if line.Size > MaxLine {
		line.Bytes = text[:MaxText]
	}
	l.drop(taken)
}

// drop removes n bytes from the buffer.
func (l *LineReader) drop(n int) {
	l.from += n
	l.offset += int64(n)
	l.seen = 0
	if l.from == l.to {
		l.from, l.to = 0, 0
	}
}

// fill reads more bytes. It returns false at the end of what is available.
func (l *LineReader) fill() bool {
	if l.err != nil {
		return false
	}
	l.room()
	for range 100 {
		n, err := l.r.Read(l.buf[l.to:])
		l.to += n
		l.err = err
		if n > 0 {
			return true
		}
		if err != nil {
			return false
		}
	}
	l.err = io.ErrNoProgress
	return false
}

// room makes space after l.to.
func (l *LineReader) room() {
	if l.to < len(l.buf) {
		return
	}
	if l.from > 0 && l.from >= len(l.buf)/2 {
		copy(l.buf, l.buf[l.from:l.to])
	} else {
		size := max(firstBuffer, 2*len(l.buf))
		if size >= MaxLine {
			size = MaxLine + 2*firstBuffer
		}
		grown := make([]byte, size)
		copy(grown, l.buf[l.from:l.to])
		l.buf = grown
	}
	l.to -= l.from
	l.from = 0
}

// skip reads past a line that is too long and keeps its beginning.
func (l *LineReader) skip(line *Line) {
	*line = Line{Bytes: bytes.Clone(l.buf[l.from : l.from+MaxText]), Offset: l.offset}
	for {
		if length, taken := l.end(); length >= 0 {
			line.Size += int64(length)
			l.drop(taken)
			return
		}
		line.Size += int64(l.to - l.from)
		l.drop(l.to - l.from)
		if !l.fill() {
			line.Torn = true
			return
		}
	}
}

// valueSplitter finds the ends of objects in an array or in a sequence.
type valueSplitter struct {
	depth   int // of nested braces and brackets
	text    bool
	escaped bool
}

// find returns the index of the byte that ends an object, or -1. It continues where the
// previous text ended and ignores bytes between objects.
func (v *valueSplitter) find(text []byte) int {
	for i, c := range text {
		switch {
		case v.escaped:
			v.escaped = false
		case v.text:
			v.text = c != '"'
			v.escaped = c == '\\'
		case v.depth == 0:
			if c == '{' {
				v.depth = 1
			}
		case c == '"':
			v.text = true
		case c == '{' || c == '[':
			v.depth++
		case c == '}' || c == ']':
			if v.depth--; v.depth == 0 {
				return i
			}
		}
	}
	return -1
}
