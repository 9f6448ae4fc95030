package transcript

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/price"
)

// formatRoot returns a directory with recorded transcripts of an agent.
func formatRoot(t testing.TB, agent agentcli.CLI) string {
	t.Helper()
	if agent != agentcli.OpenCode {
		return filepath.Join("testdata", string(agent))
	}
	return filepath.Dir(makeDatabase(t, t.TempDir(), "testdata/opencode.sql"))
}

func makeDatabase(t testing.TB, dir, script string) string {
	t.Helper()
	path := filepath.Join(dir, "opencode.db")
	db := openForTest(t, path)
	data, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(string(data)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func openForTest(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func foldOf(t testing.TB, f Format, path string) Summary {
	t.Helper()
	fold := f.Fold(price.Shipped())
	p, err := f.Open(path).Read(context.Background(), 0, nil, func(raw []byte, _ int64) { fold.Add(raw) })
	if err != nil {
		t.Fatal(err)
	}
	fold.Oversize(p.Oversized)
	return fold.Summary()
}

func brief(s Summary) string {
	t := s.Tokens
	return fmt.Sprintf("%s %s %q %s %s: %d turns, %d messages, %d+%d+%d+%d tokens, $%.6f, %d calls, %d failed, %d denied, "+
		"%d copied, %d bad, %t", s.SessionID[:min(len(s.SessionID), 16)], s.WorkDir, s.Prompt, s.Model,
		s.Version, s.Turns, s.Messages,
		t.Input, t.CacheRead, t.CacheWrite(), t.Output, s.CostUSD, s.Calls, s.Failed, s.Denied, s.Repeated,
		s.Unknown+s.Unreadable+s.Odd, s.Unfinished)
}

// TestFormats reads what Codex 0.63, 0.98 and 0.169, Gemini CLI 0.20 and 0.61, and OpenCode 1.18 wrote.
func TestFormats(t *testing.T) {
	want := map[agentcli.CLI][]string{
		agentcli.Codex: {
			`01a204df-2cd9-7e /home/user/shop "Tidy the till" gpt-5.6-sol 0.169.0: 2 turns, 6 messages, 32+8+0+20 tokens, $0.000531, 2 calls, 1 failed, 0 denied, 0 copied, 0 bad, false`,
			`01a204e0-666d-74 /home/user/shop "a fork" gpt-5.6-sol 0.169.0: 1 turns, 2 messages, 8+2+0+5 tokens, $0.000133, 0 calls, 0 failed, 0 denied, 0 copied, 0 bad, false`,
			`01a204e1-4ab2-7b /home/user/shop "Now the price" gpt-5.6-sol 0.63.0: 1 turns, 3 messages, 16+4+0+10 tokens, $0.000266, 1 calls, 1 failed, 0 denied, 0 copied, 0 bad, false`,
			`01a204e4-91ca-7c /home/user/shop "Now the price" gpt-5.6-sol 0.98.0: 1 turns, 3 messages, 16+4+0+10 tokens, $0.000266, 1 calls, 1 failed, 0 denied, 0 copied, 0 bad, false`,
			`01a204e4-a79c-7f /home/user/shop "Now the price" gpt-5.6-sol 0.98.0: 1 turns, 2 messages, 8+2+0+5 tokens, $0.000133, 0 calls, 0 failed, 0 denied, 19 copied, 0 bad, false`,
		},
		agentcli.Gemini: {
			`2a81afd3-cb7d-43  ""  : 0 turns, 0 messages, 0+0+0+0 tokens, $0.000000, 0 calls, 0 failed, 0 denied, 0 copied, 0 bad, false`,
			`2a81afd3-cb7d-43  "Tidy the till" gemini-3.1-pro-preview : 2 turns, 6 messages, 40+0+0+20 tokens, $0.000320, 2 calls, 1 failed, 0 denied, 0 copied, 0 bad, false`,
			`63a3f757-c1f3-43  "Now the price" gemini-2.5-pro : 1 turns, 3 messages, 20+0+0+10 tokens, $0.000125, 1 calls, 1 failed, 0 denied, 0 copied, 0 bad, false`,
		},
		agentcli.OpenCode: {
			`ses_dfb1f6d14ffe /home/user/shop "\"Now the price\"" claude-sonnet-4-5 1.18.33: 1 turns, 2 messages, 10+0+0+5 tokens, $0.000105, 1 calls, 0 failed, 1 denied, 11 copied, 0 bad, false`,
			`ses_dfb20a29dffe /home/user/shop "\"Tidy the till\"" claude-sonnet-4-5 1.18.33: 2 turns, 5 messages, 30+0+0+15 tokens, $0.000315, 1 calls, 0 failed, 0 denied, 0 copied, 0 bad, false`,
		},
	}
	for agent, want := range want {
		f := Of(agent)
		root := formatRoot(t, agent)
		entries, err := f.List(context.Background(), root)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, brief(foldOf(t, f, e.Path)))
			if FormatOf(e.Path) != f {
				t.Errorf("%s has the format of another agent", e.Path)
			}
			if again, err := f.Stat(context.Background(), e.Path); err != nil || len(again) != 1 ||
				again[0].Size != e.Size ||
				!again[0].ModTime.Equal(e.ModTime) || again[0].Session != e.Session {
				t.Errorf("Stat %s: %+v, %v, not %+v", e.Path, again, err, e)
			}
			if agent == agentcli.Gemini && strings.Contains(e.Path, "shop") &&
				e.WorkDir != "/home/user/shop" {
				t.Errorf("%s is in %q", e.Path, e.WorkDir)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", agent, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func told(e agentcli.Event) string {
	out := string(e.Kind) + " " + e.Name + e.Text
	if e.Tool != nil {
		out += e.Tool.Name + string(e.Tool.Args) + e.Tool.ResultText()
		if e.Kind == agentcli.KindToolResult && !e.Tool.OK {
			out += fmt.Sprintf(" failed, denied %t", e.Tool.Denied)
		}
	}
	return strings.Join(strings.Fields(out), " ")
}

func TestFormatEvents(t *testing.T) {
	for _, c := range []struct {
		agent      agentcli.CLI
		path, want string
	}{
		{agentcli.Codex, "testdata/codex/archived_sessions/rollout-2026-11-22T20-10-03-01a204e1-4ab2-7bc1-a970-bc01c06f15e5.jsonl",
			`user Now the price
tool_use shell{"command":["bash","-lc","go test ./till"]}
tool_result cat: /nonexistent: No such file or directory failed, denied false
text The command has run.`},
		{agentcli.Codex, "testdata/codex/sessions/2026/11/22/rollout-2026-11-22T20-09-05-01a204e0-666d-7431-a546-ce10fcd27d94.jsonl",
			`user a fork
text {"reasoning": "r", "final_answer": "1", "key_insight": "none", "operations": []}`},
		{agentcli.Gemini, "testdata/gemini/tmp/shop/chats/session-2026-11-22T20-07-2a81afd3.jsonl",
			`status note<session_context> This is the Gemini CLI. We are setting up …
user Tidy the till
tool_use run_shell_command{"command":"ls till","description":"Run the command"}
tool_result <untrusted_context> Output: (empty) Process Group PGID: 13611 </untrusted_context>
text The command has run.
user Now the price
tool_use run_shell_command{"command":"go test ./till","description":"Run the command"}
tool_result <untrusted_context> Output: cat: /nonexistent: No such file or directory Exit Code: 1 Process Group PGID: 15105 </untrusted_context> failed, denied false
text The command has run.`},
		{agentcli.Gemini, "testdata/gemini/tmp/5ac1e310/chats/session-2026-11-22T20-10-63a3f757.json",
			`user Now the price
tool_use run_shell_command{"command":"go test ./till","description":"Run the command"}
tool_result Command rejected because it could not be parsed safely failed, denied false
text The command has run.`},
		{agentcli.OpenCode, "ses_dfb1f6d14ffetdcLmjVjUm0798", `user "Tidy the till"
tool_use bash{"command":"ls till","description":"Run the command"}
tool_result (no output)
text It is tidy.
user "Now the price"
tool_use bash{"command":"cat /price","description":"Run the command"}
tool_result The user rejected permission to use this specific tool call. failed, denied true`},
	} {
		f := Of(c.agent)
		path := c.path
		if c.agent == agentcli.OpenCode {
			path = filepath.Join(formatRoot(t, c.agent), "opencode.db", path)
		}
		var got []string
		events := f.Events()
		_, err := f.Open(path).Read(context.Background(), 0, nil, func(raw []byte, _ int64) {
			for _, e := range events(raw) {
				if e.Kind != agentcli.KindOther {
					got = append(got, told(e))
				}
			}
		})
		if got := strings.Join(got, "\n"); err != nil || got != c.want {
			t.Errorf("%s: %v\ngot\n%s\nwant\n%s", c.path, err, got, c.want)
		}
	}
}

// folded adds lines to a fold of an agent.
func folded(agent agentcli.CLI, lines ...string) Summary {
	f := Of(agent).Fold(price.Shipped())
	for _, l := range lines {
		f.Add([]byte(l))
	}
	return f.Summary()
}

func TestCodexUsage(t *testing.T) {
	context := `{"type":"turn_context","timestamp":"2026-10-01T10:00:00Z","payload":{"model":"gpt-6-sol"}}`
	count := func(total, last string) string {
		info := `"total_token_usage":{` + total + `}`
		if last != "" {
			info += `,"last_token_usage":{` + last + `}`
		}
		return `{"type":"event_msg","timestamp":"2026-10-01T10:00:01Z","payload":{"type":"token_count","info":{` + info + `}}}`
	}
	first := `"input_tokens":1000,"cached_input_tokens":600,"cache_write_input_tokens":100,"output_tokens":50,"reasoning_output_tokens":40,"total_tokens":1050`
	second := `"input_tokens":3000,"cached_input_tokens":1600,"cache_write_input_tokens":100,"output_tokens":80,"total_tokens":3080`
	want := Tokens{Input: 1300, CacheRead: 1600, CacheWrite5m: 100, Output: 80}
	for name, lines := range map[string][]string{
		"with last": {context, count(first, first),
			count(second, `"input_tokens":2000,"cached_input_tokens":1000,"output_tokens":30,"total_tokens":2030`)},
		"repeated": {context, count(first, first), count(first, first),
			count(second, `"input_tokens":2000,"cached_input_tokens":1000,"output_tokens":30`)},
		"only totals": {context, count(first, ""), count(second, ""), count(second, "")},
		"only limits too": {context, count(first, first),
			`{"type":"event_msg","payload":{"type":"token_count","info":null}}`, count(second, "")},
	} {
		s := folded(agentcli.Codex, lines...)
		if usd := (1300*2 + 1600*0.2 + 100*2.5 + 80*10) / 1e6; s.Tokens != want || s.CostUSD-usd > 1e-12 ||
			usd-s.CostUSD > 1e-12 {
			t.Errorf("%s: %+v, $%v", name, s.Tokens, s.CostUSD)
		}
	}
	if s := folded(agentcli.Codex, count(first, first)); s.Unpriced != 1050 || s.CostUSD != 0 {
		t.Errorf("without a model: %+v", s.Totals)
	}
}

func TestCodexSubagent(t *testing.T) {
	s := folded(agentcli.Codex,
		`{"type":"session_meta","payload":{"id":"child","forked_from_id":"parent","source":{"subagent":{"thread_spawn":{"parent_thread_id":"parent","depth":1}}}}}`)
	if s.AgentID != "child" || s.Parent != "parent" || s.Origin != "" {
		t.Errorf("%+v", s)
	}
	s = folded(agentcli.Codex,
		`{"type":"response_item","payload":{"type":"function_call","name":"spawn_agent","call_id":"c","arguments":"{\"message\":\"Find callers\",\"agent_type\":\"explorer\"}"}}`,
		`{"type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"{\"agent_id\":\"child\"}"}}`,
		`{"type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","call_id":"p","input":"*** Begin Patch"}}`,
		`{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"FileChange","id":"p","status":"declined"}}}`)
	if len(s.Agents) != 1 || s.Agents[0] != (AgentCall{"c", "child", "explorer", "Find callers", true}) ||
		s.Calls != 2 || s.Denied != 1 {
		t.Errorf("%+v %+v", s.Agents, s.Totals)
	}
}

func TestGeminiUsage(t *testing.T) {
	answer := `{"id":"a","timestamp":"2026-10-01T10:00:01Z","type":"gemini","content":"x","model":"gemini-2.5-pro","tokens":{"input":1000,"output":50,"cached":600,"thoughts":30,"tool":5,"total":1085}`
	s := folded(agentcli.Gemini, answer+`}`,
		answer+`,"toolCalls":[{"id":"1","name":"write_file","status":"cancelled"},{"id":"2","name":"read_file","status":"executing"}]}`,
		`{"$set":{"messages":[`+answer+`}]}}`, `{"id":"e","type":"error","content":"quota"}`,
		`{"$rewindTo":"a"}`)
	if want := (Tokens{Input: 405, CacheRead: 600, Output: 80}); s.Tokens != want || s.Messages != 1 ||
		s.Calls != 2 || s.Denied != 1 ||
		s.Errors != 1 || s.LastError != "quota" || s.Unknown != 0 {
		t.Errorf("%+v", s)
	}
}

func TestOpenCodeUsage(t *testing.T) {
	message := func(data string) string {
		return `{"type":"message","id":"m` + data[:1] + `","data":{"role":"assistant","modelID":"house-1",` +
			data[1:] + `}}`
	}
	s := folded(agentcli.OpenCode,
		message(`1"tokens":{"input":10,"output":5,"reasoning":7,"total":122,"cache":{"read":80,"write":20}},"cost":0.5`),
		message(`2"tokens":{"input":10,"output":5,"reasoning":3,"cache":{"read":0,"write":0}},"cost":-1,"error":{"name":"APIError","data":{"message":"quota"}}`))
	if want := (Tokens{Input: 20, CacheRead: 80, CacheWrite5m: 20, Output: 17}); s.Tokens != want ||
		s.CostUSD != 0.5 || s.LastError != "quota" {
		t.Errorf("%+v", s)
	}
}

// TestOpenCodeDatabase: a database that a process writes, is damaged, locked or missing.
func TestOpenCodeDatabase(t *testing.T) {
	dir := t.TempDir()
	f := Of(agentcli.OpenCode)
	if list, err := f.List(t.Context(), filepath.Join(dir, "none")); list != nil || err != nil {
		t.Errorf("missing: %v, %v", list, err)
	}
	path := makeDatabase(t, dir, "testdata/opencode.sql")
	list, err := f.List(t.Context(), dir)
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("reading has made files: %v, %v", files, err)
	}
	if _, err := f.Stat(t.Context(), filepath.Join(path, "ses_none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing session: %v", err)
	}

	db := openForTest(t, path)
	exec := func(statement string) {
		t.Helper()
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	exec("PRAGMA journal_mode = wal")
	exec("BEGIN IMMEDIATE")
	exec("INSERT INTO session SELECT 'ses_sub', project_id, workspace_id, 'ses_dfb20a29dffeOUupY7REE0Am8s', slug, directory, path, title, " +
		"version, NULL, 0, 0, 0, NULL, NULL, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 1, 2, NULL, NULL FROM session LIMIT 1")
	if list, err := f.List(t.Context(), dir); err != nil || len(list) != 2 {
		t.Errorf("while a process writes: %v, %v", list, err)
	}
	exec("COMMIT")
	list, err = f.List(t.Context(), dir)
	sub := slices.IndexFunc(list, func(e Entry) bool { return e.Agent == "ses_sub" })
	if err != nil || sub < 0 || list[sub].Session != "ses_dfb20a29dffeOUupY7REE0Am8s" ||
		!list[sub].ModTime.Equal(time.UnixMilli(2)) {
		t.Errorf("subagent: %v, %v", list, err)
	}
	exec("PRAGMA journal_mode = delete")
	exec("BEGIN EXCLUSIVE")
	db.Exec("UPDATE session SET title = 'x'")
	if _, err := openAndList(t, dir); err != nil && !strings.Contains(err.Error(), "opencode.db") {
		t.Errorf("locked: %v", err)
	}
	exec("ROLLBACK")
	db.Close()

	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{"damaged": append(slices.Clone(data[:5000]),
		make([]byte, 9000)...), "cut": data[:700],
		"text": []byte("no database"), "other": nil} {
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if list, err := f.List(t.Context(), dir); err == nil ||
			!strings.Contains(err.Error(), "cannot read the sessions of OpenCode") {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
}

func openAndList(t *testing.T, dir string) ([]Entry, error) {
	return Of(agentcli.OpenCode).List(t.Context(), dir)
}

// TestOpenCodeFiles reads the files that OpenCode wrote before it had a database.
func TestOpenCodeFiles(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{
		"session/p/ses_1.json":      `{"id":"ses_1","version":"0.5.1","directory":"/home/user/shop","title":"Till work","time":{"created":1760000000000,"updated":1760000009000}}`,
		"message/ses_1/msg_1.json":  `{"id":"msg_1","role":"user","sessionID":"ses_1","time":{"created":1760000001000}}`,
		"part/msg_1/prt_1.json":     `{"id":"prt_1","messageID":"msg_1","type":"text","text":"Tidy the till"}`,
		"message/ses_1/msg_2.json":  `{"id":"msg_2","role":"assistant","modelID":"claude-sonnet-4-5","cost":0,"tokens":{"input":100,"output":10,"reasoning":0,"cache":{"read":0,"write":0}},"time":{"created":1760000002000,"completed":1760000003000},"finish":"stop"}`,
		"part/msg_2/prt_2.json":     `{"id":"prt_2","messageID":"msg_2","type":"text","text":"It is tidy."}`,
		"message/ses_1/other.txt":   "x",
		"session/p/ses_broken.json": `{`,
	} {
		path := filepath.Join(dir, "storage", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := Of(agentcli.OpenCode)
	list, err := f.List(t.Context(), dir)
	if err != nil || len(list) != 2 || list[0].Session != "ses_1" || FormatOf(list[0].Path) != f {
		t.Fatalf("%+v, %v", list, err)
	}
	want := `ses_1 /home/user/shop "Tidy the till" claude-sonnet-4-5 0.5.1: 1 turns, 2 messages, 100+0+0+10 tokens, $0.000450, 0 calls, 0 failed, 0 denied, 0 copied, 0 bad, false`
	if got := brief(foldOf(t, f, list[0].Path)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFormatRoots(t *testing.T) {
	env := map[string]string{"CODEX_HOME": "/c", "GEMINI_CLI_HOME": "/g", "XDG_DATA_HOME": "/x",
		"CLAUDE_CONFIG_DIR": "/cl"}
	t.Setenv("HOME", "/home/ann")
	for agent, want := range map[agentcli.CLI][2]string{
		agentcli.Codex: {"/c", "/home/ann/.codex"}, agentcli.Gemini: {"/g/.gemini", "/home/ann/.gemini"},
		agentcli.OpenCode: {"/x/opencode", "/home/ann/.local/share/opencode"},
		agentcli.Claude:   {"/cl", "/home/ann/.claude"},
	} {
		f := Of(agent)
		got := [2]string{f.Root(func(name string) string { return env[name] }),
			f.Root(func(string) string { return "" })}
		if got != want {
			t.Errorf("%s: %q, not %q", agent, got, want)
		}
	}
}
