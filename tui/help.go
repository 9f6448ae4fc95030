package tui

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/theme"
	"acescope/tui/text"
)

// help is a page of keys and, below them, the signs of the screens. What is typed searches it, and enter runs
// a key.
type help struct {
	groups []helpGroup
	near   int // groups that are listed while nothing is searched
	keys   *keymap
	query  string
	cursor int // selected entry of those that are listed
	dialog *dialog
	run    func(View, Binding) tea.Cmd
}

// helpGroup holds the keys of a view. For the keys that work everywhere, view is nil.
type helpGroup struct {
	KeyGroup
	view View
}

// helpEntry is a key of a group. The keys that move the cursor are one entry, which cannot be run.
type helpEntry struct {
	helpGroup
	Binding
}

// newHelp returns the groups of the focused view, of everywhere, and of all other views. Of these, only the
// first two are listed while nothing is searched. run shows a view and runs a binding of it.
func newHelp(keys *keymap, p *panes, run func(View, Binding) tea.Cmd) *help {
	h := &help{keys: keys, run: run}
	add := func(v View, name string, list []Binding) {
		if list = keys.allowed(list); len(list) > 0 {
			h.groups = append(h.groups, helpGroup{KeyGroup{name, list}, v})
		}
	}
	focused := p.focused()
	add(focused, focused.Name(), keys.withKeys(focused.Bindings()))
	add(nil, "Everywhere", keys.everywhere(focused.Bindings()))
	h.near = len(h.groups)
	for _, v := range p.all {
		if v != focused {
			add(v, v.Name(), keys.withKeys(v.Bindings()))
		}
	}
	return h
}

// sheet returns the dialog of the help. Keys close it, besides esc.
func (h *help) sheet(title string, closing []string) *dialog {
	h.dialog = &dialog{title: title, draw: h.draw,
		hints: []hint{{h.keys.name("enter"), "run"}, {"type", "search"}, {"esc", "close"}},
		keys: func(k tea.KeyPressMsg, height int) (bool, func(Shell) tea.Cmd) {
			return h.key(k, height, closing)
		}}
	return h.dialog
}

// entries lists what fits the query: names of keys, what they do, actions and groups.
func (h *help) entries() (list []helpEntry) {
	groups := h.groups[:h.near]
	if h.query != "" {
		groups = h.groups
	}
	for _, g := range groups {
		var moves []string
		for _, b := range g.Bindings {
			if b.Motion {
				moves = append(moves, b.Keys...)
				continue
			}
			if h.fits(g.Name, b) {
				list = append(list, helpEntry{g, b})
			}
		}
		move := Binding{Keys: moves, Help: "move: by a line, half a page, a page, to the ends", Motion: true}
		if len(moves) > 0 && h.fits(g.Name, move) {
			list = append(list, helpEntry{g, move})
		}
	}
	return list
}

func (h *help) fits(group string, b Binding) bool {
	query := strings.ToLower(h.query)
	all := strings.ToLower(group + " " + b.Help + " " + b.Action + " " + b.Short)
	for _, word := range strings.Fields(query) {
		if !strings.Contains(all, word) {
			return slices.Contains(b.Keys, h.query)
		}
	}
	return true
}

// key handles a key: a character extends the query.
func (h *help) key(k tea.KeyPressMsg, height int, closing []string) (closes bool, then func(Shell) tea.Cmd) {
	list := h.entries()
	name := k.String()
	switch {
	case name == "esc" && h.query != "":
		h.search("")
	case name == "esc", h.query == "" && slices.Contains(closing, name):
		return true, nil
	case name == "enter":
		if h.cursor >= len(list) || list[h.cursor].Motion {
			return false, nil
		}
		e := list[h.cursor]
		return true, func(Shell) tea.Cmd { return h.run(e.view, e.Binding) }
	case name == "backspace":
		if r := []rune(h.query); len(r) > 0 {
			h.search(string(r[:len(r)-1]))
		}
	case name == "/" && h.query == "": // the next characters search in any case
	case k.Text != "":
		h.search(h.query + k.Text)
	default:
		h.move(scrollBy(k, max(height-8, 1)), len(list))
	}
	h.follow(height)
	return false, nil
}

func (h *help) search(query string) {
	h.query, h.cursor, h.dialog.top = query, 0, 0
}

func (h *help) move(by, n int) { h.cursor = max(min(h.cursor+by, n-1), 0) }

// follow scrolls so that the selected entry is visible, and at the last one everything below it.
func (h *help) follow(height int) {
	at, n := 0, 0
	list := h.entries()
	for i, e := range list {
		if i == 0 || e.Name != list[i-1].Name {
			n += min(i, 1) + 1
		}
		if i == h.cursor {
			at = n
		}
		n++
	}
	space := max(height-6, 1) // without the frame of the dialog and the query
	h.dialog.top = min(max(h.dialog.top, at-space+1), max(at-1, 0))
	if h.cursor == len(list)-1 {
		h.dialog.top = n // the dialog reduces it
	}
}

// nameOf returns the names of the keys of a binding, or the command of a screen without a key.
func (h *help) nameOf(b Binding) string {
	if screen, ok := strings.CutPrefix(b.Action, "screen."); ok && len(b.Keys) == 0 {
		return ":" + screen
	}
	return h.keys.namesOf(b)
}

func (h *help) draw(s theme.Styles, width int, _ time.Time) (above, lines, below []string) {
	typed := s.Muted.Paint("type to search")
	if h.query != "" {
		typed = s.Key.Paint("/ ") + s.Text.Paint(text.Safe(h.query, " "))
	}
	list := h.entries()
	names := make([]string, len(list))
	w := 0
	for i, e := range list {
		names[i] = h.nameOf(e.Binding)
		if !e.Motion {
			w = max(w, text.Width(names[i]))
		}
	}
	for i, e := range list {
		if i == 0 || e.Name != list[i-1].Name {
			if i > 0 {
				lines = append(lines, "")
			}
			lines = append(lines, s.Strong.Paint(e.Name))
		}
		mark, key, what := " ", s.Key, s.Text
		if i == h.cursor {
			mark, key, what = s.Glyphs.Pointer, s.Selected, s.Selected
		}
		l := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
		l.Add(key, mark+text.Fit(names[i], max(w, text.Width(names[i])), "")+"  ").Add(what, e.Help)
		lines = append(lines, l.String(s.Text))
	}
	lines = append(lines, h.legend(s, width)...)
	if len(lines) == 0 {
		lines = []string{s.Muted.Paint("No match; esc clears the search.")}
	}
	return []string{typed, ""}, lines, nil
}

// legend lists the signs that fit the query.
func (h *help) legend(s theme.Styles, width int) (lines []string) {
	for _, g := range s.Legend() {
		l := text.Line{Max: width}
		l.Add(s.Muted, " "+text.Fit(g.Name, 9, ""))
		empty := true
		for _, m := range g.Marks {
			if !strings.Contains(strings.ToLower(m.Word), strings.ToLower(h.query)) {
				continue
			}
			if l.Rest() < text.Width(m.Word)+4 {
				lines = append(lines, l.String(s.Text))
				l = text.Line{Max: width}
				l.Add(s.Muted, text.Spaces(10))
			}
			l.Add(m.Ink, " "+m.Glyph).Add(s.Text, " "+m.Word+" ")
			empty = false
		}
		if !empty {
			lines = append(lines, l.String(s.Text))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return append([]string{"", s.Strong.Paint("Signs")}, lines...)
}
