package llm

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/model"
	"acescope/engine/playbook"
)

// Written is what a program wrote as the result of a step, in the form of the contract. It is
// read as tolerantly as the answer of a model; nobody is asked again.
type Written struct {
	Name string // of who wrote it, for errors
	Text string
}

// errCut is an answer that breaks off.
var errCut = errors.New("it was cut off before its end")

// read finds the object that take accepts.
func (w Written) read(step ace.Phase, take func(fields) error) (*ace.Verdict, fields, error) {
	v := &ace.Verdict{Attempts: 1}
	var out fields
	why := read(w.Text, func(f found) error {
		if f.cut > 0 {
			return errCut
		}
		if err := take(f.fields); err != nil {
			return err
		}
		out, v.Parse, v.Note = f.fields, f.how, f.note
		return nil
	})
	if why == nil {
		return v, out, nil
	}
	e := model.Errorf(model.BadAnswer, "%s: what it wrote is no result of a %s: %v", w.Name, step, oneSentence(why))
	if t := oneLine(w.Text); t != "" {
		e.Message += fmt.Sprintf("; it begins %q", clip(t, maxBegin))
		if len(t) > maxBegin {
			e.Raw = w.Text
		}
	}
	return nil, nil, e
}

// anyOf is a check that an object has one of the fields at least.
func anyOf(names ...string) func(fields) error {
	return func(f fields) error {
		if f.get(names...) == nil {
			return fmt.Errorf(`it has none of "%s"`, strings.Join(names, `", "`))
		}
		return nil
	}
}

// Generator reads the result of a generator.
func (w Written) Generator(book *playbook.Playbook, at ace.TaskContext) (ace.GeneratorResult, error) {
	v, f, err := w.read(ace.PhaseGenerator, anyOf("plan", "answer", "program", "reasoning", "final_answer"))
	if err != nil {
		return ace.GeneratorResult{}, err
	}
	r := ace.GeneratorResult{Plan: f.text("plan", "reasoning"), Answer: f.text("answer", "final_answer"), TrajectoryID: f.text("trajectory_id"), Usage: f.usage()}
	if r.Program, err = w.own(f, "program"); err != nil {
		return r, err
	}
	var odd []string
	r.BulletIDs, odd = known(orEmpty(book), f.texts("bullet_ids"))
	odd = append(odd, fit(maxPlan, "plan", &r.Plan)...)
	odd = append(odd, fit(maxFinal, "answer", &r.Answer)...)
	odd = append(odd, fit(maxFinal, "trajectory_id", &r.TrajectoryID)...)
	if r.TrajectoryID == "" {
		sum := sha256.Sum256([]byte(at.WorkflowID + at.RunID + r.Plan + r.Answer))
		r.TrajectoryID = fmt.Sprintf("trajectory-%x", sum[:8])
	}
	r.PromptTokens, r.CompletionTokens = r.Usage.InputTokens+r.Usage.CacheReadTokens, r.Usage.OutputTokens
	r.Verdict = withOdd(v, odd)
	return r, nil
}

// Skills reads the result of a skills session. Its invocations are as the program told of them.
func (w Written) Skills() (ace.SkillSessionResult, error) {
	take := anyOf("answer", "final_answer", "invocations", "usage")
	v, f, err := w.read(ace.PhaseSkills, func(f fields) error {
		if len(f) == 0 {
			return nil // nothing was called and nothing found
		}
		return take(f)
	})
	if err != nil {
		return ace.SkillSessionResult{}, err
	}
	r := ace.SkillSessionResult{Answer: f.text("answer", "final_answer"), Usage: f.usage()}
	odd := fit(maxFinal, "answer", &r.Answer)
	var list []json.RawMessage
	if raw := f.get("invocations"); raw != nil && json.Unmarshal(raw, &list) != nil {
		odd = append(odd, "the invocations are no list")
	}
	for i, e := range list {
		inv, ok := invocation(object(e))
		if !ok {
			odd = append(odd, fmt.Sprintf("invocation %d has no name", i+1))
			continue
		}
		r.Invocations = append(r.Invocations, inv)
	}
	r.Verdict = withOdd(v, odd)
	return r, nil
}

// invocation is a tool call as a program tells of it: without a word on it, it was accepted
// and went well.
func invocation(f fields) (ace.Invocation, bool) {
	inv := ace.Invocation{ID: f.text("id"), Name: f.text("name", "tool"), Args: f.get("args", "arguments"), Result: f.get("result"),
		Accepted: f.truth("accepted", true), Error: f.text("error"), DurationMS: f.number("duration_ms")}
	inv.OK = inv.Accepted && f.truth("ok", inv.Error == "")
	if at, err := time.Parse(time.RFC3339, f.text("at")); err == nil {
		inv.At = at.UTC()
	}
	return inv, inv.Name != ""
}

