// Package history holds the commands that read, replay, fork and compare histories.
package history

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/temporal/history"
	"acescope/sources/histories"
	"acescope/tui/text"
)

// timelineFlags are what is shown of a run's history.
type timelineFlags struct {
	events           bool
	include, exclude string
	errors           bool
	last             int
}

func TimelineCommand(a *cli.App) *cobra.Command {
	var f timelineFlags
	cmd := &cobra.Command{
		Use:   "timeline TASK",
		Short: "Show where a run's time went: phases, activities, attempts, tool calls; or its events one by one",
		Example: "acescope timeline finance-1-e1-0042\n" +
			"acescope timeline finance-1-e1-0042 --events --errors --json | jq .message",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteIDs(false),
		RunE:              func(cmd *cobra.Command, args []string) error { return timeline(a, cmd.Context(), args[0], f) },
	}
	cmd.Flags().BoolVar(&f.events, "events", false, "the events one by one instead of spans")
	cmd.Flags().StringVar(&f.include, "include", "", "only what matches this regular expression, regardless of case")
	cmd.Flags().StringVar(&f.exclude, "exclude", "", "and not what matches this one")
	cmd.Flags().BoolVar(&f.errors, "errors", false, "only errors")
	cmd.Flags().IntVar(&f.last, "last", 0, "read only so many of the newest events")
	return cmd
}

// SpanLine is a stretch of a run's time.
type SpanLine struct {
	Type       string    `json:"type"` // span
	Index      int       `json:"index"`
	Parent     int32     `json:"parent"`
	Depth      int8      `json:"depth"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	State      string    `json:"state"`
	Start      time.Time `json:"start"`
	Run        time.Time `json:"run,omitzero"`
	End        time.Time `json:"end,omitzero"`
	WaitMS     float64   `json:"wait_ms"`
	DurationMS float64   `json:"duration_ms"`
	Attempt    int32     `json:"attempt,omitempty"`
	Members    int32     `json:"members,omitempty"`
	Cut        bool      `json:"cut,omitempty"`
	Error      string    `json:"error,omitempty"`
	EventID    int64     `json:"event_id"`
	LastID     int64     `json:"last_event_id"`
}

// EventLine is an event in short.
type EventLine struct {
	Type      string    `json:"type"` // event
	EventID   int64     `json:"event_id"`
	At        time.Time `json:"at"`
	EventType string    `json:"event_type"`
	Kind      string    `json:"kind"`
	Name      string    `json:"name,omitempty"`
	Message   string    `json:"message,omitempty"`
	Error     bool      `json:"error"`
	RelatedID int64     `json:"related_id,omitempty"`
	Attempt   int32     `json:"attempt,omitempty"`
	Bytes     int32     `json:"bytes"`
	ClockBack float64   `json:"clock_back_ms,omitempty"` // how much older it is than the event before
}

func timeline(a *cli.App, ctx context.Context, id string, f timelineFlags) error {
	if f.last < 0 {
		return cli.UsageError("--last %d: give a number above 0", f.last)
	}
	match, err := histories.EventFilter{Include: f.include, Exclude: f.exclude, Errors: f.errors}.Compile()
	if err != nil {
		return cli.UsageError("%v", err)
	}
	e, exec, done, err := a.OpenRun(ctx, id, "")
	if err != nil {
		return err
	}
	defer done()
	out := cli.NewLines(a.Out)
	var each func(*histories.EventLog, int) error
	if f.events {
		each = func(l *histories.EventLog, from int) error { return putEvents(a, out, l, from, match) }
	}
	l, err := histories.ReadEvents(ctx, e.Client, e.Namespace(), exec.GetWorkflowId(), exec.GetRunId(), f.last, each)
	if err != nil || f.events {
		return err
	}
	return putSpans(a, out, l, match)
}

func putEvents(a *cli.App, out *cli.Lines, l *histories.EventLog, from int, match *histories.EventMatcher) error {
	start := l.Start()
	var clock history.Clock
	if from > 0 {
		clock.StepAt(l.Row(from-1).Type, l.Row(from-1).At())
	}
	for i := from; i < l.Len(); i++ {
		e := l.Row(i)
		back := clock.StepAt(e.Type, e.At())
		if !match.Event(l, e) {
			continue
		}
		line := EventLine{Type: "event", EventID: e.ID, At: e.At(), EventType: e.Name(), Kind: e.Kind.String(), Name: l.Title(e),
			Message: e.Message, Error: e.Error, Attempt: e.Attempt, Bytes: e.Size}
		line.ClockBack = cli.Millis(back)
		if e.Root != e.ID {
			line.RelatedID = e.Root
		}
		if err := putEvent(a, out, line, start); err != nil {
			return err
		}
	}
	return out.Flush()
}

func putEvent(a *cli.App, out *cli.Lines, l EventLine, start time.Time) error {
	if a.JSON {
		return out.Put(l)
	}
	mark, of := " ", ""
	if l.Error {
		mark = "!"
	}
	if l.RelatedID != 0 {
		of = fmt.Sprintf("(of %d) ", l.RelatedID)
	}
	if l.ClockBack > 0 {
		of += fmt.Sprintf("(the clock went back by %.3f s) ", l.ClockBack/1000)
	}
	_, err := fmt.Fprintf(out.Buf, "%7d  %10.3fs %s %-34s %s%s %s\n", l.EventID, max(l.At.Sub(start), 0).Seconds(), mark, l.EventType, of, cli.SafeText(l.Name), cli.SafeText(l.Message))
	return err
}

// barWidth is how many characters a bar of the text form has.
const barWidth = 48

func putSpans(a *cli.App, out *cli.Lines, l *histories.EventLog, match *histories.EventMatcher) error {
	now := time.Now()
	w := histories.Extent(l.Spans, now)
	for i := range l.Spans {
		s := &l.Spans[i]
		if !match.Span(s) {
			continue
		}
		if err := putSpan(a, out, i, s, w, now); err != nil {
			return err
		}
	}
	return out.Flush()
}

func putSpan(a *cli.App, out *cli.Lines, i int, s *histories.Span, w histories.Window, now time.Time) error {
	if a.JSON {
		at := func(nanos int64) time.Time {
			if nanos == 0 {
				return time.Time{}
			}
			return time.Unix(0, nanos).UTC()
		}
		return out.Put(SpanLine{Type: "span", Index: i, Parent: s.Parent, Depth: s.Depth, Kind: s.Kind.String(), Name: s.Name,
			State: s.State.String(), Start: at(s.Start), Run: at(s.Run), End: at(s.End), WaitMS: cli.Millis(s.Waited(now)),
			DurationMS: cli.Millis(s.Ran(now)), Attempt: s.Attempt, Members: s.Members, Cut: s.Cut, Error: s.Error, EventID: s.Event, LastID: s.Last})
	}
	cells := make([]histories.Cell, barWidth)
	w.Draw(cells, s, now)
	var bar strings.Builder
	for _, c := range cells {
		bar.WriteByte(" .%##x*!"[c])
	}
	name := strings.Repeat("  ", int(s.Depth)) + cli.SafeText(s.Name)
	if s.Attempt > 1 && s.Kind == histories.SpanActivity {
		name += fmt.Sprintf(" (%d attempts)", s.Attempt)
	}
	_, err := fmt.Fprintf(out.Buf, "%s  %-10s %9s |%s| %s\n", text.Fit(name, 36, "~"), s.State, text.Took(s.Ran(now)), bar.String(), cli.SafeText(s.Error))
	return err
}
