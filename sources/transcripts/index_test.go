package transcripts

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/price"
	"acescope/engine/agents/transcript"
	"acescope/engine/agents/transcript/transcripttest"
	"acescope/engine/store/durable"
)

func claudeRoot(dir string) []Root { return []Root{{Format: transcript.Of(agentcli.Claude), Dir: dir}} }

func once(t testing.TB, o Options) ([]*Session, Progress) {
	t.Helper()
	x := New(o)
	if err := x.Once(context.Background()); err != nil {
		t.Fatal(err)
	}
	return x.Sessions()
}

func put(t testing.TB, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

// promptLine returns a prompt as a line.
func promptLine(id, session, text string, minute int) string {
	return fmt.Sprintf(`{"type":"user","uuid":%q,"sessionId":%q,"timestamp":"2026-11-20T09:%02d:00Z","cwd":"/home/user/shop","message":{"role":"user","content":%q}}`+"\n", id, session, minute, text)
}

func answerLine(id, session string, minute int) string {
	return fmt.Sprintf(`{"type":"assistant","uuid":%q,"sessionId":%q,"timestamp":"2026-11-20T09:%02d:30Z","message":{"id":"m%s","model":"claude-opus-5-5","content":[{"type":"text","text":"yes"}],"stop_reason":"end_turn","usage":{"input_tokens":1000,"output_tokens":100}}}`+"\n", id, session, minute, id)
}

func TestIndex(t *testing.T) {
	dir := t.TempDir()
	made, err := transcripttest.Write(dir, transcripttest.Options{Sessions: 20, Bytes: 3 << 20, Subagent: 4})
	if err != nil {
		t.Fatal(err)
	}
	list, p := once(t, Options{Roots: claudeRoot(dir)})
	if len(list) != 20 || p.Files != made.Files || p.Done != made.Files || p.Read != made.Bytes {
		t.Errorf("%d sessions, %+v of %+v", len(list), p, made)
	}
	var tokens int64
	calls := 0
	for i, s := range list {
		if s.ID != transcripttest.ID(i) || !s.Read {
			t.Errorf("session %d is %s", i, s.ID)
		}
		tokens += s.Totals().Tokens.Total()
		calls += s.Totals().Calls
	}
	if tokens != made.Tokens || calls != made.Calls {
		t.Errorf("%d tokens and %d calls, not %d and %d", tokens, calls, made.Tokens, made.Calls)
	}
}

func TestCache(t *testing.T) {
	dir := t.TempDir()
	cache := filepath.Join(dir, "state", "transcripts.cache")
	if _, err := transcripttest.Write(dir, transcripttest.Options{Sessions: 5, Bytes: 200_000,
		Subagent: 2}); err != nil {
		t.Fatal(err)
	}
	o := Options{Roots: claudeRoot(dir), Cache: cache}
	first, p := once(t, o)
	if p.Cached != 0 || p.Trouble != "" {
		t.Fatalf("%+v", p)
	}
	second, p := once(t, o)
	if p.Read != 0 || p.Cached != p.Files || len(second) != len(first) {
		t.Errorf("the second reads %d bytes: %+v", p.Read, p)
	}
	for i := range first {
		if first[i].Totals() != second[i].Totals() || first[i].Name() != second[i].Name() ||
			len(first[i].Agents) != len(second[i].Agents) {
			t.Errorf("%+v\nis not\n%+v", second[i], first[i])
		}
	}
	if info, err := os.Stat(cache); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("cache: %v, %v", info, err)
	}
	// Only what has grown is read again.
	f, err := os.OpenFile(first[2].Path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, promptLine("new", first[2].ID, "more", 59))
	f.Close()
	third, p := once(t, o)
	if p.Files-p.Cached != 1 || third[0].Summary.Turns == 0 {
		t.Errorf("%+v", p)
	}
	// Garbage costs no more than reading again.
	data, err := os.ReadFile(cache)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(data)
	damaged[len(data)/2] ^= 1
	for name, bad := range map[string][]byte{"damaged": damaged, "truncated": data[:len(data)/2],
		"nothing": nil,
		"noise":   []byte("\x00\x01 not a cache\n\n")} {
		put(t, cache, string(bad))
		again, p := once(t, o)
		if len(again) != len(first) || p.Done != p.Files || p.Cached != 0 {
			t.Errorf("%s: %d sessions, %+v", name, len(again), p)
		}
	}
	// Other prices, other costs.
	own, err := price.Shipped().With([]price.Price{{Models: []string{"claude-sonnet-4-5-20250929"},
		Input: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	repriced, p := once(t, Options{Roots: claudeRoot(dir), Cache: cache, Prices: own})
	if p.Cached != 0 || repriced[0].Totals().CostUSD == first[0].Totals().CostUSD {
		t.Errorf("the costs were computed with other prices: %+v", p)
	}
}

func TestForkIsCountedOnce(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "projects", "-home-user-shop")
	head := func(session string) string {
		return promptLine("u1", session, "first", 1) + answerLine("a1", session, 1)
	}
	put(t, filepath.Join(folder, "one.jsonl"), head("one")+promptLine("u2", "one", "second", 3)+
		answerLine("a2", "one", 3))
	put(t, filepath.Join(folder, "two.jsonl"), head("two")+promptLine("u9", "two", "instead", 8)+
		answerLine("a9", "two", 8))
	cache := filepath.Join(dir, "cache")
	for range 2 { // read, and from the cache
		list, _ := once(t, Options{Roots: claudeRoot(dir), Cache: cache})
		if len(list) != 2 || list[0].ID != "two" || list[0].ForkedFrom != "one" || list[0].Shared != 2 ||
			list[1].ForkedFrom != "" {
			t.Fatalf("%+v %+v", list[0], list[1])
		}
		if a, b := list[0].Totals().Tokens.Total(), list[1].Totals().Tokens.Total(); a != 1100 || b != 2200 {
			t.Errorf("%d and %d tokens", a, b)
		}
	}
}

// TestForkOfChangedOriginal checks that a fork is counted as a whole when its original is gone, and against
// the new content when its original is replaced, whether the change happens between two processes or within
// one.
func TestForkOfChangedOriginal(t *testing.T) {
	for what, change := range map[string]struct {
		content string // "" if the original is removed
		want    int64
	}{
		"replaced": {promptLine("1", "a", "hi", 1) + answerLine("9", "a", 1), 3300},
		"replaced by another conversation": {promptLine("8", "a", "other", 1) + answerLine("9", "a", 1),
			3300},
		"removed": {"", 2200},
	} {
		for _, cached := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, cached %v", what, cached), func(t *testing.T) {
				dir := t.TempDir()
				o := Options{Roots: claudeRoot(dir)}
				if cached {
					o.Cache = filepath.Join(dir, "cache")
				}
				original, fork := filepath.Join(dir, "projects", "-p", "a.jsonl"),
					filepath.Join(dir, "projects", "-p", "b.jsonl")
				shared := func(session string) string {
					return promptLine("1", session, "hi", 1) + answerLine("2", session, 1)
				}
				put(t, original, shared("a")+answerLine("3", "a", 2))
				put(t, fork, shared("b")+promptLine("4", "b", "more", 3)+answerLine("5", "b", 3))
				at := time.Now().Add(-time.Hour)
				if err := os.Chtimes(original, at, at); err != nil {
					t.Fatal(err)
				}
				x := New(o)
				if sum := sumOf(t, x); sum != 3300 {
					t.Fatalf("fork: %d tokens, not 3300", sum)
				}
				if change.content == "" {
					if err := os.Remove(original); err != nil {
						t.Fatal(err)
					}
				} else {
					put(t, original, change.content)
				}
				if cached {
					x = New(o)
				}
				if sum := sumOf(t, x); sum != change.want {
					t.Errorf("%d tokens, not %d", sum, change.want)
				}
			})
		}
	}
}

