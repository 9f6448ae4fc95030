package history

import (
	"context"
	"math"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine/stepper"
	"acescope/tui/text"
)

// ReplayCommand groups the commands that examine recorded histories.
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
	follow bool
	watch  string
	run    string
	chain  bool
}

func stepCommand(a *cli.App) *cobra.Command {
	var f stepFlags
	cmd := &cobra.Command{
		Use:   "step TASK|FILE",
		Short: "Show a run at one of its events: phase, skills, playbook delta, and the changes by the event",
		Long: "Shows a run at one of its events: phase, skills, playbook delta, and the changes by the event.\n" +
			"FILE is an exported history, - standard input, and FILE#2 the second history of a file.",
		Example: "acescope replay step finance-1-e1-0042 --at 23 --json | jq .phase\n" +
			"acescope replay step bug-report.json.gz --follow\n" +
			"acescope replay step finance-1-e1-0042 --watch usage.cost_usd",
		Args: cobra.ExactArgs(1),
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
	cmd.Flags().BoolVar(&f.follow, "follow", false, "list all events with the changes by each")
	cmd.Flags().StringVar(&f.watch, "watch", "",
		"list the changes of one value: a path (usage.cost_usd), a bullet ID or a JSON pointer (/delta/operations/0)")
	cmd.Flags().StringVar(&f.run, "run", "", "run ID, if the workflow or the file has several runs")
	cmd.Flags().BoolVar(&f.chain, "chain", false,
		"with --follow or --watch: include the runs that the run continues and that continue it, oldest first")
	cmd.MarkFlagsMutuallyExclusive("at", "follow")
	return cmd
}

// StepLine is the state of a run at one event.
type StepLine struct {
	Type string `json:"type"` // step
	stepper.Run
	Chain *cli.ChainLine `json:"chain,omitempty"`
	stepper.Frame
}

// StepChange is the changes by one event.
type StepChange struct {
	Type string `json:"type"` // change
	*stepper.Frame
	RunID string `json:"run_id,omitempty"`
}

// WatchLine is one change of a watched value.
type WatchLine struct {
	Type string `json:"type"` // watch
	Expr string `json:"expr"`
	stepper.Seen
	RunID string `json:"run_id,omitempty"`
}

func step(a *cli.App, ctx context.Context, name string, f stepFlags) error {
	var list []cli.RunHistory
	if f.chain {
		var err error
		if list, err = a.HistoriesOf(ctx, name, ""); err != nil {
			return err
		}
	} else {
		h, err := a.HistoryOf(ctx, name, f.run)
		if err != nil {
			return err
		}
		list = append(list, h)
	}
	out := runs.NewOutput(a)
	for _, h := range list {
		s := stepper.New(h.Events, stepper.Options{Types: h.Types()})
		if f.chain && h.Chain != nil && !a.JSON {
			out.Printf("%s: %s", h.Chain, s.About.RunID)
		}
		var err error
		switch {
		case f.watch != "":
			err = stepWatch(out, s, f)
		case f.follow:
			err = stepAll(out, ctx, s)
		default:
			err = stepAt(out, s, h.Chain, f.at)
		}
		if flushErr := out.Flush(); err == nil {
			err = flushErr
		}
		if err != nil {
			return err
		}
		if h.ReadErr != nil {
			return h.ReadErr
		}
	}
	return nil
}

// position returns the position of an event ID or of lastEvent.
func position(s *stepper.Stepper, id int64) (int, error) {
	if id == lastEvent {
		id = s.About.LastEvent
	}
	pos, err := s.Find(id)
	if err != nil {
		return 0, &cli.ExitError{Code: cli.ExitNotFound, Err: err}
	}
	return pos, nil
}

func stepAt(out *runs.Output, s *stepper.Stepper, chain *cli.ChainLine, id int64) error {
	pos, err := position(s, id)
	if err != nil {
		return err
	}
	f := s.Frame(pos)
	if out.JSON {
		return out.Put(StepLine{"step", s.About, chain, *f})
	}
	run := s.About
	out.Printf("%s  %s", run.WorkflowID, run.WorkflowType)
	out.Printf("event %d of %d  %s  %.3f s after the start", f.EventID, run.LastEvent, f.EventType, f.ElapsedMS/1000)
	if chain != nil {
		out.Printf("%s", chain)
	}
	if r := run.Reset; r != nil {
		out.Printf("reset from run %s: events 1 to %d are from that run", r.RunID, r.Event)
	}
	if f.ClockBackMS > 0 {
		out.Printf("  (the clock went back by %.3f s)", f.ClockBackMS/1000)
	}
	for _, n := range f.Notes {
		out.Printf("  (%s)", n)
	}
	out.Printf("")
	out.Printf("Changes")
	for _, c := range f.Changes {
		out.Printf("  %s", c.Text())
	}
	if len(f.Changes) == 0 {
		out.Printf("  none")
	}
	out.Printf("")
	out.Printf("State")
	for _, v := range s.Values(f.Position) {
		out.Printf("  %s", v.Text())
	}
	return nil
}

func stepAll(out *runs.Output, ctx context.Context, s *stepper.Stepper) error {
	for pos := 1; pos <= s.Len(); pos++ {
		if ctx.Err() != nil {
			return cli.ErrInterrupted
		}
		f := s.Step(pos)
		out.Line(StepChange{"change", f, s.About.RunID},
			"%7d  %10.3fs %s %s", f.EventID, f.ElapsedMS/1000, errorMark(f.Error), f.EventType)
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

func stepWatch(out *runs.Output, s *stepper.Stepper, f stepFlags) error {
	w, err := s.Watch(f.watch)
	if err != nil {
		return &cli.ExitError{Code: cli.ExitNotFound, Err: err}
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
		out.Line(WatchLine{"watch", f.watch, c, s.About.RunID}, "%7d  %s", c.EventID, change.Text())
	}
}
