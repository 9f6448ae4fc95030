package learning

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/learning/playbook"
	"acescope/sources/playbooks"
)

func playbookHealth(a *cli.App) *cobra.Command {
	outcomes := false
	cmd := &cobra.Command{
		Use: "health [VERSION|BRANCH|FILE]", Short: "Say what is wrong with a playbook, and what to do",
		Long: "Look for near-duplicates, bullets that harm, bullets that nobody uses, growth without edits, collapses and, with\n" +
			"--accuracy, counters that rise while accuracy does not (the server is asked how the tasks of the branch ended).\n\n" + refHelp,
		Example: "acescope playbook health finance-1 --accuracy\nacescope playbook health best.txt --json | jq 'select(.severity == \"error\")'",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return bookHealth(a, cmd.Context(), optional(args), outcomes)
		},
	}
	cmd.Flags().BoolVar(&outcomes, "accuracy", false, "compare the counters with how tasks were judged (asks the server)")
	return cmd
}

type FindingLine struct {
	Type string `json:"type"` // finding
	playbook.Finding
}

// HealthEnd says what was checked.
type HealthEnd struct {
	Type      string                     `json:"type"` // playbook_health
	Name      string                     `json:"name"`
	Hash      string                     `json:"hash"`
	Branch    string                     `json:"branch,omitempty"`
	Seq       *int                       `json:"seq,omitempty"`
	Bullets   int                        `json:"bullets"`
	Findings  int                        `json:"findings"`
	Dropped   int                        `json:"dropped,omitempty"`
	Judged    int                        `json:"judged"`
	Checked   []playbook.FindingKind     `json:"checked"`
	Unchecked []playbook.UncheckedReason `json:"unchecked"`
	Totals    *playbook.Totals           `json:"totals,omitempty"`
}

func bookHealth(a *cli.App, ctx context.Context, name string, accuracy bool) error {
	ref, store, err := ref(a, name)
	if err != nil {
		return err
	}
	tell(a, ref)
	h, err := ref.history(ctx, store)
	if err != nil {
		return err
	}
	var list []playbook.Outcome
	if accuracy {
		if list, err = outcomes(a, ctx, ref); err != nil {
			return err
		}
	}
	found := playbook.Check(ref.book, h, list)
	if a.JSON {
		return healthJSON(a, found, ref, h, len(list))
	}
	for _, f := range found.Findings {
		fmt.Fprintf(a.Out, "%-7s %-20s %s\n%29s%s\n", f.Severity, f.Kind, cli.SafeText(f.Text), "", f.Advice)
	}
	for _, u := range found.Unchecked {
		fmt.Fprintf(a.Out, "%-7s %-20s %s\n", "-", u.Kind, u.Why)
	}
	_, err = fmt.Fprintf(a.Out, "%s: %d bullets, %d findings\n", cli.SafeText(ref.name), found.Bullets, len(found.Findings)+found.Dropped)
	return err
}

func healthJSON(a *cli.App, found *playbook.Health, ref *bookRef, h *playbook.History, judged int) error {
	out := cli.NewLines(a.Out)
	for _, f := range found.Findings {
		_ = out.Put(FindingLine{"finding", f}) // flush tells
	}
	end := HealthEnd{Type: "playbook_health", Name: ref.name, Hash: ref.hash, Bullets: found.Bullets, Findings: len(found.Findings) + found.Dropped,
		Dropped: found.Dropped, Judged: judged, Checked: found.Checked, Unchecked: found.Unchecked}
	if h != nil {
		totals := h.Totals()
		end.Branch, end.Seq, end.Totals = ref.branch, &ref.seq, &totals
	}
	return out.Write(end)
}

// outcomes is how the tasks of a branch were judged, which the server knows.
func outcomes(a *cli.App, ctx context.Context, ref *bookRef) ([]playbook.Outcome, error) {
	if ref.branch == "" {
		return nil, cli.UsageError("--accuracy: %s belongs to no branch, so no task learnt on it", ref.name)
	}
	e, done, err := a.OpenReadOnly(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	list, err := playbooks.Outcomes(ctx, e.Client, ref.branch)
	if err != nil {
		return nil, err
	}
	head, err := e.Books.Branch(ref.branch)
	if err != nil || head.Versions == ref.seq || ref.seq == 0 {
		return list, err
	}
	page, err := e.Books.Page(ref.branch, ref.seq, ref.seq)
	if err != nil || len(page) == 0 {
		return list, err
	}
	return playbooks.UpTo(list, page[0].At), nil
}
