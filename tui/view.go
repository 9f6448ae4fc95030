package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/theme"
)

// View is one pane. Its methods are called from one goroutine and do no I/O.
type View interface {
	// Name is the view's short name, for pane titles and the help.
	Name() string
	// Title and Footer are shown in the pane's frame, as plain, safe text.
	Title() string
	Footer() string
	// Bindings are the keys that work while the view has the focus.
	Bindings() []Binding
	SetStyles(s theme.Styles)
	// SetSize sets the size inside the frame, in cells.
	SetSize(width, height int)
	// Refresh takes the newest values of the view's feeds. It is called for hidden views
	// too, so it must be quick; Draw does the work.
	Refresh()
	// Draw returns exactly the lines of SetSize, each exactly that wide. The selected row of a
	// list begins with the glyph Pointer, so that a click can select a row.
	Draw(now time.Time, focused bool) []string
}

// viewList is all views of a console.
type viewList []View

func (list viewList) refresh() {
	for _, v := range list {
		v.Refresh()
	}
}

func (list viewList) setStyles(s theme.Styles) {
	for _, v := range list {
		v.SetStyles(s)
	}
}

func (list viewList) update(msg tea.Msg) tea.Cmd {
	var cmds []tea.Cmd
	for _, v := range list {
		if u, ok := v.(Updater); ok {
			cmds = append(cmds, u.Update(msg))
		}
	}
	return tea.Batch(cmds...)
}

// Updater is a view that handles messages that the shell does not know: those of the view's
// own commands. Every Updater gets all of them.
type Updater interface{ Update(msg tea.Msg) tea.Cmd }

// ShownSetter is a view that is informed when it comes onto the screen or leaves it, so that
// it can request data that is read only while it is shown.
type ShownSetter interface{ SetShown(shown bool) }

// Filtered is a view with a filter, which esc clears before it leads back.
type Filtered interface {
	// Unfilter clears the filter and reports whether there was one.
	Unfilter() bool
}

// Starter is a view of the first screen that may name another screen to begin with, "" for its
// own. It is asked after each Refresh until the user presses a key.
type Starter interface{ StartOn() (screen string) }

// Copier is a view whose selection can be copied. Copy returns a short description and the text, which is ""
// if there is nothing to copy.
type Copier interface{ Copy() (what, text string) }

// MultiCopier is a [Copier] that offers other forms of its selection in the menu of the key y.
type MultiCopier interface{ Copies() []Copy }

// Commander is a view that offers commands. They work on every screen.
type Commander interface{ Commands() []Command }

// Wheeler is a view that scrolls by lines, down if positive. In other views the wheel
// presses the keys down and up.
type Wheeler interface{ Wheel(lines int) }

// Keeper is a view with state that outlives the process, such as a position or a filter.
// Restore is called once, before the first Refresh, with what Keep returned, maybe in an
// older version. [MaxKept] and [MaxKeptBytes] bound what is kept.
type Keeper interface {
	Keep() map[string]string
	Restore(map[string]string)
}

// Screen is one or two views that are shown together: side by side if there is room,
// otherwise one at a time. A view may belong to several screens.
type Screen struct {
	Name    string   // of its tab and of the command that opens it: "runs"
	Short   string   // name on a narrow tab, "" for Name
	Aliases []string // other names of the command
	Keys    []string // that open it from everywhere
	Help    string   // a line in the help
	Aside   bool     // a detail that has a tab only while it is shown
	Detail  bool     // it shows what is selected on another screen
	Views   []View
	// Argument, if set, lets the screen's command take an argument, as in ":run ID".
	Argument *Argument
	// Share is the first view's share of a wide screen in percent; 0 for the default.
	Share int
}

// Binding is an action with its keys and its help.
type Binding struct {
	Action string   // stable name for key maps and commands: "runs.cancel"
	Keys   []string // as Bubble Tea writes them: "j", "ctrl+d", "pgdown", "space"
	Help   string   // a line in the help
	Short  string   // a word or two for the status line, "" to leave it out
	// Hints are the screens whose status line shows Short, nil for all.
	Hints []string
	// Mutates marks actions that change something outside the console. They are disabled
	// in read-only mode.
	Mutates bool
	// Motion marks the keys that move the cursor or scroll. The help lists them in one line.
	Motion bool
	Do     func(Shell) tea.Cmd
}

// Command can be typed after ":".
type Command struct {
	Name    string
	Aliases []string
	Args    string // a hint: "NAME"; "" if it takes no arguments
	Help    string // one line
	Mutates bool   // see [Binding]
	// Number marks the command that a bare number means on the view's own screen: ":42".
	Number bool
	// Candidates, if set, lists the values that a word of the arguments may have, from data at hand. What is
	// typed finds them by fuzzy matching. If Complete is set too, they are those of the first word.
	Candidates func() []Candidate
	// Complete lists the arguments that begin with prefix; nil if anything is allowed.
	Complete func(prefix string) []string
	// Check, if set, returns why the arguments cannot be applied. The line then stays open.
	Check func(args string) error
	Do    func(s Shell, args string) tea.Cmd
}

