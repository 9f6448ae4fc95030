//go:build unix

package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
)

// terminal is a command in its own terminal. Tests press keys and read the screen.
type terminal struct {
	t      *testing.T
	screen vt10x.Terminal
	file   *os.File
	ended  chan error

	drained chan struct{} // closed when all output is read

	mu    sync.Mutex
	bytes []byte // everything the command wrote, for what the screen does not show
}

// recorder appends to the bytes of a terminal.
type recorder struct{ *terminal }

func (r recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes = append(r.bytes, p...)
	return len(p), nil
}

// openTerminal starts acescope with a new home directory.
func openTerminal(t *testing.T, dir string, width, height int, args ...string) *terminal {
	t.Helper()
	return openTerminalAt(t, t.TempDir(), dir, width, height, args...)
}

// openTerminalAt starts acescope with a home directory, in which a later console finds the state of this one.
func openTerminalAt(t *testing.T, home, dir string, width, height int, args ...string) *terminal {
	t.Helper()
	return inTerminal(t, home, width, height, exec.Command("acescope", append(args, "--data-dir", dir)...))
}

// inTerminal starts a command in its own terminal, with the environment of the tests before that of the
// command.
func inTerminal(t *testing.T, home string, width, height int, cmd *exec.Cmd) *terminal {
	t.Helper()
	cmd.Env = slices.Concat(os.Environ(), []string{"TERM=xterm-256color", "LC_ALL=C.UTF-8", "NO_COLOR=",
		"HOME=" + home,
		"XDG_CONFIG_HOME=" + home + "/config", "XDG_STATE_HOME=" + home + "/state"}, cmd.Env)
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)})
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, file: file, ended: make(chan error, 1), drained: make(chan struct{}),
		screen: vt10x.New(vt10x.WithSize(width, height), vt10x.WithWriter(file))}
	go func() {
		defer close(term.drained)
		// Parse waits for the rest of a character that is divided between two reads, Write loses it.
		in := bufio.NewReaderSize(io.TeeReader(file, recorder{term}), 1<<16)
		for term.screen.Parse(in) == nil {
		}
	}()
	go func() { term.ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = file.Close()
		<-term.drained
	})
	return term
}

// await waits until the screen shows all texts at the same time.
func (t *terminal) await(texts ...string) {
	t.t.Helper()
	t.until("shows "+strings.Join(texts, " and "), func(screen string) bool {
		for _, want := range texts {
			if !strings.Contains(screen, want) {
				return false
			}
		}
		return true
	})
}

// gone waits until the screen no longer shows the text.
func (t *terminal) gone(text string) {
	t.t.Helper()
	t.until("no longer shows "+text, func(screen string) bool { return !strings.Contains(screen, text) })
}

func (t *terminal) until(what string, ok func(screen string) bool) {
	t.t.Helper()
	deadline := time.After(time.Minute)
	for !ok(t.screen.String()) {
		select {
		case <-deadline:
			t.t.Fatalf("no screen within a minute %s:\n%s", what, t.screen.String())
		case err := <-t.ended:
			t.ended <- err
			t.t.Fatalf("the console ended (%v) before it %s:\n%s", err, what, t.screen.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Keys as a terminal sends them.
const (
	keyEnter = "\r"
	keyEsc   = "\x1b"
	keyTab   = "\t"
	keyEmpty = "\x15" // ctrl+u clears the input line
)

// back presses esc and waits for the texts, since a key directly after esc would be read as alt and that key.
func (t *terminal) back(texts ...string) {
	t.t.Helper()
	t.press(keyEsc)
	t.await(texts...)
}

// wrote waits until the command has written a byte sequence.
func (t *terminal) wrote(what, seq string) {
	t.t.Helper()
	t.until("wrote "+what, func(string) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return bytes.Contains(t.bytes, []byte(seq))
	})
}

func (t *terminal) press(keys string) {
	t.t.Helper()
	if _, err := t.file.WriteString(keys); err != nil {
		t.t.Fatal(err)
	}
}

func (t *terminal) resize(width, height int) {
	t.t.Helper()
	t.screen.Resize(width, height)
	if err := pty.Setsize(t.file, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)}); err != nil {
		t.t.Fatal(err)
	}
}

// quits waits until the console has exited without an error.
func (t *terminal) quits() {
	t.t.Helper()
	select {
	case err := <-t.ended:
		t.ended <- err
		if err != nil {
			t.t.Errorf("the console exited with %v", err)
		}
	case <-time.After(time.Minute):
		t.t.Fatalf("the console did not quit:\n%s", t.screen.String())
	}
}

// untilLine waits for a line with all texts.
func (t *terminal) untilLine(texts ...string) {
	t.t.Helper()
	t.until("has a line with "+strings.Join(texts, " and "), func(screen string) bool {
		for line := range strings.Lines(screen) {
			all := true
			for _, want := range texts {
				all = all && strings.Contains(line, want)
			}
			if all {
				return true
			}
		}
		return false
	})
}

// column returns the column of a text on the screen, or -1.
func (t *terminal) column(text string) int {
	for line := range strings.Lines(t.screen.String()) {
		if before, _, ok := strings.Cut(line, text); ok {
			return utf8.RuneCountInString(before)
		}
	}
	return -1
}

// restored checks that the program restored the modes of the terminal.
func (t *terminal) restored() {
	t.t.Helper()
	<-t.drained
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, mode := range []string{"1049", "25", "2004", "1000", "1002", "1003", "1006"} {
		on, off := bytes.LastIndex(t.bytes, []byte("\x1b[?"+mode+"h")),
			bytes.LastIndex(t.bytes, []byte("\x1b[?"+mode+"l"))
		if visible := mode == "25"; visible && on < off || !visible && on > off {
			t.t.Errorf("mode %s is not restored", mode)
		}
	}
	if !t.screen.CursorVisible() {
		t.t.Error("the cursor is hidden")
	}
}
