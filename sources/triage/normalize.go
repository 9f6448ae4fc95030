package triage

import (
	"net"
	"net/netip"
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
	if len(core) != 3 || number(core) == "" {
		return false
	}
	switch n.word {
	case "status", "code", "http", "http/1.1", "http/2":
		return true
	}
	return false
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
	if n.holder == holder {
		between := n.out.String()[n.between:]
		if strings.Trim(between, " ,;") == "" {
			rest := n.out.String()[:n.between]
			n.out.Reset()
			n.out.WriteString(rest)
			return
		}
	}
	n.out.WriteString(holder)
	n.holder, n.between, n.word = holder, n.out.Len(), ""
}

// placeholder returns the placeholder of a word, or "" if the word stays.
func placeholder(w string) string {
	switch {
	case w == "":
		return ""
	case strings.Contains(w, "://"):
		return "<url>"
	case isUUID(w):
		return "<uuid>"
	case isTime(w):
		return "<time>"
	case isAddress(w):
		return "<addr>"
	case isPath(w):
		return "<path>"
	case number(w) != "":
		return "<n>"
	case isDuration(w):
		return "<duration>"
	case isSize(w):
		return "<size>"
	case isHex(w):
		return "<hex>"
	case strings.ContainsAny(w, "0123456789") && !strings.Contains(w, ":"):
		return "<id>"
	}
	return ""
}

func isUUID(w string) bool {
	if len(w) != 36 {
		return false
	}
	for i := range len(w) {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (w[i] == '-') || !dash && !hexDigit(w[i]) {
			return false
		}
	}
	return true
}

func hexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
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
	return host == "localhost" || strings.Contains(host, ".") || number(host) == "" && len(port) > 3 && host != ""
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

// number returns the number in a word with a sign, a fraction, thousands separators, or a percent, dollar or
// number sign; otherwise "".
func number(w string) string {
	digits := strings.TrimPrefix(strings.TrimLeft(w, "+-#$~"), "#")
	digits = strings.TrimRight(digits, "%")
	if digits == "" || digits[0] < '0' || digits[0] > '9' || strings.Trim(digits, "0123456789._eE+-/") != "" ||
		strings.Count(digits, "-") > 1 || strings.Contains(digits, "--") {
		return ""
	}
	return digits
}

func isDuration(w string) bool {
	if _, err := time.ParseDuration(strings.ReplaceAll(w, "µ", "u")); err == nil {
		return true
	}
	at := strings.IndexFunc(w, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if at <= 0 {
		return false
	}
	switch strings.ToLower(w[at:]) {
	case "d", "sec", "secs", "min", "mins", "hr", "hrs", "days":
		return true
	}
	return false
}

// isSize reports whether w is a number of bytes with a unit.
func isSize(w string) bool {
	unit := strings.ToLower(strings.TrimLeft(w, "0123456789."))
	if len(unit) == len(w) {
		return false
	}
	switch unit {
	case "b", "kb", "mb", "gb", "kib", "mib", "gib", "bytes":
		return true
	}
	return false
}

func isHex(w string) bool {
	digits, marked := strings.CutPrefix(strings.ToLower(w), "0x")
	if digits == "" || !marked && len(digits) < 7 {
		return false
	}
	for i := range len(digits) {
		if !hexDigit(digits[i]) {
			return false
		}
	}
	return marked || strings.ContainsAny(digits, "0123456789")
}
