package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kaptinlin/jsonrepair"
	"github.com/tidwall/gjson"

	"acescope/engine/ace"
)

// Bounds of parsing.
const (
	maxAnswer     = 1 << 20  // bytes of an answer
	maxRepair     = 64 << 10 // bytes to repair, which is slower than parsing
	maxDepth      = 64       // levels
	maxCandidates = 32       // of each kind, the last ones
)

// candidate is a part of an answer that may be the requested JSON.
type candidate struct {
	text  string
	open  int  // unclosed brackets: the answer was cut off
	whole bool // the answer has nothing else
}

// found is a parsed object.
type found struct {
	fields fields
	how    ace.ParseKind
	note   string
	// cut is the depth in the object at which the answer was cut off, 0 if it was not.
	cut int
}

// errNoJSON is the error for an answer without an object.
var errNoJSON = errors.New("it has no JSON object")

// read finds the object that accept accepts. It prefers valid JSON to repaired JSON, and the
// last object to earlier ones, since models that repeat themselves mean their last answer.
// The error says why the best candidate was not accepted.
func read(text string, accept func(found) error) error {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return errors.New("it is empty")
	case len(text) > maxAnswer:
		return fmt.Errorf("it has %d bytes, at most %d are allowed", len(text), maxAnswer)
	}
	all := candidates(text)
	why := errNoJSON
	try := func(f found) bool {
		err := accept(f)
		if err != nil {
			why = err
		}
		return err == nil
	}
	for _, c := range all {
		if f, ok := strict(c); ok && try(f) {
			return nil
		}
	}
	for _, c := range all {
		if f, ok := repair(c); ok && try(f) {
			return nil
		}
	}
	return why
}

func strict(c candidate) (found, bool) {
	if c.open > 0 || !json.Valid([]byte(c.text)) {
		return found{}, false
	}
	f := found{how: ace.ParseExtracted, fields: object(gjson.Parse(c.text))}
	if c.whole {
		f.how = ace.ParseClean
	}
	return f, f.fields != nil
}

// repair repairs JSON that is nearly valid. The library recurses and copies, so depth and length
// are bounded.
func repair(c candidate) (f found, ok bool) {
	if len(c.text) > maxRepair || json.Valid([]byte(c.text)) && c.open == 0 || depth(c.text) > maxDepth {
		return found{}, false
	}
	defer func() {
		if recover() != nil { // a bug of the library must not end the worker
			f, ok = found{}, false
		}
	}()
	repaired, err := jsonrepair.JSONRepair(c.text)
	if err != nil || !json.Valid([]byte(repaired)) {
		return found{}, false
	}
	f = found{fields: object(gjson.Parse(repaired)), how: ace.ParseRepaired, note: "it was not valid JSON",
		cut: c.open}
	if c.open > 0 {
		f.note = errCut.Error()
	}
	return f, f.fields != nil
}

// depth returns an upper bound of the nesting depth. It ignores quotes.
func depth(text string) int {
	now, most := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '{', '[', '(':
			now++
			most = max(most, now)
		case '}', ']', ')':
			now--
		}
	}
	return most
}

// candidates returns the parts of an answer that may be the requested JSON, most likely first:
// the whole answer, the fenced blocks from the last, the objects in the prose from the last,
// and the unclosed end.
func candidates(text string) []candidate {
	text = withoutThought(text)
	spans, opened, open := scan(text)
	var all []candidate
	switch {
	case json.Valid([]byte(text)) || len(spans) == 1 && spans[0] == span{0, len(text)}:
		all = append(all, candidate{text: text, whole: true})
	case strings.HasPrefix(text, "["):
		all = append(all, candidate{text: text, open: open})
	}
	blocks := fenced(text)
	for _, block := range slices.Backward(blocks[max(0, len(blocks)-maxCandidates):]) {
		_, _, open := scan(block)
		all = append(all, candidate{text: block, open: open})
	}
	for _, s := range slices.Backward(spans[max(0, len(spans)-maxCandidates):]) {
		all = append(all, candidate{text: text[s.from:s.to]})
	}
	if opened >= 0 {
		all = append(all, candidate{text: text[opened:], open: open})
	}
	return all
}

// withoutThought removes the reasoning before an answer.
func withoutThought(text string) string {
	if rest, ok := strings.CutPrefix(text, "<think>"); ok {
		if _, after, done := strings.Cut(rest, "</think>"); done {
			return strings.TrimSpace(after)
		}
	}
	return text
}

// fence matches a block between lines of three backticks. The last block may be unclosed.
var fence = regexp.MustCompile("(?ms)^[ \\t]*```[^\n]*\n(.*?)(?:^[ \\t]*```|\\z)")

