package history

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/stepper"
	"acescope/tui/text"
)

// ReplayCommand holds what looks at what a run did, without running it again.
func ReplayCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Look at what a run did: step through it, verify it against today's code, export it",
		Long: "step views the state of a run as of any of its events; verify replays histories with today's workflow code and says\n" +
			"where it decides otherwise; export writes a history to a file. None of them runs anything again.",
	}
	cmd.AddCommand(stepCommand(a), VerifyCommand(a, "verify"), exportCommand(a))
	return cmd
}

type stepFlags struct {
	at      int64
	follow  bool
	watch   string
	history int
	run     string
	chain   bool
}

func stepCommand(a *cli.App) *cobra.Command {
	var f stepFlags
	cmd := &cobra.Command{
		Use:   "step TASK|FILE",
		Short: "View a run as of one of its events: phase, skills, playbook delta, and what the event changed",
		Example: "acescope replay step finance-1-e1-0042 --at 23 --json | jq .phase\n" +
			"acescope replay step bug-report.json.gz --follow\n" +
			"acescope replay step finance-1-e1-0042 --watch usage.cost_usd",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.follow && cmd.Flags().Changed("at"):
				return cli.UsageError("--at and --follow do not go together")
			case f.chain && !f.follow && (f.watch == "" || cmd.Flags().Changed("at")):
				return cli.UsageError("--chain is for --follow and --watch; an event is one of a run, which --run names")
			case f.chain && (cli.IsHistoryFile(args[0]) || f.run != ""):
				return cli.UsageError("--chain reads the whole chain of a run of the server")
			}
			return step(a, cmd.Context(), args[0], f, cmd.Flags().Changed("at"))
		},
	}
	cmd.Flags().Int64Var(&f.at, "at", 0, "event to view the run at, by its id (default the last)")
	cmd.Flags().BoolVar(&f.follow, "follow", false, "all events, one a line, with what each changed")
	cmd.Flags().StringVar(&f.watch, "watch", "", "only the changes of one value: a path (usage.cost_usd), a bullet's id, a JSON pointer (/delta/operations/0)")
	cmd.Flags().IntVar(&f.history, "history", 0, "of a file with several histories, the one with this number")
	cmd.Flags().StringVar(&f.run, "run", "", "of several runs, the one with this run id")
	cmd.Flags().BoolVar(&f.chain, "chain", false, "with --follow or --watch: over the runs that the run continues and is continued as, oldest first")
	return cmd
}

// StepLine is the state of a run as of one event.
type StepLine struct {
	Type string `json:"type"` // step
	stepper.Run
	Chain *cli.ChainLine `json:"chain,omitempty"`
	stepper.Frame
}

// StepChange is what one event changed.
type StepChange struct {
	Type      string           `json:"type"` // change
	Position  int              `json:"position"`
	EventID   int64            `json:"event_id"`
	EventType string           `json:"event_type"`
	At        time.Time        `json:"at,omitzero"`
	ElapsedMS float64          `json:"elapsed_ms"`
	ClockBack float64          `json:"clock_back_ms,omitempty"`
	Error     bool             `json:"error"`
	Changes   []stepper.Change `json:"changes"`
	Notes     []string         `json:"notes,omitempty"`
	RunID     string           `json:"run_id,omitempty"`
}

// WatchLine is one change of a value that is watched.
type WatchLine struct {
	Type string `json:"type"` // watch
	Expr string `json:"expr"`
	stepper.Seen
	RunID string `json:"run_id,omitempty"`
}

func step(a *cli.App, ctx context.Context, arg string, f stepFlags, at bool) error {
	list, err := stepHistories(a, ctx, arg, f)
	if err != nil {
		return err
	}
	for _, h := range list {
		if err := stepRun(a, ctx, h, f, at); err != nil {
			return err
		}
	}
	return nil
}