// sumOf reads all transcripts and returns the tokens of their sessions.
func sumOf(t *testing.T, x *Index) (sum int64) {
	t.Helper()
	if err := x.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, _ := x.Sessions()
	for _, s := range list {
		sum += s.Totals().Tokens.Total()
	}
	return sum
}

func TestSubagentsAreChildren(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "projects", "-p")
	call := func(id, agent string) string {
		return `{"type":"assistant","uuid":"c` + id +
			`","timestamp":"2026-11-20T09:02:00Z","message":{"id":"m` + id +
			`","content":[{"type":"tool_use","id":"` + id +
			`","name":"Agent","input":{"subagent_type":"Explore","description":"look for ` + agent + `"}}]}}
{"type":"user","uuid":"r` + id + `","timestamp":"2026-11-20T09:04:00Z","toolUseResult":{"agentId":"` + agent + `"},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `","content":"ok"}]}}
`
	}
	put(t, filepath.Join(folder, "s1.jsonl"), promptLine("u1", "s1", "go", 1)+call("t1", "aa"))
	side := func(s string) string {
		return strings.ReplaceAll(s, `"type":"user"`, `"isSidechain":true,"agentId":"x","type":"user"`)
	}
	put(t, filepath.Join(folder, "s1", "subagents", "agent-aa.jsonl"),
		side(promptLine("v1", "s1", "inside", 2))+call("t2", "bb"))
	put(t, filepath.Join(folder, "s1", "subagents", "agent-bb.jsonl"),
		side(promptLine("w1", "s1", "deeper", 3))+answerLine("w2", "s1", 3))
	put(t, filepath.Join(folder, "s1", "subagents", "agent-aa.meta.json"), "{}")
	put(t, filepath.Join(folder, "agent-old.jsonl"), side(promptLine("x1", "s1", "beside", 4))+
		answerLine("x2", "s1", 4))
	put(t, filepath.Join(folder, "s2", "subagents", "agent-cc.jsonl"),
		side(promptLine("y1", "s2", "left alone", 5)))
	put(t, filepath.Join(folder, "sessions-index.json"), "{}")
	list, _ := once(t, Options{Roots: append(claudeRoot(dir), claudeRoot(filepath.Join(dir, "nowhere"))...)})
	if len(list) != 2 || list[0].ID != "s2" || list[1].ID != "s1" || len(list[1].Agents) != 3 {
		t.Fatalf("%d: %+v", len(list), list)
	}
	s := list[1]
	got := ""
	for _, a := range s.Agents {
		got += a.ID + "<" + a.Parent + " " + a.Type + " " + a.Description + "; "
	}
	if got != "aa< Explore look for aa; bb<aa Explore look for bb; old<  ; " {
		t.Error(got)
	}
	if s.Totals().Tokens.Total() != 2200 || s.Summary.Prompt != "go" || s.Agents[0].Summary.Turns != 1 {
		t.Errorf("%+v", s.Totals())
	}
}

// running is a running index; until waits for a condition.
type running struct {
	x    *Index
	wake chan struct{}
}

func run(t *testing.T, o Options) *running {
	r := &running{wake: make(chan struct{}, 1)}
	o.Changed = func() {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
	r.x = New(o)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); r.x.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return r
}

func (r *running) until(t *testing.T, what string, ok func([]*Session, Progress) bool) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		if ok(r.x.Sessions()) {
			return
		}
		select {
		case <-r.wake:
		case <-late:
			list, p := r.x.Sessions()
			t.Fatalf("timeout waiting for %s: %d sessions, %+v", what, len(list), p)
		}
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "projects", "-home-user-shop", "one.jsonl")
	put(t, path, promptLine("u1", "one", "first", 1))
	r := run(t, Options{Roots: claudeRoot(dir)})
	r.until(t, "the first session", func(l []*Session, _ Progress) bool {
		return len(l) == 1 && l[0].Summary.Turns == 1
	})
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprint(f, answerLine("a1", "one", 1))
	r.until(t, "the added line", func(l []*Session, _ Progress) bool {
		return len(l) == 1 && !l[0].Summary.Unfinished
	})
	put(t, filepath.Join(dir, "projects", "-home-user-shop", "one", "subagents", "agent-z.jsonl"),
		promptLine("v1", "one", "inside", 2))
	r.until(t, "a subagent", func(l []*Session, _ Progress) bool {
		return len(l[0].Agents) == 1 && l[0].Agents[0].Summary.Turns == 1
	})
	put(t, filepath.Join(dir, "projects", "-other", "two.jsonl"), promptLine("w1", "two", "elsewhere", 9))
	r.until(t, "a session of a new project", func(l []*Session, _ Progress) bool {
		return len(l) == 2 && l[0].ID == "two" && l[0].Read
	})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r.until(t, "the removal of a session", func(l []*Session, _ Progress) bool {
		return l[len(l)-1].Summary.Prompt != "first"
	})
}

func TestMissingDirectory(t *testing.T) {
	list, p := once(t, Options{Roots: claudeRoot(filepath.Join(t.TempDir(), "none"))})
	if len(list) != 0 || p.Trouble != "" || p.Scanned.IsZero() {
		t.Errorf("%v %+v", list, p)
	}
	file := filepath.Join(t.TempDir(), "projects")
	put(t, file, "a file where a directory is to be")
	if _, p := once(t, Options{Roots: claudeRoot(filepath.Dir(file))}); p.Trouble == "" {
		t.Error("an unreadable directory is not reported")
	}
}

func TestStates(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		age        time.Duration
		unfinished bool
		want       State
	}{{10 * time.Second, false, Live}, {5 * time.Minute, false, Idle}, {5 * time.Minute, true, Live},
		{time.Hour, true, Idle}, {48 * time.Hour, true, Ended}} {
		s := &Session{ModTime: now.Add(-c.age)}
		s.Summary.Unfinished = c.unfinished
		if got := s.State(now); got != c.want {
			t.Errorf("%v %v: %s", c.age, c.unfinished, got)
		}
	}
}

func TestFind(t *testing.T) {
	list := []*Session{{ID: "abc1", Path: "/x/abc1.jsonl"}, {ID: "abc2"}, {ID: "abc"}}
	for name, want := range map[string]int{"abc": 1, "ab": 3, "abc2": 1, "/x/abc1.jsonl": 1, "zzz": 0} {
		if got := Find(list, name); len(got) != want {
			t.Errorf("%s: %d", name, len(got))
		}
	}
}

func TestConversation(t *testing.T) {
	data, err := os.ReadFile("../../engine/agents/transcript/testdata/session.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s.jsonl")
	put(t, path, string(data[:len(data)/2]))
	f := Follow(path)
	if !f.Read(context.Background()) || f.Read(context.Background()) {
		t.Fatal("Read reports the wrong result")
	}
	early := f.Conversation()
	put(t, path, string(data))
	if !f.Read(context.Background()) {
		t.Fatal("Read does not report the added line")
	}
	c := f.Conversation()
	var got []string
	for _, e := range c.Entries {
		line := string(e.Kind) + " " + e.Name
		if e.Kind == agentcli.KindToolUse {
			line += fmt.Sprintf(" %v %v %v %s", e.Done, e.OK, e.Denied, e.Took)
		}
		got = append(got, line)
	}
	want := "status note, status command, status note, user , thinking , text , tool_use Bash true true false 500ms, tool_use Read true true false 500ms, " +
		"tool_use Bash true false false 2s, tool_use Write true false true 1s, tool_use Agent true true false 8.5s, status compact_boundary, status compact_summary, " +
		"text , user , user , error , user , tool_use Bash false false false 0s"
	if strings.Join(got, ", ") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(got, ", "), want)
	}
	if len(early.Entries) >= len(c.Entries) || early.Entries[0] != c.Entries[0] {
		t.Error("entries that were returned have changed")
	}
	put(t, path, promptLine("u1", "s", "again", 1))
	if f.Read(context.Background()); len(f.Conversation().Entries) != 1 {
		t.Errorf("a rewritten file: %+v", f.Conversation())
	}
	os.Remove(path)
	if !f.Read(context.Background()) || f.Conversation().Err == "" {
		t.Error("a removed file is not reported")
	}
}

func TestConversationIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	var b strings.Builder
	for i := range MaxEntries + 50 {
		b.WriteString(promptLine(fmt.Sprint(i), "s", fmt.Sprint("prompt ", i), 1))
	}
	b.WriteString(promptLine("long", "s", strings.Repeat("ö", maxSpeech), 1))
	put(t, path, b.String())
	f := Follow(path)
	f.Read(context.Background())
	c := f.Conversation()
	last := c.Entries[len(c.Entries)-1]
	if len(c.Entries) != MaxEntries || c.First != 51 || c.Entries[0].Text != "prompt 51" || len(last.Text)+
		last.Cut != 2*maxSpeech || len(last.Text) > maxSpeech {
		t.Errorf("%d entries after %d, the first %q, the last %d + %d", len(c.Entries), c.First,
			c.Entries[0].Text, len(last.Text), last.Cut)
	}
}

// TestSecrets checks that neither the cache nor a conversation has the secrets of a transcript.
func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	path, cache := filepath.Join(dir, "projects", "p", "11111111-1111-4111-8111-111111111111.jsonl"),
		filepath.Join(dir, "cache")
	const secret = "sk-ant-api03-AbCdEfGhIjKlMnOp"
	put(t, path, promptLine("u1", "11111111-1111-4111-8111-111111111111", "use "+secret+
		" and password=hunter2", 1))
	list, _ := once(t, Options{Roots: claudeRoot(dir), Cache: cache})
	var c cacheFile
	err := durable.LoadCache(cache, maxCache, &c)
	if err != nil || len(c.Files) != 1 || len(list) != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	f := Follow(path)
	f.Read(t.Context())
	want := "use [redacted:anthropic] and password=[redacted:password]"
	if got := f.Conversation().Entries[0].Text; got != want || c.Files[0].Summary.Prompt != want {
		t.Errorf("conversation %q, cache %q", got, c.Files[0].Summary.Prompt)
	}
}

// TestAllAgents reads the sessions of all agents, and again from the cache; the ID of a subagent's session of
// Codex and of a chat of Gemini is only in their lines.
func TestAllAgents(t *testing.T) {
	dir := t.TempDir()
	codex, gemini := filepath.Join(dir, "codex"), filepath.Join(dir, "gemini")
	const parent, child = "01a204df-2cd9-7e51-8771-b1665bf780dd", "01a204df-2cd9-7e51-8771-b1665bf780de"
	rollout := func(id, meta string) {
		put(t, filepath.Join(codex, "sessions/2026/11/22/rollout-2026-11-22T20-07-44-"+id+".jsonl"),
			fmt.Sprintf(`{"timestamp":"2026-11-22T20:07:44Z","type":"session_meta","payload":{"id":%q,"cwd":"/home/user/shop"%s}}`, id, meta)+`
{"timestamp":"2026-11-22T20:07:45Z","type":"turn_context","payload":{"model":"gpt-6-sol"}}
{"timestamp":"2026-11-22T20:07:46Z","type":"event_msg","payload":{"type":"user_message","message":"Tidy the till"}}
{"timestamp":"2026-11-22T20:07:47Z","type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":1000,"output_tokens":100}}}}
`)
	}
	rollout(parent, "")
	rollout(child, `,"source":{"subagent":{"thread_spawn":{"parent_thread_id":"`+parent+`"}}}`)
	chat := func(name, messages string) {
		put(t, filepath.Join(gemini, "tmp/shop/chats", name),
			`{"sessionId":"2a81afd3-cb7d-43d6-99dc-ca634c212066","projectHash":"x"}`+"\n"+messages)
	}
	put(t, filepath.Join(gemini, "tmp/shop/.project_root"), "/home/user/shop\n")
	chat("session-2026-11-22T20-07-2a81afd3.jsonl",
		`{"id":"1","timestamp":"2026-11-22T20:07:50Z","type":"user","content":"Tidy the till"}
{"id":"2","timestamp":"2026-11-22T20:07:51Z","type":"gemini","content":"Done.","model":"gemini-2.5-pro","tokens":{"input":10,"output":5}}
`)
	chat("session-2026-11-22T20-09-2a81afd3.jsonl", "") // made by resuming the session
	chat("2a81afd3-cb7d-43d6-99dc-ca634c212066/sub-1.jsonl",
		`{"id":"3","timestamp":"2026-11-22T20:07:51Z","type":"gemini","content":"Done.","model":"gemini-2.5-pro","tokens":{"input":100,"output":5}}`+"\n")
	put(t, filepath.Join(dir, "opencode", "opencode.db"), "no database")
	roots, err := Roots("codex="+codex+string(filepath.ListSeparator)+"gemini="+gemini+
		string(filepath.ListSeparator)+dir+
		string(filepath.ListSeparator)+"opencode="+filepath.Join(dir, "opencode"), os.Getenv,
		func(dir string) string { return dir })
	if err != nil || len(roots) != 4 {
		t.Fatal(roots, err)
	}
	put(t, filepath.Join(dir, "projects", "-home-user-shop", "one.jsonl"),
		promptLine("u1", "one", "first", 1))
	want := []string{"gemini 2a81afd3-cb7d-43d6-99dc-ca634c212066 /home/user/shop Tidy the till: 120 tokens, 1 subagents",
		"codex " + parent + " /home/user/shop Tidy the till: 2200 tokens, 1 subagents",
		"claude one /home/user/shop first: 0 tokens, 0 subagents"}
	for range 2 {
		list, p := once(t, Options{Roots: roots, Cache: filepath.Join(dir, "cache")})
		var got []string
		for _, s := range list {
			got = append(got, fmt.Sprintf("%s %s %s %s: %d tokens, %d subagents", s.Agent, s.ID, s.Dir(),
				s.Name(), s.Totals().Tokens.Total(), len(s.Agents)))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if !strings.Contains(p.Trouble, "opencode.db: cannot read the sessions of OpenCode") {
			t.Errorf("trouble %q", p.Trouble)
		}
	}
}

func TestRoots(t *testing.T) {
	env := func(name string) string {
		return map[string]string{"CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/cl"}[name]
	}
	t.Setenv("HOME", "/h")
	for setting, want := range map[string]string{
		"":                 "/c/sessions /h/.local/share/opencode /h/.gemini/tmp /cl/projects",
		"/x:/y":            "/x/projects /y/projects /c/sessions /h/.local/share/opencode /h/.gemini/tmp",
		"codex=/x:gemini=": "/x/sessions /h/.local/share/opencode /cl/projects",
		"/a=b/c":           "/a=b/c/projects /c/sessions /h/.local/share/opencode /h/.gemini/tmp",
		"cursor=/x":        `transcripts: no agent "cursor"; use claude, codex, gemini or opencode`,
	} {
		roots, err := Roots(strings.ReplaceAll(setting, ":", string(filepath.ListSeparator)), env,
			func(dir string) string { return dir })
		var got []string
		for _, r := range roots {
			got = append(got, r.Transcripts())
		}
		if err != nil {
			got = []string{err.Error()}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, not %s", setting, strings.Join(got, " "), want)
		}
	}
}
