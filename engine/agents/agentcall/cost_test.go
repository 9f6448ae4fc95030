package agentcall

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
)

// perAnswer is the usage of an answer of the stand-in.
var perAnswer = ace.Usage{InputTokens: 120, CacheReadTokens: 40, OutputTokens: 17, CostUSD: 0.000828}

// sessionTest makes the calls of a session one by one, as workflows do.
type sessionTest struct {
	*place
	session string
	n       int // of the call
	c       Call
	used    ace.Usage
	subs    int // answers of subagents, which the transcript lacks
	calls   int // API calls without an answer
}

// answers counts the answers of the model in the session's transcript.
func (l *sessionTest) answers() int {
	l.t.Helper()
	data, err := os.ReadFile(l.Transcript(l.dir, l.session))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.t.Fatal(err)
	}
	ids := map[string]bool{}
	for line := range bytes.Lines(data) {
		var m struct {
			Type    string
			Message struct{ ID string }
		}
		if json.Unmarshal(line, &m) == nil && m.Type == "assistant" {
			ids[m.Message.ID] = true
		}
	}
	return len(ids)
}

// next prepares another call of the session.
func (l *sessionTest) next(scenario string) {
	l.n++
	l.c = l.call("SCENARIO: "+strings.ReplaceAll(scenario, "gate ", fmt.Sprintf("gate %d-", l.n)), 1)
	l.c.ID = session.UUID(l.t.Name(), fmt.Sprint(l.n))
	l.c.Log.Seq, l.c.Resume = l.n, l.session
}

// count checks and adds the final result of a call.
func (l *sessionTest) count(e *Result, class agentcli.Class) *Result {
	l.t.Helper()
	if e.ExitClass != string(class) || e.Usage.Unpriced || e.CostUSD != e.Usage.CostUSD {
		l.t.Fatalf("call %d: %+v", l.n, e)
	}
	l.session, l.used = e.SessionID, l.used.Add(e.Usage)
	return e
}

// end makes an attempt and stops it at its nth gate.
func (l *sessionTest) end(nth int, how func(*os.Process)) *Result {
	l.t.Helper()
	return l.stop(context.Background(), nth, how)
}

func (l *sessionTest) stop(ctx context.Context, nth int, how func(*os.Process)) *Result {
	l.t.Helper()
	before, done := len(l.Did("gate")), make(chan *Result, 1)
	go func() { done <- l.Run(ctx, l.c) }()
	l.Await("gate", before+nth)
	starts := l.Did("start")
	p, err := os.FindProcess(starts[len(starts)-1].PID)
	if err != nil {
		l.t.Fatal(err)
	}
	how(p)
	return <-done
}

// again opens the gate and returns the next attempt.
func (l *sessionTest) again(gate string) Call {
	l.Open(fmt.Sprintf("%d-%s", l.n, gate))
	l.c.Log.Attempt++
	return l.c
}

func kill(p *os.Process)      { _ = p.Kill() }
func terminate(p *os.Process) { _ = p.Signal(syscall.SIGTERM) }

const (
	plain  = "bash echo a; say b"
	first  = "gate g; bash echo a; say b"
	middle = "bash echo a; gate g; bash echo b; say c"
	last   = "bash echo a; say b; gate g"
	twice  = "bash echo a; gate g; bash echo b; gate h; say c"
)

