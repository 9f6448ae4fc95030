package runs

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/ablation"
	"acescope/engine/learning/dataset"
	"acescope/engine/learning/stats"
	"acescope/sources/evaluations"
	"acescope/theme"
	"acescope/tui/widget"
)

// Defaults and bounds of ablations.
const (
	defaultBudget = 5 // answers per item of the data set
	maxBudget     = 100_000
	maxHalves     = 1000
	defaultMargin = "5%"
)

const ablateHelp = "First the whole playbook answers the data set. Then each bullet that an answer cites is left out,\n" +
	"and the items that cite it are answered again: the effect is the accuracy with the bullet minus that\n" +
	"without it, on these items, with its 95 % interval. Bullets that a model follows without citing them are\n" +
	"not measured. The votes of the curator (helpful, harmful) are shown beside the effects; they are no effects.\n\n" +
	"It is an experiment: it continues after an interruption without repeating an answer."

func AblateCommand(a *cli.App) *cobra.Command {
	f := evalOnly()
	cmd := &cobra.Command{
		Use:   "ablate PLAYBOOK --dataset FILE",
		Short: "Measure what each bullet does: answer the items that cite it again without it",
		Long:  ablateHelp + "\n\n" + exitHelp,
		Example: "acescope playbook ablate finance-1 --dataset held-out.jsonl --budget 500 --experiment which\n" +
			"acescope playbook ablate finance-1 --dataset held-out.jsonl --twins --sections --halves 20\n" +
			"acescope playbook effects which",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.playbook = args[0]
			return ablate(a, cmd.Context(), f)
		},
	}
	f.addAblationFlags(a, cmd)
	fs := cmd.Flags()
	fs.BoolVar(&f.Ablation.Sections, "sections", false, "also leave out each section")
	fs.BoolVar(&f.Ablation.Twins, "twins", false, "also leave out each group of near-duplicates")
	fs.IntVar(&f.Ablation.Halves, "halves", 0,
		"also answer all items with N pairs of random halves of the playbook, which estimates Shapley values")
	fs.BoolVar(&f.Ablation.Control, "control", false,
		"also answer all items again with the whole playbook, which shows how much answers vary by themselves")
	return cmd
}

func PruneCommand(a *cli.App) *cobra.Command {
	f := evalOnly()
	margin, least := defaultMargin, "0"
	cmd := &cobra.Command{
		Use:   "prune PLAYBOOK --dataset FILE",
		Short: "Propose a playbook without the bullets that do not help, and prove it on held-out items",
		Long: "Measures the bullets on a data set, like \"acescope playbook ablate\", and leaves out those that no\n" +
			"answer cites and those that helped no more often than they hurt. Bullets that turn out to be needed\n" +
			"together are restored. The rest answers the held-out items: the branch EXPERIMENT-pruned is created if\n" +
			"the 95 % interval of the difference of accuracy excludes a loss beyond --keep-accuracy; otherwise the\n" +
			"command fails.",
		Example: "acescope playbook prune finance-1 --dataset train.jsonl --held-out held-out.jsonl --keep-accuracy=3%",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.playbook = args[0]
			f.Ablation.Prune = &ace.Prune{Margin: percentage(margin), MinEffect: percentage(least)}
			switch {
			case f.Ablation.Prune.Margin < 0:
				return cli.UsageError("--keep-accuracy %q: use a percentage from 0%% to 100%%", margin)
			case f.Ablation.Prune.MinEffect < 0:
				return cli.UsageError("--min-effect %q: use a percentage from 0%% to 100%%", least)
			}
			return ablate(a, cmd.Context(), f)
		},
	}
	f.addAblationFlags(a, cmd)
	cmd.Flags().StringVar(&f.heldOut, "held-out", "",
		"data set that proves the pruned playbook (default: a random half of --dataset)")
	cmd.Flags().StringVar(&margin, "keep-accuracy", margin,
		"largest loss of accuracy on held-out items, in points")
	cmd.Flags().StringVar(&least, "min-effect", least,
		"also leave out bullets whose effect on the accuracy is at most so many points")
	cmd.Flags().Lookup("keep-accuracy").NoOptDefVal = defaultMargin
	return cmd
}

// evalOnly returns the flags of a command that answers a data set without learning.
func evalOnly() runFlags {
	f := runFlags{evaluate: true, repeats: 1}
	f.Adapter, f.SkillsConfig.PermissionMode = ace.Offline, permissionModes[0]
	return f
}

