package triage

import (
	"regexp"
	"strings"
	"sync"
)

// maxPattern bounds the bytes of a message that [Normalize] reads.
const maxPattern = 1024

// Normalize returns what the messages of one kind of failure have in common. What differs between runs
// becomes a placeholder: <n> (number), <id>, <hex>, <uuid>, <time>, <duration>, <size>, <addr>, <path>, <url>
// or <text> (quoted). Words stay, and so do the three digits of a status code, because 404 and 503 are
// different failures. The result is one line made from the first maxPattern bytes.
func Normalize(message string) string {
	message = message[:min(len(message), maxPattern)]
	line := strings.Join(strings.Fields(strings.ToValidUTF8(message, "?")), " ")
	line = tokens.ReplaceAllStringFunc(line, func(token string) string {
		switch {
		case statusCode.MatchString(token):
			return token
		case strings.ContainsAny(token[:1], "\"'`"):
			return "<text>"
		case strings.Contains(token, "://"):
			return "<url>"
		}
		return withHolder(token)
	})
	for _, list := range lists() {
		line = list.pattern.ReplaceAllString(line, list.holder)
	}
	return line
}

// A message is read as status codes, quoted texts, URLs, words, and the separators between them. A quotation
// mark within a word or after it is an apostrophe.
const (
	status = `(?i:status|code|http(?:/1\.1|/2)?)[ :=(]+\d{3}\b`
	quoted = `"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|` + "`(?:\\\\.|[^`\\\\])*`"
	letter = `[^ =(),;\[\]{}<>|"'` + "`]"
	url    = letter + `*://[^ )>\]"'` + "`]*"
	word   = letter + `+(?:["'` + "`]" + letter + `*)*`
)

var (
	tokens     = regexp.MustCompile(status + `|` + quoted + `|` + url + `|` + word)
	statusCode = regexp.MustCompile(`^` + status + `$`)
)

// withHolder returns the placeholder of a word that differs between runs, or the word. It keeps the
// punctuation after it, and treats words joined by a colon one by one.
func withHolder(word string) string {
	core := strings.TrimRight(word, ".:!?")
	tail := word[len(core):]
	if h := holder(core); h != "" {
		return h + tail
	}
	if before, after, ok := strings.Cut(core, ":"); ok {
		return withHolder(before) + ":" + withHolder(after) + tail
	}
	return word
}

// holder returns the placeholder of a word, or "" if the word stays.
func holder(word string) string {
	for _, k := range kinds() {
		if k.pattern.MatchString(word) {
			return k.holder
		}
	}
	return ""
}

type kind struct {
	holder  string
	pattern *regexp.Regexp
}

// kinds are the words that differ between runs. The first match decides.
var kinds = sync.OnceValue(func() []kind {
	return []kind{
		{"<uuid>", regexp.MustCompile(`(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)},
		{"<time>", regexp.MustCompile(`^\d{4}[-/]\d\d[-/]\d\d(T\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d:\d\d)?)?$`)},
		{"<time>", regexp.MustCompile(`^\d\d?:\d\d(:\d\d(\.\d+)?)?Z?$`)},
		{"<addr>", regexp.MustCompile(
			`^\d{1,3}(\.\d{1,3}){3}$|(?i)^[0-9a-f:]*::[0-9a-f:]*$|^([0-9a-f]+:){7}[0-9a-f]+$`)},
		{"<addr>", regexp.MustCompile(`^(localhost|[^:]*\.[^:]*):\d{2,5}$|^[^:]*[A-Za-z_][^:]*:\d{4,5}$`)},
		{"<path>", regexp.MustCompile(`^(/.|\.\.?/|~/|[A-Za-z]:[\\/].)|/.*/|[\d.].*/|/.*[\d.]`)},
		{"", regexp.MustCompile(`^\D*$`)},
		// A number may have a sign, a fraction, separators, or a percent, dollar or number sign.
		{"<n>", regexp.MustCompile(`^[-+#$~]*\d[\d._eE+/]*(-[\d._eE+/]*)?%*$`)},
		{"<duration>", regexp.MustCompile(
			`^[-+]?([\d.]+(ns|us|µs|μs|ms|s|m|h))+$|(?i)^[\d.]+(d|days|secs?|mins?|hrs?)$`)},
		{"<size>", regexp.MustCompile(`(?i)^[\d.]+(([kmg]i?)?b|bytes)$`)},
		{"<hex>", regexp.MustCompile(`(?i)^(0x[0-9a-f]+|[0-9a-f]{7,})$`)},
		{"", regexp.MustCompile(`:`)},
		{"<id>", regexp.MustCompile(``)},
	}
})

// lists are enumerations of equal placeholders, which become one.
var lists = sync.OnceValue(func() (all []kind) {
	const placeholders = "<uuid> <time> <addr> <path> <n> <duration> <size> <hex> <id> <text> <url>"
	for _, h := range strings.Fields(placeholders) {
		all = append(all, kind{h, regexp.MustCompile(h + `(?:[ ,;]*` + h + `)+`)})
	}
	return all
})
