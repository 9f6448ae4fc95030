package builtin

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"acescope/engine/learning/model/builtin/calc"
)

// shape is an expression to try in a search.
type shape struct {
	expr     *calc.Expr
	operands []operand // one for each of expr.Names
	source   string
}

// operand restricts an operand of a shape: its possible classes (nil: any), and words that
// describe it.
type operand struct {
	classes []class
	words   []string
}

// Sources of a shape.
const (
	fromText   = "the prompt's formula"
	fromSolved = "the prompt's formula, solved"
	fromList   = "a common shape"
)

// Bounds of a stated formula.
const (
	maxFormulaText = 400
	maxSymbols     = 16
)

// statedShapes parses the formula that a prompt states. It returns the right-hand side if the
// left is a single name, and the formula solved for each other operand. It returns nothing for
// an unreadable formula.
func statedShapes(p problem) []shape {
	f, err := readFormula(p)
	if err != nil {
		return nil
	}
	var shapes []shape
	single := len(f.left.Names()) == 1 && f.left.Size() == 1
	if single && len(f.right.Names()) > 0 {
		shapes = append(shapes, f.shape(f.right, fromText))
	}
	for _, unknown := range slices.Concat(f.left.Names(), f.right.Names()) {
		if single && unknown == f.left.Names()[0] {
			continue
		}
		if e, err := calc.Solve(f.left, f.right, unknown); err == nil && len(e.Names()) <= maxSlots {
			shapes = append(shapes, f.shape(e, fromSolved))
		}
	}
	return shapes
}

// stated is a formula as stated in a prompt.
type stated struct {
	left, right *calc.Expr
	words       map[string][]string // by name
}

func (f stated) shape(e *calc.Expr, source string) shape {
	s := shape{expr: e, source: source}
	for _, n := range e.Names() {
		s.operands = append(s.operands, operand{words: f.words[n]})
	}
	return s
}

var errNoFormula = errors.New("no readable formula")

func readFormula(p problem) (stated, error) {
	left, right, ok := strings.Cut(p.Expression, "=")
	if !ok || len(p.Expression) > maxFormulaText {
		return stated{}, errNoFormula
	}
	r := newReader(p.Explanation)
	if name := plain(left); len(name) > 1 && strings.Contains(plain(p.Formula), name) {
		left = "answer" // P/E Ratio is a name, not a division
	}
	l, err := r.read(left)
	if err != nil {
		return stated{}, err
	}
	e, err := r.read(right)
	if err != nil || len(e.Names()) > maxSlots {
		return stated{}, errNoFormula
	}
	return stated{left: l, right: e, words: r.words}, nil
}

// reader rewrites textbook notation for package calc: adjacent symbols are multiplied, and
// names may have several words.
type reader struct {
	symbols     map[string]string // meanings
	definitions map[string]string // symbols that stand for an expression
	words       map[string][]string
	tokens      []piece
	at          int
	depth       int
}

// piece is a token of a formula: a name, a number or a sign.
type piece struct {
	sign byte // 'n' for a name, '0' for a number
	text string
}

func newReader(explanation string) *reader {
	r := &reader{symbols: map[string]string{}, definitions: map[string]string{}, words: map[string][]string{}}
	for _, part := range splitTop(explanation) {
		colon, equals := strings.Index(part, ":"), strings.Index(part, " = ")
		switch {
		case len(r.symbols)+len(r.definitions) >= maxSymbols:
			return r
		case equals > 0 && (colon < 0 || equals < colon):
			r.definitions[plain(part[:equals])] = part[equals+3:]
		case colon > 0:
			r.symbols[plain(part[:colon])] = part[colon+1:]
		}
	}
	return r
}

// splitTop splits at commas outside of brackets.
func splitTop(text string) []string {
	var parts []string
	depth, start := 0, 0
	for i, c := range text {
		switch c {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth--
		case ',':
			if depth <= 0 {
				parts = append(parts, strings.TrimSpace(text[start:i]))
				start = i + 1
			}
		}
	}
	return append(parts, strings.TrimSpace(text[start:]))
}

var spelling = strings.NewReplacer("×", "*", "·", "*", "÷", "/", "−", "-", "–", "-", "{", "(", "}", ")", "[", "(", "]", ")",
	"σ", "sigma", "β", "beta", "α", "alpha", "μ", "mu", "ρ", "rho", "λ", "lambda", "π", "pi", "Δ", "delta", "’", "'")

// plain replaces typographic signs by ASCII and trims the text.
func plain(text string) string { return strings.TrimSpace(spelling.Replace(text)) }

func (r *reader) read(text string) (*calc.Expr, error) {
	r.depth = 0
	out, err := r.explicit(plain(text))
	if err != nil {
		return nil, err
	}
	return calc.Parse(out)
}

// explicit writes out every multiplication.
func (r *reader) explicit(text string) (string, error) {
	if r.depth++; r.depth > 4 || len(text) > maxFormulaText {
		return "", errNoFormula
	}
	defer func() { r.depth-- }()
	tokens, at := r.tokens, r.at
	defer func() { r.tokens, r.at = tokens, at }()
	r.tokens, r.at = r.split(text), 0
	out, err := r.sum(0)
	if err == nil && r.at < len(r.tokens) {
		err = errNoFormula
	}
	return out, err
}

// pieces matches a number, a name of one or more words, or any other character.
var pieces = regexp.MustCompile(`([0-9.]+)|([A-Za-z](?:[A-Za-z0-9_'&]|[ -][A-Za-z])*)|[^ ]`)

// split cuts text into pieces.
func (r *reader) split(text string) []piece {
	var out []piece
	for _, m := range pieces.FindAllStringSubmatch(text, -1) {
		switch {
		case m[1] != "":
			out = append(out, piece{'0', m[1]})
		case m[2] != "":
			out = append(out, r.names(m[2])...)
		case m[0] == "√":
			out = append(out, piece{'r', "√"})
		default:
			out = append(out, piece{sign: m[0][0]})
		}
	}
	return out
}

// names resolves a sequence of letters: a name, or adjacent symbols.
func (r *reader) names(text string) []piece {
	if r.known(text) || strings.Contains(text, " ") {
		return []piece{{'n', text}}
	}
	var out []piece
	for rest := text; rest != ""; {
		n := len(rest)
		for n > 0 && !r.known(rest[:n]) {
			n--
		}
		if n == 0 {
			return []piece{{'n', text}}
		}
		out = append(out, piece{'n', rest[:n]})
		rest = rest[n:]
	}
	return out
}

func (r *reader) known(text string) bool {
	_, symbol := r.symbols[text]
	_, definition := r.definitions[text]
	return symbol || definition || text == "e" || text == "N" || text == "ln"
}

// The parser of a stated formula. Each method returns its part in the syntax of package calc.

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

// adjacent parses adjacent factors, which bind tighter than a written operator.
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

// name parses a name: a function, a definition to insert, a quantity in function notation such
// as Cov(x, y), or an operand.
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

// operand returns the identifier of a name and records the words that describe it.
func (r *reader) operand(text string) string {
	id := identifier(text)
	if _, done := r.words[id]; !done {
		r.words[id] = describe(text, r.symbols[text])
	}
	return id
}

// identifier converts a name to an identifier of package calc.
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

// describe returns the distinct words of a symbol and its meaning.
func describe(symbol, meaning string) []string {
	var words []string
	for _, t := range append(tokenize(symbol), tokenize(meaning)...) {
		if t.kind == tokenWord && !fillers[t.text] && !clauseWords[t.text] && !slices.Contains(words, t.text) && len(words) < 10 {
			words = append(words, t.text)
		}
	}
	return words
}
