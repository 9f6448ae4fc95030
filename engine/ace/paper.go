package ace

import (
	"fmt"
	"strings"
)

// PresetPaper is the name of the settings of ace-agent/ace, the published implementation of ACE (arXiv
// 2510.04618).
const PresetPaper = "ace-paper"

// Paper holds the defaults of ace-agent/ace, from its finance/run.py, ace/ace.py and llm.py.
var Paper = struct {
	Epochs, EvalEvery, Window int
	Protocol
}{
	Epochs: 1, EvalEvery: 100, Window: 15,
	Protocol: Protocol{
		Sampling: Sampling{Temperature: new(float64), AnswerTokens: 4096},
		NoSkills: true, Rounds: 3, CurateEvery: 1, PlaybookTokens: 80_000, AnswerAfter: true,
	},
}

// PaperDeviations returns the deviations of an experiment with [PresetPaper] from ace-agent/ace: first those
// of its settings, then those that every experiment has.
func (in *ExperimentInput) PaperDeviations() (list []string) {
	note := func(differs bool, format string, args ...any) {
		if differs {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	online := in.Adapter == Online
	note(in.Epochs != Paper.Epochs && !online, "%d epochs", in.Epochs)
	note(in.Parallel > 1, "%d tasks at a time, so that a task misses what the others learn", in.Parallel)
	note(online && in.Window != Paper.Window, "windows of %s", Count(in.Window, "task"))
	note(online && !in.Sequential, "the tasks of a window learn from the playbook before it")
	note(in.Eval != nil && in.EvalEvery != Paper.EvalEvery, "evaluations not after every %d tasks",
		Paper.EvalEvery)
	note(in.Rounds != Paper.Rounds, "reflection rounds: %d", in.Rounds)
	note(in.CurateEvery > Paper.CurateEvery, "curator asked every %d tasks", in.CurateEvery)
	switch in.PlaybookTokens {
	case Paper.PlaybookTokens:
	case 0:
		list = append(list, "playbook of any size")
	default:
		list = append(list, "playbook of at most "+Count(in.PlaybookTokens, "token"))
	}
	note(in.Deduplicate != nil, "near-duplicates are merged")
	note(!in.AnswerAfter, "no answers after the update")
	note(!in.NoSkills, "a skills phase with tools")
	note(in.Temperature == nil || *in.Temperature != 0, "temperature not 0")
	note(in.AnswerTokens != Paper.AnswerTokens, "answers not limited to %s",
		Count(Paper.AnswerTokens, "token"))
	return append(list, "prompts and answer formats of acescope",
		"UPDATE, REMOVE and MERGE are applied, not only ADD",
		"votes are counted once, at the end of a task",
		"operations beyond the playbook's tokens, estimated as four bytes each, are rejected")
}

// PresetText names the preset and the deviations from it, or returns "".
func (in *ExperimentInput) PresetText() string {
	if in.Preset != PresetPaper {
		return ""
	}
	return "preset " + in.Preset + "; deviations: " + strings.Join(in.PaperDeviations(), "; ")
}
