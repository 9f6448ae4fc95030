// Package runs holds the commands that start, list, show, follow and stop runs.
package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/learning/dataset"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
	"acescope/engine/temporal/fork"
)

// RunFlags are the flags of acescope run.
type RunFlags struct {
	Dataset, Eval, Experiment, Provider, model string
	playbook, Adapter                          string
	Epochs, limit, Parallel, window            int
	tools, steps                               []string
	served                                     map[string]string // steps, read
	permission                                 string
	detach                                     bool
	Pace                                       time.Duration
}

func RunCommand(a *cli.App) *cobra.Command {
	var f RunFlags
	cmd := &cobra.Command{
		Use:   "run [PROMPT]",
		Short: "Run one task, or an experiment over a data set",
		Long: "Run one task, or with --dataset an experiment: the tasks of the data set one after the other, the playbook\n" +
			"learning from each. A data set is a file of JSON lines {\"context\": …, \"target\": …}. An interrupted run is kept:\n" +
			"it goes on when acescope runs on the same data directory again; acescope cancel ends it.",
		Example: "acescope run --dataset train.jsonl --eval held-out.jsonl --experiment finance-1\n" +
			"acescope run \"Use formula Current Ratio …\" --playbook best.txt --json\n" +
			"acescope run --dataset train.jsonl --step curator=blueprint:my-curator --agents-dir ~/agents",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			prompt := ""
			if len(args) == 1 {
				prompt = args[0]
			}
			return runTasks(a, cmd.Context(), prompt, f)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.Dataset, "dataset", "", "data set to learn from")
	fs.StringVar(&f.Eval, "eval", "", "second data set, measured before the first epoch and after each, without learning from it")
	fs.StringVar(&f.Experiment, "experiment", "", "id of the experiment (default: data set and time)")
	fs.StringVar(&f.Provider, "provider", "builtin", "who serves the steps: acescope doctor lists who can; blueprint:NAME is a program of yours, see docs/guides/workers.md")
	fs.StringArrayVar(&f.steps, "step", nil, "who serves one step in place of --provider, as STEP=PROVIDER: generator, skills, reflector or curator; can be given again")
	a.AgentDirsFlag(fs)
	fs.StringVar(&f.model, "model", "", "model (default: the provider's)")
	fs.IntVar(&f.Epochs, "epochs", 1, "how often to go through the data set")
	fs.IntVar(&f.limit, "limit", 0, "use only the first N tasks of the data set (default all)")
	fs.IntVar(&f.Parallel, "parallel", 1, "how many tasks may run at a time")
	fs.IntVar(&f.window, "window", 0, "tasks that --adapter online measures before it learns from them (default 20)")
	fs.StringVar(&f.playbook, "playbook", "", "playbook to start from: a file, or the hash of a version (default: empty)")
	fs.StringVar(&f.Adapter, "adapter", "offline", "offline: learn task by task over epochs; online: measure a window, then learn from it")
	fs.StringSliceVar(&f.tools, "allow-tool", nil, "tools that the skills session may call (default all)")
	fs.StringVar(&f.permission, "permission-mode", "default", "what an agent may do in its skills session: default, plan, acceptEdits, dontAsk or full")
	fs.BoolVar(&f.detach, "detach", false, "start it and return at once; a process in the background carries it on")
	fs.DurationVar(&f.Pace, "pace", 0, "hold every phase for at least so long, for the eye")
	MustComplete(cmd, "provider", func(p0 *cobra.Command, p1 []string, p2 string) ([]string, cobra.ShellCompDirective) {
		return CompleteProviders(a, p0, p1, p2)
	})
	MustComplete(cmd, "step", func(p0 *cobra.Command, p1 []string, p2 string) ([]string, cobra.ShellCompDirective) {
		return completeSteps(a, p0, p1, p2)
	})
	return cmd
}

func (f RunFlags) check(prompt string) error {
	switch {
	case prompt == "" && f.Dataset == "":
		return cli.UsageError("nothing to run: give a PROMPT or --dataset FILE")
	case prompt != "" && f.Dataset != "":
		return cli.UsageError("give a PROMPT or --dataset FILE, not both")
	case f.Eval != "" && f.Dataset == "":
		return cli.UsageError("--eval needs --dataset")
	case f.Epochs < 1 || f.Epochs > 1000:
		return cli.UsageError("--epochs %d: give a number from 1 to 1000", f.Epochs)
	case f.limit < 0:
		return cli.UsageError("--limit %d: give a number above 0", f.limit)
	case f.Parallel < 1 || f.Parallel > engine.MaxActivities:
		return cli.UsageError("--parallel %d: give a number from 1 to %d", f.Parallel, engine.MaxActivities)
	case f.window < 0:
		return cli.UsageError("--window %d: give a number above 0", f.window)
	case f.Pace < 0:
		return cli.UsageError("--pace %s: give a duration above 0, such as 400ms", f.Pace)
	case f.Adapter != string(ace.Offline) && f.Adapter != string(ace.Online):
		return cli.UsageError("--adapter %q: give offline or online", f.Adapter)
	case !slices.Contains([]string{"default", "plan", "acceptEdits", "dontAsk", "full"}, f.permission):
		return cli.UsageError("--permission-mode %q: give default, plan, acceptEdits, dontAsk or full", f.permission)
	case strings.TrimSpace(prompt) == "" && prompt != "":
		return cli.UsageError("the PROMPT is empty")
	}
	return nil
}

