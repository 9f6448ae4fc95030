package tui

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"acescope/engine/ace"
	"acescope/theme"
	"acescope/tui/text"
)

const (
	maxListed    = 8      // visible options; the list scrolls
	maxAreaLines = 6      // visible lines of a text of several lines; it scrolls
	maxAreaRows  = 10_000 // lines of such a text
	maxAreaRunes = 1 << 18
)

// prompt is an open [Prompt]: the typed text, a line that explains it, and above them the
// list of completions.
type prompt struct {
	spec    Prompt
	input   textarea.Model
	list    completion
	past    []string // sent before, oldest first
	recalls int      // steps back into past, 0 for none
	typed   string   // the text before the first step, with which recalled lines begin
	refused error    // why enter did not apply the text, until the next key
}

// prompts is the open prompt, if any, and the lines that were sent before.
type prompts struct {
	open    *prompt
	history promptHistory
}

// key handles a key: enter sends the text, esc closes the prompt.
func (p *prompts) key(_ Shell, k tea.KeyPressMsg, _ int) tea.Cmd {
	open := p.open
	switch k.String() {
	case "esc":
		p.open = nil
		return nil
	case "enter":
		value := open.input.Value()
		if open.spec.Check != nil {
			if open.refused = open.spec.Check(value); open.refused != nil {
				return nil
			}
		}
		p.open = nil
		p.history.add(open.spec.Label, value)
		return open.spec.Done(value)
	}
	return open.key(k)
}

// layout fits the prompt to a width and returns how many lines it takes.
func (p *prompts) layout(width int) int {
	if p.open == nil {
		return 0
	}
	p.open.resize(width)
	return p.open.height()
}

// drawBelow adds the prompt to a frame, with its completions over the lines above, and returns the cursor.
func (p *prompts) drawBelow(lines []string, s theme.Styles, width, space int) ([]string, *tea.Cursor) {
	if p.open == nil {
		return lines, nil
	}
	if list := p.open.drawList(s, width, space); list != nil {
		putOver(lines, list, 0, len(lines)-len(list), width)
	}
	cursor := p.open.shown().Cursor()
	if cursor != nil {
		cursor.Position.Y += len(lines)
	}
	return append(lines, p.open.draw(s, width)...), cursor
}

func (p *prompts) hints(keys *keymap) []hint { return p.open.hints(keys) }

// completion holds the options that may replace line[from:cursor], the part of the line that
// was typed when they were listed.
type completion struct {
	line         string
	from, cursor int
	options      []string
	at           int // the option in the line, -1 for none
}

func newPrompt(spec Prompt, past []string, s theme.Styles, width int) *prompt {
	label := " " + text.Safe(spec.Label, " ") + " "
	a := textarea.New()
	a.SetPromptFunc(text.Width(label), func(info textarea.PromptInfo) string {
		if info.LineNumber == 0 {
			return label
		}
		return text.Spaces(text.Width(label))
	})
	a.ShowLineNumbers, a.Placeholder = false, text.Safe(spec.Hint, " ")
	a.DynamicHeight, a.MinHeight, a.MaxHeight, a.MaxContentHeight = true, 1, maxAreaLines, maxAreaRows
	a.MaxWidth, a.CharLimit = 0, maxAreaRunes
	a.KeyMap.InsertNewline = key.NewBinding()
	if spec.Lines {
		a.KeyMap.InsertNewline.SetKeys("ctrl+j", "alt+enter", "shift+enter")
	}
	a.SetVirtualCursor(false)
	plain := s.Text.Lipgloss()
	state := textarea.StyleState{Base: lipgloss.NewStyle(), CursorLine: plain, EndOfBuffer: plain,
		Text:        plain,
		Placeholder: s.Muted.Lipgloss(), Prompt: s.Key.Lipgloss(), Selection: s.Selected.Lipgloss()}
	styles := a.Styles()
	styles.Focused, styles.Blurred = state, state
	a.SetStyles(styles)
	if !spec.Lines {
		spec.Value = strings.ReplaceAll(spec.Value, "\n", " ")
	}
	a.SetValue(spec.Value)
	a.Focus()
	p := &prompt{spec: spec, input: a, past: past}
	p.resize(width)
	p.complete()
	return p
}

