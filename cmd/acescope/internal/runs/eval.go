package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/evaluations"
	"acescope/sources/experiments"
	"acescope/sources/runs"
)

func EvalCommand(a *cli.App) *cobra.Command {
	f := evalOnly()
	cmd := &cobra.Command{
		Use:   "eval --playbook PLAYBOOK --dataset FILE",
		Short: "Measure a playbook on a data set without learning, or show the evaluations of an experiment",
		Long: "Answers the tasks of a data set with a playbook, learns nothing, and keeps for each item the answer, the plan,\n" +
			"the bullets cited, the tool calls, tokens, cost, verdict and the requests to the model. It is an experiment\n" +
			"without epochs: it continues after an interruption without repeating an item, and is listed and compared\n" +
			"like one.\n\n" + exitHelp,
		Example: "acescope eval --playbook finance-1 --dataset held-out.jsonl\n" +
			"acescope eval show finance-1\n" +
			"acescope eval show finance-1 --item 17",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.dataset == "" {
				return cli.UsageError("--dataset FILE is missing")
			}
			return runTasks(a, cmd.Context(), "", f)
		},
	}
	f.addEvalFlags(a, cmd)
	cmd.Flags().Uint32Var(&f.seed, "seed", 0, "seed of the models, where their API has one")
	cmd.Flags().StringVar(&f.playbook, "playbook", "", "playbook to measure (default: empty)")
	cmd.AddCommand(evalShowCommand(a))
	return cmd
}

// addEvalFlags adds the flags of commands that answer a data set without learning.
func (f *runFlags) addEvalFlags(a *cli.App, cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.dataset, "dataset", "", "data set to answer")
	fs.StringVar(&f.ExperimentID, "experiment", "", "ID of the evaluation (default: data set and time)")
	f.addProviderFlags(a, fs)
	fs.IntVar(&f.limit, "limit", 0, "use only the first N tasks of the data set (default all)")
	fs.IntVar(&f.Parallel, "parallel", 1, "maximum number of parts, of 25 tasks, that run at the same time")
	fs.StringSliceVar(&f.SkillsConfig.AllowedTools, "allow-tool", nil,
		"tools that the skills phase may call (default all)")
	cli.ProgramFlags(a, fs)
	fs.BoolVar(&f.detach, "detach", false, "start it and return; a background process executes it")
	MustComplete(cmd, "phase", completeKeys(a, nil, ""))
}

func evalShowCommand(a *cli.App) *cobra.Command {
	var f struct {
		item int
		all  bool
		data string
	}
	cmd := &cobra.Command{
		Use:   "show EXPERIMENT|BRANCH",
		Short: "Show the evaluations of an experiment or of an imported branch item by item",
		Long: "Shows the items of an experiment's evaluations with the verdict of each playbook version: first those that\n" +
			"are wrong now and were correct before. With --item, how each version answered one item. A branch that\n" +
			"\"acescope import\" created has the evaluations of its files, on one data set at a time (--data).",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showEvaluations(a, cmd.Context(), args[0], f.data, f.item, f.all)
		},
	}
	cmd.Flags().IntVar(&f.item, "item", 0, "how each version answered the item with this number, from 1")
	cmd.Flags().StringVar(&f.data, "data", "",
		"of an imported branch: the data set, such as validation or test (default: that with the most evaluations)")
	cmd.Flags().BoolVar(&f.all, "all", false, "also list the items that every version answered correctly")
	return cmd
}

type EvalVersionLine struct {
	ExperimentID string `json:"experiment_id"`
	Version      int    `json:"version"` // its place in the list, from 0
	cli.EvalLine
	Best bool `json:"best,omitempty"`
	// Since compares it with the version before, nil for the first.
	Since *experiments.Paired `json:"since_previous,omitempty"`
}

type EvalItemLine struct {
	ExperimentID string             `json:"experiment_id"`
	Item         int                `json:"item"` // in the data set, from 1
	Change       evaluations.Change `json:"change"`
	Verdicts     []evaluations.Mark `json:"verdicts"` // by version
}

// EvalAnswerLine is the answer of a version to an item.
type EvalAnswerLine struct {
	ExperimentID string `json:"experiment_id"`
	Item         int    `json:"item"`
	Version      int    `json:"version"`
	Playbook     string `json:"playbook"`
	ace.EvalItem
}

func showEvaluations(a *cli.App, ctx context.Context, name, data string, item int, all bool) error {
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	g, err := ReadEvaluations(ctx, e, name)
	if missing := err; missing != nil {
		var names []string
		if g, names, err = evaluations.Imported(e.Books, name, data); err != nil {
			return missing
		}
		if len(g.Versions) == 0 && len(names) > 0 {
			return cli.NotFound("branch %s has no evaluation on %q, but on: %s", name, data,
				strings.Join(names, ", "))
		}
	}
	switch {
	case len(g.Versions) == 0:
		return cli.NotFound("%s has no complete evaluation; start experiments with --eval FILE, "+
			"or use \"acescope eval\"", name)
	}
	p := &evalPage{cli.NewLines(a), g}
	if item != 0 {
		return p.item(item)
	}
	p.versions()
	p.items(all)
	return p.Flush()
}

