package agentcli

import (
	"errors"
	"io"
)

// Reader reads the events of an agent's output.
type Reader struct {
	// Clean, where it is set, is given every line before it is parsed; what it returns is the
	// line. cut tells that the line's end, or more of it, is not there.
	Clean func(line []byte, cut bool) []byte

	lines  *LineReader
	parser *Parser
	events []Event
	next   int
	number int64
	raw    []byte
	ended  bool
}

// NewReader reads events of the CLI from r.
func NewReader(r io.Reader, cli CLI) *Reader {
	return NewLinesReader(NewLineReader(r), NewParser(cli))
}

// NewLinesReader reads events from lines with a parser that may have read others before.
func NewLinesReader(lines *LineReader, parser *Parser) *Reader {
	return &Reader{lines: lines, parser: parser}
}

// Next is the next event, or io.EOF. Where the lines are followed ([LineReader.Follow]),
// io.EOF says that there is no more for now, and the end is made by [Reader.End].
func (r *Reader) Next() (Event, error) {
	e, err := r.read()
	if err != nil {
		return Event{}, err
	}
	return *e, nil
}

// read is the next event, which is good until it is called again.
func (r *Reader) read() (*Event, error) {
	for r.next == len(r.events) {
		if r.ended {
			return nil, io.EOF
		}
		line, err := r.lines.Next()
		switch {
		case err == nil:
			r.take(&line)
		case errors.Is(err, io.EOF) && !r.lines.Follow:
			r.End()
		default:
			return nil, err
		}
	}
	e := &r.events[r.next]
	e.Line, e.Part, e.Raw = r.number, r.next, r.raw
	r.next++
	return e, nil
}

// End says that nothing more comes. What the parser makes of that is read by Next, which
// says io.EOF after it.
func (r *Reader) End() {
	if !r.ended {
		r.ended = true
		r.events, r.next, r.number, r.raw = r.parser.End(), 0, 0, nil
	}
}

// take parses a line.
func (r *Reader) take(line *Line) {
	long := line.TooLong()
	if r.Clean != nil {
		line.Bytes = r.Clean(line.Bytes, long || line.Torn)
	}
	r.next, r.number, r.raw = 0, line.Number, line.Bytes
	if long {
		r.raw = nil
		r.events = append(r.events[:0], garbage(GarbageOversize, line.Bytes, line.Size))
		return
	}
	r.events = r.parser.Line(line.Bytes)
	if line.Torn && len(r.events) == 1 && r.events[0].Kind == KindGarbage {
		r.events[0].Name = GarbageTorn
	}
}

// All hands every event to the function, to the end or to the first error of either.
func (r *Reader) All(each func(Event) error) error {
	for {
		e, err := r.read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = each(*e)
		}
		if err != nil {
			return err
		}
	}
}
