package llm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"acescope/engine/ace"
	"acescope/engine/learning/grade"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
)

func (p *provider) Generate(ctx context.Context, in ace.GeneratorInput,
	book *playbook.Playbook) (ace.GeneratorResult, error) {
	book = orEmpty(book)
	s, system, err := p.beginPhase(ctx, ace.PhaseGenerator, in.Task, book, nil)
	if err != nil {
		return ace.GeneratorResult{}, err
	}
	if strings.TrimSpace(in.Prompt) == "" {
		return ace.GeneratorResult{}, model.Errorf(model.BadRequest, "%s: the prompt is empty", p.o.Name)
	}
	var out generated
	v, err := s.answer(ctx, s.request(system, generatorMessage(in)), out.parse)
	if err != nil {
		return ace.GeneratorResult{StepReport: ace.StepReport{Usage: s.used()}}, err
	}
	ids, notes := knownIDs(book, out.bullets)
	notes = append(notes, fit(maxPlan, "reasoning", &out.reasoning)...)
	notes = append(notes, fit(maxFinal, "final_answer", &out.answer)...)
	return ace.GeneratorResult{Plan: out.reasoning, Answer: out.answer, BulletIDs: ids,
		StepReport:   ace.StepReport{Usage: s.used(), Parsed: s.report(v, notes)},
		PromptTokens: s.usage.InputTokens + s.usage.CacheReadTokens, CompletionTokens: s.usage.OutputTokens,
		TrajectoryID: trajectoryID(in.Task, out.reasoning, out.answer)}, nil
}

// Answer implements [model.Answerer].
func (p *provider) Answer(ctx context.Context, q model.Question) (model.Reply, error) {
	s, err := p.begin(ctx, ace.TaskContext{Model: q.Model}, nil)
	if err != nil {
		return model.Reply{}, err
	}
	r := Request{Model: s.model, MaxTokens: s.o.MaxTokens, Messages: []Message{{Role: User, Text: q.Prompt}},
		Step: s.shared}
	if q.System != "" {
		r.System = []Block{{Text: q.System}}
	}
	resp, err := s.complete(ctx, r)
	if err == nil && q.Accept != nil {
		if why := q.Accept(resp.Text); why != nil {
			if resp, err = s.complete(ctx, repairRequest(r, resp, why)); err == nil {
				err = badAnswer(p.o.Name, resp.Text, q.Accept(resp.Text))
			}
		}
	}
	return model.Reply{Text: resp.Text, Model: cmp.Or(resp.Model, s.model), Usage: s.used()}, err
}

func trajectoryID(at ace.TaskContext, plan, answer string) string {
	sum := sha256.Sum256([]byte(at.WorkflowID + at.RunID + plan + answer))
	return fmt.Sprintf("trajectory-%x", sum[:8])
}

