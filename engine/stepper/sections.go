package stepper

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/temporal/history"
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
	OutcomeDenied   Outcome = "denied"
	OutcomePending  Outcome = "pending"
	OutcomeCorrect  Outcome = "correct"
	OutcomeWrong    Outcome = "wrong"
	OutcomeAccepted Outcome = "accepted"
	OutcomeRejected Outcome = "rejected"
)

// Bullets holds the bullets of a playbook version by ID, with the merges that wrote them if they are known.
type Bullets map[string]*playbook.BulletHistory

// content returns the text of a bullet, or "".
func (b Bullets) content(id string) string {
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

// Hashes returns the hashes of the versions in a run's [Books]; "" if the run has no such version.
func (s *Stepper) Hashes() (given, before string) {
	if end := s.State(s.Len()); end != nil {
		return end.Input.PlaybookHash, end.Delta.PlaybookBefore
	}
	return "", ""
}

// maxListed bounds the listed tool calls of a task run, and the listed values of other runs.
const maxListed = 100

// Sections describes the state at a position. Items that the event changed are marked. The result is not nil.
func (s *Stepper) Sections(pos int, b Books) []Section {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, changed := slices.BinarySearch(s.facts, pos)
	if !changed {
		return append([]Section{}, s.seek(pos).sections(b, nil)...)
	}
	before := s.seek(pos-1).sections(b, nil)
	after := s.seek(pos)
	known := map[string]bool{}
	for _, section := range before {
		for _, i := range section.Items {
			known[section.Title+i.key()] = true
		}
	}
	whole := append([]Section{}, after.sections(b, s.events[pos-1])...)
	for n, section := range after.sections(b, nil) { // like before, with previews of payloads
		for at, i := range section.Items {
			whole[n].Items[at].Changed = !known[section.Title+i.key()]
		}
	}
	return whole
}

// key returns a text that is equal only for equal items.
func (i Item) key() string { return fmt.Sprintf("%q", []any{i.Head, i.Outcome, i.Bullet, i.Fields}) }

// sectionList collects sections.
type sectionList []Section

// add adds a section unless it has no items.
func (l *sectionList) add(title, remark string, items ...Item) {
	if len(items) > 0 {
		*l = append(*l, Section{title, remark, items})
	}
}

// fields returns the fields with a text.
func fields(all ...Field) []Field {
	return slices.DeleteFunc(all, func(f Field) bool { return f.Text == "" })
}

// prose returns an item for each text that is not empty.
func prose(texts ...string) (items []Item) {
	for _, t := range texts {
		if t != "" {
			items = append(items, Item{Fields: fields(Field{Text: t})})
		}
	}
	return items
}

func (f *taskFold) sections(b Books, e *historypb.HistoryEvent) []Section {
	s := f.state
	var l sectionList
	l.add("Task", "", prose(s.Input.Prompt)...)
	l.add("Plan", "", prose(s.Plan)...)
	l.add("Bullets used", "", usedBullets(s, b.Given)...)
	calls, remark := f.calls(e)
	l.add("Tool calls", remark, calls...)
	l.add("Answer", "", answers(s)...)
	l.add("Reflection", "", reflection(s, b.Given)...)
	l.add("Operations", "", operations(s, b)...)
	l.add("Playbook", "", versions(s)...)
	if s.Failure != nil {
		l.add("Failure", "", Item{Head: s.Failure.Type, Outcome: OutcomeFailed,
			Fields: fields(Field{Kind: FieldError, Text: s.Failure.Message})})
	}
	if u := s.Usage; u != (ace.Usage{}) {
		l.add("Usage", "", prose(fmt.Sprintf("%s, %s output, %s", ace.Count(u.InputTokens, "input token"),
			ace.Number(u.OutputTokens), u.Cost()))...)
	}
	return l
}

// usedBullets lists the bullets that the generator used, with their tags.
func usedBullets(s *ace.State, given Bullets) (items []Item) {
	tags := tagsOf(s)
	for _, id := range s.BulletIDs {
		items = append(items, Item{Head: id, Bullet: id,
			Fields: fields(Field{Text: given.content(id)}, Field{Label: "tagged", Text: tags[id]})})
	}
	return items
}

// tagsOf returns the tags of bullets by ID.
func tagsOf(s *ace.State) map[string]string {
	tags := map[string]string{}
	for _, t := range s.BulletTags {
		tags[t.ID] = t.Tag
	}
	return tags
}

// calls lists the latest tool calls. Calls that the event reports have the whole payloads of the event.
func (f *taskFold) calls(e *historypb.HistoryEvent) (items []Item, remark string) {
	shown := f.state.NewestCalls(maxListed)
	total, _, _ := f.state.CallTotals()
	whole := wholePayloads(e)
	for i := range shown {
		items = append(items, callItem(&shown[i], whole))
	}
	if total > len(shown) {
		remark = "the newest " + ace.Number(len(shown)) + " of " + ace.Number(total)
	}
	return items, remark
}

func callItem(c *ace.Call, whole map[string][]json.RawMessage) Item {
	outcome := OutcomeFailed
	switch {
	case !c.Accepted:
		outcome = OutcomeDenied
	case c.Pending:
		outcome = OutcomePending
	case c.OK:
		outcome = OutcomeOK
	}
	took := ""
	if c.DurationMS > 0 {
		took = strconv.FormatFloat(c.DurationMS, 'f', -1, 64) + " ms"
	}
	return Item{Head: cmp.Or(c.Name, c.ID), Outcome: outcome, Fields: fields(
		Field{Label: "arguments", Kind: FieldPayload, Text: string(wholeOf(c.Args, whole[c.ID]))},
		Field{Label: "result", Kind: FieldPayload, Text: string(wholeOf(c.Result, whole[c.ID]))},
		Field{Label: "error", Kind: FieldError, Text: c.Error},
		Field{Label: "took", Text: took})}
}

// wholePayloads returns the payloads of tool calls in an event, by call ID.
func wholePayloads(e *historypb.HistoryEvent) map[string][]json.RawMessage {
	whole := map[string][]json.RawMessage{}
	if a := e.GetWorkflowExecutionSignaledEventAttributes(); a.GetSignalName() == ace.SignalToolEvent {
		events, _ := ace.DecodeToolEvents(history.JSON(a.GetInput())) // the previews stay
		for _, t := range events {
			whole[t.Call()] = append(whole[t.Call()], t.Args, t.Result)
		}
	}
	if end, ok := history.EndingOf(e); ok {
		var r ace.SkillSessionResult
		_ = json.Unmarshal(history.JSON(end.Result), &r) // other results have no invocations
		for _, i := range r.Invocations {
			whole[i.ID] = append(whole[i.ID], i.Args, i.Result)
		}
	}
	return whole
}

// wholeOf returns the payload of which a value is the preview, or the preview if the event does not have it.
func wholeOf(preview json.RawMessage, whole []json.RawMessage) json.RawMessage {
	for _, p := range whole {
		if len(p) > len(preview) && bytes.Equal(ace.Preview(p), preview) {
			return p
		}
	}
	return preview
}

// answers lists the answer with the label, and the answers of further passes.
func answers(s *ace.State) (items []Item) {
	if s.Answer != "" || s.Correct != nil {
		items = append(items, answerItem("", s.Answer, s.Input.Label, s.Correct, s.GradeReason))
	}
	for i := range s.Passes {
		p := &s.Passes[i]
		items = append(items, answerItem(p.Name(), p.Answer, s.Input.Label, p.Correct, p.GradeReason))
	}
	return items
}

func answerItem(head, answer string, label *string, correct *bool, reason string) Item {
	i := Item{Head: head, Fields: fields(Field{Label: "answer", Text: cmp.Or(answer, "none")})}
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

// reflection lists the insights and the tags of bullets.
func reflection(s *ace.State, given Bullets) []Item {
	items := prose(s.Insights)
	if s.Cause != "" {
		items = append(items, Item{Head: "cause", Fields: fields(Field{Text: s.Cause})})
	}
	for _, t := range s.BulletTags {
		items = append(items, Item{Head: "tagged " + t.Tag, Bullet: t.ID,
			Fields: fields(Field{Label: t.ID, Text: cmp.Or(given.content(t.ID), "text not known")})})
	}
	return items
}

// operations lists the curator's operations with the bullet before and after, and its rationale.
func operations(s *ace.State, b Books) []Item {
	books := b.Before
	if books == nil {
		books = b.Given
	}
	var items []Item
	for _, op := range s.Delta.Operations {
		items = append(items, operationItem(op, books))
	}
	if s.Delta.Rationale != "" {
		items = append(items, Item{Head: "rationale", Fields: fields(Field{Text: s.Delta.Rationale})})
	}
	for _, f := range s.Delta.FollowUpActions {
		items = append(items, Item{Head: "follow up", Fields: fields(Field{Text: f})})
	}
	return items
}

func operationItem(op ace.Operation, b Bullets) Item {
	i := Item{Head: string(op.Type), Bullet: op.BulletID, Outcome: Outcome(op.Outcome)}
	add := func(kind FieldKind, label, text string) {
		if text != "" {
			i.Fields = append(i.Fields, Field{label, kind, text})
		}
	}
	add("", "bullet", op.BulletID)
	switch op.Type {
	case ace.OpAdd:
	case ace.OpTag:
		for _, name := range slices.Sorted(maps.Keys(op.Metadata)) {
			add("", name, fmt.Sprintf("%+d", op.Metadata[name]))
		}
		add("", "text", b.content(op.BulletID))
	default:
		add(FieldRemoved, "before", b.content(op.BulletID))
	}
	for _, id := range op.SourceIDs {
		add(FieldRemoved, id, cmp.Or(b.content(id), "text not known"))
	}
	add(FieldAdded, "after", op.Content)
	add("", "reason", op.Reason)
	return i
}

// versions returns the playbook versions before and after the merge.
func versions(s *ace.State) []Item {
	if s.Delta.PlaybookBefore == "" && s.Delta.PlaybookAfter == "" {
		return nil
	}
	i := Item{Fields: fields(Field{Label: "before", Text: s.Delta.PlaybookBefore},
		Field{Label: "after", Text: s.Delta.PlaybookAfter})}
	if s.Delta.PlaybookSeq > 0 {
		version := fmt.Sprintf("v%d of %s, %s", s.Delta.PlaybookSeq, s.Input.Branch,
			ace.Count(s.Delta.Bullets, "bullet"))
		i.Fields = append(i.Fields, Field{Label: "version", Text: version})
	}
	return []Item{i}
}

func (f *sessionFold) sections(Books, *historypb.HistoryEvent) []Section { return valueSections(f) }
func (f *runFold) sections(Books, *historypb.HistoryEvent) []Section     { return valueSections(f) }
func (f *flowFold) sections(Books, *historypb.HistoryEvent) []Section    { return valueSections(f) }

// sections begins with the task or the part of an evaluation that the event completes.
func (f *experimentFold) sections(Books, *historypb.HistoryEvent) []Section {
	var l sectionList
	if r := f.fact.Completed; r != nil {
		s := r.Summary
		i := answerItem(r.TaskID, cmp.Or(s.Answer, r.Answer), nil, r.Correct, s.Cause)
		i.Fields = append(fields(Field{Label: "task", Text: s.Subject}), i.Fields...)
		operations := fmt.Sprintf("%d added, %d updated, %d removed, %d tagged, %d rejected",
			s.Added, s.Updated, s.Removed, s.Tagged, s.Rejected)
		i.Fields = append(i.Fields, fields(Field{Label: "expected", Text: s.Expected},
			Field{Label: "stopped", Text: r.Stopped},
			Field{Label: "tool calls", Text: fmt.Sprintf("%d, %d of them succeeded", s.Skills, s.SkillsOK)},
			Field{Label: "operations", Text: operations},
			Field{Label: "playbook", Text: fmt.Sprintf("v%d, %s", r.Seq, ace.Count(r.Bullets, "bullet"))})...)
		l.add("Task", "O opens its run", i)
	}
	if e := f.fact.Evaluated; e != nil {
		l.add("Evaluation", "a part of the evaluation set",
			Item{Fields: []Field{{Label: "correct", Text: fmt.Sprintf("%d of %d", e.Correct, e.Tasks)}}})
	}
	return append(l, valueSections(f)...)
}

// valueSections lists the values of a run that is not a task run. Values whose paths begin with the same part
// form a section.
func valueSections(f fold) []Section {
	var l sectionList
	var single []Item
	grouped := map[string][]Item{}
	var order []string
	for _, v := range f.values() {
		first, rest, nested := strings.Cut(v.path, ".")
		if !nested {
			single = append(single, valueItem(v.path, v.v))
			continue
		}
		if grouped[first] == nil {
			order = append(order, first)
		}
		grouped[first] = append(grouped[first], valueItem(rest, v.v))
	}
	l.add("Run", "", single...)
	for _, name := range order {
		l.add(strings.ToUpper(name[:1])+strings.ReplaceAll(name[1:], "_", " "), "", grouped[name]...)
	}
	return l
}

func valueItem(path string, v any) Item {
	return Item{Fields: []Field{{Label: path, Text: plain(rawOf(v))}}}
}
