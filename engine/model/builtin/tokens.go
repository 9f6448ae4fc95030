package builtin

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what is read of a question: the rest is ignored.
const (
	maxQuestion = 8 << 10 // bytes
	maxTokens   = 1500
	maxWord     = 40 // bytes of a word that can be a cue
)

type tokenKind byte

const (
	tokenWord tokenKind = iota
	tokenNumber
	tokenBreak // a sign or a line's end
)

// token is a word, a number or a sign of a question.
type token struct {
	kind     tokenKind
	text     string // of a word in lower case, singular; of a break the sign
	value    float64
	glued    bool // nothing stands between it and the token before
	currency bool // a currency sign stood before the number
	grouped  bool // the number was written with commas or a decimal point
	negative bool
}

// tokenize splits text into tokens. Numbers lose their group commas; words are folded
// so that equal words compare equal.
func tokenize(text string) []token {
	s := scanner{text: text[:min(len(text), maxQuestion)], glued: true}
	for s.at < len(s.text) && len(s.out) < maxTokens {
		s.step()
	}
	return s.out
}

type scanner struct {
	text     string
	at       int
	out      []token
	glued    bool
	currency bool
	negative bool
}

func (s *scanner) step() {
	r, size := utf8.DecodeRuneInString(s.text[s.at:])
	switch {
	case r == '\n':
		s.at += size
		s.emit(token{kind: tokenBreak, text: "\n"})
	case unicode.IsSpace(r):
		s.at += size
		s.glued = false
	case isDigit(r) || r == '.' && s.digitAt(s.at+1):
		s.number()
	case unicode.IsLetter(r) || r == '_':
		s.word()
	case strings.ContainsRune("$€£¥₹", r):
		s.at += size
		s.currency = true
	case strings.ContainsRune("-−–", r) && s.startsNumber(s.at+size):
		s.at += size
		s.negative = true
	default:
		s.at += size
		s.emit(token{kind: tokenBreak, text: string(r)})
	}
}

func (s *scanner) emit(t token) {
	t.glued = s.glued
	s.out = append(s.out, t)
	s.glued = true
	if t.kind == tokenNumber || t.text != "\n" && t.kind != tokenBreak {
		s.currency, s.negative = false, false
	}
}

// startsNumber tells whether a sign just before i belongs to a number: it follows a
// blank or a bracket and a digit or a currency sign comes next.
func (s *scanner) startsNumber(i int) bool {
	r, _ := utf8.DecodeRuneInString(s.text[i:])
	if !isDigit(r) && r != '.' && !strings.ContainsRune("$€£¥₹", r) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(s.text[:s.at])
	return s.at == 0 || s.currency || unicode.IsSpace(before) || before == '('
}

func (s *scanner) digitAt(i int) bool { return i < len(s.text) && isDigit(rune(s.text[i])) }

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// number reads digits with commas between groups of three and one decimal point.
func (s *scanner) number() {
	t := token{kind: tokenNumber, currency: s.currency, negative: s.negative}
	scale := 1.0
	digits, point := 0, false
	for ; s.at < len(s.text); s.at++ {
		c := s.text[s.at]
		switch {
		case isDigit(rune(c)):
			if digits++; digits <= 18 {
				t.value = t.value*10 + float64(c-'0')
			} else if !point {
				t.value *= 10
			}
			if point && digits <= 18 {
				scale *= 10
			}
			continue
		case c == ',' && !point && s.digitAt(s.at+1) && s.digitAt(s.at+2) && s.digitAt(s.at+3):
			t.grouped = true
			continue
		case c == '.' && !point && s.digitAt(s.at+1):
			point, t.grouped = true, true
			continue
		}
		break
	}
	t.value /= scale
	if t.negative {
		t.value = -t.value
	}
	s.emit(t)
}

func (s *scanner) word() {
	start := s.at
	for s.at < len(s.text) {
		r, size := utf8.DecodeRuneInString(s.text[s.at:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '\'' && r != '’' {
			break
		}
		s.at += size
	}
	s.emit(token{kind: tokenWord, text: fold(s.text[start:s.at])})
}

// fold gives words of one stem one spelling: lower case, without a possessive or a
// plural ending.
func fold(word string) string {
	w := strings.ToLower(strings.ToValidUTF8(word, ""))
	w = strings.ReplaceAll(w, "’", "'")
	w = strings.TrimSuffix(strings.TrimSuffix(w, "'s"), "'")
	switch {
	case len(w) > 4 && strings.HasSuffix(w, "ies"):
		w = w[:len(w)-3] + "y"
	case len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us"):
		w = w[:len(w)-1]
	}
	if len(w) > maxWord {
		w = strings.ToValidUTF8(w[:maxWord], "")
	}
	return w
}
