package builtin

import "strings"

// maxQuantities bounds the quantities read from one question; later ones are dropped.
const maxQuantities = 14

// class is the sort of thing that a quantity measures.
type class string

const (
	classMoney     class = "amount"
	classPercent   class = "percent"
	classNumber    class = "number"
	classPeriod    class = "period"
	classFrequency class = "times per year"
)

// continuous stands for the number of compoundings per year of continuous compounding:
// large enough that (1+r/n)^n equals e^r to more digits than an answer has.
const continuous = 1e6

// quantity is a number found in a question. Value is as written times its scale: 5%
// is 5, 1.2 million is 1200000, 9 months is 9 with Unit "months". Side quantities come
// from words ("monthly", "one-year") and need not be used by a recipe.
type quantity struct {
	Value float64 `json:"value"`
	Class class   `json:"class"`
	Unit  string  `json:"unit,omitempty"`
	Near  []near  `json:"near,omitempty"`
	Side  bool    `json:"side,omitempty"`

	first, last int // tokens
}

// near is a word by a quantity and how far it stands, at least 1. A boundary such as
// a comma counts as several words.
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

// quantities finds the quantities of a question in order, with the words around each.
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

// numberAt reads a number with what follows it: a scale, a percent sign, a unit.
func numberAt(tokens []token, i int) (quantity, bool) {
	t := tokens[i]
	q := quantity{Value: t.value, Class: classNumber, first: i, last: i}
	if i > 0 && t.glued && tokens[i-1].kind == tokenBreak && tokens[i-1].text == "-" && i > 1 && tokens[i-1].glued && tokens[i-2].kind == tokenWord {
		return q, false // a name such as F-16
	}
	if t.currency {
		q.Class = classMoney
	}
	next := following(tokens, i)
	if w, glued := next.word(0); w != "" {
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
	w, _ := next.word(skip)
	switch {
	case w == "percent" || w == "percentage" || w == "pct":
		q.Class, q.last = classPercent, next.index(skip)
	case w == "per" && next.nextWord(skip+1) == "cent":
		q.Class, q.last = classPercent, next.index(skip+1)
	case currencies[w]:
		q.Class, q.last = classMoney, next.index(skip)
	case w == "time" && q.Class == classNumber && next.nextWord(skip+1) != "":
		q.Class, q.last = classFrequency, next.index(skip)
	case q.Class == classNumber && periodUnits[w] != "":
		q.Class, q.Unit, q.last = classPeriod, periodUnits[w], next.index(skip)
	}
}

// looksLikeYear tells a date such as 2023 from a number.
func looksLikeYear(t token, q quantity) bool {
	return !t.grouped && !t.currency && q.first == q.last && q.Value >= 1900 && q.Value <= 2100 && q.Value == float64(int(q.Value))
}

func ordinal(w string) bool { return w == "st" || w == "nd" || w == "rd" || w == "th" }

// wordAt reads "monthly", "every two months", "three years", "semi-annually".
func wordAt(tokens []token, i int) (quantity, bool) {
	w := tokens[i].text
	q := quantity{first: i, last: i, Side: true}
	next := following(tokens, i)
	if f, ok := frequencies[w]; ok {
		q.Value, q.Class = f, classFrequency
		return q, true
	}
	if (w == "semi" || w == "bi") && next.sign(0) == "-" {
		if v, _ := next.word(1); v == "annually" || v == "annual" || v == "monthly" {
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
	if next.sign(0) == "-" || next.nextWord(0) == "a" {
		skip = 1
	}
	u, _ := next.word(skip)
	if periodUnits[u] == "" {
		return q, false
	}
	q.Value, q.Class, q.Unit, q.last = v, classPeriod, periodUnits[u], next.index(skip)
	return q, true
}

// every reads "every quarter" and "every two months" as times per year.
func every(q quantity, tokens []token) (quantity, bool) {
	next := following(tokens, q.first)
	count, skip := 1.0, 0
	if t := next.token(0); t.kind == tokenNumber && t.value > 0 {
		count, skip = t.value, 1
	} else if v, ok := numerals[next.nextWord(0)]; ok {
		count, skip = v, 1
	}
	u, _ := next.word(skip)
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

func (l lookahead) word(k int) (text string, glued bool) {
	if t := l.token(k); t.kind == tokenWord {
		return t.text, t.glued
	}
	return "", false
}

func (l lookahead) nextWord(k int) string {
	w, _ := l.word(k)
	return w
}

func (l lookahead) sign(k int) string {
	if t := l.token(k); t.kind == tokenBreak {
		return t.text
	}
	return ""
}

// Reach of the words around a quantity.
const (
	reach       = 9.0
	maxNear     = 12
	costWord    = 1.0
	costFiller  = 0.4
	costClause  = 2.5
	costStop    = 5.0
	costForward = 0.3 // a word after the quantity is a little less telling
)

// surround gives each quantity the words around it, nearest first, up to its
// neighbours.
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

// merge joins two lists sorted by distance, each word once.
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
	for _, n := range list {
		if n.Word == word {
			return true
		}
	}
	return false
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
