package tui

import (
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"acescope/theme"
	"acescope/tui/text"
)

// prompt is an open [Prompt]: two lines above the bottom, what is typed and what it
// means.
type prompt struct {
	spec  Prompt
	input textinput.Model
}

// promptLines is how many lines a prompt takes.
const promptLines = 2

func newPrompt(spec Prompt, s theme.Styles, width int) *prompt {
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
	p := &prompt{spec, in}
	p.resize(width)
	return p
}

func (p *prompt) resize(width int) {
	p.input.SetWidth(max(width-text.Width(p.input.Prompt)-2, 1))
}

func (p *prompt) update(msg tea.Msg) tea.Cmd {
	var cmd tea.Cmd
	p.input, cmd = p.input.Update(msg)
	return cmd
}

func (p *prompt) draw(s theme.Styles, width int) []string {
	meaning := "enter: apply  esc: leave"
	if p.spec.Preview != nil && p.input.Value() != "" {
		if m := text.Safe(p.spec.Preview(p.input.Value()), " "); m != "" {
			meaning = s.Glyphs.Arrow + " " + m
		}
	}
	below := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	below.Add(s.Muted, " "+meaning)
	return []string{text.Fit(p.input.View(), width, ""), below.String(s.Text)}
}
