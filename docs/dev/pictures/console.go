package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
)

// data is a data directory, with a home directory beside it.
type data struct {
	binary string
	home   string
}

// learn runs the experiment of the demo, without pauses.
func (d data) learn() error {
	return d.run("run", "--dataset", "problems:120:1", "--eval", "problems:60:2", "--experiment", "demo-1")
}

func (d data) run(args ...string) error {
	out, err := d.command(args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("acescope %s: %w: %s", args[0], err, out)
	}
	return nil
}

func (d data) command(args ...string) *exec.Cmd {
	cmd := exec.Command(d.binary, append(args, "--data-dir", filepath.Join(d.home, "data"))...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "COLORTERM=truecolor", "LC_ALL=C.UTF-8",
		"NO_COLOR=", "TMUX=",
		"HOME="+d.home, "XDG_CONFIG_HOME="+d.home+"/config", "XDG_STATE_HOME="+d.home+"/state")
	return cmd
}

// console is a console in its own terminal.
type console struct {
	cmd    *exec.Cmd
	file   *os.File
	screen vt10x.Terminal
	read   chan struct{} // closed when all output is read
}

// open starts a console that does not know what earlier consoles showed.
func (d data) open(args ...string) (*console, error) {
	if err := os.RemoveAll(filepath.Join(d.home, "state")); err != nil {
		return nil, err
	}
	const width, height = 120, 40
	cmd := d.command(args...)
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: width, Rows: height})
	if err != nil {
		return nil, err
	}
	c := &console{cmd: cmd, file: file, read: make(chan struct{}),
		screen: vt10x.New(vt10x.WithSize(width, height), vt10x.WithWriter(file))}
	go func() {
		defer close(c.read)
		in := bufio.NewReaderSize(file, 1<<16)
		for c.screen.Parse(in) == nil {
		}
	}()
	return c, nil
}

// close ends the console and waits for its end, so that the next one finds its server stopped.
func (c *console) close() {
	_ = c.cmd.Process.Signal(os.Interrupt)
	<-c.read
	_ = c.cmd.Wait()
	_ = c.file.Close()
}

func (c *console) resize(width, height int) error {
	c.screen.Resize(width, height)
	return pty.Setsize(c.file, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)})
}

func (c *console) press(keys string) error {
	_, err := c.file.WriteString(keys)
	return err
}

// patience is how long a screen may take to appear, poll the time between two looks at it, and quiet how long
// a finished screen does not change.
const (
	patience = 20 * time.Second
	poll     = time.Millisecond
	quiet    = 400 * time.Millisecond
)

// await waits until the screen shows all texts.
func (c *console) await(texts ...string) error {
	deadline := time.Now().Add(patience)
	for {
		screen := c.screen.String()
		missing := missing(screen, texts)
		if missing == "" {
			return nil
		}
		select {
		case <-c.read:
			return errors.New("the console ended:\n" + screen)
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no %q on the screen within %v:\n%s", missing, patience, screen)
		}
		time.Sleep(poll)
	}
}

// missing returns the first text that the screen does not show, or "".
func missing(screen string, texts []string) string {
	for _, text := range texts {
		if !strings.Contains(screen, text) {
			return text
		}
	}
	return ""
}

// settle waits until the screen has not changed for a while.
func (c *console) settle() {
	last, since := "", time.Now()
	for time.Since(since) < quiet {
		if now := c.screen.String(); now != last {
			last, since = now, time.Now()
		}
		time.Sleep(10 * poll)
	}
}
