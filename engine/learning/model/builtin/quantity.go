package builtin

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxQuantities bounds the quantities of one question. Later ones are ignored.
const maxQuantities = 14

// class is the kind of a quantity.
type class string

const (
	classMoney     class = "amount"
	classPercent   class = "percent"
	classNumber    class = "number"
	classPeriod    class = "period"
	classFrequency class = "times per year"
)

// continuous is the number of compoundings per year that stands for continuous compounding.
// With it, (1+r/n)^n equals e^r to more digits than an answer has.
const continuous = 1e6

// quantity is a number in a question. Value is the number times its scale: 5% is 5, 1.2
// million is 1200000, 9 months is 9 with Unit "months". Side quantities come from words
// ("monthly", "one-year"), which a recipe need not use.
type quantity struct {
	Value float64 `json:"value"`
	Class class   `json:"class"`
	Unit  string  `json:"unit,omitempty"`
	Near  []near  `json:"near,omitempty"`
	Side  bool    `json:"side,omitempty"`

	first, last int // tokens
}

// near is a word near a quantity and its distance, at least 1. A boundary such as a comma
// counts as several words.
type near struct {
	Word     string  `json:"word"`
	Distance float64 `json:"distance"`
}

var scales = map[string]float64{
	"thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6, "m": 1e6, "billion": 1e9, "bn": 1e9, "b": 1e9, "trillion": 1e12,
}

// periodUnits maps words to the unit of a period.
var periodUnits = map[string]string{
	"year": "years", "yr": "years", "annum": "years", "month": "months", "week": "weeks", "day": "days",
	"quarter": "quarters", "semester": "half-years", "half-year": "half-years", "period": "periods", "decade": "decades",
}

var perYear = map[string]float64{
	"years": 1, "months": 12, "weeks": 52, "days": 365, "quarters": 4, "half-years": 2, "decades": 0.1,
}

// frequencies maps words to times per year.
var frequencies = map[string]float64{
	"monthly": 12, "quarterly": 4, "semiannually": 2, "semiannual": 2, "biannually": 2, "annually": 1, "yearly": 1,
	"weekly": 52, "daily": 365, "bimonthly": 6, "fortnightly": 26, "continuously": continuous, "continuous": continuous,
}

var numerals = map[string]float64{
	"half": 0.5, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
	"nine": 9, "ten": 10, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30,
}

var currencies = map[string]bool{
	"dollar": true, "euro": true, "usd": true, "eur": true, "gbp": true, "pound": true, "yen": true, "cent": true,
}

// quantities returns the quantities of a question in order, with the words around each.
func quantities(question string) []quantity {
	tokens := tokenize(question)
	var found []quantity
	for i := 0; i < len(tokens) && len(found) < maxQuantities; i++ {
		q, ok := quantityAt(tokens, i)
		if !ok {
			continue
		}
		found = append(found, q)
		i = q.last
	}
	surround(tokens, found)
	return found
}

func quantityAt(tokens []token, i int) (quantity, bool) {
	if tokens[i].kind == tokenNumber {
		return numberAt(tokens, i)
	}
	if tokens[i].kind == tokenWord {
		return wordAt(tokens, i)
	}
	return quantity{}, false
}

// numberAt parses a number with its scale, percent sign or unit.
func numberAt(tokens []token, i int) (quantity, bool) {
	t := tokens[i]
	q := quantity{Value: t.value, Class: classNumber, first: i, last: i}
	if i > 1 && t.glued {
		word, dash := tokens[i-2], tokens[i-1]
		if word.kind == tokenWord && dash.kind == tokenBreak && dash.text == "-" && dash.glued {
			return q, false // a name such as F-16
		}
	}
	if t.currency {
		q.Class = classMoney
	}
	next := following(tokens, i)
	if w, glued := next.word(0), next.token(0).glued; w != "" {
		if ordinal(w) && glued {
			return q, false
		}
		if scale, ok := scales[w]; ok && (glued || len(w) > 2) {
			q.Value *= scale
			q.last = next.index(0)
			next = following(tokens, q.last)
		}
	}
	if next.sign(0) == "%" {
		q.Class, q.last = classPercent, next.index(0)
		return q, true
	}
	unit(&q, next)
	return q, q.Class != classNumber || !looksLikeYear(t, q)
}

