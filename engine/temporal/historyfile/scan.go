package historyfile

import (
	"bytes"
	"slices"
	"strconv"

	"acescope/engine/internal/jsonscan"
)

// maxDepth bounds the nesting of lists and objects around events.
const maxDepth = 8

var eventKeys = []string{"eventId", "event_id", "eventTime", "event_time", "eventType", "event_type"}

type span struct{ from, to int }

// scanner finds the events of a file without decoding them. Unlike encoding/json, it does
// not look inside events, so one malformed or deeply nested event leaves the others readable.
type scanner struct {
	data      []byte
	pos       int
	histories [][]span
}

// scan finds all histories. After an error, histories holds the events before it.
func (s *scanner) scan() error {
	for {
		s.skipSpace()
		if s.pos >= len(s.data) {
			return nil
		}
		if c := s.data[s.pos]; c == ',' || c == 0x1e { // separators in concatenated files
			s.pos++
			continue
		}
		if err := s.scanValue(0); err != nil {
			return err
		}
	}
}

// scanValue scans a history, an event, or a list of either.
func (s *scanner) scanValue(depth int) error {
	if depth > maxDepth {
		return s.fail("nested too deeply for a history")
	}
	s.skipSpace()
	switch s.peek() {
	case '{':
		return s.scanObject(depth)
	case '[':
		return s.scanArray(depth, false)
	case 0:
		return s.truncated()
	}
	return s.fail("a history begins with { or [, not with " + strconv.QuoteRune(rune(s.peek())))
}

// scanArray scans a list of events or histories. The events form one history: the last history if it was
// started for the list, or else a new history.
func (s *scanner) scanArray(depth int, started bool) error {
	s.pos++
	for {
		more, err := s.more(']')
		if err != nil || !more {
			return err
		}
		if !s.isEvent() {
			started = false
			if err := s.scanValue(depth + 1); err != nil {
				return err
			}
			continue
		}
		if !started {
			s.histories = append(s.histories, nil)
			started = true
		}
		if err := s.scanEvent(); err != nil {
			return err
		}
	}
}

// scanObject scans a history, an object that contains a history, or a single event.
func (s *scanner) scanObject(depth int) error {
	if s.isEvent() {
		if len(s.histories) == 0 || s.isFirstEvent() {
			s.histories = append(s.histories, nil)
		}
		return s.scanEvent()
	}
	start, found := s.pos, false
	s.pos++
	for {
		more, err := s.more('}')
		if err != nil {
			return err
		}
		if !more && !found {
			s.pos = start
			return s.fail(`an object without "events" is not a history`)
		}
		if !more {
			return nil
		}
		key, err := s.key()
		if err != nil {
			return err
		}
		found = found || key == "events" || key == "history"
		if err := s.scanMember(key, depth); err != nil {
			return err
		}
	}
}

// scanMember scans the value of a key of an object. An empty list of events counts as a history.
func (s *scanner) scanMember(key string, depth int) error {
	s.skipSpace()
	switch {
	case key == "history":
		return s.scanValue(depth + 1)
	case key != "events":
		return s.skipValue()
	case s.peek() != '[':
		return s.fail(`"events" must be a list`)
	}
	s.histories = append(s.histories, []span{})
	return s.scanArray(depth+1, true)
}

// more advances to the next element of a list or object. It returns false after the end.
func (s *scanner) more(end byte) (bool, error) {
	for {
		s.skipSpace()
		switch s.peek() {
		case end:
			s.pos++
			return false, nil
		case ',':
			s.pos++
		case 0:
			return false, s.truncated()
		default:
			return true, nil
		}
	}
}

// key reads an object's next key and moves past its colon.
func (s *scanner) key() (string, error) {
	if s.peek() != '"' {
		return "", s.fail("expected a quoted key")
	}
	from := s.pos
	if err := s.skipTo(jsonscan.StringEnd(s.data, from)); err != nil {
		return "", err
	}
	key := string(s.data[from+1 : s.pos-1])
	s.skipSpace()
	if s.peek() != ':' {
		return "", s.fail("expected a colon")
	}
	s.pos++
	return key, nil
}

// isEvent reports whether an object at pos begins with a key of an event.
func (s *scanner) isEvent() bool {
	if s.peek() != '{' {
		return false
	}
	ahead := scanner{data: s.data, pos: s.pos + 1}
	ahead.skipSpace()
	key, err := ahead.key()
	return err == nil && slices.Contains(eventKeys, key)
}

func (s *scanner) isFirstEvent() bool {
	ahead := scanner{data: s.data, pos: s.pos}
	if ahead.skipValue() != nil {
		return false
	}
	e, _ := decodePartly(s.data[s.pos:ahead.pos])
	return e.EventId == 1
}

func (s *scanner) scanEvent() error {
	from := s.pos
	if err := s.skipValue(); err != nil {
		return err
	}
	last := len(s.histories) - 1
	s.histories[last] = append(s.histories[last], span{from, s.pos})
	return nil
}

// skipValue moves past the value at pos. It does not check the value's contents.
func (s *scanner) skipValue() error {
	s.skipSpace()
	end := jsonscan.ValueEnd(s.data, s.pos)
	if end < 0 && bytes.IndexByte([]byte(",]}:"), s.peek()) >= 0 {
		return s.fail("expected a value")
	}
	return s.skipTo(end)
}

// skipTo moves to where a value ends, which is -1 if the file ends first.
func (s *scanner) skipTo(end int) error {
	if end < 0 {
		s.pos = len(s.data)
		return s.truncated()
	}
	s.pos = end
	return nil
}

func (s *scanner) skipSpace() { s.pos = jsonscan.Space(s.data, s.pos) }

// peek returns the byte at pos, or 0 at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *scanner) truncated() error { return s.fail("the file ends in the middle") }

func (s *scanner) fail(reason string) error {
	e := &Error{Offset: int64(s.pos), Reason: reason}
	if n := len(s.histories); n > 0 {
		e.History = n
		e.Event = len(s.histories[n-1]) + 1
	}
	return e
}
