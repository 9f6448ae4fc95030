package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/learning"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/compare"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/historyfile"
	"acescope/sources/cluster"
	rundiff "acescope/sources/diff"
	"acescope/sources/experiments"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/widget"
)

type diffFlags struct {
	allFields bool
	only      rundiff.Only
	stat      bool
}

const diffHelp = `Compares two runs. It aligns their steps by activity, tool call or child workflow and by input,
and reports the first difference, the changes of each payload by JSON path, and the metrics. A and B are
  a task or a workflow ID        the newest run and the runs that it continues
  ID@RUN                         the run with this run ID alone
  FILE, FILE#2                   an exported history, the second history of a file; - is standard input
  two experiments                compared task by task, like "experiment compare", with both runs of each task
  playbook:REF playbook:REF      two playbooks, compared like "playbook diff"
A name that is a file on disk means the file; ace/TASK always means the task.

By default it ignores what differs between any two runs: IDs, times, durations, attempts, workers, results of
side effects (docs/reference/json.md lists them); --all-fields compares them too. The exit code is 0 if there is no
difference, 4 if there is, and 3 if A or B is not found.`

func DiffCommand(a *cli.App) *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff RUN|EXPERIMENT|FILE RUN|EXPERIMENT|FILE",
		Short: "Compare two runs, two experiments or two playbooks; exits with 4 if they differ",
		Long:  diffHelp,
		Example: "acescope diff plain-e1-0004 tuned-e1-0004\n" +
			"acescope diff before.json after.json --only changed\n" +
			"acescope diff plain tuned --json | jq -r 'select(.type == \"flip\") | .diff'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return diff(a, cmd.Context(), args[0], args[1], f)
		},
	}
	cmd.Flags().BoolVar(&f.allFields, "all-fields", false, "also compare IDs, times, durations and attempts")
	cmd.Flags().StringVar((*string)(&f.only), "only", "",
		"write only steps that changed, or whose input or result changed: changed, input, result")
	cmd.Flags().BoolVar(&f.stat, "stat", false, "write the result without the steps")
	cmd.MarkFlagsMutuallyExclusive("stat", "only")
	return cmd
}

var diffOnly = []rundiff.Only{rundiff.Every, rundiff.OnlyChanged, rundiff.OnlyInput, rundiff.OnlyResult}

// playbookPrefix marks a name as a playbook's.
const playbookPrefix = "playbook:"

func diff(a *cli.App, ctx context.Context, nameA, nameB string, f diffFlags) error {
	playbookA, isPlaybookA := strings.CutPrefix(nameA, playbookPrefix)
	playbookB, isPlaybookB := strings.CutPrefix(nameB, playbookPrefix)
	switch {
	case !slices.Contains(diffOnly, f.only):
		return cli.UsageError("--only %q: use changed, input or result", f.only)
	case isPlaybookA != isPlaybookB:
		return cli.UsageError("cannot compare a playbook with a run: write %s before both names",
			playbookPrefix)
	case isPlaybookA && f != diffFlags{}:
		return cli.UsageError("--all-fields, --only and --stat are for runs")
	case isPlaybookA:
		return learning.DiffPlaybooks(a, ctx, playbookA, playbookB)
	case nameA == "-" && nameB == "-":
		return cli.UsageError("only one side can be standard input")
	}
	sides, err := diffSides(nameA, nameB)
	if err != nil {
		return err
	}
	var e *engine.Engine
	if sides[0].file == "" || sides[1].file == "" {
		if e, err = a.OpenReadOnly(ctx); err != nil {
			return err
		}
	}
	for _, s := range sides {
		if err := s.find(ctx, e); err != nil {
			return err
		}
	}
	if sides[0].experiment && sides[1].experiment {
		return diffExperiments(a, ctx, e, sides, f)
	}
	for _, s := range sides {
		if err := s.read(a, ctx, e); err != nil {
			return err
		}
	}
	result := compare.Of(sides[0].Side, sides[1].Side, compare.Options{AllFields: f.allFields})
	if err := writeDiff(a, result, sides, f); err != nil || !result.Differs() {
		return err
	}
	different := 0
	for status, n := range result.Counts {
		if compare.Differs(status) {
			different += n
		}
	}
	return cli.Diverged("%s and %s differ in %s of %s", sides[0].name, sides[1].name, ace.Number(different),
		ace.Count(len(result.Pairs), "step"))
}

