package text

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"acescope/engine/ace"

	"github.com/tidwall/gjson"
)

// Payload returns a JSON value in one line: a string without quotes, an object without braces.
func Payload(raw json.RawMessage) string {
	var v string
	if json.Unmarshal(raw, &v) == nil {
		return Safe(v, " ")
	}
	s := Safe(strings.TrimSpace(string(raw)), " ")
	if strings.HasPrefix(s, "{") && strings.HasSuffix(s, "}") && len(s) > 1 {
		return s[1 : len(s)-1]
	}
	return s
}

// Indented returns indented JSON; other text unchanged.
func Indented(raw string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(raw), "", "  ") != nil {
		return raw
	}
	return b.String()
}

// Members returns a JSON object as safe lines: each member on its own, strings unquoted. Characters that
// cannot be shown are dropped; a last line counts them.
func Members(raw []byte) []string {
	var lines []string
	dropped := 0
	add := func(indent, content string) {
		for l := range strings.SplitSeq(strings.ReplaceAll(content, "\r\n", "\n"), "\n") {
			l = strings.ReplaceAll(l, "\t", Spaces(TabWidth))
			safe := Safe(l, " ")
			dropped += max(utf8.RuneCountInString(l)-utf8.RuneCountInString(safe), 0)
			lines = append(lines, indent+safe)
		}
	}
	if members := gjson.ParseBytes(raw); !members.IsObject() || !json.Valid(raw) {
		add("", Indented(string(raw)))
	} else {
		members.ForEach(func(name, member gjson.Result) bool {
			value := Indented(member.Raw)
			if member.Type == gjson.String {
				value = member.String()
			}
			if strings.Contains(value, "\n") {
				add("", name.String()+":")
				add("  ", value)
			} else {
				add("", name.String()+": "+value)
			}
			return true
		})
		if len(lines) == 0 {
			lines = []string{"(no arguments)"}
		}
	}
	if dropped > 0 {
		lines = append(lines, "", ace.Count(dropped, "character")+" removed because the terminal might act on them")
	}
	return lines
}
