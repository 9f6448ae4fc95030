package tui

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/theme"
)

// shellBindings returns the keys of the shell itself, in the order of the help.
func (m *Model) shellBindings() []Binding {
	b := func(action, help, short string, do func() tea.Cmd, keys ...string) Binding {
		return Binding{Action: "shell." + action, Keys: keys, Help: help, Short: short,
			Do: func(Shell) tea.Cmd { return do() }}
	}
	// simple makes a handler of an action without a command, noted one of an action that returns a note or
	// "".
	simple := func(do func()) func() tea.Cmd { return func() tea.Cmd { do(); return nil } }
	noted := func(do func() string) func() tea.Cmd { return simple(func() { m.messages.noteAny(do()) }) }
	resize := func(by int) func() string { return func() string { return m.panes.resize(by) } }
	list := []Binding{
		b("open", "open the selection", "open", simple(m.panes.next), "enter"),
		b("next", "go to the next pane", "pane", simple(m.panes.cycle), "tab"),
		b("help", "list and search the keys and signs; enter runs a key", "help", simple(m.openHelp), "?"),
		b("command", "type a command; tab completes it", "command", simple(m.openPalette), ":"),
		b("back", "clear the filter, else go back; never quits", "", noted(m.panes.leave), "esc"),
		b("zoom", "show this pane alone, or all panes", "", noted(m.panes.zoom), "z"),
		b("narrower", "make the left pane narrower", "", noted(resize(-shareStep)), "<"),
		b("wider", "make the left pane wider", "", noted(resize(shareStep)), ">"),
		b("copy", "copy the selection: y again, or another form of it", "", simple(m.openCopies), "y"),
		b("errors", "list errors, newest first", "", simple(m.openErrors), "!"),
		b("mouse", "turn the mouse on or off", "", noted(m.mouse.toggle), "M"),
		b("suspend", "suspend acescope; fg in the shell resumes it", "", m.suspend, "ctrl+z"),
		b("quit", "quit; "+quitKey+" works everywhere", "quit", func() tea.Cmd { return tea.Quit }, "q"),
	}
	if stop := m.opts.CancelWork; stop != nil {
		cancel := func() string { return m.status.cancelWork(stop) }
		list = append(list, b("cancel_work", "stop the operation in the status line", "", noted(cancel),
			"ctrl+x"))
	}
	return list
}

// shellCommands returns the commands of the shell itself.
func (m *Model) shellCommands() []Command {
	simple := func(name, help string, do func(), aliases ...string) Command {
		return Command{Name: name, Aliases: aliases, Help: help, Do: func(Shell, string) tea.Cmd {
			do()
			return nil
		}}
	}
	list := []Command{
		simple("help", "show the keys that work here", m.openHelp, "h"),
		simple("keys", "show all keys of all screens", m.openKeys),
		simple("errors", "list errors, newest first", m.openErrors, "messages"),
		{Name: "quit", Aliases: []string{"q", "q!", "exit"}, Help: "quit the console",
			Do: func(Shell, string) tea.Cmd { return tea.Quit }},
	}
	if m.themes.load != nil {
		list = append(list, Command{Name: "theme", Args: "NAME", Help: "use other colors until you quit",
			Candidates: m.themes.candidates, Check: m.themes.check, Do: m.chooseTheme})
	}
	return list
}

func (m *Model) chooseTheme(_ Shell, name string) tea.Cmd {
	s, err := m.themes.choose(name)
	if err != nil {
		m.messages.fail(err)
		return nil
	}
	m.setStyles(s)
	m.Note("theme " + s.Theme + ` until you quit; set theme = "` + name + `" in config.toml to keep it`)
	return nil
}

func (m *Model) openPalette() {
	m.Ask(m.palette.prompt(func(line string) tea.Cmd {
		cmd, err := m.palette.run(m, line)
		if err != nil {
			m.messages.fail(err)
		}
		return cmd
	}))
}

// openHelp opens the keys of the focused view, openKeys those of all views.
func (m *Model) openHelp() {
	h := newHelp(&m.keys, &m.panes, m.runIn)
	m.dialogs[sheetDialog] = h.sheet("Help", m.keys.keysFor("shell.help"))
}

