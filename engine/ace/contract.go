package ace

import (
	"encoding/json"
	"math"
	"time"
)

// InlineBytes is the size above which a payload is stored as an artifact and only
// its [Ref] travels through a history.
const InlineBytes = 32 << 10

// Ref names an artifact by the SHA-256 of its content, in lower-case hexadecimal.
type Ref struct {
	SHA256    string `json:"sha256"`
	Size      int64  `json:"size"`
	MediaType string `json:"media_type,omitempty"`
}

// Usage is what a step cost. Tokens are counted by the provider; CostUSD is in
// United States dollars, of what has a known price.
type Usage struct {
	InputTokens     int64   `json:"input_tokens"`
	OutputTokens    int64   `json:"output_tokens"`
	CacheReadTokens int64   `json:"cache_read_tokens,omitempty"`
	CostUSD         float64 `json:"cost_usd"`
	// Unpriced tells that tokens are counted whose price is not known, so that CostUSD is
	// too low.
	Unpriced bool `json:"unpriced,omitempty"`
}

// Add is the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		InputTokens:     u.InputTokens + v.InputTokens,
		OutputTokens:    u.OutputTokens + v.OutputTokens,
		CacheReadTokens: u.CacheReadTokens + v.CacheReadTokens,
		CostUSD:         u.CostUSD + v.CostUSD,
		Unpriced:        u.Unpriced || v.Unpriced,
	}
}

// SkillsConfig says which tools a skills session may call. An empty AllowedTools
// allows every tool. PermissionMode is recorded as given.
type SkillsConfig struct {
	AllowedTools   []string `json:"allowed_tools,omitempty"`
	PermissionMode string   `json:"permission_mode,omitempty"`
}

// Allows tells whether the tool may be called.
func (c SkillsConfig) Allows(tool string) bool {
	for _, t := range c.AllowedTools {
		if t == tool {
			return true
		}
	}
	return len(c.AllowedTools) == 0
}

// TaskInput is the input of [TaskWorkflow].
type TaskInput struct {
	TaskID       string       `json:"task_id"`
	Prompt       string       `json:"prompt"`
	PromptRef    *Ref         `json:"prompt_ref,omitempty"` // instead of Prompt when that is above InlineBytes
	Adapter      Adapter      `json:"adapter"`
	PlaybookHash string       `json:"playbook_hash"`
	SkillsConfig SkillsConfig `json:"skills_config"`
	ExperimentID string       `json:"experiment_id"`
	DatasetID    string       `json:"dataset_id"`
	Provider     string       `json:"provider,omitempty"`
	Model        string       `json:"model"`
	// Label is the expected answer; nil where there is none. Only the reflector sees it.
	Label *string `json:"label,omitempty"`
	// Steps names who serves a step ("generator": "builtin"); Provider serves the others.
	Steps map[string]string `json:"steps,omitempty"`
	// Branch names the line of playbook versions that the delta is merged into; ""
	// means that it is only recorded.
	Branch string `json:"branch,omitempty"`
	Epoch  int    `json:"epoch,omitempty"`
	Index  int    `json:"index,omitempty"`
	// PaceMS holds every phase for at least so many milliseconds, for the eye.
	PaceMS int64 `json:"pace_ms,omitempty"`
	// Fork says what the run takes over from another; nil for a run that begins by itself.
	Fork *Fork `json:"fork,omitempty"`
	// Observed tells that the run happens elsewhere: no step is executed, all that is known
	// of it comes by [SignalToolEvent].
	Observed bool `json:"observed,omitempty"`
	// Source names the observer, such as "claude-code".
	Source string `json:"source,omitempty"`
	// IdleMS is after how many milliseconds without an event an observed run is given up;
	// 0 is [DefaultIdle].
	IdleMS int64 `json:"idle_ms,omitempty"`
	// Carried is what an observed run knew when it was continued under this run id.
	Carried *Carried `json:"carried,omitempty"`
}

