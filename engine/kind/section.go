package kind

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	commonpb "go.temporal.io/api/common/v1"

	"acescope/engine/learning/playbook"
)

// Section is a part of the state of a run with a title, such as the plan, the bullets used or the tool calls.
type Section struct {
	Title  string `json:"title"`
	Remark string `json:"remark,omitempty"`
	Items  []Item `json:"items"`
}

// Item is an entry of a section, such as a bullet or a tool call.
type Item struct {
	Head    string  `json:"head,omitempty"`
	Outcome Outcome `json:"outcome,omitempty"`
	Bullet  string  `json:"bullet_id,omitempty"` // the subject of the item
	Fields  []Field `json:"fields,omitempty"`
	Changed bool    `json:"changed,omitempty"` // whether the event changed the item
	// Event is the newest history event about the item, 0 if no single event is about it.
	Event int64 `json:"event_id,omitempty"`
	Run   *Run  `json:"run,omitempty"` // the run that the item is about, such as a child workflow
}

// Run identifies a run. RunID may be empty.
type Run struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id,omitempty"`
}

// RunOf returns the run of an execution, which may be nil.
func RunOf(e *commonpb.WorkflowExecution) Run {
	return Run{WorkflowID: e.GetWorkflowId(), RunID: e.GetRunId()}
}

// Field is a text of an item. JSON is set for a payload; its text is the JSON.
type Field struct {
	Label string    `json:"label,omitempty"`
	Kind  FieldKind `json:"kind,omitempty"`
	Text  string    `json:"text"`
}

// FieldKind is the kind of text in a [Field]; "" is prose.
type FieldKind string

// Kinds of fields.
const (
	FieldPayload FieldKind = "payload" // JSON
	FieldRemoved FieldKind = "removed"
	FieldAdded   FieldKind = "added"
	FieldError   FieldKind = "error"
)

// Outcome is the outcome of a tool call, an operation or an answer, "" for none.
type Outcome string

// Outcomes.
const (
	OutcomeOK       Outcome = "ok"
	OutcomeFailed   Outcome = "failed"
	OutcomeCorrect  Outcome = "correct"
	OutcomeWrong    Outcome = "wrong"
	OutcomeAccepted Outcome = "accepted"
	OutcomeRejected Outcome = "rejected"
)

// Bullets holds the bullets of a playbook version by ID, with the merges that wrote them if they are known.
type Bullets map[string]*playbook.BulletHistory

// Content returns the text of a bullet, or "".
func (b Bullets) Content(id string) string {
	if h := b[id]; h != nil {
		return h.Bullet.Content
	}
	return ""
}

// Books holds the playbook versions of a run; nil if a version cannot be read.
type Books struct {
	Given  Bullets // the version that the generator received
	Before Bullets // the version that the operations were merged into
}

// Key returns a text that is equal only for equal items.
func (i Item) Key() string {
	return fmt.Sprintf("%q", []any{i.Head, i.Outcome, i.Bullet, i.Fields, i.Event})
}

// Sections collects sections.
type Sections []Section

// Add adds a section unless it has no items.
func (l *Sections) Add(title, remark string, items ...Item) {
	if len(items) > 0 {
		*l = append(*l, Section{title, remark, items})
	}
}

// Fields returns the fields with a text.
func Fields(all ...Field) []Field {
	return slices.DeleteFunc(all, func(f Field) bool { return f.Text == "" })
}

// Prose returns an item for each text that is not empty.
func Prose(texts ...string) (items []Item) {
	for _, t := range texts {
		if t != "" {
			items = append(items, Item{Fields: Fields(Field{Text: t})})
		}
	}
	return items
}

// AnswerItem returns an answer with the label and the verdict, as far as they are known.
func AnswerItem(head, answer string, label *string, correct *bool, reason string) Item {
	i := Item{Head: head, Fields: Fields(Field{Label: "answer", Text: cmp.Or(answer, "none")})}
	if label != nil {
		i.Fields = append(i.Fields, Field{Label: "expected", Text: *label})
	}
	if correct != nil {
		i.Outcome = OutcomeWrong
		if *correct {
			i.Outcome = OutcomeCorrect
		}
	}
	if reason != "" {
		i.Fields = append(i.Fields, Field{Label: "reason", Text: reason})
	}
	return i
}

// ValueSections lists the values of a run that is not a task run. Values whose paths begin with the same part
// form a section.
func ValueSections(values []Value) []Section {
	var l Sections
	var single []Item
	grouped := map[string][]Item{}
	var order []string
	for _, v := range values {
		first, rest, nested := strings.Cut(v.Path, ".")
		if !nested {
			single = append(single, valueItem(v.Path, v.V))
			continue
		}
		if grouped[first] == nil {
			order = append(order, first)
		}
		grouped[first] = append(grouped[first], valueItem(rest, v.V))
	}
	l.Add("Run", "", single...)
	for _, name := range order {
		l.Add(strings.ToUpper(name[:1])+strings.ReplaceAll(name[1:], "_", " "), "", grouped[name]...)
	}
	return l
}

func valueItem(path string, v any) Item {
	return Item{Fields: []Field{{Label: path, Text: Plain(RawOf(v))}}}
}
