package builtin

import (
	"regexp"
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
	p.Question = strings.TrimSpace(p.Question)
	p.Question = strings.TrimSpace(strings.TrimSuffix(p.Question, "Answer:"))
	p.Question = strings.Trim(p.Question, "\"“” .\n\t")
	if _, rest, ok := strings.Cut(text, "Formula:"); ok {
		p.Expression, p.Explanation, _ = strings.Cut(rest, "Explanation:")
		p.Expression = strings.Trim(p.Expression, " ,.\n")
		p.Explanation = strings.TrimSpace(p.Explanation)
	}
	return p
}

// formulaPattern matches "use formula NAME to answer"; if that is missing, "use formula NAME to".
var formulaPattern = []*regexp.Regexp{
	regexp.MustCompile(`(?is)use (?:the )?formula (.*?) to answer`),
	regexp.MustCompile(`(?is)use (?:the )?formula (.*?) to `),
}

// formulaName finds the name of the formula near the beginning of a prompt.
func formulaName(text string) string {
	for _, pattern := range formulaPattern {
		m := pattern.FindStringSubmatch(text[:min(len(text), 1000)])
		if m != nil && len(m[1]) <= maxFormula {
			return cleanName(m[1])
		}
	}
	return ""
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
