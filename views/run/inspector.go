package run

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/widget"
)

// Inspector shows the row under the cursor of the story whole.
type Inspector struct {
	*reading
	styles        theme.Styles
	width, height int
	panel         widget.Panel
	doc           widget.Document

	lines     []string
	of        inspectedKey
	foundLine int // of the last match, -1 for none
}

// inspectedKey is what the lines were made of.
type inspectedKey struct {
	run       string
	it        Item
	from      any // the piece of the detail that the row is about
	artifacts *histories.Artifacts
	asked     int
	width     int
	second    int64 // where the lines hold ages
}

func NewInspector(r *reading) *Inspector { return &Inspector{reading: r} }

func (v *Inspector) Name() string { return "Inspect" }

func (v *Inspector) Title() string {
	if d := v.current(); d != nil && v.at.Kind != itemNone {
		return titleOf(d, v.at)
	}
	return "Inspect"
}

// Footer is which lines are in sight.
func (v *Inspector) Footer() string { return Position(&v.panel) }

func (v *Inspector) Bindings() []tui.Binding {
	b := append(widget.Motions("inspect", v),
		tui.Binding{Action: "inspect.find", Keys: []string{"/"}, Help: "find a text in what is shown here", Short: "find", Do: v.ask},
		tui.Binding{Action: "inspect.next", Keys: []string{"n"}, Help: "the next match", Do: func(s tui.Shell) tea.Cmd { v.match(s, 1); return nil }},
		tui.Binding{Action: "inspect.previous", Keys: []string{"N"}, Help: "the match before", Do: func(s tui.Shell) tea.Cmd { v.match(s, -1); return nil }},
	)
	b = append(b, v.ForkAt("inspect", v.forkPoint)...)
	return append(b, v.shared("inspect")...)
}

func (v *Inspector) SetStyles(s theme.Styles) {
	v.styles, v.of = s, inspectedKey{}
	v.doc.Clear()
}

func (v *Inspector) SetSize(width, height int) { v.width, v.height = width, height }

// Refresh has nothing to do: the story takes the data for both.
func (v *Inspector) Refresh() {}

func (v *Inspector) Page() int { return max(v.height, 1) }

func (v *Inspector) Scroll(by int) { v.panel.Scroll(by) }

func (v *Inspector) ask(s tui.Shell) tea.Cmd {
	s.Ask(tui.Prompt{Label: "find: ", Value: v.find, Hint: "a text in what is shown here",
		Done: func(typed string) tea.Cmd {
			v.find, v.foundLine = strings.ToLower(strings.TrimSpace(typed)), v.panel.Top-1
			v.match(s, 1)
			return nil
		}})
	return nil
}

func (v *Inspector) match(s tui.Shell, by int) {
	n := len(v.lines)
	for step := 1; step <= n && v.find != ""; step++ {
		i := ((v.foundLine+by*step)%n + n) % n
		if strings.Contains(strings.ToLower(ansi.Strip(v.lines[i])), v.find) {
			v.foundLine = i
			v.panel.Top = 0
			v.panel.Scroll(max(i-v.height/3, 0))
			return
		}
	}
	s.Note("nothing here holds it")
}

// Copy gives what is inspected: of a call its result, or its arguments.
func (v *Inspector) Copy() (string, string) {
	d := v.current()
	if d == nil || v.at.Kind == itemNone {
		return "", ""
	}
	return inspected(d, v.at)
}

func (v *Inspector) Draw(now time.Time, _ bool) []string {
	d := v.current()
	if d == nil {
		return widget.Centre(nothing(v.Console, v.styles.Glyphs), v.width, v.height, v.styles)
	}
	v.build(d, d.Clock(now))
	v.panel.Lines, v.panel.Height = len(v.lines), v.height
	v.panel.Scroll(0)
	shown := v.lines[v.panel.Top:min(v.panel.Top+v.height, len(v.lines))]
	return widget.Fill(append([]string(nil), shown...), v.width, v.height)
}

// build makes the lines anew where what they are made of is another.
func (v *Inspector) build(d *histories.Detail, now time.Time) {
	key := inspectedKey{run: d.WorkflowID + " " + d.RunID, it: v.at, artifacts: v.artifacts, asked: len(v.asked), width: v.width, from: d}
	switch v.at.Kind {
	case ItemCall:
		key.from = d.Calls.At(int(v.at.N)) // never changed, only replaced
	case itemPending, ItemPhase, itemActivity, ItemSkill, ItemSection:
		key.second = now.Unix()
	}
	if key == v.of {
		return
	}
	if key.run != v.of.run || key.it != v.of.it {
		v.panel.Top, v.foundLine = 0, -1
	}
	v.of = key
	w := &widget.Writer{Doc: &v.doc, S: v.styles, Width: v.width, Now: now, Loc: v.Location}
	i := inspection{Writer: w, d: d, reading: v.reading}
	i.write(v.at)
	v.lines = w.Lines
}
