package tui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/theme"
	"acescope/tui/text"
)

// Form is a page of fields to fill in. Check, Submit and [Field.Complete] do I/O and run in commands. The
// typed values are kept by Name until the form is submitted.
//
// The fields are inputs of bubbles. The page around them is our own: huh draws three lines per field, of
// which 80x24 has room for five, handles no mouse, and writes the editor's file while it handles a key.
type Form struct {
	Title, Name string
	Verb        string // what enter does: "start"
	Fields      []Field
	// Check returns the problems of the values and what submitting them does.
	Check func(Values) Report
	// Submit does what the form is for. After an error the form stays open; otherwise then runs.
	// Closing the form ends ctx.
	Submit func(ctx context.Context, v Values) (then func(Shell) tea.Cmd, err error)
}

// Field is a line of a form.
type Field struct {
	Name, Label string
	Value       string // at first
	Hint        string // explains it in a few words
	Options     []string
	Fixed       bool // the value is one of Options
	Number      bool // the value has digits and a dot only
	Lines       bool // the value may have several lines, which $EDITOR edits
	// Text, if set, is the text that the value names. $EDITOR edits it.
	Text *NamedText
	// Complete, if set, lists values to choose from for what is typed, besides Options. It gets the values of
	// all fields.
	Complete func(typed string, all Values) []string
	// Follow, if set, returns the value that the field has, depending on the others, until one is typed.
	Follow func(Values) string
	// Shown, if set, reports whether the field applies to the other values.
	Shown func(Values) bool
}

// NamedText is a stored text that a value names. Its functions do I/O and run in commands.
type NamedText struct {
	// Load returns the text that a value names, or that a new name begins with.
	Load func(value string) (text string, err error)
	// Save stores an edited text and returns the value that names it now. After an error, Load returns the
	// edited text.
	Save func(value, text string) (saved string, err error)
}

// Edit opens the text in $EDITOR and stores what is saved. done gets the value that names it.
func (t *NamedText) Edit(value string, done func(saved string, err error) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		text, err := t.Load(value)
		if err != nil {
			return done("", err)
		}
		return edit(text, func(text string, err error) tea.Msg {
			if err != nil {
				return done("", err)
			}
			return done(t.Save(value, text))
		})()
	}
}

// Values are the values of a form's fields that apply, by name.
type Values map[string]string

// Report is the result of a check. Text in it is untrusted.
type Report struct {
	Problems map[string]string // by field, "" for the form as a whole
	Lines    []string          // what submitting does
	Command  string            // the command line that does the same, "" for none
}

// Filled returns the message by which a command opens a form.
func Filled(f Form) tea.Msg { return Then(func(s Shell) tea.Cmd { return s.Fill(f) }) }

// formMsg is the result of a form's command.
type formMsg struct {
	of    *form
	apply func(*forms, Shell) tea.Cmd
}

// forms is the open form, if any, and what was typed into closed ones.
type forms struct {
	open      *form
	kept      map[string]Values // by name
	context   context.Context   // of submitting
	messages  *messages
	clipboard *clipboard
}

// form is an open [Form].
type form struct {
	spec     Form
	styles   theme.Styles
	inputs   []textinput.Model
	long     map[int]string // values with several lines
	refused  map[int]string // why edited texts were not stored, until their field changes
	followed map[int]string // last values by [Field.Follow]
	touched  []bool         // a problem of the field is shown
	at       int            // the focused field
	fresh    bool           // typing replaces the value of the focused field
	top      int            // first visible line of the fields
	options  []string       // completions of the focused field
	option   int            // the one in the field, -1 for none
	report   Report
	version  int // counts changes
	reported int // the version of report, -1 before the first
	checking bool
	waiting  bool // enter was pressed before the check was done
	sending  bool
	stop     context.CancelFunc // of sending
	failure  string
	lines    []int // by line inside the box: its field, or -1
	y        int   // of the first line on the screen
}

