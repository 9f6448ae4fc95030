package ace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Workflows and activities of other programs return values of other shapes: bare strings and lists, other
// field names, calls without an ID. The functions below read the parts that fit the contract. A workflow must
// not use them: its decisions follow [StepCompleted].

// resultNote begins a note on the whole result of a step, answerNote one on its answer.
const (
	resultNote = "result: "
	answerNote = "answer: "
)

// UnreadAnswer returns the note that says why the result of a step has no answer, or "".
func (st StepState) UnreadAnswer() string {
	for _, note := range st.Unread {
		if strings.HasPrefix(note, resultNote) || strings.HasPrefix(note, answerNote) {
			return note
		}
	}
	return ""
}

// maxUnread bounds the notes on one value.
const maxUnread = 20

// ReadStarted is [StartedFrom] for readers of histories: it also reads an input that fits only in part.
// Unread says why the payload is unreadable, if it is. The error is that of StartedFrom. A run of another
// workflow type gets its steps from its history.
func ReadStarted(data []byte, unread, workflowType string) (Fact, error) {
	f, err := StartedFrom(data)
	switch {
	case unread != "":
		f = Started(TaskInput{})
		f.Unread = []string{"input: " + unread}
	case err != nil:
		var in TaskInput
		notes := Read("input", data, &in)
		f = Started(in)
		f.Unread = notes
	}
	if f.Foreign = workflowType != TaskWorkflow; f.Foreign {
		f.Unread = nil // another workflow type need not fit
		f.Input.Observed, f.Input.Carried, f.Input.Fork = false, nil, nil
	}
	return f, err
}

// ReadStep is [StepCompleted] for readers of histories: Result holds the parts of the result that fit, and
// Unread names the other parts, or says why the payload is unreadable. A step that StepCompleted fails stays
// failed unless the run continues.
func ReadStep(step Phase, data []byte, unread string) Fact {
	f := StepCompleted(step, data)
	newResult := results[step]
	switch {
	case unread != "":
		f.Unread = []string{resultNote + unread}
	case newResult != nil && len(bytes.TrimSpace(data)) > 0:
		f.Result = newResult()
		f.Unread = Read("", data, f.Result)
	}
	return f
}

// ReadToolEvents is [ToolEventsFrom] for readers of histories: a tool event without an ID gets one from the
// ID of its history event and its position in it.
func ReadToolEvents(data []byte, event int64) Fact {
	f := ToolEventsFrom(data)
	if f.Unreadable > 0 {
		f.Unread = []string{"the argument of a signal " + SignalToolEvent + " does not fit the contract"}
	}
	for i := range f.Events {
		if e := &f.Events[i]; e.EventID == "" {
			e.EventID = fmt.Sprintf("#%d.%d", event, i+1)
		}
	}
	return f
}

// Read decodes the parts of JSON that fit a value of the contract, and returns notes on the parts that do not
// fit. A note starts with the path of the part; root is the path of the whole, "" for the result of a step.
func Read(root string, data []byte, into any) (unread []string) {
	r := reader{root: root}
	if json.Valid(data) {
		r.value(root, data, reflect.ValueOf(into).Elem())
	} else {
		r.note(root, "invalid JSON")
	}
	if r.more > 0 {
		r.unread = append(r.unread, fmt.Sprintf("and %d more", r.more))
	}
	return r.unread
}

// reader collects notes on the parts that do not fit. A path is that of the JSON, as in "invocations[2].at".
type reader struct {
	root   string
	unread []string
	more   int
}

func (r *reader) note(at, format string, args ...any) {
	if len(r.unread) == maxUnread {
		r.more++
		return
	}
	text := fmt.Sprintf(format, args...)
	if at == "" {
		r.unread = append(r.unread, resultNote+text)
		return
	}
	r.unread = append(r.unread, strings.TrimPrefix(at, ".")+": "+text)
}

// value sets v, which is zero, and reports whether it fits at least in part.
func (r *reader) value(at string, data json.RawMessage, v reflect.Value) bool {
	_, decodes := v.Addr().Interface().(json.Unmarshaler)
	switch kind := v.Kind(); {
	case string(bytes.TrimSpace(data)) == "null":
		return false
	case decodes:
	case kind == reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		if !r.value(at, data, p.Elem()) {
			return false
		}
		v.Set(p)
		return true
	case kind == reflect.Struct:
		return r.object(at, data, v)
	case kind == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		return r.list(at, data, v)
	}
	decoded := reflect.New(v.Type())
	if json.Unmarshal(data, decoded.Interface()) != nil {
		if given, want := kindOf(data), wanted(v); given == want {
			r.note(at, "%s that does not fit the contract", given)
		} else {
			r.note(at, "%s instead of %s", given, want)
		}
		return false
	}
	v.Set(decoded.Elem())
	return true
}

func (r *reader) list(at string, data json.RawMessage, v reflect.Value) bool {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) != nil {
		r.note(at, "%s instead of a list", kindOf(data))
		return false
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, len(list)))
	for i, raw := range list {
		item := reflect.New(v.Type().Elem()).Elem()
		if r.value(fmt.Sprintf("%s[%d]", at, i), raw, item) {
			v.Set(reflect.Append(v, item))
		}
	}
	return true
}

