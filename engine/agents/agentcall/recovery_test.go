package agentcall

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"acescope/engine/agents/agentcli"
)

// TestContinue checks that a retried call continues the interrupted attempt in its session.
func TestContinue(t *testing.T) {
	for _, cli := range agentcli.CLIs() {
		t.Run(string(cli), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, cli)
			first := p.run(p.call("SCENARIO: bash echo one; kill", 1))
			if first.ExitClass != string(agentcli.ClassKilled) || !first.Retry {
				t.Fatalf("%+v", first)
			}
			// The stand-in runs the scenario of its latest instruction.
			second := p.run(p.call("SCENARIO: bash echo one; kill", 2))
			if !second.Continued || second.SessionID != first.SessionID || second.Recovered {
				t.Errorf("%+v after %+v", second, first)
			}
			turns := p.Did("turn")
			if len(turns) != 2 || !strings.HasPrefix(turns[1].Text,
				"The program that runs you was interrupted") || turns[1].Session != turns[0].Session {
				t.Errorf("%+v", turns)
			}
			l, _ := p.log(second)
			if !l.Header.Continued || !l.Header.Resumed || l.Header.Attempt != 2 {
				t.Errorf("%+v", l.Header)
			}
			if info, err := os.Stat(p.LogPath(first.LogPath)); err != nil || info.Mode().Perm() != 0o400 {
				t.Errorf("the log of the first attempt is not closed: %v, %v", info, err)
			}
		})
	}
}

// TestRecover checks that a finished call whose result was lost is not repeated.
func TestRecover(t *testing.T) {
	for _, cli := range agentcli.CLIs() {
		for _, torn := range []bool{false, true} { // the worker was killed, so the log lacks its last line
			t.Run(string(cli), func(t *testing.T) {
				t.Parallel()
				p := newPlace(t, cli)
				first := p.run(p.call("SCENARIO: tools; say well done", 1))
				if torn {
					p.tear(first.LogPath)
				}
				second := p.run(p.call("SCENARIO: tools; say well done", 2))
				if cli == agentcli.OpenCode && torn { // its stream has no result
					if !second.Continued || !second.Success {
						t.Errorf("%+v", second)
					}
					return
				}
				if !second.Recovered || !second.Success || second.Text != first.Text ||
					second.SessionID != first.SessionID || second.Log == nil ||
					second.CostUSD != first.CostUSD {
					t.Errorf("%+v\nafter %+v", second, first)
				}
				if n := len(p.Did("turn")); n != 1 {
					t.Errorf("%d turns", n)
				}
				other := p.call("SCENARIO: say another thing", 2)
				other.ID += "x"
				if e := p.run(other); e.Recovered || e.Text != "another thing" {
					t.Errorf("another call: %+v", e)
				}
			})
		}
	}
}

// tear removes the last line of a log.
func (p *place) tear(rel string) {
	p.t.Helper()
	path := p.LogPath(rel)
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.Remove(path)
	}
	if err == nil {
		lines := strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n")
		err = os.WriteFile(path, []byte(strings.Join(lines[:len(lines)-1], "")), 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// TestTranscript checks that Claude's transcript supplies what the log lacks.
func TestTranscript(t *testing.T) {
	p := newPlace(t, agentcli.Claude)
	t.Setenv("CLAUDE_CONFIG_DIR", p.ConfigDir())
	first := p.run(p.call("SCENARIO: tools; say well done; noresult 1", 1))
	if first.ExitClass != string(agentcli.ClassNoResult) || !first.Retry {
		t.Fatalf("%+v", first)
	}
	second := p.run(p.call("SCENARIO: tools; say well done; noresult 1", 2))
	if !second.Recovered || second.Text != "well done" || len(p.Did("turn")) != 1 ||
		second.Usage.OutputTokens == 0 {
		t.Errorf("%+v, %d turns", second, len(p.Did("turn")))
	}

	// Of a resumed session, only the part after the call began counts.
	next := p.call("SCENARIO: say begun; kill", 1)
	next.ID, next.Resume = "next", first.SessionID
	p.run(next)
	next.Log.Attempt = 2
	e := p.run(next)
	if e.Recovered && e.Text != "begun" || e.SessionID != first.SessionID {
		t.Errorf("%+v", e)
	}
	last := p.call("SCENARIO: say last", 2) // its first attempt left no log
	last.ID, last.Resume = "last", first.SessionID
	if e := p.run(last); e.Text == "well done" {
		t.Errorf("%+v", e)
	}
}

// TestReadTurn checks that a transcript reports a call as done only if that is certain, and
// ignores everything before the call.
func TestReadTurn(t *testing.T) {
	say := func(more, model, stop, block string) string {
		return fmt.Sprintf(`{"type":"assistant",%s"message":{"id":"m","model":"%s","stop_reason":%s,"content":[%s],"usage":{"output_tokens":7}}}`, more, model, stop, block)
	}
	const (
		opus  = "claude-opus-5-5"
		user  = `{"type":"user","message":{"role":"user","content":"do it"}}`
		text  = `{"type":"text","text":"x"}`
		use   = `{"type":"tool_use","id":"t1","name":"Bash","input":{}}`
		ends  = `"end_turn"`
		calls = `"tool_use"`
	)
	answer, call := say("", opus, ends, text), say("", opus, calls, use)
	for _, c := range []struct {
		what        string
		lines       []string
		begun, done bool
	}{
		{"nothing", nil, false, false},
		{"asked", []string{user}, true, false},
		{"answered", []string{user, answer}, true, true},
		{"tool call", []string{user, call}, true, false},
		{"asked again", []string{user, answer, user}, true, false},
		{"no stop reason", []string{user, say("", opus, "null", text)}, true, false},
		{"filler after resume", []string{user, call,
			`{"type":"user","isMeta":true,"message":{"content":"Continue"}}`,
			say("", "<synthetic>", `"stop_sequence"`, text)}, true, false},
		{"API error", []string{user, say(`"isApiErrorMessage":true,`, "<synthetic>", `"stop_sequence"`,
			text)}, true, false},
		{"answer of a subagent", []string{user, call, say(`"isSidechain":true,`, opus, ends, text)}, true,
			false},
		{"invalid JSON", []string{user, "{"}, true, false},
	} {
		path := filepath.Join(t.TempDir(), "s.jsonl")
		before := user + "\n" + answer + "\n" + `{"type":"cost-state","totalCostUSD":0.5}` + "\n"
		if err := os.WriteFile(path, []byte(before+strings.Join(append(c.lines, ""), "\n")),
			0o600); err != nil {
			t.Fatal(err)
		}
		m, err := readTurn(t.Context(), path, int64(len(before)))
		if err != nil || m.Started != c.begun || answered(m) != c.done || m.Counted != 0.5 || answered(m) &&
			m.Text != "x" {
			t.Errorf("%s: %+v, %v", c.what, m, err)
		}
		if len(c.lines) == 0 && m.Usage.OutputTokens != 0 {
			t.Errorf("%s: %+v", c.what, m.Usage)
		}
	}
	if _, err := readTurn(t.Context(), t.TempDir(), 0); err == nil {
		t.Error("reading a directory succeeded")
	}
}
