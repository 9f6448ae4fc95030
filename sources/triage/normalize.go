package triage

import (
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxPattern bounds the bytes of a message that [Normalize] reads.
const maxPattern = 1024

// Normalize returns what the messages of one kind of failure have in common. What differs between runs becomes a
// placeholder: <n> (number), <id>, <hex>, <uuid>, <time>, <duration>, <size>, <addr>, <path>, <url> or <text>
// (quoted). Words stay, and so do the three digits of a status code, because 404 and 503 are different failures. The
// result is one line made from the first maxPattern bytes.
func Normalize(message string) string {
	if len(message) > maxPattern {
		message = message[:maxPattern]
	}
	n := normalizer{in: strings.Join(strings.Fields(strings.ToValidUTF8(message, "?")), " ")}
	for n.at < len(n.in) {
		n.next()
	}
	return strings.TrimSpace(n.out.String())
}

// normalizer reads a message from left to right.
type normalizer struct {
	in      string
	at      int
	out     strings.Builder
	word    string // last word before the current one, in lower case
	holder  string // last placeholder, "" after a word
	between int    // length of out after it
}

// next reads one token: a quoted text, a separator or a word.
func (n *normalizer) next() {
	c := n.in[n.at]
	if end := n.quoted(c); end > 0 {
		n.put("<text>")
		n.at = end
		return
	}
	if separates(c) {
		n.out.WriteByte(c)
		n.at++
		return
	}
	end := n.at
	for end < len(n.in) && !separates(n.in[end]) {
		end++
	}
	word := n.in[n.at:end]
	if strings.Contains(word, "://") { // an address contains separators
		for end < len(n.in) && strings.IndexByte(" )>]\"'`", n.in[end]) < 0 {
			end++
		}
	}
	n.at = end
	n.write(word)
}

func separates(c byte) bool { return strings.IndexByte(" =(),;[]{}<>|\"'`", c) >= 0 }

// quoted returns the end of the quotation that begins here, or 0. A quotation mark inside a word is an
// apostrophe.
func (n *normalizer) quoted(c byte) int {
	if c != '"' && c != '\'' && c != '`' || n.at > 0 && wordEnds(n.in[:n.at]) {
		return 0
	}
	for i := n.at + 1; i < len(n.in); i++ {
		if n.in[i] == '\\' {
			i++
			continue
		}
		if n.in[i] == c && !wordBegins(n.in[i+1:]) {
			return i + 1
		}
	}
	return 0
}

func wordEnds(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

func wordBegins(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// write writes a word or its placeholder. It keeps the punctuation around it.
func (n *normalizer) write(word string) {
	core := strings.TrimRight(word, ".:!?")
	tail := word[len(core):]
	if h := placeholder(core); h != "" && !n.status(core) {
		n.put(h)
	} else if before, after, ok := strings.Cut(core, ":"); ok && h == "" {
		n.keep(before)
		n.out.WriteByte(':')
		if after != "" {
			n.write(after)
		}
	} else {
		n.keep(core)
	}
	n.out.WriteString(tail)
}

// status reports whether a number is a status code, by the previous word.
func (n *normalizer) status(core string) bool {
	return len(core) == 3 && number.MatchString(core) &&
		slices.Contains([]string{"status", "code", "http", "http/1.1", "http/2"}, n.word)
}

func (n *normalizer) keep(word string) {
	if h := placeholder(word); h != "" && !n.status(word) {
		n.put(h)
		return
	}
	n.out.WriteString(word)
	n.word, n.holder = strings.ToLower(word), ""
}

// put writes a placeholder, once for a list of equal ones.
func (n *normalizer) put(holder string) {
	if text := n.out.String(); n.holder == holder && strings.Trim(text[n.between:], " ,;") == "" {
		n.out.Reset()
		n.out.WriteString(text[:n.between])
		return
	}
	n.out.WriteString(holder)
	n.holder, n.between, n.word = holder, n.out.Len(), ""
}

// Words that differ between runs.
var (
	uuid = regexp.MustCompile(`(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	// number may have a sign, a fraction, separators, or a percent, dollar or number sign.
	number   = regexp.MustCompile(`^[-+#$~]*\d[\d._eE+/]*(-[\d._eE+/]*)?%*$`)
	duration = regexp.MustCompile(`^[-+]?([\d.]+(ns|us|µs|μs|ms|s|m|h))+$|(?i)^[\d.]+(d|days|secs?|mins?|hrs?)$`)
	size     = regexp.MustCompile(`(?i)^[\d.]+(([kmg]i?)?b|bytes)$`)
	hex      = regexp.MustCompile(`(?i)^(0x[0-9a-f]+|[0-9a-f]{7,})$`)
)

// placeholder returns the placeholder of a word, or "" if the word stays.
func placeholder(w string) string {
	hasDigit := strings.ContainsAny(w, "0123456789")
	switch {
	case strings.Contains(w, "://"):
		return "<url>"
	case uuid.MatchString(w):
		return "<uuid>"
	case isTime(w):
		return "<time>"
	case isAddress(w):
		return "<addr>"
	case isPath(w):
		return "<path>"
	case !hasDigit:
		return ""
	case number.MatchString(w):
		return "<n>"
	case duration.MatchString(w):
		return "<duration>"
	case size.MatchString(w):
		return "<size>"
	case hex.MatchString(w):
		return "<hex>"
	case !strings.Contains(w, ":"):
		return "<id>"
	}
	return ""
}

func isTime(w string) bool {
	if len(w) < 5 || w[0] < '0' || w[0] > '9' {
		return false
	}
	w = strings.TrimSuffix(w, "Z")
	for _, layout := range []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02", "2006/01/02", "15:04:05", "15:04"} {
		if _, err := time.Parse(layout, w); err == nil {
			return true
		}
	}
	return false
}

// isAddress reports whether w is an IP address, with or without a port, or a name with a port.
func isAddress(w string) bool {
	if a, err := netip.ParseAddr(w); err == nil {
		return a.Is4() || strings.Contains(w, "::") || strings.Count(w, ":") == 7
	}
	host, port, err := net.SplitHostPort(w)
	if err != nil || len(port) < 2 || len(port) > 5 || strings.Trim(port, "0123456789") != "" {
		return false
	}
	return host == "localhost" || strings.Contains(host, ".") || !number.MatchString(host) && len(port) > 3 && host != ""
}

// isPath reports whether w is a file path, not two words with a slash between them.
func isPath(w string) bool {
	switch {
	case strings.HasPrefix(w, "/") && len(w) > 1, strings.HasPrefix(w, "./"), strings.HasPrefix(w, "../"), strings.HasPrefix(w, "~/"):
		return true
	case len(w) > 3 && w[1] == ':' && (w[2] == '\\' || w[2] == '/'):
		return true
	}
	return strings.Count(w, "/") > 1 || strings.Contains(w, "/") && strings.ContainsAny(w, "0123456789.")
}
