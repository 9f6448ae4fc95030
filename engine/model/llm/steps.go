package llm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/model"
	"acescope/engine/playbook"
)

// Generate implements [model.Provider].
func (p *provider) Generate(ctx context.Context, in ace.GeneratorInput, book *playbook.Playbook) (ace.GeneratorResult, error) {
	s, err := p.begin(ctx, in.Task)
	if err != nil {
		return ace.GeneratorResult{}, err
	}
	book = orEmpty(book)
	if strings.TrimSpace(in.Prompt) == "" {
		return ace.GeneratorResult{}, model.Errorf(model.BadRequest, "%s: the prompt is empty", p.o.Name)
	}
	var out generated
	v, err := s.answer(ctx, s.request(generatorPrompt, book, generatorMessage(in)), out.take)
	if err != nil {
		return ace.GeneratorResult{Usage: s.used()}, err
	}
	ids, odd := known(book, out.bullets)
	odd = append(odd, fit(maxPlan, "reasoning", &out.reasoning)...)
	odd = append(odd, fit(maxFinal, "final_answer", &out.answer)...)
	sum := sha256.Sum256([]byte(in.Task.WorkflowID + in.Task.RunID + out.reasoning + out.answer))
	return ace.GeneratorResult{Plan: out.reasoning, Answer: out.answer, BulletIDs: ids, Usage: s.used(), Verdict: s.verdict(v, odd),
		PromptTokens: s.usage.InputTokens + s.usage.CacheReadTokens, CompletionTokens: s.usage.OutputTokens,
		TrajectoryID: fmt.Sprintf("trajectory-%x", sum[:8])}, nil
}

// known leaves, of ids that a model names, those that the playbook has, each once.
func known(book *playbook.Playbook, named []string) (ids, odd []string) {
	seen := map[string]bool{}
	for _, id := range named {
		if _, ok := book.Find(id); !ok {
			odd = append(odd, fmt.Sprintf("there is no bullet %.40q to use", id))
		} else if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, odd[:min(len(odd), 10)]
}

// maxQuestion is how much of the task the curator is given, in bytes.
const maxQuestion = 2 << 10

// Reflect implements [model.Provider]. Whether the answer is right is for [model.SameAnswer]
// to say, not for the model.
func (p *provider) Reflect(ctx context.Context, in ace.ReflectorInput, book *playbook.Playbook) (ace.ReflectorResult, error) {
	s, err := p.begin(ctx, in.Task)
	if err != nil {
		return ace.ReflectorResult{}, err
	}
	book = orEmpty(book)
	var correct *bool
	if in.Label != nil {
		right := model.SameAnswer(in.Answer, *in.Label)
		correct = &right
	}
	var out reflected
	r := Request{Model: s.model, System: []Block{{Text: strings.TrimSpace(reflectorPrompt)}}, MaxTokens: s.o.MaxTokens,
		Messages: []Message{{Role: User, Text: reflectorMessage(in, book, correct)}}}
	v, err := s.answer(ctx, r, out.take)
	if err != nil {
		return ace.ReflectorResult{Usage: s.used()}, err
	}
	out.known(book)
	for name, s := range map[string]*string{"error_identification": &out.Error, "root_cause_analysis": &out.Cause, "correct_approach": &out.Approach, "key_insight": &out.Insight} {
		out.odd = append(out.odd, fit(maxPart, name, s)...)
	}
	slices.Sort(out.odd)
	out.Question = clip(in.Prompt, maxQuestion)
	findings, err := json.Marshal(out)
	if err != nil {
		return ace.ReflectorResult{}, fmt.Errorf("reflect: encoding the findings: %w", err)
	}
	return ace.ReflectorResult{Insights: out.insights(), BulletTags: out.tags, Correct: correct, Findings: findings,
		Usage: s.used(), Verdict: s.verdict(v, out.odd)}, nil
}

// Curate implements [model.Provider]. The reflector's tags are counted whatever the model
// says; each of its operations is tried on the playbook and comes back with its fate.
func (p *provider) Curate(ctx context.Context, in ace.CuratorInput, book *playbook.Playbook) (ace.CuratorResult, error) {
	s, err := p.begin(ctx, in.Task)
	if err != nil {
		return ace.CuratorResult{}, err
	}
	book = orEmpty(book)
	var findings reflected
	if len(in.Findings) > 0 && json.Unmarshal(in.Findings, &findings) != nil {
		findings = reflected{} // another provider's own
	}
	var out curated
	v, err := s.answer(ctx, s.request(curatorPrompt, book, curatorMessage(in, findings, book)), out.take)
	if err != nil {
		return ace.CuratorResult{Usage: s.used()}, err
	}
	odd := fit(maxPart, "reasoning", &out.reasoning)
	r := ace.CuratorResult{Rationale: out.reasoning, Usage: s.used(), Verdict: s.verdict(v, odd)}
	r.Accepted, r.Rejected = settle(book, in.BulletTags, out.operations)
	return r, nil
}

// settle tries the tags and then the model's operations on the playbook, and says what
// became of each.
func settle(book *playbook.Playbook, tags []ace.BulletTag, proposed []ace.Operation) (accepted, rejected []ace.Operation) {
	accepted, rejected = []ace.Operation{}, []ace.Operation{}
	var ops []ace.Operation
	counted := map[string]bool{}
	for _, t := range tags {
		if !counted[t.ID] {
			counted[t.ID] = true
			ops = append(ops, ace.Operation{Type: ace.OpTag, BulletID: t.ID, Metadata: map[string]int{t.Tag: 1}})
		}
	}
	for _, op := range proposed {
		switch {
		case op.Fate != "":
			rejected = append(rejected, op)
		case op.Type == ace.OpTag && counted[op.BulletID]:
			op.Fate, op.Reason = ace.FateIgnored, "the reflector's tag counts already"
			rejected = append(rejected, op)
		case op.Type == ace.OpAdd:
			op.BulletID, op.Metadata = "", nil // both are given by the merge
			ops = append(ops, op)
		default:
			ops = append(ops, op)
		}
	}
	good, bad := tried(book, ops)
	return append(accepted, good...), append(rejected, bad...)
}

// tried tells the operations that can be applied to the playbook from those that cannot, which
// say why.
func tried(book *playbook.Playbook, ops []ace.Operation) (accepted, rejected []ace.Operation) {
	accepted, rejected = []ace.Operation{}, []ace.Operation{}
	_, fates := playbook.Apply(book, ops)
	for i, op := range fates {
		if op.Fate != ace.FateAccepted {
			rejected = append(rejected, op)
			continue
		}
		if op.Type == ace.OpAdd {
			op.BulletID = "" // given when it is merged, onto what may be a later version
		}
		if op.Type == ace.OpRemove || op.Type == ace.OpTag {
			op.Section, op.Content = ops[i].Section, ops[i].Content
		}
		op.Reason = cmp.Or(op.Reason, ops[i].Reason)
		accepted = append(accepted, op)
	}
	return accepted, rejected
}

// Bounds of what goes from an answer into a history, in bytes: a result has to stay below
// what is stored elsewhere.
const (
	maxPlan  = 16 << 10
	maxFinal = 4 << 10
	maxPart  = 4 << 10
)

// fit cuts a text to n bytes and says so where it did.
func fit(n int, name string, s *string) (odd []string) {
	if len(*s) > n {
		odd = append(odd, fmt.Sprintf("%s had %d bytes, %d are kept", name, len(*s), n))
		*s = clip(*s, n)
	}
	return odd
}

func orEmpty(book *playbook.Playbook) *playbook.Playbook {
	if book == nil {
		return &playbook.Playbook{}
	}
	return book
}