func newForm(spec Form, kept Values, s theme.Styles) *form {
	f := &form{spec: spec, styles: s, long: map[int]string{}, refused: map[int]string{},
		followed: map[int]string{}, touched: make([]bool, len(spec.Fields)), fresh: true, option: -1, reported: -1}
	for i, field := range spec.Fields {
		in := textinput.New()
		in.Prompt = ""
		in.SetVirtualCursor(false)
		in.KeyMap.NextSuggestion.SetEnabled(false)
		in.KeyMap.PrevSuggestion.SetEnabled(false)
		plain := textinput.StyleState{Text: s.Text.Lipgloss(), Placeholder: s.Muted.Lipgloss()}
		styles := in.Styles()
		styles.Focused, styles.Blurred = plain, plain
		in.SetStyles(styles)
		f.inputs = append(f.inputs, in)
		value := field.Value
		if typed, ok := kept[field.Name]; ok {
			value = typed
		}
		f.set(i, value)
	}
	f.inputs[0].Focus()
	f.follow()
	return f
}

// follow updates the fields that follow others and that were not typed into.
func (f *form) follow() {
	typed := f.typed()
	for i, field := range f.spec.Fields {
		if field.Follow == nil {
			continue
		}
		value := field.Follow(typed)
		if last, ok := f.followed[i]; ok && last != value && last == typed[field.Name] {
			f.set(i, value)
		}
		f.followed[i] = value
	}
}

func (f *form) set(i int, value string) {
	delete(f.long, i)
	delete(f.refused, i)
	if strings.ContainsAny(value, "\n\t") {
		f.long[i] = value
		value = ""
	}
	f.inputs[i].SetValue(value)
	f.inputs[i].CursorEnd()
	f.fresh = f.fresh && i != f.at
}

func (f *form) value(i int) string {
	if long, ok := f.long[i]; ok {
		return long
	}
	return f.inputs[i].Value()
}

// typed returns the values of all fields.
func (f *form) typed() Values {
	v := Values{}
	for i, field := range f.spec.Fields {
		v[field.Name] = f.value(i)
	}
	return v
}

// values returns the values of the fields that apply.
func (f *form) values() Values {
	all := f.typed()
	out := maps.Clone(all)
	for _, field := range f.spec.Fields {
		if field.Shown != nil && !field.Shown(all) {
			delete(out, field.Name)
		}
	}
	return out
}

// shown lists the fields that apply.
func (f *form) shown() (list []int) {
	values := f.values()
	for i, field := range f.spec.Fields {
		if _, ok := values[field.Name]; ok {
			list = append(list, i)
		}
	}
	return list
}

func (f *form) field() Field { return f.spec.Fields[f.at] }

// begin returns the commands of a new form: the first check and the first completions.
func (f *form) begin() tea.Cmd { return tea.Batch(f.check(), f.complete()) }

// focus moves to a field.
func (f *form) focus(i int) tea.Cmd {
	f.touched[f.at] = true
	f.inputs[f.at].Blur()
	f.at = i
	f.fresh = true
	f.inputs[i].Focus()
	return f.complete()
}

// next moves the focus by fields that apply. After the last field comes the first.
func (f *form) next(by int) tea.Cmd {
	list := f.shown()
	at := slices.Index(list, f.at) + by + len(list)
	return f.focus(list[at%len(list)])
}

// changed follows a change of the focused field.
func (f *form) changed() tea.Cmd {
	f.touched[f.at] = true
	return tea.Batch(f.recheck(), f.complete())
}

func (f *form) recheck() tea.Cmd {
	f.version++
	f.failure = ""
	f.follow()
	return f.check()
}

// check examines the values unless a check is under way, which is repeated after it if the values have
// changed.
func (f *form) check() tea.Cmd {
	if f.spec.Check == nil || f.checking || f.reported == f.version {
		return nil
	}
	f.checking = true
	values, version := f.values(), f.version
	return func() tea.Msg {
		r := f.spec.Check(values)
		return formMsg{f, func(all *forms, _ Shell) tea.Cmd {
			f.checking, f.report, f.reported = false, r, version
			if f.reported == f.version && f.waiting {
				return f.submit(all.context)
			}
			return f.check()
		}}
	}
}

