package tui

import (
	"cmp"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/theme"
)

// openPalette opens the line in which commands are given.
func (m *Model) openPalette() {
	m.Ask(Prompt{Label: ":", Hint: "a command, a screen or an action", Preview: m.commandHelp, Complete: m.completeCommand, Done: m.runCommand})
	m.prompt.help = m.optionHelp
}

// commands lists what can be given now: screens, the shell's own, the views', and every
// action whose key works here. Of two with one name the first counts.
func (m *Model) commands() []Command {
	list := slices.Concat(m.screenCommands(), m.shellCommands(), m.viewCommands(), m.actionCommands())
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(c Command) bool {
		had := seen[c.Name]
		seen[c.Name] = true
		return had || c.Mutates && m.opts.ReadOnly
	})
}

func (m *Model) screenCommands() []Command {
	var out []Command
	for _, s := range m.screens {
		out = append(out, Command{Name: s.Name, Aliases: s.Aliases, Help: cmp.Or(s.Help, "the screen "+s.Name),
			Do: func(sh Shell, _ string) tea.Cmd { sh.Open(s.Name); return nil }})
	}
	return out
}

func (m *Model) shellCommands() []Command {
	simple := func(name, help string, do func(), aliases ...string) Command {
		return Command{Name: name, Aliases: aliases, Help: help, Do: func(Shell, string) tea.Cmd { do(); return nil }}
	}
	list := []Command{
		simple("help", "the keys that work here", m.openHelp, "h"),
		simple("keys", "every key of every screen", m.openKeys),
		simple("errors", "what went wrong so far, newest first", m.openFailures, "messages"),
		{Name: "quit", Aliases: []string{"q", "q!", "exit"}, Help: "leave the console", Do: func(Shell, string) tea.Cmd { return tea.Quit }},
	}
	if m.opts.Theme != nil {
		list = append(list, Command{Name: "theme", Args: "NAME", Help: "other colours, until you quit", Complete: m.completeTheme, Do: m.chooseTheme})
	}
	return list
}

// viewCommands are those of the views, the focused one's first.
func (m *Model) viewCommands() []Command {
	var out []Command
	focused := m.focused()
	if c, ok := focused.(Commander); ok {
		out = c.Commands()
	}
	m.everyView(func(v View) {
		if c, ok := v.(Commander); ok && v != focused {
			out = append(out, c.Commands()...)
		}
	})
	return out
}

// actionCommands are the bindings that dispatch here. Screens have their commands
// already.
func (m *Model) actionCommands() []Command {
	var out []Command
	for _, b := range m.active() {
		if strings.HasPrefix(b.Action, "screen.") || b.Action == "shell.command" {
			continue
		}
		out = append(out, Command{Name: b.Action, Help: b.Help, Mutates: b.Mutates, Do: func(Shell, string) tea.Cmd { return m.do(b) }})
	}
	return out
}

// find is the command of a name or alias, else the one whose name alone begins so. near
// lists the names that come into question.
func (m *Model) find(name string) (found Command, ok bool, near []string) {
	if c, ok := m.numbered(name); ok {
		return c, true, nil
	}
	list := m.commands()
	for _, c := range list {
		if c.Name == name || slices.Contains(c.Aliases, name) {
			return c, true, nil
		}
	}
	for _, c := range list {
		if strings.HasPrefix(c.Name, name) {
			found = c
			near = append(near, c.Name)
		}
	}
	return found, len(near) == 1, near
}

// runCommand does what was typed.
func (m *Model) runCommand(line string) tea.Cmd {
	name, args := splitCommand(line)
	if name == "" {
		return nil
	}
	c, ok, near := m.find(name)
	switch {
	case ok && c.Args == "" && args != "":
		m.fail(":%s takes no argument, but %q was given", c.Name, args)
	case ok:
		return c.Do(m, args)
	case m.off(name):
		m.Note("read-only: " + name + " is off")
	case len(near) > 0:
		m.fail(":%s is not clear: %s", name, strings.Join(near[:min(len(near), 5)], ", "))
	default:
		m.fail("there is no command %q; : and tab list them", name)
	}
	return nil
}

