package hooks

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// span is a part of a text.
type span struct{ from, to int }

const space = " \t\r\n"

// add puts a group behind the others of an event.
func add(settings []byte, event, group string) []byte {
	root := gjson.ParseBytes(settings)
	hooks := root.Get("hooks")
	switch groups := hooks.Get(event); {
	case !hooks.Exists():
		return insert(settings, at(root, settings), `"hooks": {`+line(2, settings)+`"`+event+`": [`+line(3, settings)+group+line(2, settings)+`]`+line(1, settings)+`}`, 1)
	case !groups.Exists():
		return insert(settings, at(hooks, settings), `"`+event+`": [`+line(3, settings)+group+line(2, settings)+`]`, 2)
	default:
		return insert(settings, at(groups, settings), group, 3)
	}
}

// at is where a value stands.
func at(v gjson.Result, settings []byte) span {
	if v.Index == 0 { // the whole
		from := len(settings) - len(bytes.TrimLeft(settings, space))
		return span{from, from + len(bytes.TrimSpace(settings))}
	}
	return span{v.Index, v.Index + len(v.Raw)}
}

// line begins a line so deep, indented as the file is.
func line(depth int, settings []byte) string { return "\n" + strings.Repeat(indent(settings), depth) }

func indent(settings []byte) string {
	_, rest, ok := bytes.Cut(settings, []byte("\n"))
	if n := len(rest) - len(bytes.TrimLeft(rest, " \t")); ok && n > 0 && n < len(rest) {
		return string(rest[:n])
	}
	return "  "
}

// insert puts text behind the last part of an object or list.
func insert(settings []byte, in span, text string, depth int) []byte {
	end := in.to - 1 // its closing bracket
	last := len(bytes.TrimRight(settings[:end], space))
	if last == in.from+1 { // it is empty
		return slices.Concat(settings[:last], []byte(line(depth, settings)+text+line(depth-1, settings)), settings[end:])
	}
	return slices.Concat(settings[:last], []byte(","+line(depth, settings)+text), settings[last:])
}

// element is the part of a list at a place.
func element(list gjson.Result, n int) span {
	v := list.Array()[n]
	return span{v.Index, v.Index + len(v.Raw)}
}

// member is the part of an object with a key.
func member(object gjson.Result, key string) (found span) {
	object.ForEach(func(k, v gjson.Result) bool {
		if k.String() == key {
			found = span{k.Index, v.Index + len(v.Raw)}
		}
		return found.to == 0
	})
	return found
}

// without takes a part out, with the comma that kept it apart.
func without(settings []byte, part span) []byte {
	before := bytes.TrimRight(settings[:part.from], space)
	after := bytes.TrimLeft(settings[part.to:], space)
	switch {
	case bytes.HasSuffix(before, []byte(",")):
		return slices.Concat(before[:len(before)-1], settings[part.to:])
	case bytes.HasPrefix(after, []byte(",")):
		return slices.Concat(settings[:part.from], bytes.TrimLeft(after[1:], space))
	}
	return slices.Concat(before, after)
}
