package llm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"acescope/engine/ace"
	"acescope/engine/learning/grade"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
)

// Written is the result of a phase as a program wrote it, in the form of the contract. It is
// parsed as leniently as the answer of a model, but without a repair request.
type Written struct {
	Name string // of the program, for errors
	Text string
}

// read finds the object that accept accepts.
func (w Written) read(phase ace.Phase, accept func(fields) error) (*ace.ParseReport, fields, error) {
	v := &ace.ParseReport{Attempts: 1}
	var out fields
	why := read(w.Text, func(f found) error {
		if f.cut > 0 {
			return errCut
		}
		if err := accept(f.fields); err != nil {
			return err
		}
		out, v.Parse, v.Note = f.fields, f.how, f.note
		return nil
	})
	if why == nil {
		return v, out, nil
	}
	e := model.Errorf(model.BadAnswer, "%s: its output is not a valid result of the %s phase: %v", w.Name,
		phase, why)
	quote(e, w.Text)
	return nil, nil, e
}

// anyOf returns a function that checks that an object has one of the fields.
func anyOf(names ...string) func(fields) error {
	return func(f fields) error {
		if !f.get(names...).Exists() {
			return fmt.Errorf(`it needs one of "%s"`, strings.Join(names, `", "`))
		}
		return nil
	}
}

// Generator parses the result of a generator.
func (w Written) Generator(book *playbook.Playbook, at ace.TaskContext) (ace.GeneratorResult, error) {
	v, f, err := w.read(ace.PhaseGenerator, anyOf("plan", "answer", "program", "reasoning", "final_answer"))
	if err != nil {
		return ace.GeneratorResult{}, err
	}
	r := ace.GeneratorResult{Plan: f.text("plan", "reasoning"), Answer: f.text("answer", "final_answer"),
		TrajectoryID: f.text("trajectory_id"), StepReport: ace.StepReport{Usage: f.usage()}}
	if r.Program, err = w.own(f, "program"); err != nil {
		return r, err
	}
	var notes []string
	r.BulletIDs, notes = knownIDs(orEmpty(book), f.texts("bullet_ids"))
	notes = append(notes, fit(maxPlan, "plan", &r.Plan)...)
	notes = append(notes, fit(maxFinal, "answer", &r.Answer)...)
	notes = append(notes, fit(maxFinal, "trajectory_id", &r.TrajectoryID)...)
	r.TrajectoryID = cmp.Or(r.TrajectoryID, trajectoryID(at, r.Plan, r.Answer))
	r.PromptTokens = r.Usage.InputTokens + r.Usage.CacheReadTokens
	r.CompletionTokens = r.Usage.OutputTokens
	r.Parsed = withNotes(v, notes)
	return r, nil
}

// Skills parses the result of a skills session. It trusts the reported invocations.
func (w Written) Skills() (ace.SkillSessionResult, error) {
	accept := anyOf("answer", "final_answer", "invocations", "usage")
	v, f, err := w.read(ace.PhaseSkills, func(f fields) error {
		if len(f) == 0 {
			return nil // an empty object: no calls and no answer
		}
		return accept(f)
	})
	if err != nil {
		return ace.SkillSessionResult{}, err
	}
	r := ace.SkillSessionResult{Answer: f.text("answer", "final_answer"),
		StepReport: ace.StepReport{Usage: f.usage()}}
	notes := fit(maxFinal, "answer", &r.Answer)
	list := f.get("invocations")
	if list.Exists() && !list.IsArray() {
		notes = append(notes, "the invocations are not a list")
		list = gjson.Result{}
	}
	for i, e := range list.Array() {
		inv, ok := invocation(object(e))
		if !ok {
			notes = append(notes, fmt.Sprintf("invocation %d has no name", i+1))
			continue
		}
		r.Invocations = append(r.Invocations, inv)
	}
	r.Parsed = withNotes(v, notes)
	return r, nil
}

// invocation parses a tool call. It is accepted and successful unless it says otherwise.
func invocation(f fields) (ace.Invocation, bool) {
	inv := ace.Invocation{ID: f.text("id"), Name: f.text("name", "tool"),
		Args: raw(f.get("args", "arguments")), Result: raw(f.get("result")),
		Accepted: f.boolean("accepted", true),
		Error:    f.text("error"), DurationMS: number(f.get("duration_ms"))}
	inv.OK = inv.Accepted && f.boolean("ok", inv.Error == "")
	if at, err := time.Parse(time.RFC3339, f.text("at")); err == nil {
		inv.At = at.UTC()
	}
	return inv, inv.Name != ""
}

