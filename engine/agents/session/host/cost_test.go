package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"acescope/engine/agents/session"
)

// answers counts the model's answers in the agent's transcript.
func (s *stage) answers() int {
	s.t.Helper()
	data, err := os.ReadFile(s.agent.Transcript(s.work, session.UUID("agent", "run-1")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
	ids := map[string]bool{}
	for line := range bytes.Lines(data) {
		var l struct {
			Type    string
			Message struct{ ID string }
		}
		if json.Unmarshal(line, &l) == nil && l.Type == "assistant" {
			ids[l.Message.ID] = true
		}
	}
	return len(ids)
}

// life runs the turns of a session as its workflow would.
type life struct {
	*stage
	turn  int
	gates int // gates that the agent reached
	subs  int // answers of subagents, which are not in the transcript
	seen  float64
	cost  float64
}

func (l *life) restart() {
	l.Host.Close()
	l.open(Options{})
}

// make runs an attempt of a turn and records its result unless it is lost.
func (l *life) make(text string, attempt int32, lost bool) {
	l.t.Helper()
	in := l.input(l.turn, text)
	in.CostSeen = l.seen
	r, err := l.run(in, attempt)
	if err != nil || r.Status != session.TurnCompleted || r.Usage.Unpriced {
		l.t.Fatalf("turn %d: %+v, %v", l.turn, r, err)
	}
	if !lost {
		l.seen, l.cost = r.CostSeen, l.cost+r.Usage.CostUSD
	}
}

// broken starts a turn and interrupts it with end.
func (l *life) broken(end func()) {
	l.t.Helper()
	in := l.input(l.turn, gated)
	in.CostSeen = l.seen
	p := l.begin(in, 1)
	l.gates++
	l.agent.Await("gate", l.gates)
	end()
	if p.wait(l.t); p.err == nil {
		l.t.Fatalf("turn %d was not interrupted: %+v", l.turn, p.result)
	}
}

// kill kills the agent's process.
func (l *life) kill() {
	l.t.Helper()
	starts := l.agent.Did("start")
	p, err := os.FindProcess(starts[len(starts)-1].PID)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

const (
	plain = "SCENARIO: bash echo a; say b"
	gated = "SCENARIO: bash echo a; bash echo b; gate g; say late"
)

func (l *life) step(what string) {
	l.t.Helper()
	if what == "restart" {
		l.restart()
		return
	}
	if what == "killed while idle" {
		a := l.slots.warm(l.slots.of("s1"))
		l.kill()
		<-a.gone
		return
	}
	l.turn++
	switch what {
	case "turn":
		l.make(plain, 1, false)
	case "subagent":
		l.subs++
		l.make("SCENARIO: subagent", 1, false)
	case "killed":
		l.broken(l.kill)
		l.make(gated, 2, false)
	case "killed, host too":
		l.broken(l.kill)
		l.restart()
		l.make(gated, 2, false)
	case "ended":
		l.broken(l.restart)
		l.make(gated, 2, false)
	case "result lost":
		l.make(plain, 1, true)
		l.restart()
		l.make(plain, 2, false)
	case "result and log lost":
		l.make(plain, 1, true)
		l.restart()
		if err := os.RemoveAll(filepath.Join(l.data, "logs")); err != nil {
			l.t.Fatal(err)
		}
		l.make(plain, 2, false)
	case "ended, then result lost":
		l.broken(l.restart)
		l.make(gated, 2, true)
		l.restart()
		l.make(gated, 3, false)
	case "killed, then result lost":
		l.broken(l.kill)
		l.make(gated, 2, true)
		l.restart()
		l.make(gated, 3, false)
	default:
		l.t.Fatal(what)
	}
}

// TestCostSurvivesCrashes checks that the cost of a session is the cost of its messages, however
// its processes end.
func TestCostSurvivesCrashes(t *testing.T) {
	for _, old := range []bool{false, true} {
		for _, steps := range []string{
			"killed; turn; restart; turn",
			"ended; turn; restart; turn",
			"turn; killed; turn; killed, host too; turn",
			"turn; ended; turn; ended; restart; turn",
			// the transcript's total is older than the reported one
			"turn; restart; turn; killed; turn; restart; turn",
			"turn; restart; turn; killed while idle; turn; ended; turn",
			"turn; restart; turn; killed; ended; killed; turn",
			"turn; restart; turn; killed while idle; killed; killed while idle; turn",
			"result lost; turn; result and log lost; turn; killed; result and log lost; ended; turn",
			"turn; killed, then result lost; turn; ended, then result lost; turn; killed",
			"subagent; restart; subagent; turn; killed; subagent; ended; turn",
			"restart; result and log lost; ended; result lost; killed; turn",
		} {
			name := steps
			if old {
				name += ", an old version"
			}
			t.Run(name, func(t *testing.T) {
				l := &life{stage: newStage(t, "claude")}
				l.agent.SetOldCost(old)
				for what := range strings.SplitSeq(steps, "; ") {
					l.step(what)
					if n := l.answers() + l.subs; !near(l.cost, perAnswer*float64(n)) {
						t.Fatalf("after %q the session costs %v: %.2f answers, want %d", what, l.cost,
							l.cost/perAnswer, n)
					}
				}
			})
		}
	}
}