// numbered is the command that a bare number is meant for on this screen.
func (m *Model) numbered(typed string) (Command, bool) {
	if typed == "" || strings.Trim(typed, "0123456789") != "" {
		return Command{}, false
	}
	for _, v := range m.views() {
		commander, ok := v.(Commander)
		if !ok {
			continue
		}
		for _, c := range commander.Commands() {
			if c.Number {
				do := c.Do
				c.Do = func(s Shell, args string) tea.Cmd { return do(s, strings.TrimSpace(typed+" "+args)) }
				return c, true
			}
		}
	}
	return Command{}, false
}

// off tells whether the name is that of something which a console that only reads does
// not do.
func (m *Model) off(name string) bool {
	if !m.opts.ReadOnly {
		return false
	}
	for _, b := range slices.Concat(m.focused().Bindings(), m.global) {
		if b.Mutates && b.Action == name {
			return true
		}
	}
	return slices.ContainsFunc(m.viewCommands(), func(c Command) bool { return c.Mutates && (c.Name == name || slices.Contains(c.Aliases, name)) })
}

func splitCommand(line string) (name, args string) {
	name, args, _ = strings.Cut(strings.TrimSpace(line), " ")
	return name, strings.TrimSpace(args)
}

// completeCommand lists the commands that begin with what is typed, then those that hold
// it; after a command's name, what its arguments may be.
func (m *Model) completeCommand(line string, cursor int) (int, []string) {
	typed := line[:cursor]
	name, rest, inArgs := strings.Cut(strings.TrimLeft(typed, " "), " ")
	if inArgs {
		c, ok, _ := m.find(name)
		if !ok || c.Complete == nil {
			return cursor, nil
		}
		arg := strings.TrimLeft(rest, " ")
		return cursor - len(arg), c.Complete(arg)
	}
	var begin, hold []string
	for _, c := range m.commands() {
		option := c.Name
		if c.Args != "" {
			option += " "
		}
		switch {
		case strings.HasPrefix(c.Name, name):
			begin = append(begin, option)
		case strings.Contains(c.Name, name) || slices.Contains(c.Aliases, name):
			hold = append(hold, option)
		}
	}
	return cursor - len(name), append(begin, hold...)
}

// optionHelp is the line beside a command in the list.
func (m *Model) optionHelp(option string) string {
	name := strings.TrimSpace(option)
	for _, c := range m.commands() {
		if c.Name != name {
			continue
		}
		if c.Args != "" {
			return c.Args + "  " + c.Help
		}
		return c.Help
	}
	return ""
}

// commandHelp says what the command does that is being typed.
func (m *Model) commandHelp(line string) string {
	name, _ := splitCommand(line)
	if c, ok, _ := m.find(name); ok {
		return strings.TrimSpace(c.Name+" "+c.Args) + ": " + c.Help
	}
	return ""
}

func (m *Model) completeTheme(prefix string) []string {
	var out []string
	for _, n := range append([]string{theme.Auto}, m.opts.Themes...) {
		if strings.HasPrefix(n, prefix) {
			out = append(out, n)
		}
	}
	return out
}

func (m *Model) chooseTheme(_ Shell, name string) tea.Cmd {
	if name == "" {
		m.fail(":theme needs a name: %s", strings.Join(m.completeTheme(""), ", "))
		return nil
	}
	s, err := m.opts.Theme(name, m.dark)
	if err != nil {
		m.fail("%v", err)
		return nil
	}
	m.themeName = name
	m.setStyles(s)
	m.Note("theme " + s.Theme + ` until you quit; theme = "` + name + `" in config.toml keeps it`)
	return nil
}
