package runs

import (
	"cmp"

	"github.com/spf13/pflag"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
)

// addLearning adds the flags that say how an experiment learns from a task.
func (f *runFlags) addLearning(fs *pflag.FlagSet) {
	fs.StringVar(&f.Preset, "preset", "",
		"settings to start from; other flags override them: "+ace.PresetPaper+
			", the defaults of ace-agent/ace")
	fs.IntVar(&f.Rounds, "reflection-rounds", 0,
		"after a wrong answer, reflect and answer again up to N times before the curator learns (default: reflect once)")
	fs.IntVar(&f.CurateEvery, "curate-every", 1,
		"ask the curator about every Nth task only; of the others only the votes on bullets are counted")
	fs.IntVar(&f.PlaybookTokens, "playbook-tokens", 0,
		"largest playbook in tokens, estimated as four bytes each; operations beyond it are rejected (default: any)")
	fs.BoolVar(&f.AnswerAfter, "answer-after", false,
		"answer each task again with the playbook that learned from it; only the first answer counts")
	f.near.add(fs)
	f.review.add(fs)
	fs.Int64Var(&f.AnswerTokens, "max-answer-tokens", 0,
		"largest answer of a model, in tokens (default: the provider's)")
	fs.BoolVar(&f.Sequential, "sequential", false,
		"with --adapter online: learn task by task within a window, from a second answer with the newest playbook")
	fs.BoolVar(&f.HideLabels, "hide-labels", false,
		"grade the answers, but tell the reflector only whether they are correct")
}

const maxRounds = 20

func (f runFlags) checkLearning() error {
	switch {
	case f.Rounds < 0 || f.Rounds > maxRounds:
		return cli.UsageError("--reflection-rounds %d: must be from 0 to %d", f.Rounds, maxRounds)
	case f.CurateEvery < 0:
		return cli.UsageError("--curate-every %d: must be 1 or more", f.CurateEvery)
	case f.PlaybookTokens < 0:
		return cli.UsageError("--playbook-tokens %d: must not be negative", f.PlaybookTokens)
	case f.AnswerTokens < 0:
		return cli.UsageError("--max-answer-tokens %d: must not be negative", f.AnswerTokens)
	case f.Sequential && f.Adapter != ace.Online:
		return cli.UsageError(
			"--sequential needs --adapter online; offline experiments learn task by task anyway")
	case f.Sequential && f.Parallel > 1:
		return cli.UsageError("--sequential and --parallel exclude each other")
	}
	return cmp.Or(f.near.check(), f.review.check())
}

// applyPreset sets the flags that are not given to those of the preset.
func (f *runFlags) applyPreset(fs *pflag.FlagSet) error {
	switch f.Preset {
	case "":
		return nil
	case ace.PresetPaper:
	default:
		return cli.UsageError("--preset %q: must be %s", f.Preset, ace.PresetPaper)
	}
	online := f.Adapter == ace.Online
	unless(fs, "epochs", &f.Epochs, ace.Paper.Epochs)
	unless(fs, "temperature", &f.temperature, "0")
	unless(fs, "no-skills", &f.NoSkills, ace.Paper.NoSkills)
	unless(fs, "reflection-rounds", &f.Rounds, ace.Paper.Rounds)
	unless(fs, "curate-every", &f.CurateEvery, ace.Paper.CurateEvery)
	unless(fs, "playbook-tokens", &f.PlaybookTokens, ace.Paper.PlaybookTokens)
	unless(fs, "answer-after", &f.AnswerAfter, ace.Paper.AnswerAfter)
	unless(fs, "max-answer-tokens", &f.AnswerTokens, ace.Paper.AnswerTokens)
	if f.eval != "" {
		unless(fs, "eval-every", &f.EvalEvery, ace.Paper.EvalEvery)
	}
	if online {
		unless(fs, "window", &f.Window, ace.Paper.Window)
		unless(fs, "sequential", &f.Sequential, f.Parallel == 1)
	}
	return nil
}

// unless sets the value of a flag that is not given.
func unless[T any](fs *pflag.FlagSet, name string, value *T, preset T) {
	if !fs.Changed(name) {
		*value = preset
	}
}
