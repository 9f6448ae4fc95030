package fork

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"acescope/engine/ace"
)

// Free is the provider whose steps cost nothing.
const Free = "builtin"

// ErrNoChange means that a change cannot be made.
var ErrNoChange = errors.New("no such change")

// Plan is a fork that was worked out and not started.
type Plan struct {
	WorkflowID, RunID string // of the original
	Event             int64  // the last one that counts
	Phase             ace.Phase
	// Within tells that the phase had begun before the event: it is executed anew, from
	// its begin.
	Within bool
	// Input is the fork's, but for its task id, and with OwnBranch its branch, which are
	// known when it starts. Results in it are inline, however large.
	Input   ace.TaskInput
	Changed map[string]ace.ForkChange
	Taken   []ace.Phase
	Anew    []Step
	// Estimate is what the original's steps used that are executed anew; Unknown are those
	// of them for which there are no figures.
	Estimate ace.Usage
	Unknown  []ace.Phase
	// OwnBranch tells that the delta goes to a line of playbooks of the fork's own.
	OwnBranch bool
}

// Step is one that is executed anew.
type Step struct {
	Phase    ace.Phase
	Provider string     // "" for persist, which no provider serves
	Model    string     // "" for persist
	Spent    *ace.Usage // by the original, nil where that is not recorded
}

// Costs tells whether a step that is executed anew may cost money.
func (p *Plan) Costs() bool {
	for _, s := range p.Anew {
		if s.Provider != "" && s.Provider != Free {
			return true
		}
	}
	return false
}

// Changes are what a fork does otherwise. A nil field stays as it is.
type Changes struct {
	Model    *string
	Provider *string
	Prompt   *string
	// PromptRef stands for Prompt, whose begin it is then, where that is above
	// [ace.InlineBytes].
	PromptRef *ace.Ref
	Playbook  *string // hash of a version, "" for the empty one
	// Branch is the line of playbooks that the delta is merged into, "" for none. Without it
	// the fork has a line of its own, and none where the original has none.
	Branch *string
	Set    []Setting
}

// Setting is another field with its new value: JSON, or text where the field is one.
type Setting struct{ Key, Value string }

// Plan works out the fork at a point.
func (o *Original) Plan(at Point, c Changes) (*Plan, error) {
	from, err := o.find(at)
	if err != nil {
		return nil, err
	}
	p := &Plan{WorkflowID: o.WorkflowID, RunID: o.RunID, Event: from.event, Phase: from.phase, Within: from.within,
		Input: o.Input, Changed: map[string]ace.ForkChange{}}
	root, _ := ace.ForkRoot(ace.TaskIDOf(o.WorkflowID))
	p.Input.ExperimentID = ace.ForkBranch(root)
	p.OwnBranch = o.Input.Branch != "" && c.Branch == nil
	if err := p.change(c); err != nil {
		return nil, err
	}
	p.steps(o, from)
	p.Input.Fork = &ace.Fork{Forked: ace.Forked{WorkflowID: o.WorkflowID, RunID: o.RunID, Event: from.event, Phase: from.phase,
		Changed: p.Changed}, Steps: map[ace.Phase]ace.TakenStep{}}
	for step, result := range from.results {
		if len(result) == 0 {
			result = json.RawMessage("{}")
		}
		p.Input.Fork.Steps[step] = ace.TakenStep{Result: result}
	}
	return p, nil
}

func (p *Plan) steps(o *Original, from place) {
	for _, step := range ace.Steps() {
		if before(step, from.phase) {
			p.Taken = append(p.Taken, step)
			continue
		}
		s := Step{Phase: step, Spent: o.Spent(step)}
		if step != ace.PhasePersist {
			s.Provider, s.Model = p.Input.ProviderOf(step), p.Input.Model
			if s.Spent == nil {
				p.Unknown = append(p.Unknown, step)
			}
		}
		if s.Spent != nil {
			p.Estimate = p.Estimate.Add(*s.Spent)
		}
		p.Anew = append(p.Anew, s)
	}
}

func (p *Plan) change(c Changes) error {
	in := &p.Input
	p.text("model", &in.Model, c.Model)
	if c.Provider != nil {
		p.text("provider", &in.Provider, c.Provider)
		if len(in.Steps) > 0 { // what served single steps would win over it
			p.note("steps", fmt.Sprint(in.Steps), "")
			in.Steps = nil
		}
	}
	p.text("playbook_hash", &in.PlaybookHash, c.Playbook)
	p.text("branch", &in.Branch, c.Branch)
	if c.Prompt != nil {
		before := promptOf(*in)
		in.Prompt, in.PromptRef = *c.Prompt, c.PromptRef
		p.note("prompt", before, promptOf(*in))
		if c.PromptRef != nil {
			in.Prompt = ""
		}
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

func (p *Plan) text(name string, field *string, to *string) {
	if to == nil {
		return
	}
	p.note(name, *field, *to)
	*field = *to
}

// note remembers a change of a field, unless there is none.
func (p *Plan) note(name, from, to string) {
	if from != to {
		p.Changed[name] = ace.ForkChange{From: short(from), To: short(to)}
	}
}

func short(s string) string {
	if len(s) <= ace.PreviewBytes {
		return s
	}
	return strings.ToValidUTF8(s[:ace.PreviewBytes], "") + "…"
}

// Same tells whether the fork changes nothing: it then shows what is left to chance.
func (p *Plan) Same() bool { return len(p.Changed) == 0 }

// Name is how the original is called in ids and questions.
func (p *Plan) Name() string { return cmp.Or(ace.TaskIDOf(p.WorkflowID), p.WorkflowID) }
