// Package runs holds the commands that start, list, show, follow and stop runs.
package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/learning/dataset"
	"acescope/engine/learning/grade"
)

// RunFlags are the flags of acescope run.
type RunFlags struct {
	Dataset, Eval, Experiment, Provider, model string
	heldOut                                    string // of an ablation
	playbook, Adapter, grader                  string
	expected                                   string // answer to the prompt
	Epochs, limit, Parallel, window            int
	tools, phases                              []string
	providers                                  map[string]string    // by phase, parsed from phases
	promptValues                               []string             // of --phase-prompt
	prompts                                    map[ace.Phase]string // parsed from them, with those of the configuration
	permission                                 string
	detach                                     bool
	maxFailed                                  string
	evalEvery, patience                        int
	evaluate                                   bool // only: the data set is answered without learning
	ablation                                   *ace.Ablation
	Pace                                       time.Duration
	repeats                                    int
	shuffle, dryRun                            bool
	seed                                       uint32 // 0 if it is not given
	protocolFlags
}

// RunCommand returns the command run.
func RunCommand(a *cli.App) *cobra.Command { return runCommand(a, &RunFlags{}) }

// runCommand returns the command run whose flags are f.
func runCommand(a *cli.App, f *RunFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run [PROMPT]",
		Short: "Run one task, or an experiment over a data set",
		Long: "Runs one task, or with --dataset an experiment: the tasks of the data set one after the other, with a\n" +
			"playbook that learns from each. A data set is a file of JSON lines\n" +
			"{\"context\": …, \"question\": …, \"target\": …}. An interrupted run is kept: it continues when acescope\n" +
			"runs on the same data directory again; \"acescope cancel\" ends it.\n\n" +
			"At the start, standard error says how large a difference between two experiments on these data sets has to\n" +
			"be to be shown; --dry-run says so without starting anything.\n\n" + exitHelp,
		Example: "acescope run --dataset train.jsonl --eval held-out.jsonl --experiment finance-1\n" +
			"acescope run \"Use formula Current Ratio …\" --playbook best.txt --json\n" +
			"acescope run --dataset train.jsonl --phase curator=blueprint:my-curator --agents-dir ~/agents",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.applyPreset(cmd.Flags()); err != nil {
				return err
			}
			return runTasks(a, cmd.Context(), strings.Join(args, ""), *f)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.Dataset, "dataset", "", "data set to learn from: a file, or problems:N[:SEED] for generated problems")
	fs.StringVar(&f.expected, "expected", "", "correct answer to the PROMPT, by which the run is graded")
	fs.StringVar(&f.Eval, "eval", "",
		"data set to evaluate on, without learning, before the first epoch and after each epoch")
	fs.IntVar(&f.evalEvery, "eval-every", 0,
		"also evaluate after every N tasks of an epoch (default: only at its end)")
	fs.IntVar(&f.patience, "patience", 0,
		"end after N evaluations in a row without a better accuracy (default: never)")
	fs.StringVar(&f.Experiment, "experiment", "", "ID of the experiment (default: data set and time)")
	f.addProviderFlags(a, fs)
	fs.IntVar(&f.Epochs, "epochs", 1, "number of passes over the data set")
	fs.IntVar(&f.limit, "limit", 0, "use only the first N tasks of the data set (default all)")
	fs.IntVar(&f.Parallel, "parallel", 1, "maximum number of tasks that run at the same time")
	fs.IntVar(&f.window, "window", 0,
		"number of tasks that --adapter online measures before it learns from them (default 20)")
	fs.StringVar(&f.playbook, "playbook", "",
		"playbook to start from: BRANCH, BRANCH@N, the hash of a version or a file (default: empty)")
	fs.StringVar(&f.Adapter, "adapter", "offline",
		"offline: learn task by task over epochs; online: measure a window, then learn from it")
	fs.StringSliceVar(&f.tools, "allow-tool", nil, "tools that the skills phase may call (default all)")
	fs.StringVar(&f.permission, "permission-mode", permissionModes[0],
		"permissions of an agent in the skills phase: "+strings.Join(permissionModes, ", "))
	cli.ProgramFlags(a, fs)
	fs.StringVar(&f.maxFailed, "max-failed", "50%",
		"share of failed tasks above which the experiment fails; it also fails if all tasks fail")
	f.addLearning(fs)
	fs.IntVar(&f.repeats, "repeats", 1,
		"number of experiments with these settings, one after the other: NAME-r1, NAME-r2 and so on")
	fs.BoolVar(&f.shuffle, "shuffle", false, "shuffle the tasks of --dataset, differently for each repeat")
	fs.Uint32Var(&f.seed, "seed", 0,
		"seed of --shuffle and of the models, where their API has one; the next repeat adds 1 (default for --shuffle 1)")
	fs.BoolVar(&f.dryRun, "dry-run", false,
		"check the data sets and say what would start and how large a difference it can show")
	fs.BoolVar(&f.detach, "detach", false, "start it and return; a background process executes it")
	fs.DurationVar(&f.Pace, "pace", 0, "minimum duration of every phase, to make demonstrations easier to follow")
	MustComplete(cmd, "phase", completeKeys(a, nil, ""))
	return cmd
}

