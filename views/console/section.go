package console

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/theme"
	"acescope/tui"
	"acescope/tui/widget"
)

// Row is a row of a list with rows of different types.
type Row interface {
	// Draw returns the row in width cells. A plain row is painted as a whole afterward.
	Draw(s theme.Styles, width int, plain bool, now time.Time) string
	// Open shows the subject of the row.
	Open(tui.Shell) tea.Cmd
	// Copied returns what the row copies and a short description, "" for both if there is nothing.
	Copied() (what, content string)
}

// CopiesOf returns the forms in which a row can be copied besides [Row.Copied], if it has any.
func CopiesOf(row any) []tui.Copy {
	if r, ok := row.(tui.MultiCopier); ok {
		return r.Copies()
	}
	return nil
}

// Section is a heading with rows.
type Section struct {
	Name   string
	Remark string
	Limit  int // shown rows unless there is room for more; 0 for all
	Rows   []Row
}

// SectionParts returns what a [widget.SectionList] lists of sections.
func SectionParts(sections []Section) []widget.SectionPart {
	parts := make([]widget.SectionPart, len(sections))
	for i, s := range sections {
		parts[i] = widget.SectionPart{Name: s.Name, Remark: s.Remark, Rows: len(s.Rows), Limit: s.Limit}
	}
	return parts
}
