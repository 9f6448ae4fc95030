package adapter

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/temporal/history"
	"acescope/engine/trace"
)

// Study is what adapters understand of the activities of a type in a run.
type Study struct {
	Activity  string
	Scheduled int
	Framework string // of the adapter that understood the first call; "" for none
	Chats     int    // requests to a model that are understood
	Tools     int    // calls of tools
	Tokens    int64
	Problems  []string // what is not understood, each once, up to maxProblems
	Found     []Found  // paths that look like something, if no adapter knows the type
	Proposal  *Adapter // nil if the paths do not suffice for one
}

// Found is a path whose value looks like what a key of an adapter means.
type Found struct {
	Key   string `json:"key"`
	Path  string `json:"path"`
	Value string `json:"value"` // its beginning
}

const (
	maxProblems = 3
	maxFound    = 20
	maxDepth    = 6
	maxSample   = 60
)

// Studies returns what the adapters understand of each type of activity of a run, in the order of the types'
// first events, and proposes adapters for those that none knows.
func Studies(events []*historypb.HistoryEvent) []Study {
	var f Folder
	var all []Study
	types := map[int64]int{}       // by the event that scheduled an activity
	samples := map[int][]*source{} // the first and the newest that completed, or else the first
	open := map[int64]*source{}
	for _, e := range events {
		f.Apply(e)
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			name := a.GetActivityType().GetName()
			i := slices.IndexFunc(all, func(s Study) bool { return s.Activity == name })
			if i < 0 {
				i = len(all)
				all = append(all, Study{Activity: name})
			}
			all[i].Scheduled++
			types[e.GetEventId()] = i
			of := &source{activity: name, recorded: true, inputs: a.GetInput().GetPayloads()}
			open[e.GetEventId()] = of
			if samples[i] == nil {
				samples[i] = []*source{of}
			}
		}
		if end, ok := history.EndingOf(e); ok && end.Status == history.EndCompleted {
			if of := open[end.Started]; of != nil {
				of.results = end.Result
				i := types[end.Started]
				if samples[i][0].results == nil {
					samples[i] = nil
				}
				samples[i] = append(samples[i][:min(1, len(samples[i]))], of)
				delete(open, end.Started)
			}
		}
	}
	for _, c := range f.calls {
		if i, ok := types[c.Event]; ok {
			all[i].add(c)
		}
	}
	for i := range all {
		if s := &all[i]; s.Chats+s.Tools == 0 {
			s.propose(samples[i]...)
		}
	}
	return all
}

func (s *Study) add(c *trace.Call) {
	switch {
	case c.Problem != "":
		if !slices.Contains(s.Problems, c.Problem) && len(s.Problems) < maxProblems {
			s.Problems = append(s.Problems, c.Problem)
		}
		return
	case c.Operation == trace.Chat:
		s.Chats++
		s.Tokens += c.Usage.Tokens()
	default:
		s.Tools++
	}
	if s.Framework == "" {
		s.Framework = c.Framework
	}
}

// propose finds paths in the payloads of activities that look like those of a call.
func (s *Study) propose(samples ...*source) {
	for _, of := range samples {
		for n := range of.inputs {
			s.walk(fmt.Sprintf("input.%d", n), "", of.input(n).Result, 0)
		}
		s.walk("result", "", of.result().Result, 0)
	}
	a := Adapter{Framework: "our-agents", Activity: Paths{s.Activity}}
	fields := a.fields()
	for _, f := range s.Found {
		if to := fields[f.Key]; *to == nil || f.Key == "answer" {
			*to = append(*to, f.Path)
		}
	}
	switch {
	case a.Usage != nil:
		a.InputTokens, a.OutputTokens, a.CacheReadTokens, a.ReasoningTokens = nil, nil, nil, nil
	case a.InputTokens == nil || a.OutputTokens == nil:
		a.InputTokens, a.OutputTokens, a.CacheReadTokens, a.ReasoningTokens = nil, nil, nil, nil
	}
	tokens := a.Usage != nil || a.InputTokens != nil
	switch {
	case tokens || a.Messages != nil && a.Answer != nil && s.Problems == nil:
		a.Name, a.Arguments = nil, nil
	case a.Name != nil && a.Arguments != nil:
		a = Adapter{Framework: a.Framework, Activity: a.Activity, Operation: string(trace.Tool), Name: a.Name,
			Arguments: a.Arguments, Result: Paths{"result"}}
	default:
		return
	}
	if a.Check() == nil {
		s.Proposal = &a
	}
}

// fields are the paths of an adapter that are proposed, by their keys.
func (a *Adapter) fields() map[string]*Paths {
	return map[string]*Paths{"agent": &a.Agent, "model": &a.Model, "system": &a.System,
		"messages": &a.Messages, "tools": &a.Tools, "answer": &a.Answer, "usage": &a.Usage,
		"input_tokens": &a.InputTokens, "output_tokens": &a.OutputTokens,
		"cache_read_tokens": &a.CacheReadTokens, "reasoning_tokens": &a.ReasoningTokens,
		"name": &a.Name, "arguments": &a.Arguments}
}

