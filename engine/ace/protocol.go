package ace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Sampling holds the parameters of requests to models. The server chooses the value of a nil parameter.
type Sampling struct {
	Temperature *float64 `json:"temperature,omitempty"`
	Seed        *int64   `json:"seed,omitempty"` // sent only to APIs that have one
	// AnswerTokens bounds an answer; 0 is the bound of the provider.
	AnswerTokens int64 `json:"max_answer_tokens,omitempty"`
}

// Protocol says how a run answers a task and learns from it. The zero value is the default.
type Protocol struct {
	Sampling
	// Models overrides the model of single steps.
	Models map[string]string `json:"models,omitempty"`
	// Prompts holds the prompts of the phases that do not have the default.
	Prompts Prompts `json:"prompts,omitempty"`
	// NoSkills leaves out the skills phase: the generator's answer counts.
	NoSkills bool `json:"no_skills,omitempty"`
	// HideLabels keeps the label from the reflector's provider, which learns only whether the answer is
	// correct.
	HideLabels bool `json:"hide_labels,omitempty"`
	// Rounds is the maximum number of times that a task is answered again with the reflection on a wrong
	// answer. With 0, a wrong answer is reflected on, but the task is not answered again.
	Rounds int `json:"reflection_rounds,omitempty"`
	// CurateEvery asks the curator about every CurateEvery-th task of a data set. Of the other tasks, only
	// the tags are merged. 0 and 1 mean every task.
	CurateEvery int `json:"curate_every,omitempty"`
	// PlaybookTokens bounds the playbook, see [CuratorInput].
	PlaybookTokens int `json:"playbook_tokens,omitempty"`
	// Deduplicate merges near-duplicates whenever the curator is asked, see [CuratorInput]; nil leaves them.
	Deduplicate *Deduplication `json:"deduplicate,omitempty"`
	// AnswerAfter answers the task again with the playbook that learned from it.
	AnswerAfter bool `json:"answer_after,omitempty"`
	// Review lets a user approve or reject the curator's operations before they are merged; nil merges them
	// at once.
	Review *Review `json:"review,omitempty"`
}

// Deduplication says which bullets are near-duplicates: those whose similarity is at least Similarity. It is
// the cosine of their embeddings or, without a provider, the share of pairs of adjacent words in common.
type Deduplication struct {
	Provider   string  `json:"provider,omitempty"`
	Model      string  `json:"model,omitempty"` // of the embeddings
	Similarity float64 `json:"similarity"`      // above 0, at most 1
}

// DefaultSimilarity is the similarity from which ace-agent/ace merges bullets (bulletpoint_analyzer.py).
const DefaultSimilarity = 0.9

// Measure names the basis of the similarity: words, or the embeddings of a model.
func (d *Deduplication) Measure() string {
	if d.Provider == "" {
		return "words"
	}
	return "embeddings of " + d.Provider + "/" + d.Model
}

// String describes the setting.
func (d *Deduplication) String() string {
	return fmt.Sprintf("near-duplicates merged (%s, similarity %g or more)", d.Measure(), d.Similarity)
}

// ModelOf returns the model of a step.
func (in TaskInput) ModelOf(step Phase) string { return cmp.Or(in.Models[string(step)], in.Model) }

// Settings describes the settings that are not the default.
func (p Protocol) Settings() (list []string) {
	if p.Temperature != nil {
		list = append(list, "temperature "+strconv.FormatFloat(*p.Temperature, 'g', -1, 64))
	}
	if p.AnswerTokens > 0 {
		list = append(list, "answers of at most "+Count(p.AnswerTokens, "token"))
	}
	if p.Seed != nil {
		list = append(list, fmt.Sprintf("seed %d", *p.Seed))
	}
	for _, step := range slices.Sorted(maps.Keys(p.Models)) {
		list = append(list, step+" by "+p.Models[step])
	}
	for _, step := range PromptedPhases() {
		if prompt := p.Prompts.Of(step); prompt != nil {
			list = append(list, fmt.Sprintf("%s prompt %s", step, prompt))
		}
	}
	if p.NoSkills {
		list = append(list, "without the skills phase")
	}
	if p.HideLabels {
		list = append(list, "labels hidden")
	}
	if p.Rounds > 0 {
		list = append(list, fmt.Sprintf("reflection rounds: up to %d", p.Rounds))
	}
	if p.CurateEvery > 1 {
		list = append(list, fmt.Sprintf("curator asked every %d tasks", p.CurateEvery))
	}
	if p.PlaybookTokens > 0 {
		list = append(list, "playbook of at most "+Count(p.PlaybookTokens, "token"))
	}
	if p.Deduplicate != nil {
		list = append(list, p.Deduplicate.String())
	}
	if p.Review != nil {
		list = append(list, p.Review.String())
	}
	if p.AnswerAfter {
		list = append(list, "answers after the update")
	}
	return list
}

// Settings describes the settings of the experiment that are not the default.
func (in *ExperimentInput) Settings() []string {
	list := in.Protocol.Settings()
	if in.Sequential {
		list = append(list, "learns task by task within a window")
	}
	if in.MaxCostUSD != 0 {
		list = append(list, "at most "+in.Limits().dollars())
	}
	if in.MaxTokens != 0 {
		list = append(list, "at most "+Count(in.MaxTokens, "token"))
	}
	return list
}

// SettingsText returns [ExperimentInput.Settings] as text, "" for an experiment with the defaults.
func (in *ExperimentInput) SettingsText() string { return strings.Join(in.Settings(), ", ") }
