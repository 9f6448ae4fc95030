// Package history holds the commands that read, replay, fork and compare histories.
package history

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

type timelineFlags struct {
	histories.EventFilter
	events bool
	last   int
	runID  string
}

func TimelineCommand(a *cli.App) *cobra.Command {
	var f timelineFlags
	cmd := &cobra.Command{
		Use:   "timeline TASK|FILE",
		Short: "Show how long a run's phases, activities, attempts and tool calls took, or list its events",
		Long: "Shows the newest run of a workflow. --run shows another one, such as an earlier run of its chain:\n" +
			"\"acescope lineage TASK --json\" lists the runs. FILE is an exported history.",
		Example: "acescope timeline finance-1-e1-0042\n" +
			"acescope timeline finance-1-e1-0042 --events --errors --json | jq .message",
		RunE: func(cmd *cobra.Command, args []string) error { return timeline(a, cmd.Context(), args[0], f) },
	}
	cmd.Flags().BoolVar(&f.events, "events", false, "list the events instead of spans")
	cmd.Flags().StringVar(&f.Include, "include", "",
		"only what matches this regular expression, ignoring case")
	cmd.Flags().StringVar(&f.Exclude, "exclude", "",
		"without what matches this regular expression, ignoring case")
	cmd.Flags().BoolVar(&f.Errors, "errors", false, "only errors")
	cmd.Flags().StringVar(&f.runID, "run", "", "run ID, if the workflow has several runs")
	cmd.Flags().IntVar(&f.last, "last", 0, "read only the newest N events (default all)")
	return cmd
}

