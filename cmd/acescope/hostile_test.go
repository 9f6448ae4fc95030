//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/term"
	"github.com/creack/pty"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/learning/model/llm/llmtest"
	"acescope/tui/text"
)

// visible is the part of hostile text that a terminal may show.
const visible = "EVIL"

// hostile is text with a color, a window title, a C1 control, characters that reorder and hide text, and
// others that move the cursor.
const hostile = visible + "\x1b[38;5;201m\x1b]0;T\x07\u009b31m\u202e\u2066\u200b\b\x7f\rX"

// torn is hostile text of programs and files, which also ends within a character.
const torn = hostile + "\xe2\x82"

// hostileCase is how TestNoCommandControlsTheTerminal runs a command.
type hostileCase struct {
	args   string // {w} is the foreign workflow, {e} is hostile text; separated by spaces
	silent bool   // the output has no foreign text
	plain  bool   // the command has no --json
}

// hostileCases are the commands with their arguments.
var hostileCases = map[string][]hostileCase{
	"list": {{args: ""}, {args: "--columns task,workflow,status", plain: true}},
	"show": {{args: "{w}"}, {args: "evil-e1-0001"}, {args: "evil-e1-0001 --calls", silent: true},
		{args: "evil-flow"}, {args: "evil-run"}, {args: "evil-run --result"}, {args: "evil", silent: true},
		{args: "evil-session"}, {args: "{e}2"}},
	"tail":   {{args: "{w}"}, {args: "evil-e1-0001"}, {args: "evil-flow"}},
	"wait":   {{args: "{w}"}, {args: "evil-run", silent: true}},
	"cancel": {{args: "{w} --yes"}},
	"signal": {{args: "{e} x null --yes"}},
	"query":  {{args: "{w} {e}"}},
	"reset":  {{args: "{e}2 --at 3 --reason {e} --yes"}},
	"review": {{args: "{e}"}},
	"logs":   {{args: "evil.log"}, {args: "{e}"}},
	"open":   {{args: "history.json"}, {args: "{e}"}},
	"web":    {{args: "{e}", silent: true}},
	"run":    {{args: "{e} --provider local"}, {args: "--provider {e} x"}},
	"triage": {{args: ""}},
	"timeline": {{args: "{w}"}, {args: "{w} --events"}, {args: "evil-e1-0001"},
		{args: "evil-session"}},
	"prompts":       {{args: "evil-e1-0001"}},
	"ask":           {{args: "evil-e1-0001 --phase curator"}},
	"adapter try":   {{args: "{w}"}},
	"replay verify": {{args: "{w}"}, {args: "history.json"}},
	"replay step":   {{args: "{w}"}, {args: "evil-e1-0001"}, {args: "history.json"}},
	"replay export": {{args: "{w}", plain: true}},
	"fork": {{args: "evil-e1-0001 --phase curator --dry-run"},
		{args: "{e} --phase curator --yes"}},
	"diff":               {{args: "evil-e1-0001 evil-e1-0002"}, {args: "{w} history.json"}},
	"lineage":            {{args: "{e}2"}, {args: "evil-e1-0001"}},
	"experiment list":    {{args: ""}},
	"experiment show":    {{args: "evil"}, {args: "{e}"}},
	"experiment compare": {{args: "evil {e}"}},
	"experiment report":  {{args: "{e} -o report.html"}},
	"eval":               {{args: "--playbook {e} --dataset tasks.jsonl"}},
	"eval show":          {{args: "{e}"}},
	"gate":               {{args: "{e}"}},
	"dataset":            {{args: "tasks.jsonl", silent: true}, {args: "{e}"}},
	"import":             {{args: "book.json --branch imported", silent: true}, {args: "{e}"}},
	"problems":           {{args: "--count 1 --seed 1", silent: true, plain: true}},
	"playbook show": {{args: "book.json"}, {args: "evil"},
		{args: "book.json --format text", plain: true}},
	"playbook log":            {{args: "evil"}},
	"playbook branches":       {{args: "", silent: true}},
	"playbook blame":          {{args: "evil"}},
	"playbook diff":           {{args: "book.json other.json"}},
	"playbook health":         {{args: "book.json", silent: true}, {args: "{e}"}},
	"playbook export":         {{args: "evil {e}.md --to agents-md"}},
	"playbook sync":           {{args: "{e}.md --to agents-md --branch evil"}},
	"playbook ablate":         {{args: "{e} --dataset tasks.jsonl"}},
	"playbook prune":          {{args: "{e} --dataset tasks.jsonl"}},
	"playbook effects":        {{args: "{e}"}},
	"phase-prompt list":       {{args: "", silent: true}},
	"phase-prompt show":       {{args: "generator/evil"}},
	"phase-prompt set":        {{args: "generator/evil {e}"}},
	"phase-prompt edit":       {{args: "generator/{e}"}},
	"phase-prompt diff":       {{args: "generator/evil generator/default"}},
	"phase-prompt log":        {{args: "generator/evil", silent: true}},
	"phase-prompt delete":     {{args: "generator/{e}"}},
	"agent list":              {{args: ""}},
	"agent show":              {{args: "evil"}},
	"agent new":               {{args: "{e} --type agent"}},
	"agent validate":          {{args: "{e}"}},
	"agent start":             {{args: "evil --parameters {}"}},
	"agent resume":            {{args: "{e} --prompt x"}},
	"flow list":               {{args: "", silent: true}},
	"flow show":               {{args: "./evil.yaml"}},
	"flow check":              {{args: "./{e}.yaml"}},
	"flow copy":               {{args: "{e}"}},
	"flow validate":           {{args: "./{e}.yaml"}},
	"flow test":               {{args: "./evil.yaml {e}"}},
	"flow run":                {{args: "./evil.yaml"}},
	"flow approve":            {{args: "{e}"}},
	"flow reject":             {{args: "{e}"}},
	"runner list":             {{args: "", silent: true}},
	"runner show":             {{args: "{e}"}},
	"runner drain":            {{args: "{e}"}},
	"session list":            {{args: ""}, {args: "--transcripts"}},
	"session show":            {{args: "evil-session"}},
	"session send":            {{args: "evil-session {e} --wait"}},
	"session receive":         {{args: "evil-session --after 0"}},
	"session approve":         {{args: "{e}"}},
	"session interrupt":       {{args: "{e}"}},
	"session stop":            {{args: "{e}"}},
	"session move":            {{args: "{e}"}},
	"session start":           {{args: "--dir {e}"}},
	"cost":                    {{args: ""}},
	"observe install":         {{args: "--hook {e}"}},
	"observe uninstall":       {{args: "--project .", silent: true}},
	"observe status":          {{args: "", silent: true}},
	"observe temporal tail":   {{args: "--task-id {w}", plain: true}},
	"observe temporal replay": {{args: "--task-id {w}"}},
	"mcp":                     {{args: "--http --token-file {e}", plain: true}},
	"store show":              {{args: "", silent: true}},
	"store gc":                {{args: "--dry-run", silent: true}},
	"store import":            {{args: "{e}"}},
	"setup":                   {{args: "--address {e}"}},
	"doctor":                  {{args: ""}},
	"config":                  {{args: ""}},
	"config keys":             {{args: "", silent: true}},
	"config themes":           {{args: "", silent: true}},
	"schema":                  {{args: "{e}", plain: true}},
	"version":                 {{args: "", silent: true}},
	"runner exec":             {{args: "", silent: true}}, // reads standard input, which is empty
}

