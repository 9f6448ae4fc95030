package builtin

import (
	"cmp"
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
	"thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6, "m": 1e6, "billion": 1e9, "bn": 1e9, "b": 1e9,
	"trillion": 1e12,
}

// periodUnits maps words to the unit of a period.
var periodUnits = map[string]string{
	"year": "years", "yr": "years", "annum": "years", "month": "months", "week": "weeks", "day": "days",
	"quarter": "quarters", "semester": "half-years", "half-year": "half-years", "period": "periods",
	"decade": "decades",
}

var perYear = map[string]float64{
	"years": 1, "months": 12, "weeks": 52, "days": 365, "quarters": 4, "half-years": 2, "decades": 0.1,
}

// frequencies maps words to times per year.
var frequencies = map[string]float64{
	"monthly": 12, "quarterly": 4, "semiannually": 2, "semiannual": 2, "biannually": 2, "biannual": 2,
	"annually": 1,
	"yearly":   1, "weekly": 52, "daily": 365, "bimonthly": 6, "semimonthly": 24, "fortnightly": 26,
	"continuously": continuous, "continuous": continuous,
}

var numerals = map[string]float64{
	"half": 0.5, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
	"nine": 9, "ten": 10, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30,
}

var currencies = map[string]bool{
	"dollar": true, "euro": true, "usd": true, "eur": true, "gbp": true, "pound": true, "yen": true,
	"cent": true,
}

// quantities returns the quantities of a question in order, with the words around each.
func quantities(question string) []quantity {
	tokens := tokenize(question)
	var found []quantity
	for i := 0; i < len(tokens) && len(found) < maxQuantities; i++ {
		q, ok := quantity{}, false
		switch tokens[i].kind {
		case tokenNumber:
			q, ok = numberAt(tokens, i)
		case tokenWord:
			q, ok = wordAt(tokens, i)
		}
		if ok {
			found = append(found, q)
			i = q.last
		}
	}
	surround(tokens, found)
	return found
}

// textAt returns the word or sign at a position, or "" for a number and after the end.
func textAt(tokens []token, i int) string {
	if i < len(tokens) {
		return tokens[i].text
	}
	return ""
}

// numberAt parses a number with its scale, percent sign or unit.
func numberAt(tokens []token, i int) (quantity, bool) {
	t := tokens[i]
	q := quantity{Value: t.value, Class: classNumber, first: i, last: i}
	if i > 1 && t.glued && tokens[i-1].text == "-" && tokens[i-1].glued && tokens[i-2].kind == tokenWord {
		return q, false // a name such as F-16
	}
	if t.currency {
		q.Class = classMoney
	}
	glued, next := i+1 < len(tokens) && tokens[i+1].glued, textAt(tokens, i+1)
	if glued && (next == "st" || next == "nd" || next == "rd" || next == "th") {
		return q, false
	}
	if scale, ok := scales[next]; ok && (glued || len(next) > 2) {
		q.Value *= scale
		q.last++
	}
	unit(&q, tokens)
	return q, q.Class != classNumber || !looksLikeYear(t, q)
}

// unit recognizes "percent", a currency word or a unit of time after a number.
func unit(q *quantity, tokens []token) {
	i := q.last + 1
	sign := textAt(tokens, i)
	if sign == "-" {
		i++
	}
	w := textAt(tokens, i)
	switch {
	case sign == "%" || w == "percent" || w == "percentage" || w == "pct":
		q.Class, q.last = classPercent, i
	case w == "per" && textAt(tokens, i+1) == "cent":
		q.Class, q.last = classPercent, i+1
	case currencies[w]:
		q.Class, q.last = classMoney, i
	case w == "time" && q.Class == classNumber && i+1 < len(tokens) && tokens[i+1].kind == tokenWord:
		q.Class, q.last = classFrequency, i
	case q.Class == classNumber && periodUnits[w] != "":
		q.Class, q.Unit, q.last = classPeriod, periodUnits[w], i
	}
}

// looksLikeYear reports whether the number is a year such as 2023.
func looksLikeYear(t token, q quantity) bool {
	bare := !t.grouped && !t.currency && q.first == q.last
	return bare && q.Value >= 1900 && q.Value <= 2100 && q.Value == math.Trunc(q.Value)
}

// wordAt parses "monthly", "every two months", "three years" and "semi-annually".
func wordAt(tokens []token, i int) (quantity, bool) {
	w, next, after := tokens[i].text, textAt(tokens, i+1), textAt(tokens, i+2)
	q := quantity{first: i, last: i, Side: true}
	if f, ok := frequencies[w]; ok {
		q.Value, q.Class = f, classFrequency
		return q, true
	}
	if f, ok := frequencies[w+after]; ok && next == "-" {
		q.Value, q.Class, q.last = f, classFrequency, i+2
		return q, true
	}
	if w == "every" || w == "each" {
		return every(q, tokens)
	}
	u := periodUnits[next]
	q.last++
	if next == "-" || next == "a" {
		u = periodUnits[after]
		q.last++
	}
	v, ok := numerals[w]
	q.Value, q.Class, q.Unit = v, classPeriod, u
	return q, ok && u != ""
}

// every parses "every quarter" and "every two months" as times per year.
func every(q quantity, tokens []token) (quantity, bool) {
	i, count := q.first+1, 1.0
	if v, ok := numerals[textAt(tokens, i)]; ok {
		count = v
		i++
	} else if i < len(tokens) && tokens[i].kind == tokenNumber && tokens[i].value > 0 {
		count = tokens[i].value
		i++
	}
	u := textAt(tokens, i)
	times, ok := perYear[periodUnits[u]]
	q.Value, q.Class, q.last = times/count, classFrequency, i
	return q, ok && (u != "year" || i > q.first+1)
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
		q.Near = nearest(append(before, after...))
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

// nearest sorts words by distance, removes repeated words, and returns the first ones.
func nearest(words []near) []near {
	slices.SortStableFunc(words, func(a, b near) int { return cmp.Compare(a.Distance, b.Distance) })
	seen := map[string]bool{}
	words = slices.DeleteFunc(words, func(n near) bool {
		repeated := seen[n.Word]
		seen[n.Word] = true
		return repeated
	})
	return words[:min(len(words), maxNear)]
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
	glued, currency, negative := true, false, false
	for _, m := range tokenPattern.FindAllStringSubmatchIndex(text, -1) {
		if len(out) == maxTokens {
			break
		}
		part := text[m[0]:m[1]]
		t := token{glued: glued}
		switch {
		case m[2] >= 0:
			glued = false
			continue
		case m[4] >= 0:
			t.kind, t.currency, t.grouped = tokenNumber, currency, strings.ContainsAny(part, ",.")
			t.value, _ = strconv.ParseFloat(strings.ReplaceAll(part, ",", ""), 64)
			if negative {
				t.value = -t.value
			}
		case m[6] >= 0:
			t.kind, t.text = tokenWord, fold(part)
		case m[8] >= 0:
			currency = true
			continue
		case strings.Contains("-−–", part) && startsNumber(text[:m[0]], text[m[1]:], currency):
			negative = true
			continue
		default:
			t.kind, t.text = tokenBreak, strings.ToValidUTF8(part, "�")
		}
		out = append(out, t)
		glued = true
		if t.kind != tokenBreak {
			currency, negative = false, false
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
	case len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") &&
		!strings.HasSuffix(w, "us"):
		w = w[:len(w)-1]
	}
	if len(w) > maxWord {
		w = strings.ToValidUTF8(w[:maxWord], "")
	}
	return w
}