func (l *sessionTest) step(what string) {
	l.t.Helper()
	what, at, _ := strings.Cut(what, " at ")
	scenario := map[string]string{"": middle, "first": first, "last": last}[at]
	how := kill
	if strings.HasPrefix(what, "ended") {
		how = terminate
	}
	switch what {
	case "call":
		l.next(plain)
		l.count(l.run(l.c), agentcli.ClassOK)
	case "subagent":
		l.subs++
		l.calls-- // of the subagent's answer
		l.next("subagent")
		l.count(l.run(l.c), agentcli.ClassOK)
	case "killed", "ended":
		l.next(scenario)
		l.end(1, how)
		l.count(l.run(l.again("g")), agentcli.ClassOK)
	case "killed with the worker", "ended with the worker":
		l.next(scenario)
		l.tear(l.end(1, how).LogPath)
		l.count(l.run(l.again("g")), agentcli.ClassOK)
	case "killed twice", "ended, then killed":
		l.next(twice)
		l.end(1, how)
		l.again("g")
		l.end(2, kill)
		l.count(l.run(l.again("h")), agentcli.ClassOK)
	case "killed, then ended, with the worker":
		l.next(twice)
		l.tear(l.end(1, kill).LogPath)
		l.again("g")
		l.tear(l.end(2, terminate).LogPath)
		l.count(l.run(l.again("h")), agentcli.ClassOK)
	case "killed for good", "ended for good": // no attempts left
		l.next(scenario)
		l.count(l.end(1, how), agentcli.ClassKilled)
	case "canceled":
		ctx, cancel := context.WithCancel(context.Background())
		l.next(scenario)
		l.count(l.stop(ctx, 1, func(*os.Process) { cancel() }), ClassCanceled)
	case "killed, then canceled":
		ctx, cancel := context.WithCancel(context.Background())
		l.next(twice)
		l.end(1, kill)
		l.again("g")
		l.count(l.stop(ctx, 2, func(*os.Process) { cancel() }), ClassCanceled)
	case "result lost", "result lost with the log's end":
		l.next(plain)
		e := l.run(l.c)
		if what != "result lost" {
			l.tear(e.LogPath)
		}
		if e = l.count(l.run(l.again("")), agentcli.ClassOK); !e.Recovered {
			l.t.Errorf("%+v", e)
		}
	case "killed, then result lost with the log's end":
		l.next(middle)
		l.end(1, kill)
		l.tear(l.run(l.again("g")).LogPath)
		if e := l.count(l.run(l.again("")), agentcli.ClassOK); !e.Recovered {
			l.t.Errorf("%+v", e)
		}
	case "no result":
		l.next("bash echo a; say b; noresult 1")
		l.run(l.c)
		if e := l.count(l.run(l.again("")), agentcli.ClassOK); !e.Recovered {
			l.t.Errorf("%+v", e)
		}
	case "failed twice":
		l.calls += 2
		l.next("bash echo a; servererror")
		l.run(l.c)
		l.count(l.run(l.again("")), agentcli.ClassAPIError)
	case "log lost": // the worker died before it created a log
		l.next(plain)
		l.count(l.run(l.again("")), agentcli.ClassOK)
	default:
		l.t.Fatal(what)
	}
}

// TestCostOfKilledAttempts checks that the cost of a session is that of its messages, each
// counted once, however the attempts end.
func TestCostOfKilledAttempts(t *testing.T) {
	for _, old := range []bool{false, true} {
		for _, steps := range []string{
			"killed; call",
			"ended; call",
			"killed at first; call; killed at first; ended at first; call",
			"killed at last; call; ended at last; killed at last; call",
			"call; killed; call; ended; call; killed; killed; ended; ended; call",
			"call; killed with the worker; call; ended with the worker; call",
			"ended with the worker at first; killed with the worker at last; ended with the worker at last; call",
			"killed twice; call; ended, then killed; call; killed, then ended, with the worker; call",
			"call; killed for good; call; ended for good; call",
			"killed for good; ended; ended for good; killed; call",
			"killed for good at first; call; ended for good at last; call",
			"call; canceled; call; killed, then canceled; call; canceled at first; canceled at last",
			"canceled; killed; call",
			"result lost; call; result lost with the log's end; call; killed, then result lost with the log's end; call",
			"killed, then result lost with the log's end; ended; result lost with the log's end",
			"no result; call; no result; killed; no result",
			"failed twice; call; failed twice; ended; call",
			"log lost; log lost; killed; log lost; ended; log lost",
			"subagent; call; killed; subagent; ended; call",
		} {
			name := steps
			if old {
				name += ", an old version"
			}
			t.Run(name, func(t *testing.T) {
				l := &sessionTest{place: newPlace(t, agentcli.Claude)}
				t.Setenv("CLAUDE_CONFIG_DIR", l.ConfigDir())
				l.SetOldCost(old)
				for what := range strings.SplitSeq(steps, "; ") {
					l.step(what)
					answers := l.answers() + l.subs
					if want := perAnswer.CostUSD * float64(answers); math.Abs(l.used.CostUSD-want) > 1e-9 {
						t.Fatalf("after %q the session costs %v, which is %.2f answers, want %d", what,
							l.used.CostUSD, l.used.CostUSD/perAnswer.CostUSD, answers)
					}
					asked := int64(answers + l.calls)
					if u := l.used; u.InputTokens != asked*perAnswer.InputTokens ||
						u.OutputTokens != asked*perAnswer.OutputTokens ||
						u.CacheReadTokens != asked*perAnswer.CacheReadTokens {
						t.Fatalf("after %q the session has %+v, want %d answers", what, u, asked)
					}
				}
				if left, err := os.ReadDir(l.o.DataDir + "/" + sessionsDir); err != nil || len(left) > 0 {
					t.Errorf("meters are saved although the transcript has the cost: %v, %v", left, err)
				}
			})
		}
	}
}