func (f *runFlags) addAblationFlags(a *cli.App, cmd *cobra.Command) {
	f.Ablation = &ace.Ablation{}
	f.addEvalFlags(a, cmd)
	fs := cmd.Flags()
	fs.IntVar(&f.Ablation.Budget, "budget", 0,
		fmt.Sprintf("largest number of answers besides those of the whole playbook (default %d per item)",
			defaultBudget))
	fs.Uint64Var(&f.Ablation.Seed, "seed", 1, "seed of random halves")
	fs.BoolVar(&f.dryRun, "dry-run", false, "say how many answers it takes at most, without starting it")
}

func ablate(a *cli.App, ctx context.Context, f runFlags) error {
	switch {
	case f.dataset == "":
		return cli.UsageError("--dataset FILE is missing")
	case f.Ablation.Budget < 0 || f.Ablation.Budget > maxBudget:
		return cli.UsageError("--budget %d: must be from 1 to %d", f.Ablation.Budget, maxBudget)
	case f.Ablation.Halves < 0 || f.Ablation.Halves > maxHalves:
		return cli.UsageError("--halves %d: must be from 0 to %d", f.Ablation.Halves, maxHalves)
	}
	return runTasks(a, ctx, "", f)
}

// setAblation sets the ablation of an evaluation. The held-out items are appended to the data set.
func (f runFlags) setAblation(a *cli.App, ctx context.Context, e *engine.Engine,
	in *ace.ExperimentInput) error {
	ablation := *f.Ablation
	if f.heldOut != "" {
		held, err := ingest(a, ctx, e, f.heldOut, dataSource, 0)
		if err != nil {
			return datasetError(err)
		}
		both, err := dataset.Join(ctx, e.Artifacts, *in.Eval, held.Ref)
		if err != nil {
			return err
		}
		prune := *ablation.Prune
		prune.HeldOutFrom = in.EvalTasks
		ablation.Prune = &prune
		in.Eval = &both
		in.EvalID += "+" + held.ID
		in.EvalTasks += held.Tasks
	}
	ablation.Budget = cmp.Or(ablation.Budget, defaultBudget*in.EvalTasks)
	in.Ablation = &ablation
	return nil
}

// announceAblation says how many answers an ablation needs.
func announceAblation(in ace.ExperimentInput) string {
	return fmt.Sprintf("ablation %s: %s with the whole playbook, then at most %s without parts of it "+
		"(--budget)",
		in.ExperimentID, ace.Count(in.EvalTasks, "answer"), ace.Number(in.Ablation.Budget))
}

func EffectsCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "effects EXPERIMENT",
		Short: "Show what the bullets do by an ablation, finished or not",
		Long: "Shows the effects that \"acescope playbook ablate\" or prune has measured so far, the largest first: the\n" +
			"number of items whose answer cites the bullet, the accuracy on them, the effect of the bullet on that\n" +
			"accuracy with its 95 % interval, the same on all items, and the votes of the curator.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := a.OpenReadOnly(cmd.Context())
			if err != nil {
				return err
			}
			g, err := ReadEvaluations(cmd.Context(), e, args[0])
			if err != nil {
				return err
			}
			if g.Input.Ablation == nil {
				return cli.NotFound("%s is no ablation; start one with \"acescope playbook ablate\"", args[0])
			}
			return printEffects(a, cmd.Context(), e, g)
		},
	}
}

// EffectLine is the measured effect of a bullet, or of another part of a playbook.
type EffectLine struct {
	ExperimentID string `json:"experiment_id"`
	Playbook     string `json:"playbook"`
	ablation.Effect
}

type PrunedLine struct {
	ExperimentID string `json:"experiment_id"`
	ace.Pruned
}

