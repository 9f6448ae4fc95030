package builtin

import (
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
	maxDefinition  = 3 // nested definitions
)

// statedShapes parses the formula that a prompt states. It returns the right-hand side if the
// left is a single name, and the formula solved for each other operand. It returns nothing for
// an unreadable formula.
func statedShapes(p problem) []shape {
	left, right, ok := strings.Cut(p.Expression, "=")
	if !ok || len(p.Expression) > maxFormulaText {
		return nil
	}
	if name := plain(left); len(name) > 1 && strings.Contains(plain(p.Formula), name) {
		left = "answer" // P/E Ratio is a name, not a division
	}
	r := newReader(p.Explanation)
	l, leftErr := calc.ParseTextbook(r.tokens(left, 0))
	e, rightErr := calc.ParseTextbook(r.tokens(right, 0))
	if leftErr != nil || rightErr != nil || len(e.Names()) > maxSlots {
		return nil
	}
	var shapes []shape
	single := len(l.Names()) == 1 && l.Size() == 1
	if single && len(e.Names()) > 0 {
		shapes = append(shapes, r.shape(e, fromText))
	}
	for _, unknown := range slices.Concat(l.Names(), e.Names()) {
		if single && unknown == l.Names()[0] {
			continue
		}
		if solved, err := calc.Solve(l, e, unknown); err == nil && len(solved.Names()) <= maxSlots {
			shapes = append(shapes, r.shape(solved, fromSolved))
		}
	}
	return shapes
}

// reader reads formulas in textbook notation, whose names may have several words.
type reader struct {
	symbols     map[string]string   // meanings
	definitions map[string]string   // symbols that stand for an expression
	words       map[string][]string // words that describe an operand
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

func (r *reader) shape(e *calc.Expr, source string) shape {
	s := shape{expr: e, source: source}
	for _, n := range e.Names() {
		s.operands = append(s.operands, operand{words: r.words[n]})
	}
	return s
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

var spelling = strings.NewReplacer("×", "*", "·", "*", "÷", "/", "−", "-", "–", "-", "{", "(", "}", ")", "[",
	"(", "]", ")",
	"σ", "sigma", "β", "beta", "α", "alpha", "μ", "mu", "ρ", "rho", "λ", "lambda", "π", "pi", "Δ", "delta",
	"’", "'")

// plain replaces typographic signs by ASCII and trims the text.
func plain(text string) string { return strings.TrimSpace(spelling.Replace(text)) }

// pieces matches a number, a name of one or more words, or any other character.
var pieces = regexp.MustCompile(`[0-9.]+|[A-Za-z](?:[A-Za-z0-9_'&]|[ -][A-Za-z])*|[^ ]`)

// tokens converts text to the tokens of package calc. It replaces names by identifiers, symbols by
// their definitions, and a quantity in function notation, such as Cov(x, y), by one identifier.
func (r *reader) tokens(text string, depth int) []string {
	var parts []string
	for _, part := range pieces.FindAllString(plain(text), -1) {
		parts = append(parts, r.names(part)...)
	}
	var out []string
	for i := 0; i < len(parts) && len(out) <= calc.MaxLength; i++ {
		part := parts[i]
		called := i+1 < len(parts) && parts[i+1] == "("
		_, isSymbol := r.symbols[part]
		definition, isDefined := r.definitions[part]
		end := i + slices.Index(parts[i:], ")")
		switch {
		case !isASCIILetter(part[0]) || called && calc.IsFunction(part):
			out = append(out, part)
		case called && !isSymbol && len(part) >= 3 && end > i:
			out = append(out, r.operand(part+" "+strings.Join(parts[i+2:end], " ")))
			i = end
		case isDefined && depth < maxDefinition:
			out = append(out, "(")
			out = append(out, r.tokens(definition, depth+1)...)
			out = append(out, ")")
		default:
			out = append(out, r.operand(part))
		}
	}
	return out
}

// names resolves a sequence of letters: a name, or adjacent symbols.
func (r *reader) names(text string) []string {
	if !isASCIILetter(text[0]) || r.known(text) || strings.Contains(text, " ") {
		return []string{text}
	}
	var out []string
	for rest := text; rest != ""; {
		n := len(rest)
		for n > 0 && !r.known(rest[:n]) {
			n--
		}
		if n == 0 {
			return []string{text}
		}
		out = append(out, rest[:n])
		rest = rest[n:]
	}
	return out
}

func (r *reader) known(text string) bool {
	_, symbol := r.symbols[text]
	_, definition := r.definitions[text]
	return symbol || definition || text == "e" || text == "N" || text == "ln"
}

func isASCIILetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

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
	text = strings.ReplaceAll(text, "'", "")
	parts := strings.FieldsFunc(text, func(c rune) bool {
		return c >= 128 || !unicode.IsLetter(c) && !isDigit(c)
	})
	id := strings.Join(parts, "_")
	if id == "" || isDigit(rune(id[0])) || calc.IsFunction(id) {
		id = "x_" + id
	}
	return id
}

// describe returns the distinct words of a symbol and its meaning.
func describe(symbol, meaning string) []string {
	var words []string
	for _, t := range append(tokenize(symbol), tokenize(meaning)...) {
		if t.kind == tokenWord && !fillers[t.text] && !clauseWords[t.text] &&
			!slices.Contains(words, t.text) && len(words) < 10 {
			words = append(words, t.text)
		}
	}
	return words
}
