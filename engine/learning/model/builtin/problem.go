package builtin

import (
	"strings"
	"unicode"
)

// Bounds of a prompt.
const (
	maxPrompt  = 64 << 10
	maxFormula = 120
)

// problem is a parsed prompt. A prompt that names no formula has an empty Formula and is
// entirely the Question.
type problem struct {
	Formula     string // the formula's name
	Expression  string // the stated formula, or ""
	Explanation string // the meaning of its symbols, or ""
	Question    string
}

// parseProblem parses prompts of the form
//
//	Use formula NAME to answer the question. … Formula: TEXT, Explanation: TEXT
//	Question: TEXT Answer:
//
// All parts except the first are optional.
func parseProblem(prompt string) problem {
	text := strings.ToValidUTF8(prompt[:min(len(prompt), maxPrompt)], "")
	p := problem{Formula: formulaName(text)}
	if p.Formula == "" {
		p.Question = strings.TrimSpace(text)
		return p
	}
	if i := strings.Index(text, "Question:"); i >= 0 {
		p.Question = text[i+len("Question:"):]
		text = text[:i]
	} else if i := strings.Index(text, "."); i >= 0 {
		p.Question = text[i+1:]
	}
	p.Question = trimQuestion(p.Question)
	if _, rest, ok := strings.Cut(text, "Formula:"); ok {
		p.Expression, p.Explanation, _ = strings.Cut(rest, "Explanation:")
		p.Expression = strings.Trim(p.Expression, " ,.\n")
		p.Explanation = strings.TrimSpace(p.Explanation)
	}
	return p
}

// formulaName finds NAME in "use formula NAME to answer" or "use the formula NAME to".
func formulaName(text string) string {
	head := text[:min(len(text), 1000)]
	lower := asciiLower(head)
	for _, lead := range []string{"use formula ", "use the formula "} {
		i := strings.Index(lower, lead)
		if i < 0 {
			continue
		}
		from := i + len(lead)
		length := strings.Index(lower[from:], " to answer")
		if length < 0 {
			length = strings.Index(lower[from:], " to ")
		}
		if length > 0 && length <= maxFormula {
			return cleanName(head[from : from+length])
		}
	}
	return ""
}

// asciiLower keeps the positions of all bytes, unlike strings.ToLower.
func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// cleanName makes a name fit for one line of a playbook.
func cleanName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, name)
	name = oneSpace(strings.Trim(name, "\"'“” "))
	for strings.Contains(name, recipeMark) {
		name = oneSpace(strings.Replace(name, recipeMark, " ", 1))
	}
	return name
}

func oneSpace(s string) string { return strings.Join(strings.Fields(s), " ") }

func trimQuestion(q string) string {
	q = strings.TrimSpace(q)
	q = strings.TrimSpace(strings.TrimSuffix(q, "Answer:"))
	return strings.Trim(q, "\"“” .\n\t")
}