// TOML returns the adapter as a table of the configuration, without what is empty.
func (a *Adapter) TOML() string {
	var b strings.Builder
	line := func(key, value string) {
		quoted, _ := json.Marshal(value) // a text; TOML knows the escapes of JSON
		fmt.Fprintf(&b, "%s = %s\n", key, quoted)
	}
	b.WriteString("[[adapters]]\n")
	line("framework", a.Framework)
	line("activity", a.Activity[0])
	if a.Operation != string(trace.Chat) {
		line("operation", a.Operation)
	}
	fields := a.fields()
	fields["result"] = &a.Result
	for _, key := range []string{"agent", "model", "system", "messages", "tools", "answer", "usage",
		"input_tokens", "cache_read_tokens", "output_tokens", "reasoning_tokens", "name", "arguments", "result"} {
		switch paths := *fields[key]; len(paths) {
		case 0:
		case 1:
			line(key, paths[0])
		default:
			quoted, _ := json.Marshal(paths) // texts
			fmt.Fprintf(&b, "%s = %s\n", key, quoted)
		}
	}
	return b.String()
}

// With calls fn while the adapters come before those in use.
func With(adapters []Adapter, fn func()) {
	before := current.Load()
	defer current.Store(before)
	Use(slices.Concat(adapters, before.users), before.prices)
	fn()
}

// walk finds the paths below a value. The key is that of the value in its object, "" at the top.
func (s *Study) walk(path, key string, v gjson.Result, depth int) {
	if depth > maxDepth || len(s.Found) >= maxFound || strings.HasSuffix(plain(key), "headers") {
		return
	}
	k := looksLike(path, key, v)
	if k == "tools" {
		first := gjson.Parse(v.Raw)
		for _, name := range []string{"name", "function.name"} {
			if first.Get("0."+name).Type == gjson.String {
				path += ".#." + name
				break
			}
		}
	}
	if k != "" {
		if !slices.ContainsFunc(s.Found, func(f Found) bool { return f.Path == path }) {
			s.Found = append(s.Found, Found{k, path, sample(v)})
		}
		return
	}
	if v.IsObject() {
		for _, m := range members(v) {
			s.walk(path+"."+gjson.Escape(m.key), m.key, m.value, depth+1)
		}
	}
}

// looksLike returns the key of an adapter whose value a value at a path looks like, or "".
func looksLike(path, key string, v gjson.Result) string {
	key = plain(key)
	isResult := strings.HasPrefix(path, "result")
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(key, p) })
	}
	switch {
	case isResult && v.IsObject():
		if u, err := usageOf(v); err == nil && u != nil && key != "" {
			return "usage"
		}
		if has("answer", "reply", "message") && len(messages(v)) > 0 {
			return "answer"
		}
	case isResult && v.Type == gjson.Number:
		return tokenKey(strings.ToLower(path))
	case isResult && v.Type == gjson.String && has("answer", "reply", "content", "text", "output", "message",
		"completion", "response", "said"):
		return "answer"
	case isResult && v.IsArray() && has("answer", "reply", "content", "output", "message", "call") &&
		len(messages(v)) > 0:
		return "answer"
	case isResult:
		return ""
	case v.IsObject() && has("arg", "param", "input"):
		return "arguments"
	case v.IsArray() && (has("tool", "function") || v.Get("0.function.name").Exists()):
		return "tools"
	case v.IsArray() && isConversation(v):
		return "messages"
	case v.Type != gjson.String:
	case has("model", "engine", "llm"):
		return "model"
	case has("system", "instruction"):
		return "system"
	case has("agent"):
		return "agent"
	case has("prompt", "question"):
		return "messages"
	case key == "tool" || key == "toolname" || key == "function" || key == "name":
		return "name"
	}
	return ""
}

// tokenKey returns what a number at a path counts, if the path says that it counts tokens.
func tokenKey(path string) string {
	if !strings.Contains(path, "token") && !strings.Contains(path, "usage") && !strings.Contains(path, "tok") {
		return ""
	}
	name := path[strings.LastIndexByte(path, '.')+1:]
	for _, of := range []struct {
		key   string
		parts []string
	}{{"cache_read_tokens", []string{"cache"}}, {"reasoning_tokens", []string{"reason", "think", "thought"}},
		{"output_tokens", []string{"out", "completion", "generated", "written"}},
		{"input_tokens", []string{"in", "prompt", "sent", "read"}}} {
		if slices.ContainsFunc(of.parts, func(p string) bool { return strings.Contains(name, p) }) {
			return of.key
		}
	}
	return ""
}

// isConversation reports whether the elements of an array are messages: objects with a role and a content.
func isConversation(v gjson.Result) bool {
	all := elements(v)
	if len(all) == 0 {
		return false
	}
	first := objectOf(all[0])
	if first.Type == gjson.String { // LangChain4j writes a message as text
		first = objectOf(gjson.Parse(first.Str))
	}
	role := text(first, []string{"role", "type", "kind", "author", "kwargs.type"})
	return roles[strings.ToLower(role)] != "" && len(messages(first.Result)) > 0
}

// sample returns the beginning of a value.
func sample(v gjson.Result) string {
	runes := []rune(v.Raw[:min(len(v.Raw), 4*maxSample)])
	if len(runes) > maxSample {
		return string(runes[:maxSample]) + "…"
	}
	return string(runes)
}