// unit recognises "percent", a currency word or a unit of time after a number.
func unit(q *quantity, next lookahead) {
	skip := 0
	if next.sign(0) == "-" {
		skip = 1
	}
	w := next.word(skip)
	switch {
	case w == "percent" || w == "percentage" || w == "pct":
		q.Class, q.last = classPercent, next.index(skip)
	case w == "per" && next.word(skip+1) == "cent":
		q.Class, q.last = classPercent, next.index(skip+1)
	case currencies[w]:
		q.Class, q.last = classMoney, next.index(skip)
	case w == "time" && q.Class == classNumber && next.word(skip+1) != "":
		q.Class, q.last = classFrequency, next.index(skip)
	case q.Class == classNumber && periodUnits[w] != "":
		q.Class, q.Unit, q.last = classPeriod, periodUnits[w], next.index(skip)
	}
}

// looksLikeYear reports whether the number is a year such as 2023.
func looksLikeYear(t token, q quantity) bool {
	bare := !t.grouped && !t.currency && q.first == q.last
	return bare && q.Value >= 1900 && q.Value <= 2100 && q.Value == math.Trunc(q.Value)
}

func ordinal(w string) bool { return w == "st" || w == "nd" || w == "rd" || w == "th" }

// wordAt parses "monthly", "every two months", "three years" and "semi-annually".
func wordAt(tokens []token, i int) (quantity, bool) {
	w := tokens[i].text
	q := quantity{first: i, last: i, Side: true}
	next := following(tokens, i)
	if f, ok := frequencies[w]; ok {
		q.Value, q.Class = f, classFrequency
		return q, true
	}
	if (w == "semi" || w == "bi") && next.sign(0) == "-" {
		if v := next.word(1); v == "annually" || v == "annual" || v == "monthly" {
			q.Value, q.Class, q.last = 2, classFrequency, next.index(1)
			if v == "monthly" {
				q.Value = 6
			}
			return q, true
		}
	}
	if w == "every" || w == "each" {
		return every(q, tokens)
	}
	v, ok := numerals[w]
	if !ok {
		return q, false
	}
	skip := 0
	if next.sign(0) == "-" || next.word(0) == "a" {
		skip = 1
	}
	u := next.word(skip)
	if periodUnits[u] == "" {
		return q, false
	}
	q.Value, q.Class, q.Unit, q.last = v, classPeriod, periodUnits[u], next.index(skip)
	return q, true
}

// every parses "every quarter" and "every two months" as times per year.
func every(q quantity, tokens []token) (quantity, bool) {
	next := following(tokens, q.first)
	count, skip := 1.0, 0
	if t := next.token(0); t.kind == tokenNumber && t.value > 0 {
		count, skip = t.value, 1
	} else if v, ok := numerals[next.word(0)]; ok {
		count, skip = v, 1
	}
	u := next.word(skip)
	times, ok := perYear[periodUnits[u]]
	if !ok || skip == 0 && u == "year" {
		return q, false
	}
	q.Value, q.Class, q.last = times/count, classFrequency, next.index(skip)
	return q, true
}

// lookahead reads the tokens after one.
type lookahead struct {
	tokens []token
	from   int
}

func following(tokens []token, i int) lookahead { return lookahead{tokens, i + 1} }

func (l lookahead) index(k int) int { return l.from + k }

func (l lookahead) token(k int) token {
	if l.from+k < len(l.tokens) {
		return l.tokens[l.from+k]
	}
	return token{kind: tokenBreak}
}

func (l lookahead) word(k int) string {
	if t := l.token(k); t.kind == tokenWord {
		return t.text
	}
	return ""
}

func (l lookahead) sign(k int) string {
	if t := l.token(k); t.kind == tokenBreak {
		return t.text
	}
	return ""
}

// Distances of words around a quantity.
const (
	reach       = 9.0
	maxNear     = 12
	costWord    = 1.0
	costFiller  = 0.4
	costClause  = 2.5
	costStop    = 5.0
	costForward = 0.3 // words after a quantity describe it a little less
)

// surround sets the words around each quantity, nearest first, up to the adjacent quantities.
func surround(tokens []token, found []quantity) {
	for k := range found {
		low, high := 0, len(tokens)
		if k > 0 {
			low = found[k-1].last + 1
		}
		if k+1 < len(found) {
			high = found[k+1].first
		}
		q := &found[k]
		before := walk(tokens, q.first-1, -1, low-1, 0)
		after := walk(tokens, q.last+1, 1, high, costForward)
		q.Near = merge(before, after)
	}
}

