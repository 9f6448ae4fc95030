package console

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/widget"
)

// Cells returns the cells of a row of a given width.
type Cells func(s theme.Styles, width int, now time.Time) []widget.SizedCell

// Row is a row of a list with rows of different kinds.
type Row struct {
	Cells         Cells
	Open          func(tui.Shell) tea.Cmd // shows the subject of the row; nil opens Run
	Answer        func(tui.Shell) tea.Cmd // answers what waits on the row, nil if nothing waits
	What, Content string                  // a short description of what the row copies, and the text
	Copies        func() []tui.Copy       // other forms in which it can be copied; nil for those of Run
	Run           runs.Run                // that the row is about, without IDs for none
	Experiment    string                  // workflow ID of the experiment that the row is about, "" for none
}

// Opens returns a function that opens a screen.
func Opens(screen string) func(tui.Shell) tea.Cmd {
	return func(s tui.Shell) tea.Cmd { s.Open(screen); return nil }
}

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
