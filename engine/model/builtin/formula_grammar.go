package builtin

import (
	"slices"
	"strings"
	"unicode"

	"acescope/engine/model/builtin/calc"
)

// The grammar of a formula's text. Each method returns its part written out for
// package calc.

const maxFormulaDepth = 24

func (r *reader) next() byte {
	if r.at < len(r.tokens) {
		return r.tokens[r.at].sign
	}
	return 0
}

func (r *reader) sum(depth int) (string, error) {
	return r.chain(depth, "+-", r.product)
}

func (r *reader) product(depth int) (string, error) {
	return r.chain(depth, "*/", r.adjacent)
}

func (r *reader) chain(depth int, signs string, operand func(int) (string, error)) (string, error) {
	if depth > maxFormulaDepth {
		return "", errNoFormula
	}
	var b strings.Builder
	if signs == "+-" && r.next() == '-' {
		r.at++
		b.WriteByte('-')
	}
	for {
		part, err := operand(depth + 1)
		if err != nil {
			return "", err
		}
		b.WriteString(part)
		sign := r.next()
		if sign == 0 || !strings.ContainsRune(signs, rune(sign)) {
			return b.String(), nil
		}
		b.WriteByte(sign)
		r.at++
	}
}

// adjacent reads factors side by side, which bind tighter than a written operator.
func (r *reader) adjacent(depth int) (string, error) {
	first, err := r.power(depth + 1)
	if err != nil {
		return "", err
	}
	out, many := first, false
	for c := r.next(); c == 'n' || c == '0' || c == '(' || c == 'r'; c = r.next() {
		part, err := r.power(depth + 1)
		if err != nil {
			return "", err
		}
		out, many = out+"*"+part, true
	}
	if many {
		out = "(" + out + ")"
	}
	return out, nil
}

func (r *reader) power(depth int) (string, error) {
	euler := r.next() == 'n' && r.tokens[r.at].text == "e"
	base, err := r.atom(depth + 1)
	if err != nil || r.next() != '^' {
		return base, err
	}
	r.at++
	sign := ""
	if r.next() == '-' {
		r.at++
		sign = "-"
	}
	exponent, err := r.atom(depth + 1)
	if err != nil {
		return "", err
	}
	if euler {
		return "exp(" + sign + exponent + ")", nil
	}
	return base + "^(" + sign + exponent + ")", nil
}

func (r *reader) atom(depth int) (string, error) {
	if depth > maxFormulaDepth || r.at >= len(r.tokens) {
		return "", errNoFormula
	}
	p := r.tokens[r.at]
	r.at++
	switch p.sign {
	case '0':
		return p.text, nil
	case 'r':
		inner, err := r.atom(depth + 1)
		return "sqrt(" + inner + ")", err
	case '(':
		inner, err := r.sum(depth + 1)
		if err != nil || r.next() != ')' {
			return "", errNoFormula
		}
		r.at++
		return "(" + inner + ")", nil
	case 'n':
		return r.name(p.text, depth)
	}
	return "", errNoFormula
}

// name reads a name: a function, a definition to be filled in, a quantity written like
// a function (Cov(x, y)), or an operand.
func (r *reader) name(text string, depth int) (string, error) {
	if r.next() == '(' {
		if calc.IsFunction(text) {
			inner, err := r.atom(depth + 1)
			return text + inner, err
		}
		if _, symbol := r.symbols[text]; !symbol && len(text) >= 3 {
			return r.pseudoCall(text)
		}
	}
	if definition, ok := r.definitions[text]; ok {
		inner, err := r.explicit(plain(definition))
		return "(" + inner + ")", err
	}
	return r.operand(text), nil
}

func (r *reader) pseudoCall(text string) (string, error) {
	full := text
	for ; r.next() != 0 && r.next() != ')'; r.at++ {
		full += " " + r.tokens[r.at].text
	}
	if r.next() == 0 {
		return "", errNoFormula
	}
	r.at++
	return r.operand(full), nil
}

// operand is the identifier of a name; it notes the words that describe it.
func (r *reader) operand(text string) string {
	id := identifier(text)
	if _, done := r.words[id]; !done {
		r.words[id] = describe(text, r.symbols[text])
	}
	return id
}

// identifier makes a name fit for package calc.
func identifier(text string) string {
	if strings.Contains(text, " ") {
		text = strings.ToLower(text)
	}
	id := strings.Map(func(c rune) rune {
		switch {
		case c < 128 && (unicode.IsLetter(c) || isDigit(c)):
			return c
		case c == '\'':
			return -1
		}
		return '_'
	}, text)
	id = strings.Trim(strings.ReplaceAll(id, "__", "_"), "_")
	if id == "" || isDigit(rune(id[0])) || calc.IsFunction(id) {
		id = "x_" + id
	}
	return id
}

// describe lists the words of a symbol and of its meaning, each once.
func describe(symbol, meaning string) []string {
	var words []string
	for _, t := range append(tokenize(symbol), tokenize(meaning)...) {
		if t.kind == tokenWord && !fillers[t.text] && !clauseWords[t.text] && !slices.Contains(words, t.text) && len(words) < 10 {
			words = append(words, t.text)
		}
	}
	return words
}
