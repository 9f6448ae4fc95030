package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/playbook"
)

// generated is what a generator answers.
type generated struct {
	reasoning, answer string
	bullets           []string
}

func (g *generated) take(f found) error {
	if f.fields.get("final_answer", "answer") == nil {
		return errors.New(`it has no "final_answer"`)
	}
	if f.cut > 0 {
		return errors.New("it was cut off before its end")
	}
	*g = generated{f.fields.text("reasoning", "plan", "thought"), f.fields.text("final_answer", "answer"),
		f.fields.texts("bullet_ids", "bullets", "used_bullets")}
	return nil
}

// finished is what a skills session answers.
type finished struct{ answer string }

func (s *finished) take(f found) error {
	v := f.fields.get("final_answer", "answer")
	if v == nil {
		return errors.New(`it has no "final_answer"`)
	}
	if f.cut > 0 {
		return errors.New("it was cut off before its end")
	}
	s.answer = textOf(v)
	return nil
}

// reflected is what a reflector answers.
type reflected struct {
	Error    string `json:"error_identification,omitempty"`
	Cause    string `json:"root_cause_analysis,omitempty"`
	Approach string `json:"correct_approach,omitempty"`
	Insight  string `json:"key_insight,omitempty"`
	// Question is the beginning of the task, for the curator, which is not given it.
	Question  string          `json:"question,omitempty"`
	reasoning string          // not handed on
	tags      []ace.BulletTag // those that a playbook has
	odd       []string
}

func (r *reflected) take(f found) error {
	g := f.fields
	out := reflected{Error: g.text("error_identification", "error"), Cause: g.text("root_cause_analysis", "root_cause"),
		Approach: g.text("correct_approach"), Insight: g.text("key_insight", "insight", "insights"), reasoning: g.text("reasoning")}
	if out.Insight+out.Approach+out.Cause+out.Error == "" {
		return errors.New(`it has none of "error_identification", "root_cause_analysis", "correct_approach" and "key_insight"`)
	}
	out.readTags(g.get("bullet_tags", "tags"), f.cut)
	*r = out
	return nil
}

// readTags takes a list of {"id", "tag"}, or an object of tags by id.
func (r *reflected) readTags(v json.RawMessage, cut int) {
	var list []json.RawMessage
	var byID map[string]string
	switch {
	case v == nil:
	case json.Unmarshal(v, &list) == nil:
		if cut > 2 && len(list) > 0 { // the object, the list, and an element
			list = list[:len(list)-1]
			r.odd = append(r.odd, "the last tag was cut off and left out")
		}
		for _, e := range list {
			f := object(e)
			r.tag(f.text("id", "bullet_id", "bullet"), f.text("tag", "label", "verdict"))
		}
	case json.Unmarshal(v, &byID) == nil:
		for _, id := range sortedKeys(byID) {
			r.tag(id, byID[id])
		}
	default:
		r.odd = append(r.odd, "the tags are no list")
	}
}

func (r *reflected) tag(id, tag string) {
	id, tag = strings.Trim(id, "[] "), strings.ToLower(strings.TrimSpace(tag))
	switch {
	case id == "" || len(id) > 200:
		r.odd = append(r.odd, "a tag names no bullet")
	case tag != "helpful" && tag != "harmful" && tag != "neutral":
		r.odd = append(r.odd, fmt.Sprintf("%s: %.20q is no tag", id, tag))
	default:
		r.tags = append(r.tags, ace.BulletTag{ID: id, Tag: tag})
	}
}

// known leaves only the first tag of each bullet that the playbook has.
func (r *reflected) known(book *playbook.Playbook) {
	seen := map[string]bool{}
	var kept []ace.BulletTag
	for _, t := range r.tags {
		if _, ok := book.Find(t.ID); !ok {
			r.odd = append(r.odd, fmt.Sprintf("there is no bullet %.40q to tag", t.ID))
		} else if !seen[t.ID] {
			seen[t.ID] = true
			kept = append(kept, t)
		}
	}
	r.tags = kept
}

// insights is the reflection as a text.
func (r *reflected) insights() string {
	var parts []string
	for _, p := range [][2]string{{"Key insight", r.Insight}, {"Error", r.Error}, {"Root cause", r.Cause}, {"Correct approach", r.Approach}} {
		if p[1] != "" {
			parts = append(parts, p[0]+": "+p[1])
		}
	}
	return strings.Join(parts, "\n")
}

// curated is what a curator answers. Operations that could not be read have a fate
// already.
type curated struct {
	reasoning  string
	operations []ace.Operation
}

func (c *curated) take(f found) error {
	v := f.fields.get("operations", "list")
	depth := 3 // the object, the list, and an operation
	if f.fields.get("operations") == nil {
		depth = 2
	}
	var list []json.RawMessage
	if v == nil {
		return errors.New(`it has no "operations"`)
	}
	if json.Unmarshal(v, &list) != nil {
		if object(v) == nil {
			return errors.New(`its "operations" are no list`)
		}
		list = []json.RawMessage{v} // one operation without its list
	}
	if depth == 2 && !allObjects(list) {
		return errors.New(`it has no "operations"`)
	}
	out := curated{reasoning: f.fields.text("reasoning", "rationale")}
	for i, e := range list {
		op := operation(e)
		if f.cut >= depth && i == len(list)-1 {
			op.Fate, op.Reason = ace.FateUnparsable, "the answer was cut off in it"
		}
		out.operations = append(out.operations, op)
	}
	*c = out
	return nil
}

func allObjects(list []json.RawMessage) bool {
	for _, e := range list {
		if f := object(e); f == nil || f["list"] != nil {
			return false
		}
	}
	return len(list) > 0
}

// maxShown is how much is kept of an operation that could not be read, in bytes.
const maxShown = 300

// operation reads one operation; its fate is set only where it could not be read.
func operation(v json.RawMessage) ace.Operation {
	f := object(v)
	if f == nil || f["list"] != nil {
		return ace.Operation{Content: clip(textOf(v), maxShown), Fate: ace.FateUnparsable, Reason: "the operation is no object"}
	}
	op := ace.Operation{
		Type:     ace.OperationType(strings.ToUpper(f.text("type", "op", "operation", "action"))),
		Section:  f.text("section", "category"),
		Content:  f.text("content", "text", "new_content"),
		BulletID: strings.Trim(f.text("bullet_id", "id", "skill_id", "bullet", "target_id"), "[] "),
	}
	if m := object(f.get("metadata", "counters")); m != nil {
		for _, tag := range []string{"helpful", "harmful", "neutral"} {
			if n := count(m.get(tag)); n != 0 {
				op.Metadata = withTag(op.Metadata, tag, n)
			}
		}
	}
	if tag := strings.ToLower(f.text("tag")); op.Metadata == nil && (tag == "helpful" || tag == "harmful" || tag == "neutral") {
		op.Metadata = withTag(nil, tag, 1)
	}
	return op
}

func withTag(m map[string]int, tag string, n int) map[string]int {
	if m == nil {
		m = map[string]int{}
	}
	m[tag] = n
	return m
}
