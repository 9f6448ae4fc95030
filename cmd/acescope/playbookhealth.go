package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"acescope/engine/playbook"
	"acescope/sources"
)

func (a *app) playbookHealth() *cobra.Command {
	outcomes := false
	cmd := &cobra.Command{
		Use: "health [VERSION|BRANCH|FILE]", Short: "Say what is wrong with a playbook, and what to do",
		Long: "Look for near-duplicates, bullets that harm, bullets that nobody uses, growth without edits, collapses and, with\n" +
			"--accuracy, counters that rise while accuracy does not (the server is asked how the tasks of the branch ended).\n\n" + refHelp,
		Example: "acescope playbook health finance-1 --accuracy\nacescope playbook health best.txt --json | jq 'select(.severity == \"bad\")'",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.bookHealth(cmd.Context(), optional(args), outcomes)
		},
	}
	cmd.Flags().BoolVar(&outcomes, "accuracy", false, "compare the counters with how tasks were judged (asks the server)")
	return cmd
}

type findingLine struct {
	Type string `json:"type"` // finding
	playbook.Finding
}

// healthEnd says what was checked.
type healthEnd struct {
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

func (a *app) bookHealth(ctx context.Context, name string, accuracy bool) error {
	ref, store, err := a.ref(name)
	if err != nil {
		return err
	}
	a.tell(ref)
	h, err := ref.history(ctx, store)
	if err != nil {
		return err
	}
	var list []playbook.Outcome
	if accuracy {
		if list, err = a.outcomes(ctx, ref); err != nil {
			return err
		}
	}
	found := playbook.Check(ref.book, h, list)
	if a.json {
		return a.healthJSON(found, ref, h, len(list))
	}
	for _, f := range found.Findings {
		fmt.Fprintf(a.out, "%-7s %-20s %s\n%29s%s\n", f.Severity, f.Kind, safe(f.Text), "", f.Advice)
	}
	for _, u := range found.Unchecked {
		fmt.Fprintf(a.out, "%-7s %-20s %s\n", "-", u.Kind, u.Why)
	}
	_, err = fmt.Fprintf(a.out, "%s: %d bullets, %d findings\n", safe(ref.name), found.Bullets, len(found.Findings)+found.Dropped)
	return err
}

func (a *app) healthJSON(found *playbook.Health, ref *bookRef, h *playbook.History, judged int) error {
	out := newLines(a.out)
	for _, f := range found.Findings {
		_ = out.put(findingLine{"finding", f}) // flush tells
	}
	end := healthEnd{Type: "playbook_health", Name: ref.name, Hash: ref.hash, Bullets: found.Bullets, Findings: len(found.Findings) + found.Dropped,
		Dropped: found.Dropped, Judged: judged, Checked: found.Checked, Unchecked: found.Unchecked}
	if h != nil {
		totals := h.Totals()
		end.Branch, end.Seq, end.Totals = ref.branch, &ref.seq, &totals
	}
	return out.write(end)
}

// outcomes is how the tasks of a branch were judged, which the server knows.
func (a *app) outcomes(ctx context.Context, ref *bookRef) ([]playbook.Outcome, error) {
	if ref.branch == "" {
		return nil, usage("--accuracy: %s belongs to no branch, so no task learnt on it", ref.name)
	}
	e, done, err := a.look(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	list, err := sources.Outcomes(ctx, e.Client, ref.branch)
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
	return sources.UpTo(list, page[0].At), nil
}
