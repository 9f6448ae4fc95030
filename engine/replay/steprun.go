package replay

import (
	"fmt"
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/run"
)

// tellRun folds the next event of a run of a blueprint.
func (m *mark) tellRun(e *historypb.HistoryEvent) told {
	fact, ok, err := m.course.Fact(e)
	if !ok {
		return told{foreign: err}
	}
	m.run.Apply(fact)
	if fact.Kind == run.FactTask {
		return told{}
	}
	return told{any: true, work: fact.Kind == run.FactGiven, bad: fact.Failure != nil || fact.Lost != nil || fact.Unmatched != nil || fact.Result != nil && fact.Result.Status == run.Failed}
}

// run lists what can be watched of a run of a blueprint.
func (l *valueList) run(s *run.State) {
	l.put("status", string(s.Status))
	l.put("exit_status", string(s.Exit))
	l.put("blueprint", s.Input.Name())
	l.put("session_id", s.Input.SessionID)
	l.put("try", s.Try)
	if c := s.Claim; c != nil {
		l.put("claim.number", c.Number)
		l.put("claim.runner", c.RunnerID)
		l.put("claim.queue", c.Queue)
	}
	if b := s.Began; b != nil {
		l.put("pid", b.PID)
	}
	for i, m := range s.Moves {
		l.put(fmt.Sprintf("moves.%d", i+1), m.Runner+": "+m.Why)
	}
	if n := s.Stop; n != nil {
		l.put("stop", strings.TrimSpace("asked for by "+n.By+" "+n.Reason))
	}
	if r := s.Result; r != nil {
		l.put("result.status", string(r.Status))
		l.put("result.reason", string(r.Reason))
		l.put("result.error", r.Error)
		l.put("result.output", string(r.Output))
		if r.ExitCode != nil {
			l.put("result.exit_code", *r.ExitCode)
		}
		l.put("result.duration_seconds", r.DurationSeconds)
		l.usage(r.Usage)
	}
	l.put("ignored", s.Ignored)
	l.put("told", s.Told)
}
