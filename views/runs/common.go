package runs

import (
	"maps"
	"strings"
	"time"

	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// common is what all loaded rows of a query share. A column with one value is not drawn: the title shows the
// value, if it says something. A column whose values differed once stays until the query changes.
type common struct {
	query  string
	rows   *runs.Run // first of the compared rows
	count  int
	at     time.Time         // when they were compared
	values map[string]string // the value that all rows have, by column
	varied map[string]bool   // columns whose values differed
	lead   string            // words that the subjects begin with, "" for none
	traced bool              // a run of the query had a trace
	// nameWidth is the width of the longest name so far.
	nameWidth int
}

// commonRows is the minimum number of rows from which a common value hides its column. A column that says
// nothing is hidden from the first row on.
const commonRows = 3

// maxNameWidth is the largest width of a run's name beside a subject.
const maxNameWidth = 30

// A list of more than manyRows may change many times a second. It is compared every compareEvery.
const (
	manyRows     = 1000
	compareEvery = 5 * time.Second
)

// look takes new rows and reports whether anything changed.
func (c *common) look(list *runs.RunList, now time.Time, s theme.Styles) bool {
	rows := list.Rows
	if list.Loading || len(rows) == 0 { // while it loads, the rows are those of the query before
		return false
	}
	if c.varied == nil || c.query != list.Query {
		*c = common{query: list.Query, varied: map[string]bool{}}
	}
	same := c.rows == &rows[0] && c.count == len(rows)
	if same || c.count > manyRows && len(rows) > manyRows && now.Sub(c.at) < compareEvery {
		return false
	}
	before := *c
	c.rows, c.count, c.at = &rows[0], len(rows), now
	c.values = map[string]string{}
	for _, column := range DefaultColumns(s.Glyphs)[1:] {
		if column.changes || c.varied[column.ID] {
			continue
		}
		value, ok := column.common(rows, now, s)
		c.varied[column.ID] = !ok
		if ok && (len(rows) >= commonRows || column.silent(value, s.Glyphs)) {
			c.values[column.ID] = value
		}
	}
	c.traced = c.traced || traced(rows)
	c.lead = leadOf(rows, c.lead)
	for i := 0; i < len(rows) && c.nameWidth < maxNameWidth; i++ {
		width := text.Width(console.NameOf(rows[i])) + widget.If(rows[i].Fork == nil, 0, 2)
		c.nameWidth = max(c.nameWidth, min(width, maxNameWidth))
	}
	return c.traced != before.traced || c.lead != before.lead || c.nameWidth != before.nameWidth ||
		!maps.Equal(c.values, before.values)
}

// common returns the text of the column if it is the same in all rows. A number may be missing in some rows.
func (c Column) common(rows []runs.Run, now time.Time, s theme.Styles) (string, bool) {
	value := c.Cell(rows[0], now, s)
	for i := range rows[1:] {
		next := c.Cell(rows[1+i], now, s)
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

// silent reports whether a text says nothing about a run.
func (c Column) silent(value string, g theme.Glyphs) bool {
	return value == "" || value == g.Dash || value == c.usual
}

// shared lists the common values, for the title.
func (c *common) shared(g theme.Glyphs) (shared []string) {
	for _, column := range DefaultColumns(g) {
		value, ok := c.values[column.ID]
		switch {
		case !ok || column.silent(value, g):
		case column.traced && !c.traced:
		case column.right || column.ID == columnDelta:
			shared = append(shared, column.name()+" "+value)
		default:
			shared = append(shared, value)
		}
	}
	return shared
}

// minLead is the minimum number of words that are left out of the subjects.
const minLead = 2

// leadOf returns the words that all subjects begin with, without the last word of any. It returns before, the
// previous result, as long as half of the subjects begin with it.
func leadOf(rows []runs.Run, before string) string {
	lead, subjects, same := "", 0, 0
	for i := range rows {
		subject := strings.TrimSpace(subjectOf(rows[i]))
		if subject == "" {
			continue
		}
		if subjects++; subjects == 1 {
			lead = subject
		}
		for !strings.HasPrefix(subject, lead) || lead == subject {
			lead = lead[:strings.LastIndexByte(strings.TrimSuffix(lead, " "), ' ')+1]
		}
		if strings.HasPrefix(subject, before) {
			same++
		}
	}
	switch {
	case before != "" && 2*same >= subjects:
		return before
	case subjects < commonRows || strings.Count(lead, " ") < minLead:
		return ""
	}
	return text.Safe(lead, " ")
}

// shorten leaves the common words out of a subject.
func (c *common) shorten(subject string) string { return strings.TrimPrefix(subject, c.lead) }
