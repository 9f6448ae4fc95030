package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// question is what a user asks, the keys that lead from the overview to the answer, and the answer on the
// screen.
type question struct {
	ask  string
	keys []string
	says []string
}

// forked is the run that answers what would have happened otherwise.
const forked = "demo-1-e1-0116"

var questions = []question{
	{"What is it doing?", nil, []string{"demo-1", "120/120"}},
	{"Why did it decide that?", []string{"]", "t"}, []string{"bullets used", "Guess"}},
	{"What did it learn?", nil, []string{"v120", "67 bullets"}},
	{"Did that help, and how sure are we?", nil, []string{"5.0→88.3% (78–94)"}},
	{"What would have happened otherwise?", []string{"]", "t", "T"}, []string{"~f1", "better"}},
	{"Why does it fail?", nil, []string{"47 wrong", "no recipe was known for the formula"}},
	{"When did it go wrong?", []string{"]", "t"}, []string{"became wrong here"}},
	{"What did the night cost?", []string{"$"}, []string{"today $0", "122"}},
	{"Which bullet hurts?", nil, []string{"harmful", "calc-00016 +1 -2"}},
}

// sizes are those of the terminals in which the questions are asked.
var sizes = [][2]int{{80, 24}, {120, 40}, {200, 50}}

// rounds is the number of times that a question is asked; the median counts.
const rounds = 5

// ask prints for each question the keys and the time from the last of them to the answer, at each size.
// Without keys it is the time from H on another screen.
func ask(d data, out io.Writer) error {
	if err := d.run("fork", forked, "--phase", "generator", "--playbook", "demo-1", "--branch", "", "--yes",
		"--follow"); err != nil {
		return err
	}
	c, err := d.open()
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.await("harmful"); err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "QUESTION\tKEYS")
	for _, s := range sizes {
		fmt.Fprintf(table, "\t%d×%d", s[0], s[1])
	}
	fmt.Fprintln(table)
	for _, q := range questions {
		fmt.Fprintf(table, "%s\t%s", q.ask, cmp.Or(strings.Join(q.keys, " "), "none"))
		for _, s := range sizes {
			if err := c.resize(s[0], s[1]); err != nil {
				return err
			}
			took, err := c.median(q)
			if err != nil {
				return fmt.Errorf("%d×%d: %s: %w", s[0], s[1], q.ask, err)
			}
			fmt.Fprintf(table, "\t%d ms", took.Milliseconds())
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// median returns the median time of a question.
func (c *console) median(q question) (time.Duration, error) {
	var all []time.Duration
	for range rounds {
		took, err := c.answer(q)
		if err != nil {
			return 0, err
		}
		all = append(all, took)
	}
	slices.Sort(all)
	return all[rounds/2], nil
}

// answer presses the keys of a question on the overview and returns the time from the last one to the answer.
func (c *console) answer(q question) (time.Duration, error) {
	if err := c.leave(); err != nil {
		return 0, err
	}
	keys := append([]string{"H"}, q.keys...)
	for _, k := range keys[:len(keys)-1] {
		if err := c.press(k); err != nil {
			return 0, err
		}
		c.settle()
		if k == "H" { // the overview remembers its row
			if err := c.press("g"); err != nil {
				return 0, err
			}
			c.settle()
		}
	}
	if missing(c.screen.String(), q.says) == "" {
		return 0, fmt.Errorf("the answer is on the screen before the last key:\n%s", c.screen.String())
	}
	began := time.Now()
	if err := c.press(keys[len(keys)-1]); err != nil {
		return 0, err
	}
	err := c.await(q.says...)
	return time.Since(began), err
}

// leave goes to a screen that answers no question.
func (c *console) leave() error {
	if err := c.press("8"); err != nil {
		return err
	}
	if err := c.await("▸8"); err != nil {
		return err
	}
	c.settle()
	return nil
}
