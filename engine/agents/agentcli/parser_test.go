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

	"acescope/engine/internal/process"
)

var update = flag.Bool("update", false, "write the golden files")

// streams lists the handwritten streams of a CLI.
func streams(t testing.TB, cli CLI) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", string(cli), "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("streams of %s not found: %v", cli, err)
	}
	return files
}

// render returns the events of a stream, one per line, and their outcome.
func render(t testing.TB, r *Reader) []byte {
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
	if err := enc.Encode(judge.Outcome(process.Exit{Class: process.Exited}, "")); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestGolden compares the events of every handwritten stream with its golden file, read at
// once and byte by byte.
func TestGolden(t *testing.T) {
	for _, cli := range CLIs() {
		for _, file := range streams(t, cli) {
			t.Run(strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".jsonl"), func(t *testing.T) {
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				got := render(t, NewReader(bytes.NewReader(data), cli))
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
					t.Errorf("got:\n%s\nwant:\n%s", got, want)
				}
				slow := render(t, NewReader(iotest.OneByteReader(bytes.NewReader(data)), cli))
				if !bytes.Equal(slow, want) {
					t.Errorf("byte by byte:\n%s\nwant:\n%s", slow, want)
				}
			})
		}
	}
}

// TestEventsShareNoMemory overwrites each line after it was parsed.
func TestEventsShareNoMemory(t *testing.T) {
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

// recordings holds streams of the real CLIs, on machines that have them.
const recordings = "/work/shared/data/agent-streams"

// TestRecorded reads the streams of the real CLIs.
func TestRecorded(t *testing.T) {
	wants := map[string]Class{
		"claude/api-overloaded": ClassOverloaded, "claude/max-turns": ClassMaxTurns,
		"codex/failed":  ClassAPIError,
		"gemini/failed": ClassAPIError, "opencode/failed": ClassAPIError,
	}
	for _, cli := range CLIs() {
		files, err := filepath.Glob(filepath.Join(recordings, string(cli), "*.jsonl"))
		if err != nil || len(files) == 0 {
			t.Skip("no recordings on this machine")
		}
		for _, file := range files {
			name := string(cli) + "/" + strings.TrimSuffix(filepath.Base(file), ".jsonl")
			if name == "claude/hooks-tool-bash" {
				continue // input of hooks, not a stream
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
							t.Errorf("line %d is a result without a call", e.Line)
						}
					}
					if e.SessionID == "" {
						t.Errorf("line %d has no session", e.Line)
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
				if got := judge.Outcome(process.Exit{Class: process.Exited}, ""); got.Class != want ||
					got.OK && got.Text == "" {
					t.Errorf("%+v, want %s", got, want)
				}
			})
		}
	}
}

// TestBrokenLine checks that a line whose end is invalid is garbage and does not affect the
// lines after it.
func TestBrokenLine(t *testing.T) {
	encode := func(events []Event) string {
		data, err := json.Marshal(events)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, cli := range CLIs() {
		for _, file := range streams(t, cli) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, got := NewParser(cli), NewParser(cli)
			for line := range bytes.Lines(data) {
				broken := append(bytes.TrimRight(bytes.Clone(line), "\r\n }"), ",}"...)
				if events := got.Line(broken); len(events) > 1 || len(events) == 1 &&
					events[0].Kind != KindGarbage {
					t.Fatalf("%s: %s gives %+v", cli, broken, events)
				}
				if a, b := encode(want.Line(line)), encode(got.Line(line)); a != b {
					t.Errorf("%s: %s\n%s, want\n%s", cli, line, b, a)
				}
			}
		}
	}
}
