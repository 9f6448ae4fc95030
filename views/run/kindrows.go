package run

import (
	"encoding/json"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/kind"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/views/console"
)

// kindPart draws a section that the kind of the run describes. It is comparable.
type kindPart struct{ *kind.Section }

func (p kindPart) title() string { return p.Title }

func (p kindPart) head(_ *histories.Detail, s theme.Styles) (title, remark string, ink theme.Ink) {
	return text.Safe(p.Title, " "), text.Safe(p.Remark, " "), s.Muted
}

// paneItems bounds the items of a section in the detail pane.
const paneItems = 20

func (p kindPart) pane() int { return paneItems }

func (p kindPart) inspection() func(*inspection) { return nil }

func (p kindPart) list(b *lister, _ *histories.Detail) {
	for i := range p.Items {
		item := &p.Items[i]
		if item.Head != "" {
			b.add("item", i, itemRow{item})
			continue
		}
		for n, f := range item.Fields {
			b.add("item field", i*maxItemFields+n, textRow{f.Label, f.Text, item.Event})
		}
	}
}

// maxItemFields is more than the fields of any item without a head.
const maxItemFields = 64

// itemRow is an item of a section: its head and outcome, and its fields.
type itemRow struct{ *kind.Item }

func (r itemRow) field(of kind.FieldKind, label string) string {
	for _, f := range r.Fields {
		if f.Kind == of && (label == "" || f.Label == label) {
			return f.Text
		}
	}
	return ""
}

func (r itemRow) Draw(l *line) {
	s := l.S
	if r.Outcome != "" {
		m := console.OutcomeMark(r.Outcome, s)
		l.add(m.Ink, m.Glyph+" "+text.Safe(r.Head, " "))
		if r.Outcome != kind.OutcomeOK {
			l.add(m.Ink, " "+m.Word)
		}
	} else {
		l.add(s.Text, text.Safe(r.Head, " "))
	}
	if input := r.field(kind.FieldPayload, "input"); input != "" {
		input = text.Payload(beginning([]byte(input)))
		l.add(s.Text, " ("+text.Cut(input, max(l.Width/2, 10), s.Glyphs.Ellipsis)+")")
	}
	if e := r.field(kind.FieldError, ""); e != "" {
		l.add(s.Error, " "+oneLine(e))
	}
	for _, f := range r.Fields {
		if f.Kind == "" && f.Label != "worker" {
			l.add(s.Muted, "  "+text.Safe(f.Label, " ")+" "+oneLine(f.Text))
		}
	}
	if result := r.field(kind.FieldPayload, "result"); result != "" {
		l.add(s.Muted, " "+s.Glyphs.Arrow+" ").add(s.Text, resultText([]byte(result)))
	}
}

func (r itemRow) Inspect(w *inspection) {
	l := w.Line()
	if r.Outcome != "" {
		m := console.OutcomeMark(r.Outcome, w.S)
		l.Add(m.Ink, " "+m.Glyph+" "+m.Word+" ")
	}
	w.End(l.Add(w.S.Strong, " "+text.Safe(r.Head, " ")))
	for _, f := range r.Fields {
		switch f.Kind {
		case kind.FieldPayload:
		case kind.FieldError:
			w.Prose(" "+text.Fit(text.Safe(f.Label, " "), 12, ""), w.S.Error, f.Text)
		default:
			w.field(f.Label, f.Text)
		}
	}
	for _, f := range r.Fields {
		if f.Kind == kind.FieldPayload {
			w.payload(strings.ToUpper(f.Label[:1])+f.Label[1:], json.RawMessage(f.Text), "--json")
		}
	}
	if _, ok := r.target(); ok {
		w.Say(w.S.Text, "")
		w.hint("enter", "opens the run; backspace leads back")
	}
}

func (r itemRow) Copy() (what, text string) { return "name", r.Head }
func (r itemRow) title() string             { return text.Safe(r.Head, " ") }
func (r itemRow) Event() int64              { return r.Item.Event }

func (r itemRow) failed() bool {
	return r.Outcome == kind.OutcomeFailed || r.Outcome == kind.Outcome(ace.TimedOut) ||
		r.field(kind.FieldError, "") != ""
}

func (r itemRow) find(has func(string) bool) bool {
	for _, f := range r.Fields {
		if has(f.Text) {
			return true
		}
	}
	return has(r.Head)
}

// payload returns the result, or the input of an item without one.
func (r itemRow) payload() (what string, raw []byte) {
	for _, label := range []string{"result", "input"} {
		if t := r.field(kind.FieldPayload, label); t != "" {
			return label, []byte(t)
		}
	}
	return "", nil
}

func (r itemRow) target() (runs.Run, bool) {
	if r.Run == nil {
		return runs.Run{}, false
	}
	return runs.Run{WorkflowID: r.Run.WorkflowID, RunID: r.Run.RunID, TaskID: ace.TaskIDOf(r.Run.WorkflowID)},
		true
}

// partsOf returns the parts of the run screen in order. The sections of a run's kind replace those of the
// contract.
func partsOf(d *histories.Detail) []part {
	all := make([]part, 0, len(sections)+len(d.Sections))
	for i := range sections {
		s := &sections[i]
		if s.name == "Lineage" {
			for n := range d.Sections {
				all = append(all, kindPart{&d.Sections[n]})
			}
		}
		if d.Sections == nil || s.anyKind {
			all = append(all, s)
		}
	}
	return all
}
