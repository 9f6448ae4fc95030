package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"acescope/engine/playbook"
	"acescope/tui/text"
)

func isTerminal(f *os.File) bool { return term.IsTerminal(f.Fd()) }

// safeWriter makes text that goes to a terminal harmless, line by line.
type safeWriter struct{ w io.Writer }

func (s safeWriter) Write(p []byte) (int, error) {
	lines := strings.Split(string(p), "\n")
	for i := range lines {
		lines[i] = text.Safe(lines[i], " ")
	}
	_, err := io.WriteString(s.w, strings.Join(lines, "\n"))
	return len(p), err
}

func (a *app) playbookDiff() *cobra.Command {
	return &cobra.Command{
		Use: "diff A B", Short: "Compare two playbooks; exits 4 where they differ",
		Long:    "Compare two playbooks, bullet by bullet and word by word. Exits 0 where they are the same and 4 where they differ.\n\n" + refHelp,
		Example: "acescope playbook diff finance-1@0 finance-1\nacescope playbook diff before.txt after.json --json | jq 'select(.type == \"removed\")'",
		Args:    cobra.ExactArgs(2),
		RunE:    func(_ *cobra.Command, args []string) error { return a.bookDiff(args[0], args[1]) },
	}
}

// diffLine is a bullet that one of the playbooks has alone.
type diffLine struct {
	Type   string          `json:"type"` // added, removed
	Bullet playbook.Bullet `json:"bullet"`
}

type changedLine struct {
	Type string `json:"type"` // changed
	playbook.Change
}

// diffEnd counts what differs.
type diffEnd struct {
	Type    string `json:"type"` // playbook_diff
	A       string `json:"a"`
	B       string `json:"b"`
	HashA   string `json:"hash_a"`
	HashB   string `json:"hash_b"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Changed int    `json:"changed"`
	Same    int    `json:"same"`
}

func (a *app) bookDiff(one, other string) error {
	from, _, err := a.ref(one)
	if err != nil {
		return err
	}
	to, _, err := a.ref(other)
	if err != nil {
		return err
	}
	a.tell(from, to)
	d := playbook.Diff(from.book, to.book)
	if a.json {
		err = a.diffJSON(d, from, to)
	} else {
		err = diffText(a.out, d)
	}
	if err == nil && !d.Empty() {
		err = &coded{exitDiverged, fmt.Errorf("%s and %s differ: %d added, %d removed, %d changed, %d the same", safe(from.name), safe(to.name),
			len(d.Added), len(d.Removed), len(d.Changed), d.Same)}
	}
	return err
}

func (a *app) diffJSON(d *playbook.Difference, from, to *bookRef) error {
	out := newLines(a.out)
	for _, b := range d.Removed {
		_ = out.put(diffLine{"removed", b}) // flush tells
	}
	for _, c := range d.Changed {
		_ = out.put(changedLine{"changed", c})
	}
	for _, b := range d.Added {
		_ = out.put(diffLine{"added", b})
	}
	return out.write(diffEnd{"playbook_diff", from.name, to.name, from.hash, to.hash, len(d.Added), len(d.Removed), len(d.Changed), d.Same})
}

func diffText(w io.Writer, d *playbook.Difference) error {
	for _, b := range d.Removed {
		fmt.Fprintf(w, "- [%s] %s\n", safe(b.ID), safe(b.Content))
	}
	for _, c := range d.Changed {
		var what []string
		if c.From != "" {
			what = append(what, "was "+c.From)
		}
		if c.Moved {
			what = append(what, "moved from "+c.Before.Section+" to "+c.After.Section)
		}
		if c.Counts {
			what = append(what, fmt.Sprintf("helpful %d→%d harmful %d→%d neutral %d→%d", c.Before.Helpful, c.After.Helpful,
				c.Before.Harmful, c.After.Harmful, c.Before.Neutral, c.After.Neutral))
		}
		fmt.Fprintf(w, "~ [%s] %s", safe(c.ID), safe(strings.Join(what, ", ")))
		if c.Content {
			fmt.Fprintf(w, "\n    %s", wordDiff(c.Words))
		}
		fmt.Fprintln(w)
	}
	for _, b := range d.Added {
		fmt.Fprintf(w, "+ [%s] %s\n", safe(b.ID), safe(b.Content))
	}
	_, err := fmt.Fprintf(w, "%d added, %d removed, %d changed, %d the same\n", len(d.Added), len(d.Removed), len(d.Changed), d.Same)
	return err
}

// wordDiff is a text with what was taken out and put in between marks.
func wordDiff(list []playbook.Hunk) string {
	var b strings.Builder
	for _, h := range list {
		switch h.Kind {
		case playbook.HunkAdded:
			b.WriteString("{+" + safe(h.Text) + "+}")
		case playbook.HunkRemoved:
			b.WriteString("[-" + safe(h.Text) + "-]")
		default:
			b.WriteString(safe(h.Text))
		}
	}
	return b.String()
}
