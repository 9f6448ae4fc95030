package agentcli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"acescope/engine/internal/process"
)

// seeds calls each for every handwritten stream.
func seeds(f *testing.F, each func(cli CLI, data []byte)) {
	f.Helper()
	for _, cli := range CLIs() {
		for _, file := range streams(f, cli) {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			each(cli, data)
		}
	}
}

// FuzzReader checks for any bytes, as the output of any CLI: reading ends, gives the same events
// however the bytes arrive, and the events are valid JSON and text. FuzzJudge covers judging,
// which costs a hundred times as much. Go minimizes each interesting input for up to a minute,
// without counting: fuzz with -fuzzminimizetime=1s.
func FuzzReader(f *testing.F) {
	seeds(f, func(cli CLI, data []byte) { f.Add(string(cli), data) })
	f.Fuzz(func(t *testing.T, cli string, data []byte) {
		whole := events(t, cli, bytes.NewReader(data))
		parts := events(t, cli, iotest.OneByteReader(bytes.NewReader(data)))
		if !bytes.Equal(whole, parts) {
			t.Errorf("at once:\n%s\nbyte by byte:\n%s", whole, parts)
		}
	})
}

// events returns the events of a stream as JSON.
func events(t *testing.T, cli string, r io.Reader) []byte {
	var out bytes.Buffer
	last := int64(0)
	err := NewReader(r, CLI(cli)).All(func(e Event) error {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
		if !utf8.ValidString(e.Text) || !utf8.ValidString(e.Name) || e.Line != 0 && e.Line < last ||
			e.Kind == "" {
			t.Errorf("%+v", e)
		}
		last = e.Line
		out.Write(line)
		return nil
	})
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return out.Bytes()
}

// FuzzValidJSON checks that validJSON accepts the same texts as encoding/json.
func FuzzValidJSON(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,-0.5e+10,true,false,null,"x"],"\u0062":{"c":{}}}`, ` {"a" : 1 , "b" : [ ] } `,
		`["\ud83d\ude00\ud800\u0041\udc00",""]`, `"a\n\t\"\\\/\b\f\r"`, `"\u12"`, `"\x"`, "\"\x01\"", `01`,
		`-`, `1.`, `1e`,
		`{"a"}`, `{"a":1,}`, `[1,]`, `[1 2]`, `{1:2}`, `tru`, `nulll`, `{`, `"`, `"\`, "\u2028", "[\v]",
		"{}x",
		`{"seven12":"seven12","eight123":"eight123","nine12345":"nine12345"}`,
		strings.Repeat("[", 9999) + "1" + strings.Repeat("]", 9999),
		strings.Repeat("[", 10000) + strings.Repeat("]", 10000), strings.Repeat("[", 10001) +
			strings.Repeat("]", 10001),
	} {
		f.Add(text)
	}
	seeds(f, func(_ CLI, data []byte) {
		for line := range bytes.Lines(data) {
			f.Add(string(line))
		}
	})
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		if got, want := validJSON(text), json.Valid([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	})
}

// FuzzJudge checks that any output and exit give exactly one class and a one-line sentence.
func FuzzJudge(f *testing.F) {
	seeds(f, func(cli CLI, data []byte) { f.Add(string(cli), data, "npm warn\nError: it failed", 1) })
	f.Add(string(Claude), []byte("{}"), "Error: it\x80failed", 1)
	f.Fuzz(func(t *testing.T, cli string, data []byte, stderr string, code int) {
		var judge Judge
		if err := NewReader(bytes.NewReader(data), CLI(cli)).All(func(e Event) error {
			judge.Add(e)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		classes := map[int]process.Class{7: "", 8: process.Killed, 9: process.TimedOut}
		exit := process.Exit{Class: process.Exited, Code: code % 256}
		if class, ok := classes[code]; ok {
			exit.Class = class
		}
		if code == -1 {
			exit.Signal = "killed"
		}
		o := judge.Outcome(exit, stderr)
		if o.Class == "" || o.OK != o.Class.OK() || strings.ContainsAny(o.Sentence, "\n\r") ||
			!utf8.ValidString(o.Sentence) {
			t.Errorf("%+v", o)
		}
	})
}

// FuzzControl checks that DecodeControl never panics and that its results are well-formed.
func FuzzControl(f *testing.F) {
	seeds(f, func(_ CLI, data []byte) {
		for line := range bytes.Lines(data) {
			if bytes.Contains(line, []byte("control_")) {
				f.Add(line)
			}
		}
	})
	f.Fuzz(func(t *testing.T, line []byte) {
		c, err := DecodeControl(line)
		if err != nil {
			return
		}
		isAnswer := bytes.Contains(line, []byte("control_response"))
		if c.ID == "" && !isAnswer {
			t.Errorf("%+v", c)
		}
	})
}

// FuzzCommand checks that no value of a call becomes a flag.
func FuzzCommand(f *testing.F) {
	f.Add("do it", "model", "id", "Bash", "prompt", `{"mcpServers":{}}`)
	f.Add("--help", "--model", "-r", "--resume=x", "-", "{")
	f.Fuzz(func(t *testing.T, instruction, model, session, tool, system, mcp string) {
		for _, cli := range CLIs() {
			adapter, err := For(cli)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []Call{
				{Instruction: instruction, Model: model},
				{Instruction: instruction, Model: model, Resume: session, AllowedTools: []string{tool}},
				{Instruction: instruction, Resume: session, SystemPrompt: system, MCPConfig: mcp},
				{Model: model, SessionID: session, Streaming: true, HostServer: tool},
				{Instruction: instruction, Resume: session},
			} {
				cmd, err := adapter.Command(c)
				if err != nil {
					var call *CallError
					if !errors.As(err, &call) || strings.ContainsAny(err.Error(), "\n") {
						t.Errorf("%T %v", err, err)
					}
					continue
				}
				checkArgv(t, cli, c, cmd)
			}
		}
	})
}

// flags lists all arguments that may begin with a dash.
var flags = map[CLI]string{
	Claude: " -p --output-format --verbose --input-format --replay-user-messages --include-partial-messages --model --session-id --resume" +
		" --permission-mode --permission-prompt-tool --allowedTools --disallowedTools --mcp-config --strict-mcp-config" +
		" --max-turns --max-budget-usd --append-system-prompt ",
	Codex:    " --json --skip-git-repo-check --color --model --sandbox --dangerously-bypass-approvals-and-sandbox - ",
	Gemini:   " --output-format --model --approval-mode --allowed-tools --resume --prompt ",
	OpenCode: " --format --model --agent --session ",
}

// checkArgv checks that every argument is a known flag or a known word.
func checkArgv(t *testing.T, cli CLI, c Call, cmd Command) {
	t.Helper()
	for _, arg := range cmd.Argv[1:] {
		name, _, _ := strings.Cut(arg, "=")
		switch {
		case strings.HasPrefix(arg, "-") && strings.Contains(flags[cli], " "+name+" "):
		case arg == "exec" || arg == "run" || arg == "resume":
		case arg == c.Resume && ValidSessionID(arg):
		default:
			t.Errorf("%s: %q in %q", cli, arg, cmd.Argv)
		}
		if strings.ContainsRune(arg, 0) {
			t.Errorf("%s: NUL byte in %q", cli, arg)
		}
	}
}