// checkProvider refuses one that is not known or lacks something. A cluster may have other
// workers.
func (f RunFlags) checkProvider(name, said string, known []model.Provider, cluster bool) error {
	var names []string
	for _, p := range known {
		if p.Name() != name {
			names = append(names, p.Name())
			continue
		}
		if c, ok := p.(model.Checker); ok && !cluster && c.Ready() != nil {
			return cli.UsageError("%s: %s", said, strings.TrimPrefix(c.Ready().Error(), name+": "))
		}
		if f.model == "" && p.DefaultModel() == "" {
			return cli.UsageError("%s has no default model: give --model, or model in [providers.%s] of the configuration", said, name)
		}
		return nil
	}
	return cli.UsageError("%s: there is no provider %q; known: %s, and blueprint:NAME", said, name, strings.Join(names, ", "))
}

// modelName is the model that is recorded and given to every step: that of the first provider
// which asks one, else what the steps' provider calls itself.
func (f RunFlags) modelName(known []model.Provider) string {
	if f.model != "" {
		return f.model
	}
	names := []string{f.Provider}
	for _, step := range servedSteps() {
		name, _ := f.providerOf(step)
		names = append(names, name)
	}
	for _, name := range names {
		if _, program := ace.BlueprintOf(name); !program && name != fork.Free {
			return defaultModel(name, known)
		}
	}
	if blueprint, program := ace.BlueprintOf(f.Provider); program {
		return blueprint
	}
	return defaultModel(f.Provider, known)
}

func defaultModel(provider string, known []model.Provider) string {
	for _, p := range known {
		if p.Name() == provider {
			return p.DefaultModel()
		}
	}
	return ""
}

func runTasks(a *cli.App, ctx context.Context, prompt string, f RunFlags) error {
	if err := f.check(prompt); err != nil {
		return err
	}
	var err error
	if f.served, err = parseSteps(f.steps); err != nil {
		return err
	}
	if err := checkServed(a, f); err != nil {
		return err
	}
	skills, _ := f.providerOf(ace.PhaseSkills)
	if f.permission == string(agentcli.PermissionFull) && a.Cluster() == nil && !a.Agents()[agentcli.CLI(skills)].AllowFull {
		return cli.UsageError("--permission-mode full is not allowed by policy: allow_full in [agents.%s] of the configuration allows it", skills)
	}
	if f.detach {
		return detach(a, ctx, prompt, f)
	}
	e, done, err := a.Open(ctx, true, true)
	if err != nil {
		return err
	}
	defer done()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go e.WatchSpace(ctx, func(err error) {
		if err != nil {
			stop(err)
		}
	})
	if err := runOn(a, ctx, e, prompt, f); err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			return cause
		}
		return err
	}
	return nil
}

func runOn(a *cli.App, ctx context.Context, e *engine.Engine, prompt string, f RunFlags) error {
	if prompt != "" {
		in, err := taskInput(e, prompt, f)
		if err != nil {
			return err
		}
		return runTask(a, ctx, e, in, f)
	}
	in, partial, err := ExperimentInput(ctx, e, f)
	if err != nil {
		return err
	}
	if partial != nil {
		fmt.Fprintf(a.Err, "acescope: %s; going on with what is good before it: tasks 1 to %d\n", cli.OneLine(partial), in.Tasks)
	}
	if err := runExperiment(a, ctx, e, in, f); err != nil {
		return err
	}
	return partialError(partial)
}

// partialError makes a data set that could only be read in part fail the command, once
// what could be read has run.
func partialError(partial error) error {
	if partial == nil {
		return nil
	}
	return fmt.Errorf("the data set was read only in part: %w", partial)
}

