package views

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
)

// inspector shows the row under the cursor of the story whole.
type inspector struct {
	*reading
	styles        theme.Styles
	width, height int
	panel         panel
	doc           document

	lines     []string
	of        inspectedKey
	foundLine int // of the last match, -1 for none
}

// inspectedKey is what the lines were made of.
type inspectedKey struct {
	run       string
	it        item
	from      any // the piece of the detail that the row is about
	artifacts *sources.Artifacts
	asked     int
	width     int
	second    int64 // where the lines hold ages
}

func newInspector(r *reading) *inspector { return &inspector{reading: r} }

func (v *inspector) Name() string { return "Inspect" }

func (v *inspector) Title() string {
	if d := v.current(); d != nil && v.at.kind != itemNone {
		return titleOf(d, v.at)
	}
	return "Inspect"
}

// Footer is which lines are in sight.
func (v *inspector) Footer() string { return v.panel.position() }

func (v *inspector) Bindings() []tui.Binding {
	b := append(motions("inspect", v),
		tui.Binding{Action: "inspect.find", Keys: []string{"/"}, Help: "find a text in what is shown here", Short: "find", Do: v.ask},
		tui.Binding{Action: "inspect.next", Keys: []string{"n"}, Help: "the next match", Do: func(s tui.Shell) tea.Cmd { v.match(s, 1); return nil }},
		tui.Binding{Action: "inspect.previous", Keys: []string{"N"}, Help: "the match before", Do: func(s tui.Shell) tea.Cmd { v.match(s, -1); return nil }},
	)
	b = append(b, v.forkAt("inspect", v.forkPoint)...)
	return append(b, v.shared("inspect")...)
}

func (v *inspector) Update(tea.Msg) tea.Cmd { return nil }

func (v *inspector) SetShown(bool) {}

func (v *inspector) SetStyles(s theme.Styles) {
	v.styles, v.of = s, inspectedKey{}
	v.doc.clear()
}

func (v *inspector) SetSize(width, height int) { v.width, v.height = width, height }

// SetSnapshot has nothing to do: the story takes the data for both.
func (v *inspector) SetSnapshot(*sources.Snapshot) {}

func (v *inspector) page() int { return max(v.height, 1) }

func (v *inspector) scroll(by int) { v.panel.scroll(by) }

func (v *inspector) ask(s tui.Shell) tea.Cmd {
	s.Ask(tui.Prompt{Label: "find: ", Value: v.find, Hint: "a text in what is shown here",
		Done: func(typed string) tea.Cmd {
			v.find, v.foundLine = strings.ToLower(strings.TrimSpace(typed)), v.panel.top-1
			v.match(s, 1)
			return nil
		}})
	return nil
}

func (v *inspector) match(s tui.Shell, by int) {
	n := len(v.lines)
	for step := 1; step <= n && v.find != ""; step++ {
		i := ((v.foundLine+by*step)%n + n) % n
		if strings.Contains(strings.ToLower(ansi.Strip(v.lines[i])), v.find) {
			v.foundLine = i
			v.panel.top = 0
			v.panel.scroll(max(i-v.height/3, 0))
			return
		}
	}
	s.Note("nothing here holds it")
}

// Copy gives what is inspected: of a call its result, or its arguments.
func (v *inspector) Copy() (string, string) {
	d := v.current()
	if d == nil || v.at.kind == itemNone {
		return "", ""
	}
	return inspected(d, v.at)
}

func (v *inspector) Draw(now time.Time, _ bool) []string {
	d := v.current()
	if d == nil {
		return centre(nothing(v.console, v.styles.Glyphs), v.width, v.height, v.styles)
	}
	v.build(d, d.Clock(now))
	v.panel.lines, v.panel.height = len(v.lines), v.height
	v.panel.scroll(0)
	shown := v.lines[v.panel.top:min(v.panel.top+v.height, len(v.lines))]
	return fill(append([]string(nil), shown...), v.width, v.height)
}

// build makes the lines anew where what they are made of is another.
func (v *inspector) build(d *sources.Detail, now time.Time) {
	key := inspectedKey{run: d.WorkflowID + " " + d.RunID, it: v.at, artifacts: v.artifacts, asked: len(v.asked), width: v.width, from: d}
	switch v.at.kind {
	case itemCall:
		key.from = d.Calls.At(int(v.at.n)) // never changed, only replaced
	case itemPending, itemPhase, itemActivity, itemSkill, itemSection:
		key.second = now.Unix()
	}
	if key == v.of {
		return
	}
	if key.run != v.of.run || key.it != v.of.it {
		v.panel.top, v.foundLine = 0, -1
	}
	v.of = key
	w := &writer{doc: &v.doc, s: v.styles, width: v.width, now: now, loc: v.Location}
	i := inspection{writer: w, d: d, reading: v.reading}
	i.write(v.at)
	v.lines = w.lines
}
