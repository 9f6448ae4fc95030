//go:build agents

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"

	"acescope/engine/learning/model/llm/llmtest"
)

// realAgents are the agents that docs/dev/agents.sh installs, each in its directory, with the flags that let
// a session change files, and with a shell command that asks the agent once.
var realAgents = []struct{ dir, agent, flags, ask string }{
	{"claude-new", "claude", "--rule=Bash=allow", askClaude},
	{"claude-old", "claude", "--rule=Bash=allow", askClaude},
	{"codex", "codex", "--permission-mode=acceptEdits",
		`timeout 120 codex exec --skip-git-repo-check "$1" </dev/null`},
	{"gemini", "gemini", "--allow-tool=run_shell_command", `timeout 120 gemini -p "$1" </dev/null`},
	{"opencode", "opencode", "--otherwise=ask", `echo "$1" | timeout 120 opencode run`},
}

const askClaude = `timeout 120 claude -p "$1" --mcp-config .mcp.json --allowedTools mcp__acescope </dev/null`

// TestRealAgents runs the scripts of testdata/agents with the agents in $ACESCOPE_AGENTS, against a fake
// model server on this machine. Agents that are not installed are skipped.
func TestRealAgents(t *testing.T) {
	all := os.Getenv("ACESCOPE_AGENTS")
	if all == "" {
		t.Skip("no $ACESCOPE_AGENTS; run docs/dev/agents.sh")
	}
	for _, a := range realAgents {
		t.Run(a.dir, func(t *testing.T) {
			programs := filepath.Join(all, a.dir, "node_modules", ".bin")
			if _, err := os.Stat(programs); err != nil {
				t.Skip(err)
			}
			testscript.Run(t, testscript.Params{
				Dir: "testdata/agents", Cmds: scriptCommands,
				Condition: func(agent string) (bool, error) { return agent == a.agent, nil },
				Setup: func(e *testscript.Env) error {
					model := httptest.NewServer(newAgentModel(e.WorkDir))
					e.Defer(func() {
						model.CloseClientConnections() // an agent may still wait for an answer
						model.Close()
					})
					for name, value := range agentEnv(e.WorkDir, model.URL) {
						e.Setenv(name, value)
					}
					e.Setenv("AGENT", a.agent)
					e.Setenv("FLAGS", a.flags)
					e.Setenv("ASK", a.ask)
					e.Setenv("HOOK", filepath.Join(all, "acescope-hook"))
					e.Setenv("PATH", programs+string(filepath.ListSeparator)+e.Getenv("PATH"))
					return writeAgentConfigs(e.WorkDir, model.URL)
				},
			})
		})
	}
}

func agentEnv(home, url string) map[string]string {
	return map[string]string{
		"HOME": home, "XDG_DATA_HOME": home + "/data", "TERM": "dumb", "USER": "ada",
		"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "stub", "CLAUDE_CONFIG_DIR": home + "/claude",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
		"DISABLE_ERROR_REPORTING": "1", "GEMINI_API_KEY": "stub", "GOOGLE_GEMINI_BASE_URL": url,
		"GEMINI_CLI_TRUST_WORKSPACE": "true", "OPENCODE_DISABLE_MODELS_FETCH": "1",
		"OPENCODE_DISABLE_AUTOUPDATE": "1",
	}
}

