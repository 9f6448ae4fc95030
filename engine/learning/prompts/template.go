package prompts

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"acescope/engine/ace"
)

// Names of placeholders.
const (
	Playbook = "playbook" // the playbook, a paragraph of its own
	Sections = "sections" // the names of the sections that a bullet can be added to
)

// Placeholder is a name in double braces, which a phase replaces by a text.
type Placeholder struct {
	Name     string `json:"name"`
	Required bool   `json:"required"`
	About    string `json:"about"`
}

// Placeholders returns the placeholders of a phase.
func Placeholders(phase ace.Phase) []Placeholder {
	playbook := Placeholder{Playbook, true, "the playbook, as a paragraph of its own"}
	switch phase {
	case ace.PhaseReflector:
		playbook.Required = false
	case ace.PhaseCurator:
		return []Placeholder{playbook, {Sections, false, "the names of the sections for new bullets"}}
	}
	return []Placeholder{playbook}
}

// MaxText is the size of the longest text, in bytes.
const MaxText = 64 << 10

// SyntaxError is a mistake in a text. Lines and columns count from 1; columns are characters.
type SyntaxError struct {
	Line, Column int
	Message      string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message) }

// Part is a literal text or the name of a placeholder.
type Part struct{ Text, Placeholder string }

// Template is the text of a prompt.
type Template []Part

// Parse reads the text of a prompt for a phase. Its errors are of type [*SyntaxError].
func Parse(phase ace.Phase, text string) (Template, error) {
	p := parser{phase: phase, text: text}
	if err := p.check(); err != nil {
		return nil, err
	}
	for p.at < len(text) {
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	for _, x := range Placeholders(phase) {
		if x.Required && !p.seen(x.Name) {
			return nil, p.errorf(len(text), "the %s needs {{%s}}, %s", phase, x.Name, x.About)
		}
	}
	return p.parts, nil
}

// open and closing enclose the name of a placeholder; escaped stands for two literal braces.
const (
	open    = "{{"
	closing = "}}"
	escaped = open + open
)

type parser struct {
	phase ace.Phase
	text  string
	at    int
	parts Template
}

// check returns an error for a text that cannot be a prompt.
func (p *parser) check() error {
	control := strings.IndexFunc(p.text, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t'
	})
	switch {
	case !slices.Contains(ace.PromptedPhases(), p.phase):
		return p.errorf(0, "phase %q has no prompt; use generator, skills, reflector or curator",
			string(p.phase))
	case strings.TrimSpace(p.text) == "":
		return p.errorf(0, "the text is empty")
	case len(p.text) > MaxText:
		return p.errorf(MaxText, "the text has %d bytes, at most %d are allowed", len(p.text), MaxText)
	case !utf8.ValidString(p.text):
		return p.errorf(invalid(p.text), "the text is not UTF-8")
	case control >= 0:
		return p.errorf(control, "control characters are not allowed")
	}
	return nil
}

// invalid returns the offset of the first byte that is not UTF-8.
func invalid(text string) int {
	for i, r := range text {
		if _, size := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && size == 1 {
			return i
		}
	}
	return len(text)
}

// next reads the literal text before the next braces, and then these.
func (p *parser) next() error {
	rest := p.text[p.at:]
	length := strings.Index(rest, open)
	if length < 0 {
		length = len(rest)
	}
	p.literal(rest[:length])
	if rest = rest[length:]; rest == "" {
		return nil
	}
	if strings.HasPrefix(rest, escaped) {
		p.literal(open)
		p.at += len(open) // of the escape
		return nil
	}
	end := strings.Index(rest, closing)
	if line := strings.IndexByte(rest, '\n'); end < 0 || line >= 0 && line < end {
		return p.errorf(p.at, "{{ without }}; write {{{{ for two braces")
	}
	name := strings.TrimSpace(rest[len(open):end])
	if err := p.placeholder(name); err != nil {
		return err
	}
	p.at += end + len(closing)
	return nil
}

// literal adds a text and advances by its length.
func (p *parser) literal(text string) {
	p.at += len(text)
	if last := len(p.parts) - 1; last >= 0 && p.parts[last].Placeholder == "" {
		p.parts[last].Text += text
	} else if text != "" {
		p.parts = append(p.parts, Part{Text: text})
	}
}

func (p *parser) placeholder(name string) error {
	var known []string
	for _, x := range Placeholders(p.phase) {
		known = append(known, open+x.Name+closing)
	}
	switch {
	case !slices.Contains(known, open+name+closing):
		return p.errorf(p.at, "unknown placeholder {{%s}}; the %s has %s; write {{{{ for two braces",
			ace.Cut(name, 40), p.phase, strings.Join(known, " and "))
	case p.seen(name):
		return p.errorf(p.at, "{{%s}} appears twice; use it once", name)
	}
	p.parts = append(p.parts, Part{Placeholder: name})
	return nil
}

func (p *parser) seen(name string) bool { return slices.Contains(p.parts, Part{Placeholder: name}) }

func (p *parser) errorf(offset int, format string, args ...any) error {
	before := strings.ToValidUTF8(p.text[:min(offset, len(p.text))], "?")
	lastLine := before[strings.LastIndexByte(before, '\n')+1:]
	return &SyntaxError{
		Line:    1 + strings.Count(before, "\n"),
		Column:  1 + utf8.RuneCountInString(lastLine),
		Message: fmt.Sprintf(format, args...),
	}
}

// String returns a text that parses to the template.
func (t Template) String() string {
	var b strings.Builder
	for _, p := range t {
		if p.Placeholder != "" {
			b.WriteString(open + p.Placeholder + closing)
		} else {
			b.WriteString(strings.ReplaceAll(p.Text, open, escaped))
		}
	}
	return b.String()
}

// Paragraphs returns the text with values in place of the placeholders, split around the value of [Playbook],
// so that equal parts of several requests are equal paragraphs. It leaves out empty ones.
func (t Template) Paragraphs(values map[string]string) (list []string) {
	var b strings.Builder
	flush := func() {
		if text := strings.TrimSpace(b.String()); text != "" {
			list = append(list, text)
		}
		b.Reset()
	}
	for _, p := range t {
		switch p.Placeholder {
		case "":
			b.WriteString(p.Text)
		case Playbook:
			flush()
			b.WriteString(values[Playbook])
			flush()
		default:
			b.WriteString(values[p.Placeholder])
		}
	}
	flush()
	return list
}
