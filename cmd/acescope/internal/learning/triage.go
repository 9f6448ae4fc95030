package learning

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/runs"
	triagesource "acescope/sources/triage"
	"acescope/theme"
	"acescope/tui/widget"
)

func TriageCommand(a *cli.App) *cobra.Command {
	var o triagesource.Options
	cmd := &cobra.Command{
		Use:   "triage",
		Short: "Show why runs fail, which ones are retrying, and which ones are slow or expensive",
		Long: "Group the runs that failed, timed out, were canceled or answered wrong by common errors. List the runs that\n" +
			"are retrying, the slowest and the most expensive runs, and how long each phase takes.",
		Example: "acescope triage\nacescope triage -q experiment=finance-7 --since 24h\n" +
			"acescope triage --json | jq -r '.groups[] | [.count, .kind, .pattern] | @tsv'",
		RunE: func(cmd *cobra.Command, _ []string) error { return triage(a, cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.Query, "query", "q", "", "only runs that match: "+cli.FilterHelp)
	f.IntVar(&o.Window, "window", triagesource.DefaultWindow, "number of closed runs to read, newest first")
	f.DurationVar(&o.Since, "since", 0, "only runs that closed within this duration (default all)")
	return cmd
}

func triage(a *cli.App, ctx context.Context, o triagesource.Options) error {
	switch {
	case o.Window < 1 || o.Window > triagesource.MaxWindow:
		return cli.UsageError("--window %d: must be from 1 to %d", o.Window, triagesource.MaxWindow)
	case o.Since < 0:
		return cli.UsageError("--since %s: must be a duration above 0, such as 90m or 24h", o.Since)
	}
	var err error
	if o.Query, err = cli.FilterOf(o.Query); err != nil {
		return err
	}
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	o.Namespace = e.Namespace()
	bar := cli.NewProgressBar(a.Err)
	start := time.Now()
	t, err := triagesource.Read(ctx, e.Client, o, func(s triagesource.Scan) {
		bar.Draw(func() cli.Progress {
			return cli.Progress{Done: int64(s.Done), Total: int64(s.Total), Since: start, Note: s.Stage}
		})
	})
	bar.Clear()
	if err != nil {
		return cli.QueryError(o.Query, err)
	}
	return cli.Show(a, triageLine(t), func() error { return printTriage(a.Out, t) })
}

type TriageLine struct {
	*triagesource.Result
	SinceMS    float64       `json:"since_ms,omitempty" jsonschema:"only runs that ended within this time"`
	Groups     []groupLine   `json:"groups" jsonschema:"groups of failures, largest first, at most 200"`
	Slowest    []cli.RunLine `json:"slowest" jsonschema:"slowest runs, at most 20"`
	Expensive  []cli.RunLine `json:"most_expensive" jsonschema:"most expensive runs, at most 20"`
	MostTokens []cli.RunLine `json:"most_tokens" jsonschema:"runs with the most tokens, at most 20"`
	DurationMS float64       `json:"duration_ms" jsonschema:"duration of the scan"`
}

type groupLine struct {
	triagesource.FailureGroup
	Query   string         `json:"query" jsonschema:"visibility query for these runs"`
	Exact   bool           `json:"exact"`
	RunIDs  []string       `json:"run_ids" jsonschema:"the newest 200"`
	Reasons []reasonOfLine `json:"reasons,omitempty"`
}

// reasonOfLine is the reason for the wrong answer of a run.
type reasonOfLine struct {
	RunID  string `json:"run_id"`
	TaskID string `json:"task_id,omitempty"`
	triagesource.Reason
}

func triageLine(t *triagesource.Result) TriageLine {
	l := TriageLine{
		Result: t, SinceMS: cluster.Millis(t.Since), Groups: []groupLine{}, Slowest: runLines(t.Slowest),
		Expensive: runLines(t.MostExpensive), MostTokens: runLines(t.Largest),
		DurationMS: cluster.Millis(t.Scan.Took),
	}
	for _, g := range t.Groups {
		line := groupLine{FailureGroup: g, Query: g.Query(), Exact: g.Exact(),
			RunIDs: make([]string, 0, len(g.Runs))}
		for i, r := range g.Runs {
			line.RunIDs = append(line.RunIDs, r.RunID)
			if i < len(g.Reasons) {
				line.Reasons = append(line.Reasons, reasonOfLine{r.RunID, r.TaskID, g.Reasons[i]})
			}
		}
		l.Groups = append(l.Groups, line)
	}
	return l
}

func runLines(list []runs.Run) []cli.RunLine {
	out := make([]cli.RunLine, 0, len(list))
	for _, r := range list {
		out = append(out, cli.ListLine(r))
	}
	return out
}

// textRows bounds the rows of each table of runs.
const textRows = 10

func printTriage(out io.Writer, t *triagesource.Result) error {
	w := cli.NewTable(out)
	fmt.Fprintf(w, "%s closed and %s; %s of them in %s\n", ace.Number(t.Ended), ace.Count(t.Open, "open run"),
		ace.Number(t.Grouped), ace.Count(len(t.Groups)+t.GroupsDropped, "group"))
	fmt.Fprintf(w, "\nRETRYING (%d)\n", len(t.Retrying))
	now := t.At
	for _, r := range t.Retrying {
		w.Row("  "+nameOf(r.Run), r.Activity, fmt.Sprintf("attempt %d", r.Attempt),
			"since "+now.Sub(r.Since).Round(time.Second).String(), r.LastError.Message)
	}
	fmt.Fprintf(w, "\nGROUPS (%d), share of closed runs with its 95%% interval\n", len(t.Groups))
	for _, g := range t.Groups {
		glyphs := theme.Unicode()
		share := widget.Quantity(g.Share, "rate", glyphs) +
			widget.InParentheses(widget.Range(g.Interval(), "rate", glyphs))
		w.Row(fmt.Sprintf("  %d", g.Count), share, cmp.Or(string(g.Verdict), string(g.Status)),
			cmp.Or(string(g.Phase), g.Activity), g.Type, "last "+nameOf(g.Last.Run), g.Pattern)
		if r := g.Last.Reason; r != nil {
			w.Row("  ", "", "", "", "", "", r.Example())
		}
	}
	for _, list := range []struct {
		title string
		runs  []runs.Run
	}{{"SLOWEST", t.Slowest}, {"MOST EXPENSIVE", t.MostExpensive}, {"MOST TOKENS", t.Largest}} {
		fmt.Fprintf(w, "\n%s\n", list.title)
		for _, r := range list.runs[:min(len(list.runs), textRows)] {
			cost, tokens := theme.Unicode().Dash, theme.Unicode().Dash
			if u := triagesource.UsageOf(r); u != (ace.Usage{}) {
				cost, tokens = u.Cost(), ace.Count(triagesource.Tokens(r), "token")
			}
			w.Row("  "+nameOf(r), r.Age(now).Round(time.Millisecond), cost, tokens, r.Status)
		}
	}
	fmt.Fprintf(w, "\nPHASES (%s, %d of them read from histories, %d without times)\n",
		ace.Count(t.PhaseRuns, "run"), t.PhaseSampled, t.PhaseUnknown)
	for _, p := range t.Phases {
		fmt.Fprintf(w, "  %s\t%s\tp50 %.1f ms\tp95 %.1f ms\tmax %.1f ms\n",
			cli.SafeText(p.Phase), runsAndCalls(p), p.P50, p.P95, p.Max)
	}
	return w.Flush()
}

// runsAndCalls returns the number of runs of a phase, and of calls if a run has several.
func runsAndCalls(p triagesource.PhaseStat) string {
	if p.Calls > p.Runs {
		return ace.Count(p.Runs, "run") + ", " + ace.Count(p.Calls, "call")
	}
	return ace.Count(p.Runs, "run")
}

func nameOf(r runs.Run) string {
	return cmp.Or(r.TaskID, r.WorkflowID)
}
