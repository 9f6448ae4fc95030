package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/theme"
)

// SnapshotSource is where the console's data comes from. Both methods return at once;
// Changed has one slot and fires after a newer snapshot is there to be had.
type SnapshotSource interface {
	Snapshot() *sources.Snapshot
	Changed() <-chan struct{}
}

// View is one pane. Its methods are called from one goroutine and do no IO.
type View interface {
	// Name is the view's short name, for its tab and its part of the help.
	Name() string
	// Title and Footer stand in the pane's frame, as plain, safe text.
	Title() string
	Footer() string
	// Bindings are the keys that work while the view has the focus.
	Bindings() []Binding
	// Update takes messages that the shell does not know: those of the view's own
	// commands. Every view gets all of them.
	Update(msg tea.Msg) tea.Cmd
	SetStyles(s theme.Styles)
	// SetSize gives the room inside the frame, in cells.
	SetSize(width, height int)
	// SetShown tells that the view came onto the screen or went off it. It is where a
	// view asks for data that is read only while somebody looks.
	SetShown(shown bool)
	// SetSnapshot gives the newest data; never nil. It comes for views that are not
	// shown too, so it is quick: the work is Draw's.
	SetSnapshot(s *sources.Snapshot)
	// Draw returns exactly the lines of SetSize, each exactly that wide.
	Draw(now time.Time, focused bool) []string
}

// Copier is a view from which something can be copied: what it is in a few words, and
// its text. Both are "" where there is nothing.
type Copier interface{ Copy() (what, text string) }

// Commander is a view that offers commands of its own. They can be given on every
// screen.
type Commander interface{ Commands() []Command }

// Wheeler is a view that scrolls by lines, down where positive. For others the wheel
// does what the keys down and up do.
type Wheeler interface{ Wheel(lines int) }

// Clicker is a view that takes clicks at a cell inside its frame, the upper left one
// being 0, 0.
type Clicker interface{ Click(x, y int) tea.Cmd }

// Keeper is a view with something that outlives the process: where one was, what was
// filtered. Restore is called once, before the first snapshot, with what Keep gave, maybe
// of an older version. [MaxKept] and [MaxKeptBytes] bound what is kept.
type Keeper interface {
	Keep() map[string]string
	Restore(map[string]string)
}

// Binding is a key, what it does and how that is called, in one value.
type Binding struct {
	Action string   // stable name for key maps and commands: "runs.cancel"
	Keys   []string // as Bubble Tea writes them: "j", "ctrl+d", "pgdown", "space"
	Help   string   // a line in the help
	Short  string   // a word or two for the status line, "" to leave it out
	// Hints are the screens whose status line shows Short, nil for all: a key that works
	// everywhere need not be told everywhere.
	Hints []string
	// Mutates tells that it changes something outside the console. It is off in a
	// console that only reads.
	Mutates bool
	Do      func(Shell) tea.Cmd
}

// Command is something that can be typed after ":".
type Command struct {
	Name    string
	Aliases []string
	Args    string // a hint: "NAME"; "" where it takes none
	Help    string // one line
	Mutates bool   // see [Binding]
	// Number tells that on the view's own screen a bare number is meant for it: ":42".
	Number bool
	// Complete lists what the arguments may be, given what is typed of them; nil for
	// anything.
	Complete func(prefix string) []string
	Do       func(s Shell, args string) tea.Cmd
}

// Shell is what a binding's handler may ask of the root.
type Shell interface {
	// Ask opens a line to type in.
	Ask(Prompt)
	// Confirm opens a question that must be answered with yes before anything is done.
	Confirm(Question)
	// Wait opens a dialog that stands until something is prepared.
	Wait(*Waiting)
	// Open shows another screen by name; esc leads back.
	Open(screen string)
	// Focus goes to a pane of the screen by number, from 0.
	Focus(pane int)
	// Note shows a line of good news for a while.
	Note(text string)
}

// Prompt is a line to type in. Preview, where it is set, says what the text means and
// is shown while typing; Done gets the text when it is sent. What was sent is kept by
// Label, and up and down bring it back into an empty line.
type Prompt struct {
	Label string
	Value string
	Hint  string // while the line is empty
	// Lines lets the text have several: ctrl+j and alt+enter begin another, enter sends. Such
	// a prompt has no completion.
	Lines   bool
	Preview func(string) string
	// Complete, where it is set, lists what may stand in place of line[from:cursor], best
	// first; offsets are in bytes. It is asked after each key, so it must be quick.
	Complete func(line string, cursor int) (from int, options []string)
	Done     func(string) tea.Cmd
}

// Question is a dialog. Its handlers must use only what they captured when it was made,
// so that fresh data cannot redirect it.
type Question struct {
	Title string
	Lines []string // plain, safe text
	Yes   string   // what yes does, as a verb
	Do    func() tea.Cmd
	// Long breaks lines that are too long, and scrolls where there are too many, so that all
	// can be read.
	Long bool
	// Warning stands in front, for what must not be overlooked; plain, safe text.
	Warning string
	Others  []Choice // besides yes and no
}

// Choice is another answer to a [Question].
type Choice struct {
	Key string
	Yes string // what it does, as a verb
	Do  func(Shell) tea.Cmd
}

type noticeMsg struct {
	text string
	bad  bool
}

// Noted is the message by which a command reports good news.
func Noted(text string) tea.Msg { return noticeMsg{text: text} }

type questionMsg struct{ q Question }

// Asked is the message by which a command, once it knows enough, opens a question.
func Asked(q Question) tea.Msg { return questionMsg{q} }

// Failed is the message by which a command reports an error. It stays in the log of past
// errors.
func Failed(err error) tea.Msg { return noticeMsg{text: err.Error(), bad: true} }
