package learning

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/sources/playbooks"
	"acescope/sources/runs"
)

func playbookBlame(a *cli.App) *cobra.Command {
	bullet, events := "", false
	cmd := &cobra.Command{
		Use: "blame [BULLET|VERSION|BRANCH]", Short: "Say which task wrote each bullet, and which changed it",
		Long: "Say which task, run and version wrote each bullet of a playbook and changed it since; of one bullet all changes,\n" +
			"and who removed it. A bullet alone is one of the branch that changed last. With --events the server is asked for\n" +
			"the history events of the runs.\n\n" + refHelp,
		Example: "acescope playbook blame calc-00041 --events\nacescope playbook blame finance-1@40 --bullet calc-00041\n" +
			"acescope playbook blame finance-1 --json | jq -r '[.bullet.id, .added.task_id] | @tsv'",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return bookBlame(a, cmd.Context(), optional(args), bullet, events)
		},
	}
	cmd.Flags().StringVar(&bullet, "bullet", "", "only this bullet, with all its changes")
	cmd.Flags().BoolVar(&events, "events", false, "find the history event of each change (asks the server)")
	return cmd
}

// BlameLine is what became of one bullet.
type BlameLine struct {
	Type    string          `json:"type"` // blame
	Branch  string          `json:"branch"`
	Seq     int             `json:"seq"`
	Bullet  playbook.Bullet `json:"bullet"`
	Gone    bool            `json:"gone,omitempty"`
	Added   *blameSource    `json:"added,omitempty"`
	Changes []blameTouch    `json:"changes"`
	Dropped int             `json:"dropped,omitempty"`
	Tags    int             `json:"tags"`
	Edits   int             `json:"edits"`
	Counts  playbook.Counts `json:"counts"`
}

type blameSource struct {
	*playbook.Source
	*blameEvents
}

type blameTouch struct {
	playbook.BulletChange
	*blameEvents
}

// blameEvents are the history events that told of a change.
type blameEvents struct {
	Curator int64 `json:"curator_event,omitempty"`
	Persist int64 `json:"persist_event,omitempty"`
}

func bookBlame(a *cli.App, ctx context.Context, name, bullet string, events bool) error {
	ref, store, err := ref(a, name)
	if cli.ExitCode(err) == cli.ExitNotFound && name != "" && bullet == "" && store != nil {
		if newest, err2 := storedRef(store, ""); err2 == nil {
			ref, bullet, err = newest, name, nil
		}
	}
	if err != nil {
		return err
	}
	if ref.branch == "" {
		return cli.UsageError("%s belongs to no branch, so nobody knows who wrote it", ref.name)
	}
	var watch []string
	if bullet != "" {
		watch = []string{bullet}
	}
	h, err := ref.history(ctx, store, watch...)
	if err != nil {
		return err
	}
	lives := h.Blame(ref.book)
	if bullet != "" {
		l, ok := h.Bullet(bullet)
		if !ok {
			return noBullet(ref, name, bullet)
		}
		lives = []playbook.BulletHistory{l}
	}
	f := &eventFinder{app: a}
	if events {
		if err := f.open(ctx); err != nil {
			return err
		}
		defer f.close()
	}
	if !a.JSON && bullet == "" {
		return f.table(ctx, a.Out, lives)
	}
	out := cli.NewLines(a.Out)
	for i := range lives {
		line, err := f.line(ctx, ref, &lives[i])
		if err != nil {
			return err
		}
		if !a.JSON {
			return blameText(a.Out, line)
		}
		_ = out.Put(line) // flush tells
	}
	return out.Flush()
}

// noBullet says that a bullet is not there, and which are like it.
func noBullet(ref *bookRef, name, bullet string) error {
	ids := make([]string, len(ref.book.Bullets))
	for i, b := range ref.book.Bullets {
		ids[i] = b.ID
	}
	what := fmt.Sprintf("%s never had a bullet %q", ref.name, bullet)
	if name == bullet {
		what = fmt.Sprintf("no branch or version is called %q, and %s", name, what)
	}
	if near := runs.Near(bullet, ids); len(near) > 0 {
		what += "; near: " + strings.Join(near, ", ")
	}
	return &cli.ExitError{Code: cli.ExitNotFound, Err: errors.New(what)}
}

// eventFinder asks the server for the events of runs, of each run once.
type eventFinder struct {
	app   *cli.App
	steps func(context.Context, playbooks.RunKey) playbooks.RunSteps
	close func()
	known map[playbooks.RunKey]*blameEvents
}