// ownTexts are the commands that run until they are interrupted, and "demo", which opens the console.
var ownTexts = []string{"demo", "serve", "runner start"}

// TestNoCommandControlsTheTerminal fills the fields of a data directory that come from outside with text that
// controls a terminal, and runs every command on a terminal, as text and as JSON. The terminal gets the
// visible part of that text, and of the rest only acescope's own colors.
func TestNoCommandControlsTheTerminal(t *testing.T) {
	h := newHostileData(t)
	covered := map[string]bool{}
	for _, name := range ownTexts {
		covered[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(hostileCases)) {
		covered[name] = true
		for _, c := range hostileCases[name] {
			args := strings.Fields(name)
			for _, arg := range strings.Fields(c.args) {
				args = append(args, strings.NewReplacer("{w}", hostile, "{e}", hostile).Replace(arg))
			}
			shown := h.run(t, args...)
			if !c.plain {
				shown += h.run(t, append(args, "--json")...)
			}
			if strings.Contains(shown, visible) == c.silent {
				t.Errorf("%q shows foreign text: %v, want %v; the output is %q", args, c.silent, !c.silent,
					shown)
			}
		}
	}
	eachCommand(root(&cli.App{}), func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "acescope ")
		if c.Runnable() && !c.HasSubCommands() && c.Name() != "help" && !covered[name] {
			t.Errorf("acescope %s has no case", name)
		}
	})
}