// Reflector reads the result of a reflector. Whether the answer is right is for the program to
// say; where it does not, and there is a label, it is for [model.SameAnswer].
func (w Written) Reflector(book *playbook.Playbook, in ace.ReflectorInput) (ace.ReflectorResult, error) {
	v, f, err := w.read(ace.PhaseReflector, anyOf("insights", "bullet_tags", "correct", "findings", "key_insight"))
	if err != nil {
		return ace.ReflectorResult{}, err
	}
	var tags reflected
	tags.readTags(f.get("bullet_tags"), 0)
	tags.known(orEmpty(book))
	r := ace.ReflectorResult{Insights: f.text("insights", "key_insight"), BulletTags: tags.tags, Usage: f.usage()}
	if r.Findings, err = w.own(f, "findings"); err != nil {
		return r, err
	}
	switch {
	case f.get("correct") != nil:
		right := f.truth("correct", false)
		r.Correct = &right
	case in.Label != nil:
		right := model.SameAnswer(in.Answer, *in.Label)
		r.Correct = &right
	}
	r.Verdict = withOdd(v, append(tags.odd, fit(maxPlan, "insights", &r.Insights)...))
	return r, nil
}

// Curator reads the result of a curator. What it accepts is tried on the playbook, and rejected
// with a reason where it cannot be done.
func (w Written) Curator(book *playbook.Playbook) (ace.CuratorResult, error) {
	v, f, err := w.read(ace.PhaseCurator, anyOf("accepted", "operations", "rejected", "rationale"))
	if err != nil {
		return ace.CuratorResult{}, err
	}
	r := ace.CuratorResult{Rationale: f.text("rationale", "reasoning"), Usage: f.usage()}
	odd := fit(maxPart, "rationale", &r.Rationale)
	accepted, bad := operations(f.get("accepted", "operations"))
	if bad {
		odd = append(odd, "what it accepts is no list")
	}
	var ops, unread []ace.Operation
	for _, op := range accepted {
		if op.Fate == ace.FateUnparsable {
			unread = append(unread, op)
		} else {
			op.Fate = ""
			ops = append(ops, op)
		}
	}
	r.Accepted, r.Rejected = tried(orEmpty(book), ops)
	rejected, bad := operations(f.get("rejected"))
	if bad {
		odd = append(odd, "what it rejects is no list")
	}
	r.Rejected = append(append(r.Rejected, unread...), rejected...)
	r.FollowUpActions = actions(f.get("follow_up_actions"))
	r.Verdict = withOdd(v, odd)
	return r, nil
}

// operations reads a list of operations, with the fate and the reason that the program gives.
func operations(v json.RawMessage) (ops []ace.Operation, bad bool) {
	var list []json.RawMessage
	if v != nil && json.Unmarshal(v, &list) != nil {
		return nil, true
	}
	for _, e := range list {
		op := operation(e)
		if f := object(e); op.Fate == "" && f != nil {
			op.Fate, op.Reason = ace.Fate(strings.ToLower(f.text("fate"))), clip(f.text("reason"), maxShown)
		}
		switch op.Fate {
		case ace.FateIgnored, ace.FateUnparsable:
		default:
			op.Fate = ace.FateRejected // of those that are accepted it is found out
		}
		ops = append(ops, op)
	}
	return ops, false
}

// maxActions bounds the actions that a curator asks for.
const maxActions = 50

func actions(v json.RawMessage) (out []string) {
	var list []json.RawMessage
	if json.Unmarshal(v, &list) != nil {
		return nil
	}
	for _, e := range list[:min(len(list), maxActions)] {
		if s := clip(textOf(e), maxShown); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// own is a program's own data, handed on to its later steps as it is. What is too large for a
// history is an error: a part of it would be of no use.
func (w Written) own(f fields, name string) (json.RawMessage, error) {
	v := f.get(name)
	if len(v) > ace.InlineBytes {
		return nil, model.Errorf(model.BadAnswer, "%s: its %s has %d bytes, at most %d are handed on", w.Name, name, len(v), ace.InlineBytes)
	}
	return v, nil
}

// usage is what a program says that it used, nothing where it does not say.
func (f fields) usage() *ace.Usage {
	u := object(f.get("usage"))
	used := ace.Usage{InputTokens: max(0, int64(count(u.get("input_tokens")))), OutputTokens: max(0, int64(count(u.get("output_tokens")))),
		CacheReadTokens: max(0, int64(count(u.get("cache_read_tokens")))), CostUSD: max(0, u.number("cost_usd")), Unpriced: u.truth("unpriced", false)}
	if u == nil {
		used.InputTokens, used.OutputTokens = max(0, int64(count(f.get("prompt_tokens")))), max(0, int64(count(f.get("completion_tokens"))))
	}
	return &used
}

// number is a value as a number, 0 where it is none.
func (f fields) number(name string) float64 {
	n, err := strconv.ParseFloat(f.text(name), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0
	}
	return n
}

// truth is a value as true or false, otherwise where it is neither.
func (f fields) truth(name string, otherwise bool) bool {
	b, err := strconv.ParseBool(strings.ToLower(f.text(name)))
	if err != nil {
		return otherwise
	}
	return b
}

// withOdd completes a verdict with what was odd.
func withOdd(v *ace.Verdict, odd []string) *ace.Verdict {
	for _, o := range odd {
		if v.Note != "" {
			v.Note += "; "
		}
		v.Note += o
	}
	v.Note = clip(oneLine(v.Note), maxNote)
	return v
}