// fenced returns the contents of the fenced blocks.
func fenced(text string) (blocks []string) {
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		if block := strings.TrimSpace(m[1]); block != "" {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

type span struct{ from, to int }

// scan returns the outermost complete objects, the start of the outermost incomplete object
// (or -1), and the number of open brackets at the end. It honors quotes only inside objects,
// since prose contains stray quotes.
func scan(text string) (spans []span, opened, open int) {
	var stack []int // positions of open brackets
	quoted := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '\\':
			i++
		case c == '"' && len(stack) > 0:
			quoted = !quoted
		case quoted:
		case c == '{', c == '[' && (len(stack) > 0 || i == 0):
			stack = append(stack, i)
		case (c == '}' || c == ']') && len(stack) > 0:
			from := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if text[from] != '{' && len(stack) > 0 {
				break
			}
			for len(spans) > 0 && spans[len(spans)-1].from > from {
				spans = spans[:len(spans)-1] // within this one
			}
			spans = append(spans, span{from, i + 1})
		}
	}
	if len(stack) == 0 {
		return spans, -1, 0
	}
	for _, at := range stack {
		if text[at] == '{' {
			return spans, at, len(stack)
		}
	}
	return spans, -1, len(stack)
}

// fields is an object by normalized key: "finalAnswer", "Final Answer" and "final_answer" are
// equal.
type fields map[string]gjson.Result

// object reads an object, or a list as an object with the only key "list". It unwraps an
// object inside another object, a list of one, or a string. It returns nil for other values.
func object(v gjson.Result) fields {
	for range 4 {
		switch {
		case v.Type == gjson.String && json.Valid([]byte(v.Str)):
			v = gjson.Parse(v.Str)
		case v.IsArray():
			list := v.Array()
			if len(list) == 1 {
				// An operation is not a wrapped answer.
				if f := object(list[0]); f == nil || !f.get("type").Exists() {
					return f
				}
			}
			return fields{"list": v}
		case v.IsObject():
			f := fields{}
			v.ForEach(func(k, value gjson.Result) bool {
				f[key(k.Str)] = value
				return true
			})
			inner := f.get("response", "output", "result", "answer", "json", "data",
				"generator", "reflector", "curator", "reflection")
			if len(f) > 1 || !inner.IsObject() {
				return f
			}
			v = inner
		default:
			return nil
		}
	}
	return nil
}

// isList reports whether the value was a list, or neither an object nor a list.
func (f fields) isList() bool { return f == nil || f.get("list").Exists() }

var keyReplacer = strings.NewReplacer("_", "", "-", "", " ", "")

func key(k string) string { return keyReplacer.Replace(strings.ToLower(k)) }

// get returns the value of the first key that exists and is not null.
func (f fields) get(names ...string) gjson.Result {
	for _, n := range names {
		if v := f[key(n)]; v.Type != gjson.Null {
			return v
		}
	}
	return gjson.Result{}
}

// text returns the value of the first key that exists as text.
func (f fields) text(names ...string) string { return textOf(f.get(names...)) }

func textOf(v gjson.Result) string {
	switch {
	case v.Type == gjson.Null:
		return ""
	case v.Type == gjson.String:
		return strings.TrimSpace(v.Str)
	case v.IsArray():
		var parts []string
		for _, e := range v.Array() {
			parts = append(parts, textOf(e))
		}
		return strings.Join(parts, "\n")
	}
	var small bytes.Buffer
	if json.Compact(&small, []byte(v.Raw)) != nil {
		return ""
	}
	return small.String() // a number or object as written
}

// texts returns a value as a list: the elements of a list, or the parts of a text separated by
// commas and white space.
func (f fields) texts(names ...string) []string {
	v := f.get(names...)
	if !v.IsArray() {
		return strings.FieldsFunc(textOf(v), func(r rune) bool {
			return strings.ContainsRune(",; \n\t[]\"", r)
		})
	}
	var out []string
	for _, e := range v.Array() {
		if inner := object(e); !inner.isList() {
			e = inner.get("id", "bullet_id")
		}
		if s := strings.Trim(textOf(e), "[] "); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// raw returns the JSON of a value, or nil if it does not exist.
func raw(v gjson.Result) json.RawMessage {
	if !v.Exists() {
		return nil
	}
	return json.RawMessage(v.Raw)
}

// number returns a value as a number, or 0.
func number(v gjson.Result) float64 {
	n, err := strconv.ParseFloat(textOf(v), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0
	}
	return n
}

// count returns a value as an integer, or 0.
func count(v gjson.Result) int {
	n := number(v)
	if math.Abs(n) > 1e9 {
		return 0
	}
	return int(n)
}

// boolean returns a value as a boolean, or fallback.
func (f fields) boolean(name string, fallback bool) bool {
	b, err := strconv.ParseBool(strings.ToLower(f.text(name)))
	if err != nil {
		return fallback
	}
	return b
}
