package blueprint

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Problem is one thing that is wrong with a blueprint. Line and Column count from 1, Column
// in characters; both are 0 where the place is not known. Path is a JSON path, "" for a file
// as a whole.
type Problem struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Path   string `json:"path,omitempty"`
	Text   string `json:"text"`
}

func (p Problem) String() string {
	var at []string
	if p.File != "" {
		file := p.File
		if p.Line > 0 {
			file += ":" + strconv.Itoa(p.Line)
			if p.Column > 0 {
				file += ":" + strconv.Itoa(p.Column)
			}
		}
		at = append(at, file)
	}
	if p.Path != "" {
		at = append(at, p.Path)
	}
	return strings.Join(append(at, p.Text), ": ")
}

// Problems are all that is wrong with a blueprint; it is an error where there are any. More
// counts those above [MaxProblems].
type Problems struct {
	List []Problem `json:"problems"`
	More int       `json:"more,omitempty"`
}

// Error is the first problem, and how many others there are.
func (p *Problems) Error() string {
	if len(p.List) == 0 {
		return "nothing is wrong"
	}
	text := p.List[0].String()
	if n := len(p.List) - 1 + p.More; n > 0 {
		text += fmt.Sprintf(" (and %d more: acescope agent validate)", n)
	}
	return text
}

func (p *Problems) add(one Problem) {
	if len(p.List) >= MaxProblems {
		p.More++
		return
	}
	p.List = append(p.List, one)
}

// addAll adds another list, and what it dropped.
func (p *Problems) addAll(others Problems) {
	for _, one := range others.List {
		p.add(one)
	}
	p.More += others.More
}

func (p *Problems) any() bool { return len(p.List) > 0 }

// document is a file whose problems are gathered with their places.
type document struct {
	name string
	data []byte
	Problems
	notes []Problem
}

// problem adds one at an offset of the document, -1 for none.
func (d *document) problem(offset int, path, format string, args ...any) {
	d.add(d.at(offset, path, fmt.Sprintf(format, args...)))
}

// note adds a remark that keeps nothing from working.
func (d *document) note(offset int, path, format string, args ...any) {
	if len(d.notes) < MaxProblems {
		d.notes = append(d.notes, d.at(offset, path, fmt.Sprintf(format, args...)))
	}
}

func (d *document) at(offset int, path, text string) Problem {
	p := Problem{File: d.name, Path: path, Text: text}
	if offset >= 0 && offset <= len(d.data) {
		p.Line, p.Column = place(d.data, offset)
	}
	return p
}

// place is the line and column of an offset.
func place(data []byte, offset int) (line, column int) {
	before := string(data[:offset])
	begin := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[begin:]) + 1
}