// hostileData is a data directory with hostile text, a host, and what the commands need besides.
type hostileData struct{ dir string }

// ownColors matches what acescope writes to a terminal besides text: colors, and the erased line of a
// progress bar.
var ownColors = regexp.MustCompile(`\x1b\[[0-9;:]*m|\r\x1b\[K`)

// run runs a command on a terminal and returns its output without colors.
func (h hostileData) run(t *testing.T, args ...string) string {
	t.Helper()
	tty, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	if _, err := term.MakeRaw(terminal.Fd()); err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(terminal, &pty.Winsize{Cols: 180, Rows: 50}); err != nil {
		t.Fatal(err)
	}
	var wrote bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&wrote, tty) // until the other end is closed
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := &cli.App{Err: cli.NewOutput(terminal, nil), Fail: func(error) {}}
	a.Out = cli.NewOutput(terminal, &a.JSON)
	cmd := root(a)
	cmd.SetArgs(append(args, "--data-dir", h.dir))
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(a.Err, "acescope: "+cli.OneLine(cli.Advise(a, err)))
	}
	a.Close()
	if ctx.Err() != nil {
		t.Errorf("%q does not end", args)
	}
	_ = terminal.Close()
	<-read
	out := wrote.String()
	if strings.Contains(out, "\x1b[38;5;201m") {
		t.Errorf("%q sets a foreign color: %q", args, out)
	}
	out = ownColors.ReplaceAllString(out, "")
	if at := strings.IndexFunc(out, func(r rune) bool {
		return r != '\n' && r != '\t' && text.Hidden(r)
	}); at >= 0 || !utf8.ValidString(out) {
		t.Errorf("%q writes what a terminal may act on, at %d of %q", args, at, out)
	}
	return out
}

