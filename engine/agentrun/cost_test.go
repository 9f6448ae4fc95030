package agentrun

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
	"acescope/engine/agentcli"
	"acescope/engine/session"
)

// perAnswer is what an answer of the stand-in costs.
var perAnswer = ace.Usage{InputTokens: 120, CacheReadTokens: 40, OutputTokens: 17, CostUSD: 0.000828}

// life is a session that a test lives through as workflows would, call by call.
type life struct {
	*place
	session string
	n       int // of the call
	c       Call
	used    ace.Usage
	subs    int // answers of subagents, which are not in the transcript
	calls   int // of the API without an answer
}

// said counts the answers of the model in the session's transcript.
func (l *life) said() int {
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

// next is another call of the session.
func (l *life) next(scenario string) {
	l.n++
	l.c = l.call("SCENARIO: "+strings.ReplaceAll(scenario, "gate ", fmt.Sprintf("gate %d-", l.n)), 1)
	l.c.ID = session.UUID(l.t.Name(), fmt.Sprint(l.n))
	l.c.Log.Seq, l.c.Resume = l.n, l.session
}

// count takes the call's last end.
func (l *life) count(e *End, class agentcli.Class) *End {
	l.t.Helper()
	if e.ExitClass != string(class) || e.Usage.Unpriced || e.CostUSD != e.Usage.CostUSD {
		l.t.Fatalf("call %d: %+v", l.n, e)
	}
	l.session, l.used = e.SessionID, l.used.Add(e.Usage)
	return e
}

// end makes an attempt and ends it at its nth gate.
func (l *life) end(nth int, how func(*os.Process)) *End {
	l.t.Helper()
	return l.stop(context.Background(), nth, how)
}

func (l *life) stop(ctx context.Context, nth int, how func(*os.Process)) *End {
	l.t.Helper()
	before, done := len(l.Did("gate")), make(chan *End, 1)
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

// again makes the next attempt, at which the gate is open.
func (l *life) again(gate string) Call {
	l.Open(fmt.Sprintf("%d-%s", l.n, gate))
	l.c.Log.Attempt++
	return l.c
}

func killed(p *os.Process) { _ = p.Kill() }
func ended(p *os.Process)  { _ = p.Signal(syscall.SIGTERM) }

const (
	plain  = "bash echo a; say b"
	first  = "gate g; bash echo a; say b"
	middle = "bash echo a; gate g; bash echo b; say c"
	last   = "bash echo a; say b; gate g"
	twice  = "bash echo a; gate g; bash echo b; gate h; say c"
)

func (l *life) step(what string) {
	l.t.Helper()
	what, at, _ := strings.Cut(what, " at ")
	scenario := map[string]string{"": middle, "first": first, "last": last}[at]
	how := killed
	if strings.HasPrefix(what, "ended") {
		how = ended
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
		l.end(2, killed)
		l.count(l.run(l.again("h")), agentcli.ClassOK)
	case "killed, then ended, with the worker":
		l.next(twice)
		l.tear(l.end(1, killed).LogPath)
		l.again("g")
		l.tear(l.end(2, ended).LogPath)
		l.count(l.run(l.again("h")), agentcli.ClassOK)
	case "killed for good", "ended for good": // no attempt is left
		l.next(scenario)
		l.count(l.end(1, how), agentcli.ClassKilled)
	case "cancelled":
		ctx, cancel := context.WithCancel(context.Background())
		l.next(scenario)
		l.count(l.stop(ctx, 1, func(*os.Process) { cancel() }), ClassCancelled)
	case "killed, then cancelled":
		ctx, cancel := context.WithCancel(context.Background())
		l.next(twice)
		l.end(1, killed)
		l.again("g")
		l.count(l.stop(ctx, 2, func(*os.Process) { cancel() }), ClassCancelled)
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
		l.end(1, killed)
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
	case "log lost": // the worker died before it began one
		l.next(plain)
		l.count(l.run(l.again("")), agentcli.ClassOK)
	default:
		l.t.Fatal(what)
	}
}

// TestCostOfWhatWasKilled holds that a session costs what its messages do, whatever becomes
// of the attempts that spent it: once, and all of it.
func TestCostOfWhatWasKilled(t *testing.T) {
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
			"call; cancelled; call; killed, then cancelled; call; cancelled at first; cancelled at last",
			"cancelled; killed; call",
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
				l := &life{place: newPlace(t, agentcli.Claude)}
				t.Setenv("CLAUDE_CONFIG_DIR", l.ConfigDir())
				l.SetOldCost(old)
				for what := range strings.SplitSeq(steps, "; ") {
					l.step(what)
					said := l.said() + l.subs
					if want := perAnswer.CostUSD * float64(said); math.Abs(l.used.CostUSD-want) > 1e-9 {
						t.Fatalf("after %q the session costs %v, which is %.2f answers and not %d", what, l.used.CostUSD, l.used.CostUSD/perAnswer.CostUSD, said)
					}
					asked := int64(said + l.calls)
					if u := l.used; u.InputTokens != asked*perAnswer.InputTokens || u.OutputTokens != asked*perAnswer.OutputTokens || u.CacheReadTokens != asked*perAnswer.CacheReadTokens {
						t.Fatalf("after %q the session has %+v, which is not %d answers", what, u, asked)
					}
				}
				if left, err := os.ReadDir(l.o.DataDir + "/" + sessionsDir); err != nil || len(left) > 0 {
					t.Errorf("sums are kept that the transcript tells: %v, %v", left, err)
				}
			})
		}
	}
}