func (p *prompt) height() int { return p.shown().Height() + 1 }

// shown returns the input without characters that must not reach the terminal. Its value keeps them.
func (p *prompt) shown() textarea.Model {
	in := p.input
	value, row := in.Value(), in.Line()
	if value == text.Safe(value, "\n") {
		return in
	}
	lines := strings.Split(value, "\n")
	before := text.Safe(string([]rune(lines[row])[:in.Column()]), " ")
	for i, l := range lines {
		lines[i] = text.Safe(l, " ")
	}
	in.SetValue(strings.Join(lines, "\n"))
	for in.MoveToBegin(); in.Line() < row; {
		in.CursorDown()
	}
	in.SetCursorColumn(utf8.RuneCountInString(before))
	return in
}

func (p *prompt) resize(width int) {
	if width > 0 && p.input.Width() != max(width-text.Width(" "+p.spec.Label+" ")-1, 1) {
		p.input.SetWidth(max(width-1, 1))
	}
}

// update passes a key or a paste to the input, and lists completions again if it changed
// something.
func (p *prompt) update(msg tea.Msg) tea.Cmd {
	if paste, ok := msg.(tea.PasteMsg); ok && !p.spec.Lines {
		paste.Content = strings.Join(text.Lines(paste.Content), " ")
		msg = paste
	}
	var cmd tea.Cmd
	value, at := p.input.Value(), p.input.Column()
	p.input, cmd = p.input.Update(msg)
	changed := p.input.Value() != value
	if changed {
		p.recalls = 0
	}
	if changed || p.input.Column() != at {
		p.complete()
	}
	return cmd
}