// diffSide is one side of a comparison.
type diffSide struct {
	name       string
	file       string // "" for a run on the server
	number     int    // 1-based number of the history in the file
	workflowID string
	runID      string // "" for the newest run and the runs that it continues
	experiment bool
	compare.Side
}

func diffSides(names ...string) (sides [2]*diffSide, err error) {
	for i, name := range names {
		path, number, err := cli.SplitHistoryName(name)
		if err != nil {
			return sides, err
		}
		sides[i] = &diffSide{name: name, number: max(number, 1)}
		if cli.IsHistoryFile(path) {
			sides[i].file = path
		}
	}
	return sides, nil
}

// find finds the run of a side on the server.
func (s *diffSide) find(ctx context.Context, e *engine.Engine) error {
	if s.file != "" {
		return nil
	}
	_, s.runID = runs.SplitName(s.name)
	r, err := runs.Resolve(ctx, e.Client, s.name)
	info := r.GetWorkflowExecutionInfo()
	s.workflowID = info.GetExecution().GetWorkflowId()
	s.experiment = s.runID == "" && info.GetType().GetName() == ace.ExperimentWorkflow
	return err
}

// read reads the history of a side with those of the runs that it continues.
func (s *diffSide) read(a *cli.App, ctx context.Context, e *engine.Engine) error {
	if s.file != "" {
		return s.readFile(a, ctx)
	}
	alone := s.runID != ""
	chain, err := cluster.ReadChain(ctx, e.Client, e.Namespace(), s.workflowID, s.runID, alone, nil)
	s.Side = histories.DiffSide(ctx, chain, e.Artifacts.Get)
	return err
}

// readFile reads a history of a file and the following histories that continue it.
func (s *diffSide) readFile(a *cli.App, ctx context.Context) error {
	list := cli.ReadHistories(a, ctx, s.file)
	readErr := list[len(list)-1].ReadErr
	var truncated *historyfile.Error
	switch {
	case readErr != nil && (!errors.As(readErr, &truncated) || len(list[0].Events) == 0):
		return readErr
	case s.number > len(list) && readErr == nil:
		return cli.NotFound("%s holds %s: there is no number %d", s.file, ace.Count(len(list), "history"),
			s.number)
	case s.number > len(list):
		return fmt.Errorf("%s: history %d cannot be read: %w", s.file, s.number, readErr)
	}
	unread, next := 0, ""
	for _, h := range list[s.number-1:] {
		if len(h.Events) == 0 || len(s.Runs) > 0 && (next == "" || cli.RunIDOf(h.Events) != next) {
			break
		}
		s.Runs = append(s.Runs, h.Events)
		next = history.OriginOf(h.Events).Next
		unread += len(h.Unread)
		if truncated != nil && h.ReadErr != nil {
			s.Partial = truncated.Error()
		}
	}
	if unread > 0 && s.Partial == "" {
		s.Partial = "this version cannot read " + ace.Number(unread) + " of its events"
	}
	if get := cli.FileArtifacts(a); get != nil {
		s.Artifact = func(ref ace.Ref) ([]byte, error) { return get(ctx, ref, histories.ArtifactLimit) }
	}
	return nil
}

type RunDiffLine struct {
	SideA diffSideLine `json:"a"`
	SideB diffSideLine `json:"b"`
	Same  bool         `json:"same" jsonschema:"whether no step differs"`
	*compare.Diff
	Ignored *compare.Ignored `json:"ignored,omitempty" jsonschema:"fields and steps that were left out"`
}

type diffSideLine struct {
	Name    string `json:"name" jsonschema:"as given"`
	File    string `json:"file,omitempty"`
	History int    `json:"history,omitempty"` // 1-based, in the file
	compare.About
}

// PairLine is a step of both runs, or of one.
type PairLine struct {
	Number int    `json:"pair" jsonschema:"number, from 1"`
	Kind   string `json:"kind" jsonschema:"kind of step"`
	Name   string `json:"name"`
	Key    string `json:"step" jsonschema:"kind, name and number"`
	compare.Pair
}

