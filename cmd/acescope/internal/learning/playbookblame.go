package learning

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/sources/playbooks"
	"acescope/sources/runs"
)

func blameCommand(a *cli.App) *cobra.Command {
	bullet, events := "", false
	cmd := &cobra.Command{
		Use:   "blame [BULLET|VERSION|BRANCH]",
		Short: "Show which task added each bullet and which tasks changed it",
		Long: "Show which task, run and version added each bullet of a playbook and changed it since; for a single bullet,\n" +
			"all its changes. A bullet without a version is looked up in the branch that changed last.\n\n" +
			refHelp,
		Example: "acescope playbook blame calc-00041 --events\nacescope playbook blame finance-1@40 --bullet calc-00041\n" +
			"acescope playbook blame finance-1 --json | jq -r '[.bullet.id, .added.task_id] | @tsv'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return playbookBlame(a, cmd.Context(), cli.Arg(args, 0), bullet, events)
		},
	}
	cmd.Flags().StringVar(&bullet, "bullet", "", "only this bullet, with all its changes")
	cmd.Flags().BoolVar(&events, "events", false, "show the history event of each change (needs the server)")
	return cmd
}

// BlameLine is the origin and the changes of a bullet.
type BlameLine struct {
	Branch  string          `json:"branch" jsonschema:"branch of the version that was asked about"`
	Seq     int             `json:"seq" jsonschema:"number of that version"`
	Bullet  playbook.Bullet `json:"bullet" jsonschema:"the bullet there, or as it was removed"`
	Removed bool            `json:"removed,omitempty" jsonschema:"true if it was removed"`
	Added   *blameSource    `json:"added,omitempty"`
	Changes []blameChange   `json:"changes"`
	Dropped int             `json:"dropped,omitempty" jsonschema:"changes that are not listed"`
	Tags    int             `json:"tags" jsonschema:"how often it was tagged"`
	Edits   int             `json:"edits" jsonschema:"how often it was updated"`
	Counts  playbook.Counts `json:"counts" jsonschema:"counters over time, at most 64 entries"`
}

type blameSource struct {
	*playbook.Source
	*playbooks.RunSteps
}

type blameChange struct {
	playbook.BulletChange
	*playbooks.RunSteps
}

func playbookBlame(a *cli.App, ctx context.Context, name, bullet string, events bool) error {
	ref, store, err := findRef(a, ctx, name)
	if cli.ExitCode(err) == cli.ExitNotFound && name != "" && bullet == "" && store != nil {
		if newest, err2 := storedRef(ctx, store, ""); err2 == nil {
			ref, bullet, err = newest, name, nil
		}
	}
	if err != nil {
		return err
	}
	if ref.branch == "" {
		return cli.UsageError("%s belongs to no branch, so its history is unknown", ref.name)
	}
	var watch []string
	if bullet != "" {
		watch = []string{bullet}
	}
	h, err := ref.history(ctx, store, watch...)
	if err != nil {
		return err
	}
	bullets := h.Blame(ref.book)
	if bullet != "" {
		l, ok := h.Bullet(bullet)
		if !ok {
			return noBullet(ref, name, bullet)
		}
		bullets = []playbook.BulletHistory{l}
	}
	f := &eventFinder{app: a, known: map[playbooks.RunKey]*playbooks.RunSteps{}}
	if events {
		e, err := a.OpenReadOnly(ctx)
		if err != nil {
			return err
		}
		f.client = e.Client
	}
	lines := make([]BlameLine, len(bullets))
	for i := range bullets {
		if lines[i], err = f.line(ctx, ref, &bullets[i], a.JSON || bullet != ""); err != nil {
			return err
		}
	}
	if !a.JSON && bullet != "" {
		return printBlame(a, lines[0])
	}
	header := "BULLET\tTASK\tVERSION\tEVENT\tHELPFUL\tHARMFUL\tEDITS\tLAST\tTEXT"
	return cli.WriteRows(a, slices.Values(lines), header, blameCells)
}

func blameCells(l BlameLine) []any {
	task, version, event, last := "-", "start", "-", "-"
	if l.Added != nil {
		task, version = l.Added.TaskID, fmt.Sprint(l.Added.Seq)
		if l.Added.RunSteps != nil {
			event = fmt.Sprint(l.Added.Persist)
		}
	}
	if n := len(l.Changes); n > 0 && l.Changes[n-1].Type != ace.OpAdd {
		last = l.Changes[n-1].TaskID
	}
	b := l.Bullet
	return []any{b.ID, task, version, event, b.Helpful, b.Harmful, l.Edits, last, brief(b.Content, 60)}
}

