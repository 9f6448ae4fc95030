package agentcli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

const (
	maxOpen  = 4096    // open tool calls that a parser remembers
	maxParts = 1 << 20 // bytes of a text in parts before it is emitted as a whole
	maxDepth = 10_000  // levels of nesting that encoding/json accepts
)

// Reader reads the events of an agent's output.
type Reader struct {
	// Clean, if set, replaces every line before it is parsed. cut reports that the end of the
	// line is missing.
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

// NewLinesReader reads events from lines with a parser that may have parsed earlier lines.
func NewLinesReader(lines *LineReader, parser *Parser) *Reader {
	return &Reader{lines: lines, parser: parser}
}

// Next returns the next event, or io.EOF. With [LineReader.Follow], io.EOF means that there
// are no more events yet, and only [Reader.End] ends the stream.
func (r *Reader) Next() (Event, error) {
	for r.next == len(r.events) {
		if r.ended {
			return Event{}, io.EOF
		}
		line, err := r.lines.Next()
		switch {
		case err == nil:
			r.parse(line)
		case errors.Is(err, io.EOF) && !r.lines.Follow:
			r.End()
		default:
			return Event{}, err
		}
	}
	e := r.events[r.next]
	e.Line, e.Part, e.Raw = r.number, r.next, r.raw
	r.next++
	return e, nil
}

// End ends the stream. Next returns the events that the end makes, then io.EOF.
func (r *Reader) End() {
	if !r.ended {
		r.ended = true
		r.events, r.next, r.number, r.raw = r.parser.End(), 0, 0, nil
	}
}

func (r *Reader) parse(line Line) {
	long := line.TooLong()
	if r.Clean != nil {
		line.Bytes = r.Clean(line.Bytes, long || line.Torn)
	}
	r.next, r.number, r.raw = 0, line.Number, line.Bytes
	if long {
		r.raw = nil
		r.events = []Event{{Kind: KindGarbage, Name: GarbageOversize, Text: head(line.Bytes),
			Size: line.Size}}
		return
	}
	r.events = r.parser.Line(line.Bytes)
	if line.Torn && len(r.events) == 1 && r.events[0].Kind == KindGarbage {
		r.events[0].Name = GarbageTorn
	}
}

// All calls each for every event until the end or the first error.
func (r *Reader) All(each func(Event) error) error {
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = each(e)
		}
		if err != nil {
			return err
		}
	}
}

// Parser turns the lines of one stream into events. It remembers what later lines refer to,
// so each stream needs its own parser.
type Parser struct {
	cli    CLI
	events []Event

	// State of streams other than Claude's, which repeats everything in each line.
	session, model string
	started        map[string]bool // tool calls whose KindToolUse was emitted
	parts          strings.Builder // a text that comes in parts
	partsAt        time.Time
	lastText       string
	steps          openCodeSteps
}

// NewParser makes a parser. All lines of an unknown CLI become [KindOther].
func NewParser(cli CLI) *Parser { return &Parser{cli: cli, started: map[string]bool{}} }

// Line returns the events of one line, none for an empty line. The slice is valid until the
// next call; Raw is not set. Invalid JSON gives an event of [KindGarbage].
func (p *Parser) Line(line []byte) []Event {
	p.events = p.events[:0]
	text := strings.ToValidUTF8(string(bytes.TrimSpace(line)), "\ufffd")
	switch {
	case text == "":
	case validJSON(text):
		p.value(gjson.Parse(text))
	default:
		p.add(Event{Kind: KindGarbage, Name: GarbageText, Text: head(line)})
	}
	return p.events
}

// value parses an object, or the objects of an array.
func (p *Parser) value(v gjson.Result) {
	switch {
	case v.IsObject():
		p.object(v.Map())
	case v.IsArray():
		for _, element := range v.Array() {
			if element.IsArray() {
				element = gjson.Result{} // arrays in arrays are not read
			}
			p.value(element)
		}
	default:
		p.add(Event{Kind: KindOther})
	}
}

// object holds the fields of a JSON object. A missing field is the zero Result.
type object = map[string]gjson.Result

func (p *Parser) object(line object) {
	switch p.cli {
	case Claude:
		p.claude(line)
	case Codex:
		p.codex(line)
	case Gemini:
		p.gemini(line)
	case OpenCode:
		p.openCode(line)
	default:
		p.add(Event{Kind: KindOther, Name: text(line["type"])})
	}
}

// End returns the events that the end of the stream makes. The slice is valid until the next
// call.
func (p *Parser) End() []Event {
	p.events = p.events[:0]
	switch p.cli {
	case Gemini:
		p.flushParts()
	case OpenCode:
		p.openCodeEnd()
	}
	return p.events
}

func (p *Parser) add(e Event) { p.events = append(p.events, e) }

// validJSON reports whether s is valid JSON, nested at most maxDepth levels deep.
func validJSON(s string) bool {
	// gjson is three times as fast, but it recurses without a limit.
	if strings.Count(s, "[")+strings.Count(s, "{") > maxDepth {
		return json.Valid([]byte(s))
	}
	return gjson.Valid(s)
}

// head returns the first MaxText bytes of a line as text.
func head(line []byte) string {
	line = bytes.TrimSpace(line)
	return strings.ToValidUTF8(string(line[:min(MaxText, len(line))]), "")
}

// text returns a copy of a string, so that an event does not keep its whole line in memory.
// Other values are returned as JSON, null as "".
func text(v gjson.Result) string { return strings.Clone(v.String()) }

// firstText returns the first of the values that is a non-empty string.
func firstText(values ...gjson.Result) string {
	for _, v := range values {
		if v.Type == gjson.String && v.Str != "" {
			return text(v)
		}
	}
	return ""
}

// raw returns a copy of the JSON of a value, nil if it is missing or null.
func raw(v gjson.Result) json.RawMessage {
	if v.Type == gjson.Null {
		return nil
	}
	return json.RawMessage(v.Raw)
}

func isTrue(v gjson.Result) bool { return v.Type == gjson.True }

// elements returns the elements of an array, none for other values.
func elements(v gjson.Result) []gjson.Result {
	if !v.IsArray() {
		return nil
	}
	return v.Array()
}

// dollars returns a finite number, 0 for other values.
func dollars(v gjson.Result) float64 {
	n := v.Float()
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return 0
	}
	return n
}

// timestamp parses RFC 3339 text or milliseconds since 1970; other values give the zero time.
func timestamp(v gjson.Result) time.Time {
	if v.Type != gjson.String {
		return millis(v.Int())
	}
	at, err := time.Parse(time.RFC3339Nano, v.Str)
	if err != nil {
		return time.Time{}
	}
	return at
}

// millis converts milliseconds since 1970; numbers out of range give the zero time.
func millis(n int64) time.Time {
	if n <= 0 || n > 253402300799999 { // the year 9999
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

// duration converts milliseconds; numbers out of range give 0.
func duration(ms int64) time.Duration {
	if ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}