// complete lists the completions of the focused field.
func (f *form) complete() tea.Cmd {
	field, typed := f.field(), f.value(f.at)
	f.options, f.option = nil, -1
	if field.Fixed {
		return nil
	}
	fitting := func(all []string) (list []string) {
		if slices.Contains(all, typed) {
			return all
		}
		for _, o := range all {
			if strings.HasPrefix(o, typed) {
				list = append(list, o)
			}
		}
		return list
	}
	f.options = fitting(field.Options)
	if field.Complete == nil {
		return nil
	}
	at, values := f.at, f.values()
	return func() tea.Msg {
		found := fitting(field.Complete(typed, values))
		return formMsg{f, func(*forms, Shell) tea.Cmd {
			if f.at == at && f.value(at) == typed {
				f.options = append(fitting(field.Options), found...)
			}
			return nil
		}}
	}
}

// extend appends the common beginning of all completions to the typed text. It reports whether that added
// anything.
func (f *form) extend() bool {
	typed := f.value(f.at)
	if typed == "" || len(f.options) == 0 || f.option >= 0 {
		return false
	}
	common := f.options[0]
	for _, o := range f.options[1:] {
		for !strings.HasPrefix(o, common) {
			common = common[:len(common)-1]
		}
	}
	common = strings.ToValidUTF8(common, "")
	if len(common) <= len(typed) {
		return false
	}
	f.set(f.at, common)
	return true
}

// choose puts another completion into the field. The list stays open.
func (f *form) choose(by int) tea.Cmd {
	n := len(f.options)
	if n == 0 {
		return nil
	}
	if f.option < 0 && by < 0 {
		f.option = 0
	}
	f.option = (f.option + by + n) % n
	f.set(f.at, f.options[f.option])
	f.touched[f.at] = true
	return f.recheck()
}

// turn shows the next of the options of a field that has no other values.
func (f *form) turn(by int) tea.Cmd {
	options := f.field().Options
	n := len(options)
	at := slices.Index(options, f.value(f.at))
	f.set(f.at, options[(max(at, 0)+by+n)%n])
	return f.changed()
}

func (all *forms) key(s Shell, k tea.KeyPressMsg, _ int) tea.Cmd {
	f := all.open
	switch k.String() {
	case "esc":
		all.close()
		return nil
	case "enter":
		return f.submit(all.context)
	case "ctrl+e":
		return f.edit(s)
	case "ctrl+y":
		if f.report.Command == "" {
			s.Note("nothing to copy here")
			return nil
		}
		return all.clipboard.copy(Copy{What: "command", Text: f.report.Command})
	}
	return f.key(k)
}

func (f *form) key(k tea.KeyPressMsg) tea.Cmd {
	switch name := k.String(); name {
	case "tab":
		if f.extend() {
			return f.changed()
		}
		return f.next(1)
	case "shift+tab", "up":
		return f.next(-1)
	case "down":
		return f.next(1)
	case "ctrl+n":
		return f.choose(1)
	case "ctrl+p":
		return f.choose(-1)
	case "left", "right", "space":
		in := f.inputs[f.at]
		if name == "right" && len(f.options) > 0 && in.Position() == utf8.RuneCountInString(in.Value()) {
			return f.choose(1)
		}
		if f.field().Fixed {
			by := 1
			if name == "left" {
				by = -1
			}
			return f.turn(by)
		}
	}
	return f.input(k)
}

// input passes a key or a paste to the focused field.
func (f *form) input(msg tea.Msg) (cmd tea.Cmd) {
	field := f.field()
	k, isKey := msg.(tea.KeyPressMsg)
	paste, isPaste := msg.(tea.PasteMsg)
	_, long := f.long[f.at]
	switch {
	case field.Fixed && isKey:
		for i, o := range field.Options {
			if k.Text != "" && strings.HasPrefix(o, k.Text) {
				f.set(f.at, field.Options[i])
				return f.changed()
			}
		}
		return nil
	case field.Fixed, long, field.Number && isKey && k.Text != "" && !strings.Contains("0123456789.", k.Text):
		return nil
	case isPaste && field.Lines && strings.Contains(paste.Content, "\n"):
		f.set(f.at, f.value(f.at)+paste.Content)
		return f.changed()
	}
	before := f.inputs[f.at].Value()
	if f.selected(f.at) && (isPaste || k.Text != "") {
		f.inputs[f.at].SetValue("")
	}
	f.fresh = false
	f.inputs[f.at], cmd = f.inputs[f.at].Update(msg)
	if f.inputs[f.at].Value() != before {
		delete(f.refused, f.at)
		return tea.Batch(cmd, f.changed())
	}
	return cmd
}