// addProviderFlags adds the flags that say what executes the phases and how their answers are graded.
func (f *RunFlags) addProviderFlags(a *cli.App, fs *pflag.FlagSet) {
	fs.StringVar(&f.Provider, "provider", "builtin",
		"provider of the phases; \"acescope doctor\" lists them; blueprint:NAME is your program, see docs/guides/workers.md")
	fs.StringArrayVar(&f.phases, "phase", nil,
		"provider of one phase, as PHASE=PROVIDER: generator, skills, reflector or curator; repeatable")
	a.AgentDirsFlag(fs)
	fs.StringArrayVar(&f.promptValues, "phase-prompt", nil, PhasePromptHelp)
	fs.StringArrayVar(&f.models, "model", nil,
		"model (default: the provider's), or that of one phase, as PHASE=MODEL; repeatable")
	fs.StringVar(&f.grader, "grader", "",
		"how answers are compared with labels: "+grade.Names+" (default: the data set's header, or exact)")
	f.protocolFlags.add(fs)
}

var permissionModes = []string{"default", "plan", "acceptEdits", "dontAsk", "full"}

func (f RunFlags) check(prompt string) error {
	switch {
	case prompt == "" && f.Dataset == "":
		return cli.UsageError("nothing to run: give a PROMPT or --dataset FILE")
	case prompt != "" && f.Dataset != "":
		return cli.UsageError("give a PROMPT or --dataset FILE, not both")
	case f.expected != "" && prompt == "":
		return cli.UsageError("--expected needs a PROMPT")
	case f.grader != "" && f.Dataset == "":
		return cli.UsageError("--grader needs --dataset")
	case grade.Check(f.grader) != nil:
		return cli.UsageError("--grader: %w", grade.Check(f.grader))
	case f.Eval != "" && f.Dataset == "":
		return cli.UsageError("--eval needs --dataset")
	case f.evalEvery < 0:
		return cli.UsageError("--eval-every %d: must not be negative", f.evalEvery)
	case f.patience < 0:
		return cli.UsageError("--patience %d: must not be negative", f.patience)
	case f.Eval == "" && (f.evalEvery > 0 || f.patience > 0):
		return cli.UsageError("--eval-every and --patience need --eval")
	case !f.evaluate && (f.Epochs < 1 || f.Epochs > 1000):
		return cli.UsageError("--epochs %d: must be from 1 to 1000", f.Epochs)
	case f.limit < 0:
		return cli.UsageError("--limit %d: must not be negative", f.limit)
	case f.Parallel < 1 || f.Parallel > engine.MaxActivities:
		return cli.UsageError("--parallel %d: must be from 1 to %d", f.Parallel, engine.MaxActivities)
	case f.window < 0:
		return cli.UsageError("--window %d: must not be negative", f.window)
	case f.maxFailedShare() < 0:
		return cli.UsageError("--max-failed %q: use a percentage from 0%% to 100%%", f.maxFailed)
	case f.Pace < 0:
		return cli.UsageError("--pace %s: must be a positive duration such as 400ms", f.Pace)
	case f.Adapter != string(ace.Offline) && f.Adapter != string(ace.Online):
		return cli.UsageError("--adapter %q: use offline or online", f.Adapter)
	case !slices.Contains(permissionModes, f.permission):
		return cli.UsageError("--permission-mode %q: use one of %s", f.permission, strings.Join(permissionModes, ", "))
	case strings.TrimSpace(prompt) == "" && prompt != "":
		return cli.UsageError("the PROMPT is empty")
	}
	return cmp.Or(f.protocolFlags.check(), f.checkLearning(), f.checkRepeats(prompt))
}

// maxFailedShare returns the share of failed tasks from 0 to 1, or -1 if the flag is invalid.
func (f RunFlags) maxFailedShare() float64 { return percentage(cmp.Or(f.maxFailed, "50%")) }