func writeDiff(a *cli.App, d *compare.Diff, sides [2]*diffSide, f diffFlags) error {
	if !a.JSON {
		width, styles, paint := a.Canvas()
		return a.Print(diffText(d, sides, f, width, styles), paint)
	}
	out := cli.NewLines(a)
	for _, status := range compare.Statuses() {
		d.Counts[status] += 0 // the JSON has all statuses
	}
	d.Notes = append([]string{}, d.Notes...)
	l := RunDiffLine{SideA: sides[0].line(d.A), SideB: sides[1].line(d.B), Same: !d.Differs(), Diff: d}
	if !d.All {
		ignored := compare.WhatIsIgnored()
		l.Ignored = &ignored
	}
	out.Line(l, "")
	for i := range d.Pairs {
		p := d.Pairs[i]
		if f.stat || !f.only.Shows(&p) {
			continue
		}
		s := p.Step()
		input, result := p.Input, p.Result
		p.Input, p.Result = []compare.Change{}, []compare.Change{}
		if f.only != rundiff.OnlyResult {
			p.Input = append(p.Input, input...)
		}
		if f.only != rundiff.OnlyInput {
			p.Result = append(p.Result, result...)
		}
		out.Line(PairLine{i + 1, s.Kind, s.Name, s.Key, p}, "")
	}
	return out.Flush()
}

func (s *diffSide) line(about compare.About) diffSideLine {
	l := diffSideLine{Name: s.name, File: s.file, About: about}
	if s.file != "" {
		l.History = s.number
	}
	l.RunIDs = append([]string{}, l.RunIDs...)
	return l
}

// DiffFlip is a task whose verdict flipped, with its run in both experiments.
type DiffFlip struct {
	experiments.Pair
	WorkflowA string `json:"workflow_a" jsonschema:"workflow in A"`
	WorkflowB string `json:"workflow_b" jsonschema:"workflow in B"`
	Diff      string `json:"diff"` // command that compares the two runs
}

// diffExperiments compares two experiments task by task.
func diffExperiments(a *cli.App, ctx context.Context, e *engine.Engine, sides [2]*diffSide,
	f diffFlags) error {
	if f.allFields || f.only == rundiff.OnlyInput || f.only == rundiff.OnlyResult {
		return cli.UsageError("experiments are compared task by task: " +
			"--all-fields, --only input and --only result are for runs (ID@RUN)")
	}
	var series [2]*experiments.Series
	for i, s := range sides {
		var err error
		if series[i], err = experiments.ReadSeries(ctx, e.Client, s.workflowID); err != nil {
			return err
		}
	}
	c := experiments.Compare(series[0], series[1])
	if err := writeComparison(a, c, f.stat); err != nil {
		return err
	}
	fixed, broken := c.Counts[experiments.FlipFixed], c.Counts[experiments.FlipBroken]
	if fixed+broken+c.OnlyA+c.OnlyB == 0 {
		return nil
	}
	return cli.Diverged("%s and %s differ: %s fixed, %d broken, %d only in A, %d only in B",
		c.A.Name(), c.B.Name(), ace.Count(fixed, "task"), broken, c.OnlyA, c.OnlyB)
}

// writeComparison writes a comparison and, unless stat is set, its flips.
func writeComparison(a *cli.App, c *experiments.Comparison, stat bool) error {
	err := cli.Show(a, learning.ComparisonOf(c), func() error {
		width, styles, paint := a.Canvas()
		return a.Print(append(learning.ComparisonText(c, width, styles), "", learning.FlipCounts(c)), paint)
	})
	if err != nil || stat {
		return err
	}
	flips := cli.Mapped(learning.FlipsOf(c, false), func(p experiments.Pair) DiffFlip {
		a, b := p.A.TaskID, p.B.TaskID
		return DiffFlip{p, ace.WorkflowID(a), ace.WorkflowID(b), shellquote.Join("acescope", "diff", a, b)}
	})
	return cli.WriteRows(a, flips, "", func(l DiffFlip) []any {
		return []any{l.Flip, l.A.Answer, l.B.Answer, l.Diff}
	})
}

