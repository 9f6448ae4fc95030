package copies

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/transcript"
	"acescope/engine/store/artifact"
	"acescope/engine/store/bucket"
)

const session = "5e551011-0000-4000-8000-000000000001"

// machine is a machine with its logs and data directory.
type machine struct {
	logs *artifact.Logs
	dir  string
}

func newMachine(t *testing.T, url string) machine {
	t.Helper()
	b, err := bucket.Make(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	store, err := artifact.OpenShared(t.TempDir(), b)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return machine{artifact.NewLogs(dir, store), dir}
}

// copied returns the content of the copies on a machine, by file name.
func (m machine) copied(t *testing.T) map[string]string {
	t.Helper()
	if err := Mirror(t.Context(), m.logs, m.dir); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, root := range Roots(m.dir) {
		entries, err := root.Format.List(t.Context(), root.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			content, err := os.ReadFile(e.Path)
			if err != nil {
				t.Fatal(err)
			}
			if MachineOf(e.Path) == "" || e.Session != session {
				t.Errorf("%+v", e)
			}
			found[filepath.Base(e.Path)] = string(content)
		}
	}
	return found
}

func appendLines(t *testing.T, file string, lines ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, l := range lines {
		if _, err := fmt.Fprintln(f, l); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCopies copies the growing transcripts of a session, from two processes one after the other, and reads
// them on another machine after their own is gone.
func TestCopies(t *testing.T) {
	const secret = "sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	line := func(text string) string { return fmt.Sprintf(`{"type":"user","message":{"content":%q}}`, text) }
	for agent, files := range map[agentcli.CLI][]string{
		agentcli.Claude: {"projects/-home-x/" + session + ".jsonl",
			"projects/-home-x/" + session + "/subagents/agent-a1.jsonl"},
		agentcli.Codex:  {"sessions/2026/11/23/rollout-2026-11-23T01-02-03-" + session + ".jsonl"},
		agentcli.Gemini: {"tmp/0f/chats/" + session + "/sub.jsonl"},
	} {
		t.Run(string(agent), func(t *testing.T) {
			url := "file://" + t.TempDir()
			here, there := newMachine(t, url), newMachine(t, url)
			home := t.TempDir()
			environ := []string{"CLAUDE_CONFIG_DIR=" + home, "CODEX_HOME=" + home, "GEMINI_CLI_HOME=" + home}
			root := transcript.Of(agent).Root(func(name string) string { return home })
			copyNow := func(c *Copier) {
				t.Helper()
				if err := c.Copy(t.Context(), "ace-session/one", agent, environ, session); err != nil {
					t.Fatal(err)
				}
			}
			first := New(here.logs)
			copyNow(first) // the agent has written nothing yet
			want := map[string]string{}
			add := func(texts ...string) {
				t.Helper()
				for _, f := range files {
					for _, text := range texts {
						appendLines(t, filepath.Join(root, filepath.FromSlash(f)), line(text))
						want[filepath.Base(f)] += line(strings.ReplaceAll(text, secret,
							"[redacted:anthropic]")) + "\n"
					}
				}
			}
			same := func() {
				t.Helper()
				got := there.copied(t)
				for name, content := range got {
					if content != want[name] {
						t.Errorf("%s: %d bytes, want %d: %.200q", name, len(content), len(want[name]),
							content)
					}
				}
				if len(got) != len(want) {
					t.Errorf("%d copies: %v", len(got), got)
				}
			}
			add("hello", "my key is "+secret)
			copyNow(first)
			same()
			add(strings.Repeat("long ", 1<<19), "next")
			copyNow(first)
			copyNow(first)
			same()
			add("a new process")
			copyNow(New(here.logs))
			same()
			if err := os.RemoveAll(home); err != nil {
				t.Fatal(err)
			}
			there.dir = t.TempDir()
			same()
			if got := here.copied(t); len(got) != 0 {
				t.Errorf("a machine has copies of its own: %v", got)
			}
		})
	}
}

func TestForeignKeys(t *testing.T) {
	dir := t.TempDir()
	m := newMachine(t, "file://"+dir)
	for _, key := range []string{"transcripts/w/claude/other.txt/m-000000000000-1",
		"transcripts/w/none/s.jsonl/m-000000000000-1",
		"transcripts/s.jsonl/m-000000000000-1", "transcripts/w/claude/s.jsonl/half"} {
		appendLines(t, filepath.Join(dir, key), "x")
	}
	if got := m.copied(t); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if c := New(artifact.NewLogs(t.TempDir(), nil)); c != nil ||
		c.Copy(t.Context(), "w", agentcli.Claude, nil, session) != nil {
		t.Error("copies without a shared store")
	}
}
