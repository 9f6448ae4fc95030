package agentcli

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"
)

// CLI names an agent's command line.
type CLI string

// The CLIs that are known.
const (
	Claude   CLI = "claude"
	Codex    CLI = "codex"
	Gemini   CLI = "gemini"
	OpenCode CLI = "opencode"
)

const (
	maxKnown = 4096    // names, and open tool calls, that a parser remembers
	maxName  = 256     // bytes of a name that is remembered
	maxParts = 1 << 20 // bytes of a text that comes in parts, before it is given as whole
)

// Parser makes events of the lines of one CLI. It remembers what later lines refer to, so
// each stream needs a parser of its own.
type Parser struct {
	cli    CLI
	known  map[string]string // strings that come again and again, kept once
	events []Event

	session, message, model string // the last ones

	// What the streams of Codex, Gemini and OpenCode leave to their reader.
	started map[string]bool // tool calls that were told of
	text    strings.Builder // a text that comes in parts
	textAt  time.Time
	last    string // the last whole text
	sum     steps
}

// NewParser makes a parser of the CLI; of one that is not known, everything is
// [KindOther].
func NewParser(cli CLI) *Parser {
	return &Parser{cli: cli, known: map[string]string{}, started: map[string]bool{}}
}

// Line is the events of one line, which are none of an empty one. The slice is valid until
// the next call, the events for ever; their Raw is not set. A line that is no JSON gives an
// event of [KindGarbage].
func (p *Parser) Line(line []byte) []Event {
	p.events = p.events[:0]
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil
	}
	if !utf8.Valid(line) {
		line = bytes.ToValidUTF8(line, []byte("\ufffd"))
	}
	if !p.value(value(unsafe.String(&line[0], len(line)))) {
		p.add(&Event{Kind: KindGarbage, Name: GarbageText, Text: head(line, MaxText)})
	}
	return p.events
}

// value reads a JSON value, whose text is that of the line and is changed later. It is false
// where the text is no JSON, which nothing is made of then.
func (p *Parser) value(v value) bool {
	switch {
	case !v.isObject():
		return p.other(v)
	case p.cli == Claude:
		return p.claude(v)
	case p.cli == Codex:
		return p.codex(v)
	case p.cli == Gemini:
		return p.gemini(v)
	case p.cli == OpenCode:
		return p.openCode(v)
	}
	var kind value
	ok := v.whole(func(key string, field value) bool {
		if key == "type" {
			kind = field
		}
		return true
	})
	if ok {
		p.add(&Event{Kind: KindOther, Name: p.know(kind)})
	}
	return ok
}

// other reads a value that is no object: the objects of an array, once all of it is known to
// be good.
func (p *Parser) other(v value) bool {
	if !v.whole(nil) {
		return false
	}
	if !v.isArray() {
		p.add(&Event{Kind: KindOther})
	}
	v.each(func(_ string, element value) bool {
		if element.isObject() {
			return p.value(element)
		}
		p.add(&Event{Kind: KindOther})
		return true
	})
	return true
}

// End is the events that the end of the stream makes. The slice is valid until the next
// call.
func (p *Parser) End() []Event {
	p.events = p.events[:0]
	switch p.cli {
	case Gemini:
		p.wholeText()
	case OpenCode:
		p.openCodeEnd()
	}
	return p.events
}

func (p *Parser) add(e *Event) { p.events = append(p.events, *e) }

// garbage is a line that is no event.
func garbage(name string, line []byte, size int64) Event {
	return Event{Kind: KindGarbage, Name: name, Text: head(line, MaxText), Size: size}
}

// head is the first n bytes, as text.
func head(line []byte, n int) string {
	return strings.ToValidUTF8(string(line[:min(n, len(line))]), "")
}

// keep is the text of a value, as a string of its own.
func keep(v value) string {
	s, own := v.text()
	if own {
		return s
	}
	return strings.Clone(s)
}

// raw is a copy of the JSON of a value; nil of none, and of null.
func raw(v value) []byte {
	if !v.exists() {
		return nil
	}
	return []byte(v)
}

// know is a text that comes again and again, such as a session's id or a tool's name.
func (p *Parser) know(v value) string { return p.intern(v.view()) }

// again is a text that mostly is the same as the last time.
func (p *Parser) again(last *string, v value) string {
	if s := v.view(); s != *last {
		*last = p.intern(s)
	}
	return *last
}

func (p *Parser) intern(s string) string {
	if s == "" {
		return ""
	}
	if known, ok := p.known[s]; ok {
		return known
	}
	s = strings.Clone(s)
	if len(s) > maxName {
		return s
	}
	if len(p.known) >= maxKnown {
		clear(p.known)
	}
	p.known[s] = s
	return s
}

// strs is the strings of an array, in one piece of memory.
func strs(v value) []string {
	if !v.isArray() {
		return nil
	}
	var list []string
	value(strings.Clone(string(v))).each(func(_ string, s value) bool {
		list = append(list, s.view())
		return true
	})
	return list
}

// stamp is a time as text, or in milliseconds since 1970; zero where it is neither.
func stamp(v value) time.Time {
	if !v.isText() {
		return millis(v.int())
	}
	at, err := time.Parse(time.RFC3339Nano, v.view())
	if err != nil {
		return time.Time{}
	}
	return at
}

// millis is a time in milliseconds since 1970; zero of numbers that are none.
func millis(n int64) time.Time {
	if n <= 0 || n > 253402300799999 { // the year 9999
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

// length is a duration in milliseconds; zero of numbers that are none.
func length(n int64) time.Duration {
	if n < 0 || n > int64(time.Duration(1<<63-1)/time.Millisecond) {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}
