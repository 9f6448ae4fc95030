// Package runs holds the commands that start, list, show, follow and stop runs.
package runs

import (
	"cmp"
	"context"
	"errors"
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

// runFlags are the flags of acescope run, which set most of them in the input of an experiment.
type runFlags struct {
	ace.ExperimentInput
	dataset, eval, heldOut string // data sets by name; the last one of an ablation
	playbook               string
	expected               string // answer to the prompt
	limit, repeats         int
	phases, models         []string
	phasePrompts           []string
	prompts                map[ace.Phase]string // parsed from phasePrompts, with those of the configuration
	maxFailed, temperature string
	near                   deduplicateFlags
	review                 reviewSetting
	pace                   time.Duration
	evaluate               bool // --evaluate: answer the data set without learning
	shuffle                bool
	seed                   uint32 // 0 if it is not given
	modelSeed              bool   // a provider of a phase takes a seed
	detach, dryRun         bool
}

func RunCommand(a *cli.App) *cobra.Command { return runCommand(a, &runFlags{}) }

func runCommand(a *cli.App, f *runFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "run [PROMPT]",
		ValidArgsFunction: cobra.NoFileCompletions,
		Short:             "Run one task, or an experiment over a data set",
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
	fs.StringVar(&f.dataset, "dataset", "",
		"data set to learn from: a file, problems:N[:SEED] for generated problems, or experiment:ID for that of an experiment")
	fs.StringVar(&f.expected, "expected", "", "correct answer to the PROMPT, by which the run is graded")
	fs.StringVar(&f.eval, "eval", "",
		"data set to evaluate on, without learning, before the first epoch and after each epoch")
	fs.IntVar(&f.EvalEvery, "eval-every", 0,
		"also evaluate after every N tasks of an epoch (default: only at its end)")
	fs.IntVar(&f.Patience, "patience", 0,
		"end after N evaluations in a row without a better accuracy (default: never)")
	fs.StringVar(&f.ExperimentID, "experiment", "", "ID of the experiment (default: data set and time)")
	f.addProviderFlags(a, fs)
	fs.IntVar(&f.Epochs, "epochs", 1, "number of passes over the data set")
	fs.IntVar(&f.limit, "limit", 0, "use only the first N tasks of the data set (default all)")
	fs.IntVar(&f.Parallel, "parallel", 1, "maximum number of tasks that run at the same time")
	fs.IntVar(&f.Window, "window", 0,
		"number of tasks that --adapter online measures before it learns from them (default 20)")
	fs.StringVar(&f.playbook, "playbook", "",
		"playbook to start from: BRANCH, BRANCH@N, the hash of a version or a file (default: empty)")
	fs.StringVar((*string)(&f.Adapter), "adapter", string(ace.Offline),
		"offline: learn task by task over epochs; online: measure a window, then learn from it")
	fs.StringSliceVar(&f.SkillsConfig.AllowedTools, "allow-tool", nil,
		"tools that the skills phase may call (default all)")
	fs.StringVar(&f.SkillsConfig.PermissionMode, "permission-mode", permissionModes[0],
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
	fs.DurationVar(&f.pace, "pace", 0,
		"minimum duration of every phase, to make demonstrations easier to follow")
	MustComplete(cmd, "phase", completeKeys(a, nil, ""))
	return cmd
}

// addProviderFlags adds the flags that say what executes the phases and how their answers are graded.
func (f *runFlags) addProviderFlags(a *cli.App, fs *pflag.FlagSet) {
	fs.StringVar(&f.Provider, "provider", ace.Builtin,
		"provider of the phases; \"acescope doctor\" lists them; blueprint:NAME is your program, see docs/guides/workers.md")
	fs.StringArrayVar(&f.phases, "phase", nil,
		"provider of one phase, as PHASE=PROVIDER: generator, skills, reflector or curator; repeatable")
	a.AgentDirsFlag(fs)
	fs.StringArrayVar(&f.phasePrompts, "phase-prompt", nil, PhasePromptHelp)
	fs.StringArrayVar(&f.models, "model", nil,
		"model (default: the provider's), or that of one phase, as PHASE=MODEL; repeatable")
	fs.StringVar(&f.Grader, "grader", "",
		"how answers are compared with labels: "+grade.Names+" (default: the data set's header, or exact)")
	f.addProtocol(fs)
}

var permissionModes = []string{"default", "plan", "acceptEdits", "dontAsk", "full"}

func (f runFlags) check(prompt string) error {
	switch {
	case prompt == "" && f.dataset == "":
		return cli.UsageError("nothing to run: give a PROMPT or --dataset FILE")
	case prompt != "" && f.dataset != "":
		return cli.UsageError("give a PROMPT or --dataset FILE, not both")
	case f.expected != "" && prompt == "":
		return cli.UsageError("--expected needs a PROMPT")
	case f.Grader != "" && f.dataset == "":
		return cli.UsageError("--grader needs --dataset")
	case grade.Check(f.Grader) != nil:
		return cli.UsageError("--grader: %w", grade.Check(f.Grader))
	case f.eval != "" && f.dataset == "":
		return cli.UsageError("--eval needs --dataset")
	case f.EvalEvery < 0:
		return cli.UsageError("--eval-every %d: must not be negative", f.EvalEvery)
	case f.Patience < 0:
		return cli.UsageError("--patience %d: must not be negative", f.Patience)
	case f.eval == "" && (f.EvalEvery > 0 || f.Patience > 0):
		return cli.UsageError("--eval-every and --patience need --eval")
	case !f.evaluate && (f.Epochs < 1 || f.Epochs > 1000):
		return cli.UsageError("--epochs %d: must be from 1 to 1000", f.Epochs)
	case f.limit < 0:
		return cli.UsageError("--limit %d: must not be negative", f.limit)
	case f.Parallel < 1 || f.Parallel > engine.MaxActivities:
		return cli.UsageError("--parallel %d: must be from 1 to %d", f.Parallel, engine.MaxActivities)
	case f.Window < 0:
		return cli.UsageError("--window %d: must not be negative", f.Window)
	case f.maxFailedShare() < 0:
		return cli.UsageError("--max-failed %q: use a percentage from 0%% to 100%%", f.maxFailed)
	case f.pace < 0:
		return cli.UsageError("--pace %s: must be a positive duration such as 400ms", f.pace)
	case f.Adapter != ace.Offline && f.Adapter != ace.Online:
		return cli.UsageError("--adapter %q: use offline or online", f.Adapter)
	case !slices.Contains(permissionModes, f.SkillsConfig.PermissionMode):
		return cli.UsageError("--permission-mode %q: use one of %s", f.SkillsConfig.PermissionMode,
			strings.Join(permissionModes, ", "))
	case strings.TrimSpace(prompt) == "" && prompt != "":
		return cli.UsageError("the PROMPT is empty")
	}
	return cmp.Or(f.checkProtocol(), f.checkLearning(), f.checkRepeats(prompt))
}

// maxFailedShare returns the share of failed tasks from 0 to 1, or -1 if the flag is invalid.
func (f runFlags) maxFailedShare() float64 { return percentage(cmp.Or(f.maxFailed, "50%")) }

// percentage returns the share of a percentage from 0% to 100%, or -1 if it is invalid.
func percentage(text string) float64 {
	percent, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || !(percent >= 0 && percent <= 100) {
		return -1
	}
	return percent / 100
}

func runTasks(a *cli.App, ctx context.Context, prompt string, f runFlags) error {
	if err := f.check(prompt); err != nil {
		return err
	}
	if err := f.resolve(a); err != nil {
		return err
	}
	if f.detach && !f.dryRun {
		return detach(a, ctx, prompt, f)
	}
	e, err := a.Open(ctx, true)
	if err != nil {
		return err
	}
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

// resolve reads the flags that name phases, and checks the providers, models, graders and prices that the
// flags need.
func (f *runFlags) resolve(a *cli.App) error {
	steps, err := byPhase[string](f.phases, "--phase", "PHASE=PROVIDER, such as curator=blueprint:my-curator")
	if err != nil {
		return err
	}
	f.Steps = steps
	if err := f.parseModels(); err != nil {
		return err
	}
	for _, check := range []func(*cli.App) error{
		f.checkProviders, f.checkPrompts, f.near.resolve,
		func(a *cli.App) error { return f.checkGrader(a, f.Grader) }, f.checkSampling, f.checkPrice,
	} {
		if err := check(a); err != nil {
			return err
		}
	}
	skills, _ := f.providerOf(ace.PhaseSkills)
	full := f.SkillsConfig.PermissionMode == string(agentcli.PermissionFull)
	if full && a.Cluster() == nil && !a.Agents()[agentcli.CLI(skills)].AllowFull {
		return cli.UsageError(
			"--permission-mode full is not allowed; set allow_full in [agents.%s] of config.toml",
			skills)
	}
	return nil
}

func runOn(a *cli.App, ctx context.Context, e *engine.Engine, prompt string, f runFlags) error {
	if prompt != "" {
		in, err := taskInput(a, ctx, e, prompt, f)
		if err != nil {
			return err
		}
		return runTask(a, ctx, e, in, f)
	}
	in, partial, err := experimentInput(a, ctx, e, f)
	if err != nil {
		return err
	}
	if partial != nil {
		cli.Warn(a, "%s; continuing with the valid tasks before it: 1 to %d", cli.OneLine(partial), in.Tasks)
		partial = errors.New("the data set was read only in part; the warning at the start says why")
	}
	list, err := repeatsOf(ctx, e, in, f)
	if err != nil {
		return err
	}
	if f.dryRun {
		return cmp.Or(reportPlan(a, list), partial)
	}
	return cmp.Or(runRepeats(a, ctx, e, list, f), partial)
}

// startPlaybook returns the hash of the playbook that the flags name.
func startPlaybook(a *cli.App, ctx context.Context, e *engine.Engine, f runFlags) (string, error) {
	hash, report, err := PlaybookHash(ctx, e, f.playbook)
	if err == nil {
		ReportParsed(a, f.playbook, report)
	}
	return hash, err
}

// experimentInput stores the data sets and returns the input of the experiment. partial is the error of
// the first invalid line of a data set that has valid tasks before it.
func experimentInput(a *cli.App, ctx context.Context, e *engine.Engine, f runFlags) (
	in ace.ExperimentInput, partial, err error,
) {
	train, err := ingest(a, ctx, e, f.dataset, dataSource, f.limit)
	var line *dataset.LineError
	if errors.As(err, &line) && train.Tasks > 0 {
		partial, err = err, nil
	}
	if err != nil {
		return in, nil, datasetError(err)
	}
	in = f.ExperimentInput
	in.DatasetID, in.Dataset, in.Tasks = train.ID, train.Ref, train.Tasks
	in.Model, in.PaceMS, in.Protocol = f.modelName(e.Providers), f.pace.Milliseconds(), f.protocol()
	in.MaxFailed = new(f.maxFailedShare())
	in.ExperimentID = f.experimentID(train.ID)
	if err := checkExperimentID(in.ExperimentID); err != nil {
		return in, nil, err
	}
	switch {
	case f.eval != "":
		eval, err := ingest(a, ctx, e, f.eval, evalSource, 0)
		if err != nil {
			return in, nil, datasetError(err)
		}
		in.EvalID, in.Eval, in.EvalTasks, in.KeepBest = eval.ID, &eval.Ref, eval.Tasks, true
	case f.evaluate:
		in.EvalID, in.Eval, in.EvalTasks, in.Tasks = train.ID, &train.Ref, train.Tasks, 0
	}
	if f.Ablation != nil {
		if err := f.setAblation(a, ctx, e, &in); err != nil {
			return in, nil, err
		}
	}
	in.Grader = cmp.Or(f.Grader, train.Grader)
	if err := f.checkGrader(a, in.Grader); err != nil {
		return in, nil, err
	}
	if in.Prompts, err = f.promptsOf(ctx, e); err != nil {
		return in, nil, err
	}
	in.PlaybookHash, err = startPlaybook(a, ctx, e, f)
	return in, partial, err
}

// experimentID returns the ID of the flags, or one of the data set and the time.
func (f runFlags) experimentID(dataset string) string {
	switch {
	case f.ExperimentID != "":
		return f.ExperimentID
	case f.Ablation != nil:
		return "ablation-" + cli.NewID(dataset)
	case f.evaluate:
		return "eval-" + cli.NewID(dataset)
	}
	return cli.NewID(dataset)
}

func datasetError(err error) error {
	var line *dataset.LineError
	switch {
	case errors.As(err, &line), errors.Is(err, dataset.ErrEmpty):
		return cli.UsageError("%w", err)
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

// adhoc names the experiment and the playbook branch of tasks without an experiment.
const adhoc = "adhoc"

func taskInput(
	a *cli.App, ctx context.Context, e *engine.Engine, prompt string, f runFlags,
) (in ace.TaskInput, err error) {
	id := cmp.Or(f.ExperimentID, adhoc)
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
		TaskID: cli.NewID(id), Prompt: prompt, Adapter: f.Adapter, PlaybookHash: hash, ExperimentID: id,
		DatasetID: "none", Provider: f.Provider, Model: f.modelName(e.Providers), Steps: f.Steps, Branch: id,
		PaceMS: f.pace.Milliseconds(), SkillsConfig: f.SkillsConfig, Protocol: f.protocol(),
		Budget: f.Limits(),
	}
	if f.expected != "" {
		in.Label = &f.expected
	}
	if in.Prompts, err = f.promptsOf(ctx, e); err != nil {
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
