package playbook

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxSection = 200
	maxCount   = 1_000_000_000
)

// cleanContent makes text safe to keep: UTF-8, lines ended by \n, no other control
// character but the tab, no blank lines or spaces at either end.
func cleanContent(s string) string {
	return strings.TrimSpace(cleanText(s))
}

func cleanText(s string) string {
	if plain(s) {
		return s
	}
	s = strings.ToValidUTF8(s, "�")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case r != '\n' && r != '\t' && unicode.IsControl(r):
			return -1
		}
		return r
	}, s)
}

// plain tells that there is nothing to clean.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return false
		}
		if s[i] >= utf8.RuneSelf {
			return utf8.ValidString(s[i:]) && !strings.ContainsFunc(s[i:], func(r rune) bool {
				return r != '\n' && r != '\t' && unicode.IsControl(r)
			})
		}
	}
	return true
}

// cleanSection is a section name on one line, of at most maxSection bytes.
func cleanSection(s string) string {
	s = strings.Join(strings.Fields(cleanContent(s)), " ")
	return strings.TrimSpace(cut(s, maxSection))
}

// folded is what two contents that say the same have in common: white space does not
// count.
func folded(s string) string {
	space := true
	for i := 0; i < len(s); i++ {
		c := s[i]
		odd := c == '\n' || c == '\t' || c >= utf8.RuneSelf || c == ' ' && space
		if odd {
			return strings.Join(strings.Fields(s), " ")
		}
		space = c == ' '
	}
	return s
}

// cut shortens to at most n bytes without splitting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func validCount(n int) bool { return n >= 0 && n <= maxCount }
