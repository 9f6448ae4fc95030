package widget

import (
	"strconv"
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2"

	"acescope/theme"
	"acescope/tui/text"
)

// tokenKind is what a piece of a payload is; the theme says how that looks.
type tokenKind uint8

const (
	tokenText tokenKind = iota // words: wrapped between them
	tokenPlain
	tokenName
	tokenString
	tokenNumber
	tokenConstant
	tokenMark
)

type token struct {
	Kind tokenKind
	Text string // safe
}

// tokens is one line.
type tokens []token

// jsonLexer splits JSON into tokens. It is made here and not taken from chroma's
// collection, which reads all its languages when the program starts.
var jsonLexer = sync.OnceValue(func() chroma.Lexer {
	return chroma.MustNewLexer(&chroma.Config{Name: "JSON"}, func() chroma.Rules {
		return chroma.Rules{"root": {
			{Pattern: `[\s,:\[\]{}]+`, Type: chroma.Punctuation},
			{Pattern: `"(?>[^"\\]+|\\.)*"(?=\s*:)`, Type: chroma.NameTag},
			{Pattern: `"(?>[^"\\]+|\\.)*"?`, Type: chroma.LiteralString},
			{Pattern: `-?\d[\d.eE+-]*`, Type: chroma.LiteralNumber},
			{Pattern: `(?:true|false|null)\b`, Type: chroma.KeywordConstant},
			{Pattern: `.`, Type: chroma.Text},
		}}
	})
})

// highlight splits JSON that is laid out into lines of tokens.
func highlight(src string) []tokens {
	each, err := jsonLexer().Tokenise(nil, src)
	if err != nil {
		return plainTokens(src)
	}
	lines := []tokens{{}}
	for t := each(); t != chroma.EOF; t = each() {
		for i, part := range strings.Split(t.Value, "\n") {
			if i > 0 {
				lines = append(lines, tokens{})
			}
			if part != "" {
				last := len(lines) - 1
				lines[last] = append(lines[last], token{kindOf(t.Type), text.Safe(part, " ")})
			}
		}
	}
	if n := len(lines); n > 1 && len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	return lines
}

func plainTokens(src string) []tokens {
	var lines []tokens
	for _, l := range text.Lines(src) {
		lines = append(lines, tokens{{tokenPlain, l}})
	}
	return lines
}

func kindOf(t chroma.TokenType) tokenKind {
	switch {
	case t == chroma.NameTag:
		return tokenName
	case t.InCategory(chroma.Literal) && t.InSubCategory(chroma.LiteralString):
		return tokenString
	case t.InSubCategory(chroma.LiteralNumber):
		return tokenNumber
	case t == chroma.KeywordConstant:
		return tokenConstant
	case t == chroma.Punctuation:
		return tokenMark
	}
	return tokenPlain
}

func (k tokenKind) Ink(s theme.Styles) theme.Ink {
	switch k {
	case tokenName:
		return s.Accent
	case tokenString:
		return s.Added
	case tokenNumber:
		return s.Timeout
	case tokenConstant:
		return s.Updated
	case tokenMark:
		return s.Muted
	}
	return s.Text
}

// Plain is the line without its kinds.
func (line tokens) Plain() string {
	var b strings.Builder
	for _, t := range line {
		b.WriteString(t.Text)
	}
	return b.String()
}

// Wrap breaks a line into lines of at most width cells: a text between its words,
// anything else where it is full.
func (line tokens) Wrap(width int) []tokens {
	width = max(width, 2)
	if len(line) == 1 && line[0].Kind == tokenText {
		var out []tokens
		for _, l := range text.Wrap(line[0].Text, width) {
			out = append(out, tokens{{tokenText, l}}.cut(width)...)
		}
		return out
	}
	return line.cut(width)
}

// cut breaks a line into lines of at most width cells where they are full.
func (line tokens) cut(width int) []tokens {
	out, room := []tokens{{}}, width
	for _, t := range line {
		for rest := t.Text; rest != ""; {
			head := text.Cut(rest, room, "")
			if head == "" {
				if room == width { // a character wider than the room
					break
				}
				out, room = append(out, tokens{}), width
				continue
			}
			last := len(out) - 1
			out[last] = append(out[last], token{t.Kind, head})
			room -= text.Width(head)
			if rest = rest[len(head):]; room <= 0 && rest != "" {
				out, room = append(out, tokens{}), width
			}
		}
	}
	return out
}

func oneDigit(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }
