package widget

import (
	"regexp"

	"acescope/theme"
)

// jsonToken matches a string with the colon of a name, a number, a constant, punctuation, or any other
// character.
var jsonToken = regexp.MustCompile(
	`("(?:[^"\\]|\\.)*"?)(\s*:)?|(-?\d[\d.eE+-]*)|(true|false|null)\b|([\s,:\[\]{}]+)|.`)

// jsonSpans colors a line of JSON.
func jsonSpans(line string, s theme.Styles) (out []Span) {
	for _, m := range jsonToken.FindAllStringSubmatch(line, -1) {
		switch {
		case m[2] != "":
			out = append(out, Span{s.Accent, m[1]}, Span{s.Muted, m[2]})
		case m[1] != "":
			out = append(out, Span{s.Added, m[0]})
		case m[3] != "":
			out = append(out, Span{s.Timeout, m[0]})
		case m[4] != "":
			out = append(out, Span{s.Updated, m[0]})
		case m[5] != "":
			out = append(out, Span{s.Muted, m[0]})
		default:
			out = append(out, Span{s.Text, m[0]})
		}
	}
	return out
}
