package run

import (
	"cmp"
	"encoding/json"
	"slices"

	"acescope/engine/ace"
	"acescope/engine/session"
)

// null is the output of a run that has none.
var null = json.RawMessage("null")

// outputNone and outputText are values of [Result.OutputIs].
const (
	outputNone = "none"
	outputText = "text"
)

// end ends the run with a result; what the run knows better than its runner is the run's.
func (s *State) end(r Result) {
	r.RunID, r.SessionID = s.Input.RunID, s.Input.SessionID
	if s.Claim != nil {
		r.Runner, r.Claim = s.Claim.RunnerID, s.Claim.Number
	}
	if len(r.Output) == 0 {
		r.Output = null
	}
	if r.OutputIs == "" && r.OutputRef == nil {
		r.OutputIs = outputNone
	}
	s.Status, s.Result = r.Status, &r
	s.Exit = exits[r.Status]
	if r.Reason == Timeout {
		s.Exit = ace.Timeout
	}
	if s.Input.Mode != AsyncCallback || s.Input.ParentSessionID == "" {
		s.Told = ToldNone
	}
}

var exits = map[Status]ace.ExitStatus{Completed: ace.Success, Failed: ace.Failed, Stopped: ace.Cancelled}

func (s *State) fail(reason Reason, why string) {
	s.end(Result{Status: Failed, Reason: reason, Error: why})
}

// stopped ends a run that was asked to stop, or whose time was up, without a result.
func (s *State) stopped(why string) {
	if s.TimedOut && s.Stop == nil {
		s.fail(Timeout, s.outOfTime(why))
		return
	}
	r := Result{Status: Stopped, Error: why}
	if s.Stop != nil && why == "" {
		r.Error = s.Stop.Reason
	}
	s.end(r)
}

func (s *State) outOfTime(why string) string {
	text := "it did not end within " + s.TimeLimit().String()
	if why != "" {
		text += "; " + why
	}
	return text
}

// reasonOf is the reason that a runner gave with a failure.
func reasonOf(kind string) Reason {
	if r := Reason(kind); slices.Contains([]Reason{NotStarted, BadParameters, Timeout, AgentFailed}, r) {
		return r
	}
	return Internal
}

// report ends the run of an agent as its session says.
func (s *State) report(m session.Report) {
	r := Result{Usage: m.Usage, DurationSeconds: m.DurationMS / 1000, Log: m.Log, LogPath: m.LogPath, Turn: m.Turn}
	if m.Text != "" {
		r.Output, r.OutputIs = textOf(m.Text), outputText
	}
	why := ""
	if m.Failure != nil {
		why = m.Failure.Message
	}
	switch {
	case m.Status == session.ReportCompleted:
		r.Status = Completed
	case s.Stop != nil:
		r.Status, r.Error = Stopped, s.Stop.Reason
	case s.TimedOut:
		r.Status, r.Reason, r.Error = Failed, Timeout, s.outOfTime("")
	case m.Status == session.ReportEnded:
		r.Status, r.Reason, r.Error = Failed, SessionEnded, cmp.Or(why, "the session ended before the agent answered")
	case m.Status == session.ReportInterrupted:
		r.Status, r.Reason, r.Error = Failed, AgentFailed, cmp.Or(why, "its turn was interrupted")
	default:
		r.Status, r.Reason, r.Error = Failed, AgentFailed, cmp.Or(why, "the agent's turn failed")
	}
	s.end(r)
}

// textOf is a text as a JSON string.
func textOf(text string) json.RawMessage {
	data, err := json.Marshal(text)
	if err != nil { // no text fails
		return null
	}
	return data
}

// unquoted is the text of a JSON string.
func unquoted(data json.RawMessage) (string, bool) {
	var text string
	err := json.Unmarshal(data, &text)
	return text, err == nil
}
