package fork

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"acescope/engine/ace"
)

// Plan is a planned fork.
type Plan struct {
	WorkflowID string    `json:"of"`     // of the original
	RunID      string    `json:"of_run"` // of the original
	Event      int64     `json:"event"`  // last event that is kept
	Phase      ace.Phase `json:"phase"`
	// Within is set if the phase started before the event. The phase is then rerun from its start.
	Within bool `json:"within_phase,omitempty"`
	// Input is the input of the fork without its task ID and, with OwnBranch, its branch, which
	// are set when it starts. Results are inline, whatever their size.
	Input   ace.TaskInput             `json:"-"`
	Changed map[string]ace.ForkChange `json:"changed"`
	Reused  []ace.Phase               `json:"reused"`
	Rerun   []Step                    `json:"rerun"`
	// Estimate is the original's usage for the steps to rerun. Unknown lists the steps without recorded
	// usage.
	Estimate ace.Usage   `json:"-"`
	Unknown  []ace.Phase `json:"-"`
	// OwnBranch is set if the delta is merged into a new playbook branch of the fork.
	OwnBranch bool `json:"-"`
}

// Step is a step to rerun.
type Step struct {
	Phase    ace.Phase `json:"phase"`
	Provider string    `json:"provider,omitempty"` // "" for persist, which has no provider
	Model    string    `json:"model,omitempty"`    // "" for persist
	// Prompt is the prompt of the phase, nil for the default.
	Prompt *ace.PhasePrompt `json:"phase_prompt,omitempty"`
	Spent  *ace.Usage       `json:"-"` // by the original, nil if not recorded
}

// Costs reports whether a step to rerun may cost money.
func (p *Plan) Costs() bool {
	for _, s := range p.Rerun {
		if s.Provider != "" && s.Provider != ace.Builtin {
			return true
		}
	}
	return false
}

// Changes are the inputs that a fork changes. Nil fields keep the original's value.
type Changes struct {
	Model    *string
	Provider *string
	Prompt   *string
	// PromptRef is the artifact with the prompt if that exceeds [ace.InlineBytes]. Prompt is then
	// its beginning.
	PromptRef *ace.Ref
	Playbook  *string // hash of a version, "" for the empty playbook
	// Branch is the playbook branch that the delta is merged into, "" for none. If nil, the fork
	// gets a branch of its own, unless the original has no branch.
	Branch *string
	// Prompts are the prompts of phases, nil for the default. A phase is rerun with its prompt.
	Prompts map[ace.Phase]*ace.PhasePrompt
	Set     []Setting
}

// firstPrompted returns the first phase whose prompt changes, or "".
func (c Changes) firstPrompted() ace.Phase {
	for _, step := range ace.Steps() {
		if _, ok := c.Prompts[step]; ok {
			return step
		}
	}
	return ""
}

// Setting is another field with its new value: JSON, or the text of a text field.
type Setting struct{ Key, Value string }

// Plan plans a fork at a point. The zero point is the start of the first phase whose prompt changes.
func (o *Original) Plan(at Point, c Changes) (*Plan, error) {
	prompted := c.firstPrompted()
	if at == (Point{}) {
		at.Phase = prompted
	}
	from, err := o.find(at)
	if err != nil {
		return nil, err
	}
	if prompted != "" && before(prompted, from.phase) {
		return nil, errorf(ErrNoChange, "the fork reuses the result of the %s, so its prompt has no effect: "+
			"fork at the phase %[1]s", prompted)
	}
	p := &Plan{
		WorkflowID: o.WorkflowID, RunID: o.RunID, Event: from.event, Phase: from.phase, Within: from.within,
		Input: o.Input, Changed: map[string]ace.ForkChange{},
	}
	root, _ := ace.ForkRoot(ace.TaskIDOf(o.WorkflowID))
	p.Input.ExperimentID, p.Input.ExperimentRun = ace.ForkBranch(root), ""
	p.OwnBranch = o.Input.Branch != "" && c.Branch == nil
	if p.OwnBranch {
		p.Input.Review = nil // no other run uses the branch
	}
	if err := p.change(c); err != nil {
		return nil, err
	}
	p.addSteps(o, from)
	forked := ace.Forked{
		WorkflowID: o.WorkflowID, RunID: o.RunID, Event: from.event, Phase: from.phase, Changed: p.Changed,
	}
	p.Input.Fork = &ace.Fork{Forked: forked, Steps: map[ace.Phase]ace.ReusedStep{}}
	for passes, recorded := range from.results {
		steps := map[ace.Phase]ace.ReusedStep{}
		for step, result := range recorded {
			if len(result) == 0 {
				result = json.RawMessage("{}")
			}
			steps[step] = ace.ReusedStep{Result: result}
		}
		if passes == 0 {
			p.Input.Fork.Steps = steps
		} else {
			p.Input.Fork.Passes = append(p.Input.Fork.Passes, steps)
		}
	}
	return p, nil
}