func (m *Model) openKeys() {
	h := newHelp(&m.keys, &m.panes, m.runIn)
	h.near = len(h.groups)
	m.dialogs[sheetDialog] = h.sheet("Keys", nil)
}

// openErrors opens the page of errors. The keys that open it close it, too.
func (m *Model) openErrors() {
	m.dialogs[sheetDialog] = newSheet("Errors", m.keys.keysFor("shell.errors"),
		func(s theme.Styles, width int) []string { return m.messages.lines(s, m.status, width) })
}

// openCopies opens the menu of what can be copied.
func (m *Model) openCopies() {
	if list := copiesOf(m.panes.focused()); len(list) > 0 {
		m.dialogs[questionDialog] = m.clipboard.menu(list)
	} else {
		m.Note("nothing to copy here")
	}
}

// suspend stops the process until the shell resumes it, unless that would freeze a server with open runs.
func (m *Model) suspend() tea.Cmd {
	s := m.status
	switch {
	case s == nil || !s.Connection.Hosts:
		return tea.Suspend
	case s.Filter != "" || s.Counts["running"] > 0:
		m.messages.fail(errors.New(
			"cannot suspend: it hosts the server; start acescope serve, then quit, and open it again"))
		return nil
	}
	m.Confirm(Question{Title: "Suspend the server?", Yes: "suspend", Do: func() tea.Cmd {
		return tea.Suspend
	},
		Lines: []string{"This console hosts the server. Other processes that use it wait until you resume it with fg."}})
	return nil
}

// modal is a part that takes all keys but ctrl+c while it is open.
type modal interface {
	// key handles a key; height is that of the screen.
	key(s Shell, k tea.KeyPressMsg, height int) tea.Cmd
	// hints lists the keys for the status line.
	hints(*keymap) []hint
}

// modal returns the open prompt, dialog or form, or nil.
func (m *Model) modal() modal {
	switch {
	case m.prompts.open != nil:
		return &m.prompts
	case m.dialogs.top() != nil:
		return &m.dialogs
	case m.forms.open != nil:
		return &m.forms
	}
	return nil
}

// key passes a key to what is open, the focused view or the shell.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	if k.String() == quitKey {
		return tea.Quit
	}
	if o := m.modal(); o != nil {
		return o.key(m, k, m.canvas.height)
	}
	for _, b := range m.keys.bindings(m.panes.focused().Bindings()) {
		if slices.Contains(b.Keys, k.String()) {
			return m.do(b)
		}
	}
	return nil
}

// mouseInput passes a click or the wheel to what is open or the panes. The wheel scrolls an open dialog.
func (m *Model) mouseInput(msg tea.MouseMsg) tea.Cmd {
	switch d := m.dialogs.top(); {
	case d != nil:
		d.scroll(wheeled(msg))
	case m.forms.open != nil && leftClick(msg):
		return m.forms.open.click(msg.Mouse().Y)
	case m.modal() == nil && !m.canvas.tooSmall():
		return m.mouse.handle(msg)
	}
	return nil
}

// paste passes a text to the open prompt or form.
func (m *Model) paste(msg tea.PasteMsg) tea.Cmd {
	switch {
	case m.prompts.open != nil:
		return m.prompts.open.update(msg)
	case m.forms.open != nil:
		return m.forms.open.input(msg)
	}
	return nil
}

// do runs a binding unless read-only mode disables it.
func (m *Model) do(b Binding) tea.Cmd {
	if b.Mutates && m.opts.ReadOnly {
		title, _, _ := strings.Cut(cmp.Or(b.Short, b.Help), " (")
		m.Note(readOnlyNote(strconv.Quote(title)))
		return nil
	}
	return b.Do(m)
}

// runIn shows a view, if not nil, and runs a binding of it.
func (m *Model) runIn(v View, b Binding) tea.Cmd {
	if v != nil {
		m.panes.reveal(v)
		m.layout()
	}
	return m.do(b)
}