// Argument describes the argument of a screen's command.
type Argument struct {
	Name string // a hint: "ID"
	Help string // what the command does with it: "ID selects another run"
	// Candidates, Complete and Check are those of a [Command]. Check gets arguments that are not empty.
	Candidates func() []Candidate
	Complete   func(prefix string) []string
	Check      func(args string) error
	// Do applies arguments that are not empty and opens the screen.
	Do func(s Shell, args string) tea.Cmd
}

// Candidate is a possible value of an argument.
type Candidate struct {
	Value string // one word, with a space behind it if others follow
	Help  string // what it stands for; it need not be safe
}

// Shell is what a binding's handler may do with the root model.
type Shell interface {
	// Ask opens a line to type in.
	Ask(Prompt)
	// Fill opens a form. The command that it returns must run.
	Fill(Form) tea.Cmd
	// Confirm opens a question.
	Confirm(Question)
	// Wait opens a dialog that stays until a command finishes.
	Wait(*Waiting)
	// Open shows another screen by name; esc leads back.
	Open(screen string)
	// OnReturn sets what runs when esc leads back to the place from which the last screen was opened.
	OnReturn(restore func())
	// Focus moves the focus to a pane of the screen by number, from 0, or to the last one if there are fewer.
	Focus(pane int)
	// Note shows a message in the status line for a while, at most until the next key.
	Note(text string)
}

// Prompt is a line to type in. Done gets the text when it is sent. Sent lines are kept by
// Label; the keys up and down recall them into an empty line.
type Prompt struct {
	Label string
	Value string
	Hint  string // while the line is empty
	// Lines allows several lines: ctrl+j and alt+enter begin another one, enter sends. Such
	// a prompt has no completion.
	Lines bool
	// Preview, if set, explains the text while it is typed.
	Preview func(string) string
	// Check, if set, returns why a text cannot be applied. The prompt then stays open and shows the error,
	// also while typing if there is no Preview.
	Check func(string) error
	// Complete, if set, lists replacements for line[from:cursor], best first; offsets are
	// in bytes. It is called after each key, so it must be quick.
	Complete func(line string, cursor int) (from int, options []string)
	Done     func(string) tea.Cmd

	optionHelp func(option string) string // nil if completions need no help
}

// Question is a dialog that needs an answer. Its handlers must use only values captured when
// it was made, so that fresh data cannot redirect it.
type Question struct {
	Title string
	Lines []string // plain, safe text
	Yes   string   // what yes does, as a verb
	Do    func() tea.Cmd
	// Long wraps long lines and makes the question scroll.
	Long    bool
	Warning string   // shown first; plain, safe text
	Others  []Choice // besides yes and no
}

// Choice is another answer to a [Question].
type Choice struct {
	Key string
	Yes string // what it does, as a verb
	Do  func(Shell) tea.Cmd
}

// Waiting is a dialog that stays until its answer comes, a message made by [Settled]. If the
// user closes it first, Leave is called and the answer is dropped.
type Waiting struct {
	Title string
	Lines []string // plain, safe text
	Leave func()   // stops the work; nil if it cannot be stopped
}

type (
	noticeMsg struct {
		text     string
		isError  bool
		untilKey bool // it goes with the next key
	}
	thenMsg    struct{ do func(Shell) tea.Cmd }
	settledMsg struct {
		of  *Waiting
		msg tea.Msg
	}
)

// Noted returns the message by which a command reports success.
func Noted(text string) tea.Msg { return noticeMsg{text: text} }

// Failed returns the message by which a command reports an error. It stays in the log of
// errors.
func Failed(err error) tea.Msg { return noticeMsg{text: err.Error(), isError: true} }

// Copied returns the message by which a command copies a text through the terminal, which also
// works over SSH.
func Copied(what, text string) tea.Msg { return copiedMsg{what, text, errNoClipboard} }

// Asked returns the message by which a command opens a question.
func Asked(q Question) tea.Msg {
	return Then(func(s Shell) tea.Cmd { s.Confirm(q); return nil })
}

// Then returns the message by which a command continues with the shell.
func Then(do func(Shell) tea.Cmd) tea.Msg { return thenMsg{do} }

// Settled returns the message by which a command answers a [Waiting]: the dialog closes, and
// msg is handled unless the user closed the dialog before.
func Settled(w *Waiting, msg tea.Msg) tea.Msg { return settledMsg{w, msg} }
