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

// Section is a section of rows of different kinds.
type Section = widget.Section[Row]

// SectionKeys returns the keys that move from section to section and expand one. part is the word for a
// section in the names of the actions, next and expand are the labels in the status line, "" for none.
func SectionKeys[R any](view, part, next, expand string, l *widget.SectionList[R]) []tui.Binding {
	return []tui.Binding{
		Key(view+".next_"+part, "next section", next, func() { l.Jump(1) }, "]"),
		Key(view+".previous_"+part, "previous section", "", func() { l.Jump(-1) }, "["),
		Key(view+".all", "expand or collapse the section", expand, l.Toggle, "a"),
	}
}
