package blueprint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Problem is a problem of a blueprint. Line and Column (in characters) count from 1; 0 is
// unknown. Path is a JSON path, or "" for a file as a whole.
type Problem struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Path   string `json:"path,omitempty"`
	Text   string `json:"text"`
}

func (p Problem) String() string {
	var parts []string
	if p.File != "" {
		file := p.File
		for _, n := range []int{p.Line, p.Column} {
			if n > 0 {
				file += ":" + strconv.Itoa(n)
			}
		}
		parts = append(parts, file)
	}
	if p.Path != "" {
		parts = append(parts, p.Path)
	}
	return strings.Join(append(parts, p.Text), ": ")
}

// Problems are the problems of a blueprint. More counts those above [MaxProblems].
type Problems struct {
	List []Problem `json:"problems"`
	More int       `json:"more,omitempty"`
}

// Error returns the first problem and the number of the others.
func (p *Problems) Error() string {
	if len(p.List) == 0 {
		return "no problems"
	}
	text := p.List[0].String()
	if n := len(p.List) - 1 + p.More; n > 0 {
		text += fmt.Sprintf(" (and %d more: acescope agent validate)", n)
	}
	return text
}

func (p *Problems) add(problem Problem) {
	if len(p.List) >= MaxProblems {
		p.More++
		return
	}
	p.List = append(p.List, problem)
}

func (p *Problems) addAll(others Problems) {
	for _, problem := range others.List {
		p.add(problem)
	}
	p.More += others.More
}

func (p *Problems) any() bool { return len(p.List) > 0 }

// document is a file with its problems.
type document struct {
	name string
	data []byte
	Problems
	notes []Problem
}

// problem adds a problem at an offset of the document; -1 is unknown.
func (d *document) problem(offset int, path, format string, args ...any) {
	d.add(d.newProblem(offset, path, fmt.Sprintf(format, args...)))
}

// note adds a warning.
func (d *document) note(offset int, path, format string, args ...any) {
	if len(d.notes) < MaxProblems {
		d.notes = append(d.notes, d.newProblem(offset, path, fmt.Sprintf(format, args...)))
	}
}

func (d *document) newProblem(offset int, path, text string) Problem {
	p := Problem{File: d.name, Path: path, Text: text}
	if offset >= 0 && offset <= len(d.data) {
		p.Line, p.Column = position(d.data, offset)
	}
	return p
}

// position returns the line and column of an offset.
func position(data []byte, offset int) (line, column int) {
	before := string(data[:offset])
	begin := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[begin:]) + 1
}

// fields reads the fields of an object and reports their problems. A null field counts as
// absent.
type fields struct {
	doc  *document
	obj  gjson.Result
	path string
}

// get returns the value of a field, if it has one.
func (f fields) get(name string) gjson.Result {
	if v := field(f.obj, name); v.Type != gjson.Null {
		return v
	}
	return gjson.Result{}
}

// problem adds a problem at a field that has a value.
func (f fields) problem(name, format string, args ...any) {
	f.doc.problem(f.get(name).Index, child(f.path, name), format, args...)
}

// want returns the value of a field if it is of a kind.
func (f fields) want(name string, k jsonKind) (v gjson.Result, ok bool) {
	v = f.get(name)
	if v.Exists() && kindOf(v) != k {
		f.problem(name, "expected %s, found %s", k.words(), kindOf(v).words())
		return gjson.Result{}, false
	}
	return v, v.Exists()
}

// text returns a text, or "" if it is absent.
func (f fields) text(name string) string {
	v, ok := f.want(name, stringKind)
	switch {
	case !ok:
	case strings.TrimSpace(v.Str) == "":
		f.problem(name, "is empty: remove it, or fill it in")
	case strings.ContainsRune(v.Str, 0):
		f.problem(name, "contains a NUL")
	}
	return v.Str
}

func (f fields) boundedText(name string, most int) string {
	text := f.text(name)
	if len(text) > most {
		f.problem(name, "has %d bytes; at most %d are allowed", len(text), most)
	}
	return text
}

// line returns a text of one line.
func (f fields) line(name string) string {
	text := f.text(name)
	if strings.ContainsAny(text, "\r\n\t\x1b") {
		f.problem(name, "must be one line without control characters")
	}
	return text
}

func (f fields) boolean(name string) bool {
	v, _ := f.want(name, boolKind)
	return v.Bool()
}

// number returns an integer from 1 to most, or 0 if it is absent.
func (f fields) number(name string, most int) int {
	v, ok := f.want(name, numberKind)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(v.Raw)
	if err != nil || n < 1 || n > most {
		f.problem(name, "expected an integer from 1 to %d, found %s", most, v.Raw)
		return 0
	}
	return n
}

// choice returns one of some words, or "" if it is absent.
func (f fields) choice(name string, words ...string) string {
	v, ok := f.want(name, stringKind)
	if ok && !slices.Contains(words, v.Str) {
		f.problem(name, "%s must be one of %s%s", quote(v.Str), strings.Join(words, ", "), suggestion(v.Str, words))
		return ""
	}
	return v.Str
}

// texts returns a list of texts without duplicates. check describes an invalid text, or
// returns "".
func (f fields) texts(name string, check func(text string) string) []string {
	v, ok := f.want(name, listKind)
	if !ok {
		return nil
	}
	items := v.Array()
	if len(items) > maxList {
		f.problem(name, "has %d entries; at most %d are allowed", len(items), maxList)
		return nil
	}
	out := []string{}
	for i, item := range items {
		why := check(item.Str)
		if kind := kindOf(item); kind != stringKind {
			why = "expected a string, found " + kind.words()
		}
		if why != "" {
			f.doc.problem(item.Index, child(f.path, name)+"["+strconv.Itoa(i)+"]", "%s", why)
		} else if !slices.Contains(out, item.Str) {
			out = append(out, item.Str)
		}
	}
	return out
}

// checkUnknown reports fields that are not known. why is the text for those in misplaced.
func (f fields) checkUnknown(known, misplaced []string, why string) {
	for name := range members(f.obj) {
		if slices.Contains(known, name.Str) {
			continue
		}
		text := why
		if !slices.Contains(misplaced, name.Str) {
			text = "unknown field" + suggestion(name.Str, known)
		}
		f.doc.problem(name.Index, child(f.path, name.Str), "%s", text)
	}
}

// suggestion returns `; did you mean "x"?`, or "" if no known name is similar.
func suggestion(name string, known []string) string {
	if n := nearest(name, known); n != "" {
		return "; did you mean " + quote(n) + "?"
	}
	return ""
}

// nearest returns the known name that a misspelled name most likely means, or "".
func nearest(name string, known []string) string {
	const longest = 100
	if len(name) > longest {
		return ""
	}
	best, least := "", len(name)/3+2
	for _, k := range known {
		if len(k) > longest {
			continue
		}
		d := editDistance(strings.ToLower(name), strings.ToLower(k))
		if strings.EqualFold(strings.ReplaceAll(name, "-", "_"), k) {
			d = 0
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
}

// editDistance returns the Levenshtein distance of two texts in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
