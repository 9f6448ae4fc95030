package ace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// InlineBytes is the size above which a payload is stored as an artifact, so that the history
// holds only its [Ref].
const InlineBytes = 32 << 10

// Ref identifies an artifact by the SHA-256 of its content, in lowercase hexadecimal.
type Ref struct {
	SHA256    string `json:"sha256"`
	Size      int64  `json:"size"`
	MediaType string `json:"media_type,omitempty"`
}

var refPattern = regexp.MustCompile(`\{"sha256":"([0-9a-f]{64})","size":(\d{1,18})[,}]`)

// RefsIn returns the references in a compact JSON text, without media types.
func RefsIn(text []byte) (refs []Ref) {
	for _, m := range refPattern.FindAllSubmatch(text, -1) {
		size, _ := strconv.ParseInt(string(m[2]), 10, 64) // 18 digits are in range
		refs = append(refs, Ref{SHA256: string(m[1]), Size: size})
	}
	return refs
}

// Usage is the cost of a step: tokens as the provider counts them, and the cost in US dollars
// of the tokens that have a known price. The zero value says that none of it is recorded.
type Usage struct {
	InputTokens     int64   `json:"input_tokens"`
	OutputTokens    int64   `json:"output_tokens"`
	CacheReadTokens int64   `json:"cache_read_tokens,omitempty"`
	CostUSD         float64 `json:"cost_usd"`
	// Unpriced is set if some tokens have no known price, so that CostUSD is too low.
	Unpriced bool `json:"unpriced,omitempty"`
}

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		InputTokens:     u.InputTokens + v.InputTokens,
		OutputTokens:    u.OutputTokens + v.OutputTokens,
		CacheReadTokens: u.CacheReadTokens + v.CacheReadTokens,
		CostUSD:         u.CostUSD + v.CostUSD,
		Unpriced:        u.Unpriced || v.Unpriced,
	}
}

// Tokens returns the number of all tokens.
func (u Usage) Tokens() int64 { return u.InputTokens + u.OutputTokens + u.CacheReadTokens }

// UnknownCost is the text of a cost without any known price.
const UnknownCost = "?"

// Cost returns the cost as text: with a plus sign if some tokens have no known price, and [UnknownCost] if no
// token has one or nothing is recorded.
func (u Usage) Cost() string {
	switch {
	case u == (Usage{}), u.Unpriced && u.CostUSD == 0:
		return UnknownCost
	case u.Unpriced:
		return Dollars(u.CostUSD) + "+"
	}
	return Dollars(u.CostUSD)
}

