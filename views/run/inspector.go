package run

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Inspector shows everything that is known about the selected row of the outline.
type Inspector struct {
	*reading
	console.Reader
	shown     rowOf
	foundLine int // of the last match, -1 for none
}

// inspected identifies what the lines of an inspector were written from.
type inspected struct {
	row       Row
	artifacts console.ArtifactState
	second    int64 // current second if the lines contain ages, otherwise 0
}

// rowOf identifies a row of a run.
type rowOf struct {
	key Key
	run string
}

func NewInspector(r *reading) *Inspector {
	return &Inspector{reading: r, Reader: console.NewReader("Inspect", r.location)}
}

func (v *Inspector) Title() string {
	r := v.selectedRow()
	if r == nil {
		return "Inspect"
	}
	if t, ok := r.(titler); ok {
		return t.title()
	}
	what, _ := r.Copy()
	return text.Safe(what, " ")
}

func (v *Inspector) Bindings() []tui.Binding {
	match := func(by int) func(tui.Shell) { return func(s tui.Shell) { v.match(s, by) } }
	b := append(widget.Motions("inspect", v),
		console.Key("inspect.search", "find text in the inspector", "find", v.ask, "/"),
		console.Key("inspect.next_match", "next match", widget.If(v.find != "", "next match", ""), match(1),
			"ctrl+n"),
		console.Key("inspect.previous_match", "previous match", "", match(-1), "ctrl+p"))
	b = append(b, v.forks.ForkAt("inspect", v.forkPoint)...)
	b = append(b, v.decideKey("inspect")...)
	return append(b, v.shared("inspect")...)
}

func (v *Inspector) ask(s tui.Shell) {
	s.Ask(tui.Prompt{Label: "find: ", Value: v.find, Hint: "text in the inspector",
		Done: func(typed string) tea.Cmd {
			v.find, v.foundLine = strings.ToLower(strings.TrimSpace(typed)), v.Top-1
			v.match(s, 1)
			return nil
		}})
}

func (v *Inspector) match(s tui.Shell, by int) {
	n := len(v.Lines)
	for step := 1; step <= n && v.find != ""; step++ {
		i := ((v.foundLine+by*step)%n + n) % n
		if strings.Contains(strings.ToLower(ansi.Strip(v.Lines[i])), v.find) {
			v.foundLine, v.Top = i, 0
			v.Scroll(max(i-v.Height/3, 0))
			return
		}
	}
	s.Note("no match in the inspector")
}

func (v *Inspector) Copy() (what, text string) {
	r := v.selectedRow()
	if r == nil {
		return "", ""
	}
	if p, ok := r.(payloader); ok {
		if what, raw := p.payload(); len(raw) > 0 {
			if json.Unmarshal(raw, &text) == nil {
				return what, text
			}
			return what, string(raw)
		}
	}
	return r.Copy()
}

func (v *Inspector) Copies() []tui.Copy { return v.nav.SelectedCopies() }

func (v *Inspector) Draw(now time.Time, focused bool) []string {
	d := v.current()
	if d == nil {
		return v.Message(nil, emptyLines(v.nav, v.listing, v.Styles.Glyphs)...)
	}
	now = d.Clock(now)
	of := inspected{row: v.selectedRow(), artifacts: v.feeds.Artifacts.State()}
	if _, ok := of.row.(ager); ok {
		of.second = now.Unix()
	}
	key := rowOf{v.at.Key, d.WorkflowID + " " + d.RunID}
	if key != v.shown {
		v.shown, v.foundLine = key, -1
	}
	return v.Show(key, of, now, focused, func(writer *widget.Writer) {
		writer.Labels = 12
		w := &inspection{Writer: writer, reading: v.reading, d: d}
		if of.row == nil {
			w.Say(w.S.Muted, " nothing to inspect")
			return
		}
		of.row.Inspect(w)
		w.event(of.row.Event())
	})
}

// inspection writes the lines of an inspector.
type inspection struct {
	*widget.Writer
	*reading
	d *histories.Detail
}

// event writes the event that a row comes from, unless it is 0.
func (w *inspection) event(id int64) {
	if id != 0 {
		w.Say(w.S.Text, "")
		w.End(w.Line().Add(w.S.Muted, " event ").Add(w.S.Text, ace.Number(id)).
			Add(w.S.Muted, "  (").Add(w.S.Key, "J").Add(w.S.Muted, " goes to it)"))
	}
}

func (w *inspection) field(name, value string) { w.Fact(text.Safe(name, " "), w.S.Text, value) }

func (w *inspection) time(name string, at time.Time) {
	if !at.IsZero() {
		w.field(name, at.In(w.Loc).Format("2006-01-02 15:04:05.000"))
	}
}

func (w *inspection) hint(key, does string) {
	w.End(w.Line().Add(w.S.Key, " "+key).Add(w.S.Hint, " "+does))
}

// showCommand returns the command that prints what does not fit.
func (w *inspection) showCommand(flags ...string) string {
	return w.nav.Command(append([]string{"show", w.name()}, flags...)...)
}

// name returns the run's name for a command.
func (w *inspection) name() string { return cmp.Or(w.d.Input.TaskID, w.d.WorkflowID) }

// payload writes a JSON value, formatted and colored, up to a bound. The command "show" with flags
// prints all of it.
func (w *inspection) payload(title string, raw json.RawMessage, flags ...string) {
	if len(raw) == 0 {
		w.Section(title, "none")
		return
	}
	whole := w.showCommand(flags...) + " prints all of it"
	console.WritePayload(w.Writer, title, w.feeds.Artifacts.Payloads.Of(raw), whole)
}

// refs writes the contents of artifacts, or how to open them.
func (w *inspection) refs(refs []ace.Ref) {
	w.feeds.Artifacts.Write(w.Writer, w.nav, refs, w.name())
}
