package learning

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/ablation"
	"acescope/engine/learning/playbook"
	"acescope/engine/learning/stats"
	"acescope/sources/evaluations"
	"acescope/sources/experiments"
	"acescope/theme"
	"acescope/tui/widget"
)

// Bounds of a report. The rest is counted.
const (
	reportItems    = 200
	reportVersions = 40
	reportBullets  = 500
	reportPoints   = 600
	reportText     = 300 // bytes of an answer or bullet
)

//go:embed report.html
var reportSource string

var reportTemplate = template.Must(
	template.New("report").Funcs(template.FuncMap{"safe": cli.SafeText}).Parse(reportSource))

type ReportLine struct {
	ExperimentID string `json:"experiment_id"`
	File         string `json:"file"`
	Bytes        int    `json:"bytes" jsonschema:"size of the file"`
	Evaluations  int    `json:"evaluations" jsonschema:"evaluations in the report"`
	Bullets      int    `json:"bullets" jsonschema:"bullets in the report"`
}

func experimentReportCommand(a *cli.App) *cobra.Command {
	file := ""
	cmd := &cobra.Command{
		Use:   "report EXPERIMENT -o FILE",
		Short: "Write an experiment as one HTML file for readers without acescope",
		Long: "Write one HTML file with the settings, the learning curve, the evaluations with intervals and tests,\n" +
			"the items, the bullets with votes and effects, and the cost. It needs no other file, no network and no\n" +
			"script.",
		Example: "acescope experiment report finance-1 -o finance-1.html",
		RunE: func(cmd *cobra.Command, args []string) error {
			if file == "" {
				return cli.UsageError("name a file with -o FILE")
			}
			return experimentReport(a, cmd.Context(), args[0], file)
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "file to write, which is replaced at once")
	return cmd
}

func experimentReport(a *cli.App, ctx context.Context, id, file string) error {
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	s, group, err := experiments.ReadGroup(ctx, e.Client, id)
	if err != nil {
		return err
	}
	if group != nil {
		return cli.UsageError("%s is a group; write a report of one of its repeats, such as %s", id,
			ace.RepeatID(id, 1))
	}
	page := newReport(s, readBaseline(ctx, e.Artifacts, &s.Input))
	g := &evaluations.Grid{}
	if s.RunID != "" { // without a workflow, the experiment has only tasks
		if g, err = runs.ReadEvaluations(ctx, e, s.WorkflowID); err != nil {
			return err
		}
	}
	page.evaluations(g)
	if err := page.bullets(ctx, e, s, g); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := reportTemplate.Execute(&out, page); err != nil {
		return err
	}
	if err := cli.UpdateFile(file, out.Bytes()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	line := ReportLine{s.Name(), file, out.Len(), len(page.Versions), len(page.Bullets)}
	return cli.Report(a, line, "%s: %s, %s, %s", file, ace.Count(line.Bytes, "byte"),
		ace.Count(line.Evaluations, "evaluation"), ace.Count(line.Bullets, "bullet"))
}

// report is the data of the page.
type report struct {
	Name, Written  string
	Lines          []string // the experiment in a few lines
	Settings       []setting
	Notes          []string // deviations of the run from its plan, and missing information
	Curve          *chart
	HeldOut        *chart
	Versions       []reportVersion
	Columns        []int // numbers of the versions in the grid
	Items          []reportItem
	ItemsLeftOut   int
	Bullets        []reportBullet
	BulletsLeftOut int
	Version        string // of the playbook with the bullets
	Effects        bool   // an ablation measured them
	Cost           []setting
}

type setting struct{ Name, Value string }

type reportVersion struct {
	N                    int
	When, Playbook       string
	Correct, Labeled     int
	Accuracy, Cost, Test string
	Best                 bool
}

type reportItem struct {
	N                int
	Change           evaluations.Change
	Marks            []evaluations.Mark
	Answer, Expected string
}

// reportBullet is a bullet. Cited and Correct count the items of the last evaluation. Interval is that of the
// effect.
type reportBullet struct {
	ID, Section, Text string
	Helpful, Harmful  int
	Cited, Correct    int
	Effect, Interval  string
}

func newReport(s *experiments.Series, baseline *Baseline) *report {
	g := theme.Unicode()
	r := &report{Name: s.Name(), Written: time.Now().Format(time.DateTime)}
	for _, line := range seriesText(s, baseline, g) {
		r.Lines = append(r.Lines, strings.TrimSpace(line))
	}
	r.Settings, r.Notes = settingsOf(&s.Input), notesOf(s)
	t, usage := s.Totals(), s.Progress.Usage
	cost, tokens := s.CostInterval(), s.TokensInterval()
	r.Cost = []setting{
		{"Tasks and evaluations", usage.Cost()},
		{"Tokens", fmt.Sprintf("%d in, %d out", usage.InputTokens, usage.OutputTokens)},
		{"Cost per correct answer", widget.Quantity(t.CostPerCorrect, "USD", g) +
			widget.InParentheses(widget.Range(cost, "USD", g))},
		{"Tokens per correct answer", widget.Quantity(t.TokensPerCorrect, "", g) +
			widget.InParentheses(widget.Range(tokens, "", g))},
		{"Time per task", widget.Quantity(t.MeanDurationMS, "ms", g)},
	}
	r.Curve = learningCurve(s)
	return r
}

func settingsOf(in *ace.ExperimentInput) []setting {
	list := []setting{
		{"Data set", fmt.Sprintf("%s, %s, sha256 %.12s", in.DatasetID,
			ace.Count(in.Tasks, "task"), in.Dataset.SHA256)},
		{"Model", strings.TrimPrefix(in.Provider+" "+in.Model, " ")},
		{"Mode", fmt.Sprintf("%s, %s, %s at a time", in.Adapter, ace.Count(in.Epochs, "epoch"),
			ace.Count(max(in.Parallel, 1), "task"))},
		{"First playbook", cmp.Or(fmt.Sprintf("%.12s", in.PlaybookHash), "empty")},
	}
	add := func(name, value string) {
		if value != "" {
			list = append(list, setting{name, value})
		}
	}
	if in.Eval != nil {
		add("Evaluation", fmt.Sprintf("%s, %s, sha256 %.12s", in.EvalID, ace.Count(in.EvalTasks, "task"),
			in.Eval.SHA256))
	}
	if in.EvalEvery > 0 {
		add("Evaluated", "every "+ace.Count(in.EvalEvery, "task"))
	}
	if in.Window > 0 {
		add("Window", ace.Count(in.Window, "task"))
	}
	add("Grader", in.Grader)
	for _, phase := range ace.Steps() {
		add("Provider of "+string(phase), in.Steps[string(phase)])
	}
	add("Protocol", in.SettingsText())
	add("Tools", strings.Join(in.SkillsConfig.AllowedTools, ", "))
	if in.Shuffle != nil {
		add("Order", fmt.Sprintf("shuffled with seed %d", in.Shuffle.Seed))
	}
	if in.Repeats > 0 {
		add("Repeat", fmt.Sprintf("%d of %d of %s", in.Repeat, in.Repeats, in.Group))
	}
	return list
}

// notesOf returns the deviations of a run from its plan, and what could not be read.
func notesOf(s *experiments.Series) (notes []string) {
	add := func(text string) {
		if text != "" {
			notes = append(notes, text)
		}
	}
	p := &s.Progress
	if n, planned := s.Totals().Tasks, p.TotalTasks*p.TotalEpochs; n < planned {
		add(ace.Number(n) + " of " + ace.Count(planned, "planned task") + " executed.")
	}
	if failed, _ := p.Failed(); failed > 0 {
		add(ace.Count(failed, "task") + " failed; they count as without a correct answer.")
	}
	add(p.Stopped)
	if s.Failure != nil {
		add("The experiment failed: " + s.Failure.Message)
	}
	if s.Dropped > 0 {
		add(ace.Count(s.Dropped, "later task") + " counted but not plotted.")
	}
	add(s.Err)
	add(s.Note)
	if s.Input.Preset != "" {
		for _, deviation := range s.Input.PaperDeviations() {
			add("From " + s.Input.Preset + ": " + deviation + ".")
		}
	}
	return notes
}

// evaluations adds the evaluations, the grid of their items, and the curve of the accuracy on them.
func (r *report) evaluations(g *evaluations.Grid) {
	if len(g.Versions) == 0 {
		return
	}
	glyphs := theme.Unicode()
	best := g.Best()
	for i, v := range g.Versions {
		row := reportVersion{
			N: i, When: evaluations.When(v.EvalResult), Playbook: fmt.Sprintf("%.12s", v.Playbook),
			Correct: v.Correct, Labeled: v.Labeled(), Cost: v.Usage.Cost(), Best: i == best,
			Accuracy: accuracy(v.Correct, v.Labeled(), glyphs) +
				widget.MeanScore(g.Input.MeanScore(v.Score, v.Labeled())),
		}
		if i > 0 {
			if since := experiments.Between(g.Versions[i-1].EvalResult, v.EvalResult); since != nil {
				row.Test = since.Change()
			}
		}
		r.Versions = append(r.Versions, row)
	}
	r.HeldOut = heldOutCurve(g)
	first := max(len(g.Versions)-reportVersions, 0)
	for n := first; n < len(g.Versions); n++ {
		r.Columns = append(r.Columns, n)
	}
	last := g.Versions[len(g.Versions)-1]
	for i, row := range g.Rows {
		if i == reportItems {
			r.ItemsLeftOut = len(g.Rows) - i
			break
		}
		item := reportItem{N: row.Index + 1, Change: row.Change, Marks: row.Marks[first:]}
		if answered := last.Item(row.Index); answered != nil {
			item.Answer = ace.Cut(answered.Answer, reportText)
			if answered.Label != nil {
				item.Expected = ace.Cut(*answered.Label, reportText)
			}
		}
		r.Items = append(r.Items, item)
	}
}

// bullets adds the bullets of the last playbook, with the effects if an ablation measured them.
func (r *report) bullets(ctx context.Context, e *engine.Engine, s *experiments.Series,
	g *evaluations.Grid) error {
	hash := cmp.Or(s.Progress.After, s.Input.PlaybookHash)
	if hash == "" {
		return nil
	}
	book, err := e.Books.Get(ctx, hash)
	if errors.Is(err, playbook.ErrNotFound) {
		r.Notes = append(r.Notes, "The playbook is not in the store: "+err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	r.Version = fmt.Sprintf("%.12s", hash)
	effects := map[string]ablation.Effect{}
	if g.Progress.Ablation != nil && g.Input.Ablation != nil {
		list, _, err := g.Effects(ctx, e.Books, e.Artifacts.Get)
		if err != nil && !errors.Is(err, ablation.ErrNoItems) {
			return err
		}
		for _, effect := range list {
			if effect.Kind == ace.TrialBullet && effect.Difference != nil {
				effects[effect.Name] = effect
			}
		}
	}
	r.Effects = len(effects) > 0
	cited := citations(g)
	for i, b := range book.Bullets {
		if i == reportBullets {
			r.BulletsLeftOut = len(book.Bullets) - i
			break
		}
		row := reportBullet{ID: b.ID, Section: b.Section, Text: ace.Cut(b.Content, reportText),
			Helpful: b.Helpful, Harmful: b.Harmful, Cited: cited[b.ID][0], Correct: cited[b.ID][1]}
		if x, ok := effects[b.ID]; ok {
			row.Effect = widget.Points(*x.Difference)
			row.Interval = widget.Points(*x.Low) + " to " + widget.Points(*x.High)
		}
		r.Bullets = append(r.Bullets, row)
	}
	return nil
}

// citations counts by bullet the items of the last evaluation that cited it, and the correct ones of them.
func citations(g *evaluations.Grid) map[string][2]int {
	counts := map[string][2]int{}
	if len(g.Versions) == 0 {
		return counts
	}
	for _, item := range g.Versions[len(g.Versions)-1].Items {
		ids := slices.Clone(item.BulletIDs)
		slices.Sort(ids)
		for _, id := range slices.Compact(ids) {
			c := counts[id]
			c[0]++
			if item.Correct != nil && *item.Correct {
				c[1]++
			}
			counts[id] = c
		}
	}
	return counts
}

// chart is a curve of a rate with its intervals, in the coordinates of an SVG image of chartWidth by
// chartHeight.
type chart struct {
	Title, XLabel, First, Last string
	Line, Band                 string // points of a polyline and a polygon
	Marks                      []chartMark
	Grid                       []chartGrid
}

// chartMark is a value with its interval.
type chartMark struct {
	X, Y, Low, High float64
	Text            string
	Best            bool
}

// chartGrid is a horizontal line at a rate.
type chartGrid struct {
	Y    float64
	Text string
}

// The area of a chart in its image.
const (
	chartLeft, chartRight = 48.0, 704.0
	chartTop, chartBottom = 12.0, 212.0
)

func chartY(rate float64) float64 {
	return math.Round(10*(chartBottom-rate*(chartBottom-chartTop))) / 10
}

// chartX returns the position of value i of n.
func chartX(i, n int) float64 {
	if n < 2 {
		return (chartLeft + chartRight) / 2
	}
	return math.Round(10*(chartLeft+float64(i)/float64(n-1)*(chartRight-chartLeft))) / 10
}

func newChart(title, x, first, last string) *chart {
	c := &chart{Title: title, XLabel: x, First: first, Last: last}
	for _, percent := range []int{0, 25, 50, 75, 100} {
		c.Grid = append(c.Grid, chartGrid{chartY(float64(percent) / 100), fmt.Sprint(percent, "%")})
	}
	return c
}

// learningCurve returns the rolling accuracy over the tasks, nil without graded tasks.
func learningCurve(s *experiments.Series) *chart {
	rates, bands := s.Accuracy(experiments.DefaultWindow), s.AccuracyIntervals(experiments.DefaultWindow)
	n := len(rates)
	c := newChart(fmt.Sprintf("Accuracy of the last %d tasks", experiments.DefaultWindow), "tasks", "1",
		fmt.Sprint(n))
	var line, upper, lower []string
	for i := 0; i < n; i += max(n/reportPoints, 1) {
		if math.IsNaN(rates[i]) {
			continue
		}
		x := chartX(i, n)
		line = append(line, fmt.Sprintf("%g,%g", x, chartY(rates[i])))
		upper = append(upper, fmt.Sprintf("%g,%g", x, chartY(bands[i].High)))
		lower = append(lower, fmt.Sprintf("%g,%g", x, chartY(bands[i].Low)))
	}
	if len(line) == 0 {
		return nil
	}
	slices.Reverse(lower)
	c.Line, c.Band = strings.Join(line, " "), strings.Join(append(upper, lower...), " ")
	return c
}

// heldOutCurve returns the accuracy of the evaluations, nil without labels.
func heldOutCurve(g *evaluations.Grid) *chart {
	n := len(g.Versions)
	c := newChart("Accuracy of the evaluations", "evaluations", "0", fmt.Sprint(n-1))
	var line []string
	best := g.Best()
	for i, v := range g.Versions {
		if v.Labeled() == 0 {
			continue
		}
		x, rate, interval := chartX(i, n), stats.Share(v.Correct, v.Labeled()),
			stats.Wilson(v.Correct, v.Labeled())
		line = append(line, fmt.Sprintf("%g,%g", x, chartY(rate)))
		text := accuracy(v.Correct, v.Labeled(), theme.Unicode())
		c.Marks = append(c.Marks, chartMark{x, chartY(rate), chartY(interval.Low), chartY(interval.High),
			fmt.Sprintf("%d, %s: %s", i, evaluations.When(v.EvalResult), text), i == best})
	}
	if len(line) == 0 {
		return nil
	}
	c.Line = strings.Join(line, " ")
	return c
}
