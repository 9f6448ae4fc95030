package compare

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Bounds of what is compared and listed.
const (
	MaxPayload = 4 << 20 // bytes; the server takes 2 MB by default
	MaxNodes   = 400_000 // values of one payload that are looked at
	MaxChanges = 200     // of one pair
	MaxValue   = 16 << 10
)

// Change is one difference of two payloads. Path is a JSON pointer (RFC 6901), "" for the
// whole; a place in a list is that in the first one, of what was added that in the second.
type Change struct {
	Path string          `json:"path"`
	A    json.RawMessage `json:"a,omitempty"` // nil where it was added
	B    json.RawMessage `json:"b,omitempty"` // nil where it was removed
	// Cut tells that A or B is above [MaxValue] bytes: it is then a string that holds the
	// first of them.
	Cut bool `json:"cut,omitempty"`
}

// tree is JSON as values; false where it is none, or too long.
func tree(raw json.RawMessage) (any, bool) {
	if len(raw) == 0 || len(raw) > MaxPayload {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil, false
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, false // more than one value
	}
	return v, true
}

var seed = maphash.MakeSeed()

// fingerprint is the same for payloads in which nothing differs that counts.
func fingerprint(raw json.RawMessage, all bool) uint64 {
	if len(raw) == 0 {
		return 0
	}
	v, ok := tree(raw)
	if !ok {
		return maphash.Bytes(seed, raw)
	}
	return hashOf(v, all)
}

// hashOf does not depend on the order of an object's members.
func hashOf(v any, all bool) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	switch v := v.(type) {
	case nil:
		h.WriteByte('n')
	case bool:
		h.WriteByte('b')
		h.WriteString(strconv.FormatBool(v))
	case json.Number:
		h.WriteByte('0')
		h.WriteString(canonical(v))
	case string:
		h.WriteByte('s')
		h.WriteString(v)
	case []any:
		h.WriteByte('l')
		for _, e := range v {
			maphash.WriteComparable(&h, hashOf(e, all))
		}
	case map[string]any:
		h.WriteByte('o')
		var sum uint64
		for name, e := range v {
			if all || !ignored(name, e) {
				sum += maphash.Comparable(seed, [2]uint64{maphash.String(seed, name), hashOf(e, all)})
			}
		}
		maphash.WriteComparable(&h, sum)
	}
	return h.Sum64()
}

// canonical is a number as it is compared: 1, 1.0 and 1e0 are the same; whole numbers keep
// all their digits.
func canonical(n json.Number) string {
	s := string(n)
	if !strings.ContainsAny(s, ".eE") {
		return s
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return s
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// differ lists what differs in two values.
type differ struct {
	all     bool // also what differs between any two runs
	nodes   int  // that may still be looked at
	out     []Change
	more    int
	partial bool // there were too many nodes
}

func (d *differ) add(path string, a, b any, inA, inB bool) {
	if len(d.out) >= MaxChanges {
		d.more++
		return
	}
	c := Change{Path: path}
	if inA {
		c.A, c.Cut = value(a)
	}
	if inB {
		var cut bool
		c.B, cut = value(b)
		c.Cut = c.Cut || cut
	}
	d.out = append(d.out, c)
}

// value is a value as JSON, cut where it is too long.
func value(v any) (json.RawMessage, bool) {
	data, err := marshal(v)
	if err != nil {
		return json.RawMessage(`"(cannot be written)"`), false
	}
	return cutValue(data)
}

func cutValue(data []byte) (json.RawMessage, bool) {
	if len(data) <= MaxValue {
		return data, false
	}
	short, err := marshal(strings.ToValidUTF8(string(data[:MaxValue]), "") + "…")
	if err != nil {
		return nil, true
	}
	return short, true
}

// marshal leaves <, > and & as they are.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func (d *differ) values(path string, a, b any) {
	if d.nodes--; d.nodes < 0 {
		if d.partial = true; hashOf(a, d.all) != hashOf(b, d.all) {
			d.add(path, a, b, true, true)
		}
		return
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			d.objects(path, x, y)
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			d.lists(path, x, y)
			return
		}
	case json.Number:
		if y, ok := b.(json.Number); ok && canonical(x) == canonical(y) {
			return
		}
	default:
		// b may be of a kind that cannot be compared by ==, but then it is of another.
		if !composite(b) && a == b {
			return
		}
	}
	d.add(path, a, b, true, true)
}

func composite(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func (d *differ) objects(path string, a, b map[string]any) {
	names := slices.Collect(maps.Keys(a))
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		x, inA := a[name]
		y, inB := b[name]
		if !d.all && (!inA || ignored(name, x)) && (!inB || ignored(name, y)) {
			continue
		}
		at := path + "/" + pointer.Replace(name)
		if inA && inB {
			d.values(at, x, y)
			continue
		}
		d.nodes--
		d.add(at, x, y, inA, inB)
	}
}

var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// lists aligns the elements that are the same and compares those between them one by one.
func (d *differ) lists(path string, a, b []any) {
	at := func(i int) string { return path + "/" + strconv.Itoa(i) }
	stretch := func(i, iEnd, j, jEnd int) {
		for ; i < iEnd && j < jEnd; i, j = i+1, j+1 {
			d.values(at(i), a[i], b[j])
		}
		for ; i < iEnd; i++ {
			d.nodes--
			d.add(at(i), a[i], nil, true, false)
		}
		for ; j < jEnd; j++ {
			d.nodes--
			d.add(at(j), nil, b[j], false, true)
		}
	}
	if len(a) == len(b) || len(a)+len(b) > d.nodes {
		stretch(0, len(a), 0, len(b))
		return
	}
	i, j := 0, 0
	for _, m := range common(d.hashes(a), d.hashes(b)) {
		stretch(i, m.a, j, m.b)
		i, j = m.a+1, m.b+1
	}
	stretch(i, len(a), j, len(b))
}

func (d *differ) hashes(list []any) []key {
	out := make([]key, len(list))
	seen := map[uint64]int{}
	for i, v := range list {
		h := hashOf(v, d.all)
		out[i] = key{hash: h, nth: seen[h]}
		seen[h]++
	}
	return out
}