// printEffects writes the effects and the outcome of the pruning.
func printEffects(a *cli.App, ctx context.Context, e *engine.Engine, g *evaluations.Grid) error {
	list, labeled, err := g.Effects(ctx, e.Books, e.Artifacts.Get)
	if err != nil {
		return err
	}
	ablation.Order(list)
	id := g.Input.ExperimentID
	out := cli.NewLines(a)
	progress := g.Progress.Ablation
	if a.JSON {
		for _, effect := range list {
			out.Line(EffectLine{id, g.Input.PlaybookHash, effect}, "")
		}
		if progress.Pruned != nil {
			out.Line(PrunedLine{id, *progress.Pruned}, "")
		}
		return out.Flush()
	}
	done, planned := progress.Answers()
	out.Printf("ablation of %.12s on %s: %s of %s without parts of it%s", g.Input.PlaybookHash,
		ace.Count(labeled, "labeled item"), ace.Number(done), ace.Count(planned, "answer"),
		skippedText(progress))
	if err := out.Flush(); err != nil {
		return err
	}
	const headings = "PART\tCITED\tCORRECT\tEFFECT\tINTERVAL\tP\tALL ITEMS\tHALVES\tVOTES"
	err = cli.WriteRows(a, slices.Values(list), headings, effectCells)
	if err != nil || progress.Pruned == nil {
		return err
	}
	_, err = fmt.Fprintln(a.Out, prunedText(*progress.Pruned, *g.Input.Ablation.Prune))
	return err
}

func skippedText(p *ace.AblationProgress) string {
	if p.Skipped == 0 {
		return ""
	}
	return fmt.Sprintf("; the budget did not allow %s", ace.Count(p.Skipped, "trial"))
}

func effectCells(e ablation.Effect) []any {
	g := theme.Unicode()
	name, votes := e.Name, fmt.Sprintf("+%d -%d", e.Helpful, e.Harmful)
	if e.Kind != ace.TrialBullet {
		name, votes = string(e.Kind)+": "+e.Name, ""
	}
	cells := []any{name, e.Cited, widget.Quantity(stats.Share(e.Correct, e.Cited), "rate", g)}
	if e.Difference == nil {
		why := "not measured"
		if e.Cited == 0 {
			why = "never cited"
		}
		cells = append(cells, why, "", "", "")
	} else {
		cells = append(cells, widget.Points(*e.Difference), widget.Points(*e.Low)+" to "+
			widget.Points(*e.High),
			strconv.FormatFloat(*e.P, 'g', 2, 64), widget.Points(*e.Overall))
	}
	return append(cells, halvesText(e.Halves), votes)
}

func halvesText(h *ablation.Halves) string {
	switch {
	case h == nil:
		return ""
	case h.Low == nil:
		return widget.Points(h.Effect)
	}
	return fmt.Sprintf("%s (%s to %s)", widget.Points(h.Effect), widget.Points(*h.Low),
		widget.Points(*h.High))
}

// prunedText names the pruned playbook and says whether a larger loss of accuracy than the margin is
// excluded.
func prunedText(p ace.Pruned, in ace.Prune) string {
	fewer := 100 * float64(p.Before-p.Bullets) / math.Max(float64(p.Before), 1)
	text := fmt.Sprintf("pruned   %s of %s (%.0f%% fewer), playbook %.12s; on %s: %d fixed, %d broken, "+
		"accuracy %s points (95%% interval %s to %s)", ace.Number(p.Bullets),
		ace.Count(p.Before, "bullet"), fewer, p.Playbook, ace.Count(p.HeldOut, "held-out item"), p.Fixed,
		p.Broken,
		widget.Points(stats.Share(p.Fixed-p.Broken, p.HeldOut)), widget.Points(p.Low), widget.Points(p.High))
	if p.Kept {
		return text + fmt.Sprintf("\nkept     a loss beyond %g points is excluded; branch %s", 100*in.Margin,
			p.Branch)
	}
	return text + fmt.Sprintf("\nnot kept a loss beyond %g points is not excluded; no branch was created",
		100*in.Margin)
}

// reportAblation writes the outcome of an ablation that was followed to its end.
func reportAblation(a *cli.App, ctx context.Context, e *engine.Engine, in ace.ExperimentInput) error {
	g, err := ReadEvaluations(ctx, e, ace.ExperimentWorkflowID(in.ExperimentID))
	if err != nil {
		return err
	}
	if err := printEffects(a, ctx, e, g); err != nil {
		return err
	}
	switch p := g.Progress.Ablation; {
	case in.Ablation.Prune == nil:
		return nil
	case p.Pruned == nil:
		return fmt.Errorf("%s: no bullet to prune, or the budget is too small for the held-out items",
			in.ExperimentID)
	case !p.Pruned.Kept:
		return fmt.Errorf("%s: the pruned playbook is not proven to keep the accuracy", in.ExperimentID)
	}
	return nil
}
