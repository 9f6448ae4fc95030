package adapter

import (
	"strings"

	"github.com/tidwall/gjson"
)

// object is JSON that is read at many paths. Its members are found once, so that a path costs what the member
// is long that it leads to, not what the whole is long.
type object struct {
	gjson.Result
	members []member
}

type member struct{ key, raw string }

// valuer is JSON that is read at paths of gjson.
type valuer interface {
	Get(path string) gjson.Result
}

// objectOf returns a value whose members are found, if it is an object.
func objectOf(v gjson.Result) *object {
	o := &object{Result: v}
	if v.IsObject() {
		o.members = members(v.Raw)
	}
	return o
}

// at returns the value at a path of gjson: all of it for "", and nothing of no object.
func (o *object) at(path string) gjson.Result {
	switch {
	case o == nil:
		return gjson.Result{}
	case path == "":
		return o.Result
	}
	return o.Get(path)
}

// Get returns the value at a path of gjson.
func (o *object) Get(path string) gjson.Result {
	if !o.IsObject() || path == "" || path[0] == '@' || path[0] == '!' {
		return o.Result.Get(path)
	}
	end := strings.IndexAny(path, `.|*?#\{[`)
	switch {
	case end < 0:
		return gjson.Parse(o.member(path))
	case path[end] != '.':
		return o.Result.Get(path)
	}
	raw := o.member(path[:end])
	if raw == "" {
		return gjson.Result{}
	}
	return gjson.Get(raw, path[end+1:])
}

// member returns the JSON of the first member with a name, or "".
func (o *object) member(key string) string {
	for _, m := range o.members {
		if m.key == key {
			return m.raw
		}
	}
	return ""
}

// members returns the members of an object up to the first place that is not JSON.
func members(s string) []member {
	i := space(s, 0)
	if i == len(s) || s[i] != '{' {
		return nil
	}
	all := make([]member, 0, 8)
	for i++; ; {
		if i = space(s, i); i == len(s) || s[i] != '"' {
			return all
		}
		end := quoted(s, i+1)
		key := s[i+1 : max(i+1, end-1)]
		if strings.Contains(key, `\`) {
			key = gjson.Parse(s[i:end]).Str
		}
		if i = space(s, end); i == len(s) || s[i] != ':' {
			return all
		}
		i = space(s, i+1)
		end = skip(s, i)
		all = append(all, member{key, s[i:end]})
		i = end
	}
}

// elements returns the elements of an array up to the first place that is not JSON.
func elements(s string) (all []string) {
	i := space(s, 0)
	if i == len(s) || s[i] != '[' {
		return nil
	}
	for i++; ; {
		if i = space(s, i); i == len(s) || s[i] == ']' {
			return all
		}
		end := skip(s, i)
		if end == i {
			return all
		}
		all = append(all, s[i:end])
		i = end
	}
}

// space returns the index of the first character from i on that is neither white space nor a comma.
func space(s string, i int) int {
	for i < len(s) && (s[i] <= ' ' || s[i] == ',') {
		i++
	}
	return i
}

// skip returns the index behind the value that begins at i.
func skip(s string, i int) int {
	for depth := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			i = quoted(s, i+1) - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(s)
}

// quoted returns the index behind the text that begins at i, behind its first quotation mark.
func quoted(s string, i int) int {
	for from := i; ; {
		n := strings.IndexByte(s[i:], '"')
		if n < 0 {
			return len(s)
		}
		i += n + 1
		escapes := i - 2
		for escapes >= from && s[escapes] == '\\' {
			escapes--
		}
		if (i-2-escapes)%2 == 0 {
			return i
		}
	}
}