// DefaultIdle is how long an observed run is waited for.
const DefaultIdle = 24 * time.Hour

// Idle is how long the run is waited for where it is observed.
func (in TaskInput) Idle() time.Duration {
	if in.IdleMS <= 0 {
		return DefaultIdle
	}
	return time.Duration(min(in.IdleMS, int64(maxIdle/time.Millisecond))) * time.Millisecond
}

// maxIdle bounds [TaskInput.IdleMS].
const maxIdle = 365 * 24 * time.Hour

// Finish is the result of an event of [KindFinish]: how an observed run ended. ExitStatus
// may be left out: it is failed where the event has an error, else success.
type Finish struct {
	ExitStatus ExitStatus `json:"exit_status,omitempty"`
	Answer     string     `json:"answer,omitempty"`
	Correct    *bool      `json:"correct,omitempty"`
}

// ProviderOf is who serves a step.
func (in TaskInput) ProviderOf(step Phase) string {
	if p := in.Steps[string(step)]; p != "" {
		return p
	}
	return in.Provider
}

// StepTime is when a step ran, as its activity measured it. Zero where the worker
// does not report it.
type StepTime struct {
	StartedAt  time.Time `json:"started_at,omitzero"`
	DurationMS float64   `json:"duration_ms,omitempty"`
	Attempt    int32     `json:"attempt,omitempty"`
	Worker     string    `json:"worker,omitempty"`
}

// ParseKind is how a model's answer was read.
type ParseKind string

// Parse kinds: the answer was what was asked for and nothing else; it stood among other
// text; it was no valid JSON and was mended; the model was told what was wrong and asked
// again.
const (
	ParseClean     ParseKind = "clean"
	ParseExtracted ParseKind = "extracted"
	ParseRepaired  ParseKind = "repaired"
	ParseAsked     ParseKind = "asked_again"
)

// Verdict is how the answer of a step that asks a model was read. Note says what was odd
// about it, and Attempts how many answers it took.
type Verdict struct {
	Parse    ParseKind `json:"parse"`
	Note     string    `json:"note,omitempty"`
	Attempts int       `json:"attempts"`
}

// String is the verdict in words, "" where there is nothing odd about it.
func (v *Verdict) String() string {
	if v == nil {
		return ""
	}
	how := map[ParseKind]string{ParseClean: "", ParseExtracted: "taken out of other text", ParseRepaired: "mended", ParseAsked: "asked for again"}
	said, known := how[v.Parse]
	if !known {
		said = string(v.Parse)
	}
	switch {
	case said == "":
		return v.Note
	case v.Note == "":
		return said
	}
	return said + ": " + v.Note
}

// Served says that a step was served by a run of a blueprint: which run, and who executed it.
type Served struct {
	Provider string `json:"provider"` // "blueprint:NAME"
	RunID    string `json:"run_id"`
	Runner   string `json:"runner_id,omitempty"`
}

// GeneratorInput is the input of [ActivityGenerator].
type GeneratorInput struct {
	Task      TaskContext `json:"task"`
	Prompt    string      `json:"prompt"`
	PromptRef *Ref        `json:"prompt_ref,omitempty"`
}

// TaskContext is what every step is told of its task. It never holds the label.
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
}

// GeneratorResult is what [ActivityGenerator] returns.
type GeneratorResult struct {
	PromptTokens     int64           `json:"prompt_tokens"`
	CompletionTokens int64           `json:"completion_tokens"`
	Plan             string          `json:"plan"`
	Program          json.RawMessage `json:"program,omitempty"` // the plan as the provider's own data, handed on to its skills session
	TrajectoryID     string          `json:"trajectory_id"`
	BulletIDs        []string        `json:"bullet_ids,omitempty"`
	Answer           string          `json:"answer,omitempty"`
	Usage            *Usage          `json:"usage,omitempty"`
	Verdict          *Verdict        `json:"verdict,omitempty"`
	Served           *Served         `json:"served,omitempty"`
	Time             *StepTime       `json:"time,omitempty"`
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
}