func ReadEvaluations(ctx context.Context, e *engine.Engine, name string) (*evaluations.Grid, error) {
	run, err := runs.Resolve(ctx, e.Client, name)
	if repeats := repeatsIn(ctx, e.Client, name, err); len(repeats) > 0 {
		return nil, cli.UsageError("%s is a group; name one of its repeats, such as %s", name, repeats[0])
	}
	if errors.Is(err, runs.ErrNotFound) {
		_, missing := experiments.Resolve(ctx, e.Client, name)
		return nil, cmp.Or(missing, err)
	}
	if err != nil {
		return nil, err
	}
	exec := run.GetWorkflowExecutionInfo().GetExecution()
	if run.GetWorkflowExecutionInfo().GetType().GetName() != ace.ExperimentWorkflow {
		return nil, cli.UsageError("%s is not an experiment", name)
	}
	deps := cluster.Deps{Client: e.Client, Artifact: e.Artifacts.Get}
	return evaluations.Read(ctx, deps, e.Namespace(), exec.GetWorkflowId(), exec.GetRunId())
}

type evalPage struct {
	*cli.Lines
	*evaluations.Grid
}

func (p *evalPage) versions() {
	best := p.Best()
	for i, v := range p.Versions {
		mark := ""
		if i == best {
			mark = "  best"
		}
		var since *experiments.Paired
		if i > 0 {
			since = experiments.Between(p.Versions[i-1].EvalResult, v.EvalResult)
		}
		line := cli.EvalLines(&p.Input, []ace.EvalResult{v.EvalResult})[0]
		p.Line(EvalVersionLine{p.Input.ExperimentID, i, line, i == best, since},
			"%3d  %-22s %.12s  %d of %d correct%s  %s%s", i, evaluations.When(v.EvalResult), v.Playbook,
			v.Correct,
			v.Labeled(), accuracyText(&p.Input, v.Correct, v.Labeled(), v.Score), v.Usage.Cost(), mark)
		if since != nil && !p.JSON {
			p.Printf("     %s", since.Change())
		}
	}
}

// marks are the verdicts in the grid.
var marks = map[evaluations.Mark]string{evaluations.Correct: "+", evaluations.Wrong: "x",
	evaluations.Failed: "!", evaluations.Unknown: "."}

func (p *evalPage) items(all bool) {
	if !p.JSON {
		p.Printf("")
	}
	hidden := 0
	var change evaluations.Change
	for _, r := range p.Rows {
		if !p.JSON && !all && r.Change == evaluations.AlwaysRight {
			hidden++
			continue
		}
		if !p.JSON && r.Change != change {
			change = r.Change
			p.Printf("%s:", change)
		}
		var cells strings.Builder
		for _, m := range r.Marks {
			cells.WriteString(marks[m])
		}
		p.Line(EvalItemLine{p.Input.ExperimentID, r.Index + 1, r.Change, r.Marks},
			"%6d  %s  %s", r.Index+1, cells.String(), p.answer(r.Index))
	}
	if hidden > 0 {
		p.Printf("%s answered correctly by every version; --all lists them", ace.Count(hidden, "item"))
	}
	if last := p.Versions[len(p.Versions)-1]; last.Failed > 0 && p.Progress.TotalEpochs == 0 && !p.JSON {
		p.Printf("%s failed; the same \"acescope eval\" with --experiment %s answers only them",
			ace.Count(last.Failed, "item"), p.Input.ExperimentID)
	}
	if len(p.Rows) == 0 && !p.JSON {
		p.Printf("The workers kept no items.")
	}
}

// answer returns the last answer to an item and the expected one.
func (p *evalPage) answer(index int) string {
	item := p.Versions[len(p.Versions)-1].Item(index)
	if item == nil {
		return ""
	}
	if item.Error != "" {
		return "failed: " + shortText(item.Error)
	}
	answer := shortText(item.Answer)
	if item.Label != nil && (item.Correct == nil || !*item.Correct) {
		answer += ", expected " + shortText(*item.Label)
	}
	return answer
}

func shortText(s string) string { return ace.OneLine(s, 40) }

// item writes how each version answered an item.
func (p *evalPage) item(number int) error {
	found := false
	for i := range p.Versions {
		v := &p.Versions[i]
		item := v.Item(number - 1)
		if item == nil {
			continue
		}
		found = true
		p.Line(EvalAnswerLine{p.Input.ExperimentID, number, i, v.Playbook, *item},
			"%d  %s, playbook %.12s", i, evaluations.When(v.EvalResult), v.Playbook)
		if p.JSON {
			continue
		}
		page := &page{p.Lines}
		verdict := "without a label"
		if item.Correct != nil {
			verdict = map[bool]string{true: string(ace.Correct), false: string(ace.Wrong)}[*item.Correct]
		}
		if item.Error != "" {
			verdict = string(ace.Failed)
		}
		page.text("answer", item.Answer+" ("+verdict+")")
		page.text("error", item.Error)
		page.text("reason", item.GradeReason)
		if item.Label != nil {
			page.text("expected", *item.Label)
		}
		if item.Score != nil && p.Input.PartialCredit() {
			page.field("score", "%.3f", *item.Score)
		}
		page.text("plan", item.Plan)
		page.text("cited", strings.Join(item.BulletIDs, " "))
		for _, call := range item.ToolCalls {
			page.text("called", fmt.Sprintf("%s %s → %s", call.Name, call.Args, call.Result))
		}
		if item.Usage != nil {
			page.field("usage", "%s, %s", ace.Count(item.Usage.Tokens(), "token"), item.Usage.Cost())
		}
		if item.Calls != nil {
			page.field("requests",
				"%s to models on record: \"acescope prompts %s --item %d --phase 'evaluation %d'\"",
				ace.Count(item.Calls.Requests, "request"), p.Input.ExperimentID, number, i)
		}
	}
	if !found {
		return cli.NotFound("no evaluation of %s has an item %d", p.Input.ExperimentID, number)
	}
	return p.Flush()
}
