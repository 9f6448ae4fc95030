package tui

import (
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"acescope/theme"
	"acescope/tui/text"
)

// prompt is an open [Prompt]: lines above the bottom, what is typed and what it
// means, and above them the list of what may be meant.
type prompt struct {
	spec    Prompt
	input   textinput.Model
	area    *textarea.Model // in place of input, where the text may have several lines
	list    completion
	help    func(option string) string // nil where options explain themselves
	past    []string                   // what was sent before, oldest first
	recalls int                        // how many steps back into past one is, 0 for none
}

// maxAreaLines is how high a text of several lines gets; it scrolls then.
const maxAreaLines = 6

// height is how many lines a prompt takes.
func (p *prompt) height() int {
	if p.area != nil {
		return p.area.Height() + 1
	}
	return 2
}

func newPrompt(spec Prompt, past []string, s theme.Styles, width int) *prompt {
	in := textinput.New()
	in.Prompt = " " + spec.Label + " "
	in.Placeholder = spec.Hint
	in.SetVirtualCursor(false)
	state := textinput.StyleState{Text: s.Text.Lipgloss(), Placeholder: s.Muted.Lipgloss(),
		Suggestion: lipgloss.NewStyle(), Prompt: s.Key.Lipgloss()}
	styles := in.Styles()
	styles.Focused, styles.Blurred = state, state
	in.SetStyles(styles)
	in.SetValue(spec.Value)
	in.CursorEnd()
	in.Focus()
	p := &prompt{spec: spec, input: in, past: past}
	if spec.Lines {
		p.area = newArea(spec, s)
	}
	p.resize(width)
	p.complete()
	return p
}

// newArea is for a text of several lines.
func newArea(spec Prompt, s theme.Styles) *textarea.Model {
	a := textarea.New()
	label := " " + spec.Label + " "
	a.SetPromptFunc(text.Width(label), func(info textarea.PromptInfo) string {
		if info.LineNumber == 0 {
			return label
		}
		return text.Spaces(text.Width(label))
	})
	a.ShowLineNumbers, a.Placeholder = false, spec.Hint
	a.DynamicHeight, a.MinHeight, a.MaxHeight, a.MaxContentHeight = true, 1, maxAreaLines, maxAreaRows
	a.MaxWidth, a.CharLimit = 0, maxAreaRunes
	a.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("ctrl+j", "alt+enter", "shift+enter"))
	a.SetVirtualCursor(false)
	state := textarea.StyleState{Base: lipgloss.NewStyle(), CursorLine: s.Text.Lipgloss(), EndOfBuffer: s.Text.Lipgloss(), Text: s.Text.Lipgloss(),
		Placeholder: s.Muted.Lipgloss(), Prompt: s.Key.Lipgloss(), Selection: s.Selected.Lipgloss()}
	styles := a.Styles()
	styles.Focused, styles.Blurred = state, state
	a.SetStyles(styles)
	a.SetValue(spec.Value)
	a.Focus()
	return &a
}

// Bounds of a text of several lines.
const (
	maxAreaRows  = 10_000
	maxAreaRunes = 1 << 18
)

func (p *prompt) resize(width int) {
	if p.area != nil {
		if width > 0 && p.area.Width() != max(width-text.Width(" "+p.spec.Label+" ")-1, 1) {
			p.area.SetWidth(max(width-1, 1))
		}
		return
	}
	p.input.SetWidth(max(width-text.Width(p.input.Prompt)-2, 1))
}

// update gives a key or a paste to the line, and asks for completions where that changed
// something.
func (p *prompt) update(msg tea.Msg) tea.Cmd {
	var cmd tea.Cmd
	if p.area != nil {
		value := p.area.Value()
		*p.area, cmd = p.area.Update(msg)
		if p.area.Value() != value {
			p.recalls = 0
		}
		return cmd
	}
	value, at := p.input.Value(), p.input.Position()
	p.input, cmd = p.input.Update(msg)
	if p.input.Value() != value {
		p.recalls = 0
	}
	if p.input.Value() != value || p.input.Position() != at {
		p.complete()
	}
	return cmd
}

// key takes a key that is neither enter nor esc.
func (p *prompt) key(k tea.KeyPressMsg) tea.Cmd {
	empty := p.value() == ""
	if p.area != nil && !empty && p.recalls == 0 {
		return p.update(k) // up and down move in the text
	}
	switch k.String() {
	case "tab":
		p.choose(1)
	case "shift+tab":
		p.choose(-1)
	case "up", "ctrl+p":
		if empty || p.recalls > 0 {
			p.recall(1)
		} else {
			p.choose(-1)
		}
	case "down", "ctrl+n":
		if p.recalls > 0 {
			p.recall(-1)
		} else {
			p.choose(1)
		}
	default:
		return p.update(k)
	}
	return nil
}

// recall steps back, or forward, through what was sent before.
func (p *prompt) recall(by int) {
	p.recalls = min(max(p.recalls+by, 0), len(p.past))
	line := ""
	if p.recalls > 0 {
		line = p.past[len(p.past)-p.recalls]
	}
	if p.area != nil {
		p.area.SetValue(line)
		return
	}
	p.input.SetValue(line)
	p.input.CursorEnd()
	p.complete()
}

// value is what is typed.
func (p *prompt) value() string {
	if p.area != nil {
		return p.area.Value()
	}
	return p.input.Value()
}

// cursor is where the cursor is, in the prompt's lines.
func (p *prompt) cursor() *tea.Cursor {
	if p.area != nil {
		return p.area.Cursor()
	}
	return p.input.Cursor()
}

// typed is the lines with what is typed.
func (p *prompt) typed() []string {
	if p.area != nil {
		lines := strings.Split(p.area.View(), "\n")
		return lines[:min(len(lines), p.area.Height())]
	}
	return []string{p.input.View()}
}

func (p *prompt) draw(s theme.Styles, width int) []string {
	meaning := "enter: apply  esc: leave"
	if p.area != nil {
		meaning = "enter: send  ctrl+j: new line  esc: leave"
	}
	if len(p.list.options) > 0 {
		meaning += "  tab: complete"
	}
	if len(p.past) > 0 && p.value() == "" {
		meaning += "  up: earlier ones"
	}
	if p.spec.Preview != nil && p.value() != "" {
		if m := text.Safe(p.spec.Preview(p.value()), " "); m != "" {
			meaning = s.Glyphs.Arrow + " " + m
		}
	}
	below := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	below.Add(s.Muted, " "+meaning)
	var lines []string
	for _, l := range p.typed() {
		lines = append(lines, text.Fit(l, width, ""))
	}
	return append(lines, below.String(s.Text))
}

func (m *Model) promptKey(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "esc":
		m.prompt = nil
		return nil
	case "enter":
		p := m.prompt
		m.prompt = nil
		m.sent(p.spec.Label, p.value())
		return p.spec.Done(p.value())
	}
	return m.prompt.key(k)
}
