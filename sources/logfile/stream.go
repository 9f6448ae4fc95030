package logfile

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// guardSize is how many of the bytes before the place of reading tell that the file is
// still the one that was read.
const guardSize = 64

// stream is an open file and how far it was read.
type stream struct {
	h     *os.File
	info  os.FileInfo
	split splitter
	at    int64  // the next byte to read
	guard []byte // the last ones read
	shown int64  // offset at which the partial line that was given last ended
}

func newStream(h *os.File, info os.FileInfo, maxLine int) *stream {
	return &stream{h: h, info: info, split: splitter{max: maxLine, number: 1}}
}

// seek sets the place of the first reading: from the start, or n lines before the end.
func (s *stream) seek(fromStart bool, n int) error {
	if fromStart {
		return nil
	}
	at, err := lastLines(s.h, s.info.Size(), n)
	if err != nil {
		return err
	}
	s.at, s.split.offset, s.split.number = at, at, 0
	if at <= countBelow {
		lines, err := countLines(s.h, at)
		if err != nil {
			return err
		}
		s.split.number = lines + 1
	}
	return nil
}

// restart reads from the start: the file was emptied.
func (s *stream) restart() {
	s.at, s.guard, s.shown = 0, nil, 0
	s.split = splitter{max: s.split.max, number: 1}
}

// emptied tells whether what was read is no longer what the file holds up to there.
func (s *stream) emptied(size int64) bool {
	if size < s.at {
		return true
	}
	if len(s.guard) == 0 {
		return false
	}
	var now [guardSize]byte
	p := now[:len(s.guard)]
	n, err := s.h.ReadAt(p, s.at-int64(len(p)))
	return n < len(p) && errors.Is(err, io.EOF) || n == len(p) && !bytes.Equal(p, s.guard)
}

// read takes the next bytes into buf and appends the lines that ended to lines. At the end
// of the file more is false.
func (s *stream) read(buf []byte, lines []Line) (_ []Line, more bool, err error) {
	n, err := s.h.ReadAt(buf, s.at)
	if n > 0 {
		s.at += int64(n)
		s.remember(buf[:n])
		lines = s.split.feed(buf[:n], lines)
	}
	if errors.Is(err, io.EOF) {
		return lines, false, nil
	}
	return lines, err == nil, err
}

func (s *stream) remember(data []byte) {
	if len(data) < guardSize {
		s.guard = append(s.guard, data...)
		data = s.guard
	}
	s.guard = append(s.guard[:0], data[max(len(data)-guardSize, 0):]...)
}

// partial is the line under way if it is another than when it was last asked for.
func (s *stream) partial() (Line, bool) {
	l, ok := s.split.open()
	end := s.split.offset + s.split.size
	if !ok || end == s.shown {
		return l, false
	}
	s.shown = end
	l.Partial = true
	return l, true
}
