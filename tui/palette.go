package tui

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/theme"
)

// palette finds and runs the commands that can be typed after ":".
type palette struct {
	panes *panes
	keys  *keymap
	shell []Command // the shell's own
	do    func(Binding) tea.Cmd
}

// all lists what can be run now: screens, the shell's commands, the views' commands, the focused view's first, and
// every action whose key works here. Of two with the same name the first counts.
func (p *palette) all() []Command {
	var list []Command
	for _, s := range p.panes.screens {
		list = append(list, Command{Name: s.Name, Aliases: s.Aliases, Help: cmp.Or(s.Help, "the screen "+s.Name),
			Do: func(Shell, string) tea.Cmd { p.panes.jump(s.Name); return nil }})
	}
	list = append(list, p.shell...)
	focused := p.panes.focused()
	for _, v := range append([]View{focused}, p.panes.all...) {
		if c, ok := v.(Commander); ok {
			list = append(list, c.Commands()...)
		}
	}
	for _, b := range p.keys.bindings(focused.Bindings()) {
		if strings.HasPrefix(b.Action, "screen.") || b.Action == "shell.command" {
			continue
		}
		list = append(list, Command{Name: b.Action, Help: b.Help, Mutates: b.Mutates,
			Do: func(Shell, string) tea.Cmd { return p.do(b) }})
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(c Command) bool {
		dup := seen[c.Name]
		seen[c.Name] = true
		return dup
	})
}

// commands lists what read-only mode allows.
func (p *palette) commands() []Command {
	return slices.DeleteFunc(p.all(), p.disabled)
}

func (p *palette) disabled(c Command) bool { return c.Mutates && p.keys.readOnly }
func (p *palette) enabled(c Command) bool  { return !p.disabled(c) }

// find returns the command with a name or alias, or the only one whose name has that prefix.
// near lists the names with the prefix.
func (p *palette) find(name string) (found Command, ok bool, near []string) {
	if c, ok := p.numbered(name); ok {
		return c, true, nil
	}
	list := p.commands()
	if i := slices.IndexFunc(list, named(name)); i >= 0 {
		return list[i], true, nil
	}
	for _, c := range list {
		if strings.HasPrefix(c.Name, name) {
			found = c
			near = append(near, c.Name)
		}
	}
	return found, len(near) == 1, near
}

func named(name string) func(Command) bool {
	return func(c Command) bool { return c.Name == name || slices.Contains(c.Aliases, name) }
}

// numbered returns the command that a bare number means on the current screen.
func (p *palette) numbered(typed string) (Command, bool) {
	if typed == "" || strings.Trim(typed, "0123456789") != "" {
		return Command{}, false
	}
	for _, v := range p.panes.views() {
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

// run runs a typed line.
func (p *palette) run(sh Shell, line string) (tea.Cmd, error) {
	if err := p.check(line); err != nil {
		return nil, err
	}
	name, args := splitCommand(line)
	if c, ok, _ := p.find(name); ok {
		return c.Do(sh, args), nil
	}
	return nil, nil // an empty line
}

// check returns why a typed line cannot be run.
func (p *palette) check(line string) error {
	name, args := splitCommand(line)
	if name == "" {
		return nil
	}
	c, ok, near := p.find(name)
	switch {
	case ok && c.Args == "" && args != "":
		return fmt.Errorf(":%s takes no argument; got %q", c.Name, args)
	case ok:
		return nil
	case slices.ContainsFunc(slices.DeleteFunc(p.all(), p.enabled), named(name)):
		return errors.New(readOnlyNote(name))
	case len(near) > 0:
		return fmt.Errorf(":%s is ambiguous: %s", name, strings.Join(near[:min(len(near), 5)], ", "))
	}
	return fmt.Errorf("command %q not found; tab lists all", name)
}

func readOnlyNote(action string) string { return "read-only mode: " + action + " is disabled" }

func splitCommand(line string) (name, args string) {
	name, args, _ = strings.Cut(strings.TrimSpace(line), " ")
	return name, strings.TrimSpace(args)
}

// complete lists the commands that begin with the typed text, then those that contain it;
// after a command's name, its arguments.
func (p *palette) complete(line string, cursor int) (int, []string) {
	name, rest, inArgs := strings.Cut(strings.TrimLeft(line[:cursor], " "), " ")
	if inArgs {
		c, ok, _ := p.find(name)
		if !ok || c.Complete == nil {
			return cursor, nil
		}
		arg := strings.TrimLeft(rest, " ")
		return cursor - len(arg), c.Complete(arg)
	}
	var begin, contain []string
	for _, c := range p.commands() {
		option := c.Name
		if c.Args != "" {
			option += " "
		}
		switch {
		case strings.HasPrefix(c.Name, name):
			begin = append(begin, option)
		case strings.Contains(c.Name, name) || slices.Contains(c.Aliases, name):
			contain = append(contain, option)
		}
	}
	return cursor - len(name), append(begin, contain...)
}

// optionHelp returns the help beside a command in the list.
func (p *palette) optionHelp(option string) string {
	list := p.commands()
	i := slices.IndexFunc(list, func(c Command) bool { return c.Name == strings.TrimSpace(option) })
	if i < 0 {
		return ""
	}
	return strings.TrimLeft(list[i].Args+"  "+list[i].Help, " ")
}

// preview explains the command that is being typed.
func (p *palette) preview(line string) string {
	name, _ := splitCommand(line)
	if c, ok, _ := p.find(name); ok {
		return strings.TrimSpace(c.Name+" "+c.Args) + ": " + c.Help
	}
	return ""
}

// themes chooses the console's theme.
type themes struct {
	load  func(name string, dark bool) (theme.Styles, error) // nil if the theme is fixed
	names []string
	name  string // the current one
	dark  bool   // the terminal's background, as far as known
}

func (t *themes) complete(prefix string) []string {
	list := append([]string{theme.Auto}, t.names...)
	return slices.DeleteFunc(list, func(n string) bool { return !strings.HasPrefix(n, prefix) })
}

func (t *themes) choose(name string) (theme.Styles, error) {
	if name == "" {
		return theme.Styles{}, fmt.Errorf(":theme needs a name: %s", strings.Join(t.complete(""), ", "))
	}
	s, err := t.load(name, t.dark)
	if err == nil {
		t.name = name
	}
	return s, err
}