// walk collects words in one direction.
func walk(tokens []token, from, step, end int, distance float64) []near {
	var out []near
	for i := from; i != end && i >= 0 && i < len(tokens); i += step {
		t := tokens[i]
		switch {
		case t.kind == tokenWord && clauseWords[t.text]:
			distance += costClause
		case t.kind == tokenWord && fillers[t.text]:
			distance += costFiller
		case t.kind == tokenWord:
			distance += costWord
			out = append(out, near{t.text, distance})
		case strings.Contains(".\n?!", t.text):
			distance += costStop
		case strings.Contains(",;", t.text):
			distance += costClause
		}
		if distance > reach {
			break
		}
	}
	return out
}

// merge merges two lists sorted by distance, without repeated words.
func merge(a, b []near) []near {
	out := make([]near, 0, maxNear)
	for (len(a) > 0 || len(b) > 0) && len(out) < maxNear {
		from := &a
		if len(a) == 0 || len(b) > 0 && b[0].Distance < a[0].Distance {
			from = &b
		}
		n := (*from)[0]
		*from = (*from)[1:]
		if !contains(out, n.Word) {
			out = append(out, n)
		}
	}
	return out
}

func contains(list []near, word string) bool {
	return slices.ContainsFunc(list, func(n near) bool { return n.Word == word })
}

var clauseWords = set("and while with but when where whereas against versus plus then or")

var fillers = set(`the of a an in is it to at for if has have had by on what be was were are that this its their from
 as which who will would should can could do doe did being been there these those our your my his her they we you
 also into over about amount amounting total totaling stand stood currently current report reported recorded`)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[fold(w)] = true
	}
	return m
}

// Bounds of a question. The rest is ignored.
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

// token is a word, a number or a sign.
type token struct {
	kind     tokenKind
	text     string // a word, lower-case and singular; or the sign
	value    float64
	glued    bool // directly follows the previous token
	currency bool // the number has a currency sign
	grouped  bool // the number has commas or a decimal point
	negative bool
}

// tokenPattern matches white space, a number, a word, a currency sign, or any other character.
var tokenPattern = regexp.MustCompile(`([\t\v\f\r\p{Z}\x{85}]+)` +
	`|([0-9](?:[0-9]|,[0-9]{3})*(?:\.[0-9]+)?|\.[0-9]+)` +
	`|([\p{L}_][\p{L}\p{Nd}_'’]*)` +
	`|([$€£¥₹])` +
	`|(?s:.)`)

// tokenize splits text into tokens. Words are folded, so that equal words compare equal.
func tokenize(text string) []token {
	text = text[:min(len(text), maxQuestion)]
	var out []token
	next := token{glued: true} // what is known of the next token
	emit := func(t token) {
		t.glued = next.glued
		out = append(out, t)
		next.glued = true
		if t.kind != tokenBreak {
			next.currency, next.negative = false, false
		}
	}
	for _, m := range tokenPattern.FindAllStringSubmatchIndex(text, -1) {
		if len(out) == maxTokens {
			break
		}
		part := text[m[0]:m[1]]
		switch {
		case m[2] >= 0:
			next.glued = false
		case m[4] >= 0:
			t := token{kind: tokenNumber, currency: next.currency, grouped: strings.ContainsAny(part, ",.")}
			t.value, _ = strconv.ParseFloat(strings.ReplaceAll(part, ",", ""), 64)
			if next.negative {
				t.value = -t.value
			}
			emit(t)
		case m[6] >= 0:
			emit(token{kind: tokenWord, text: fold(part)})
		case m[8] >= 0:
			next.currency = true
		case strings.Contains("-−–", part) && startsNumber(text[:m[0]], text[m[1]:], next.currency):
			next.negative = true
		default:
			emit(token{kind: tokenBreak, text: strings.ToValidUTF8(part, "�")})
		}
	}
	return out
}

// startsNumber reports whether a minus belongs to the number after it: it follows white space, a
// parenthesis or a currency sign, and precedes a digit or a currency sign.
func startsNumber(before, after string, currency bool) bool {
	r, _ := utf8.DecodeRuneInString(after)
	if !isDigit(r) && r != '.' && !strings.ContainsRune("$€£¥₹", r) {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(before)
	return before == "" || currency || unicode.IsSpace(last) || last == '('
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// fold normalizes a word: lower case, without possessive and plural endings.
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
