// Command pictures draws the console's screens for the documentation: it runs the demo's experiment with an
// acescope binary in a new data directory, opens a console on it in a terminal of its own, walks through the
// screens, and writes what the terminal shows as SVG files, once for dark and once for light pages.
//
//	pictures BINARY DIRECTORY
//
// Without a directory it measures instead: it asks the questions of a user at three sizes and prints how long
// each answer takes.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// picture is a screen of the documentation. The console comes to it from the picture before.
type picture struct {
	name   string
	title  string
	width  int
	height int
	steps  []step
	shows  []string // texts on the finished screen
}

// step presses keys when the screen shows a text.
type step struct {
	await string
	keys  string
}

// pictures is a walk through the screens.
var pictures = []picture{
	{name: "overview", title: "Overview of the demo", width: 104, height: 40,
		shows: []string{"47 wrong", "demo-1 held-out", "today"}},
	{name: "triage", title: "Triage: why answers are wrong", width: 120, height: 32,
		steps: []step{{"", "7"}}, shows: []string{"reflector"}},
	{name: "experiments", title: "Experiment with its learning curve", width: 140, height: 30,
		steps: []step{{"", "5"}}, shows: []string{"over 50 tasks"}},
	{name: "playbook", title: "Playbook: a bullet that did harm, and its author", width: 120, height: 30,
		steps: []step{{"", "H"}, {"harmful", "b"}}, shows: []string{"Written by"}},
	{name: "runs", title: "Runs with a wrong answer", width: 120, height: 26,
		steps: []step{{"", "1"}, {"▸all", "/wrong\r"}, {"▸wrong", "zj"}}, shows: []string{"2/51"}},
	{name: "run", title: "A run and what it changed in the playbook", width: 120, height: 36,
		steps: []step{{"", "z2"}, {"Tool calls", "]]"}}, shows: []string{"because"}},
	{name: "timeline", title: "Timeline of a run", width: 120, height: 28,
		steps: []step{{"", "3"}, {"SPAN", "jjjjj"}}, shows: []string{"look_up"}},
	{name: "timemachine", title: "Time machine, where the answer became wrong", width: 120, height: 38,
		steps: []step{{"", "t"}}, shows: []string{"became wrong"}},
}

func main() {
	if len(os.Args) != 2 && len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pictures BINARY [DIRECTORY]")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// run draws the pictures into a directory, or measures without one.
func run(binary string, to []string) error {
	home, err := os.MkdirTemp("", "acescope-pictures-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	d := data{binary: binary, home: home}
	if err := d.learn(); err != nil {
		return err
	}
	if len(to) == 0 {
		return ask(d, os.Stdout)
	}
	if err := os.MkdirAll(to[0], 0o755); err != nil {
		return err
	}
	if err := drawAll(d, to[0], "dark", &dark); err != nil {
		return err
	}
	return drawAll(d, to[0], "light", &light)
}

// drawAll draws the pictures of a theme with one console.
func drawAll(d data, to, theme string, colors *palette) error {
	c, err := d.open("--theme", theme)
	if err != nil {
		return err
	}
	defer c.close()
	for _, p := range pictures {
		name := p.name + "-" + theme + ".svg"
		svg, err := c.draw(p, colors)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := write(to, name, svg); err != nil {
			return err
		}
		fmt.Println(filepath.Join(to, name))
	}
	return nil
}

// draw goes to the screen of a picture and returns it as SVG.
func (c *console) draw(p picture, colors *palette) ([]byte, error) {
	if err := c.resize(p.width, p.height); err != nil {
		return nil, err
	}
	for _, s := range p.steps {
		if err := c.await(s.await); err != nil {
			return nil, err
		}
		if err := c.press(s.keys); err != nil {
			return nil, err
		}
	}
	if err := c.await(p.shows...); err != nil {
		return nil, err
	}
	c.settle()
	c.screen.Lock()
	defer c.screen.Unlock()
	return svg(c.screen, colors, p.title), nil
}
