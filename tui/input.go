package tui

import (
	"errors"
	"slices"

	tea "charm.land/bubbletea/v2"

	"acescope/theme"
)

// shellBindings returns the keys of the shell itself, in the order of the help.
func (m *Model) shellBindings() []Binding {
	b := func(action, help, short string, do func() tea.Cmd, keys ...string) Binding {
		return Binding{Action: "shell." + action, Keys: keys, Help: help, Short: short,
			Do: func(Shell) tea.Cmd { return do() }}
	}
	// simple is for actions that need no command.
	simple := func(do func()) func() tea.Cmd { return func() tea.Cmd { do(); return nil } }
	help := func() { m.openHelp(false, "shell.help") }
	resize := func(by int) func() { return func() { m.noteProblem(m.panes.resize(by)) } }
	list := []Binding{
		b("open", "open the selection", "open", simple(m.panes.next), "enter"),
		b("next", "go to the next pane", "pane", simple(m.panes.cycle), "tab"),
		b("help", "list and search the keys and signs; enter runs a key", "help", simple(help), "?"),
		b("command", "type a command; tab completes it", "command", simple(m.openPalette), ":"),
		b("back", "clear the filter, else go back; never quits", "", simple(m.back), "esc"),
		b("zoom", "show this pane alone, or all panes", "", simple(func() { m.noteProblem(m.panes.zoom()) }), "z"),
		b("narrower", "make the left pane narrower", "", simple(resize(-shareStep)), "<"),
		b("wider", "make the left pane wider", "", simple(resize(shareStep)), ">"),
		b("copy", "copy the selection: y again, or another form of it", "", simple(m.askCopy), "y"),
		b("errors", "list errors, newest first", "", simple(m.openErrors), "!"),
		b("mouse", "turn the mouse on or off", "", simple(m.toggleMouse), "M"),
		b("suspend", "suspend acescope; fg in the shell resumes it", "", m.suspend, "ctrl+z"),
		b("quit", "quit; "+quitKey+" works everywhere", "quit", func() tea.Cmd { return tea.Quit }, "q"),
	}
	if m.opts.CancelWork != nil {
		list = append(list, b("cancel_work", "stop the operation in the status line", "",
			simple(m.cancelWork), "ctrl+x"))
	}
	return list
}

func (m *Model) back() {
	if f, ok := m.panes.focused().(Filtered); ok && f.Unfilter() {
		m.Note("filter cleared")
		return
	}
	m.panes.back()
}

func (m *Model) screenBindings() []Binding {
	if len(m.panes.screens) < 2 {
		return nil
	}
	var out []Binding
	for _, s := range m.panes.screens {
		out = append(out, Binding{Action: "screen." + s.Name, Keys: s.Keys, Help: s.Help,
			Do: func(Shell) tea.Cmd { m.panes.jump(s.Name); return nil }})
	}
	return out
}

// shellCommands returns the commands of the shell itself.
func (m *Model) shellCommands() []Command {
	simple := func(name, help string, do func(), aliases ...string) Command {
		return Command{Name: name, Aliases: aliases, Help: help, Do: func(Shell, string) tea.Cmd { do(); return nil }}
	}
	list := []Command{
		simple("help", "show the keys that work here", func() { m.openHelp(false, "shell.help") }, "h"),
		simple("keys", "show all keys of all screens", func() { m.openHelp(true, "") }),
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
		m.fail(err)
		return nil
	}
	m.setStyles(s)
	m.Note("theme " + s.Theme + ` until you quit; set theme = "` + name + `" in config.toml to keep it`)
	return nil
}

// paletteLabel is the label of the prompt for commands.
const paletteLabel = ":"

func (m *Model) openPalette() {
	run := func(line string) tea.Cmd {
		cmd, err := m.palette.run(m, line)
		if err != nil {
			m.fail(err)
		}
		return cmd
	}
	m.Ask(Prompt{Label: paletteLabel, Hint: "a command, a screen or an action",
		Preview: m.palette.preview, Check: m.palette.check, Complete: m.palette.complete, Done: run})
	m.prompt.help = m.palette.optionHelp
}

// openErrors opens the page of errors. The keys that open it close it, too.
func (m *Model) openErrors() {
	m.dialogs[sheetDialog] = newSheet("Errors", m.keys.keysFor("shell.errors"),
		func(s theme.Styles, width int) []string { return m.messages.lines(s, m.status, width) })
}

// suspend stops the process until the shell resumes it, unless that would freeze a server with open runs.
func (m *Model) suspend() tea.Cmd {
	s := m.status
	switch {
	case s == nil || !s.Connection.Hosts:
		return tea.Suspend
	case s.Filter != "" || s.Counts["running"] > 0:
		m.fail(errors.New("cannot suspend: it hosts the server; start acescope serve, then quit, and open it again"))
		return nil
	}
	m.Confirm(Question{Title: "Suspend the server?", Yes: "suspend", Do: func() tea.Cmd { return tea.Suspend },
		Lines: []string{"This console hosts the server. Other processes that use it wait until you resume it with fg."}})
	return nil
}

// noteProblem shows why a key had no effect.
func (m *Model) noteProblem(problem string) {
	if problem != "" {
		m.Note(problem)
	}
}

func (m *Model) cancelWork() {
	w, ok := m.status.newestWork()
	if !ok {
		m.Note("no operation is running")
		return
	}
	m.opts.CancelWork(w.ID)
	m.Note("stopping: " + w.Label)
}

// key routes a key: to the prompt, the top dialog, the focused view or the shell.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	if k.String() == quitKey {
		return tea.Quit
	}
	if m.prompt != nil {
		return m.promptKey(k)
	}
	if d := m.dialogs.top(); d != nil {
		closes, then := d.key(k, m.height)
		if closes {
			m.dialogs.close()
		}
		if then != nil {
			return then(m)
		}
		return nil
	}
	if m.form != nil {
		return m.form.key(m, k)
	}
	for _, b := range m.keys.bindings(m.panes.focused().Bindings()) {
		if slices.Contains(b.Keys, k.String()) {
			return m.do(b)
		}
	}
	return nil
}

func (m *Model) promptKey(k tea.KeyPressMsg) tea.Cmd {
	p := m.prompt
	switch k.String() {
	case "esc":
		m.prompt = nil
		return nil
	case "enter":
		if p.spec.Check != nil {
			if p.refused = p.spec.Check(p.input.Value()); p.refused != nil {
				return nil
			}
		}
		m.prompt = nil
		m.history.add(p.spec.Label, p.input.Value())
		return p.spec.Done(p.input.Value())
	}
	return p.key(k)
}

// do runs a binding unless read-only mode disables it.
func (m *Model) do(b Binding) tea.Cmd {
	if b.Mutates && m.opts.ReadOnly {
		m.Note(readOnlyNote(b.Action))
		return nil
	}
	return b.Do(m)
}