func (r *reader) object(at string, data json.RawMessage, v reflect.Value) bool {
	s := shapes[v.Type()]
	members := map[string]json.RawMessage{}
	bare := ""
	if json.Unmarshal(data, &members) != nil {
		switch bytes.TrimSpace(data)[0] {
		case '"':
			bare = s.text
		case '[':
			bare = s.list
		}
		if bare == "" {
			r.note(at, "%s instead of an object", kindOf(data))
			return false
		}
		members[bare] = data
	}
	for _, name := range s.names {
		if other, given := members[name.other]; given && members[name.own] == nil {
			members[name.own] = other
		}
	}
	if known := r.fields(at, members, v); known == 0 && len(members) > 0 && at == r.root {
		r.note(at, "an object without a field of the contract")
	}
	if s.check != nil {
		s.check(r, member{at, v.Addr().Interface(), members, bare != ""})
	}
	return true
}

// fields sets the fields of a struct and returns how many are given.
func (r *reader) fields(at string, members map[string]json.RawMessage, v reflect.Value) (known int) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			known += r.fields(at, members, v.Field(i))
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if raw, given := members[name]; given && f.IsExported() {
			known++
			r.value(at+"."+name, raw, v.Field(i))
		}
	}
	return known
}

// kindOf names the kind of a JSON value.
func kindOf(data json.RawMessage) string {
	switch c := bytes.TrimSpace(data)[0]; c {
	case '"':
		return "text"
	case '[':
		return "a list"
	case '{':
		return "an object"
	case 't', 'f':
		return "a boolean"
	}
	return "a number"
}

// wanted names the kind of JSON value that a field expects.
func wanted(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "a boolean"
	case reflect.Map:
		return "an object"
	case reflect.Struct:
		return "a time"
	case reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// shape describes the other forms of a type.
type shape struct {
	text, list string // the fields that a bare string and a bare list stand for, "" for none
	names      []fieldName
	check      func(r *reader, m member)
}

// member is a decoded object.
type member struct {
	at    string
	value any // pointer
	given map[string]json.RawMessage
	bare  bool // it was a bare string or list
}

// fieldName is another name for a field of the contract.
type fieldName struct{ other, own string }

var shapes = map[reflect.Type]shape{
	reflect.TypeFor[GeneratorResult](): {text: "plan", names: []fieldName{
		{"sampled_plan", "plan"}, {"reasoning", "plan"}, {"final_answer", "answer"}}},
	reflect.TypeFor[SkillSessionResult](): {text: "answer", list: "invocations", check: checkCalls,
		names: []fieldName{{"tool_invocations", "invocations"}, {"tool_calls", "invocations"}}},
	reflect.TypeFor[ReflectorResult](): {text: "insights", names: []fieldName{{"key_insight", "insights"}}},
	reflect.TypeFor[CuratorResult](): {text: "rationale", list: "accepted", names: []fieldName{
		{"accepted_deltas", "accepted"}, {"deltas", "accepted"}, {"operations", "accepted"},
		{"reasoning", "rationale"}}},
	reflect.TypeFor[PersistResult](): {text: "playbook_after", list: "operations", check: checkHash,
		names: []fieldName{{"playbook_hash", "playbook_after"}}},
	reflect.TypeFor[Invocation]():  {text: "name", names: []fieldName{{"input", "args"}}, check: checkCall},
	reflect.TypeFor[Operation]():   {text: "content", names: []fieldName{{"skill_id", "bullet_id"}}},
	reflect.TypeFor[PhaseAnswer](): {text: "phase"},
	reflect.TypeFor[SkillAnswer](): {list: "skills"},
	reflect.TypeFor[SkillUsage]():  {text: "name"},
	reflect.TypeFor[DeltaAnswer](): {list: "operations", names: []fieldName{
		{"accepted_deltas", "operations"}, {"deltas", "operations"}}},
}

// checkCall sets omitted fields: a call was accepted, and it succeeded unless it reports an error.
func checkCall(_ *reader, m member) {
	call := m.value.(*Invocation)
	if m.given["accepted"] == nil {
		call.Accepted = true
	}
	if m.given["ok"] == nil {
		call.OK = call.Accepted && call.Error == ""
	}
}

// checkCalls gives an ID to every call without a unique ID, so that no two calls are taken for one.
func checkCalls(r *reader, m member) {
	calls := m.value.(*SkillSessionResult).Invocations
	taken, seen := map[string]bool{}, map[string]bool{}
	for _, c := range calls {
		taken[c.ID] = true
	}
	numbered := 0
	for i := range calls {
		id := calls[i].ID
		if id == "" || seen[id] {
			id = fmt.Sprintf("#%d", i+1)
			for taken[id] {
				id = "#" + id
			}
			taken[id] = true
			numbered++
		}
		seen[id] = true
		calls[i].ID = id
	}
	if numbered > 0 {
		r.note(m.at+".invocations", "%d of %d have no unique ID and are numbered by position",
			numbered, len(calls))
	}
}

// checkHash drops a bare string that is not a hash.
func checkHash(r *reader, m member) {
	if p := m.value.(*PersistResult); m.bare && p.PlaybookAfter != "" && !isHash(p.PlaybookAfter) {
		r.note(m.at, "the text %q is not the hash of a playbook", Cut(p.PlaybookAfter, PreviewBytes))
		p.PlaybookAfter = ""
	}
}

// isHash reports whether text is a SHA-256 in hexadecimal.
func isHash(text string) bool {
	return len(text) == 64 && strings.Trim(strings.ToLower(text), "0123456789abcdef") == ""
}
