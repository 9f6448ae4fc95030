package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/kaptinlin/jsonrepair"

	"acescope/engine/ace"
)

// Bounds of what is read of an answer.
const (
	maxAnswer     = 1 << 20  // bytes; what is longer is no answer
	maxMend       = 64 << 10 // bytes that are mended: it takes longer than reading
	maxDepth      = 64       // levels
	maxCandidates = 32       // of each kind, the last ones
)

// candidate is a part of an answer that may be the JSON that was asked for.
type candidate struct {
	text string
	// open is how many brackets were not closed: the answer was cut off in it.
	open int
	// whole tells that there is nothing else in the answer.
	whole bool
}

// found is an object that was read.
type found struct {
	fields fields
	how    ace.ParseKind
	note   string
	// cut is how deep within it the answer was cut off, 0 where it was not.
	cut int
}

// errNoJSON is an answer without any object.
var errNoJSON = errors.New("there is no JSON object in it")

// read finds the object that accept takes. What is valid JSON comes before what has to be
// mended, and of several the last: models that repeat themselves mean their last word.
// The error is the reason why the best one was not taken.
func read(text string, accept func(found) error) error {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return errors.New("it is empty")
	case len(text) > maxAnswer:
		return fmt.Errorf("it has %d bytes, at most %d are read", len(text), maxAnswer)
	}
	all := candidates(text)
	why := errNoJSON
	try := func(f found) bool {
		err := accept(f)
		if err != nil {
			why = err
		}
		return err == nil
	}
	for _, c := range all {
		if f, ok := strict(c); ok && try(f) {
			return nil
		}
	}
	for _, c := range all {
		if f, ok := mend(c); ok && try(f) {
			return nil
		}
	}
	return why
}

func strict(c candidate) (found, bool) {
	if c.open > 0 || !json.Valid([]byte(c.text)) {
		return found{}, false
	}
	f := found{how: ace.ParseExtracted}
	if c.whole {
		f.how = ace.ParseClean
	}
	f.fields = object([]byte(c.text))
	return f, f.fields != nil
}

// mend makes JSON of what nearly is. The library takes the text apart by recursion and
// copies much, so both depth and length are bounded before.
func mend(c candidate) (f found, ok bool) {
	if len(c.text) > maxMend || json.Valid([]byte(c.text)) && c.open == 0 || depth(c.text) > maxDepth {
		return found{}, false
	}
	defer func() {
		if recover() != nil { // the library's own mistakes are no reason to end a worker
			f, ok = found{}, false
		}
	}()
	mended, err := jsonrepair.JSONRepair(c.text)
	if err != nil {
		return found{}, false
	}
	f = found{how: ace.ParseRepaired, note: "it was no valid JSON", cut: c.open, fields: object([]byte(mended))}
	if c.open > 0 {
		f.note = "it was cut off before its end"
	}
	return f, f.fields != nil
}

// depth is the most brackets that are open at a time, at most: strings are not looked at.
func depth(text string) int {
	now, most := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '{', '[', '(':
			now++
			most = max(most, now)
		case '}', ']', ')':
			now--
		}
	}
	return most
}

// candidates are the parts of an answer that may be what was asked for, the likeliest
// first: all of it, then the last of what is fenced, then the last of the objects in the
// prose, then what is open at the end.
func candidates(text string) []candidate {
	text = withoutThought(text)
	var all []candidate
	if text != "" && (text[0] == '{' || text[0] == '[') {
		spans, _, open := scan(text)
		whole := len(spans) > 0 && spans[len(spans)-1].to == len(text) && spans[len(spans)-1].from == 0
		if whole || json.Valid([]byte(text)) {
			all = append(all, candidate{text: text, whole: true})
		} else if text[0] == '[' {
			all = append(all, candidate{text: text, open: open})
		}
	}
	blocks := fenced(text)
	for i := len(blocks) - 1; i >= 0 && i >= len(blocks)-maxCandidates; i-- {
		_, _, open := scan(blocks[i])
		all = append(all, candidate{text: blocks[i], open: open})
	}
	spans, opened, open := scan(text)
	for i := len(spans) - 1; i >= 0 && i >= len(spans)-maxCandidates; i-- {
		all = append(all, candidate{text: text[spans[i].from:spans[i].to]})
	}
	if opened >= 0 {
		all = append(all, candidate{text: text[opened:], open: open})
	}
	return all
}

// withoutThought leaves out what models that think aloud say before they answer.
func withoutThought(text string) string {
	if rest, ok := strings.CutPrefix(text, "<think>"); ok {
		if _, after, done := strings.Cut(rest, "</think>"); done {
			return strings.TrimSpace(after)
		}
	}
	return text
}

// fenced are the insides of the blocks between lines of three backticks. The last may be
// without its end.
func fenced(text string) (blocks []string) {
	inside, from := false, 0
	for at := 0; at < len(text); {
		end := strings.IndexByte(text[at:], '\n')
		next := len(text)
		if end >= 0 {
			next = at + end + 1
		}
		if strings.HasPrefix(strings.TrimLeft(text[at:next], " \t"), "```") {
			if inside {
				blocks = append(blocks, strings.TrimSpace(text[from:at]))
			}
			inside, from = !inside, next
		}
		at = next
	}
	if inside && from < len(text) {
		blocks = append(blocks, strings.TrimSpace(text[from:]))
	}
	return blocks
}

type span struct{ from, to int }

// scan finds the outermost objects that are whole, where the outermost one begins that is
// not (-1: none), and how many brackets are open at the end. Quotes count within objects
// only: prose is full of them.
func scan(text string) (spans []span, opened, open int) {
	var stack []int // where each open bracket is
	quoted := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '\\':
			i++
		case c == '"' && len(stack) > 0:
			quoted = !quoted
		case quoted:
		case c == '{', c == '[' && (len(stack) > 0 || i == 0):
			stack = append(stack, i)
		case (c == '}' || c == ']') && len(stack) > 0:
			from := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if text[from] != '{' && len(stack) > 0 {
				break
			}
			for len(spans) > 0 && spans[len(spans)-1].from > from {
				spans = spans[:len(spans)-1] // within this one
			}
			spans = append(spans, span{from, i + 1})
		}
	}
	if len(stack) == 0 {
		return spans, -1, 0
	}
	for _, at := range stack {
		if text[at] == '{' {
			return spans, at, len(stack)
		}
	}
	return spans, -1, len(stack)
}
