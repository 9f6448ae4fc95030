package learning

import (
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/learning/playbook"
)

func PlaybookCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "playbook",
		Short: "Look at playbooks: versions, differences, who wrote each bullet, what is wrong",
		Long:  "Look at the playbooks of the data directory, or at files. No server is needed.\n\n" + refHelp,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return cli.UsageError("playbook what? branches, log, show, diff, blame or health")
		},
	}
	cmd.AddCommand(playbookBranches(a), playbookLog(a), playbookShow(a), playbookDiff(a), playbookBlame(a), playbookHealth(a))
	return cmd
}

// optional is the only argument, "" where there is none.
func optional(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func playbookBranches(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "branches", Short: "List the branches: one line of versions for each experiment", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			store, err := bookStore(a)
			if err != nil {
				return err
			}
			list, err := store.Branches()
			if a.JSON {
				out := cli.NewLines(a.Out)
				for _, d := range list {
					_ = out.Put(BranchLine{"playbook_branch", d}) // flush tells
				}
				if flushErr := out.Flush(); err == nil {
					err = flushErr
				}
				return err
			}
			w := tabwriter.NewWriter(a.Out, 0, 4, 2, ' ', 0)
			for i, d := range list {
				if i == 0 {
					fmt.Fprintln(w, "BRANCH\tVERSIONS\tHEAD\tCHANGED")
				}
				fmt.Fprintf(w, "%s\t%d\t%.12s\t%s\n", cli.SafeText(d.Name), d.Versions, d.Head, d.At.Local().Format(time.DateTime))
			}
			if flushErr := w.Flush(); err == nil {
				err = flushErr
			}
			return err
		},
	}
}

type BranchLine struct {
	Type string `json:"type"` // playbook_branch
	playbook.Branch
}

type BookVersionLine struct {
	Type string `json:"type"` // playbook_version
	Seq  int    `json:"seq"`
	playbook.Version
}

func playbookLog(a *cli.App) *cobra.Command {
	limit := 0
	cmd := &cobra.Command{
		Use: "log [BRANCH]", Short: "List a branch's versions, newest first: which task, what it changed, why",
		Example: "acescope playbook log finance-1 --limit 20\n" +
			"acescope playbook log --json | jq -r 'select(.removed > 0) | [.seq, .task_id, .rationale] | @tsv'",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return bookLog(a, optional(args), limit) },
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "at most so many versions (default all)")
	return cmd
}

// logPage is how many versions are read at a time.
const logPage = 500

func bookLog(a *cli.App, name string, limit int) error {
	if limit < 0 {
		return cli.UsageError("--limit %d: give a number above 0", limit)
	}
	store, err := bookStore(a)
	if err != nil {
		return err
	}
	ref, err := storedRef(store, name)
	if err != nil {
		return err
	}
	if ref.branch == "" {
		return cli.NotFound("%s is no branch's version", name)
	}
	out := cli.NewLines(a.Out)
	w := tabwriter.NewWriter(a.Out, 0, 4, 2, ' ', 0)
	given := 0
	for to := ref.seq; to > 0 && (limit == 0 || given < limit); to -= logPage {
		page, err := store.Page(ref.branch, max(to-logPage+1, 1), to)
		if err != nil {
			return err
		}
		for i := len(page) - 1; i >= 0 && (limit == 0 || given < limit); i-- {
			seq := to - (len(page) - 1 - i)
			if given++; a.JSON {
				_ = out.Put(BookVersionLine{"playbook_version", seq, page[i]}) // flush tells
				continue
			}
			if given == 1 {
				fmt.Fprintln(w, "VERSION\tHASH\tTIME\tTASK\tΔ\tTAGS\tBULLETS\tWHY")
			}
			v := page[i]
			fmt.Fprintf(w, "%d\t%.12s\t%s\t%s\t+%d ~%d -%d\t%d\t%d\t%s\n", seq, v.Hash, v.At.Local().Format(time.DateTime), cli.SafeText(v.TaskID),
				v.Added, v.Updated, v.Removed, v.Tagged, v.Bullets, brief(v.Rationale, 100))
		}
		if err := out.Flush(); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// brief is the beginning of a text on one line.
func brief(s string, n int) string {
	runes := []rune(cli.OneLine(fmt.Errorf("%.2000s", s)))
	if len(runes) > n {
		return string(runes[:n]) + "…"
	}
	return string(runes)
}

func playbookShow(a *cli.App) *cobra.Command {
	format := ""
	cmd := &cobra.Command{
		Use: "show [VERSION|BRANCH|FILE]", Short: "Write a playbook, whole", Long: "Write a playbook, whole.\n\n" + refHelp,
		Example: "acescope playbook show finance-1 > best.txt\nacescope playbook show finance-1@40 --format skillbook\nacescope playbook show other.json --format text",
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return bookShow(a, optional(args), format) },
	}
	cmd.Flags().StringVar(&format, "format", "", "text (ace-agent/ace; the default), skillbook (kayba JSON) or json (canonical: its SHA-256 is the version)")
	return cmd
}

// BookLine is a playbook, whole.
type BookLine struct {
	Type    string            `json:"type"` // playbook
	Name    string            `json:"name"`
	Hash    string            `json:"hash"`
	Branch  string            `json:"branch,omitempty"`
	Seq     *int              `json:"seq,omitempty"`
	Report  *playbook.Report  `json:"report,omitempty"`
	NextID  int               `json:"next_id"`
	Bullets []playbook.Bullet `json:"bullets"`
}

func bookShow(a *cli.App, name, format string) error {
	switch {
	case a.JSON && format != "":
		return cli.UsageError("--json and --format: give one of them")
	case format != "" && format != "text" && format != "skillbook" && format != "json":
		return cli.UsageError("--format %s: known: text, skillbook, json", format)
	}
	r, _, err := ref(a, name)
	if err != nil {
		return err
	}
	tell(a, r)
	switch {
	case a.JSON:
		line := BookLine{Type: "playbook", Name: r.name, Hash: r.hash, NextID: r.book.NextID, Bullets: r.book.Bullets}
		if line.Bullets == nil {
			line.Bullets = []playbook.Bullet{}
		}
		if r.branch != "" {
			line.Branch, line.Seq = r.branch, &r.seq
		}
		if r.file {
			line.Report = &r.report
		}
		return cli.NewLines(a.Out).Write(line)
	case format == "skillbook":
		return playbook.WriteSkillbook(a.Out, r.book)
	case format == "json":
		_, err := a.Out.Write(r.book.Canonical())
		return err
	case cli.IsTerminal(os.Stdout):
		return playbook.WriteText(cli.SafeWriter{W: a.Out}, r.book)
	}
	return playbook.WriteText(a.Out, r.book)
}
