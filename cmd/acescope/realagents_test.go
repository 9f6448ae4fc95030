//go:build agents

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"

	"acescope/engine/learning/model/llm/llmtest"
)

// realAgents are the agents that docs/dev/agents.sh installs, each in its directory, with the flags that let a session
// change files.
var realAgents = []struct{ dir, agent, flags string }{
	{"claude-new", "claude", "--rule=Bash=allow"},
	{"claude-old", "claude", "--rule=Bash=allow"},
	{"codex", "codex", "--permission-mode=acceptEdits"},
	{"gemini", "gemini", "--allow-tool=run_shell_command"},
	{"opencode", "opencode", "--otherwise=ask"},
}

// TestRealAgents runs the scripts of testdata/agents with the agents in $ACESCOPE_AGENTS, against a fake model server on
// this machine. Agents that are not installed are skipped.
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
		"GEMINI_CLI_TRUST_WORKSPACE": "true", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
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
		".config/opencode/opencode.json": fmt.Sprintf(`{"model":"anthropic/claude-sonnet-4-5","autoupdate":false,
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
	llm   *llmtest.Server
	log   *os.File
	hung  sync.Map // words that have made the model hang
	calls atomic.Int64
}

func newAgentModel(dir string) *agentModel {
	log, err := os.Create(filepath.Join(dir, "model.log"))
	if err != nil {
		panic(err)
	}
	m := &agentModel{log: log}
	m.llm = llmtest.New(func(q llmtest.Request) llmtest.Reply {
		news, isResult := "", false // after the model's last answer
		for _, message := range q.Messages {
			if message.Role == "assistant" {
				news, isResult = "", false
				continue
			}
			news += message.Text + "\n"
			isResult = isResult || len(message.Results) > 0
		}
		a := m.answer(news, isResult, q.Tools)
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

// modelAnswer is a text, or a tool call. With hang, the model stops in the middle until the client disconnects.
type modelAnswer struct {
	text, tool, args string
	hang             bool
}

var hangWord = regexp.MustCompile(`HANG-(worker|agent)`)

// answer decides on the messages since the model's last answer: RUN(command) calls the agent's shell, HANG-worker and
// HANG-agent hang once each, everything else is answered with a text that all phases of an ACE run can parse.
func (m *agentModel) answer(news string, isResult bool, tools []string) modelAnswer {
	fmt.Fprintf(m.log, "%v %.200q %.200q %v\n", isResult, news, news[max(0, len(news)-200):], tools)
	if isResult {
		return modelAnswer{text: "The command has run."}
	}
	if word := hangWord.FindString(news); word != "" {
		if _, before := m.hung.LoadOrStore(word, true); !before {
			return modelAnswer{text: "Thinking about it for a long time.", hang: true}
		}
	}
	if _, rest, ok := strings.Cut(news, "RUN("); ok {
		command, _, _ := strings.Cut(rest, ")")
		for _, tool := range tools {
			if args := shellArgs(tool, command); args != "" {
				return modelAnswer{tool: tool, args: args}
			}
		}
	}
	return modelAnswer{text: `{"reasoning": "r", "final_answer": "1", "key_insight": "none", "operations": []}`}
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

func (m *agentModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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

func names(list gjson.Result) (out []string) {
	for _, name := range list.Array() {
		out = append(out, name.String())
	}
	return out
}

// responses implements OpenAI's Responses API.
func (m *agentModel) responses(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	q := gjson.ParseBytes(body)
	news, isResult := "", false
	for _, in := range q.Get("input").Array() {
		if in.Get("role").String() == "assistant" || in.Get("type").String() == "function_call" {
			news, isResult = "", false
		}
		news += in.Get("content.#.text").Raw + "\n"
		isResult = isResult || strings.HasSuffix(in.Get("type").String(), "_output")
	}
	a := m.answer(news, isResult, names(q.Get("tools.#.name")))
	item := map[string]any{"type": "message", "id": "msg_1", "role": "assistant",
		"content": []any{map[string]any{"type": "output_text", "text": a.text, "annotations": []any{}}}}
	if a.tool != "" {
		item = map[string]any{"type": "function_call", "id": "fc_1", "name": a.tool, "arguments": a.args,
			"call_id": m.callID()}
	}
	usage := map[string]any{"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
		"input_tokens_details":  map[string]any{"cached_tokens": 2},
		"output_tokens_details": map[string]any{"reasoning_tokens": 0}}
	sendEvents(w, r, a,
		map[string]any{"type": "response.created", "response": map[string]any{"id": "resp_1"}},
		map[string]any{"type": "response.output_item.done", "output_index": 0, "item": item},
		map[string]any{"type": "response.completed", "response": map[string]any{"id": "resp_1", "usage": usage}})
}

// gemini implements Google's generateContent and streamGenerateContent.
func (m *agentModel) gemini(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	q := gjson.ParseBytes(body)
	news, isResult := "", false
	for _, c := range q.Get("contents").Array() {
		if c.Get("role").String() == "model" {
			news, isResult = "", false
			continue
		}
		news += c.Get("parts.#.text").Raw + "\n"
		isResult = isResult || c.Get("parts.#.functionResponse|0").Exists()
	}
	a := m.answer(news, isResult, names(q.Get("tools.#.functionDeclarations|@flatten|#.name")))
	part := map[string]any{"text": a.text}
	if a.tool != "" {
		part = map[string]any{"functionCall": map[string]any{"name": a.tool, "args": json.RawMessage(a.args)}}
	}
	answer := map[string]any{
		"candidates": []any{map[string]any{"index": 0, "finishReason": "STOP",
			"content": map[string]any{"role": "model", "parts": []any{part}}}},
		"usageMetadata": map[string]any{"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
		"modelVersion":  "gemini-2.5-pro",
	}
	if strings.Contains(r.URL.Path, "streamGenerateContent") {
		sendEvents(w, r, a, answer)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}
