package blueprint

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tidwall/gjson"
)

// jsonKind is the type of a JSON value, with the name that schemas use.
type jsonKind string

const (
	nullKind   jsonKind = "null"
	boolKind   jsonKind = "boolean"
	numberKind jsonKind = "number"
	stringKind jsonKind = "string"
	listKind   jsonKind = "array"
	objectKind jsonKind = "object"
)

// words returns the kind with an article.
func (k jsonKind) words() string {
	switch k {
	case nullKind:
		return "null"
	case boolKind:
		return "true or false"
	case listKind:
		return "a list"
	case objectKind:
		return "an object"
	}
	return "a " + string(k)
}

// kindOf returns the type of a value of a document.
func kindOf(v gjson.Result) jsonKind {
	switch {
	case v.Type == gjson.String:
		return stringKind
	case v.Type == gjson.Number:
		return numberKind
	case v.IsBool():
		return boolKind
	case v.IsArray():
		return listKind
	case v.IsObject():
		return objectKind
	}
	return nullKind
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

// step returns the value of a token of a JSON pointer, if it exists.
func step(v gjson.Result, token string) gjson.Result {
	if !v.IsArray() {
		return field(v, token)
	}
	items := v.Array()
	i, err := strconv.Atoi(token)
	if err != nil || i < 0 || i >= len(items) || strconv.Itoa(i) != token {
		return gjson.Result{}
	}
	return items[i]
}

// plain returns a value in the form of encoding/json, with numbers as written.
func plain(v gjson.Result) any {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(v.Raw))
	if err != nil {
		return nil // cannot happen for a value of a parsed document
	}
	return value
}

// parse parses the document as one JSON value, more strictly than encoding/json: names of an object
// are unique, strings are valid, and numbers and depth are bounded. The value does not exist after a
// problem.
func (d *document) parse() (root gjson.Result) {
	if !utf8.Valid(d.data) {
		d.problem(invalidAt(d.data), "", "is not UTF-8")
		return root
	}
	err := json.Unmarshal(d.data, new(json.RawMessage))
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset := min(max(int(syntax.Offset)-1, 0), len(d.data))
		switch text := syntax.Error(); {
		case strings.Contains(text, "unexpected end"):
			d.problem(len(d.data), "", "the JSON ends before it is complete")
		case strings.Contains(text, "after top-level value"):
			d.problem(offset, "", "the JSON value is followed by other text")
		default:
			d.problem(offset, "", "is not JSON: %v", syntax)
		}
		return root
	}
	if value := gjson.ParseBytes(d.data); d.checkValue(value, "$", 0) {
		return value
	}
	return root
}

// checkValue checks a value and those within it, up to the first problem.
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
		i := 0
		for _, item := range v.ForEach {
			if !d.checkValue(item, path+"["+strconv.Itoa(i)+"]", depth+1) {
				return false
			}
			i++
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

var simpleName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]{0,99}$`)

// child returns the path of a field.
func child(path, name string) string {
	if simpleName.MatchString(name) {
		return path + "." + name
	}
	return path + "[" + quote(name) + "]"
}

// quote quotes a text and truncates it.
func quote(text string) string {
	const most = 60 // characters
	if runes := []rune(text); len(runes) > most {
		return strconv.Quote(string(runes[:most])) + "…"
	}
	return strconv.Quote(text)
}

// encode returns canonical JSON: sorted names, no white space, numbers as written.
func encode(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
