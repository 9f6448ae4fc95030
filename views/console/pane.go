package console

import (
	"regexp"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// Pane has what all views share: a name, styles and a size. A view embeds it and replaces the methods that
// differ.
type Pane struct {
	Styles        theme.Styles
	Width, Height int
	name          string
}

func NewPane(name string) Pane { return Pane{name: name} }

func (p *Pane) Name() string              { return p.name }
func (p *Pane) Title() string             { return p.name }
func (p *Pane) Footer() string            { return "" }
func (p *Pane) Refresh()                  {}
func (p *Pane) SetStyles(s theme.Styles)  { p.Styles = s }
func (p *Pane) SetSize(width, height int) { p.Width, p.Height = width, height }

// Line returns an empty line of the pane.
func (p *Pane) Line() *text.Line { return &text.Line{Max: p.Width, Tail: p.Styles.Glyphs.Ellipsis} }

// Text draws a line in one ink.
func (p *Pane) Text(ink theme.Ink, line string) string {
	return ink.Paint(text.Fit(line, p.Width, p.Styles.Glyphs.Ellipsis))
}

// Rule draws a line with a title and a remark, after a mark.
func (p *Pane) Rule(mark string, ink theme.Ink, title, remark string) string {
	s := p.Styles
	l := p.Line().Add(s.Border, mark+" ").Add(ink, title+" ")
	if remark != "" {
		l.Add(s.Muted, s.Glyphs.Dot+" "+remark+" ")
	}
	return l.Add(s.Border, strings.Repeat(s.Glyphs.Plain.Top, max(l.Rest(), 0))).String(s.Border)
}

// Message draws the head and below it, centered, a message instead of rows.
func (p *Pane) Message(head []string, lines ...string) []string {
	body := widget.Center(lines, p.Width, p.Height-len(head), p.Styles)
	return widget.Fill(append(head, body...), p.Width, p.Height)
}

// Problem draws a line that reports an error or a warning.
func (p *Pane) Problem(ink theme.Ink, message string) string {
	return p.Text(ink, " "+p.Styles.Glyphs.Failed+" "+text.Safe(message, " "))
}

// AskPattern opens a prompt for a regular expression.
func AskPattern(s tui.Shell, current *regexp.Regexp, done func(typed string) tea.Cmd) {
	value := ""
	if current != nil {
		value = current.String()
	}
	s.Ask(tui.Prompt{Label: "/", Value: value, Hint: "a regular expression; start with (?i) to ignore case",
		Done: done,
		Check: func(typed string) error {
			_, err := regexp.Compile(typed)
			return err
		}})
}

// MarkedText counts marked rows in a footer, "" without any.
func MarkedText(n int) string { return widget.If(n == 0, "", ace.Number(n)+" marked") }

// FilterText shows the text that a list is filtered by, in a footer.
func FilterText(filter string) string {
	return widget.If(filter == "", "", "/"+text.Cut(text.Safe(filter, " "), 20, ""))
}

// SearchText shows a search in a footer.
func SearchText(search *regexp.Regexp) string {
	if search == nil {
		return ""
	}
	return "/" + text.Safe(search.String(), " ")
}

// WithPrefix returns the options that the typed text can be completed to.
func WithPrefix(typed string, options []string) (out []string) {
	for _, o := range options {
		if strings.HasPrefix(o, typed) && o != typed {
			out = append(out, o)
		}
	}
	return out
}

// WithHead returns the options behind the text that is already typed.
func WithHead(head string, options []string) []string {
	out := make([]string, len(options))
	for i, o := range options {
		out[i] = head + o
	}
	return out
}

// MutatingKey is like [Key], for an action that changes something outside the console.
func MutatingKey[F func() | func(tui.Shell) | func(tui.Shell) tea.Cmd](action, help, short string, do F,
	keys ...string) tui.Binding {
	b := Key(action, help, short, do, keys...)
	b.Mutates = true
	return b
}

// Key returns the binding of an action such as "runs.sort". Short is its label in the status line, "" for
// none.
func Key[F func() | func(tui.Shell) | func(tui.Shell) tea.Cmd](action, help, short string, do F,
	keys ...string) tui.Binding {
	b := tui.Binding{Action: action, Keys: keys, Help: help, Short: short}
	switch do := any(do).(type) {
	case func():
		b.Do = func(tui.Shell) tea.Cmd { do(); return nil }
	case func(tui.Shell):
		b.Do = func(s tui.Shell) tea.Cmd { do(s); return nil }
	case func(tui.Shell) tea.Cmd:
		b.Do = do
	}
	return b
}