// StartBook is the hash of the playbook to start from; "" is the empty one.
func StartBook(e *engine.Engine, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	file, err := os.Open(name)
	if err != nil {
		hash, hashErr := e.Books.Resolve(name)
		if errors.Is(hashErr, playbook.ErrNotFound) {
			return "", &cli.ExitError{Code: cli.ExitNotFound, Err: fmt.Errorf("--playbook %s: no such file, and no version of that hash", name)}
		}
		return hash, hashErr
	}
	defer file.Close()
	book, _, err := playbook.Parse(file)
	if err != nil {
		return "", cli.UsageError("--playbook %s: %w", name, err)
	}
	return e.Books.Put(book)
}

// ExperimentInput stores the data sets and describes the experiment. partial is the
// first bad line of a data set of which some could be read.
func ExperimentInput(ctx context.Context, e *engine.Engine, f RunFlags) (in ace.ExperimentInput, partial, err error) {
	train, err := dataset.Ingest(ctx, f.Dataset, e.Artifacts, f.limit)
	if partial, err = split(err, train.Tasks); err != nil {
		return in, nil, dataError(err)
	}
	in = ace.ExperimentInput{ExperimentID: f.Experiment, DatasetID: train.ID, Dataset: train.Ref, Tasks: train.Tasks,
		Adapter: ace.Adapter(f.Adapter), Provider: f.Provider, Model: f.modelName(e.Providers), Steps: f.served, Epochs: f.Epochs,
		SkillsConfig: ace.SkillsConfig{AllowedTools: f.tools, PermissionMode: f.permission},
		Parallel:     f.Parallel, Window: f.window, PaceMS: f.Pace.Milliseconds()}
	if in.ExperimentID == "" {
		in.ExperimentID = train.ID + "-" + time.Now().Format("20060102-150405")
	}
	if err := checkID("--experiment", in.ExperimentID); err != nil {
		return in, nil, err
	}
	if f.Eval != "" {
		eval, err := dataset.Ingest(ctx, f.Eval, e.Artifacts, 0)
		if err != nil {
			return in, nil, dataError(err)
		}
		in.EvalID, in.Eval, in.EvalTasks = eval.ID, &eval.Ref, eval.Tasks
	}
	in.PlaybookHash, err = StartBook(e, f.playbook)
	return in, partial, err
}

// split tells a bad line after good ones from a data set that cannot be used at all.
func split(err error, tasks int) (partial, fatal error) {
	var line *dataset.LineError
	if errors.As(err, &line) && tasks > 0 {
		return err, nil
	}
	return nil, err
}

func dataError(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return &cli.ExitError{Code: cli.ExitNotFound, Err: err}
	}
	var line *dataset.LineError
	if errors.As(err, &line) || errors.Is(err, dataset.ErrEmpty) || errors.Is(err, dataset.ErrDirectory) {
		return &cli.ExitError{Code: cli.ExitUsage, Err: err}
	}
	return err
}

// maxID leaves room in Temporal's limit for prefixes and suffixes.
const maxID = 200

func checkID(flag, id string) error {
	if len(id) > maxID {
		return cli.UsageError("%s: longer than %d bytes", flag, maxID)
	}
	if id != cli.SafeText(id) || strings.ContainsAny(id, " \t/\"'\\") {
		return cli.UsageError("%s %q: use letters, digits, dots, dashes and underscores", flag, id)
	}
	return nil
}

// adhoc is the line of playbooks that tasks without an experiment learn on.
const adhoc = "adhoc"

func taskInput(e *engine.Engine, prompt string, f RunFlags) (ace.TaskInput, error) {
	if f.Experiment == "" {
		f.Experiment = adhoc
	}
	if err := checkID("--experiment", f.Experiment); err != nil {
		return ace.TaskInput{}, err
	}
	book, err := StartBook(e, f.playbook)
	if err != nil {
		return ace.TaskInput{}, err
	}
	if f.playbook == "" {
		if head, ok, headErr := e.Books.Head(f.Experiment); headErr != nil {
			return ace.TaskInput{}, headErr
		} else if ok {
			book = head
		}
	}
	in := ace.TaskInput{TaskID: f.Experiment + "-" + time.Now().Format("20060102-150405.000"), Prompt: prompt,
		Adapter: ace.Adapter(f.Adapter), PlaybookHash: book, ExperimentID: f.Experiment, DatasetID: "none",
		SkillsConfig: ace.SkillsConfig{AllowedTools: f.tools, PermissionMode: f.permission},
		Provider:     f.Provider, Model: f.modelName(e.Providers), Steps: f.served, Branch: f.Experiment, PaceMS: f.Pace.Milliseconds()}
	if len(prompt) > ace.InlineBytes {
		ref, err := e.Artifacts.PutBytes(context.Background(), []byte(prompt), "text/plain; charset=utf-8")
		if err != nil {
			return in, err
		}
		in.Prompt, in.PromptRef = "", &ref
	}
	return in, nil
}