// Dollars returns an amount in US dollars as text. Only zero is "$0".
func Dollars(usd float64) string {
	switch {
	case usd == 0:
		return "$0"
	case math.Abs(usd) < 0.00005:
		return "<$.0001"
	case math.Abs(usd) < 10:
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// SkillsConfig configures the tools of a skills session. An empty AllowedTools allows every
// tool. PermissionMode is recorded but not interpreted.
type SkillsConfig struct {
	AllowedTools   []string `json:"allowed_tools,omitempty"`
	PermissionMode string   `json:"permission_mode,omitempty"`
}

// Allows reports whether the session may call the tool.
func (c SkillsConfig) Allows(tool string) bool {
	return len(c.AllowedTools) == 0 || slices.Contains(c.AllowedTools, tool)
}

// TaskInput is the input of [TaskWorkflow].
type TaskInput struct {
	TaskID string `json:"task_id"`
	Prompt string `json:"prompt"`
	// Subject describes the task in lists, which show the beginning of Prompt if it is "".
	Subject      string       `json:"subject,omitempty"`
	PromptRef    *Ref         `json:"prompt_ref,omitempty"` // replaces a Prompt above InlineBytes
	Adapter      Adapter      `json:"adapter"`
	PlaybookHash string       `json:"playbook_hash"`
	SkillsConfig SkillsConfig `json:"skills_config"`
	ExperimentID string       `json:"experiment_id"`
	DatasetID    string       `json:"dataset_id"`
	Provider     string       `json:"provider,omitempty"`
	Model        string       `json:"model"`
	// Label is the expected answer, nil if unknown. Only the reflector sees it.
	Label *string `json:"label,omitempty"`
	// Grader compares the answer with the label; "" means "exact". See engine/learning/grade.
	Grader string `json:"grader,omitempty"`
	// Steps overrides the provider of single steps, as in "generator": "builtin".
	Steps map[string]string `json:"steps,omitempty"`
	// Branch is the playbook branch that the delta is merged into; "" only records the delta.
	Branch string `json:"branch,omitempty"`
	Epoch  int    `json:"epoch,omitempty"`
	Index  int    `json:"index,omitempty"`
	// PaceMS is the minimum duration of every phase in milliseconds, for demonstrations.
	PaceMS int64 `json:"pace_ms,omitempty"`
	// Fork holds the results that the run reuses from its original; nil if it is not a fork.
	Fork *Fork `json:"fork,omitempty"`
	Observation
	// Revision is the revision of the contract that the starter asks the run to follow; see [Revision].
	Revision int `json:"revision,omitempty"`
	Protocol
	// LearnFrom is a newer version than PlaybookHash, with which the task is answered again to learn from
	// that answer. "" learns from the first answer.
	LearnFrom string `json:"learn_from,omitempty"`
	// Budget bounds the usage of the run; nil is no limit. Once it is spent, no further step starts and the
	// run completes.
	Budget *Budget `json:"budget,omitempty"`
	// By is the user who started the run or its experiment, such as user@host.
	By string `json:"by,omitempty"`
	// ExperimentRun identifies the execution of the experiment that started the task; "" if none did.
	ExperimentRun string `json:"experiment_run,omitempty"`
}

// Observation is the part of a [TaskInput] for an observed run.
type Observation struct {
	// Observed marks a run that happens elsewhere: the workflow executes no step and learns
	// everything from [SignalToolEvent].
	Observed bool `json:"observed,omitempty"`
	// Source names the observer: for the hooks of an agent, the agent as in [Agents].
	Source string `json:"source,omitempty"`
	// IdleMS is the time in milliseconds without an event after which an observed run ends; 0 means
	// [DefaultIdle].
	IdleMS int64 `json:"idle_ms,omitempty"`
	// Carried is the state that an observed run carries over when it continues as new.
	Carried *Carried `json:"carried,omitempty"`
}

// Revision is the current value of [TaskInput.Revision]. A replay compares memo and search attributes, so a
// run keeps the revision that it was started with. Revisions add:
//
//	1  the verdict in the memo
//	2  in the memo, the usage that no transcript has
//	3  the subject, the answer and the cause in the memo
//	4  operations that wait for review do not count in the memo; an experiment does not start a canceled task
//	   again
//	5  [AttrPhase] of an experiment that did not complete is [StageStopped]; the memo counts only merged
//	   operations as accepted
//	6  [TaskInput.ExperimentRun]
const Revision = 6

// GraderJudge is the [TaskInput.Grader] that asks the model of the reflector.
const GraderJudge = "judge"

// Graders with partial credit: [TaskInput.Grader] is GraderTags, or begins with GraderProgram.
const (
	GraderTags    = "tags"
	GraderProgram = "program:"
)

// DefaultIdle and maxIdle are the default and the upper bound of [TaskInput.IdleMS].
const (
	DefaultIdle = 24 * time.Hour
	maxIdle     = 365 * 24 * time.Hour
)

// Idle returns how long an observed run may be without an event.
func (in TaskInput) Idle() time.Duration {
	if in.IdleMS <= 0 {
		return DefaultIdle
	}
	return time.Duration(min(in.IdleMS, int64(maxIdle/time.Millisecond))) * time.Millisecond
}

// Finish is the result of a [KindFinish] event: the outcome of an observed run. Without an
// ExitStatus, the run failed if the event has an error and completed otherwise.
type Finish struct {
	ExitStatus ExitStatus `json:"exit_status,omitempty"`
	Answer     string     `json:"answer,omitempty"`
	Correct    *bool      `json:"correct,omitempty"`
}

// PhaseUsage is the result of a [KindUsage] event: the model, the usage and the times of a phase of
// an observed run so far.
type PhaseUsage struct {
	Model     string    `json:"model,omitempty"`
	Usage     Usage     `json:"usage"`
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"` // of the newest event
}

// ProviderOf returns the provider of a step.
func (in TaskInput) ProviderOf(step Phase) string {
	return cmp.Or(in.Steps[string(step)], in.Provider)
}

// StepTime is the time of a step as measured by its activity. A field that the worker does not report is
// zero.
type StepTime struct {
	StartedAt  time.Time `json:"started_at,omitzero"`
	DurationMS float64   `json:"duration_ms,omitempty"`
	Attempt    int32     `json:"attempt,omitempty"`
	Worker     string    `json:"worker,omitempty"`
}

// ParseKind is the way in which a model's answer was parsed.
type ParseKind string

// Parse kinds: the answer was exactly the requested JSON; the JSON was extracted from other
// text; invalid JSON was repaired; the model was told the error and asked again.
const (
	ParseClean     ParseKind = "clean"
	ParseExtracted ParseKind = "extracted"
	ParseRepaired  ParseKind = "repaired"
	ParseAsked     ParseKind = "asked_again"
)

// ParseReport describes how the answer of a model was parsed. Note names irregularities, and
// Attempts counts the answers that were needed.
type ParseReport struct {
	Parse    ParseKind `json:"parse"`
	Note     string    `json:"note,omitempty"`
	Attempts int       `json:"attempts"`
}

// String describes the irregularities, or returns "" for a regular answer.
func (v *ParseReport) String() string {
	if v == nil {
		return ""
	}
	how := string(v.Parse)
	switch v.Parse {
	case ParseClean:
		return v.Note
	case ParseExtracted:
		how = "extracted from other text"
	case ParseAsked:
		how = "asked again"
	}
	if v.Note == "" {
		return how
	}
	return how + ": " + v.Note
}

// Served identifies the blueprint run that executed a step, and its runner.
type Served struct {
	Provider string `json:"provider"` // "blueprint:NAME"
	RunID    string `json:"run_id"`
	Runner   string `json:"runner_id,omitempty"`
}

// StepReport is the part of the result of a step that says how the step was executed.
type StepReport struct {
	Usage  *Usage       `json:"usage,omitempty"`
	Calls  *CallLog     `json:"model_calls,omitempty"`
	Parsed *ParseReport `json:"verdict,omitempty"`
	Served *Served      `json:"served,omitempty"`
	Time   *StepTime    `json:"time,omitempty"`
}

func (r *StepReport) report() StepReport { return *r }

// report falls back to the token counts of workers that report no usage object.
func (r *GeneratorResult) report() StepReport {
	report := r.StepReport
	if r.Usage == nil && r.PromptTokens+r.CompletionTokens > 0 {
		report.Usage = &Usage{InputTokens: r.PromptTokens, OutputTokens: r.CompletionTokens}
	}
	return report
}

func (r *PersistResult) report() StepReport { return StepReport{Time: r.Time} }

// GeneratorInput is the input of [ActivityGenerator].
type GeneratorInput struct {
	Task      TaskContext `json:"task"`
	Prompt    string      `json:"prompt"`
	PromptRef *Ref        `json:"prompt_ref,omitempty"`
	// Reflection holds the insights on the previous, wrong answer; "" if the task is not answered again.
	Reflection string `json:"reflection,omitempty"`
}

// TaskContext is the part of the task that every step receives. It never holds the label.
type TaskContext struct {
	TaskID       string       `json:"task_id"`
	WorkflowID   string       `json:"workflow_id"`
	RunID        string       `json:"run_id"`
	ExperimentID string       `json:"experiment_id,omitempty"`
	PlaybookHash string       `json:"playbook_hash"`
	Provider     string       `json:"provider"`
	Model        string       `json:"model"`
	SkillsConfig SkillsConfig `json:"skills_config"`
	PaceMS       int64        `json:"pace_ms,omitempty"`
	Sampling
	// PhasePrompt is the prompt of the phase, nil for the default.
	PhasePrompt *PhasePrompt `json:"phase_prompt,omitempty"`
	// Budget bounds the usage of the step. A provider that sends requests itself checks it before each
	// request.
	Budget *Budget `json:"budget,omitempty"`
	// DeltaID identifies the delta of the task, which is merged once; "" means WorkflowID/RunID. A task of
	// an experiment has the same one if it is started again because the server has lost its run.
	DeltaID string `json:"delta_id,omitempty"`
}

// GeneratorResult is the result of [ActivityGenerator]. Program is the plan in the provider's
// own format, which its skills session and reflector receive.
type GeneratorResult struct {
	PromptTokens     int64           `json:"prompt_tokens"`
	CompletionTokens int64           `json:"completion_tokens"`
	Plan             string          `json:"plan"`
	Program          json.RawMessage `json:"program,omitempty"`
	TrajectoryID     string          `json:"trajectory_id"`
	BulletIDs        []string        `json:"bullet_ids,omitempty"`
	Answer           string          `json:"answer,omitempty"`
	StepReport
}

// SkillsInput is the input of [ActivitySkills].
type SkillsInput struct {
	Task      TaskContext     `json:"task"`
	Prompt    string          `json:"prompt"`
	PromptRef *Ref            `json:"prompt_ref,omitempty"`
	Plan      string          `json:"plan"`
	Program   json.RawMessage `json:"program,omitempty"`
	BulletIDs []string        `json:"bullet_ids,omitempty"`
	Answer    string          `json:"answer,omitempty"`
	// Pass is the number of earlier passes of the task. The IDs of tool calls must differ between passes.
	Pass int `json:"pass,omitempty"`
}

// Invocation is one tool call. Accepted is false if a permission rule denied it; OK is false if
// it ran and failed. Args and Result are JSON.
type Invocation struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Args       json.RawMessage `json:"args,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Accepted   bool            `json:"accepted"`
	OK         bool            `json:"ok"`
	At         time.Time       `json:"at,omitzero"`
	DurationMS float64         `json:"duration_ms"`
	Error      string          `json:"error,omitempty"`
}

// SkillSessionResult is the result of [ActivitySkills]. A nonempty Answer replaces the
// generator's. If the invocations together exceed InlineBytes, their payloads are truncated by
// [Preview] and Log refers to the full invocations as JSON lines.
type SkillSessionResult struct {
	Invocations []Invocation `json:"invocations"`
	Log         *Ref         `json:"log,omitempty"`
	Answer      string       `json:"answer,omitempty"`
	StepReport
}

// ReflectorInput is the input of [ActivityReflector].
type ReflectorInput struct {
	Task      TaskContext     `json:"task"`
	Prompt    string          `json:"prompt"`
	PromptRef *Ref            `json:"prompt_ref,omitempty"`
	Plan      string          `json:"plan"`
	Program   json.RawMessage `json:"program,omitempty"`
	BulletIDs []string        `json:"bullet_ids,omitempty"`
	Answer    string          `json:"answer"`
	Label     *string         `json:"label,omitempty"`
	Grader    string          `json:"grader,omitempty"`
	// HideLabel keeps the label from the provider, which gets Correct and Score instead.
	HideLabel bool     `json:"hide_label,omitempty"`
	Correct   *bool    `json:"correct,omitempty"`
	Score     *float64 `json:"score,omitempty"`
	// Reflect says when to reflect. Otherwise the result has Correct and Score only.
	Reflect ReflectWhen `json:"reflect,omitempty"`
}

// BulletTag is the reflector's rating of one bullet: helpful, harmful or neutral.
type BulletTag struct {
	ID  string `json:"id"`
	Tag string `json:"tag"`
}

// ReflectorResult is the result of [ActivityReflector]. Correct is nil without a label. Score is the partial
// credit from 0 to 1, nil unless the task names a grader; an answer is correct if it is 1. GradeReason is a
// line of the grader [GraderJudge] that gives the reason for the verdict, "" if it was not asked.
// Findings is the provider's own data for its curator.
type ReflectorResult struct {
	Insights string `json:"insights"`
	// Cause says in a short phrase why the answer is wrong. It is the same for tasks that failed for the same
	// reason.
	Cause       string          `json:"cause,omitempty"`
	BulletTags  []BulletTag     `json:"bullet_tags,omitempty"`
	Correct     *bool           `json:"correct,omitempty"`
	Score       *float64        `json:"score,omitempty"`
	GradeReason string          `json:"grade_reason,omitempty"`
	Findings    json.RawMessage `json:"findings,omitempty"`
	StepReport
}

// CuratorInput is the input of [ActivityCurator].
type CuratorInput struct {
	Task       TaskContext     `json:"task"`
	Insights   string          `json:"insights"`
	BulletTags []BulletTag     `json:"bullet_tags,omitempty"`
	Findings   json.RawMessage `json:"findings,omitempty"`
	Correct    *bool           `json:"correct,omitempty"`
	// TagsOnly asks only for the operations that count BulletTags.
	TagsOnly bool `json:"tags_only,omitempty"`
	// PlaybookTokens bounds the size of the playbook, estimated as four bytes per token; 0 is no bound.
	PlaybookTokens int `json:"playbook_tokens,omitempty"`
	// Deduplicate asks to reject additions that are near-duplicates of other bullets, and to merge the
	// near-duplicates of the playbook. Their reasons say how similar they are.
	Deduplicate *Deduplication `json:"deduplicate,omitempty"`
}

// OperationType is the type of a playbook operation.
type OperationType string

// Operation types. DELETE, which other curators write, is read as REMOVE.
const (
	OpAdd    OperationType = "ADD"
	OpUpdate OperationType = "UPDATE"
	OpTag    OperationType = "TAG"
	OpRemove OperationType = "REMOVE"
	OpMerge  OperationType = "MERGE"
)

// Outcome is the outcome of an operation.
type Outcome string

// Outcomes. An ignored operation was valid but changed nothing. A proposed operation waits for review. The
// run of an unmerged operation closed before it recorded the merge; only readers of histories know that
// outcome.
const (
	OutcomeProposed   Outcome = "proposed"
	OutcomeAccepted   Outcome = "accepted"
	OutcomeRejected   Outcome = "rejected"
	OutcomeIgnored    Outcome = "ignored"
	OutcomeUnparsable Outcome = "unparsable"
	OutcomeUnmerged   Outcome = "unmerged"
)

// Outcomes lists every outcome.
func Outcomes() []Outcome {
	return []Outcome{OutcomeProposed, OutcomeAccepted, OutcomeRejected, OutcomeIgnored, OutcomeUnparsable,
		OutcomeUnmerged}
}

// Operation is one playbook change that a curator proposes, and its outcome. For TAG, Metadata
// holds the increments of the counters "helpful", "harmful" and "neutral". A MERGE moves the counters
// of the bullets SourceIDs to the bullet BulletID, whose content Content replaces unless it is empty, and
// removes the sources.
type Operation struct {
	Type      OperationType  `json:"type"`
	Section   string         `json:"section,omitempty"`
	Content   string         `json:"content,omitempty"`
	BulletID  string         `json:"bullet_id,omitempty"`
	SourceIDs []string       `json:"source_ids,omitempty"`
	Metadata  map[string]int `json:"metadata,omitempty"`
	Outcome   Outcome        `json:"fate,omitempty"`
	Reason    string         `json:"reason,omitempty"`
}

// Refused reports whether the operation was rejected, changed nothing, could not be parsed, or was not
// merged.
func (op *Operation) Refused() bool {
	return op.Outcome != "" && op.Outcome != OutcomeAccepted && op.Outcome != OutcomeProposed
}

// CuratorResult is the result of [ActivityCurator].
type CuratorResult struct {
	Accepted        []Operation `json:"accepted"`
	Rejected        []Operation `json:"rejected"`
	Rationale       string      `json:"rationale"`
	FollowUpActions []string    `json:"follow_up_actions,omitempty"`
	StepReport
}

// PersistInput is the input of [ActivityPersist].
type PersistInput struct {
	Task       TaskContext `json:"task"`
	Branch     string      `json:"branch,omitempty"`
	Operations []Operation `json:"operations"`
	Rationale  string      `json:"rationale,omitempty"`
	// PlaybookTokens bounds the playbook as in [CuratorInput]. Operations beyond it are rejected.
	PlaybookTokens int `json:"playbook_tokens,omitempty"`
}

// PersistResult is the result of [ActivityPersist]. PlaybookBefore is the version that the delta
// was merged into; another task may have changed it since this one started. Operations holds
// the outcome of each operation that the curator accepted.
type PersistResult struct {
	PlaybookBefore string      `json:"playbook_before"`
	PlaybookAfter  string      `json:"playbook_after"`
	Operations     []Operation `json:"operations"`
	Bullets        int         `json:"bullets"`
	// Seq is the number of PlaybookAfter in its branch; 0 without a branch.
	Seq  int       `json:"seq,omitempty"`
	Time *StepTime `json:"time,omitempty"`
}

// TaskResult is the result of [TaskWorkflow], which has completed. ExitStatus is [ExitOf] of its status and
// verdict, for readers of [AttrExit].
type TaskResult struct {
	TaskID       string     `json:"task_id"`
	ExitStatus   ExitStatus `json:"exit_status"`
	Answer       string     `json:"answer"`
	Correct      *bool      `json:"correct,omitempty"`
	Score        *float64   `json:"score,omitempty"`   // see ReflectorResult
	Verdict      Verdict    `json:"verdict,omitempty"` // "" in results of earlier versions; see Graded
	PlaybookHash string     `json:"playbook_hash"`
	Bullets      int        `json:"bullets"`         // in that playbook
	Seq          int        `json:"seq,omitempty"`   // of that playbook in its branch
	Index        int        `json:"index,omitempty"` // of the task in its data set
	// Stopped says why steps were not executed, "" if all were.
	Stopped string  `json:"stopped,omitempty"`
	Summary Summary `json:"summary"`
	// Regenerated reports whether the last answer with a reflection is correct, and After whether the answer
	// with the updated playbook is. Each is nil without such an answer or without a label.
	Regenerated *bool `json:"correct_regenerated,omitempty"`
	After       *bool `json:"correct_after,omitempty"`
}

// Graded returns the verdict on the answer, also of a result of an earlier version.
func (r *TaskResult) Graded() Verdict { return cmp.Or(r.Verdict, VerdictOf(false, r.Correct)) }

// Counts reports whether an experiment counts the task. It does not count a task that its budget stopped
// before the answer was graded.
func (r *TaskResult) Counts() bool { return r.Stopped == "" || r.Correct != nil }

// ModelUsage is the usage by model name.
type ModelUsage map[string]Usage

// Summary is the data that a list of runs shows, kept in the memo [MemoSummary].
type Summary struct {
	// Verdict is the verdict on the answer; "" in a sum of tasks and in runs of [TaskInput.Revision] 0.
	Verdict Verdict `json:"verdict,omitempty"`
	// Subject, Answer, Expected and Cause describe a task in one line each, see [State.Summary]. They are ""
	// in a sum and in runs of a [TaskInput.Revision] below 3. All are untrusted text.
	Subject  string `json:"subject,omitempty"`
	Answer   string `json:"answer,omitempty"`
	Expected string `json:"expected,omitempty"` // the label
	Cause    string `json:"cause,omitempty"`    // why the answer is wrong or the run failed
	Skills   int    `json:"skills"`
	SkillsOK int    `json:"skills_ok"`
	Added    int    `json:"added"`
	Updated  int    `json:"updated"`
	Removed  int    `json:"removed"`
	Tagged   int    `json:"tagged"`
	Rejected int    `json:"rejected"`
	Merged   int    `json:"merged,omitempty"`
	Usage    Usage  `json:"usage"`
	// Metered is the part of Usage that no transcript of an agent's CLI has, by model. It is nil in a sum and
	// in runs of [TaskInput.Revision] 0 and 1. In an experiment, it is the usage of the evaluations.
	Metered *ModelUsage `json:"metered,omitempty"`
	PhaseMS PhaseMS     `json:"phase_ms,omitzero"`
	// EndedAt is when an observed run ended, if its observer reports it.
	EndedAt time.Time `json:"ended_at,omitzero"`
}

// Add returns the sum of two summaries.
func (s Summary) Add(t Summary) Summary {
	return Summary{
		Skills: s.Skills + t.Skills, SkillsOK: s.SkillsOK + t.SkillsOK,
		Added: s.Added + t.Added, Updated: s.Updated + t.Updated, Removed: s.Removed + t.Removed,
		Tagged: s.Tagged + t.Tagged, Rejected: s.Rejected + t.Rejected, Merged: s.Merged + t.Merged,
		Usage: s.Usage.Add(t.Usage), PhaseMS: s.PhaseMS.Add(t.PhaseMS),
	}
}

// Accepted returns the number of accepted operations of all types.
func (s Summary) Accepted() int { return s.Added + s.Updated + s.Removed + s.Tagged + s.Merged }

// PhaseMS holds the measured duration of each step in milliseconds, 0 if unknown.
type PhaseMS struct {
	Generator float64 `json:"generator,omitempty"`
	Skills    float64 `json:"skills,omitempty"`
	Reflector float64 `json:"reflector,omitempty"`
	Curator   float64 `json:"curator,omitempty"`
	Persist   float64 `json:"persist,omitempty"`
}

// Of returns the duration of a step, or 0 for another phase.
func (p PhaseMS) Of(step Phase) float64 {
	if at := p.at(step); at != nil {
		return *at
	}
	return 0
}

func (p *PhaseMS) at(step Phase) *float64 {
	switch step {
	case PhaseGenerator:
		return &p.Generator
	case PhaseSkills:
		return &p.Skills
	case PhaseReflector:
		return &p.Reflector
	case PhaseCurator:
		return &p.Curator
	case PhasePersist:
		return &p.Persist
	}
	return nil
}

// Add returns the sums of the durations by step. It adds whole microseconds, because a sum of floats depends
// on their order.
func (p PhaseMS) Add(q PhaseMS) PhaseMS {
	for _, step := range Steps() {
		sum := p.at(step)
		*sum = float64(math.Round(*sum*1000)+math.Round(q.Of(step)*1000)) / 1000
	}
	return p
}
