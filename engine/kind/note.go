package kind

import (
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/trace"
)

// Note is what an event did to one item of a run, for a log.
type Note struct {
	Name    string // of the item, such as the type of an activity
	Text    string // one line
	Item    *Item
	Call    *trace.Call  // of an agent, that has ended; then Item is nil
	Stream  bool         // Text is a part of an answer that a model streams
	Failure *ace.Failure // of the item
}

// Noter is a [Fold] that knows what its last event did without a description of the whole state.
type Noter interface {
	// Notes returns what the last event did, in order.
	Notes() []Note
}

// Notes returns what the last event that a fold applied did, in order.
func Notes(f Fold, last *historypb.HistoryEvent) (notes []Note) {
	if n, ok := f.(Noter); ok {
		return n.Notes()
	}
	for _, s := range f.Sections(Books{}, last) {
		for _, i := range s.Items {
			if i.Changed || i.Event == last.GetEventId() {
				notes = append(notes, Note{Name: i.Head, Text: i.Line(), Item: &i})
			}
		}
	}
	return notes
}

// maxLineText bounds a field in a line, in bytes.
const maxLineText = 160

// Line describes an item in one line of untrusted text, with the beginnings of its fields.
func (i Item) Line() string {
	text := strings.TrimSpace(i.Head + " " + string(i.Outcome))
	for _, f := range i.Fields {
		between := ", "
		if f.Kind == FieldError {
			between = ": "
		} else if f.Label != "" {
			between += f.Label + " "
		}
		text += between + ace.OneLine(f.Text, maxLineText)
	}
	return strings.TrimLeft(text, ",: ")
}