type SpanLine struct {
	Index      int       `json:"index" jsonschema:"place in the tree"`
	Parent     int32     `json:"parent" jsonschema:"index of the parent, -1 for the run"`
	Depth      int8      `json:"depth" jsonschema:"0 for the run"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	State      string    `json:"state"`
	Start      time.Time `json:"start" jsonschema:"when it was scheduled"`
	Run        time.Time `json:"run,omitzero" jsonschema:"when it began to run"`
	End        time.Time `json:"end,omitzero"`
	WaitMS     float64   `json:"wait_ms" jsonschema:"before it ran"`
	DurationMS float64   `json:"duration_ms" jsonschema:"while it ran"`
	Attempt    int32     `json:"attempt,omitempty" jsonschema:"attempt, or number of attempts"`
	Members    int32     `json:"members,omitempty"`
	Cut        bool      `json:"cut,omitempty" jsonschema:"true if its beginning was not read"`
	Error      string    `json:"error,omitempty"`
	Note       string    `json:"note,omitempty" jsonschema:"of a request to cancel it, or of the failure"`
	Activity   string    `json:"activity,omitempty" jsonschema:"type of the activity, if the name is that of a call"`
	Operation  string    `json:"operation,omitempty" jsonschema:"of an agent: chat, execute_tool or handoff"`
	Agent      string    `json:"agent,omitempty"`
	Model      string    `json:"model,omitempty"`
	Tool       string    `json:"tool,omitempty"`
	PausedMS   float64   `json:"paused_ms,omitempty" jsonschema:"waits between the attempts that the span holds"`
	EventID    int64     `json:"event_id" jsonschema:"first event"`
	LastID     int64     `json:"last_event_id"`
}

// TotalsLine holds the times of the calls of a run's agents, after its spans.
type TotalsLine struct{ *histories.Totals }

type EventLine struct {
	EventID   int64     `json:"event_id"`
	At        time.Time `json:"at"`
	EventType string    `json:"event_type"`
	Kind      string    `json:"kind"`
	Name      string    `json:"name,omitempty"`
	Message   string    `json:"message,omitempty" jsonschema:"details, at most 400 bytes"`
	Error     bool      `json:"error" jsonschema:"whether it is an error"`
	RelatedID int64     `json:"related_id,omitempty"`
	Attempt   int32     `json:"attempt,omitempty"`
	Bytes     int32     `json:"bytes" jsonschema:"size of the event on the server"`
	ClockBack float64   `json:"clock_back_ms,omitempty"` // how much older the event is than the event before
}

func timeline(a *cli.App, ctx context.Context, id string, f timelineFlags) error {
	if f.last < 0 {
		return cli.UsageError("--last %d: must not be negative", f.last)
	}
	match, err := f.Compile()
	if err != nil {
		return cli.UsageError("%v", err)
	}
	if path, _, err := cli.SplitHistoryName(id); err != nil || cli.IsHistoryFile(path) {
		return timelineOfFile(a, ctx, id, f, match)
	}
	e, exec, err := cli.OpenRun(a, ctx, id, f.runID)
	if err != nil {
		return err
	}
	out := cli.NewLines(a)
	if !a.JSON {
		chain, err := cli.ChainOf(ctx, e, exec)
		if err != nil {
			return err
		}
		if chain != nil {
			out.Printf("%s: %s", chain, exec.GetRunId())
		}
	}
	var put func(*histories.EventLog, int) error
	if f.events {
		put = func(l *histories.EventLog, from int) error { return putEvents(a, out, l, from, match) }
	}
	l, err := histories.ReadEvents(ctx, e.Client, e.Namespace(), exec.GetWorkflowId(), exec.GetRunId(),
		f.last, put)
	if err != nil || f.events {
		return err
	}
	return cmp.Or(out.Flush(), putSpans(a, l, match))
}

// timelineOfFile shows the timeline of an exported history.
func timelineOfFile(
	a *cli.App, ctx context.Context, id string, f timelineFlags, match *histories.EventMatcher,
) error {
	h, err := cli.HistoryOf(a, ctx, id, f.runID)
	if err != nil {
		return err
	}
	if f.last > 0 {
		h.Events = h.Events[max(len(h.Events)-f.last, 0):]
	}
	l := histories.NewEventLog("", cli.RunIDOf(h.Events), h.Events, time.Now())
	out := cli.NewLines(a)
	if f.events {
		err = putEvents(a, out, l, 0, match)
	} else {
		err = putSpans(a, l, match)
	}
	return cmp.Or(err, h.ReadErr)
}

func putEvents(
	a *cli.App, out *cli.Lines, l *histories.EventLog, from int, match *histories.EventMatcher,
) error {
	width, styles, paint := a.Canvas()
	if !paint {
		width = math.MaxInt
	}
	var lines []string
	start := l.Start()
	var clock history.Clock
	if from > 0 {
		clock.StepAt(l.Row(from-1).Type, l.Row(from-1).At())
	}
	for i := from; i < l.Len(); i++ {
		e := l.Row(i)
		clockBack := clock.StepAt(e.Type, e.At())
		if !match.Event(l, e) {
			continue
		}
		line := EventLine{
			EventID: e.ID, At: e.At(), EventType: e.Name(), Kind: e.Kind.String(), Name: l.Title(e),
			Message: e.Message, Error: e.Error, Attempt: e.Attempt, Bytes: e.Size,
			ClockBack: cluster.Millis(clockBack),
		}
		note := ""
		if e.Root != e.ID {
			line.RelatedID = e.Root
			note = fmt.Sprintf("(of %d) ", e.Root)
		}
		if a.JSON {
			out.Put(line)
			continue
		}
		if clockBack > 0 {
			note += fmt.Sprintf("(the clock went back by %.3f s) ", clockBack.Seconds())
		}
		l := fmt.Sprintf("%7d  %10.3fs %s %-34s %s%s %s", line.EventID, max(line.At.Sub(start), 0).Seconds(),
			errorMark(line.Error), line.EventType, note, line.Name, line.Message)
		ink := widget.If(line.Error, styles.Error, styles.Text)
		lines = append(lines, ink.Paint(text.Cut(cli.SafeText(l), width, "~")))
	}
	return cmp.Or(out.Flush(), a.Print(lines, paint))
}

// errorMark marks a line that reports an error.
func errorMark(failed bool) string {
	if failed {
		return "!"
	}
	return " "
}

// spanColumns are the widths of columns in cells. The duration and the gaps take otherCells.
type spanColumns struct{ name, state, bar, failure int }

const otherCells = 16

// fitSpans returns the columns for a terminal of a width, or for 0 those of another output.
func fitSpans(width int, spans []histories.Span) spanColumns {
	c, failures := spanColumns{36, 10, 48, math.MaxInt}, false
	for i, s := range spans {
		c.name = max(c.name, min(text.Width(spanName(&spans[i])), maxSpanName))
		c.state = max(c.state, len(s.State.String()))
		failures = failures || s.Error != "" || s.Note != ""
	}
	if width == 0 {
		return c
	}
	c.name = min(c.name, width*2/5)
	rest := max(width-c.name-c.state-otherCells, 2)
	if c.bar = min(c.bar, rest); failures {
		c.bar = min(c.bar, rest/2)
	}
	c.failure = rest - c.bar
	return c
}

func putSpans(a *cli.App, l *histories.EventLog, match *histories.EventMatcher) error {
	out, now := cli.NewLines(a), time.Now()
	window := histories.Extent(l.Spans, now)
	width, styles, paint := a.Canvas()
	if !paint {
		width = 0
	}
	columns := fitSpans(width, l.Spans)
	var lines []string
	for i := range l.Spans {
		s := &l.Spans[i]
		if !match.Span(s) {
			continue
		}
		if !a.JSON {
			cells := make([]histories.Cell, columns.bar)
			window.Draw(cells, s, now)
			lines = append(lines, spanText(s, cells, now, columns, styles))
			continue
		}
		line := SpanLine{
			Index: i, Parent: s.Parent, Depth: s.Depth, Kind: s.Kind.String(), Name: s.Name,
			State: s.State.String(), Start: nanoTime(s.Start), Run: nanoTime(s.Run), End: nanoTime(s.End),
			WaitMS: cluster.Millis(s.Waited(now)), DurationMS: cluster.Millis(s.Ran(now)), Attempt: s.Attempt,
			Members: s.Members, Cut: s.Cut, Error: s.Error, Note: s.Note, EventID: s.Event, LastID: s.Last,
			Activity: s.Activity, PausedMS: float64(s.Paused) / float64(time.Millisecond),
		}
		if c := s.Agent; c != nil {
			line.Operation, line.Agent, line.Model, line.Tool = string(c.Operation), c.Agent, c.Model, c.Tool
		}
		out.Put(line)
	}
	if t := histories.TotalsOf(l.Spans, now); t != nil && match.All() {
		if a.JSON {
			out.Put(TotalsLine{t})
		} else {
			lines = append(lines, cli.SafeText(t.Text(text.Duration, " · ")))
		}
	}
	return cmp.Or(a.Print(lines, paint), out.Flush())
}

// maxSpanName bounds the column of names, in cells.
const maxSpanName = 60

// spanName returns the name of a span at its place in the tree.
func spanName(s *histories.Span) string {
	name := strings.Repeat("  ", int(s.Depth)) + cli.SafeText(s.Name)
	if s.Attempt > 1 && s.Kind == histories.SpanActivity {
		name += " (" + ace.Count(s.Attempt, "attempt") + ")"
	}
	return name
}

// spanText returns the painted line of a span.
func spanText(
	s *histories.Span, cells []histories.Cell, now time.Time, columns spanColumns, styles theme.Styles,
) string {
	var bar strings.Builder
	for _, c := range cells {
		bar.WriteByte(" .%##x*!"[c])
	}
	ink := styles.Success
	switch {
	case s.State.Bad():
		ink = styles.Error
	case s.State == histories.SpanRetrying:
		ink = styles.Retrying
	case s.State.Open():
		ink = styles.Running
	case s.State != histories.SpanDone:
		ink = styles.Muted
	}
	state, note := text.Fit(s.State.String(), columns.state, ""), widget.If(s.Error != "", styles.Error, ink)
	name := text.Fit(text.Middle(spanName(s), columns.name, "~"), columns.name, "~")
	return fmt.Sprintf("%s  %s %9s |%s| %s", name, ink.Paint(state),
		text.Duration(s.Ran(now)), ink.Paint(bar.String()),
		note.Paint(text.Cut(cli.SafeText(cluster.Join(s.Error, s.Note)), columns.failure, "~")))
}

// nanoTime returns a Unix time in nanoseconds as a time; 0 is the zero time.
func nanoTime(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos).UTC()
}