// key handles a key other than enter and esc.
func (p *prompt) key(k tea.KeyPressMsg) tea.Cmd {
	p.refused = nil
	empty := p.input.Value() == ""
	if p.spec.Lines && !empty && p.recalls == 0 {
		return p.update(k) // up and down move in the text
	}
	switch k.String() {
	case "tab":
		p.choose(1)
	case "shift+tab":
		p.choose(-1)
	case "up", "ctrl+p":
		if p.list.at >= 0 || !p.recall(1) {
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

// recall steps back, or forward, through the lines that were sent before and begin with the typed text. It
// reports false if no line does.
func (p *prompt) recall(by int) bool {
	if p.recalls == 0 {
		p.typed = p.input.Value()
	}
	var lines []string
	for _, l := range p.past {
		if strings.HasPrefix(l, p.typed) && l != p.typed {
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		return false
	}
	p.recalls = min(max(p.recalls+by, 0), len(lines))
	line := p.typed
	if p.recalls > 0 {
		line = lines[len(lines)-p.recalls]
	}
	p.input.SetValue(line)
	p.complete()
	return true
}

// complete lists the completions at the cursor.
func (p *prompt) complete() {
	p.list = completion{at: -1}
	if p.spec.Complete == nil {
		return
	}
	line := p.input.Value()
	cursor := len(string([]rune(line)[:p.input.Column()]))
	from, options := p.spec.Complete(line, cursor)
	if from < 0 || from > cursor {
		return
	}
	p.list = completion{line, from, cursor, options, -1}
}

// choose puts the next option, or the previous one, into the line. A single option is
// accepted at once, so that the next completions follow.
func (p *prompt) choose(by int) {
	c := &p.list
	if len(c.options) == 0 {
		return
	}
	if c.at += by; c.at < -1 || by < 0 && c.at == -1 {
		c.at = len(c.options) - 1
	}
	c.at %= len(c.options)
	head := c.line[:c.from] + c.options[c.at]
	p.input.SetValue(head + c.line[c.cursor:])
	p.input.SetCursorColumn(len([]rune(head)))
	if p.recalls = 0; len(c.options) == 1 {
		p.complete()
	}
}

func (p *prompt) hints(keys *keymap) []hint {
	list := []hint{{keys.name("enter"), "apply"}, {"esc", "cancel"}}
	if p.spec.Complete != nil {
		list = append(list, hint{"tab", "complete"})
	}
	return list
}

// draw draws the typed text and the line that explains it.
func (p *prompt) draw(s theme.Styles, width int) []string {
	explanation := "enter: apply  esc: cancel"
	if p.spec.Lines {
		explanation = "enter: send  ctrl+j: new line  esc: cancel"
	}
	shown := p.shown()
	typed := strings.Split(shown.View(), "\n")
	if len(p.list.options) > 0 {
		explanation += "  tab: complete"
	}
	if len(p.past) > 0 && (p.input.Value() == "" || p.recalls > 0) {
		explanation += "  up: history"
	}
	if preview := text.Safe(p.preview(p.input.Value()), " "); preview != "" {
		explanation = s.Glyphs.Arrow + " " + preview
	}
	ink := s.Muted
	if p.refused != nil {
		explanation = s.Glyphs.Failed + " " + text.Safe(p.refused.Error(), " ")
		ink = s.Alert
	}
	var lines []string
	for _, l := range typed[:min(len(typed), shown.Height())] {
		lines = append(lines, text.Fit(l, width, ""))
	}
	below := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	below.Add(ink, " "+explanation)
	return append(lines, below.String(s.Text))
}

// preview explains a text, or says why it cannot be applied.
func (p *prompt) preview(value string) string {
	switch {
	case value == "":
	case p.spec.Preview != nil:
		return p.spec.Preview(value)
	case p.spec.Check != nil:
		if err := p.spec.Check(value); err != nil {
			return err.Error()
		}
	}
	return ""
}

// drawList draws the visible part of the options with their help in a box of at most height
// lines, or nothing if there are no options.
func (p *prompt) drawList(s theme.Styles, width, height int) []string {
	c := p.list
	n := min(len(c.options), height-2, maxListed)
	if n <= 0 {
		return nil
	}
	lineWidth := min(width-6, 90)
	top := min(max(c.at-n/2, 0), len(c.options)-n)
	w := 0
	for _, o := range c.options[top : top+n] {
		w = max(w, text.Width(text.Safe(o, " ")))
	}
	w = min(w, lineWidth/2)
	lines := make([]string, n)
	for i := range lines {
		l := text.Line{Max: lineWidth, Tail: s.Glyphs.Ellipsis}
		option, ink, mark := c.options[top+i], s.Key, " "
		if top+i == c.at {
			ink, mark = s.Selected, s.Glyphs.Pointer
		}
		l.Add(ink, mark+text.Fit(text.Middle(text.Safe(option, " "), w, s.Glyphs.Ellipsis), w, "")+" ")
		if p.spec.optionHelp != nil {
			l.Add(s.Text, " "+text.Safe(p.spec.optionHelp(option), " "))
		}
		lines[i] = l.String(s.Text)
	}
	return box(s, width, ace.Count(len(c.options), "match"), lines)
}

// Bounds of the prompts' history: lines by label, labels, and bytes of a line.
const (
	maxPast      = 50
	maxLabels    = 16
	maxPastBytes = 1000
)

// promptHistory is the lines that were sent at prompts, by label, oldest first.
type promptHistory map[string][]string

// secret matches lines that may hold a password or the key of an API. They are not kept.
var secret = regexp.MustCompile(
	`(?i)(api[-_ ]?key|access[-_ ]?key|secret|token\b|passw(or)?d|credential|bearer|\bsk-)`)

// add appends a line; a line that was sent before moves to the end.
func (h promptHistory) add(label, line string) {
	if line == "" || secret.MatchString(line) || len(line) > maxPastBytes || h[label] == nil &&
		len(h) == maxLabels {
		return
	}
	past := slices.DeleteFunc(slices.Clone(h[label]), func(l string) bool { return l == line })
	past = append(past, line)
	h[label] = past[max(0, len(past)-maxPast):]
}
