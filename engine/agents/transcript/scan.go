package transcript

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"acescope/engine/ace"
	"acescope/engine/internal/jsonscan"
)

// This scanner replaces gjson for speed: it jumps over strings and unescapes only the texts
// that are needed, so BenchmarkFold runs at more than 500 MB/s. gjson's ForEach, which
// unescapes every string, needs as long for the outermost level alone, and validation is
// another pass. Users have gigabytes of transcripts.

// object holds the members of a JSON object as slices of its text. Keys have no quotes; strings
// are still escaped.
type object []member

type member struct{ key, value []byte }

// maxMembers bounds the members of an object that are kept.
const maxMembers = 1000

// parse takes an object apart. It returns false if raw is not a complete object.
func (o *object) parse(raw []byte) bool {
	*o = (*o)[:0]
	return scan(raw, '{', func(key, value []byte) {
		if len(*o) < maxMembers {
			*o = append(*o, member{key, value})
		}
	})
}

// get returns the JSON of a member, or nil. Of several members with the key, the last one counts.
func (o object) get(key string) []byte {
	for i := len(o) - 1; i >= 0; i-- {
		if string(o[i].key) == key {
			return o[i].value
		}
	}
	return nil
}

// bare returns a string without its quotes; nil for other values.
func (o object) bare(key string) []byte { return bare(o.get(key)) }

func (o object) isTrue(key string) bool { return string(o.get(key)) == "true" }

// maxCount bounds a number in a line, so that sums over many lines do not overflow.
const maxCount = 1e12

// count returns a number from 0 to maxCount as an integer, 0 for other values.
func (o object) count(key string) int64 {
	v := o.get(key)
	if len(v) > 15 {
		return 0
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || !(f >= 0 && f <= maxCount) {
		return 0
	}
	return int64(f)
}

// child returns a member that is an object, or an empty object.
func (o object) child(key string) (c object) {
	c.parse(o.get(key))
	return c
}

// without returns the JSON of the object without a member.
func (o object) without(key string) []byte {
	out := []byte{'{'}
	for _, m := range o {
		if string(m.key) == key {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), m.key...), '"', ':')
		out = append(out, m.value...)
	}
	return append(out, '}')
}

// time returns the timestamp of a line, or the zero time.
func (o object) time() time.Time { return parseTime(o.bare("timestamp")) }

// parseTime parses a time, or returns the zero time.
func parseTime(at []byte) time.Time {
	if len(at) > 40 {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, string(at))
	if err != nil || !inRange(t) {
		return time.Time{}
	}
	return t
}

// inRange reports whether a time can be written in every time zone.
func inRange(t time.Time) bool {
	sec := t.Unix()
	return sec > minSeconds && sec < maxSeconds
}

// Unix times of the years 2 and 9998.
const minSeconds, maxSeconds = -62104060800, 253339228800

// millis returns a time in milliseconds, or the zero time.
func (o object) millis(key string) time.Time {
	ms, err := strconv.ParseFloat(string(o.get(key)), 64)
	if err != nil || !(ms > 0 && ms < maxSeconds*1000) {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)).UTC()
}

// dollars returns a cost, 0 for other values and costs out of range.
func (o object) dollars(key string) float64 {
	usd, err := strconv.ParseFloat(string(o.get(key)), 64)
	if err != nil || !(usd >= 0 && usd < maxCount) {
		return 0
	}
	return usd
}

// scan calls fn for each member of an object or element of an array, and reports whether raw is
// complete. ASCII places each closing bracket two after its opening.
func scan(raw []byte, opening byte, fn func(key, value []byte)) bool {
	i := jsonscan.Space(raw, 0)
	if i >= len(raw) || raw[i] != opening {
		return false
	}
	i = jsonscan.Space(raw, i+1)
	for i < len(raw) && raw[i] != opening+2 {
		var key []byte
		if opening == '{' {
			end := -1
			if raw[i] == '"' {
				end = jsonscan.StringEnd(raw, i)
			}
			if end < 0 {
				return false
			}
			key = raw[i+1 : end-1]
			if i = jsonscan.Space(raw, end); i >= len(raw) || raw[i] != ':' {
				return false
			}
			i = jsonscan.Space(raw, i+1)
		}
		end := jsonscan.ValueEnd(raw, i)
		if end < 0 {
			return false
		}
		fn(key, raw[i:end])
		if i = jsonscan.Space(raw, end); i < len(raw) && raw[i] == ',' {
			i = jsonscan.Space(raw, i+1)
		}
	}
	return i < len(raw)
}

// bare returns a string without its quotes, still escaped; nil for other values.
func bare(v []byte) []byte {
	if len(v) < 2 || v[0] != '"' {
		return nil
	}
	return v[1 : len(v)-1]
}

// text returns the content of a string, cut to about limit bytes of its JSON.
func text(v []byte, limit int) string {
	in := bare(v)
	if len(in) > limit {
		in = in[:wholeRunes(in, limit)]
	}
	if bytes.IndexByte(in, '\\') < 0 {
		return string(in)
	}
	return gjson.Parse(`"` + string(in) + `"`).String()
}

// wholeRunes returns the length of the longest prefix of at most limit bytes that splits
// neither an escape sequence nor a UTF-8 sequence.
func wholeRunes(in []byte, limit int) int {
	end := 0
	for end < limit {
		next := end + 1
		switch c := in[end]; {
		case c == '\\' && end+1 < len(in) && in[end+1] == 'u':
			next = end + 6
		case c == '\\':
			next = end + 2
		case c >= 0xc0:
			for next < len(in) && in[next]&0xc0 == 0x80 {
				next++
			}
		}
		if next > limit {
			break
		}
		end = next
	}
	return end
}

// cutText returns a copy of the beginning of a text of at most limit bytes.
func cutText(t string, limit int) string { return strings.Clone(ace.Head(t, limit)) }

// contentText returns the text of a content, a string or a list of objects with texts, up to about limit
// bytes.
func contentText(content []byte, limit int) string {
	if len(content) > 0 && content[0] == '"' {
		return text(content, limit)
	}
	var out []byte
	var o object
	scan(content, '[', func(_, v []byte) {
		if len(out) >= limit || !o.parse(v) {
			return
		}
		if t := text(o.get("text"), limit-len(out)); t != "" {
			if len(out) > 0 {
				out = append(out, '\n')
			}
			out = append(out, t...)
		}
	})
	return string(out)
}
