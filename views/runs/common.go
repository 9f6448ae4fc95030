package runs

import (
	"maps"
	"slices"
	"strings"
	"time"

	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// common holds the values that all loaded rows of a query share. The title shows them once, instead of each
// row. A column whose values differed once stays until the query changes.
type common struct {
	query  string
	rows   *runs.Run // first of the compared rows
	count  int
	at     time.Time         // when they were compared
	next   int               // first of the rows to compare next, of more than manyRows
	values map[string]string // the value that all rows have, by column
	varied map[string]bool   // columns whose values differed
	lead   string            // words that the subjects begin with, "" for none
	// number of rows when lead was computed; it is computed again at twice that number
	leadRows  int
	nameWidth int // of the longest name so far
}

// commonRows is the minimum number of rows from which a common value hides its column. An empty column is
// hidden from the first row on.
const commonRows = 3

// maxNameWidth is the largest width of a run's name beside a subject.
const maxNameWidth = 30

// A list of more than manyRows may change many times a second. It is compared part by part, all of it every
// compareEvery.
const (
	manyRows     = 1000
	compareEvery = 5 * time.Second
)

// look takes new rows and reports whether anything changed.
func (c *common) look(list *runs.RunList, now time.Time, s theme.Styles) bool {
	rows := list.Rows
	if list.Loading { // the rows are those of the query before
		return false
	}
	if len(rows) == 0 || c.rows == &rows[0] && c.count == len(rows) && c.query == list.Query {
		return false
	}
	before, part := *c, rows
	if c.varied == nil || c.query != list.Query {
		*c = common{query: list.Query, varied: map[string]bool{}}
	} else if len(rows) > manyRows {
		part = c.part(rows, now.Sub(c.at))
	}
	c.rows, c.count, c.at = &rows[0], len(rows), now
	c.values = map[string]string{}
	for _, column := range DefaultColumns(s.Glyphs)[1:] {
		if column.changes || c.varied[column.ID] {
			continue
		}
		value, known := before.values[column.ID]
		compared := part
		if !known || len(part) == len(rows) {
			value, compared = column.Cell(rows[0], now, s), rows
		}
		value, ok := commonValue(value, compared, column, now, s)
		c.varied[column.ID] = !ok
		if ok && (value == "" || len(rows) >= commonRows) {
			c.values[column.ID] = value
		}
	}
	if len(rows) >= 2*c.leadRows {
		c.lead, c.leadRows = leadOf(rows, c.lead), len(rows)
	}
	for i := range part {
		if c.nameWidth >= maxNameWidth {
			break
		}
		c.nameWidth = max(c.nameWidth, min(text.Width(console.NameOf(part[i]))+forkWidth(part[i]),
			maxNameWidth))
	}
	return c.lead != before.lead || c.nameWidth != before.nameWidth || !maps.Equal(c.values, before.values)
}

// part returns the rows to compare after a time, in turn.
func (c *common) part(rows []runs.Run, after time.Duration) []runs.Run {
	share := min(max(float64(after)/float64(compareEvery), 0), 1)
	if c.next >= len(rows) || share == 1 {
		c.next = 0
	}
	first := c.next
	c.next = min(first+1+int(share*float64(len(rows))), len(rows))
	return rows[first:c.next]
}

// forkWidth is the width of the sign before the name of a fork.
func forkWidth(r runs.Run) int {
	return widget.If(r.Fork == nil, 0, 2)
}

// commonValue returns the text of a column if it is the same in all rows, value in those before. A number may
// be missing in some rows.
func commonValue(value string, rows []runs.Run, c Column, now time.Time, s theme.Styles) (string, bool) {
	for i := range rows {
		next := c.Cell(rows[i], now, s)
		switch {
		case next == value, c.right && next == s.Glyphs.Dash:
		case c.right && value == s.Glyphs.Dash:
			value = next
		default:
			return "", false
		}
	}
	return value, true
}

// said lists the common values, for the title.
func (c *common) shared(g theme.Glyphs) (shared []string) {
	if len(c.values) == 0 {
		return nil
	}
	for _, column := range DefaultColumns(g) {
		value, ok := c.values[column.ID]
		switch {
		case !ok || value == "" || value == g.Dash:
		case column.right || column.ID == "delta":
			shared = append(shared, column.name()+" "+value)
		default:
			shared = append(shared, value)
		}
	}
	return shared
}

// minLead is the minimum number of words that are left out of the subjects.
const minLead = 2

// leadOf returns the words that all subjects begin with. It returns before, the previous result, as
// long as half of the subjects begin with it.
func leadOf(rows []runs.Run, before string) string {
	var words []string
	subjects, same := 0, 0
	for i := range rows {
		subject := subjectOf(rows[i])
		if subject == "" {
			continue
		}
		if strings.HasPrefix(subject, before) {
			same++
		}
		if subjects++; subjects == 1 {
			words = strings.SplitAfter(subject, " ")
			words = words[:len(words)-1] // a word of each subject stays
			continue
		}
		words = words[:sameWords(words, subject)]
		if before == "" && len(words) < minLead {
			return ""
		}
	}
	if before != "" && 2*same >= subjects {
		return before
	}
	if subjects < commonRows || len(words) < minLead {
		return ""
	}
	return text.Safe(strings.Join(words, ""), " ")
}

// sameWords returns how many of the words a subject begins with, at most all but its last.
func sameWords(words []string, subject string) int {
	at := 0
	differs := func(word string) bool {
		same := strings.HasPrefix(subject[at:], word) && at+len(word) < len(subject)
		at += len(word)
		return !same
	}
	if n := slices.IndexFunc(words, differs); n >= 0 {
		return n
	}
	return len(words)
}

// shorten leaves the common words out of a subject.
func (c *common) shorten(subject string) string { return strings.TrimPrefix(subject, c.lead) }