func (p *Plan) addSteps(o *Original, from place) {
	for _, step := range ace.Steps() {
		if before(step, from.phase) {
			p.Reused = append(p.Reused, step)
			continue
		}
		s := Step{Phase: step, Spent: o.spent(step)}
		if step != ace.PhasePersist {
			s.Provider = p.Input.ProviderOf(step)
			s.Model = p.Input.ModelOf(step)
			s.Prompt = p.Input.Prompts.Of(step)
			if s.Spent == nil {
				p.Unknown = append(p.Unknown, step)
			}
		}
		if s.Spent != nil {
			p.Estimate = p.Estimate.Add(*s.Spent)
		}
		p.Rerun = append(p.Rerun, s)
	}
}

func (p *Plan) change(c Changes) error {
	in := &p.Input
	p.setText("model", &in.Model, c.Model)
	if c.Model != nil && len(in.Models) > 0 { // models of single steps would take precedence
		p.note("models", fmt.Sprint(in.Models), "")
		in.Models = nil
	}
	if c.Provider != nil {
		p.setText("provider", &in.Provider, c.Provider)
		if len(in.Steps) > 0 { // providers of single steps would take precedence
			p.note("steps", fmt.Sprint(in.Steps), "")
			in.Steps = nil
		}
	}
	p.setText("playbook_hash", &in.PlaybookHash, c.Playbook)
	p.setText("branch", &in.Branch, c.Branch)
	if c.Prompt != nil {
		before := promptOf(*in)
		in.Prompt = *c.Prompt
		in.PromptRef = c.PromptRef
		p.note("prompt", before, promptOf(*in))
		if c.PromptRef != nil {
			in.Prompt = ""
		}
	}
	for step, prompt := range c.Prompts {
		p.note("prompts."+string(step), in.Prompts.Of(step).String(), prompt.String())
		in.Prompts = in.Prompts.With(step, prompt)
	}
	for _, s := range c.Set {
		if err := p.set(s); err != nil {
			return err
		}
	}
	return nil
}

func promptOf(in ace.TaskInput) string {
	if in.PromptRef != nil {
		return strings.TrimSpace("artifact " + in.PromptRef.SHA256 + " " + in.Prompt)
	}
	return in.Prompt
}

func (p *Plan) setText(name string, field, to *string) {
	if to == nil {
		return
	}
	p.note(name, *field, *to)
	*field = *to
}

func (p *Plan) note(name, from, to string) {
	if from != to {
		p.Changed[name] = ace.ForkChange{From: ace.Cut(from, ace.PreviewBytes),
			To: ace.Cut(to, ace.PreviewBytes)}
	}
}

// Same reports whether the fork changes no input, so that it only shows random differences.
func (p *Plan) Same() bool { return len(p.Changed) == 0 }

// Name returns the name of the original in IDs and prompts.
func (p *Plan) Name() string { return cmp.Or(ace.TaskIDOf(p.WorkflowID), p.WorkflowID) }

// Keys lists the fields that [Changes.Set] accepts.
func Keys() []string {
	keys := []string{"label", "adapter", "dataset_id", "experiment_id", "epoch", "index", "pace_ms",
		"skills_config.allowed_tools", "skills_config.permission_mode"}
	for _, step := range ace.Steps()[:len(ace.Steps())-1] {
		keys = append(keys, "steps."+string(step))
	}
	for _, step := range ace.Steps()[:len(ace.Steps())-1] {
		keys = append(keys, "models."+string(step))
	}
	return keys
}

var otherFields = map[string]string{
	"model": "use --model", "provider": "use --provider", "prompt": "use --prompt or --prompt-file",
	"prompt_ref":    "use --prompt-file",
	"playbook_hash": "use --playbook", "playbook": "use --playbook", "branch": "use --branch",
	"task_id": "the ID of a fork is generated", "fork": "it is set by the fork",
}

