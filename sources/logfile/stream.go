package logfile

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// guardSize is how many of the last bytes read are compared to detect a rewritten file.
const guardSize = 64

// stream is an open file and how far it was read.
type stream struct {
	h     *os.File
	info  os.FileInfo
	lines splitter
	at    int64  // the next byte to read
	guard []byte // the last bytes read
	shown int64  // offset at which the last reported partial line ended
}

// seek sets the first position: the start, or n lines before the end.
func (s *stream) seek(fromStart bool, n int) error {
	if fromStart {
		return nil
	}
	at, err := lastLines(s.h, s.info.Size(), n)
	if err != nil {
		return err
	}
	s.at, s.lines.offset, s.lines.number = at, at, 0
	if at <= maxCounted {
		count, err := countLines(s.h, at)
		if err != nil {
			return err
		}
		s.lines.number = count + 1
	}
	return nil
}

// restart reads a truncated file from its start.
func (s *stream) restart() {
	s.at, s.guard, s.shown = 0, nil, 0
	s.lines = splitter{max: s.lines.max, number: 1}
}

// truncated reports whether the file no longer contains what was read.
func (s *stream) truncated(size int64) bool {
	if size < s.at {
		return true
	}
	if len(s.guard) == 0 {
		return false
	}
	now := make([]byte, len(s.guard))
	n, err := s.h.ReadAt(now, s.at-int64(len(now)))
	return n < len(now) && errors.Is(err, io.EOF) || n == len(now) && !bytes.Equal(now, s.guard)
}

// read reads the next bytes into buf and appends the finished lines to lines. At the end of
// the file more is false.
func (s *stream) read(buf []byte, lines []Line) (_ []Line, more bool, err error) {
	n, err := s.h.ReadAt(buf, s.at)
	if n > 0 {
		s.at += int64(n)
		s.setGuard(buf[:n])
		lines = s.lines.feed(buf[:n], lines)
	}
	if errors.Is(err, io.EOF) {
		return lines, false, nil
	}
	return lines, err == nil, err
}

func (s *stream) setGuard(data []byte) {
	if len(data) < guardSize {
		s.guard = append(s.guard, data...)
		data = s.guard
	}
	s.guard = append(s.guard[:0], data[max(len(data)-guardSize, 0):]...)
}

// partial returns the unfinished line if it has changed since the last call.
func (s *stream) partial() (Line, bool) {
	l, ok := s.lines.unfinished()
	end := s.lines.offset + s.lines.size
	if !ok || end == s.shown {
		return l, false
	}
	s.shown = end
	l.Partial = true
	return l, true
}

// splitter splits a stream into lines.
type splitter struct {
	max    int
	offset int64 // of the unfinished line
	number int64 // of the unfinished line, 0 if unknown
	size   int64 // bytes of the unfinished line so far
	rest   []byte
	spare  []byte // the rest that the previous feed gave away
}

// feed takes the next bytes and appends the finished lines to lines. Their texts share memory
// with data and the splitter and are valid until the next feed.
func (s *splitter) feed(data []byte, lines []Line) []Line {
	for {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			s.keep(data)
			return lines
		}
		if s.size > 0 {
			s.keep(data[:end])
			lines = append(lines, s.line(s.rest, s.size))
			s.spare, s.rest = s.rest, s.spare[:0]
			s.next(s.size + 1)
		} else {
			lines = append(lines, s.line(data[:min(end, s.max)], int64(end)))
			s.next(int64(end) + 1)
		}
		data = data[end+1:]
	}
}

// keep adds to the unfinished line.
func (s *splitter) keep(data []byte) {
	s.size += int64(len(data))
	if room := s.max - len(s.rest); room > 0 {
		s.rest = append(s.rest, data[:min(room, len(data))]...)
	}
}

// line returns the current line; size is the length of its text before it was cut.
func (s *splitter) line(text []byte, size int64) Line {
	cut := size - int64(len(text))
	if cut == 0 {
		text = bytes.TrimSuffix(text, []byte{'\r'})
	}
	return Line{Offset: s.offset, Number: s.number, Text: text, Cut: cut}
}

func (s *splitter) next(bytes int64) {
	s.offset += bytes
	s.size = 0
	if s.number > 0 {
		s.number++
	}
	if cap(s.spare) > 1<<16 {
		s.spare = nil // release a large buffer
	}
}

// unfinished returns the unfinished line, if any.
func (s *splitter) unfinished() (l Line, ok bool) {
	return s.line(s.rest, s.size), s.size > 0
}

// tailBlock is how many bytes are read at once when reading backward.
const tailBlock = 64 << 10

// lastLines returns the offset at which the last n lines of the first size bytes begin. An
// unfinished last line counts.
func lastLines(r io.ReaderAt, size int64, n int) (int64, error) {
	if n <= 0 {
		return size, nil
	}
	buf := make([]byte, tailBlock)
	end, left := size, n
	for end > 0 {
		start := max(end-tailBlock, 0)
		block := buf[:end-start]
		if err := readFull(r, block, start); err != nil {
			return 0, err
		}
		if end == size {
			block = bytes.TrimSuffix(block, []byte{'\n'})
		}
		for {
			at := bytes.LastIndexByte(block, '\n')
			if at < 0 {
				break
			}
			if left--; left == 0 {
				return start + int64(at) + 1, nil
			}
			block = block[:at]
		}
		end = start
	}
	return 0, nil
}

// countLines returns how many lines end in the first size bytes.
func countLines(r io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, 4*tailBlock)
	var n int64
	for at := int64(0); at < size; {
		block := buf[:min(int64(len(buf)), size-at)]
		if err := readFull(r, block, at); err != nil {
			return 0, err
		}
		n += int64(bytes.Count(block, []byte{'\n'}))
		at += int64(len(block))
	}
	return n, nil
}

func readFull(r io.ReaderAt, p []byte, at int64) error {
	n, err := r.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF // the file was truncated meanwhile
	}
	return err
}