// selected reports whether typing replaces the value of a field. Text of several lines is never replaced.
func (f *form) selected(i int) bool {
	return f.fresh && i == f.at && !f.spec.Fields[i].Lines && f.value(i) != ""
}

// edit opens the text of the focused field in $EDITOR: its value, or what the value names.
func (f *form) edit(s Shell) tea.Cmd {
	at, field := f.at, f.field()
	edited := func(value string, err error) tea.Msg {
		return formMsg{f, func(_ *forms, s Shell) tea.Cmd { return f.edited(s, at, value, err) }}
	}
	switch {
	case field.Text != nil:
		return field.Text.Edit(f.value(at), edited)
	case field.Lines:
		return edit(f.value(at), func(value string, err error) tea.Msg {
			return edited(strings.TrimRight(value, "\n"), err)
		})
	}
	s.Note("only texts open in $EDITOR")
	return nil
}

// edited takes the value of a field after its text was edited.
func (f *form) edited(s Shell, at int, value string, err error) tea.Cmd {
	f.touched[at] = true
	if err != nil {
		f.refused[at] = err.Error()
		return nil
	}
	if f.spec.Fields[at].Text != nil && value != f.value(at) {
		s.Note("stored as " + value)
	}
	f.set(at, value)
	return f.changed()
}

// problem returns the problem of a field, or "".
func (f *form) problem(i int) string {
	if refused := f.refused[i]; refused != "" {
		return refused
	}
	return f.report.Problems[f.spec.Fields[i].Name]
}

// submit sends the values once they are checked. If they have a problem, it goes to the field.
func (f *form) submit(ctx context.Context) tea.Cmd {
	f.waiting = false
	for i := range f.touched {
		f.touched[i] = true
	}
	switch {
	case f.sending:
		return nil
	case f.spec.Check != nil && f.reported != f.version:
		f.waiting = true
		return f.check()
	}
	for _, i := range f.shown() {
		if f.problem(i) != "" {
			return f.focus(i)
		}
	}
	if f.report.Problems[""] != "" {
		return nil
	}
	f.sending = true
	f.failure = ""
	values := f.values()
	ctx, f.stop = context.WithCancel(ctx)
	return func() tea.Msg {
		defer f.stop()
		then, err := f.spec.Submit(ctx, values)
		return formMsg{f, func(all *forms, s Shell) tea.Cmd {
			if all.submitted(f, err) && then != nil {
				return then(s)
			}
			return nil
		}}
	}
}

// submitted closes a form, or shows why it was not submitted.
func (all *forms) submitted(f *form, err error) (ok bool) {
	f.sending = false
	switch {
	case err != nil && all.open == f:
		f.failure = err.Error()
		return false
	case errors.Is(err, context.Canceled):
		all.messages.note("stopped; nothing was done")
		return false
	case err != nil:
		all.messages.fail(err)
		return false
	case all.open == f:
		all.open = nil
	}
	delete(all.kept, f.spec.Name)
	return true
}

func (all *forms) fill(spec Form, s theme.Styles) tea.Cmd {
	all.open = newForm(spec, all.kept[spec.Name], s)
	return all.open.begin()
}

// close closes the form and keeps its values.
func (all *forms) close() {
	if name := all.open.spec.Name; name != "" {
		all.kept[name] = all.open.typed()
	}
	if all.open.sending {
		all.open.stop()
	}
	all.open = nil
}

// result applies the result of a form's command. Only that of submitting matters after the form was closed.
func (all *forms) result(s Shell, msg formMsg) tea.Cmd {
	if all.open != msg.of && !msg.of.sending {
		return nil
	}
	return msg.apply(all, s)
}

func (all *forms) hints(*keymap) []hint { return all.open.hints() }

// drawOver draws the form over the panes and returns the cursor.
func (f *form) drawOver(lines []string, width int) *tea.Cursor {
	drawn, cursor := f.draw(width, len(lines)-2)
	x, y := max((width-text.Width(drawn[0]))/2, 0), 1
	f.y = y + 1
	putOver(lines, drawn, x, y, width)
	if cursor != nil {
		cursor.Position.X += x
		cursor.Position.Y += y
	}
	return cursor
}

