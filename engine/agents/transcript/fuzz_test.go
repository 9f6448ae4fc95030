package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"unicode/utf8"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/price"
)

func seeds(f *testing.F) (lines [][]byte) {
	for _, name := range []string{"session.jsonl", "odd.jsonl"} {
		lines = append(lines, linesOf(f, filepath.Join("testdata", name))...)
	}
	return lines
}

// FuzzLine checks for any line that the summary is bounded and valid and that a JSON object is
// readable.
func FuzzLine(f *testing.F) {
	for _, l := range seeds(f) {
		f.Add(l)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		fold := NewFold(price.Shipped())
		fold.Add(raw)
		fold.Add(raw)
		s := fold.Summary()
		if s.Lines != 2 {
			t.Errorf("%d lines", s.Lines)
		}
		if json.Valid(raw) && s.Unreadable > 0 && bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"),
			[]byte("{")) {
			t.Errorf("object is unreadable: %q", raw)
		}
		if s.Tokens.Total() < 0 || s.CostUSD < 0 || len(s.Prompt) > 4*maxPrompt || s.Calls < s.Failed+
			s.Denied {
			t.Errorf("%+v", s)
		}
		if utf8.Valid(raw) && !utf8.ValidString(s.Prompt+s.Title) {
			t.Errorf("text is cut inside a character: %q", s.Prompt)
		}
		if _, err := json.Marshal(s); err != nil {
			t.Error(err)
		}
		if len(Events(raw)) == 0 {
			t.Error("a line without an event")
		}
	})
}

// FuzzReader checks that a file gives the same summary read at once or as it grows.
func FuzzReader(f *testing.F) {
	for _, name := range []string{"session.jsonl", "odd.jsonl"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint16(300))
	}
	f.Add([]byte("{\"type\":\"user\",\"uuid\":\"1\"}{\"x\":1}\n"), uint16(27))
	f.Fuzz(func(t *testing.T, data []byte, at uint16) {
		path := filepath.Join(t.TempDir(), "s.jsonl")
		cut := min(int(at), len(data))
		write(t, path, data)
		whole := newTail(path)
		whole.read(t, 0)
		grown := newTail(path)
		write(t, path, data[:cut])
		grown.read(t, 0)
		write(t, path, data)
		grown.read(t, 0)
		if bytes.HasSuffix(data[:cut], []byte("}")) && cut < len(data) && data[cut] != '\n' &&
			data[cut] != '\r' {
			return // a complete line that then continued
		}
		if a, b := whole.fold.Summary(), grown.fold.Summary(); !reflect.DeepEqual(a, b) {
			t.Errorf("at once %+v\nin two %+v", a, b)
		}
	})
}

// fuzzFormat checks for any two lines that the summary of an agent's fold is bounded and valid, and that
// every line has an event.
func fuzzFormat(f *testing.F, agent agentcli.CLI) {
	format := Of(agent)
	entries, err := format.List(context.Background(), formatRoot(f, agent))
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range entries {
		last := []byte("{}")
		_, err := format.Open(e.Path).Read(context.Background(), 0, nil, func(raw []byte, _ int64) {
			f.Add(last, bytes.Clone(raw))
			last = bytes.Clone(raw)
		})
		if err != nil {
			f.Fatal(err)
		}
	}
	prices := price.Shipped()
	f.Fuzz(func(t *testing.T, first, second []byte) {
		fold, events := format.Fold(prices), format.Events()
		for _, raw := range [][]byte{first, second, first, second} {
			fold.Add(raw)
			list := events(raw)
			if len(list) == 0 {
				t.Error("a line without an event")
			}
			for _, e := range list {
				if _, err := json.Marshal(e); err != nil {
					t.Error(err)
				}
			}
		}
		s := fold.Summary()
		if s.Lines != 4 {
			t.Errorf("%d lines", s.Lines)
		}
		bad := s.Tokens.Input < 0 || s.Tokens.Output < 0 || s.Tokens.CacheRead < 0 ||
			s.Tokens.CacheWrite() < 0
		if bad || s.CostUSD < 0 || len(s.Prompt) > 4*maxPrompt || len(s.Title) > 4*maxPrompt ||
			len(s.SessionID) > maxName ||
			s.Calls < s.Failed+s.Denied || s.Turns > 4*maxPrompt+len(first)+len(second) {
			t.Errorf("%+v", s)
		}
		valid := utf8.Valid(first) && utf8.Valid(second)
		if valid && !utf8.ValidString(s.Prompt+s.Title+s.LastError) {
			t.Errorf("text is cut inside a character: %q", s.Prompt)
		}
		if _, err := json.Marshal(s); err != nil {
			t.Error(err)
		}
	})
}

func FuzzCodex(f *testing.F)    { fuzzFormat(f, agentcli.Codex) }
func FuzzGemini(f *testing.F)   { fuzzFormat(f, agentcli.Gemini) }
func FuzzOpenCode(f *testing.F) { fuzzFormat(f, agentcli.OpenCode) }

// FuzzDocument reads any file as a chat of one document, twice.
func FuzzDocument(f *testing.F) {
	data, err := os.ReadFile("testdata/gemini/tmp/5ac1e310/chats/session-2026-11-22T20-10-63a3f757.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "session-1.json")
		write(t, path, data)
		r := Of(agentcli.Gemini).Open(path)
		var lines [2]int
		for i := range lines {
			fold := Of(agentcli.Gemini).Fold(price.Shipped())
			// any data may be no chat
			_, _ = r.Read(context.Background(), 0, nil, func(raw []byte, at int64) {
				if at < 0 || at > int64(len(data)) {
					t.Errorf("a line at %d of %d", at, len(data))
				}
				fold.Add(raw)
			})
			lines[i] = fold.Summary().Lines
		}
		if lines[0] != lines[1] {
			t.Errorf("%d lines, then %d", lines[0], lines[1])
		}
	})
}

// FuzzDatabase reads a database with a changed byte range.
func FuzzDatabase(f *testing.F) {
	whole, err := os.ReadFile(makeDatabase(f, f.TempDir(), "testdata/opencode.sql"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), []byte("x"))
	f.Add(uint32(100), []byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, at uint32, change []byte) {
		dir := t.TempDir()
		data := bytes.Clone(whole)
		copy(data[int(at)%len(data):], change)
		path := filepath.Join(dir, "opencode.db")
		write(t, path, data)
		list, _ := Of(agentcli.OpenCode).List(context.Background(), dir) // the database may be damaged
		for _, e := range list {
			fold := Of(agentcli.OpenCode).Fold(price.Shipped())
			_, _ = Of(agentcli.OpenCode).Open(e.Path).Read(context.Background(), 0, nil,
				func(raw []byte, _ int64) { fold.Add(raw) })
			if _, err := json.Marshal(fold.Summary()); err != nil {
				t.Error(err)
			}
		}
	})
}
