package runs

import (
	"cmp"

	"github.com/spf13/pflag"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
)

// addLearning adds the flags that say how an experiment learns from a task.
func (p *protocolFlags) addLearning(fs *pflag.FlagSet) {
	fs.StringVar(&p.preset, "preset", "",
		"settings to start from; other flags override them: "+ace.PresetPaper+", the defaults of ace-agent/ace")
	fs.IntVar(&p.rounds, "reflection-rounds", 0,
		"after a wrong answer, reflect and answer again up to N times before the curator learns (default: reflect once)")
	fs.IntVar(&p.curateEvery, "curate-every", 1,
		"ask the curator about every Nth task only; of the others only the votes on bullets are counted")
	fs.IntVar(&p.playbookTokens, "playbook-tokens", 0,
		"largest playbook in tokens, estimated as four bytes each; operations beyond it are rejected (default: any)")
	fs.BoolVar(&p.answerAfter, "answer-after", false,
		"answer each task again with the playbook that learned from it; only the first answer counts")
	p.near.add(fs)
	p.review.add(fs)
	fs.Int64Var(&p.answerTokens, "max-answer-tokens", 0, "largest answer of a model, in tokens (default: the provider's)")
	fs.BoolVar(&p.sequential, "sequential", false,
		"with --adapter online: learn task by task within a window, from a second answer with the newest playbook")
	fs.BoolVar(&p.hideLabels, "hide-labels", false,
		"grade the answers, but tell the reflector only whether they are correct")
}

// maxRounds bounds --reflection-rounds.
const maxRounds = 20

func (f RunFlags) checkLearning() error {
	switch {
	case f.rounds < 0 || f.rounds > maxRounds:
		return cli.UsageError("--reflection-rounds %d: must be from 0 to %d", f.rounds, maxRounds)
	case f.curateEvery < 0:
		return cli.UsageError("--curate-every %d: must be 1 or more", f.curateEvery)
	case f.playbookTokens < 0:
		return cli.UsageError("--playbook-tokens %d: must not be negative", f.playbookTokens)
	case f.answerTokens < 0:
		return cli.UsageError("--max-answer-tokens %d: must not be negative", f.answerTokens)
	case f.sequential && f.Adapter != string(ace.Online):
		return cli.UsageError("--sequential needs --adapter online; offline experiments learn task by task anyway")
	case f.sequential && f.Parallel > 1:
		return cli.UsageError("--sequential and --parallel exclude each other")
	}
	return cmp.Or(f.near.check(), f.review.check())
}

// applyPreset sets the flags that are not given to those of the preset.
func (f *RunFlags) applyPreset(fs *pflag.FlagSet) error {
	switch f.preset {
	case "":
		return nil
	case ace.PresetPaper:
	default:
		return cli.UsageError("--preset %q: must be %s", f.preset, ace.PresetPaper)
	}
	online := f.Adapter == string(ace.Online)
	unless(fs, "epochs", &f.Epochs, ace.Paper.Epochs)
	unless(fs, "temperature", &f.temperature, "0")
	unless(fs, "no-skills", &f.noSkills, ace.Paper.NoSkills)
	unless(fs, "reflection-rounds", &f.rounds, ace.Paper.Rounds)
	unless(fs, "curate-every", &f.curateEvery, ace.Paper.CurateEvery)
	unless(fs, "playbook-tokens", &f.playbookTokens, ace.Paper.PlaybookTokens)
	unless(fs, "answer-after", &f.answerAfter, ace.Paper.AnswerAfter)
	unless(fs, "max-answer-tokens", &f.answerTokens, ace.Paper.AnswerTokens)
	if f.Eval != "" {
		unless(fs, "eval-every", &f.evalEvery, ace.Paper.EvalEvery)
	}
	if online {
		unless(fs, "window", &f.window, ace.Paper.Window)
		unless(fs, "sequential", &f.sequential, f.Parallel == 1)
	}
	return nil
}

// unless sets the value of a flag that is not given.
func unless[T any](fs *pflag.FlagSet, name string, value *T, preset T) {
	if !fs.Changed(name) {
		*value = preset
	}
}