func (f *form) hints() []hint {
	list := []hint{{"enter", f.spec.Verb}, {"tab", "next field"}, {"esc", "close"}}
	switch field := f.field(); {
	case field.Fixed:
		list = append(list, hint{"left/right", "choose"})
	case len(f.options) > 0:
		list = append(list, hint{"right", "choose"})
	}
	if field := f.field(); field.Lines || field.Text != nil {
		list = append(list, hint{"ctrl+e", "edit in $EDITOR"})
	}
	if f.report.Command != "" {
		list = append(list, hint{"ctrl+y", "copy the command"})
	}
	return list
}

// click focuses the field at a cell.
func (f *form) click(y int) tea.Cmd {
	if y -= f.y; y >= 0 && y < len(f.lines) && f.lines[y] >= 0 && f.lines[y] != f.at {
		return f.focus(f.lines[y])
	}
	return nil
}

// Sizes of a form, in cells and lines.
const (
	maxFormWidth   = 108
	minInputWidth  = 30
	maxFormOptions = 6
	maxFormCommand = 3
	maxFormReport  = 10
)

// formLine is a drawn line of a field.
type formLine struct {
	text  string
	field int
}

// draw returns the lines of the form in a box at most height lines high, and the cursor relative to the box.
func (f *form) draw(width, height int) (lines []string, cursor *tea.Cursor) {
	w := min(width-6, maxFormWidth)
	below := f.drawBelow(w, max(height*2/5, 3))
	all, cursorLine, column := f.drawFields(w)
	space := max(height-2-len(below), 3)
	first := slices.IndexFunc(all, func(l formLine) bool { return l.field == f.at })
	last := first
	for last+1 < len(all) && all[last+1].field == f.at {
		last++
	}
	f.top = min(max(f.top, last-space+1), first, max(len(all)-space, 0))
	visible := all[f.top:min(f.top+space, len(all))]
	f.lines = nil
	for _, l := range visible {
		lines = append(lines, l.text)
		f.lines = append(f.lines, l.field)
	}
	title := f.spec.Title
	if len(visible) < len(all) {
		title += fmt.Sprintf(", field %d of %d", slices.Index(f.shown(), f.at)+1, len(f.shown()))
	}
	if cursor = f.shownInput(f.at).Cursor(); cursor != nil && column >= 0 {
		cursor.Position.X += column + 2
		cursor.Position.Y = cursorLine - f.top + 1
	} else {
		cursor = nil
	}
	return box(f.styles, width, title, append(lines, below...)), cursor
}

// drawFields returns the lines of all fields that apply, the line of the focused input among them and the
// column where the input begins, -1 without an input.
func (f *form) drawFields(w int) (all []formLine, cursorLine, column int) {
	s := f.styles
	label := 0
	for _, i := range f.shown() {
		label = max(label, text.Width(f.spec.Fields[i].Label))
	}
	label += 4
	column = -1
	for _, i := range f.shown() {
		field := f.spec.Fields[i]
		l := text.Line{Max: w, Tail: s.Glyphs.Ellipsis}
		mark, ink := " ", s.Text
		if i == f.at {
			mark, ink = s.Glyphs.Pointer, s.Strong
			cursorLine = len(all)
		}
		l.Add(s.Accent, mark+" ").Add(ink, text.Fit(field.Label, label-2, s.Glyphs.Ellipsis))
		space := w - label
		if field.Hint != "" {
			space = max(space/2, min(minInputWidth, space))
		}
		if value, typed := f.drawValue(i, space); typed {
			l.Add(s.Text, value)
			if i == f.at {
				column = label
			}
		} else {
			l.Add(s.Accent, value)
		}
		l.Pad(s.Text, label+space)
		l.Add(s.Muted, " "+text.Safe(field.Hint, " "))
		all = append(all, formLine{text.Fit(l.String(s.Text), w, ""), i})
		all = append(all, f.drawNotes(i, w, label)...)
	}
	return all, cursorLine, column
}

