package flow

import (
	"fmt"
	"strings"
)

// Position is a place in a source file; Line and Column are 1-based, 0 if unknown.
type Position struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

func (p Position) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

func (p Position) problem(message, hint string) Problem { return Problem{p, message, hint} }

// Problem is an error at a place in a file, and what to do about it.
type Problem struct {
	Position
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func (p Problem) String() string {
	if p.Hint == "" {
		return p.Position.String() + ": " + p.Message
	}
	return p.Position.String() + ": " + p.Message + "; " + p.Hint
}

// Problems is the error of an invalid file, with at most [maxProblems] problems.
type Problems []Problem

const maxProblems = 100

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}
