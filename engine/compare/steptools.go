package compare

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
)

// tools adds the calls that are known and are no steps yet: those of the session that an
// event ended, or with nil those of one that did not end.
func (s *stepper) tools(e *historypb.HistoryEvent) {
	calls := s.fold.Calls()
	if s.told >= len(calls) {
		return
	}
	var event int64
	if e != nil {
		event = e.GetEventId()
	}
	session := s.session(event)
	whole := s.wholeCalls(session)
	for _, c := range calls[s.told:] {
		if w, ok := whole[c.ID]; ok {
			c.Args, c.Result = w.Args, w.Result
		}
		ident := KindTool + " " + c.Name
		st := Step{Key: s.nth(ident, false), Kind: KindTool, Name: c.Name, Run: s.run, Event: event,
			At: c.At, DurationMS: c.DurationMS, Status: Done, Error: c.Error, error: s.anonymous(c.Error), Input: c.Args, Result: c.Result, ident: ident}
		if session != nil {
			st.Event, st.End, st.Taken = session.Event, session.End, session.Taken
		}
		switch {
		case c.Pending:
			st.Status = Open
		case !c.Accepted:
			st.Status = Denied
		case !c.OK:
			st.Status = Failed
		}
		s.steps = append(s.steps, st)
	}
	s.told = len(calls)
}

// session is the skills session that an event ended, or with 0 the newest; nil where
// there is none. Its result is not compared where the calls in it are.
func (s *stepper) session(ended int64) *Step {
	for i := len(s.steps) - 1; i >= 0; i-- {
		st := &s.steps[i]
		if st.Kind == KindActivity && st.Name == ace.ActivitySkills && st.Run == s.run && (ended == 0 || st.End == ended) {
			st.calls = !s.all
			return st
		}
	}
	return nil
}

// wholeCalls reads the artifact that holds the calls of a session whole, where the history
// has only the beginnings of what they were given.
func (s *stepper) wholeCalls(session *Step) map[string]ace.Invocation {
	var r ace.SkillSessionResult
	if session == nil || !bytes.Contains(session.Result, []byte(`"log"`)) || json.Unmarshal(session.Result, &r) != nil || r.Log == nil {
		return nil
	}
	data, why := []byte(nil), "there is no artifact store here"
	if s.side.Artifact != nil {
		var err error
		if data, err = s.side.Artifact(*r.Log); err == nil {
			why = ""
		} else {
			why = err.Error()
		}
	}
	if why != "" {
		s.notes = append(s.notes, fmt.Sprintf("the artifact with the whole tool calls of event %d cannot be read (%s): of each only the first %d bytes are compared",
			session.End, why, ace.PreviewBytes))
		return nil
	}
	whole := map[string]ace.Invocation{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, MaxPayload)
	for lines.Scan() {
		var c ace.Invocation
		if json.Unmarshal(lines.Bytes(), &c) == nil && c.ID != "" {
			whole[c.ID] = c
		}
	}
	return whole
}
