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

type member struct {
	key   string
	value gjson.Result
}

// valuer is JSON that is read at paths of gjson.
type valuer interface {
	Get(path string) gjson.Result
}

// objectOf returns a value whose members are found, if it is an object.
func objectOf(v gjson.Result) *object {
	o := &object{Result: v}
	if v.IsObject() {
		o.members = members(v)
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
		return o.member(path)
	case path[end] != '.':
		return o.Result.Get(path)
	}
	return o.member(path[:end]).Get(path[end+1:])
}

// member returns the first member with a name.
func (o *object) member(key string) gjson.Result {
	for _, m := range o.members {
		if m.key == key {
			return m.value
		}
	}
	return gjson.Result{}
}

// members returns the members of an object.
func members(v gjson.Result) []member {
	all := make([]member, 0, 8)
	v.ForEach(func(key, value gjson.Result) bool {
		all = append(all, member{key.Str, value})
		return true
	})
	return all
}

// elements returns the elements of an array, and none of another value.
func elements(v gjson.Result) []gjson.Result {
	if !v.IsArray() {
		return nil
	}
	return v.Array()
}
