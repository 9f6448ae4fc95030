package learning

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/learning/playbook"
)

func playbookDiff(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "diff A B", Short: "Compare two playbooks; exits 4 where they differ",
		Long:    "Compare two playbooks, bullet by bullet and word by word. Exits 0 where they are the same and 4 where they differ.\n\n" + refHelp,
		Example: "acescope playbook diff finance-1@0 finance-1\nacescope playbook diff before.txt after.json --json | jq 'select(.type == \"removed\")'",
		Args:    cobra.ExactArgs(2),
		RunE:    func(_ *cobra.Command, args []string) error { return BookDiff(a, args[0], args[1]) },
	}
}

// DiffLine is a bullet that one of the playbooks has alone.
type DiffLine struct {
	Type   string          `json:"type"` // added, removed
	Bullet playbook.Bullet `json:"bullet"`
}

type ChangedLine struct {
	Type string `json:"type"` // changed
	playbook.Change
}

// DiffEnd counts what differs.
type DiffEnd struct {
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

func BookDiff(a *cli.App, one, other string) error {
	from, _, err := ref(a, one)
	if err != nil {
		return err
	}
	to, _, err := ref(a, other)
	if err != nil {
		return err
	}
	tell(a, from, to)
	d := playbook.Diff(from.book, to.book)
	if a.JSON {
		err = diffJSON(a, d, from, to)
	} else {
		err = diffText(a.Out, d)
	}
	if err == nil && !d.Empty() {
		err = &cli.ExitError{Code: cli.ExitDiverged, Err: fmt.Errorf("%s and %s differ: %d added, %d removed, %d changed, %d the same", cli.SafeText(from.name), cli.SafeText(to.name),
			len(d.Added), len(d.Removed), len(d.Changed), d.Same)}
	}
	return err
}

func diffJSON(a *cli.App, d *playbook.Difference, from, to *bookRef) error {
	out := cli.NewLines(a.Out)
	for _, b := range d.Removed {
		_ = out.Put(DiffLine{"removed", b}) // flush tells
	}
	for _, c := range d.Changed {
		_ = out.Put(ChangedLine{"changed", c})
	}
	for _, b := range d.Added {
		_ = out.Put(DiffLine{"added", b})
	}
	return out.Write(DiffEnd{"playbook_diff", from.name, to.name, from.hash, to.hash, len(d.Added), len(d.Removed), len(d.Changed), d.Same})
}

func diffText(w io.Writer, d *playbook.Difference) error {
	for _, b := range d.Removed {
		fmt.Fprintf(w, "- [%s] %s\n", cli.SafeText(b.ID), cli.SafeText(b.Content))
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
		fmt.Fprintf(w, "~ [%s] %s", cli.SafeText(c.ID), cli.SafeText(strings.Join(what, ", ")))
		if c.Content {
			fmt.Fprintf(w, "\n    %s", wordDiff(c.Words))
		}
		fmt.Fprintln(w)
	}
	for _, b := range d.Added {
		fmt.Fprintf(w, "+ [%s] %s\n", cli.SafeText(b.ID), cli.SafeText(b.Content))
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
			b.WriteString("{+" + cli.SafeText(h.Text) + "+}")
		case playbook.HunkRemoved:
			b.WriteString("[-" + cli.SafeText(h.Text) + "-]")
		default:
			b.WriteString(cli.SafeText(h.Text))
		}
	}
	return b.String()
}