// newHostileData starts a host and fills its data directory.
func newHostileData(t *testing.T) hostileData {
	t.Helper()
	agent := agentclitest.New(t, "claude")
	work := t.TempDir()
	t.Chdir(work)
	for name, value := range map[string]string{"HOME": work, "XDG_CONFIG_HOME": work + "/config",
		"XDG_STATE_HOME": work + "/state", "XDG_DATA_HOME": work + "/data",
		"TERM": "xterm-256color", "NO_COLOR": "", "LC_ALL": "C.UTF-8", "BROWSER": "true", "STUB_KEY": "stub",
		"EDITOR":              "true",
		"ACESCOPE_AGENTS_DIR": work + "/agents", "CLAUDE_CONFIG_DIR": agent.ConfigDir(),
		"PATH": agent.Dir() + string(os.PathListSeparator) + os.Getenv("PATH")} {
		t.Setenv(name, value)
	}
	quoted := func(s string) string {
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	model := llmtest.New(func(llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: fmt.Sprintf(`{"reasoning": %[1]s, "bullet_ids": [], "final_answer": %[1]s,
			"key_insight": %[1]s, "correct": false, "bullet_tags": [], "error_identification": %[1]s,
			"operations": [{"type": "ADD", "section": %[1]s, "content": %[1]s}]}`, quoted(hostile))}
	})
	t.Cleanup(model.Close)
	book := `{"bullets":[{"id":"a-00001","section":` + quoted("EVIL\u202eS") + `,"content":` +
		quoted("EVIL\u202e\u200b") + `,"helpful":1,"harmful":0,"neutral":0}],"next_id":2}`
	program := "printf '" // with octal numbers, because flows reject control characters
	for _, b := range []byte(torn) {
		program += fmt.Sprintf(`\%03o`, b)
	}
	program += "' | tee /dev/stderr"
	for path, content := range map[string]string{
		"config/acescope/config.toml": fmt.Sprintf(
			"[providers.local]\nbase_url = %q\nmodel = %q\napi_key_env = \"STUB_KEY\"\n",
			model.URL+"/v1", "m-EVIL\u202e"),
		"tasks.jsonl": strings.Repeat(fmt.Sprintf("{\"question\":%[1]s,\"target\":%[1]s}\n", quoted(hostile)),
			2),
		"book.json": book, "other.json": strings.ReplaceAll(book, "EVIL", "EVIL 2"),
		"prompt.md": "{{playbook}} EVIL\u202e\u200b", "evil.log": torn + "\n",
		"agents/evil/agent.json": fmt.Sprintf(
			`{"name":"evil","description":%s,"type":"deterministic","shell":true,"command":%s}`,
			quoted(hostile), quoted(program)),
		"evil.yaml": fmt.Sprintf("flow: evil\ndescription: EVIL\nsteps:\n  - {id: say, run: [sh, -c, %s]}\n"+
			"  - {id: last, fail: EVIL}\n", quoted(program)),
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := hostileData{dir: filepath.Join(work, "data", "acescope")}
	host := exec.Command("acescope", "serve", "--json", "--data-dir", h.dir)
	ready, err := host.StdoutPipe()
	if err := errors.Join(err, host.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = host.Process.Signal(os.Interrupt)
		_ = host.Wait()
	})
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	h.foreignWorkflow(t)
	h.run(t, "run", "--dataset", "tasks.jsonl", "--experiment", "evil", "--provider", "local",
		"--playbook", "book.json")
	h.run(t, "phase-prompt", "set", "generator/evil", "prompt.md")
	h.run(t, "agent", "start", "evil", "--parameters", "{}", "--run-id", "evil-run")
	h.run(t, "flow", "run", "./evil.yaml", "--id", "evil-flow")
	h.run(t, "session", "start", "--id", "evil-session", "--dir", work, "--name", hostile, "--prompt",
		hostile)
	h.run(t, "session", "send", "evil-session", hostile, "--wait")
	return h
}

// foreignWorkflow runs a workflow of another program, whose type, ID, memo, input, summary and failure are
// hostile, and saves its history.
func (h hostileData) foreignWorkflow(t *testing.T) {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Options{DataDir: h.dir, Version: cli.BuildVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	w := worker.New(e.Client, "evil", worker.Options{})
	w.RegisterWorkflowWithOptions(func(workflow.Context, string) error {
		return temporal.NewNonRetryableApplicationError(hostile, hostile, nil, hostile)
	}, workflow.RegisterOptions{Name: hostile})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	run, err := e.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: hostile,
		TaskQueue: "evil",
		Memo:      map[string]any{"note": hostile}, StaticSummary: hostile, StaticDetails: hostile}, hostile,
		hostile)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Get(t.Context(), nil); err == nil {
		t.Fatal("the workflow did not fail")
	}
	h.run(t, "replay", "export", hostile, "-o", "history.json")
}
