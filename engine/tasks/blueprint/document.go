package blueprint

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tidwall/gjson"
)

// Problem is a problem of a blueprint. Line and Column (in characters) count from 1; 0 is
// unknown. Path is a JSON path, or "" for a file as a whole.
type Problem struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Path   string `json:"path,omitempty"`
	Text   string `json:"text"`
}

func (p Problem) String() string {
	text := p.Text
	if p.Path != "" {
		text = p.Path + ": " + text
	}
	switch {
	case p.File == "":
		return text
	case p.Line == 0:
		return p.File + ": " + text
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, text)
}

// Problems are the problems of a blueprint. More counts those above [MaxProblems].
type Problems struct {
	List []Problem `json:"problems"`
	More int       `json:"more,omitempty"`
}

// Error returns the first problem and the number of the others.
func (p *Problems) Error() string {
	if len(p.List) == 0 {
		return "no problems"
	}
	text := p.List[0].String()
	if n := len(p.List) - 1 + p.More; n > 0 {
		text += fmt.Sprintf(" (and %d more: acescope agent validate)", n)
	}
	return text
}

func (p *Problems) add(problem Problem) {
	if len(p.List) >= MaxProblems {
		p.More++
		return
	}
	p.List = append(p.List, problem)
}

func (p *Problems) addAll(others Problems) {
	for _, problem := range others.List {
		p.add(problem)
	}
	p.More += others.More
}

func (p *Problems) any() bool { return len(p.List) > 0 }

// document is a file and its problems.
type document struct {
	name string
	data []byte
	Problems
	notes Problems
}

// problem adds a problem at an offset of the document; -1 is unknown.
func (d *document) problem(offset int, path, format string, args ...any) {
	d.add(d.newProblem(offset, path, fmt.Sprintf(format, args...)))
}

// note adds a warning.
func (d *document) note(offset int, path, format string, args ...any) {
	d.notes.add(d.newProblem(offset, path, fmt.Sprintf(format, args...)))
}

func (d *document) newProblem(offset int, path, text string) Problem {
	p := Problem{File: d.name, Path: path, Text: text}
	if offset >= 0 && offset <= len(d.data) {
		before := string(d.data[:offset])
		p.Line = strings.Count(before, "\n") + 1
		p.Column = utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	}
	return p
}

// addViolations adds the violations of the value n, which is at a path of the document.
func (d *document) addViolations(violations []Violation, n gjson.Result, path string) {
	for _, v := range violations {
		d.problem(closest(n, v.tokens).Index, pathOf(path, v.tokens), "%s", v.Text)
	}
}

// parse parses the document as one JSON value, more strictly than encoding/json: names of an object are
// unique, strings are valid, and numbers and depth are bounded. After a problem, the value does not exist.
func (d *document) parse() (root gjson.Result) {
	if at := invalidAt(d.data); at >= 0 {
		d.problem(at, "", "is not UTF-8")
		return root
	}
	err := json.Unmarshal(d.data, new(json.RawMessage))
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		d.problem(max(int(syntax.Offset)-1, 0), "", "is not JSON: %v", syntax)
		return root
	}
	if value := gjson.ParseBytes(d.data); d.checkValue(value, "$", 0) {
		return value
	}
	return root
}

// checkValue checks a value and the values within it, up to the first problem.
func (d *document) checkValue(v gjson.Result, path string, depth int) bool {
	switch {
	case depth > maxDepth:
		d.problem(v.Index, "", "is nested more than %d deep", maxDepth)
		return false
	case v.Type == gjson.String:
		return d.checkString(v, path)
	case v.Type == gjson.Number && !isBounded(v.Raw):
		d.problem(v.Index, path, "the number is too long, or its exponent is above %d", maxNumber)
		return false
	case v.IsArray():
		for i, item := range v.Array() {
			if !d.checkValue(item, path+"["+strconv.Itoa(i)+"]", depth+1) {
				return false
			}
		}
	}
	seen := map[string]bool{}
	for name, value := range members(v) {
		inner := child(path, name.Str)
		if seen[name.Str] {
			d.problem(name.Index, inner, "occurs twice")
			return false
		}
		seen[name.Str] = true
		if !d.checkString(name, inner) || !d.checkValue(value, inner, depth+1) {
			return false
		}
	}
	return true
}

// checkString reports a string that decoding has changed: half of a surrogate pair becomes
// another character.
func (d *document) checkString(v gjson.Result, path string) bool {
	raw := strings.ToLower(v.Raw)
	if strings.Count(v.Str, "\ufffd") == strings.Count(raw, "\ufffd")+strings.Count(raw, `\ufffd`) {
		return true
	}
	d.problem(v.Index, path, `a \u escape is half of a surrogate pair`)
	return false
}

// isBounded reports whether arithmetic with a number has a bounded cost.
func isBounded(text string) bool {
	if len(text) > maxNumber {
		return false
	}
	at := strings.IndexAny(text, "eE")
	if at < 0 {
		return true
	}
	exponent, err := strconv.Atoi(text[at+1:])
	return err == nil && exponent >= -maxNumber && exponent <= maxNumber
}

// invalidAt returns the offset of the first invalid UTF-8, or -1.
func invalidAt(data []byte) int {
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// members returns the fields of an object in the order of the document, and nothing for other values.
func members(v gjson.Result) iter.Seq2[gjson.Result, gjson.Result] {
	if !v.IsObject() {
		v = gjson.Result{}
	}
	return v.ForEach
}

// field returns the value of a field, which does not exist if the object lacks it.
func field(v gjson.Result, name string) gjson.Result {
	for key, value := range members(v) {
		if key.Str == name {
			return value
		}
	}
	return gjson.Result{}
}

// closest returns the value at a JSON pointer, or else its closest ancestor that exists.
func closest(n gjson.Result, tokens []string) gjson.Result {
	for _, token := range tokens {
		inner := field(n, token)
		if i, err := strconv.Atoi(token); err == nil && n.IsArray() && i >= 0 && i < len(n.Array()) {
			inner = n.Array()[i]
		}
		if !inner.Exists() {
			break
		}
		n = inner
	}
	return n
}

// plain returns a value in the form of encoding/json, with numbers as written.
func plain(raw string) any {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(raw))
	if err != nil {
		return nil // cannot happen for a value of a parsed document
	}
	return value
}

var simpleName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]{0,99}$`)

// child returns the path of a field.
func child(path, name string) string {
	if simpleName.MatchString(name) {
		return path + "." + name
	}
	return path + "[" + quote(name) + "]"
}

// pathOf returns the JSON path of a JSON pointer into the value at a path.
func pathOf(path string, tokens []string) string {
	for _, token := range tokens {
		if _, err := strconv.Atoi(token); err == nil {
			path += "[" + token + "]"
		} else {
			path = child(path, token)
		}
	}
	return path
}

// quote quotes a text and truncates it.
func quote(text string) string {
	const most = 60 // characters
	if runes := []rune(text); len(runes) > most {
		return strconv.Quote(string(runes[:most])) + "…"
	}
	return strconv.Quote(text)
}
