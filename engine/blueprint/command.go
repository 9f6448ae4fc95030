package blueprint

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/kballard/go-shellquote"

	"acescope/engine/run"
)

// command splits a command by the rules of the shell, once and for all, unless a shell is
// asked for.
func (d *document) command(f fields, n *node, b *run.Blueprint) {
	text := f.text("command")
	if text == "" {
		return
	}
	argv, err := shellquote.Split(text)
	switch {
	case err != nil:
		f.wrong(n, "command", "%s", unclosed(text))
		return
	case len(argv) == 0 || strings.TrimSpace(argv[0]) == "":
		f.wrong(n, "command", "names no program")
		return
	case b.Strategy != run.File && strings.Contains(text, FilePlaceholder):
		f.wrong(n, "command", `%s needs "parameter_strategy": "file"`, FilePlaceholder)
		return
	}
	if b.Shell {
		for _, p := range []string{DirPlaceholder, FilePlaceholder} {
			if strings.Contains(text, p) {
				f.wrong(n, "command", "a shell would read the path that takes the place of %s as a part of the command: leave out shell, or use %s", p, CommandFile)
			}
		}
		b.Command = text
		return
	}
	b.Argv = argv
	for i, word := range argv[1:] {
		if forShell(word) && !(i > 0 && argv[i] == "-c") {
			d.note(n.at, below(f.path, "command"), `%s is given to the program as it is, since no shell reads the command; "shell": true lets one`, quoted(word))
			return
		}
	}
}

// forShell tells whether a word means something to a shell, and so was likely meant for one.
func forShell(word string) bool {
	if slices.Contains([]string{"|", "||", "&", "&&", ";", ">", ">>", "<", "<<", "2>&1", "2>"}, word) {
		return true
	}
	return strings.HasPrefix(word, "$") && len(word) > 1 || strings.Contains(word, "$(") || strings.HasPrefix(word, "`")
}

// unclosed says what is open at the end of a command that cannot be split, and where it
// began.
func unclosed(text string) string {
	open, at, count := rune(0), 0, 0
	escaped := false
	for _, r := range text {
		count++
		switch {
		case escaped:
			escaped = false
		case r == '\\' && open != '\'':
			escaped = true
		case open == 0 && (r == '\'' || r == '"'):
			open, at = r, count
		case r == open:
			open = 0
		}
	}
	if open != 0 {
		return "the " + string(open) + " at character " + strconv.Itoa(at) + " is never closed"
	}
	return "it ends with a \\ that escapes nothing"
}

// script reads agent.command.sh.
func (d *document) script() string {
	switch at := bytes.IndexByte(d.data, 0); {
	case len(bytes.TrimSpace(d.data)) == 0:
		d.problem(-1, "", "is empty")
	case at >= 0:
		d.problem(at, "", "holds a NUL: it must be a script")
	case invalidAt(d.data) >= 0:
		d.problem(invalidAt(d.data), "", "is not UTF-8")
	case bytes.Contains(d.data, []byte("\r\n")):
		d.problem(bytes.Index(d.data, []byte("\r\n")), "", "has the line ends of Windows, which a shell takes for a part of the command")
	}
	return string(d.data)
}
