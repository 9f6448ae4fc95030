package histories

import (
	"bytes"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// EventFilter selects events and spans by their text: id, type, kind, title and message. Patterns are
// case-insensitive Go regular expressions.
type EventFilter struct {
	Include string // "" for all
	Exclude string // "" for none
	Errors  bool   // only errors
	Full    bool   // match complete events, including payloads
}

// Empty reports whether the filter matches everything.
func (f EventFilter) Empty() bool { return f.Include == "" && f.Exclude == "" && !f.Errors }

// Compile prepares the filter. An error is one line that names the pattern.
func (f EventFilter) Compile() (*EventMatcher, error) {
	m := &EventMatcher{errors: f.Errors, full: f.Full}
	for _, p := range []struct {
		text string
		into **textPattern
	}{{f.Include, &m.include}, {f.Exclude, &m.exclude}} {
		if p.text == "" {
			continue
		}
		c, err := compileText(p.text)
		if err != nil {
			return nil, err
		}
		*p.into = c
	}
	return m, nil
}

// EventMatcher is a compiled [EventFilter].
type EventMatcher struct {
	include, exclude *textPattern
	errors, full     bool
}

// textPattern matches text in lower case. Searching a literal is many times as fast as matching a regular
// expression.
type textPattern struct {
	literal []byte // nil for a regular expression
	folding *regexp.Regexp
}

func compileText(p string) (*textPattern, error) {
	if _, err := regexp.Compile(p); err != nil {
		return nil, fmt.Errorf("pattern %q: %s", p, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if regexp.QuoteMeta(p) == p {
		return &textPattern{literal: []byte(strings.ToLower(p))}, nil
	}
	return &textPattern{folding: regexp.MustCompile("(?i)" + p)}, nil
}

func (p *textPattern) match(text []byte) bool {
	if p.literal != nil {
		return bytes.Contains(text, p.literal)
	}
	return p.folding.Match(text)
}

// matches reports whether text in lower case passes the filter.
func (m *EventMatcher) matches(text []byte, isError bool) bool {
	return (!m.errors || isError) && (m.include == nil || m.include.match(text)) &&
		(m.exclude == nil || !m.exclude.match(text))
}

// All reports whether every event and span passes.
func (m *EventMatcher) All() bool { return !m.errors && m.include == nil && m.exclude == nil }

// Span reports whether a span passes the filter.
func (m *EventMatcher) Span(s *Span) bool {
	text := appendLower(nil, s.Kind.String())
	for _, t := range []string{s.Name, s.Activity, s.State.String(), s.Error} {
		text = appendLower(append(text, ' '), t)
	}
	return m.matches(text, s.State.Bad())
}

// Events returns the ids of the events that pass the filter, ascending, never nil.
func (m *EventMatcher) Events(l *EventLog) []int64 {
	n := l.Len()
	parts := min(runtime.GOMAXPROCS(0), n/4096+1)
	found := make([][]int64, parts)
	var wg sync.WaitGroup
	for part := range parts {
		wg.Go(func() { found[part] = m.some(l, part*n/parts, (part+1)*n/parts) })
	}
	wg.Wait()
	all := make([]int64, 0, len(found[0])*parts)
	for _, f := range found {
		all = append(all, f...)
	}
	return all
}

func (m *EventMatcher) some(l *EventLog, from, to int) []int64 {
	var found []int64
	var buf []byte
	open := unpacked{log: l}
	for i := from; i < to; i++ {
		e := l.Row(i)
		buf = l.appendText(buf[:0], e)
		if m.full {
			buf = open.append(append(buf, ' '), e)
		}
		if m.matches(buf, e.Error) {
			found = append(found, e.ID)
		}
	}
	return found
}

// Event reports whether an event of a log passes the filter.
func (m *EventMatcher) Event(l *EventLog, e *Event) bool {
	return m.matches(l.appendText(nil, e), e.Error)
}

// appendText appends the searched text of an event, in lower case.
func (l *EventLog) appendText(buf []byte, e *Event) []byte {
	buf = strconv.AppendInt(buf, e.ID, 10)
	buf = appendLower(append(buf, ' '), e.Name())
	buf = appendLower(append(buf, ' '), e.Kind.String())
	buf = appendLower(append(buf, ' '), l.Title(e))
	return appendLower(append(buf, ' '), e.Message)
}

func appendLower[T string | []byte](buf []byte, s T) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= utf8.RuneSelf {
			return append(buf, strings.ToLower(string(s[i:]))...)
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		buf = append(buf, c)
	}
	return buf
}

// unpacked caches the block that was unpacked last, because neighboring events share one.
type unpacked struct {
	log    *EventLog
	events [][]byte
	last   int64 // id of the last of them
}

func (u *unpacked) append(buf []byte, e *Event) []byte {
	if e.ID > u.last {
		u.events, u.last = u.log.history.Block(e.ID)
	}
	at := len(u.events) - 1 - int(u.last-e.ID)
	if at < 0 || at >= len(u.events) {
		return buf
	}
	return append(buf, bytes.ToLower(u.events[at])...)
}
