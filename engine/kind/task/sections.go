package task

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/kind"
	"acescope/engine/temporal/history"
)

func (f *fold) Sections(b kind.Books, e *historypb.HistoryEvent) []kind.Section {
	s := f.state
	var l kind.Sections
	l.Add("Task", "", kind.Prose(s.Input.Prompt)...)
	l.Add("Plan", "", kind.Prose(s.Plan)...)
	l.Add("Bullets used", "", usedBullets(s, b.Given)...)
	calls, remark := f.calls(e)
	l.Add("Tool calls", remark, calls...)
	l.Add("Answer", "", answers(s)...)
	l.Add("Reflection", "", reflection(s, b.Given)...)
	l.Add("Operations", "", operations(s, b)...)
	l.Add("Playbook", "", versions(s)...)
	if s.Failure != nil {
		l.Add("Failure", "", kind.Item{Head: s.Failure.Type, Outcome: kind.OutcomeFailed,
			Fields: kind.Fields(kind.Field{Kind: kind.FieldError, Text: s.Failure.Message})})
	}
	if u := s.Usage; u != (ace.Usage{}) {
		l.Add("Usage", "", kind.Prose(fmt.Sprintf("%s, %s output, %s", ace.Count(u.InputTokens,
			"input token"),
			ace.Number(u.OutputTokens), u.Cost()))...)
	}
	return l
}

// usedBullets lists the bullets that the generator used, with their tags.
func usedBullets(s *ace.State, given kind.Bullets) (items []kind.Item) {
	tags := Tags(s)
	for _, id := range s.BulletIDs {
		items = append(items, kind.Item{Head: id, Bullet: id,
			Fields: kind.Fields(kind.Field{Text: given.Content(id)}, kind.Field{Label: "tagged",
				Text: tags[id]})})
	}
	return items
}

// Tags returns the tags of bullets by ID.
func Tags(s *ace.State) map[string]string {
	tags := map[string]string{}
	for _, t := range s.BulletTags {
		tags[t.ID] = t.Tag
	}
	return tags
}

// maxListed bounds the listed tool calls.
const maxListed = 100

// calls lists the latest tool calls. Calls that the event reports have the whole payloads of the event.
func (f *fold) calls(e *historypb.HistoryEvent) (items []kind.Item, remark string) {
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

func callItem(c *ace.Call, whole map[string][]json.RawMessage) kind.Item {
	took := ""
	if c.DurationMS > 0 {
		took = strconv.FormatFloat(c.DurationMS, 'f', -1, 64) + " ms"
	}
	return kind.Item{Head: cmp.Or(c.Name, c.ID), Outcome: kind.Outcome(c.State()), Fields: kind.Fields(
		kind.Field{Label: "arguments", Kind: kind.FieldPayload, Text: string(wholeOf(c.Args, whole[c.ID]))},
		kind.Field{Label: "result", Kind: kind.FieldPayload, Text: string(wholeOf(c.Result, whole[c.ID]))},
		kind.Field{Label: "error", Kind: kind.FieldError, Text: c.Error},
		kind.Field{Label: "took", Text: took})}
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
func answers(s *ace.State) (items []kind.Item) {
	if s.Answer != "" || s.Correct != nil {
		items = append(items, kind.AnswerItem("", s.Answer, s.Input.Label, s.Correct, s.GradeReason))
	}
	for i := range s.Passes {
		p := &s.Passes[i]
		items = append(items, kind.AnswerItem(p.Name(), p.Answer, s.Input.Label, p.Correct, p.GradeReason))
	}
	return items
}

// reflection lists the insights and the tags of bullets.
func reflection(s *ace.State, given kind.Bullets) []kind.Item {
	items := kind.Prose(s.Insights)
	if s.Cause != "" {
		items = append(items, kind.Item{Head: "cause", Fields: kind.Fields(kind.Field{Text: s.Cause})})
	}
	for _, t := range s.BulletTags {
		items = append(items, kind.Item{Head: "tagged " + t.Tag, Bullet: t.ID,
			Fields: kind.Fields(kind.Field{Label: t.ID, Text: cmp.Or(given.Content(t.ID),
				"text not known")})})
	}
	return items
}

// operations lists the curator's operations with the bullet before and after, and its rationale.
func operations(s *ace.State, b kind.Books) []kind.Item {
	books := b.Before
	if books == nil {
		books = b.Given
	}
	var items []kind.Item
	for _, op := range s.Delta.Operations {
		items = append(items, operationItem(op, books))
	}
	if s.Delta.Rationale != "" {
		items = append(items, kind.Item{Head: "rationale",
			Fields: kind.Fields(kind.Field{Text: s.Delta.Rationale})})
	}
	for _, f := range s.Delta.FollowUpActions {
		items = append(items, kind.Item{Head: "follow up", Fields: kind.Fields(kind.Field{Text: f})})
	}
	return items
}

func operationItem(op ace.Operation, b kind.Bullets) kind.Item {
	i := kind.Item{Head: string(op.Type), Bullet: op.BulletID, Outcome: kind.Outcome(op.Outcome)}
	add := func(of kind.FieldKind, label, text string) {
		if text != "" {
			i.Fields = append(i.Fields, kind.Field{Label: label, Kind: of, Text: text})
		}
	}
	add("", "bullet", op.BulletID)
	switch op.Type {
	case ace.OpAdd:
	case ace.OpTag:
		for _, name := range slices.Sorted(maps.Keys(op.Metadata)) {
			add("", name, fmt.Sprintf("%+d", op.Metadata[name]))
		}
		add("", "text", b.Content(op.BulletID))
	default:
		add(kind.FieldRemoved, "before", b.Content(op.BulletID))
	}
	for _, id := range op.SourceIDs {
		add(kind.FieldRemoved, id, cmp.Or(b.Content(id), "text not known"))
	}
	add(kind.FieldAdded, "after", op.Content)
	add("", "reason", op.Reason)
	return i
}

// versions returns the playbook versions before and after the merge.
func versions(s *ace.State) []kind.Item {
	if s.Delta.PlaybookBefore == "" && s.Delta.PlaybookAfter == "" {
		return nil
	}
	i := kind.Item{Fields: kind.Fields(kind.Field{Label: "before", Text: s.Delta.PlaybookBefore},
		kind.Field{Label: "after", Text: s.Delta.PlaybookAfter})}
	if s.Delta.PlaybookSeq > 0 {
		version := fmt.Sprintf("v%d of %s, %s", s.Delta.PlaybookSeq, s.Input.Branch,
			ace.Count(s.Delta.Bullets, "bullet"))
		i.Fields = append(i.Fields, kind.Field{Label: "version", Text: version})
	}
	return []kind.Item{i}
}