// Reflector parses the result of a reflector. If the program states neither whether the answer is
// correct nor a score, and the task has a label, the grader of the task decides.
func (w Written) Reflector(book *playbook.Playbook, in ace.ReflectorInput) (ace.ReflectorResult, error) {
	v, f, err := w.read(ace.PhaseReflector, anyOf("insights", "bullet_tags", "correct", "score", "findings",
		"key_insight"))
	if err != nil {
		return ace.ReflectorResult{}, err
	}
	var tags reflected
	tags.readTags(f.get("bullet_tags"), 0)
	tags.keepKnown(orEmpty(book))
	r := ace.ReflectorResult{Insights: f.text("insights", "key_insight"),
		Cause:      ace.Cut(f.text("cause"), maxCause),
		BulletTags: tags.tags, StepReport: ace.StepReport{Usage: f.usage()}}
	if r.Findings, err = w.own(f, "findings"); err != nil {
		return r, err
	}
	if r.Correct, r.Score, err = grade.Verdict(in); err != nil {
		return r, err
	}
	if score := f.get("score"); score.Exists() {
		r.Score = new(math.Round(min(max(number(score), 0), 1)*1e6) / 1e6)
		r.Correct = new(*r.Score == 1)
	} else if f.get("correct").Exists() {
		r.Score = nil
	}
	if f.get("correct").Exists() {
		r.Correct = new(f.boolean("correct", false))
	}
	r.Parsed = withNotes(v, append(tags.notes, fit(maxPlan, "insights", &r.Insights)...))
	return r, nil
}

// Curator parses the result of a curator. It tries the accepted operations on the playbook and
// rejects those that cannot be applied.
func (w Written) Curator(book *playbook.Playbook) (ace.CuratorResult, error) {
	v, f, err := w.read(ace.PhaseCurator, anyOf("accepted", "operations", "rejected", "rationale"))
	if err != nil {
		return ace.CuratorResult{}, err
	}
	r := ace.CuratorResult{Rationale: f.text("rationale", "reasoning"),
		StepReport: ace.StepReport{Usage: f.usage()}}
	notes := fit(maxPart, "rationale", &r.Rationale)
	accepted, bad := operations(f.get("accepted", "operations"))
	if bad {
		notes = append(notes, `"accepted" is not a list`)
	}
	var ops, unread []ace.Operation
	for _, op := range accepted {
		if op.Outcome == ace.OutcomeUnparsable {
			unread = append(unread, op)
		} else {
			op.Outcome = ""
			ops = append(ops, op)
		}
	}
	r.Accepted, r.Rejected = try(orEmpty(book), ops)
	rejected, bad := operations(f.get("rejected"))
	if bad {
		notes = append(notes, `"rejected" is not a list`)
	}
	r.Rejected = append(append(r.Rejected, unread...), rejected...)
	r.FollowUpActions = actions(f.get("follow_up_actions"))
	r.Parsed = withNotes(v, notes)
	return r, nil
}

// operations parses a list of operations with the outcomes and reasons that the program gives.
func operations(v gjson.Result) (ops []ace.Operation, bad bool) {
	if v.Exists() && !v.IsArray() {
		return nil, true
	}
	for _, e := range v.Array() {
		op := operation(e)
		if f := object(e); op.Outcome == "" {
			op.Outcome, op.Reason = ace.Outcome(strings.ToLower(f.text("fate"))),
				ace.Cut(f.text("reason"), maxShown)
		}
		if op.Outcome != ace.OutcomeIgnored && op.Outcome != ace.OutcomeUnparsable {
			op.Outcome = ace.OutcomeRejected // the caller tries accepted operations
		}
		ops = append(ops, op)
	}
	return ops, false
}

// maxActions bounds the follow-up actions of a curator.
const maxActions = 50

func actions(v gjson.Result) (out []string) {
	if !v.IsArray() {
		return nil
	}
	list := v.Array()
	for _, e := range list[:min(len(list), maxActions)] {
		if s := ace.Cut(textOf(e), maxShown); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// own returns a program's own data for its later phases, unchanged. Data too large for a
// history is an error, since a part of it would be useless.
func (w Written) own(f fields, name string) (json.RawMessage, error) {
	v := raw(f.get(name))
	if len(v) > ace.InlineBytes {
		return nil, model.Errorf(model.BadAnswer, "%s: its %s has %d bytes, at most %d are allowed",
			w.Name, name, len(v), ace.InlineBytes)
	}
	return v, nil
}

// usage returns the usage that a program reports. Missing fields are 0.
func (f fields) usage() *ace.Usage {
	u := object(f.get("usage"))
	tokens := func(v gjson.Result) int64 { return max(0, int64(count(v))) }
	used := ace.Usage{InputTokens: tokens(u.get("input_tokens")),
		OutputTokens:    tokens(u.get("output_tokens")),
		CacheReadTokens: tokens(u.get("cache_read_tokens")), CostUSD: max(0, number(u.get("cost_usd"))),
		Unpriced: u.boolean("unpriced", false)}
	if u == nil {
		used.InputTokens, used.OutputTokens = tokens(f.get("prompt_tokens")),
			tokens(f.get("completion_tokens"))
	}
	return &used
}

// withNotes appends notes to the note of a parse report.
func withNotes(v *ace.ParseReport, notes []string) *ace.ParseReport {
	for _, o := range notes {
		if v.Note != "" {
			v.Note += "; "
		}
		v.Note += o
	}
	v.Note = ace.OneLine(v.Note, maxNote)
	return v
}