// ParseSetting reads key=value.
func ParseSetting(text string) (Setting, error) {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		return Setting{}, fmt.Errorf("%q is not of the form key=value", text)
	}
	s := Setting{strings.TrimSpace(key), value}
	if !slices.Contains(Keys(), s.Key) {
		return s, unknownKey(s.Key)
	}
	return s, nil
}

func unknownKey(key string) error {
	if why := otherFields[key]; why != "" {
		return errorf(ErrNoChange, "%q: %s", key, why)
	}
	return errorf(ErrNoChange, "field %q not found; fields are %s", key, strings.Join(Keys(), ", "))
}

func (p *Plan) set(s Setting) error {
	in := &p.Input
	if step, ok := strings.CutPrefix(s.Key, "steps."); ok && slices.Contains(Keys(), s.Key) {
		p.note(s.Key, in.ProviderOf(ace.Phase(step)), s.Value)
		in.Steps = withEntry(in.Steps, step, s.Value)
		return nil
	}
	if step, ok := strings.CutPrefix(s.Key, "models."); ok && slices.Contains(Keys(), s.Key) {
		p.note(s.Key, in.ModelOf(ace.Phase(step)), s.Value)
		in.Models = withEntry(in.Models, step, s.Value)
		return nil
	}
	switch s.Key {
	case "label":
		return p.setLabel(s.Value)
	case "adapter":
		if s.Value != string(ace.Offline) && s.Value != string(ace.Online) {
			return errorf(ErrNoChange, "adapter %q: use offline or online", s.Value)
		}
		p.note(s.Key, string(in.Adapter), s.Value)
		in.Adapter = ace.Adapter(s.Value)
	case "dataset_id":
		p.setText(s.Key, &in.DatasetID, &s.Value)
	case "experiment_id":
		p.setText(s.Key, &in.ExperimentID, &s.Value)
	case "skills_config.permission_mode":
		p.setText(s.Key, &in.SkillsConfig.PermissionMode, &s.Value)
	case "skills_config.allowed_tools":
		return p.setTools(s.Value)
	case "epoch":
		return setNumber(p, s, &in.Epoch)
	case "index":
		return setNumber(p, s, &in.Index)
	case "pace_ms":
		return setNumber(p, s, &in.PaceMS)
	default:
		return unknownKey(s.Key)
	}
	return nil
}

// setLabel accepts a text, a JSON string, or null for no label.
func (p *Plan) setLabel(value string) error {
	before := ""
	if p.Input.Label != nil {
		before = *p.Input.Label
	}
	to := &value
	var read *string
	if value == "null" || strings.HasPrefix(value, `"`) {
		if err := json.Unmarshal([]byte(value), &read); err != nil {
			return errorf(ErrNoChange, "label %s: %v", value, err)
		}
		to = read
	}
	after := ""
	if to != nil {
		after = *to
	}
	p.note("label", before, after)
	p.Input.Label = to
	return nil
}

// setTools accepts a JSON list or a comma-separated list of names. An empty list allows every
// tool.
func (p *Plan) setTools(value string) error {
	list := []string{}
	if strings.HasPrefix(strings.TrimSpace(value), "[") {
		if err := json.Unmarshal([]byte(value), &list); err != nil {
			return errorf(ErrNoChange, "skills_config.allowed_tools: not a list of names: %v", err)
		}
	} else {
		for name := range strings.SplitSeq(value, ",") {
			if name = strings.TrimSpace(name); name != "" {
				list = append(list, name)
			}
		}
	}
	p.note("skills_config.allowed_tools", strings.Join(p.Input.SkillsConfig.AllowedTools, ","),
		strings.Join(list, ","))
	p.Input.SkillsConfig.AllowedTools = list
	return nil
}

// withEntry returns a copy of a map of the original with an entry for a step, or without the entry if the
// value is "".
func withEntry(of map[string]string, step, value string) map[string]string {
	changed := map[string]string{}
	maps.Copy(changed, of)
	changed[step] = value
	if value == "" {
		delete(changed, step)
	}
	return changed
}

func setNumber[T int | int64](p *Plan, s Setting, field *T) error {
	var n T
	if err := json.Unmarshal([]byte(s.Value), &n); err != nil || n < 0 {
		return errorf(ErrNoChange, "%s %q: not a whole number from 0 up", s.Key, s.Value)
	}
	p.note(s.Key, fmt.Sprint(*field), fmt.Sprint(n))
	*field = n
	return nil
}