// percentage returns the share of a percentage from 0% to 100%, or -1 if it is invalid.
func percentage(text string) float64 {
	percent, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || !(percent >= 0 && percent <= 100) {
		return -1
	}
	return percent / 100
}

func runTasks(a *cli.App, ctx context.Context, prompt string, f RunFlags) error {
	if err := f.check(prompt); err != nil {
		return err
	}
	if err := f.resolve(a); err != nil {
		return err
	}
	if f.detach && !f.dryRun {
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
	err = runOn(a, ctx, e, prompt, f)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// resolve reads the flags that name phases, and checks the providers, models, graders and prices that the flags need.
func (f *RunFlags) resolve(a *cli.App) error {
	var err error
	if f.providers, err = parsePhases(f.phases); err != nil {
		return err
	}
	if err := f.parseModels(); err != nil {
		return err
	}
	if err := checkProviders(a, *f); err != nil {
		return err
	}
	if err := f.checkPrompts(a); err != nil {
		return err
	}
	if err := f.near.resolve(a); err != nil {
		return err
	}
	if err := f.checkGrader(a, f.grader); err != nil {
		return err
	}
	if err := f.checkSampling(a); err != nil {
		return err
	}
	if err := checkPrice(a, *f); err != nil {
		return err
	}
	skills, _ := f.providerOf(ace.PhaseSkills)
	full := f.permission == string(agentcli.PermissionFull)
	if full && a.Cluster() == nil && !a.Agents()[agentcli.CLI(skills)].AllowFull {
		return cli.UsageError("--permission-mode full is not allowed; set allow_full in [agents.%s] of config.toml",
			skills)
	}
	return nil
}

func runOn(a *cli.App, ctx context.Context, e *engine.Engine, prompt string, f RunFlags) error {
	if prompt != "" {
		in, err := taskInput(a, ctx, e, prompt, f)
		if err != nil {
			return err
		}
		return runTask(a, ctx, e, in, f)
	}
	in, partial, err := ExperimentInput(a, ctx, e, f)
	if err != nil {
		return err
	}
	if partial != nil {
		cli.Warn(a, "%s; continuing with the valid tasks before it: 1 to %d", cli.OneLine(partial), in.Tasks)
	}
	list, err := repeatsOf(ctx, e, in, f)
	if err != nil {
		return err
	}
	if f.dryRun {
		return cmp.Or(partial, reportPlan(a, list))
	}
	if err := runRepeats(a, ctx, e, list, f); err != nil || partial == nil {
		return err
	}
	return fmt.Errorf("the data set was read only in part: %w", partial)
}

// startPlaybook returns the hash of the playbook that the flags name.
func startPlaybook(a *cli.App, ctx context.Context, e *engine.Engine, f RunFlags) (string, error) {
	hash, report, err := PlaybookHash(ctx, e, f.playbook)
	if err == nil {
		ReportParsed(a, f.playbook, report)
	}
	return hash, err
}

// ExperimentInput stores the data sets and returns the input of the experiment. partial is the error of
// the first invalid line of a data set that has valid tasks before it.
func ExperimentInput(a *cli.App, ctx context.Context, e *engine.Engine, f RunFlags) (
	in ace.ExperimentInput, partial, err error,
) {
	train, err := ingest(a, ctx, e, f.Dataset, f.limit)
	var line *dataset.LineError
	if errors.As(err, &line) && train.Tasks > 0 {
		partial, err = err, nil
	}
	if err != nil {
		return in, nil, datasetError(err)
	}
	in = ace.ExperimentInput{
		ExperimentID: f.Experiment, DatasetID: train.ID, Dataset: train.Ref, Tasks: train.Tasks,
		Adapter: ace.Adapter(f.Adapter), Provider: f.Provider, Model: f.modelName(e.Providers), Steps: f.providers,
		Epochs: f.Epochs, Parallel: f.Parallel, Window: f.window, PaceMS: f.Pace.Milliseconds(),
		SkillsConfig: ace.SkillsConfig{AllowedTools: f.tools, PermissionMode: f.permission},
		MaxCostUSD:   f.maxCost, MaxTokens: f.maxTokens, Protocol: f.protocol(),
		Sequential: f.sequential, Preset: f.preset,
	}
	maxFailed := f.maxFailedShare()
	in.MaxFailed = &maxFailed
	if in.ExperimentID == "" {
		in.ExperimentID = cli.NewID(train.ID)
		switch {
		case f.ablation != nil:
			in.ExperimentID = "ablation-" + in.ExperimentID
		case f.evaluate:
			in.ExperimentID = "eval-" + in.ExperimentID
		}
	}
	if err := checkExperimentID(in.ExperimentID); err != nil {
		return in, nil, err
	}
	if f.Eval != "" {
		eval, err := ingest(a, ctx, e, f.Eval, 0)
		if err != nil {
			return in, nil, datasetError(err)
		}
		in.EvalID, in.Eval, in.EvalTasks = eval.ID, &eval.Ref, eval.Tasks
		in.EvalEvery = f.evalEvery
		in.Patience = f.patience
		in.KeepBest = true
	}
	if f.evaluate {
		in.EvalID = train.ID
		in.Eval = &train.Ref
		in.EvalTasks = train.Tasks
		in.Tasks = 0
	}
	if f.ablation != nil {
		if err := f.setAblation(a, ctx, e, &in); err != nil {
			return in, nil, err
		}
	}
	in.Grader = cmp.Or(f.grader, train.Grader)
	if err := f.checkGrader(a, in.Grader); err != nil {
		return in, nil, err
	}
	if in.Prompts, err = f.phasePrompts(ctx, e); err != nil {
		return in, nil, err
	}
	in.PlaybookHash, err = startPlaybook(a, ctx, e, f)
	return in, partial, err
}

func ingest(a *cli.App, ctx context.Context, e *engine.Engine, path string, limit int) (dataset.Set, error) {
	file, err := openDataset(ctx, path)
	if err != nil {
		return dataset.Set{}, err
	}
	defer file.Close()
	set, err := dataset.Ingest(ctx, path, file, e.Artifacts, limit)
	if strings.HasPrefix(path, problemSet) {
		set.ID = strings.ReplaceAll(path, ":", "-") // it becomes part of workflow IDs
	}
	for _, l := range set.Lost {
		cli.Warn(a, "data set %s: tasks do not hold the field %q of %s", set.ID, l.Field,
			cli.Numbered(int64(l.Lines), "line"))
	}
	return set, err
}

func datasetError(err error) error {
	var line *dataset.LineError
	switch {
	case errors.As(err, &line), errors.Is(err, dataset.ErrEmpty):
		return &cli.ExitError{Code: cli.ExitUsage, Err: err}
	}
	return err
}

// maxID leaves room for prefixes and suffixes within Temporal's limit.
const maxID = 200

func checkExperimentID(id string) error {
	if len(id) > maxID {
		return cli.UsageError("--experiment: longer than %d bytes", maxID)
	}
	if id != cli.SafeText(id) || strings.ContainsAny(id, " \t/\"'\\") {
		return cli.UsageError("--experiment %q: use letters, digits, dots, dashes and underscores", id)
	}
	return nil
}

// adhoc is the experiment and the playbook branch of tasks without an experiment.
const adhoc = "adhoc"

func taskInput(
	a *cli.App, ctx context.Context, e *engine.Engine, prompt string, f RunFlags,
) (in ace.TaskInput, err error) {
	id := cmp.Or(f.Experiment, adhoc)
	if err := checkExperimentID(id); err != nil {
		return in, err
	}
	hash, err := startPlaybook(a, ctx, e, f)
	if err != nil {
		return in, err
	}
	if f.playbook == "" {
		if hash, _, err = e.Books.Head(id); err != nil {
			return in, err
		}
	}
	in = ace.TaskInput{
		TaskID: cli.NewID(id), Prompt: prompt, Adapter: ace.Adapter(f.Adapter),
		PlaybookHash: hash, ExperimentID: id, DatasetID: "none", Provider: f.Provider, Model: f.modelName(e.Providers),
		Steps: f.providers, Branch: id, PaceMS: f.Pace.Milliseconds(),
		SkillsConfig: ace.SkillsConfig{AllowedTools: f.tools, PermissionMode: f.permission},
		Protocol:     f.protocol(), Budget: f.budget(),
	}
	if f.expected != "" {
		in.Label = &f.expected
	}
	if in.Prompts, err = f.phasePrompts(ctx, e); err != nil {
		return in, err
	}
	in.PromptRef, err = StorePrompt(ctx, e, prompt)
	if in.PromptRef != nil {
		in.Prompt = ""
	}
	return in, err
}

// StorePrompt stores a prompt that is too long for an input as an artifact. It returns nil for others.
func StorePrompt(ctx context.Context, e *engine.Engine, prompt string) (*ace.Ref, error) {
	if len(prompt) <= ace.InlineBytes {
		return nil, nil
	}
	ref, err := e.Artifacts.PutBytes(ctx, []byte(prompt), "text/plain; charset=utf-8")
	return &ref, err
}
