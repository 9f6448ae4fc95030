package observe

import (
	"encoding/json"
	"fmt"

	"acescope/engine/ace"
)

// Bounds of an event's parts, in bytes. An event stays below Temporal's limit of 2 MB.
const (
	maxText = 4 << 10   // of names, ids and errors
	maxStep = 256 << 10 // of a step's result with its invocations
)

// fit bounds the parts of an observation. store stores a large payload and returns its reference; if
// it is nil, payloads are truncated. The input and the task id remain: the server refuses them if
// they are too large.
func fit(o Observation, store func([]byte) json.RawMessage) Observation {
	shorten := func(data json.RawMessage) json.RawMessage {
		switch {
		case len(data) <= ace.InlineBytes:
			return data
		case store == nil:
			return ace.Preview(data)
		}
		return store(data)
	}
	e := &o.Event
	texts := []*string{&e.EventID, &e.CallID, (*string)(&e.Kind), &e.Name, &e.SessionID, &e.Source, &e.Error}
	for _, text := range texts {
		*text = ace.Cut(*text, maxText)
	}
	e.Args = shorten(e.Args)
	switch e.Kind {
	case ace.KindStep:
		fitStep(e, shorten)
	case ace.KindFinish:
		var f ace.Finish
		_ = json.Unmarshal(e.Result, &f) // an unreadable result counts as an empty one
		f.Answer = ace.Cut(f.Answer, maxText)
		e.Result = mustJSON(f)
	default:
		e.Result = shorten(e.Result)
	}
	if o.Input != nil && len(o.Input.Prompt) > ace.InlineBytes {
		in := *o.Input
		var ref ace.Ref
		if json.Unmarshal(shorten([]byte(in.Prompt)), &ref) == nil && ref.SHA256 != "" {
			in.Prompt, in.PromptRef = "", &ref
		} else {
			in.Prompt = ace.Cut(in.Prompt, ace.InlineBytes)
		}
		o.Input = &in
	}
	return o
}

// fitStep bounds the result of a step, which is part of the run and cannot be a reference. The
// payloads of its invocations can; if the rest is too large, the step fails, as in [ace.State].
func fitStep(e *ace.ToolEvent, shorten func(json.RawMessage) json.RawMessage) {
	size := len(e.Result)
	if size <= ace.MaxStepResult {
		return
	}
	var session ace.SkillSessionResult
	if ace.Phase(e.Name) == ace.PhaseSkills && json.Unmarshal(e.Result, &session) == nil {
		for i := range session.Invocations {
			inv := &session.Invocations[i]
			inv.Args, inv.Result = shorten(inv.Args), shorten(inv.Result)
		}
		if short := mustJSON(session); len(short) <= maxStep {
			e.Result = short
			return
		}
	}
	e.Error = fmt.Sprintf("its result has %d bytes, more than %d: %s", size, ace.MaxStepResult,
		ace.Preview(shorten(e.Result)))
	e.Result = nil
}
