package tui

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"

	tea "charm.land/bubbletea/v2"
	"github.com/kballard/go-shellquote"
)

// execMsg runs a program in the terminal of the console, which is hidden meanwhile.
type execMsg struct {
	command *exec.Cmd
	done    func(error) tea.Msg
}

// Exec returns the message by which a command runs a program in the console's terminal. done gets its error.
func Exec(command *exec.Cmd, done func(error) tea.Msg) tea.Msg { return execMsg{command, done} }

// edit opens a text in $VISUAL or $EDITOR, else in vi. done gets the text as it was saved.
func edit(value string, done func(string, error) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		command, path, err := editorOf(value)
		if err != nil {
			return done("", err)
		}
		return Exec(command, func(err error) tea.Msg {
			defer os.Remove(path)
			if err != nil {
				return done("", fmt.Errorf("editor %s: %w", command.Path, err))
			}
			saved, err := os.ReadFile(path)
			return done(string(saved), err)
		})
	}
}

// editorOf writes a text to a temporary file and returns the command that opens the file in the editor.
func editorOf(value string) (command *exec.Cmd, path string, err error) {
	words, err := shellquote.Split(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi"))
	if err != nil || len(words) == 0 {
		return nil, "", fmt.Errorf("$EDITOR is not a command: %v", err)
	}
	f, err := os.CreateTemp("", "acescope-*.md")
	if err != nil {
		return nil, "", err
	}
	_, err = f.WriteString(value)
	if err = cmp.Or(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return nil, "", err
	}
	return exec.Command(words[0], append(words[1:], f.Name())...), f.Name(), nil
}