// noBullet returns the error for an unknown bullet, with similar ids.
func noBullet(ref *playbookRef, name, bullet string) error {
	ids := make([]string, len(ref.book.Bullets))
	for i, b := range ref.book.Bullets {
		ids[i] = b.ID
	}
	what := fmt.Sprintf("no bullet %q in %s", bullet, ref.name)
	if name == bullet {
		what = fmt.Sprintf("no branch or version %q, and %s", name, what)
	}
	if near := runs.Near(bullet, ids); len(near) > 0 {
		what += "; near: " + strings.Join(near, ", ")
	}
	return cli.NotFound("%s", what)
}

// eventFinder asks the server for the events of runs, once per run.
type eventFinder struct {
	app    *cli.App
	client client.Client // nil if the events were not requested
	known  map[playbooks.RunKey]*playbooks.RunSteps
}

// of returns the events of a change, nil if they were not requested or do not exist.
func (f *eventFinder) of(ctx context.Context, by *playbook.Source) (*playbooks.RunSteps, error) {
	if f.client == nil || by == nil || by.WorkflowID == "" {
		return nil, nil
	}
	key := playbooks.RunKey{WorkflowID: by.WorkflowID, RunID: by.RunID}
	if found, ok := f.known[key]; ok {
		return found, nil
	}
	s := playbooks.StepsOf(ctx, f.client, key)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	f.known[key] = nil
	if s.Curator+s.Persist > 0 {
		f.known[key] = &s
	}
	if s.Err != "" {
		fmt.Fprintf(f.app.Err, "acescope: %s: %s\n", cli.SafeText(by.WorkflowID), cli.SafeText(s.Err))
	}
	return f.known[key], nil
}

// line returns the line of a bullet. With all, it also looks up the events of changes after the addition.
func (f *eventFinder) line(
	ctx context.Context, ref *playbookRef, l *playbook.BulletHistory, all bool,
) (BlameLine, error) {
	line := BlameLine{
		Branch: ref.branch, Seq: ref.seq, Bullet: l.Bullet, Removed: l.Gone, Changes: []blameChange{},
		Dropped: l.Dropped, Tags: l.Tags, Edits: l.Edits, Counts: l.Counts,
	}
	var err error
	if l.Added != nil {
		line.Added = &blameSource{Source: l.Added}
		if line.Added.RunSteps, err = f.of(ctx, l.Added); err != nil {
			return line, err
		}
	}
	for _, t := range l.Touches {
		change := blameChange{BulletChange: t}
		if all {
			if change.RunSteps, err = f.of(ctx, t.Source); err != nil {
				return line, err
			}
		}
		line.Changes = append(line.Changes, change)
	}
	return line, nil
}

func printBlame(a *cli.App, l BlameLine) error {
	out, b := cli.NewLines(a), l.Bullet
	out.Printf("%s  %s  helpful %d, harmful %d, neutral %d", b.ID, b.Section, b.Helpful, b.Harmful, b.Neutral)
	out.Printf("%s", b.Content)
	if l.Added == nil {
		out.Printf("START   in the initial playbook of %s", l.Branch)
	}
	for _, t := range l.Changes {
		line := fmt.Sprintf("%-7s %s@%d  %s  %s  %s/%s", t.Type, t.Branch, t.Seq,
			t.At.Local().Format(time.DateTime), t.TaskID, t.WorkflowID, t.RunID)
		if e := t.RunSteps; e != nil {
			line += fmt.Sprintf("  curator event %d, persist event %d", e.Curator, e.Persist)
		}
		switch {
		case t.Into != "":
			line += "  into " + t.Into
		case t.Type == ace.OpTag, t.Type == ace.OpMerge:
			line += fmt.Sprintf("  helpful +%d, harmful +%d, neutral +%d", t.Helpful, t.Harmful, t.Neutral)
		}
		out.Printf("%s", line)
		for _, m := range t.Merged {
			from := "START"
			if m.Added != nil {
				from = fmt.Sprintf("%s@%d %s", m.Added.Branch, m.Added.Seq, m.Added.TaskID)
			}
			out.Printf("        merged %s (%s) %s", m.ID, from, m.Content)
		}
		if t.Type == ace.OpUpdate || t.Type == ace.OpMerge && t.Into == "" && t.Content != "" {
			out.Printf("        %s", wordDiff(playbook.Words(t.Before, t.Content)))
		}
		if t.Type != ace.OpTag && t.Rationale != "" {
			out.Printf("        because %s", t.Rationale)
		}
	}
	return out.Flush()
}
