package fork

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"acescope/engine/ace"
)

// Keys lists the fields that [Changes.Set] takes.
func Keys() []string {
	keys := []string{"label", "adapter", "dataset_id", "experiment_id", "epoch", "index", "pace_ms",
		"skills_config.allowed_tools", "skills_config.permission_mode"}
	for _, step := range ace.Steps()[:len(ace.Steps())-1] {
		keys = append(keys, "steps."+string(step))
	}
	return keys
}

// elsewhere are fields that have a flag of their own, or are never changed.
var elsewhere = map[string]string{
	"model": "use --model", "provider": "use --provider", "prompt": "use --prompt or --prompt-file", "prompt_ref": "use --prompt-file",
	"playbook_hash": "use --playbook", "playbook": "use --playbook", "branch": "use --branch",
	"task_id": "a fork's id is given to it", "fork": "the fork writes that itself",
}

// ParseSetting reads key=value.
func ParseSetting(text string) (Setting, error) {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		return Setting{}, fmt.Errorf("%q: give it as key=value", text)
	}
	s := Setting{strings.TrimSpace(key), value}
	if !slices.Contains(Keys(), s.Key) {
		return s, unknown(s.Key)
	}
	return s, nil
}

func unknown(key string) error {
	if why := elsewhere[key]; why != "" {
		return refused(ErrNoChange, "%q: %s", key, why)
	}
	return refused(ErrNoChange, "there is no field %q; there are %s", key, strings.Join(Keys(), ", "))
}

// set gives one field its new value.
func (p *Plan) set(s Setting) error {
	in := &p.Input
	if step, ok := strings.CutPrefix(s.Key, "steps."); ok && slices.Contains(Keys(), s.Key) {
		p.serve(step, s.Value)
		return nil
	}
	switch s.Key {
	case "label":
		return p.label(s.Value)
	case "adapter":
		if s.Value != string(ace.Offline) && s.Value != string(ace.Online) {
			return refused(ErrNoChange, "adapter %q: give offline or online", s.Value)
		}
		p.note(s.Key, string(in.Adapter), s.Value)
		in.Adapter = ace.Adapter(s.Value)
	case "dataset_id":
		p.text(s.Key, &in.DatasetID, &s.Value)
	case "experiment_id":
		p.text(s.Key, &in.ExperimentID, &s.Value)
	case "skills_config.permission_mode":
		p.text(s.Key, &in.SkillsConfig.PermissionMode, &s.Value)
	case "skills_config.allowed_tools":
		return p.tools(s.Value)
	case "epoch":
		return number(p, s, &in.Epoch)
	case "index":
		return number(p, s, &in.Index)
	case "pace_ms":
		return number(p, s, &in.PaceMS)
	default:
		return unknown(s.Key)
	}
	return nil
}

// label takes a text, JSON text, or null for no label.
func (p *Plan) label(value string) error {
	before := ""
	if p.Input.Label != nil {
		before = *p.Input.Label
	}
	to := &value
	var read *string
	if value == "null" || strings.HasPrefix(value, `"`) {
		if err := json.Unmarshal([]byte(value), &read); err != nil {
			return refused(ErrNoChange, "label %s: %v", value, err)
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

// tools takes a JSON list of names, or names with commas between; nothing allows every tool.
func (p *Plan) tools(value string) error {
	list := []string{}
	if strings.HasPrefix(strings.TrimSpace(value), "[") {
		if err := json.Unmarshal([]byte(value), &list); err != nil {
			return refused(ErrNoChange, "skills_config.allowed_tools: give a list of names: %v", err)
		}
	} else {
		for _, name := range strings.Split(value, ",") {
			if name = strings.TrimSpace(name); name != "" {
				list = append(list, name)
			}
		}
	}
	p.note("skills_config.allowed_tools", strings.Join(p.Input.SkillsConfig.AllowedTools, ","), strings.Join(list, ","))
	p.Input.SkillsConfig.AllowedTools = list
	return nil
}

// serve says who serves one step. The map may be the original's, so a new one is made.
func (p *Plan) serve(step, provider string) {
	steps := map[string]string{}
	for k, v := range p.Input.Steps {
		steps[k] = v
	}
	p.note("steps."+step, p.Input.ProviderOf(ace.Phase(step)), provider)
	steps[step] = provider
	if provider == "" {
		delete(steps, step)
	}
	p.Input.Steps = steps
}

func number[T int | int64](p *Plan, s Setting, field *T) error {
	var n T
	if err := json.Unmarshal([]byte(s.Value), &n); err != nil || n < 0 {
		return refused(ErrNoChange, "%s %q: give a whole number from 0", s.Key, s.Value)
	}
	p.note(s.Key, fmt.Sprint(*field), fmt.Sprint(n))
	*field = n
	return nil
}