func writeAgentConfigs(home, url string) error {
	files := map[string]string{
		".codex/config.toml": fmt.Sprintf(`model = "stub-model"
model_provider = "stub"
[model_providers.stub]
name = "stub"
base_url = "%s/v1"
wire_api = "responses"
http_headers = { Authorization = "Bearer stub" }
`, url),
		".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false}}`,
		".config/opencode/opencode.json": fmt.Sprintf(
			`{"model":"anthropic/claude-sonnet-4-5","autoupdate":false,
"provider":{"anthropic":{"options":{"baseURL":"%s/v1","apiKey":"stub"}}}}`, url),
	}
	for name, content := range files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// agentModel is a fake model for coding agents. It implements the Messages, Responses and Gemini APIs.
type agentModel struct {
	llm      *llmtest.Server
	log      *os.File
	hung     sync.Map // words that have made the model hang
	calls    atomic.Int64
	searched atomic.Value // the CALL for which the agent searches a deferred tool, or ""
}

func newAgentModel(dir string) *agentModel {
	log, err := os.Create(filepath.Join(dir, "model.log"))
	if err != nil {
		panic(err)
	}
	m := &agentModel{log: log}
	m.llm = llmtest.New(func(q llmtest.Request) llmtest.Reply {
		var n news
		for _, message := range q.Messages {
			if message.Role == "assistant" {
				n = news{}
				continue
			}
			n.add(message.Text, message.Results...)
		}
		a := m.answer(n, q.Tools)
		r := llmtest.Reply{Text: a.text, Hang: a.hang, In: 10, Out: 5}
		if a.tool != "" {
			r.Calls = []llmtest.Call{{ID: m.callID(), Name: a.tool, Args: a.args}}
		}
		return r
	})
	return m
}

// callID returns the id of a tool call. Agents drop results of calls with the same id.
func (m *agentModel) callID() string { return fmt.Sprintf("call_%d", m.calls.Add(1)) }

// news is what the agent has sent since the model's last answer: texts, and results of tool calls.
type news struct {
	text    string
	results []string
}

func (n *news) add(text string, results ...string) {
	n.text += text + "\n"
	n.results = append(n.results, results...)
}

// modelAnswer is a text, or a tool call. With hang, the model stops in the middle until the client
// disconnects.
type modelAnswer struct {
	text, tool, args string
	hang             bool
}

var (
	hangWord = regexp.MustCompile(`HANG-(worker|agent)`)
	callWord = regexp.MustCompile(`CALL\((\w+) (\{.*?\})\)`)
)

// answer decides on the news: RUN(command) calls the agent's shell, CALL(tool arguments) calls a tool of an
// MCP server, HANG-worker and HANG-agent hang once each. The answer to a result repeats it; everything else
// is answered with a text that all phases of an ACE run can parse.
func (m *agentModel) answer(n news, tools []string) modelAnswer {
	fmt.Fprintf(m.log, "%.500q %.500q %v\n", n.results, n.text, tools)
	if word, _ := m.searched.Swap("").(string); word != "" {
		n = news{text: word}
		tools = slices.DeleteFunc(tools, func(tool string) bool { return tool == "ToolSearch" })
	}
	if len(n.results) > 0 {
		return modelAnswer{text: "The result is: " + strings.Join(n.results, "\n")}
	}
	if word := hangWord.FindString(n.text); word != "" {
		if _, before := m.hung.LoadOrStore(word, true); !before {
			return modelAnswer{text: "Thinking about it for a long time.", hang: true}
		}
	}
	if call := callWord.FindStringSubmatch(n.text); call != nil && len(tools) > 0 {
		return m.call(call[0], call[1], call[2], tools)
	}
	if _, rest, ok := strings.Cut(n.text, "RUN("); ok {
		command, _, _ := strings.Cut(rest, ")")
		for _, tool := range tools {
			if args := shellArgs(tool, command); args != "" {
				return modelAnswer{tool: tool, args: args}
			}
		}
	}
	return modelAnswer{text: `{"reasoning": "r", "final_answer": "1", "key_insight": "none", "operations": []}`}
}

// call calls a tool by the end of its name. Claude Code may require that the model searches the tool first.
func (m *agentModel) call(word, name, args string, tools []string) modelAnswer {
	for _, tool := range tools {
		if strings.HasSuffix(tool, name) {
			return modelAnswer{tool: tool, args: args}
		}
	}
	if slices.Contains(tools, "ToolSearch") {
		m.searched.Store(word)
		return modelAnswer{tool: "ToolSearch", args: `{"query":"` + name + `","max_results":5}`}
	}
	return modelAnswer{text: "There is no such tool: " + name}
}

// shellArgs returns the arguments that run a command with an agent's shell tool, or "".
func shellArgs(tool, command string) string {
	var args any
	switch tool {
	case "Bash", "bash", "run_shell_command":
		args = map[string]string{"command": command, "description": "Run the command"}
	case "shell_command":
		args = map[string]string{"command": command}
	case "exec_command":
		args = map[string]string{"cmd": command}
	case "shell":
		args = map[string][]string{"command": {"bash", "-lc", command}}
	default:
		return ""
	}
	data, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// markWord is a word of a test's file that an agent may send along.
var markWord = regexp.MustCompile(`MARK-\w+`)

func (m *agentModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	for _, word := range markWord.FindAll(body, -1) {
		fmt.Fprintf(m.log, "sent %s\n", word)
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/count_tokens"):
		_, _ = io.WriteString(w, `{"input_tokens":10}`)
	case r.URL.Path == "/v1/responses":
		m.responses(w, r)
	case strings.Contains(r.URL.Path, "enerateContent"):
		m.gemini(w, r)
	default:
		fmt.Fprintln(m.log, r.Method, r.URL.Path)
		m.llm.Config.Handler.ServeHTTP(w, r)
	}
}

func sendEvents(w http.ResponseWriter, r *http.Request, a modelAnswer, events ...map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		if kind, ok := e["type"].(string); ok {
			fmt.Fprintf(w, "event: %s\n", kind)
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
		_ = http.NewResponseController(w).Flush()
		if a.hang {
			<-r.Context().Done()
			return
		}
	}
}

func texts(list gjson.Result) (out []string) {
	for _, text := range list.Array() {
		out = append(out, text.String())
	}
	return out
}

// responses implements OpenAI's Responses API.
func (m *agentModel) responses(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	q := gjson.ParseBytes(body)
	var n news
	for _, in := range q.Get("input").Array() {
		if in.Get("role").String() == "assistant" || in.Get("type").String() == "function_call" {
			n = news{}
		}
		n.add(strings.Join(texts(in.Get("content.#.text")), "\n"))
		if strings.HasSuffix(in.Get("type").String(), "_output") {
			n.add("", in.Get("output").String())
		}
	}
	fmt.Fprintln(m.log, q.Get("tools").Raw)
	var tools []string
	for _, tool := range q.Get("tools").Array() {
		tools = append(tools, tool.Get("name").String())
		for _, name := range texts(tool.Get("tools.#.name")) { // of a namespace
			tools = append(tools, tool.Get("name").String()+"/"+name)
		}
	}
	a := m.answer(n, tools)
	item := map[string]any{"type": "message", "id": "msg_1", "role": "assistant",
		"content": []any{map[string]any{"type": "output_text", "text": a.text, "annotations": []any{}}}}
	if a.tool != "" {
		item = map[string]any{"type": "function_call", "id": "fc_1", "name": path.Base(a.tool),
			"arguments": a.args,
			"call_id":   m.callID()}
		if space := path.Dir(a.tool); space != "." {
			item["namespace"] = space
		}
	}
	usage := map[string]any{"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
		"input_tokens_details":  map[string]any{"cached_tokens": 2},
		"output_tokens_details": map[string]any{"reasoning_tokens": 0}}
	sendEvents(w, r, a,
		map[string]any{"type": "response.created", "response": map[string]any{"id": "resp_1"}},
		map[string]any{"type": "response.output_item.done", "output_index": 0, "item": item},
		map[string]any{"type": "response.completed", "response": map[string]any{"id": "resp_1",
			"usage": usage}})
}

// gemini implements Google's generateContent and streamGenerateContent.
func (m *agentModel) gemini(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	q := gjson.ParseBytes(body)
	var n news
	for _, c := range q.Get("contents").Array() {
		if c.Get("role").String() == "model" {
			n = news{}
			continue
		}
		n.add(strings.Join(texts(c.Get("parts.#.text")), "\n"),
			texts(c.Get("parts.#.functionResponse.response"))...)
	}
	a := m.answer(n, texts(q.Get("tools.#.functionDeclarations|@flatten|#.name")))
	part := map[string]any{"text": a.text}
	if a.tool != "" {
		part = map[string]any{"functionCall": map[string]any{"name": a.tool, "args": json.RawMessage(a.args)}}
	}
	answer := map[string]any{
		"candidates": []any{map[string]any{"index": 0, "finishReason": "STOP",
			"content": map[string]any{"role": "model", "parts": []any{part}}}},
		"usageMetadata": map[string]any{"promptTokenCount": 10, "candidatesTokenCount": 5,
			"totalTokenCount": 15},
		"modelVersion": "gemini-2.5-pro",
	}
	if strings.Contains(r.URL.Path, "streamGenerateContent") {
		sendEvents(w, r, a, answer)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}
