package logfile

import "bytes"

// splitter cuts a stream into lines.
type splitter struct {
	max    int
	offset int64 // of the line under way
	number int64 // of the line under way, 0 where nobody counted
	size   int64 // bytes of the line under way so far
	rest   []byte
	spare  []byte // the rest that was given away by the feed before
}

// feed takes the next bytes and appends the lines that ended to lines. Their texts are
// parts of data and of the splitter and hold until the next feed.
func (s *splitter) feed(data []byte, lines []Line) []Line {
	if s.size > 0 {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			s.keep(data)
			return lines
		}
		s.keep(data[:end])
		lines = append(lines, s.line(s.rest, s.size))
		s.spare, s.rest = s.rest, s.spare[:0]
		s.next(s.size + 1)
		data = data[end+1:]
	}
	for {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			s.keep(data)
			return lines
		}
		lines = append(lines, s.line(data[:min(end, s.max)], int64(end)))
		s.next(int64(end) + 1)
		data = data[end+1:]
	}
}

// keep adds to the line under way.
func (s *splitter) keep(data []byte) {
	s.size += int64(len(data))
	if room := s.max - len(s.rest); room > 0 {
		s.rest = append(s.rest, data[:min(room, len(data))]...)
	}
}

// line is the line under way with a text of size bytes before it was cut.
func (s *splitter) line(text []byte, size int64) Line {
	cut := size - int64(len(text))
	if n := len(text); cut == 0 && n > 0 && text[n-1] == '\r' {
		text = text[:n-1]
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
		s.spare = nil // let go of a large one
	}
}

// open is the line under way; ok is false where there is none.
func (s *splitter) open() (l Line, ok bool) {
	return s.line(s.rest, s.size), s.size > 0
}
