package tui

import (
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"acescope/theme"
	"acescope/tui/text"
)

// prompt is an open [Prompt]: two lines above the bottom, what is typed and what it
// means, and above them the list of what may be meant.
type prompt struct {
	spec    Prompt
	input   textinput.Model
	list    completion
	help    func(option string) string // nil where options explain themselves
	past    []string                   // what was sent before, oldest first
	recalls int                        // how many steps back into past one is, 0 for none
}

// promptLines is how many lines a prompt takes.
const promptLines = 2

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
	p.resize(width)
	p.complete()
	return p
}

func (p *prompt) resize(width int) {
	p.input.SetWidth(max(width-text.Width(p.input.Prompt)-2, 1))
}

// update gives a key or a paste to the line, and asks for completions where that changed
// something.
func (p *prompt) update(msg tea.Msg) tea.Cmd {
	value, at := p.input.Value(), p.input.Position()
	var cmd tea.Cmd
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
	empty := p.input.Value() == ""
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
	p.input.SetValue(line)
	p.input.CursorEnd()
	p.complete()
}

func (p *prompt) draw(s theme.Styles, width int) []string {
	meaning := "enter: apply  esc: leave"
	if len(p.list.options) > 0 {
		meaning += "  tab: complete"
	}
	if len(p.past) > 0 && p.input.Value() == "" {
		meaning += "  up: earlier ones"
	}
	if p.spec.Preview != nil && p.input.Value() != "" {
		if m := text.Safe(p.spec.Preview(p.input.Value()), " "); m != "" {
			meaning = s.Glyphs.Arrow + " " + m
		}
	}
	below := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	below.Add(s.Muted, " "+meaning)
	return []string{text.Fit(p.input.View(), width, ""), below.String(s.Text)}
}

func (m *Model) promptKey(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "esc":
		m.prompt = nil
		return nil
	case "enter":
		p := m.prompt
		m.prompt = nil
		m.sent(p.spec.Label, p.input.Value())
		return p.spec.Done(p.input.Value())
	}
	return m.prompt.key(k)
}