// stepHistories is the run, or its chain.
func stepHistories(a *cli.App, ctx context.Context, arg string, f stepFlags) ([]cli.RunHistory, error) {
	if !f.chain {
		h, err := a.HistoryOf(ctx, arg, f.history, f.run)
		return []cli.RunHistory{h}, err
	}
	e, done, err := a.OpenReadOnly(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return a.ReadChain(ctx, e, arg, "")
}

func stepRun(a *cli.App, ctx context.Context, h cli.RunHistory, f stepFlags, at bool) (err error) {
	s := stepper.New(h.Events, stepper.Options{Types: h.Types()})
	if f.chain && h.Chain != nil && !a.JSON {
		fmt.Fprintf(a.Out, "%s: %s\n", h.Chain, cli.SafeText(s.About.RunID))
	}
	switch {
	case f.watch != "":
		err = stepWatch(a, s, f, at)
	case f.follow:
		err = stepAll(a, ctx, s)
	default:
		err = stepAt(a, s, h.Chain, f.at, at)
	}
	if err != nil {
		return err
	}
	return h.ReadErr
}

// position is where --at points.
func position(s *stepper.Stepper, id int64, given bool) (int, error) {
	if !given {
		id = s.About.LastEvent
	}
	pos, err := s.Find(id)
	if err != nil {
		return 0, &cli.ExitError{Code: cli.ExitNotFound, Err: err}
	}
	return pos, nil
}

func stepAt(a *cli.App, s *stepper.Stepper, chain *cli.ChainLine, id int64, given bool) error {
	pos, err := position(s, id, given)
	if err != nil {
		return err
	}
	out, f := cli.NewLines(a.Out), s.Frame(pos)
	if a.JSON {
		return out.Write(StepLine{"step", s.About, chain, *f})
	}
	printFrame(out, s, chain, f)
	return out.Flush()
}

func stepAll(a *cli.App, ctx context.Context, s *stepper.Stepper) error {
	out := cli.NewLines(a.Out)
	for pos := 1; pos <= s.Len(); pos++ {
		if ctx.Err() != nil {
			_ = out.Flush()
			return cli.ErrInterrupted
		}
		f := s.Step(pos)
		if a.JSON {
			if err := out.Put(StepChange{"change", f.Position, f.EventID, f.EventType, f.At, f.ElapsedMS, f.ClockBackMS, f.Error, f.Changes, f.Notes, s.About.RunID}); err != nil {
				return err
			}
			continue
		}
		printStep(out, f)
	}
	return out.Flush()
}

func stepWatch(a *cli.App, s *stepper.Stepper, f stepFlags, at bool) error {
	w, err := s.Watch(f.watch)
	if err != nil {
		return &cli.ExitError{Code: cli.ExitNotFound, Err: err}
	}
	out := cli.NewLines(a.Out)
	last := s.Len() + 1
	if at {
		pos, err := position(s, f.at, true)
		if err != nil {
			return err
		}
		last = pos + 1
	}
	for pos := 0; ; {
		c, ok := w.Next(pos, true, nil)
		if !ok || c.Position >= last {
			return out.Flush()
		}
		pos = c.Position
		if a.JSON {
			if err := out.Put(WatchLine{"watch", f.watch, c, s.About.RunID}); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(out.Buf, "%7d  %s\n", c.EventID, cli.SafeText(stepper.Change{Path: f.watch, Before: c.Before, After: c.After}.Text()))
	}
}

func printStep(out *cli.Lines, f *stepper.Frame) {
	mark := " "
	if f.Error {
		mark = "!"
	}
	fmt.Fprintf(out.Buf, "%7d  %10.3fs %s %s\n", f.EventID, f.ElapsedMS/1000, mark, cli.SafeText(f.EventType))
	for _, c := range f.Changes {
		fmt.Fprintf(out.Buf, "%25s%s\n", "", cli.SafeText(text.Cut(text.Safe(c.Text(), " "), 160, "…")))
	}
	for _, n := range f.Notes {
		fmt.Fprintf(out.Buf, "%25s(%s)\n", "", cli.SafeText(n))
	}
}

func printFrame(out *cli.Lines, s *stepper.Stepper, chain *cli.ChainLine, f *stepper.Frame) {
	a := s.About
	fmt.Fprintf(out.Buf, "%s  %s\nevent %d of %d  %s  %.3f s after the begin\n", cli.SafeText(a.WorkflowID), cli.SafeText(a.WorkflowType), f.EventID, a.LastEvent, cli.SafeText(f.EventType), f.ElapsedMS/1000)
	if chain != nil {
		fmt.Fprintf(out.Buf, "%s\n", chain)
	}
	if r := a.Reset; r != nil {
		fmt.Fprintf(out.Buf, "reset from run %s: events 1 to %d are that run's\n", cli.SafeText(r.RunID), r.Event)
	}
	if f.ClockBackMS > 0 {
		fmt.Fprintf(out.Buf, "  (the clock went back by %.3f s)\n", f.ClockBackMS/1000)
	}
	for _, n := range f.Notes {
		fmt.Fprintf(out.Buf, "  (%s)\n", cli.SafeText(n))
	}
	fmt.Fprintln(out.Buf, "\nchanged by it")
	for _, c := range f.Changes {
		fmt.Fprintf(out.Buf, "  %s\n", cli.SafeText(c.Text()))
	}
	if len(f.Changes) == 0 {
		fmt.Fprintln(out.Buf, "  nothing")
	}
	fmt.Fprintln(out.Buf, "\nknown as of it")
	for _, v := range s.Values(f.Position) {
		fmt.Fprintf(out.Buf, "  %s\n", cli.SafeText(v.Text()))
	}
}