// TestCost checks that each call of a session has its own cost, with and without a transcript.
func TestCost(t *testing.T) {
	for _, found := range []bool{true, false} {
		for _, old := range []bool{false, true} {
			p := newPlace(t, agentcli.Claude)
			t.Setenv("HOME", t.TempDir()) // the default place of transcripts
			t.Setenv("CLAUDE_CONFIG_DIR", map[bool]string{true: p.ConfigDir()}[found])
			p.SetOldCost(old)
			c := p.call("SCENARIO: say a", 1)
			one := p.run(c)
			for range 2 {
				c.ID += "x"
				c.Resume = one.SessionID
				if e := p.run(c); e.CostUSD != one.CostUSD || e.CostUSD <= 0 ||
					e.SessionID != one.SessionID || e.Usage.Unpriced {
					t.Errorf("found %v, old %v: %v after %v", found, old, e.CostUSD, one.CostUSD)
				}
			}
		}
	}
}

// TestCostUnknown checks that usage is marked as unpriced if the cost of a killed attempt is unknown.
func TestCostUnknown(t *testing.T) {
	for _, c := range []struct {
		what     string
		how      func(*os.Process)
		model    string // "" for a model with a price
		old      bool
		lost     bool // the transcript is not found
		unpriced bool
	}{
		{"killed", kill, "", false, false, false},
		{"killed, no price", kill, "house-model-1", false, false, true},
		{"ended, no price, but a count", terminate, "house-model-1", false, false, false},
		{"ended, no price, an old version", terminate, "house-model-1", true, false, true},
		{"killed, no transcript", kill, "", false, true, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := &sessionTest{place: newPlace(t, agentcli.Claude)}
			t.Setenv("HOME", t.TempDir())
			t.Setenv("CLAUDE_CONFIG_DIR", map[bool]string{false: l.ConfigDir()}[c.lost])
			l.SetOldCost(c.old)
			for _, torn := range []bool{false, true} {
				l.session = ""
				l.next(middle)
				l.c.Model = c.model
				e := l.end(1, c.how)
				if e.Usage.Unpriced != c.unpriced {
					t.Errorf("first attempt: %+v", e.Usage)
				}
				if torn {
					l.tear(e.LogPath)
				}
				if e = l.run(l.again("g")); !e.Success || e.Usage.Unpriced != c.unpriced {
					t.Errorf("second attempt: %+v", e)
				}
			}
		})
	}
}

// TestTokens checks that Codex's cumulative tokens are counted once, however its calls end.
func TestTokens(t *testing.T) {
	l := &sessionTest{place: newPlace(t, agentcli.Codex)}
	var want int64
	for i, scenario := range []string{"bash a; say b", "say a; servererror", "say a", "overloaded",
		"bash a; say b; noresult 1", "say c"} {
		l.next(scenario)
		e := l.run(l.c)
		for range 2 {
			if e.Retry {
				e = l.run(l.again("g"))
			}
		}
		if i%2 == 1 {
			l.tear(e.LogPath)
			e = l.run(l.again("g"))
		}
		l.session, l.used = e.SessionID, l.used.Add(e.Usage)
	}
	want = int64(len(l.Did("api_call")))
	if u := l.used; u.OutputTokens != 10*want || u.InputTokens != 16*want || u.CacheReadTokens != 4*want {
		t.Errorf("%+v for %d calls", u, want)
	}
}
