package agentrun

import (
	"os"
	"strings"
	"testing"

	"acescope/engine/agentcli"
)

// TestAgain tries calls again after what ended their first attempts: nothing is done twice,
// and what was broken off is gone on with in the same session.
func TestAgain(t *testing.T) {
	for _, cli := range agentcli.CLIs() {
		t.Run(string(cli), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, cli)
			first := p.run(p.call("SCENARIO: bash echo one; kill", 1))
			if first.ExitClass != string(agentcli.ClassKilled) || !first.Retry {
				t.Fatalf("%+v", first)
			}
			// The stand-in runs the scenario of whatever it is told last.
			second := p.run(p.call("SCENARIO: bash echo one; kill", 2))
			if !second.Continued || second.SessionID != first.SessionID || second.Recovered {
				t.Errorf("%+v after %+v", second, first)
			}
			turns := p.Did("turn")
			if len(turns) != 2 || !strings.HasPrefix(turns[1].Text, "The program that runs you was interrupted") || turns[1].Session != turns[0].Session {
				t.Errorf("%+v", turns)
			}
			l, _ := p.log(second)
			if !l.Header.Continued || !l.Header.Resumed || l.Header.Attempt != 2 {
				t.Errorf("%+v", l.Header)
			}
			if info, err := os.Stat(p.LogPath(first.LogPath)); err != nil || info.Mode().Perm() != 0o400 {
				t.Errorf("the log of the first attempt is not sealed: %v, %v", info, err)
			}
		})
	}
}

// TestDoneAlready holds that a call whose first attempt was done, without anybody having
// been told, is not made again.
func TestDoneAlready(t *testing.T) {
	for _, cli := range agentcli.CLIs() {
		for _, torn := range []bool{false, true} { // the log lacks its last line: the worker was killed
			t.Run(string(cli), func(t *testing.T) {
				t.Parallel()
				p := newPlace(t, cli)
				first := p.run(p.call("SCENARIO: tools; say well done", 1))
				if torn {
					p.tear(first.LogPath)
				}
				second := p.run(p.call("SCENARIO: tools; say well done", 2))
				if cli == agentcli.OpenCode && torn { // whose stream has no end of its own
					if !second.Continued || !second.Success {
						t.Errorf("%+v", second)
					}
					return
				}
				if !second.Recovered || !second.Success || second.Text != first.Text || second.SessionID != first.SessionID || second.Log == nil ||
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

// tear takes the last line off a log.
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

// TestTranscript holds that Claude's transcript tells what no log does.
func TestTranscript(t *testing.T) {
	p := newPlace(t, agentcli.Claude)
	t.Setenv("CLAUDE_CONFIG_DIR", p.ConfigDir())
	first := p.run(p.call("SCENARIO: tools; say well done; noresult 1", 1))
	if first.ExitClass != string(agentcli.ClassNoResult) || !first.Retry {
		t.Fatalf("%+v", first)
	}
	second := p.run(p.call("SCENARIO: tools; say well done; noresult 1", 2))
	if !second.Recovered || second.Text != "well done" || len(p.Did("turn")) != 1 || second.Usage.OutputTokens == 0 {
		t.Errorf("%+v, %d turns", second, len(p.Did("turn")))
	}

	// A session that was there before: only what came after counts.
	next := p.call("SCENARIO: say begun; kill", 1)
	next.ID, next.Resume = "next", first.SessionID
	p.run(next)
	next.Log.Attempt = 2
	e := p.run(next)
	if e.Recovered && e.Text != "begun" || e.SessionID != first.SessionID {
		t.Errorf("%+v", e)
	}
	last := p.call("SCENARIO: say last", 2) // nothing is known of its first attempt
	last.ID, last.Resume = "last", first.SessionID
	if e := p.run(last); e.Text == "well done" {
		t.Errorf("%+v", e)
	}
}
