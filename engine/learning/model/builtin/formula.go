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
	maxDefinition  = 4 // nested definitions
	maxNesting     = 6 // nested sums
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
	definition  int  // nested definitions
	nesting     int  // nested sums
	failed      bool // the formula is unreadable, and no token is left
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
	r.definition, r.nesting, r.failed = 0, 0, false
	out := r.explicit(plain(text))
	if r.failed {
		return nil, errNoFormula
	}
	return calc.Parse(out)
}

// explicit writes out every multiplication.
func (r *reader) explicit(text string) string {
	if r.definition++; r.definition > maxDefinition || len(text) > maxFormulaText {
		return r.fail()
	}
	defer func() { r.definition-- }()
	tokens, at := r.tokens, r.at
	defer func() { r.tokens, r.at = tokens, at }()
	r.tokens, r.at = r.split(text), 0
	out := r.sum()
	if r.at < len(r.tokens) {
		return r.fail()
	}
	return out
}

// fail marks the formula as unreadable.
func (r *reader) fail() string {
	r.failed = true
	return ""
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

// The methods below parse a stated formula. Each returns its part in the syntax of package calc.

// next returns the sign of the next token, or 0 at the end.
func (r *reader) next() byte {
	if r.failed || r.at >= len(r.tokens) {
		return 0
	}
	return r.tokens[r.at].sign
}

// take consumes the next token if it has the sign.
func (r *reader) take(sign byte) bool {
	if r.next() != sign {
		return false
	}
	r.at++
	return true
}

func (r *reader) sum() string {
	if r.nesting++; r.nesting > maxNesting {
		return r.fail()
	}
	defer func() { r.nesting-- }()
	sign := ""
	if r.take('-') {
		sign = "-"
	}
	return sign + r.chain("+-", r.product)
}

func (r *reader) product() string { return r.chain("*/", r.adjacent) }

func (r *reader) chain(signs string, operand func() string) string {
	out := operand()
	for sign := r.next(); sign != 0 && strings.IndexByte(signs, sign) >= 0; sign = r.next() {
		r.at++
		out += string(rune(sign)) + operand()
	}
	return out
}

// adjacent parses adjacent factors, which bind tighter than a written operator.
func (r *reader) adjacent() string {
	factors := []string{r.power()}
	for c := r.next(); c == 'n' || c == '0' || c == '(' || c == 'r'; c = r.next() {
		factors = append(factors, r.power())
	}
	if len(factors) == 1 {
		return factors[0]
	}
	return "(" + strings.Join(factors, "*") + ")"
}

func (r *reader) power() string {
	euler := r.next() == 'n' && r.tokens[r.at].text == "e"
	base := r.atom()
	if !r.take('^') {
		return base
	}
	sign := ""
	if r.take('-') {
		sign = "-"
	}
	exponent := sign + r.atom()
	if euler {
		return "exp(" + exponent + ")"
	}
	return base + "^(" + exponent + ")"
}

func (r *reader) atom() string {
	if r.next() == 0 {
		return r.fail()
	}
	p := r.tokens[r.at]
	r.at++
	switch p.sign {
	case '0':
		return p.text
	case 'r':
		return "sqrt(" + r.atom() + ")"
	case '(':
		inner := r.sum()
		if !r.take(')') {
			return r.fail()
		}
		return "(" + inner + ")"
	case 'n':
		return r.name(p.text)
	}
	return r.fail()
}

// name parses a name: a function, a definition to insert, a quantity in function notation such
// as Cov(x, y), or an operand.
func (r *reader) name(text string) string {
	if r.next() == '(' {
		if calc.IsFunction(text) {
			return text + r.atom()
		}
		if _, symbol := r.symbols[text]; !symbol && len(text) >= 3 {
			return r.pseudoCall(text)
		}
	}
	if definition, ok := r.definitions[text]; ok {
		return "(" + r.explicit(plain(definition)) + ")"
	}
	return r.operand(text)
}

func (r *reader) pseudoCall(text string) string {
	for ; r.next() != 0 && r.next() != ')'; r.at++ {
		text += " " + r.tokens[r.at].text
	}
	if !r.take(')') {
		return r.fail()
	}
	return r.operand(text)
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
