package history

import (
	"cmp"
	"context"
	"math"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/kind"
	"acescope/engine/stepper"
	"acescope/sources/histories"
	"acescope/tui/text"
)

func ReplayCommand(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "replay",
		Short: "Step through a recorded run, verify it against the current code, or export it",
		Long: "step shows the state of a run at any of its events. verify replays histories with the current workflow\n" +
			"code and reports where it makes other decisions. export writes a history to a file. None of them runs\n" +
			"anything.",
	}, stepCommand(a), VerifyCommand(a, "verify"), exportCommand(a))
}

// lastEvent is the value of --at if it is not set.
const lastEvent = math.MinInt64

type stepFlags struct {
	at     int64 // event ID or lastEvent
	wrong  bool
	follow bool
	watch  string
	run    string
	chain  bool
}

func stepCommand(a *cli.App) *cobra.Command {
	var f stepFlags
	cmd := &cobra.Command{
		Use:   "step TASK|FILE",
		Short: "Show a run at one of its events, and what the event did",
		Long: "Shows a run at one of its events: plan, bullets used, tool calls, answer, operations, and what the event\n" +
			"changed.\n" +
			"FILE is an exported history, - standard input, and FILE#2 the second history of a file.",
		Example: "acescope replay step finance-1-e1-0042 --wrong\n" +
			"acescope replay step finance-1-e1-0042 --at 23 --json | jq .phase\n" +
			"acescope replay step bug-report.json.gz --follow\n" +
			"acescope replay step finance-1-e1-0042 --watch usage.cost_usd",
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.Flags().Changed("at")
			switch {
			case f.chain && !f.follow && (f.watch == "" || at):
				return cli.UsageError("--chain needs --follow, or --watch without --at")
			case f.chain && (cli.IsHistoryFile(args[0]) || f.run != ""):
				return cli.UsageError("--chain needs a run on the server, without --run")
			case !at:
				f.at = lastEvent
			}
			return step(a, cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().Int64Var(&f.at, "at", 0, "ID of the event to show the run at (default the last event)")
	cmd.Flags().BoolVar(&f.wrong, "wrong", false,
		"show the run where its answer became wrong: plan, bullets, tool calls, answer and label")
	cmd.Flags().BoolVar(&f.follow, "follow", false, "list all events with what each did")
	cmd.Flags().StringVar(&f.watch, "watch", "",
		"list the changes of one value: a path (usage.cost_usd), a bullet ID or a JSON pointer (/delta/operations/0)")
	cmd.Flags().StringVar(&f.run, "run", "", "run ID, if the workflow or the file has several runs")
	cmd.Flags().BoolVar(&f.chain, "chain", false,
		"with --follow or --watch: include the runs that the run continues and that continue it, oldest first")
	cmd.MarkFlagsMutuallyExclusive("at", "wrong", "follow")
	cmd.MarkFlagsMutuallyExclusive("wrong", "watch")
	cmd.MarkFlagsMutuallyExclusive("wrong", "chain")
	return cmd
}

// StepLine is the state of a run at one event.
type StepLine struct {
	stepper.Run
	Chain *cli.ChainLine `json:"chain,omitempty"`
	stepper.Frame
	Words    string               `json:"words" jsonschema:"what the event did, in one line"`
	Sections []kind.Section       `json:"sections"`
	Wrong    *stepper.WrongAnswer `json:"wrong_answer,omitempty"`
}

// StepChange is the changes by one event.
type StepChange struct {
	*stepper.Frame
	Words string `json:"words" jsonschema:"what the event did, in one line"`
	RunID string `json:"run_id,omitempty"`
}

// WatchLine is one change of a watched value.
type WatchLine struct {
	Expr string `json:"expr" jsonschema:"watched value"`
	stepper.Seen
	RunID string `json:"run_id,omitempty"`
}

func step(a *cli.App, ctx context.Context, name string, f stepFlags) error {
	out := cli.NewLines(a)
	if f.chain {
		list, err := cli.HistoriesOf(a, ctx, name, "")
		if err != nil {
			return err
		}
		for _, h := range list {
			w := openedWalk{Walk: histories.NewWalk(h.Events, h.Types(), nil), RunHistory: h}
			if h.Chain != nil && !a.JSON {
				out.Printf("%s: %s", h.Chain, w.About.RunID)
			}
			if err := stepRun(out, ctx, w, f); err != nil {
				return err
			}
		}
		return nil
	}
	w, err := openWalk(a, ctx, name, f.run)
	if err != nil {
		return err
	}
	return stepRun(out, ctx, w, f)
}

func stepRun(out *cli.Lines, ctx context.Context, w openedWalk, f stepFlags) (err error) {
	switch {
	case f.watch != "":
		err = stepWatch(out, w.Stepper, f)
	case f.follow:
		err = stepAll(out, ctx, w.Walk)
	default:
		err = stepAt(out, w.Walk, w.Chain, f)
	}
	return cmp.Or(err, out.Flush(), w.ReadErr)
}

// position returns the position of an event ID or of lastEvent.
func position(s *stepper.Stepper, id int64) (int, error) {
	if id == lastEvent {
		id = s.About.LastEvent
	}
	pos, err := s.Find(id)
	if err != nil {
		return 0, cli.NotFound("%w", err)
	}
	return pos, nil
}

func stepAt(out *cli.Lines, s *histories.Walk, chain *cli.ChainLine, f stepFlags) error {
	pos := s.WrongAt()
	if !f.wrong {
		var err error
		if pos, err = position(s.Stepper, f.at); err != nil {
			return err
		}
	}
	if pos == 0 {
		return cli.NotFound("no answer of %s was graded wrong", cmp.Or(s.About.TaskID, s.About.WorkflowID,
			"the run"))
	}
	line := StepLine{Run: s.About, Chain: chain, Frame: *s.Frame(pos), Words: s.Words(pos),
		Sections: s.Sections(pos)}
	if pos == s.WrongAt() {
		line.Wrong = s.Wrong()
	}
	if out.JSON {
		out.Put(line)
		return nil
	}
	line.print(out)
	if f.wrong {
		return nil
	}
	out.Printf("")
	out.Printf("Changed values")
	for _, c := range line.Changes {
		out.Printf("  %s", c.Text())
	}
	if len(line.Changes) == 0 {
		out.Printf("  none")
	}
	return nil
}

// print writes the state as text, without the changed values.
func (l StepLine) print(out *cli.Lines) {
	run, frame := l.Run, l.Frame
	out.Printf("%s  %s", run.WorkflowID, run.WorkflowType)
	out.Printf("event %d of %d  %s  %.3f s after the start", frame.EventID, run.LastEvent, frame.EventType,
		frame.ElapsedMS/1000)
	out.Printf("%s", l.Words)
	if l.Chain != nil {
		out.Printf("%s", l.Chain)
	}
	if r := run.Reset; r != nil {
		out.Printf("reset from run %s: events 1 to %d are from that run", r.RunID, r.Event)
	}
	if frame.ClockBackMS > 0 {
		out.Printf("  (the clock went back by %.3f s)", frame.ClockBackMS/1000)
	}
	for _, n := range frame.Notes {
		out.Printf("  (%s)", n)
	}
	if l.Wrong != nil {
		printWrong(out, l.Wrong)
	}
	out.Sections(l.Sections, 0)
}

// printWrong prints the origin of a wrong answer, unless the sections show it.
func printWrong(out *cli.Lines, w *stepper.WrongAnswer) {
	out.Printf("")
	out.Printf("Wrong answer, graded at event %d", w.GradedAt)
	for _, f := range []struct{ label, text string }{{"answer", cmp.Or(w.Answer, "none")},
		{"expected", w.Expected},
		{"cause", w.Cause}, {"reason", w.Reason}, {"reflector", w.Insights}} {
		if f.text != "" {
			out.Printf("  %-9s  %s", f.label, f.text)
		}
	}
}

// printSections prints the state; a * marks what the event changed.
func stepAll(out *cli.Lines, ctx context.Context, s *histories.Walk) error {
	for pos := 1; pos <= s.Len(); pos++ {
		if ctx.Err() != nil {
			return cli.ErrInterrupted
		}
		f, words := s.Step(pos), s.Words(pos)
		out.Line(StepChange{f, words, s.About.RunID},
			"%7d  %10.3fs %s %s", f.EventID, f.ElapsedMS/1000, errorMark(f.Error), words)
		if out.JSON {
			continue
		}
		for _, c := range f.Changes {
			out.Printf("%25s%s", "", text.Cut(cli.SafeText(c.Text()), 160, "…"))
		}
		for _, n := range f.Notes {
			out.Printf("%25s(%s)", "", n)
		}
	}
	return nil
}

func stepWatch(out *cli.Lines, s *stepper.Stepper, f stepFlags) error {
	w, err := s.Watch(f.watch)
	if err != nil {
		return cli.NotFound("%w", err)
	}
	last := s.Len()
	if f.at != lastEvent {
		if last, err = position(s, f.at); err != nil {
			return err
		}
	}
	for pos := 0; ; {
		c, ok := w.Next(pos, true, nil)
		if !ok || c.Position > last {
			return nil
		}
		pos = c.Position
		change := stepper.Change{Path: f.watch, Before: c.Before, After: c.After}
		out.Line(WatchLine{f.watch, c, s.About.RunID}, "%7d  %s", c.EventID, change.Text())
	}
}
