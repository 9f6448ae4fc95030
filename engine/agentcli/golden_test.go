package agentcli

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// streams are the made-up streams of a CLI.
func streams(t testing.TB, cli CLI) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", string(cli), "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no streams of %s: %v", cli, err)
	}
	return files
}

// read is what comes of a stream: an event a line, and the outcome.
func read(t testing.TB, cli CLI, r *Reader) []byte {
	t.Helper()
	var out bytes.Buffer
	var judge Judge
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := r.All(func(e Event) error {
		judge.Add(e)
		return enc.Encode(e)
	})
	if err != nil {
		t.Fatal(err)
	}
	enc.SetIndent("", "  ")
	if err := enc.Encode(judge.Outcome(Exit{}, "")); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestStreams reads made-up streams of every row of what is known of the CLIs: at once, byte
// by byte, and with what is read from changed behind the reader's back.
func TestStreams(t *testing.T) {
	for _, cli := range CLIs() {
		for _, file := range streams(t, cli) {
			t.Run(strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".jsonl"), func(t *testing.T) {
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				got := read(t, cli, NewReader(bytes.NewReader(data), cli))
				golden := strings.TrimSuffix(file, ".jsonl") + ".golden"
				if *update {
					if err := os.WriteFile(golden, got, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("read:\n%s\nwant:\n%s", got, want)
				}
				if slow := read(t, cli, NewReader(iotest.OneByteReader(bytes.NewReader(data)), cli)); !bytes.Equal(slow, want) {
					t.Errorf("byte by byte:\n%s\nwant:\n%s", slow, want)
				}
			})
		}
	}
}

// TestEventsAreTheirOwn holds that no event is a part of the line it was read from.
func TestEventsAreTheirOwn(t *testing.T) {
	for _, cli := range CLIs() {
		for _, file := range streams(t, cli) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := NewParser(cli)
			lines := NewLineReader(bytes.NewReader(data))
			for {
				line, err := lines.Next()
				if err != nil {
					break
				}
				events := append([]Event{}, p.Line(line.Bytes)...)
				before, err := json.Marshal(events)
				if err != nil {
					t.Fatal(err)
				}
				for i := range line.Bytes {
					line.Bytes[i] = 'X'
				}
				if after, err := json.Marshal(events); err != nil || !bytes.Equal(before, after) {
					t.Fatalf("%s line %d changed with its line:\n%s\n%s", file, line.Number, before, after)
				}
			}
		}
	}
}

// recordings are streams of the real CLIs, where this machine has them.
const recordings = "/work/shared/data/agent-streams"

// TestRecorded reads the streams of the real CLIs, where they are.
func TestRecorded(t *testing.T) {
	wants := map[string]Class{
		"claude/api-overloaded": ClassOverloaded, "claude/max-turns": ClassMaxTurns, "codex/failed": ClassAPIError,
		"gemini/failed": ClassAPIError, "opencode/failed": ClassAPIError,
	}
	for _, cli := range CLIs() {
		files, err := filepath.Glob(filepath.Join(recordings, string(cli), "*.jsonl"))
		if err != nil || len(files) == 0 {
			t.Skip("there are no recordings here")
		}
		for _, file := range files {
			name := string(cli) + "/" + strings.TrimSuffix(filepath.Base(file), ".jsonl")
			if name == "claude/hooks-tool-bash" {
				continue // what hooks were given, which is no stream
			}
			t.Run(name, func(t *testing.T) {
				f, err := os.Open(file)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				var judge Judge
				calls, results := map[string]bool{}, 0
				err = NewReader(f, cli).All(func(e Event) error {
					judge.Add(e)
					switch e.Kind {
					case KindGarbage, KindOther:
						if e.Kind == KindGarbage || !strings.HasPrefix(e.Name, "stream_event/") {
							t.Errorf("line %d is %s %s", e.Line, e.Kind, e.Name)
						}
					case KindToolUse:
						calls[e.Tool.ID] = true
					case KindToolResult:
						results++
						if !calls[e.Tool.ID] {
							t.Errorf("line %d is the result of no call", e.Line)
						}
					}
					if e.SessionID == "" {
						t.Errorf("line %d is of no session", e.Line)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if results != len(calls) {
					t.Errorf("%d calls, %d results", len(calls), results)
				}
				want := wants[name]
				if want == "" {
					want = ClassOK
				}
				if got := judge.Outcome(Exit{}, ""); got.Class != want || got.OK && got.Text == "" {
					t.Errorf("%+v, want %s", got, want)
				}
			})
		}
	}
}