// knownIDs returns the distinct IDs that the playbook has, and notes on the others.
func knownIDs(book *playbook.Playbook, named []string) (ids, notes []string) {
	seen := map[string]bool{}
	for _, id := range named {
		if _, ok := book.Find(id); !ok {
			notes = append(notes, fmt.Sprintf("used bullet %.40q not found", id))
		} else if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, notes[:min(len(notes), 10)]
}

// maxQuestion is the number of bytes of the task that the curator gets.
const maxQuestion = 2 << 10

// Reflect implements [model.Provider]. The grader of the task decides whether the answer is
// correct, not the model.
func (p *provider) Reflect(ctx context.Context, in ace.ReflectorInput,
	book *playbook.Playbook) (ace.ReflectorResult, error) {
	book = orEmpty(book)
	s, system, err := p.beginPhase(ctx, ace.PhaseReflector, in.Task, book, nil)
	if err != nil {
		return ace.ReflectorResult{}, err
	}
	correct, score, err := grade.Verdict(in)
	if err != nil {
		return ace.ReflectorResult{}, err
	}
	var out reflected
	v, err := s.answer(ctx, s.request(system, reflectorMessage(in, book, correct, score)), out.parse)
	if err != nil {
		return ace.ReflectorResult{StepReport: ace.StepReport{Usage: s.used()}}, err
	}
	out.keepKnown(book)
	for name, part := range map[string]*string{"error_identification": &out.Error,
		"root_cause_analysis": &out.Cause,
		"correct_approach":    &out.Approach, "key_insight": &out.Insight} {
		out.notes = append(out.notes, fit(maxPart, name, part)...)
	}
	slices.Sort(out.notes)
	out.Question = ace.Cut(in.Prompt, maxQuestion)
	findings, err := json.Marshal(out)
	if err != nil {
		return ace.ReflectorResult{}, fmt.Errorf("reflect: encode the findings: %w", err)
	}
	return ace.ReflectorResult{Insights: out.insights(), Cause: out.cause(correct), BulletTags: out.tags,
		Correct: correct, Score: score, Findings: findings, StepReport: ace.StepReport{Usage: s.used(),
			Parsed: s.report(v, out.notes)}}, nil
}

// Curate implements [model.Provider]. The reflector's tags always count; each operation of the
// model is tried on the playbook and returned with its outcome.
func (p *provider) Curate(ctx context.Context, in ace.CuratorInput,
	book *playbook.Playbook) (ace.CuratorResult, error) {
	book = orEmpty(book)
	s, system, err := p.beginPhase(ctx, ace.PhaseCurator, in.Task, book, nil)
	if err != nil {
		return ace.CuratorResult{}, err
	}
	var findings reflected
	if len(in.Findings) > 0 && json.Unmarshal(in.Findings, &findings) != nil {
		findings = reflected{} // written by another provider
	}
	var out curated
	v, err := s.answer(ctx, s.request(system, curatorMessage(in, findings, book)), out.parse)
	if err != nil {
		return ace.CuratorResult{StepReport: ace.StepReport{Usage: s.used()}}, err
	}
	notes := fit(maxPart, "reasoning", &out.reasoning)
	r := ace.CuratorResult{Rationale: out.reasoning, StepReport: ace.StepReport{Usage: s.used(),
		Parsed: s.report(v, notes)}}
	r.Accepted, r.Rejected = tryAll(book, in.BulletTags, out.operations)
	return r, nil
}

// tryAll tries the tags and then the model's operations on the playbook.
func tryAll(book *playbook.Playbook, tags []ace.BulletTag, proposed []ace.Operation) (accepted,
	rejected []ace.Operation) {
	ops := ace.TagOperations(tags)
	counted := map[string]bool{}
	for _, t := range tags {
		counted[t.ID] = true
	}
	for _, op := range proposed {
		switch {
		case op.Outcome != "":
			rejected = append(rejected, op)
		case op.Type == ace.OpTag && counted[op.BulletID]:
			op.Outcome, op.Reason = ace.OutcomeIgnored, "the reflector's tag already counts"
			rejected = append(rejected, op)
		case op.Type == ace.OpAdd:
			op.BulletID, op.Metadata = "", nil // the merge sets both
			ops = append(ops, op)
		default:
			ops = append(ops, op)
		}
	}
	accepted, failed := try(book, ops)
	return accepted, append(append([]ace.Operation{}, rejected...), failed...)
}

// try returns the operations that can be applied to the playbook, and the others with reasons.
func try(book *playbook.Playbook, ops []ace.Operation) (accepted, rejected []ace.Operation) {
	accepted, rejected = []ace.Operation{}, []ace.Operation{}
	_, done := playbook.Apply(book, ops)
	for i, op := range done {
		if op.Outcome != ace.OutcomeAccepted {
			rejected = append(rejected, op)
			continue
		}
		if op.Type == ace.OpAdd {
			op.BulletID = "" // the merge, possibly into a later version, sets it
		}
		if op.Type == ace.OpRemove || op.Type == ace.OpTag {
			op.Section, op.Content = ops[i].Section, ops[i].Content
		}
		op.Reason = cmp.Or(op.Reason, ops[i].Reason)
		accepted = append(accepted, op)
	}
	return accepted, rejected
}

// Bounds of the parts of an answer that go into a history, in bytes. They keep a result below
// the size that is stored elsewhere.
const (
	maxPlan  = 16 << 10
	maxFinal = 4 << 10
	maxPart  = 4 << 10
)

// fit cuts a text to n bytes. If it was longer, it returns a note.
func fit(n int, name string, s *string) (notes []string) {
	if len(*s) > n {
		notes = append(notes, fmt.Sprintf("%s had %d bytes and was cut to %d", name, len(*s), n))
		*s = ace.Cut(*s, n)
	}
	return notes
}

func orEmpty(book *playbook.Playbook) *playbook.Playbook { return cmp.Or(book, &playbook.Playbook{}) }

// generated is the answer of a generator.
type generated struct {
	reasoning, answer string
	bullets           []string
}

var errCut = errors.New("it was cut off")

func (g *generated) parse(f found) error {
	if !f.fields.get("final_answer", "answer").Exists() {
		return errors.New(`it has no "final_answer"`)
	}
	if f.cut > 0 {
		return errCut
	}
	*g = generated{f.fields.text("reasoning", "plan", "thought"), f.fields.text("final_answer", "answer"),
		f.fields.texts("bullet_ids", "bullets", "used_bullets")}
	return nil
}

// reflected is the answer of a reflector.
type reflected struct {
	Error    string `json:"error_identification,omitempty"`
	Cause    string `json:"root_cause_analysis,omitempty"`
	Approach string `json:"correct_approach,omitempty"`
	Insight  string `json:"key_insight,omitempty"`
	// Question is the beginning of the task, which the curator does not get otherwise.
	Question  string          `json:"question,omitempty"`
	reasoning string          // not passed on
	mistake   string          // not passed on
	tags      []ace.BulletTag // of bullets in the playbook
	notes     []string
}

func (r *reflected) parse(f found) error {
	g := f.fields
	out := reflected{
		Error:     g.text("error_identification", "error"),
		Cause:     g.text("root_cause_analysis", "root_cause"),
		Approach:  g.text("correct_approach"),
		Insight:   g.text("key_insight", "insight", "insights"),
		mistake:   g.text("mistake", "cause"),
		reasoning: g.text("reasoning"),
	}
	if out.Insight+out.Approach+out.Cause+out.Error == "" {
		return errors.New(`it lacks "error_identification", "root_cause_analysis", "correct_approach" and "key_insight"`)
	}
	out.readTags(g.get("bullet_tags", "tags"), f.cut)
	*r = out
	return nil
}

// readTags reads a list of {"id", "tag"}, or an object of tags by ID.
func (r *reflected) readTags(v gjson.Result, cut int) {
	switch {
	case v.IsArray():
		list := v.Array()
		if cut > 2 && len(list) > 0 { // the object, the list, and an element
			list = list[:len(list)-1]
			r.notes = append(r.notes, "the last tag was cut off and ignored")
		}
		for _, e := range list {
			f := object(e)
			r.tag(f.text("id", "bullet_id", "bullet"), f.text("tag", "label", "verdict"))
		}
	case v.IsObject():
		tags := v.Map()
		for _, id := range slices.Sorted(maps.Keys(tags)) {
			r.tag(id, textOf(tags[id]))
		}
	case v.Exists():
		r.notes = append(r.notes, "the tags are not a list")
	}
}

func (r *reflected) tag(id, tag string) {
	id, tag = strings.Trim(id, "[] "), strings.ToLower(strings.TrimSpace(tag))
	switch {
	case id == "" || len(id) > 200:
		r.notes = append(r.notes, "a tag names no bullet")
	case !slices.Contains(tagNames, tag):
		r.notes = append(r.notes, fmt.Sprintf("%s: %.20q is not a tag", id, tag))
	default:
		r.tags = append(r.tags, ace.BulletTag{ID: id, Tag: tag})
	}
}

// keepKnown keeps the first tag of each bullet that the playbook has.
func (r *reflected) keepKnown(book *playbook.Playbook) {
	seen := map[string]bool{}
	var kept []ace.BulletTag
	for _, t := range r.tags {
		if _, ok := book.Find(t.ID); !ok {
			r.notes = append(r.notes, fmt.Sprintf("tagged bullet %.40q not found", t.ID))
		} else if !seen[t.ID] {
			seen[t.ID] = true
			kept = append(kept, t)
		}
	}
	r.tags = kept
}

// cause returns why a wrong answer is wrong, for [ace.ReflectorResult].
func (r *reflected) cause(correct *bool) string {
	if correct == nil || *correct {
		return ""
	}
	return ace.Cut(cmp.Or(r.mistake, r.Error, r.Cause, r.Insight), maxCause)
}

// maxCause bounds a cause in bytes.
const maxCause = 200

// insights returns the reflection as text.
func (r *reflected) insights() string {
	var parts []string
	add := func(title, text string) {
		if text != "" {
			parts = append(parts, title+": "+text)
		}
	}
	add("Key insight", r.Insight)
	add("Error", r.Error)
	add("Root cause", r.Cause)
	add("Correct approach", r.Approach)
	return strings.Join(parts, "\n")
}

// curated is the answer of a curator. Operations that could not be parsed have an outcome.
type curated struct {
	reasoning  string
	operations []ace.Operation
}

func (c *curated) parse(f found) error {
	v, depth := f.fields.get("operations"), 3 // the object, the list, and an operation
	if !v.Exists() {
		v, depth = f.fields.get("list"), 2
	}
	list := v.Array() // a single operation is a list of one
	isList := func(e gjson.Result) bool { return object(e).isList() }
	switch {
	case !v.Exists() || depth == 2 && (len(list) == 0 || slices.ContainsFunc(list, isList)):
		return errors.New(`it has no "operations"`)
	case !v.IsArray() && object(v) == nil:
		return errors.New(`its "operations" are not a list`)
	}
	*c = curated{reasoning: f.fields.text("reasoning", "rationale")}
	for i, e := range list {
		op := operation(e)
		if f.cut >= depth && i == len(list)-1 {
			op.Outcome, op.Reason = ace.OutcomeUnparsable, "the answer was cut off in this operation"
		}
		c.operations = append(c.operations, op)
	}
	return nil
}

// maxShown is the number of bytes quoted of an operation that could not be parsed.
const maxShown = 300

// operation parses an operation. It sets the outcome only if that fails.
func operation(v gjson.Result) ace.Operation {
	f := object(v)
	if f.isList() {
		return ace.Operation{Content: ace.Cut(textOf(v), maxShown), Outcome: ace.OutcomeUnparsable,
			Reason: "the operation is not an object"}
	}
	op := ace.Operation{
		Type:    ace.OperationType(strings.ToUpper(f.text("type", "op", "operation", "action"))),
		Section: f.text("section", "category"),
		Content: f.text("content", "text", "new_content", "merged_content"),
		BulletID: strings.Trim(f.text("bullet_id", "id", "skill_id", "bullet", "target_id", "keep_id"),
			"[] "),
	}
	if op.Type == ace.OpMerge {
		op.SourceIDs = f.texts("source_ids", "bullet_ids", "skill_ids")
	}
	counters := object(f.get("metadata", "counters"))
	for _, tag := range tagNames {
		if n := count(counters.get(tag)); n != 0 {
			if op.Metadata == nil {
				op.Metadata = map[string]int{}
			}
			op.Metadata[tag] = n
		}
	}
	if tag := strings.ToLower(f.text("tag")); op.Metadata == nil && slices.Contains(tagNames, tag) {
		op.Metadata = map[string]int{tag: 1}
	}
	return op
}

var tagNames = []string{"helpful", "harmful", "neutral"}
