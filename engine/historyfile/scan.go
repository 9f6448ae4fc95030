package historyfile

import (
	"bytes"
	"strconv"
)

// span is where a JSON value lies in the file.
type span struct{ from, to int }

// scanner finds the events of a file without decoding them.
type scanner struct {
	data []byte
	pos  int
	list [][]span // events by history
}

// depth bounds how deep lists and objects may lie around events.
const maxDepth = 8

// scan finds all histories. What was found before an error stays in list.
func (s *scanner) scan() error {
	for {
		s.space()
		if s.pos >= len(s.data) {
			return nil
		}
		if c := s.data[s.pos]; c == ',' || c == 0x1e { // between values, in files that were joined by hand
			s.pos++
			continue
		}
		if err := s.value(0); err != nil {
			return err
		}
	}
}

// value takes a value that is a history, an event, or a list of either.
func (s *scanner) value(depth int) error {
	if depth > maxDepth {
		return s.wrong("lists lie too deep here for a history")
	}
	s.space()
	switch s.peek() {
	case '{':
		return s.object(depth)
	case '[':
		return s.array(depth)
	case 0:
		return s.ends()
	}
	return s.wrong("a history begins with { or [, not with " + strconv.QuoteRune(rune(s.peek())))
}

// array is a list of events, which are one history, or a list of histories.
func (s *scanner) array(depth int) error {
	s.pos++
	fresh := true
	for {
		s.space()
		switch s.peek() {
		case ']':
			s.pos++
			return nil
		case ',':
			s.pos++
			continue
		case 0:
			return s.ends()
		}
		if s.peek() == '{' && s.isEvent() {
			if fresh {
				s.list, fresh = append(s.list, nil), false
			}
			if err := s.event(); err != nil {
				return err
			}
			continue
		}
		if err := s.value(depth + 1); err != nil {
			return err
		}
		fresh = true
	}
}

// object is a history, something around one, or an event that stands alone.
func (s *scanner) object(depth int) error {
	if s.isEvent() {
		if len(s.list) == 0 || s.firstID() {
			s.list = append(s.list, nil)
		}
		return s.event()
	}
	begin, found := s.pos, false
	s.pos++
	for {
		s.space()
		switch s.peek() {
		case '}':
			s.pos++
			if !found {
				s.pos = begin
				return s.wrong(`an object without "events" is no history`)
			}
			return nil
		case ',':
			s.pos++
			continue
		case 0:
			return s.ends()
		}
		key, err := s.key()
		if err != nil {
			return err
		}
		switch key {
		case "events":
			found = true
			if s.space(); s.peek() != '[' {
				return s.wrong(`"events" must be a list`)
			}
			before := len(s.list)
			if err := s.array(depth + 1); err != nil {
				return err
			}
			if len(s.list) == before {
				s.list = append(s.list, []span{}) // a history without events is one too
			}
		case "history":
			found = true
			if err := s.value(depth + 1); err != nil {
				return err
			}
		default:
			if err := s.skip(); err != nil {
				return err
			}
		}
	}
}

// key is an object's next key, with the position behind its colon.
func (s *scanner) key() (string, error) {
	if s.peek() != '"' {
		return "", s.wrong("a key in quotes was expected")
	}
	from := s.pos
	if err := s.text(); err != nil {
		return "", err
	}
	key := string(s.data[from+1 : s.pos-1])
	if s.space(); s.peek() != ':' {
		return "", s.wrong("a colon was expected")
	}
	s.pos++
	return key, nil
}

// isEvent tells whether the object here is an event: its first key is an event's.
func (s *scanner) isEvent() bool {
	ahead := scanner{data: s.data, pos: s.pos + 1}
	ahead.space()
	key, err := ahead.key()
	return err == nil && (key == "eventId" || key == "event_id" || key == "eventTime" || key == "event_time" ||
		key == "eventType" || key == "event_type")
}

// firstID tells whether the event here is the first of a history.
func (s *scanner) firstID() bool {
	ahead := scanner{data: s.data, pos: s.pos}
	if ahead.skip() != nil {
		return false
	}
	return rough(s.data[s.pos:ahead.pos]).EventId == 1
}

func (s *scanner) event() error {
	from := s.pos
	if err := s.skip(); err != nil {
		return err
	}
	last := len(s.list) - 1
	s.list[last] = append(s.list[last], span{from, s.pos})
	return nil
}

// skip goes behind the value here. It looks for its end only: what is wrong inside is
// found when it is decoded.
func (s *scanner) skip() error {
	s.space()
	switch s.peek() {
	case '"':
		return s.text()
	case '{', '[':
		return s.nested()
	case 0:
		return s.ends()
	}
	from := s.pos
	for s.pos < len(s.data) && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(s.data[s.pos])) {
		s.pos++
	}
	if s.pos == from {
		return s.wrong("a value was expected")
	}
	return nil
}

// nested goes behind an object or list.
func (s *scanner) nested() error {
	open := 0
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case '{', '[':
			open++
		case '}', ']':
			if open--; open == 0 {
				s.pos++
				return nil
			}
		case '"':
			if err := s.text(); err != nil {
				return err
			}
			continue
		}
		s.pos++
	}
	return s.ends()
}

// text goes behind a string.
func (s *scanner) text() error {
	for at := s.pos + 1; ; {
		n := bytes.IndexByte(s.data[at:], '"')
		if n < 0 {
			s.pos = len(s.data)
			return s.ends()
		}
		at += n
		slashes := 0
		for s.data[at-1-slashes] == '\\' {
			slashes++
		}
		at++
		if slashes%2 == 0 {
			s.pos = at
			return nil
		}
	}
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

// peek is the byte here, 0 at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *scanner) ends() error { return s.wrong("the file ends in the middle") }

func (s *scanner) wrong(what string) error {
	e := &Error{Offset: int64(s.pos), Reason: what}
	if n := len(s.list); n > 0 {
		e.History, e.Event = n, len(s.list[n-1])+1
	}
	return e
}
