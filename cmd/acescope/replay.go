package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"acescope/engine/replay"
	"acescope/tui/text"
)

// replayCommand holds what looks at what a run did, without running it again.
func (a *app) replayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Look at what a run did: step through it, verify it against today's code, export it",
		Long: "step views the state of a run as of any of its events; verify replays histories with today's workflow code and says\n" +
			"where it decides otherwise; export writes a history to a file. None of them runs anything again.",
	}
	cmd.AddCommand(a.stepCommand(), a.verifyCommand("verify"), a.exportCommand())
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

func (a *app) stepCommand() *cobra.Command {
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
				return usage("--at and --follow do not go together")
			case f.chain && !f.follow && (f.watch == "" || cmd.Flags().Changed("at")):
				return usage("--chain is for --follow and --watch; an event is one of a run, which --run names")
			case f.chain && (isHistoryFile(args[0]) || f.run != ""):
				return usage("--chain reads the whole chain of a run of the server")
			}
			return a.step(cmd.Context(), args[0], f, cmd.Flags().Changed("at"))
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

// stepLine is the state of a run as of one event.
type stepLine struct {
	Type string `json:"type"` // step
	replay.Run
	Chain *chainLine `json:"chain,omitempty"`
	replay.Frame
}

// stepChange is what one event changed.
type stepChange struct {
	Type      string          `json:"type"` // change
	Position  int             `json:"position"`
	EventID   int64           `json:"event_id"`
	EventType string          `json:"event_type"`
	At        time.Time       `json:"at,omitzero"`
	ElapsedMS float64         `json:"elapsed_ms"`
	ClockBack float64         `json:"clock_back_ms,omitempty"`
	Error     bool            `json:"error"`
	Changes   []replay.Change `json:"changes"`
	Notes     []string        `json:"notes,omitempty"`
	RunID     string          `json:"run_id,omitempty"`
}

// watchLine is one change of a value that is watched.
type watchLine struct {
	Type string `json:"type"` // watch
	Expr string `json:"expr"`
	replay.Seen
	RunID string `json:"run_id,omitempty"`
}

func (a *app) step(ctx context.Context, arg string, f stepFlags, at bool) error {
	list, err := a.stepHistories(ctx, arg, f)
	if err != nil {
		return err
	}
	for _, h := range list {
		if err := a.stepRun(ctx, h, f, at); err != nil {
			return err
		}
	}
	return nil
}

// stepHistories is the run, or its chain.
func (a *app) stepHistories(ctx context.Context, arg string, f stepFlags) ([]oneHistory, error) {
	if !f.chain {
		h, err := a.historyOf(ctx, arg, f.history, f.run)
		return []oneHistory{h}, err
	}
	e, done, err := a.look(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return a.readChain(ctx, e, arg, "")
}

func (a *app) stepRun(ctx context.Context, h oneHistory, f stepFlags, at bool) (err error) {
	s := replay.NewStepper(h.Events, replay.StepOptions{Types: h.types()})
	if f.chain && h.chain != nil && !a.json {
		fmt.Fprintf(a.out, "%s: %s\n", h.chain, safe(s.About.RunID))
	}
	switch {
	case f.watch != "":
		err = a.stepWatch(s, f, at)
	case f.follow:
		err = a.stepAll(ctx, s)
	default:
		err = a.stepAt(s, h.chain, f.at, at)
	}
	if err != nil {
		return err
	}
	return h.err
}

// position is where --at points.
func position(s *replay.Stepper, id int64, given bool) (int, error) {
	if !given {
		id = s.About.LastEvent
	}
	pos, err := s.Find(id)
	if err != nil {
		return 0, &coded{exitNotFound, err}
	}
	return pos, nil
}

func (a *app) stepAt(s *replay.Stepper, chain *chainLine, id int64, given bool) error {
	pos, err := position(s, id, given)
	if err != nil {
		return err
	}
	out, f := newLines(a.out), s.Frame(pos)
	if a.json {
		return out.write(stepLine{"step", s.About, chain, *f})
	}
	printFrame(out, s, chain, f)
	return out.flush()
}

func (a *app) stepAll(ctx context.Context, s *replay.Stepper) error {
	out := newLines(a.out)
	for pos := 1; pos <= s.Len(); pos++ {
		if ctx.Err() != nil {
			_ = out.flush()
			return errInterrupted
		}
		f := s.Step(pos)
		if a.json {
			if err := out.put(stepChange{"change", f.Position, f.EventID, f.EventType, f.At, f.ElapsedMS, f.ClockBackMS, f.Error, f.Changes, f.Notes, s.About.RunID}); err != nil {
				return err
			}
			continue
		}
		printStep(out, f)
	}
	return out.flush()
}

func (a *app) stepWatch(s *replay.Stepper, f stepFlags, at bool) error {
	w, err := s.Watch(f.watch)
	if err != nil {
		return &coded{exitNotFound, err}
	}
	out := newLines(a.out)
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
			return out.flush()
		}
		pos = c.Position
		if a.json {
			if err := out.put(watchLine{"watch", f.watch, c, s.About.RunID}); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(out.buf, "%7d  %s\n", c.EventID, safe(replay.Change{Path: f.watch, Before: c.Before, After: c.After}.Text()))
	}
}

func printStep(out *lines, f *replay.Frame) {
	mark := " "
	if f.Error {
		mark = "!"
	}
	fmt.Fprintf(out.buf, "%7d  %10.3fs %s %s\n", f.EventID, f.ElapsedMS/1000, mark, safe(f.EventType))
	for _, c := range f.Changes {
		fmt.Fprintf(out.buf, "%25s%s\n", "", safe(text.Cut(text.Safe(c.Text(), " "), 160, "…")))
	}
	for _, n := range f.Notes {
		fmt.Fprintf(out.buf, "%25s(%s)\n", "", safe(n))
	}
}

func printFrame(out *lines, s *replay.Stepper, chain *chainLine, f *replay.Frame) {
	a := s.About
	fmt.Fprintf(out.buf, "%s  %s\nevent %d of %d  %s  %.3f s after the begin\n", safe(a.WorkflowID), safe(a.WorkflowType), f.EventID, a.LastEvent, safe(f.EventType), f.ElapsedMS/1000)
	if chain != nil {
		fmt.Fprintf(out.buf, "%s\n", chain)
	}
	if r := a.Reset; r != nil {
		fmt.Fprintf(out.buf, "reset from run %s: events 1 to %d are that run's\n", safe(r.RunID), r.Event)
	}
	if f.ClockBackMS > 0 {
		fmt.Fprintf(out.buf, "  (the clock went back by %.3f s)\n", f.ClockBackMS/1000)
	}
	for _, n := range f.Notes {
		fmt.Fprintf(out.buf, "  (%s)\n", safe(n))
	}
	fmt.Fprintln(out.buf, "\nchanged by it")
	for _, c := range f.Changes {
		fmt.Fprintf(out.buf, "  %s\n", safe(c.Text()))
	}
	if len(f.Changes) == 0 {
		fmt.Fprintln(out.buf, "  nothing")
	}
	fmt.Fprintln(out.buf, "\nknown as of it")
	for _, v := range s.Values(f.Position) {
		fmt.Fprintf(out.buf, "  %s\n", safe(v.Text()))
	}
}
