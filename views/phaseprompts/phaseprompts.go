// Package phaseprompts lists the instructions that the phases give to a model, with their versions, and shows
// how a version differs from the previous one.
package phaseprompts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/aymanbagabas/go-udiff"

	"acescope/engine/learning/prompts"
	"acescope/sources/phaseprompts"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Feed lists the versions, and reads the text of one of them.
type Feed interface {
	console.Feed[*phaseprompts.Prompts]
	Refine(phaseprompts.Ask)
}

// list lists the versions of all prompts.
type list struct {
	console.List[prompts.Prompt]
	launcher *console.Launcher
	feed     Feed
	data     *phaseprompts.Prompts
	arranged *phaseprompts.Prompts
}

// Screen returns the list with the text of the selected version.
func Screen(c *console.Console, feed Feed) tui.Screen {
	v := &list{launcher: c.Launcher, feed: feed, List: console.NewList[prompts.Prompt]("Phase prompts",
		widget.Heading{Title: "PHASE", Width: 9},
		widget.Heading{Title: "NAME", Minimum: 10},
		widget.Heading{Title: "VERSION", Width: 7, Right: true},
		widget.Heading{Title: "AGE", Width: 5, Right: true},
		widget.Heading{Title: "FROM", Width: 14, Drop: 1},
	)}
	detail := &detail{from: v, Reader: console.NewReader("Prompt", c.Location)}
	return tui.Screen{Name: "prompts", Aliases: []string{"instructions"}, Aside: true, Share: 42,
		Help: "the instructions of the phases: versions, texts and differences", Views: []tui.View{v, detail}}
}

func (v *list) Bindings() []tui.Binding {
	list := append(widget.Motions("prompts", v),
		console.Key("prompts.open", "go to the text of the version", "open", func(s tui.Shell) { s.Focus(1) },
			"enter"))
	if v.launcher.Actions != nil {
		list = append(list, console.MutatingKey("prompts.edit",
			"edit the text in $EDITOR and store it as a new version of a name", "edit", v.edit, "ctrl+e"))
	}
	return list
}

// edit makes a new version from the one under the cursor.
func (v *list) edit(s tui.Shell) tea.Cmd {
	v.arrange()
	if p, ok := v.Current(); ok {
		v.launcher.EditPrompt(s, p)
	}
	return nil
}

func (v *list) SetShown(shown bool) {
	v.feed.Look(shown)
	v.choose()
}

func (v *list) Refresh() { v.data = v.feed.Value() }

func (v *list) Scroll(by int) {
	v.arrange()
	v.Table.Scroll(by)
	v.choose()
}

// choose reads the text of the version under the cursor.
func (v *list) choose() {
	if p, ok := v.Current(); ok {
		v.feed.Refine(phaseprompts.AskOf(p))
	}
}

// arrange lists the newest versions. The cursor stays on its version.
func (v *list) arrange() {
	if v.data == nil || v.data == v.arranged {
		return
	}
	v.arranged = v.data
	v.Refill(v.data.List, func(a, b prompts.Prompt) bool {
		return phaseprompts.AskOf(a) == phaseprompts.AskOf(b)
	})
	v.choose()
}

func (v *list) Copy() (what, copied string) {
	v.arrange()
	p, ok := v.Current()
	if !ok {
		return "", ""
	}
	return "name", string(p.Phase) + "/" + p.PhasePrompt.String()
}

func (v *list) Draw(now time.Time, focused bool) []string {
	v.arrange()
	var head []string
	if v.data != nil && v.data.Err != "" {
		head = append(head, v.Problem(v.Styles.Error, v.data.Err))
	}
	switch {
	case v.data == nil:
		return v.Message(head, "reading the phase prompts"+v.Styles.Glyphs.Ellipsis)
	case len(v.Rows) == 0:
		return v.Message(head, v.data.Missing)
	}
	return v.DrawRows(head, focused, func(p prompts.Prompt) []widget.Cell { return v.cells(p, now) })
}

func (v *list) cells(p prompts.Prompt, now time.Time) []widget.Cell {
	s := v.Styles
	version, age := "shipped", ""
	if p.Version > 0 {
		version, age = fmt.Sprint(p.Version), text.Span(now.Sub(p.At))
	}
	ink := widget.If(v.newest(p), s.Text, s.Muted)
	return []widget.Cell{{string(p.Phase), s.Muted}, {text.Safe(p.Name, " "), ink}, {version, ink},
		{age, s.Muted}, {text.Safe(p.From, " "), s.Muted}}
}

// newest reports whether a version is the first of its name in the list.
func (v *list) newest(p prompts.Prompt) bool {
	at := slices.IndexFunc(v.Rows, func(q prompts.Prompt) bool {
		return q.Phase == p.Phase && q.Name == p.Name
	})
	return at >= 0 && v.Rows[at].Version == p.Version
}

// detail shows the version under the cursor: how it differs from the previous one, and its text.
type detail struct {
	from *list
	console.Reader
}

func (v *detail) Bindings() []tui.Binding     { return widget.Motions("prompt", v) }
func (v *detail) Copy() (what, copied string) { return v.from.Copy() }

func (v *detail) Draw(now time.Time, focused bool) []string {
	v.from.arrange()
	p, ok := v.from.Current()
	if !ok {
		return v.Message(nil, "no prompt is selected")
	}
	data := v.from.data
	if data.Of != phaseprompts.AskOf(p) {
		return v.Message(nil, "reading the text"+v.Styles.Glyphs.Ellipsis)
	}
	return v.Show(data.Of, data, now, focused, func(w *widget.Writer) { write(w, p, data) })
}

func write(w *widget.Writer, p prompts.Prompt, data *phaseprompts.Prompts) {
	w.End(w.Line().Add(w.S.Strong, " "+text.Safe(string(p.Phase)+"/"+p.PhasePrompt.String(), " ")).
		Add(w.S.Muted, "  "+text.Safe(fmt.Sprintf("%.12s", p.SHA256), " ")))
	if data.TextErr != "" {
		w.Prose(" ", w.S.Error, data.TextErr)
		return
	}
	if p.Version > 0 {
		w.Section("Changes", "since "+text.Safe(data.Since, " "))
		writeDiff(w, udiff.Unified("", "", data.Before, data.Text))
	}
	w.Section("Text", "")
	w.Prose(" ", w.S.Text, strings.TrimSpace(data.Text))
}

// writeDiff writes the lines of a unified difference without its header.
func writeDiff(w *widget.Writer, unified string) {
	lines := strings.Split(strings.TrimSuffix(unified, "\n"), "\n")
	if len(lines) < 3 {
		w.Say(w.S.Muted, " no difference")
		return
	}
	for _, line := range lines[2:] {
		w.Prose(" ", inkOf(line, w.S), line)
	}
}

func inkOf(line string, s theme.Styles) theme.Ink {
	switch line[:min(len(line), 1)] {
	case "+":
		return s.Added
	case "-":
		return s.Removed
	}
	return s.Muted
}
