package runs

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/dataset"
	"acescope/engine/learning/stats"
)

const maxRepeats = 100

// checkRepeats checks the flags --repeats, --shuffle, --seed and --dry-run.
func (f runFlags) checkRepeats(prompt string) error {
	switch {
	case f.repeats < 1 || f.repeats > maxRepeats:
		return cli.UsageError("--repeats %d: must be from 1 to %d", f.repeats, maxRepeats)
	case prompt != "" && (f.repeats > 1 || f.shuffle):
		return cli.UsageError("--repeats and --shuffle need --dataset")
	case prompt != "" && f.dryRun:
		return cli.UsageError("--dry-run needs --dataset")
	}
	return nil
}

// repeatsOf returns the inputs of the repeats of an experiment. Each has an ID, a playbook branch and, with
// --shuffle, an order of tasks of its own.
func repeatsOf(
	ctx context.Context, e *engine.Engine, in ace.ExperimentInput, f runFlags,
) ([]ace.ExperimentInput, error) {
	var list []ace.ExperimentInput
	for i := range f.repeats {
		r := in
		if f.repeats > 1 {
			r.Group, r.Repeat, r.Repeats = in.ExperimentID, i+1, f.repeats
			r.ExperimentID = ace.RepeatID(in.ExperimentID, i+1)
		}
		if err := checkExperimentID(r.ExperimentID); err != nil {
			return nil, err
		}
		if r.Seed != nil {
			r.Seed = new(*in.Seed + int64(i))
		}
		if f.shuffle {
			seed := cmp.Or(f.seed, 1) + uint32(i)
			ref, err := dataset.Shuffle(ctx, e.Artifacts, in.Dataset, uint64(seed))
			if err != nil {
				return nil, fmt.Errorf("shuffle data set %s: %w", in.DatasetID, err)
			}
			r.Shuffle, r.Dataset = &ace.Shuffle{Seed: seed, Dataset: in.Dataset}, ref
		}
		list = append(list, r)
	}
	return list, nil
}

// runRepeats runs the experiments one after the other, or starts all of them with --detach. It stops at the
// first one that does not complete.
func runRepeats(a *cli.App, ctx context.Context, e *engine.Engine, list []ace.ExperimentInput,
	f runFlags) error {
	for i, in := range list {
		if err := runExperiment(a, ctx, e, in, f); err != nil {
			if left := len(list) - i - 1; left > 0 {
				err = fmt.Errorf("%w; %s of %s not started", err, ace.Count(left, "repeat"), in.Group)
			}
			return err
		}
	}
	if len(list) > 1 {
		cli.Warn(a, "show the repeats together with \"acescope experiment show %s\"", list[0].Group)
	}
	return nil
}

// reportDesign writes to standard error how the tasks are ordered and how large a difference the first repeat
// can show.
func reportDesign(a *cli.App, in ace.ExperimentInput) {
	switch {
	case in.Ablation != nil:
		cli.Warn(a, "%s", announceAblation(in))
	case in.Repeat <= 1:
		cli.Warn(a, "%s", detectable(in))
	}
	if text := in.PresetText(); text != "" && in.Repeat <= 1 {
		cli.Warn(a, "%s", text)
	}
	if in.Shuffle != nil {
		cli.Warn(a, "experiment %s: tasks shuffled with seed %d", in.ExperimentID, in.Shuffle.Seed)
	}
}

// PlanLine is what run --dry-run would start. The differences are the smallest that a comparison with an
// experiment on the same items can show, nil if it can show none.
type PlanLine struct {
	Experiments    []string `json:"experiments"`
	Provider       string   `json:"provider"`
	Model          string   `json:"model"`
	Epochs         int      `json:"epochs"`
	Tasks          int      `json:"tasks"`
	EvalTasks      int      `json:"eval_tasks"`
	Answers        int      `json:"answers"`
	DetectableTask *float64 `json:"detectable_difference,omitempty"`
	DetectableEval *float64 `json:"detectable_difference_eval,omitempty"`
	Settings       []string `json:"settings,omitempty"`
	Deviations     []string `json:"deviations,omitempty"`
}

// reportPlan writes a line about the experiments that the inputs would start.
func reportPlan(a *cli.App, list []ace.ExperimentInput) error {
	in := list[0]
	l := PlanLine{
		Provider: in.Provider, Model: in.Model, Epochs: in.Epochs, Tasks: in.Tasks, EvalTasks: in.EvalTasks,
		Answers:        len(list) * (in.Tasks*in.Epochs + in.EvalTasks*(in.Epochs+1)),
		DetectableTask: cli.Number(stats.DetectablePaired(in.Tasks, stats.DiscordantShare)),
		DetectableEval: cli.Number(stats.DetectablePaired(in.EvalTasks, stats.DiscordantShare)),
	}
	design := detectable(in)
	if in.Ablation != nil {
		l.Answers += in.Ablation.Budget
		design = announceAblation(in)
	}
	l.Settings = in.Settings()
	if in.Preset != "" {
		l.Deviations = in.PaperDeviations()
	}
	for _, text := range []string{in.SettingsText(), in.PresetText()} {
		if text != "" {
			design += "; " + text
		}
	}
	for _, r := range list {
		l.Experiments = append(l.Experiments, r.ExperimentID)
	}
	least := ""
	if in.Rounds > 0 || in.AnswerAfter || in.Sequential {
		least = "at least "
	}
	return cli.Report(a, l, "would start %s by %s, %s%s in all; %s", strings.Join(l.Experiments, ", "),
		l.Provider, least, ace.Count(l.Answers, "answer"), design)
}

// detectable returns the smallest difference that a comparison with another experiment on the same data sets
// can show.
func detectable(in ace.ExperimentInput) string {
	var parts []string
	if in.Epochs > 0 {
		parts = append(parts, differenceText(in.Tasks, "task"))
	}
	if in.EvalTasks > 0 {
		parts = append(parts, differenceText(in.EvalTasks, "evaluation item"))
	}
	return fmt.Sprintf("%s (comparison with an experiment on the same items: %.0f%% power, p below %.2f, "+
		"if %.0f%% of the verdicts differ)", strings.Join(parts, "; "), 100*stats.Power, stats.Alpha,
		100*stats.DiscordantShare)
}

func differenceText(n int, noun string) string {
	d := stats.DetectablePaired(n, stats.DiscordantShare)
	if math.IsNaN(d) {
		return ace.Count(n, noun) + " can show no difference"
	}
	return fmt.Sprintf("%s can show a difference of %s or more", ace.Count(n, noun),
		ace.Count(int(math.Ceil(100*d)), "point"))
}