// diffText returns a comparison of two runs as painted lines: the summary, the selected pairs with their
// changes unless stat is set, and the metrics.
func diffText(d *compare.Diff, sides [2]*diffSide, f diffFlags, width int, s theme.Styles) []string {
	w := &diffWriter{only: f.only}
	w.Writer = widget.Writer{Doc: &widget.Document{}, S: s, Width: width, Now: time.Now(), Loc: time.Local}
	for i, a := range []*compare.About{&d.A, &d.B} {
		name := cli.SafeText(sides[i].name + "  " + a.Status)
		w.End(w.Line().Add(s.Muted, " "+"AB"[i:i+1]+" ").Add(s.Strong, name).
			Add(s.Muted, "  "+cli.SafeText(rundiff.About(a))))
	}
	for _, line := range rundiff.First(d) {
		w.Prose(" ", s.Text, line)
	}
	for _, note := range d.Notes {
		w.Prose(" ", s.Warning, note)
	}
	w.Say(s.Muted, " "+rundiff.Counts(d))
	w.Say(s.Text, "")
	if !f.stat {
		w.pairs(d)
		w.Say(s.Text, "")
	}
	var metrics []widget.Metric
	for _, m := range d.Metrics {
		metrics = append(metrics, widget.Metric(m))
	}
	w.Metrics(metrics)
	return w.Lines
}

type diffWriter struct {
	widget.Writer
	only rundiff.Only
}

// pairs writes the selected pairs. Many equal pairs in a row become one line.
func (w *diffWriter) pairs(d *compare.Diff) {
	for i := 0; i < len(d.Pairs); i++ {
		p := &d.Pairs[i]
		if !w.only.Shows(p) {
			continue
		}
		n := rundiff.EqualFrom(d, i)
		if n < rundiff.FoldFrom {
			w.pair(p)
			continue
		}
		keys := p.Step().Key + " " + w.S.Glyphs.Ellipsis + " " + d.Pairs[i+n-1].Step().Key
		w.Say(w.S.Muted, cli.SafeText(" = "+ace.Count(n, "equal step")+": "+keys))
		i += n - 1
	}
}

func (w *diffWriter) pair(p *compare.Pair) {
	s, g := w.S, w.S.Glyphs
	glyph, ink := "=", s.Muted
	switch p.Status {
	case compare.Changed:
		glyph, ink = g.Updated, s.Updated
	case compare.OnlyA:
		glyph, ink = g.Removed, s.Removed
	case compare.OnlyB:
		glyph, ink = g.Added, s.Added
	case compare.Moved, compare.NotReached, compare.Unreadable:
		glyph, ink = g.Unknown, s.Warning
	}
	duration := func(x *compare.Step) string {
		if x.Taken {
			return "reused"
		}
		return widget.Milliseconds(x.DurationMS, g)
	}
	word := rundiff.StatusWord(p.Status)
	w.End(w.Line().Add(ink, " "+glyph+" "+word).Pad(s.Text, rundiff.StatusWidth+4).
		Add(s.Text, cli.SafeText(p.Step().Key)).
		Add(s.Muted, "  "+g.Replace(rundiff.Facts(p, duration))))
	if w.only != rundiff.OnlyResult {
		w.changes("input", p.Input)
	}
	if w.only != rundiff.OnlyInput {
		w.changes("result", p.Result)
	}
	a, b := rundiff.Errors(p)
	w.value(g.Removed+" error: ", s.Removed, a)
	w.value(g.Added+" error: ", s.Added, b)
	for _, line := range rundiff.Rest(p) {
		w.Prose("    ", s.Muted, line)
	}
}

// changes writes changes by path, both values below each other.
func (w *diffWriter) changes(what string, list []compare.Change) {
	for _, c := range list {
		path := c.Path
		if path == "" {
			path = "(root)"
		}
		w.End(w.Line().Add(w.S.Strong, "    "+what).Add(w.S.Accent, " "+cli.SafeText(path)))
		a, _ := widget.ValueText(c.A)
		b, _ := widget.ValueText(c.B)
		w.value(w.S.Glyphs.Removed+" ", w.S.Removed, a)
		w.value(w.S.Glyphs.Added+" ", w.S.Added, b)
		if c.Cut {
			w.Say(w.S.Muted, "      (only the beginning)")
		}
	}
}

// value writes a value unless it is missing.
func (w *diffWriter) value(label string, ink theme.Ink, value string) {
	if value != "" {
		w.Spans("      "+label, ink, []widget.Span{{Ink: ink, Text: value}})
	}
}
