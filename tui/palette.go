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
	past  func() []string   // lines that were sent before, oldest first
	helps map[string]string // of the options that were listed last
}

// paletteLabel is the label of the prompt for commands.
const paletteLabel = ":"

// prompt returns the prompt for commands. run gets the typed line.
func (p *palette) prompt(run func(line string) tea.Cmd) Prompt {
	return Prompt{Label: paletteLabel, Hint: "a command, a screen or an action", Preview: p.preview,
		Check: p.check, Complete: p.complete, Done: run, optionHelp: p.optionHelp}
}

// all lists what can be run now: screens, the shell's commands, the views' commands, the focused view's
// first, and every action whose key works here. Of two commands with the same name, the first one wins.
func (p *palette) all() []Command {
	var list []Command
	for _, s := range p.panes.screens {
		list = append(list, p.opener(s))
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

// opener returns the command that opens a screen.
func (p *palette) opener(s Screen) Command {
	c := Command{Name: s.Name, Aliases: s.Aliases, Help: cmp.Or(s.Help, "the screen "+s.Name)}
	a := s.Argument
	if a == nil {
		c.Do = func(Shell, string) tea.Cmd { p.panes.jump(s.Name); return nil }
		return c
	}
	c.Args, c.Candidates, c.Complete = a.Name, a.Candidates, a.Complete
	c.Help += "; " + a.Help
	c.Check = func(args string) error {
		if args == "" || a.Check == nil {
			return nil
		}
		return a.Check(args)
	}
	c.Do = func(sh Shell, args string) tea.Cmd {
		if args == "" {
			p.panes.jump(s.Name)
			return nil
		}
		return a.Do(sh, args)
	}
	return c
}

// commands lists what read-only mode allows.
func (p *palette) commands() []Command {
	return slices.DeleteFunc(p.all(), p.disabled)
}

func (p *palette) disabled(c Command) bool { return c.Mutates && p.keys.readOnly }
func (p *palette) enabled(c Command) bool  { return !p.disabled(c) }

// find returns the command with a name or alias, or the only command whose name has that
// prefix. near lists the names with the prefix.
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

// of returns the command with a fixed first argument.
func (c Command) of(first string) Command {
	whole := func(args string) string { return strings.TrimSpace(first + " " + args) }
	check, do := c.Check, c.Do
	if check != nil {
		c.Check = func(args string) error { return check(whole(args)) }
	}
	c.Do = func(s Shell, args string) tea.Cmd { return do(s, whole(args)) }
	return c
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
				return c.of(typed), true
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
	case ok && c.Check != nil:
		return c.Check(args)
	case ok:
		return nil
	case slices.ContainsFunc(slices.DeleteFunc(p.all(), p.enabled), named(name)):
		return errors.New(readOnlyNote(":" + name))
	case len(near) > 0:
		return fmt.Errorf(":%s is ambiguous: %s", name, strings.Join(near[:min(len(near), 5)], ", "))
	}
	if best := ranked(p.names(name), name, p.recent("")); len(best) > 0 {
		return fmt.Errorf("command %q not found; tab completes it to %s", name,
			strings.TrimSpace(best[0].Value))
	}
	return fmt.Errorf("command %q not found; delete it to see all", name)
}

func readOnlyNote(action string) string { return "read-only mode disables " + action }

func splitCommand(line string) (name, args string) {
	name, args, _ = strings.Cut(strings.TrimSpace(line), " ")
	return name, strings.TrimSpace(args)
}

// complete lists the commands that fit the typed text, the best first. After the name of a command, it lists
// its arguments.
func (p *palette) complete(line string, cursor int) (int, []string) {
	name, rest, inArgs := strings.Cut(strings.TrimLeft(line[:cursor], " "), " ")
	if !inArgs {
		return cursor - len(name), p.options(ranked(p.names(name), name, p.recent("")))
	}
	c, ok, _ := p.find(name)
	arg := strings.TrimLeft(rest, " ")
	switch {
	case ok && c.Candidates != nil && (c.Complete == nil || !strings.Contains(arg, " ")):
		word := arg[strings.LastIndex(arg, " ")+1:]
		return cursor - len(word), p.options(ranked(c.Candidates(), word, p.recent(c.Name)))
	case ok && c.Complete != nil:
		p.helps = nil
		return cursor - len(arg), c.Complete(arg)
	}
	return cursor, nil
}

// names lists the commands as candidates. A command that has the typed alias comes first.
func (p *palette) names(typed string) (list []Candidate) {
	for _, c := range p.commands() {
		name := Candidate{c.Name, strings.TrimLeft(c.Args+"  "+c.Help, " ")}
		if slices.Contains(c.Aliases, typed) {
			name.Value = typed
		}
		if c.Args != "" {
			name.Value += " "
		}
		list = append(list, name)
	}
	return list
}

// options returns the values of candidates and keeps their help texts.
func (p *palette) options(list []Candidate) []string {
	p.helps = make(map[string]string, len(list))
	var out []string
	for _, c := range list[:min(len(list), maxOptions)] {
		out = append(out, c.Value)
		p.helps[c.Value] = c.Help
	}
	return out
}

// maxOptions bounds how many completions are listed.
const maxOptions = 200

// recent returns how many lines ago a word was used, 1 for the newest line, 0 if never. The word is the
// name of a command, or with a command an argument of it.
func (p *palette) recent(name string) func(word string) int {
	ago := map[string]int{}
	past := p.past()
	for i, line := range past {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case name == "":
			ago[words[0]] = len(past) - i
		case words[0] == name:
			for _, w := range words[1:] {
				ago[w] = len(past) - i
			}
		}
	}
	return func(word string) int { return ago[word] }
}

func (p *palette) optionHelp(option string) string { return p.helps[option] }

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

func (t *themes) candidates() []Candidate {
	list := []Candidate{{theme.Auto, "dark or light, as the terminal's background"}}
	for _, name := range t.names {
		list = append(list, Candidate{Value: name})
	}
	return list
}

func (t *themes) check(name string) error {
	if name == "" {
		return fmt.Errorf(":theme needs a name: %s", strings.Join(append([]string{theme.Auto}, t.names...),
			", "))
	}
	_, err := t.load(name, t.dark)
	return err
}

func (t *themes) choose(name string) (theme.Styles, error) {
	s, err := t.load(name, t.dark)
	if err == nil {
		t.name = name
	}
	return s, err
}
