// Command pictures draws the console's screens for the documentation: it runs the demo's experiment with an acescope
// binary in a new data directory, opens the console on it in a terminal of its own, presses keys, and writes what the
// terminal shows as SVG files, for dark and for light pages.
//
//	pictures BINARY DIRECTORY
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

// picture is a screen of the documentation. Keys are pressed one after the other, each when the screen shows the text
// that it waits for.
type picture struct {
	name   string
	title  string
	width  int
	height int
	keys   []key
	shows  string // text on the finished screen
}

type key struct {
	await string
	press string
}

// Texts that a screen shows when it is ready for the next key.
const (
	overview  = "held-out"
	selection = "Playbook Δ" // beside the list of runs
)

// wrong lists the wrong answers and selects the newest.
var wrong = []key{{overview, "1"}, {"▸all", "/wrong\r"}, {"▸wrong", "j"}}

var pictures = []picture{
	{name: "overview", title: "Overview of the demo", width: 110, height: 36, shows: overview},
	{name: "runs", title: "Runs with a wrong answer", width: 150, height: 32, keys: wrong, shows: selection},
	{name: "run", title: "A run: phases, tool calls and what it learned", width: 130, height: 40,
		keys: append(wrong[:3:3], key{selection, "2"}), shows: "Tool calls"},
	{name: "timeline", title: "Timeline of a run", width: 130, height: 32,
		keys: append(wrong[:3:3], key{selection, "3"}), shows: "persist"},
	{name: "timemachine", title: "Time machine, where the answer became wrong", width: 130, height: 40,
		keys: append(wrong[:3:3], key{selection, "t"}), shows: "became wrong"},
	{name: "playbook", title: "Playbook with its versions", width: 130, height: 36,
		keys: []key{{overview, "4"}}, shows: "bullets"},
	{name: "experiments", title: "Experiment with its learning curve", width: 130, height: 36,
		keys: []key{{overview, "5"}}, shows: "accuracy"},
	{name: "triage", title: "Triage: why answers are wrong", width: 130, height: 36,
		keys: []key{{overview, "7"}}, shows: "Failures"},
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pictures BINARY DIRECTORY")
		os.Exit(2)
	}
	if err := drawAll(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func drawAll(binary, to string) error {
	home, err := os.MkdirTemp("", "acescope-pictures-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	c := console{binary: binary, home: home}
	if err := c.learn(); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for theme, colors := range map[string]*palette{"dark": &dark, "light": &light} {
		for _, p := range pictures {
			name := p.name + "-" + theme + ".svg"
			data, err := c.draw(p, theme, colors)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if err := write(to, name, data); err != nil {
				return err
			}
			fmt.Println(filepath.Join(to, name))
		}
	}
	return nil
}

// console starts consoles on the data of one demo.
type console struct {
	binary string
	home   string
}

// learn runs the experiment of the demo, without pauses.
func (c console) learn() error {
	out, err := c.command("run", "--dataset", "problems:120:1", "--eval", "problems:60:2", "--experiment", "demo-1").
		CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// command returns a command on the data directory, with a home directory of its own.
func (c console) command(args ...string) *exec.Cmd {
	cmd := exec.Command(c.binary, append(args, "--data-dir", filepath.Join(c.home, "data"))...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "COLORTERM=truecolor", "LC_ALL=C.UTF-8", "NO_COLOR=",
		"HOME="+c.home, "XDG_CONFIG_HOME="+c.home+"/config", "XDG_STATE_HOME="+c.home+"/state")
	return cmd
}

// draw opens the console, presses the keys of a picture and returns it.
func (c console) draw(p picture, theme string, colors *palette) ([]byte, error) {
	if err := os.RemoveAll(filepath.Join(c.home, "state")); err != nil { // it remembers the last screen
		return nil, err
	}
	s, err := c.open(p.width, p.height, "--theme", theme)
	if err != nil {
		return nil, err
	}
	defer s.close()
	for _, k := range p.keys {
		if err := s.await(k.await); err != nil {
			return nil, err
		}
		if _, err := s.file.WriteString(k.press); err != nil {
			return nil, err
		}
	}
	if err := s.await(p.shows); err != nil {
		return nil, err
	}
	s.settle()
	s.screen.Lock()
	defer s.screen.Unlock()
	return svg(s.screen, colors, p.title), nil
}

// session is a console in its own terminal.
type session struct {
	cmd    *exec.Cmd
	file   *os.File
	screen vt10x.Terminal
	read   chan struct{} // closed when all output is read
}

func (c console) open(width, height int, args ...string) (*session, error) {
	cmd := c.command(args...)
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)})
	if err != nil {
		return nil, err
	}
	s := &session{cmd: cmd, file: file, read: make(chan struct{}),
		screen: vt10x.New(vt10x.WithSize(width, height), vt10x.WithWriter(file))}
	go func() {
		defer close(s.read)
		in := bufio.NewReaderSize(file, 1<<16)
		for s.screen.Parse(in) == nil {
		}
	}()
	return s, nil
}

// close ends the console and waits for its end, so that the next one finds its server stopped.
func (s *session) close() {
	_ = s.cmd.Process.Signal(os.Interrupt)
	<-s.read
	_ = s.cmd.Wait()
	_ = s.file.Close()
}

// patience is how long a screen may take to appear.
const patience = time.Minute

func (s *session) await(text string) error {
	for deadline := time.Now().Add(patience); !strings.Contains(s.screen.String(), text); {
		select {
		case <-s.read:
			return errors.New("the console ended:\n" + s.screen.String())
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no %q on the screen within %v:\n%s", text, patience, s.screen.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// settle waits until the screen has not changed for a second.
func (s *session) settle() {
	last := ""
	for still := 0; still < 10; still++ {
		if now := s.screen.String(); now != last {
			last = now
			still = 0
		}
		time.Sleep(100 * time.Millisecond)
	}
}