// Invocation is one tool call. Accepted is false when a permission rule refused it;
// OK is false when it ran and failed. Args and Result are JSON.
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

// SkillSessionResult is what [ActivitySkills] returns. Answer, where it is set, is
// the run's answer in place of the generator's. Where the invocations exceed InlineBytes
// in all, their payloads are cut by [Preview] and Log names the artifact that holds them
// whole, one JSON object a line.
type SkillSessionResult struct {
	Invocations []Invocation `json:"invocations"`
	Log         *Ref         `json:"log,omitempty"`
	Answer      string       `json:"answer,omitempty"`
	Usage       *Usage       `json:"usage,omitempty"`
	Verdict     *Verdict     `json:"verdict,omitempty"`
	Served      *Served      `json:"served,omitempty"`
	Time        *StepTime    `json:"time,omitempty"`
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
}

// BulletTag is the reflector's verdict on one bullet: helpful, harmful or neutral.
type BulletTag struct {
	ID  string `json:"id"`
	Tag string `json:"tag"`
}

// ReflectorResult is what [ActivityReflector] returns. Correct is nil where there was
// no label. Findings is the provider's own data for its curator.
type ReflectorResult struct {
	Insights   string          `json:"insights"`
	BulletTags []BulletTag     `json:"bullet_tags,omitempty"`
	Correct    *bool           `json:"correct,omitempty"`
	Findings   json.RawMessage `json:"findings,omitempty"`
	Usage      *Usage          `json:"usage,omitempty"`
	Verdict    *Verdict        `json:"verdict,omitempty"`
	Served     *Served         `json:"served,omitempty"`
	Time       *StepTime       `json:"time,omitempty"`
}

// CuratorInput is the input of [ActivityCurator].
type CuratorInput struct {
	Task       TaskContext     `json:"task"`
	Insights   string          `json:"insights"`
	BulletTags []BulletTag     `json:"bullet_tags,omitempty"`
	Findings   json.RawMessage `json:"findings,omitempty"`
	Correct    *bool           `json:"correct,omitempty"`
}

// OperationType is the kind of a playbook operation.
type OperationType string

// Operation types. MERGE is read from foreign delta logs and never applied.
const (
	OpAdd    OperationType = "ADD"
	OpUpdate OperationType = "UPDATE"
	OpTag    OperationType = "TAG"
	OpRemove OperationType = "REMOVE"
	OpMerge  OperationType = "MERGE"
)

// Fate is what became of an operation.
type Fate string

// Fates. Ignored operations were valid but had nothing to do.
const (
	FateAccepted   Fate = "accepted"
	FateRejected   Fate = "rejected"
	FateIgnored    Fate = "ignored"
	FateUnparsable Fate = "unparsable"
)

// Operation is one change that a curator proposes to a playbook, and its fate. For
// TAG, Metadata holds how much to add to the counters "helpful", "harmful" and
// "neutral".
type Operation struct {
	Type     OperationType  `json:"type"`
	Section  string         `json:"section,omitempty"`
	Content  string         `json:"content,omitempty"`
	BulletID string         `json:"bullet_id,omitempty"`
	Metadata map[string]int `json:"metadata,omitempty"`
	Fate     Fate           `json:"fate,omitempty"`
	Reason   string         `json:"reason,omitempty"`
}

// CuratorResult is what [ActivityCurator] returns.
type CuratorResult struct {
	Accepted        []Operation `json:"accepted"`
	Rejected        []Operation `json:"rejected"`
	Rationale       string      `json:"rationale"`
	FollowUpActions []string    `json:"follow_up_actions,omitempty"`
	Usage           *Usage      `json:"usage,omitempty"`
	Verdict         *Verdict    `json:"verdict,omitempty"`
	Served          *Served     `json:"served,omitempty"`
	Time            *StepTime   `json:"time,omitempty"`
}