// TestCost holds that each call of a session costs its own, where the transcript is found
// and where it is not.
func TestCost(t *testing.T) {
	for _, found := range []bool{true, false} {
		for _, old := range []bool{false, true} {
			p := newPlace(t, agentcli.Claude)
			t.Setenv("HOME", t.TempDir()) // where it is looked for if nothing else is said
			t.Setenv("CLAUDE_CONFIG_DIR", map[bool]string{true: p.ConfigDir()}[found])
			p.SetOldCost(old)
			c := p.call("SCENARIO: say a", 1)
			one := p.run(c)
			for range 2 {
				c.ID += "x"
				c.Resume = one.SessionID
				if e := p.run(c); e.CostUSD != one.CostUSD || e.CostUSD <= 0 || e.SessionID != one.SessionID || e.Usage.Unpriced {
					t.Errorf("found %v, old %v: %v after %v", found, old, e.CostUSD, one.CostUSD)
				}
			}
		}
	}
}

// TestCostUnknown holds that a usage says so where nobody knows what a killed attempt cost.
func TestCostUnknown(t *testing.T) {
	for _, c := range []struct {
		what     string
		how      func(*os.Process)
		model    string // "" for one with a price
		old      bool
		lost     bool // the transcript is not found
		unpriced bool
	}{
		{"killed", killed, "", false, false, false},
		{"killed, no price", killed, "house-model-1", false, false, true},
		{"ended, no price, but a count", ended, "house-model-1", false, false, false},
		{"ended, no price, an old version", ended, "house-model-1", true, false, true},
		{"killed, no transcript", killed, "", false, true, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := &life{place: newPlace(t, agentcli.Claude)}
			t.Setenv("HOME", t.TempDir())
			t.Setenv("CLAUDE_CONFIG_DIR", map[bool]string{false: l.ConfigDir()}[c.lost])
			l.SetOldCost(c.old)
			for _, torn := range []bool{false, true} {
				l.session = ""
				l.next(middle)
				l.c.Model = c.model
				e := l.end(1, c.how)
				if e.Usage.Unpriced != c.unpriced {
					t.Errorf("it ended with %+v", e.Usage)
				}
				if torn {
					l.tear(e.LogPath)
				}
				if e = l.run(l.again("g")); !e.Success || e.Usage.Unpriced != c.unpriced {
					t.Errorf("then %+v", e)
				}
			}
		})
	}
}

// TestTokens holds that what Codex sums up over a session is counted once, whatever becomes
// of its calls.
func TestTokens(t *testing.T) {
	l := &life{place: newPlace(t, agentcli.Codex)}
	var want int64
	for i, scenario := range []string{"bash a; say b", "say a; servererror", "say a", "overloaded", "bash a; say b; noresult 1", "say c"} {
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
		t.Errorf("%+v of %d calls", u, want)
	}
}