func (f *eventFinder) open(ctx context.Context) error {
	e, done, err := f.app.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	f.known, f.close = map[playbooks.RunKey]*blameEvents{}, done
	f.steps = func(ctx context.Context, k playbooks.RunKey) playbooks.RunSteps {
		return playbooks.StepsOf(ctx, e.Client, k)
	}
	return nil
}

// of is the events of a change; nil where they were not asked for, or there are none.
func (f *eventFinder) of(ctx context.Context, by *playbook.Source) (*blameEvents, error) {
	if f.steps == nil || by == nil || by.WorkflowID == "" {
		return nil, nil
	}
	key := playbooks.RunKey{WorkflowID: by.WorkflowID, RunID: by.RunID}
	if found, ok := f.known[key]; ok {
		return found, nil
	}
	s := f.steps(ctx, key)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	f.known[key] = nil
	if s.Curator+s.Persist > 0 {
		f.known[key] = &blameEvents{s.Curator, s.Persist}
	}
	if s.Err != "" {
		fmt.Fprintf(f.app.Err, "acescope: %s: %s\n", cli.SafeText(by.WorkflowID), cli.SafeText(s.Err))
	}
	return f.known[key], nil
}

func (f *eventFinder) line(ctx context.Context, ref *bookRef, l *playbook.BulletHistory) (BlameLine, error) {
	line := BlameLine{Type: "blame", Branch: ref.branch, Seq: ref.seq, Bullet: l.Bullet, Gone: l.Gone, Changes: []blameTouch{},
		Dropped: l.Dropped, Tags: l.Tags, Edits: l.Edits, Counts: l.Counts}
	if l.Added != nil {
		events, err := f.of(ctx, l.Added)
		if err != nil {
			return line, err
		}
		line.Added = &blameSource{l.Added, events}
	}
	for _, t := range l.Touches {
		events, err := f.of(ctx, t.Source)
		if err != nil {
			return line, err
		}
		line.Changes = append(line.Changes, blameTouch{t, events})
	}
	return line, nil
}

// table is a line for each bullet, with the event that told of its making where that was
// asked for.
func (f *eventFinder) table(ctx context.Context, out io.Writer, lives []playbook.BulletHistory) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for i, l := range lives {
		if i == 0 {
			fmt.Fprintln(w, "BULLET\tTASK\tVERSION\tEVENT\tHELPFUL\tHARMFUL\tEDITS\tLAST\tSAYS")
		}
		task, version, event, last := "-", "start", "-", "-"
		if l.Added != nil {
			task, version = cli.SafeText(l.Added.TaskID), fmt.Sprint(l.Added.Seq)
			events, err := f.of(ctx, l.Added)
			if err != nil {
				return err
			}
			if events != nil {
				event = fmt.Sprint(events.Persist)
			}
		}
		if t := l.Last(); t != nil && t.Type != ace.OpAdd {
			last = cli.SafeText(t.TaskID)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", cli.SafeText(l.Bullet.ID), task, version, event, l.Bullet.Helpful, l.Bullet.Harmful, l.Edits, last, brief(l.Bullet.Content, 60))
	}
	return w.Flush()
}

func blameText(w io.Writer, l BlameLine) error {
	b := l.Bullet
	fmt.Fprintf(w, "%s  %s  helpful %d, harmful %d, neutral %d\n%s\n", cli.SafeText(b.ID), cli.SafeText(b.Section), b.Helpful, b.Harmful, b.Neutral, cli.SafeText(b.Content))
	if l.Added == nil {
		fmt.Fprintf(w, "START   it came with the playbook that %s began with\n", cli.SafeText(l.Branch))
	}
	for _, t := range l.Changes {
		fmt.Fprintf(w, "%-7s %s@%d  %s  %s  %s/%s", t.Type, cli.SafeText(t.Branch), t.Seq, t.At.Local().Format(time.DateTime), cli.SafeText(t.TaskID), cli.SafeText(t.WorkflowID), cli.SafeText(t.RunID))
		if e := t.blameEvents; e != nil {
			fmt.Fprintf(w, "  curator event %d, persist event %d", e.Curator, e.Persist)
		}
		switch t.Type {
		case ace.OpTag:
			fmt.Fprintf(w, "  helpful +%d, harmful +%d, neutral +%d", t.Helpful, t.Harmful, t.Neutral)
		case ace.OpUpdate:
			fmt.Fprintf(w, "\n        %s", wordDiff(playbook.Words(t.Before, t.Content)))
		}
		if t.Type != ace.OpTag && t.Rationale != "" {
			fmt.Fprintf(w, "\n        because %s", cli.SafeText(t.Rationale))
		}
		fmt.Fprintln(w)
	}
	return nil
}