// PersistInput is the input of [ActivityPersist].
type PersistInput struct {
	Task       TaskContext `json:"task"`
	Branch     string      `json:"branch,omitempty"`
	Operations []Operation `json:"operations"`
	Rationale  string      `json:"rationale,omitempty"`
}

// PersistResult is what [ActivityPersist] returns. PlaybookBefore is the version the
// delta was merged onto, which another task may have moved since this one started.
// Operations holds the fate of each operation that the curator had accepted.
type PersistResult struct {
	PlaybookBefore string      `json:"playbook_before"`
	PlaybookAfter  string      `json:"playbook_after"`
	Operations     []Operation `json:"operations"`
	Bullets        int         `json:"bullets"`
	// Seq counts the versions of the branch up to PlaybookAfter; 0 where there is no branch.
	Seq  int       `json:"seq,omitempty"`
	Time *StepTime `json:"time,omitempty"`
}

// TaskResult is the result of [TaskWorkflow].
type TaskResult struct {
	TaskID       string     `json:"task_id"`
	ExitStatus   ExitStatus `json:"exit_status"`
	Answer       string     `json:"answer"`
	Correct      *bool      `json:"correct,omitempty"`
	PlaybookHash string     `json:"playbook_hash"`
	Bullets      int        `json:"bullets"`         // in that playbook
	Seq          int        `json:"seq,omitempty"`   // of that playbook in its branch
	Index        int        `json:"index,omitempty"` // of the task in its data set
	Summary      Summary    `json:"summary"`
}

// Summary is what a list of runs shows of one, kept in the memo [MemoSummary].
type Summary struct {
	Skills   int   `json:"skills"`
	SkillsOK int   `json:"skills_ok"`
	Added    int   `json:"added"`
	Updated  int   `json:"updated"`
	Removed  int   `json:"removed"`
	Tagged   int   `json:"tagged"`
	Rejected int   `json:"rejected"`
	Usage    Usage `json:"usage"`
	// PhaseMS is how long each step took, as its activity measured it; left out where no
	// worker reports it.
	PhaseMS PhaseMS `json:"phase_ms,omitzero"`
}

// PhaseMS is milliseconds by step, 0 where a step did not end or was not measured.
type PhaseMS struct {
	Generator float64 `json:"generator,omitempty"`
	Skills    float64 `json:"skills,omitempty"`
	Reflector float64 `json:"reflector,omitempty"`
	Curator   float64 `json:"curator,omitempty"`
	Persist   float64 `json:"persist,omitempty"`
}

// Of is the milliseconds of one step, 0 for a phase that is none.
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

// Add is the sum of two, step by step.
func (p PhaseMS) Add(q PhaseMS) PhaseMS {
	return PhaseMS{addMS(p.Generator, q.Generator), addMS(p.Skills, q.Skills), addMS(p.Reflector, q.Reflector), addMS(p.Curator, q.Curator), addMS(p.Persist, q.Persist)}
}

// addMS adds in whole microseconds: sums of floats depend on their order.
func addMS(a, b float64) float64 { return float64(math.Round(a*1000)+math.Round(b*1000)) / 1000 }

// Add is the sum of two summaries.
func (s Summary) Add(t Summary) Summary {
	return Summary{
		Skills: s.Skills + t.Skills, SkillsOK: s.SkillsOK + t.SkillsOK,
		Added: s.Added + t.Added, Updated: s.Updated + t.Updated, Removed: s.Removed + t.Removed,
		Tagged: s.Tagged + t.Tagged, Rejected: s.Rejected + t.Rejected,
		Usage: s.Usage.Add(t.Usage), PhaseMS: s.PhaseMS.Add(t.PhaseMS),
	}
}

// Accepted is how many operations were accepted, of every type.
func (s Summary) Accepted() int { return s.Added + s.Updated + s.Removed + s.Tagged }
