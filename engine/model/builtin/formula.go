package builtin

import (
	"errors"
	"strings"
	"unicode"

	"acescope/engine/model/builtin/calc"
)

// shape is an expression that a search tries. Operands say, by name, what each may be.
type shape struct {
	expr     *calc.Expr
	operands []operand // one for each of expr.Names
	source   string
}

// operand is what is known of a shape's operand before any example: the classes it may
// take, nil for any, and words that describe it.
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

// Bounds of a formula's text.
const (
	maxFormulaText = 400
	maxSymbols     = 16
)

// statedShapes reads the formula that a prompt states: its right-hand side, or, where
// the left is no single name or a question asks for another operand, either side
// solved for each operand. An unreadable formula gives none.
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
	for _, unknown := range append(append([]string{}, f.left.Names()...), f.right.Names()...) {
		if single && unknown == f.left.Names()[0] {
			continue
		}
		if e, err := calc.Solve(f.left, f.right, unknown); err == nil && len(e.Names()) <= maxSlots {
			shapes = append(shapes, f.shape(e, fromSolved))
		}
	}
	return shapes
}

// stated is a formula as its prompt writes it.
type stated struct {
	left, right *calc.Expr
	words       map[string][]string // of each name
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

// reader turns the writing of textbooks into that of package calc: symbols that stand
// side by side are multiplied, names may be several words.
type reader struct {
	symbols     map[string]string // what each symbol means
	definitions map[string]string // symbols that stand for an expression
	words       map[string][]string
	tokens      []piece
	at          int
	depth       int
}

// piece is a part of a formula's text: a name, a number or a sign.
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

// splitTop splits at commas that no bracket encloses.
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

// plain spells text in ASCII where it can be and trims it.
func plain(text string) string { return strings.TrimSpace(spelling.Replace(text)) }

func (r *reader) read(text string) (*calc.Expr, error) {
	r.depth = 0
	out, err := r.explicit(plain(text))
	if err != nil {
		return nil, err
	}
	return calc.Parse(out)
}

// explicit rewrites text with every multiplication written out.
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

// split cuts text into pieces.
func (r *reader) split(text string) []piece {
	var out []piece
	for i := 0; i < len(text); {
		c := rune(text[i])
		switch {
		case c == ' ':
			i++
		case isDigit(c) || c == '.':
			end := i
			for end < len(text) && (isDigit(rune(text[end])) || text[end] == '.') {
				end++
			}
			out = append(out, piece{'0', text[i:end]})
			i = end
		case c < 128 && unicode.IsLetter(c):
			end := nameEnd(text, i)
			out = append(out, r.names(strings.TrimSpace(text[i:end]))...)
			i = end
		case strings.HasPrefix(text[i:], "√"):
			out = append(out, piece{'r', "√"})
			i += len("√")
		default:
			out = append(out, piece{sign: text[i]})
			i++
		}
	}
	return out
}

// nameEnd is where a name of one or more words ends that starts at i.
func nameEnd(text string, i int) int {
	for ; i < len(text); i++ {
		c := rune(text[i])
		next := byte(0)
		if i+1 < len(text) {
			next = text[i+1]
		}
		letterNext := next < 128 && unicode.IsLetter(rune(next))
		switch {
		case c < 128 && (unicode.IsLetter(c) || isDigit(c)) || c == '_' || c == '\'' || c == '&':
		case c == ' ' && letterNext, c == '-' && letterNext && text[i-1] != ' ':
		default:
			return i
		}
	}
	return i
}

// names resolves a run of letters: a name as it stands, or symbols side by side.
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