// drawValue returns the value of a field in width cells, and whether it is an input.
func (f *form) drawValue(i, width int) (value string, typed bool) {
	g := f.styles.Glyphs
	if long, ok := f.long[i]; ok {
		lines := text.Lines(long)
		tail := " (" + ace.Count(len(lines), "line") + ")"
		return text.Cut(text.Safe(lines[0], " "), width-len(tail), g.Ellipsis) + tail, false
	}
	if f.spec.Fields[i].Fixed {
		return text.Cut("< "+text.Safe(f.value(i), " ")+" >", width, g.Ellipsis), false
	}
	f.inputs[i].SetWidth(width - 1)
	if f.selected(i) {
		return f.styles.Selected.Paint(text.Cut(text.Safe(f.value(i), " "), width-1, g.Ellipsis)), true
	}
	return f.shownInput(i).View(), true
}

// shownInput returns an input without characters that must not reach the terminal. Its value keeps them.
func (f *form) shownInput(i int) textinput.Model {
	in := f.inputs[i]
	value := []rune(in.Value())
	before := text.Safe(string(value[:in.Position()]), " ")
	in.SetValue(before + text.Safe(string(value[in.Position():]), " "))
	in.SetCursor(utf8.RuneCountInString(before))
	return in
}

// drawNotes returns the problem of a field, and the completions of the focused field.
func (f *form) drawNotes(i, w, indent int) (lines []formLine) {
	s := f.styles
	add := func(ink theme.Ink, line string) {
		line = text.Spaces(indent) + ink.Paint(text.Cut(line, w-indent, s.Glyphs.Ellipsis))
		lines = append(lines, formLine{line, i})
	}
	if problem := f.problem(i); problem != "" && f.touched[i] {
		for _, l := range text.Wrap(s.Glyphs.Failed+" "+text.Safe(problem, " "), w-indent) {
			add(s.Error, l)
		}
	}
	if i != f.at {
		return lines
	}
	n := min(len(f.options), maxFormOptions)
	top := min(max(f.option-n/2, 0), len(f.options)-n)
	for j, o := range f.options[top : top+n] {
		if top+j == f.option {
			add(s.Selected, s.Glyphs.Pointer+" "+text.Safe(o, " "))
		} else {
			add(s.Key, "  "+text.Safe(o, " "))
		}
	}
	if more := len(f.options) - n; more > 0 {
		add(s.Muted, fmt.Sprintf("  and %d more", more))
	}
	return lines
}

// drawBelow returns the lines below the fields: the problem of the whole form, what enter does, and the
// command line.
func (f *form) drawBelow(w, height int) (lines []string) {
	s := f.styles
	add := func(ink theme.Ink, line string, most int) {
		wrapped := text.Wrap(text.Safe(line, " "), w)
		lines = append(lines, painted(ink, wrapped[:min(len(wrapped), most)])...)
	}
	state := "enter: " + f.spec.Verb + "   esc: close and keep the text"
	switch problem := f.report.Problems[""]; {
	case f.failure != "":
		add(s.Error, s.Glyphs.Failed+" "+f.failure, maxFormCommand)
	case f.sending:
		state = f.spec.Verb + s.Glyphs.Ellipsis + "   esc: stop"
	case f.waiting:
		state = "checking" + s.Glyphs.Ellipsis
	case problem != "":
		add(s.Error, s.Glyphs.Failed+" "+problem, maxFormCommand)
	}
	space := max(min(height-len(lines)-1, maxFormReport), 0)
	for _, l := range f.report.Lines[:min(len(f.report.Lines), space)] {
		lines = append(lines, s.Muted.Paint(text.Cut(text.Safe(l, " "), w, s.Glyphs.Ellipsis)))
	}
	if f.report.Command != "" {
		most := min(max(height-len(lines)-2, 1), maxFormCommand)
		command := text.Wrap(text.Safe("$ "+f.report.Command, " "), w)
		if len(command) > most {
			rest := strings.Join(command[most-1:], " ")
			command = append(command[:most-1], text.Cut(rest, w, s.Glyphs.Ellipsis))
		}
		lines = append(lines, painted(s.Accent, command)...)
	}
	return slices.Concat([]string{text.Spaces(w)}, lines, []string{s.Hint.Paint(state)})
}
