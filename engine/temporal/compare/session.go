package compare

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/internal/plainjson"
)

var callStatuses = map[ace.CallState]string{ace.CallPending: Open, ace.CallOK: Done, ace.CallFailed: Failed,
	ace.CallDenied: Denied}

// addCalls adds steps for new tool calls: those of the skills session that event e completed,
// or of an open session if e is nil. It stops at a number of calls of the run.
func (s *builder) addCalls(e *historypb.HistoryEvent, most int) {
	calls := s.fold.Calls()
	calls = calls[:min(len(calls), most)]
	if s.calls >= len(calls) {
		return
	}
	var event int64
	if e != nil {
		event = e.GetEventId()
	}
	session := s.session(event)
	logged := s.loggedCalls(session)
	for _, c := range calls[s.calls:] {
		if full, ok := logged[c.ID]; ok {
			c.Args, c.Result = full.Args, full.Result
		}
		ident := KindTool + " " + c.Name
		st := Step{
			Key: s.numbered(ident, false), Kind: KindTool, Name: c.Name, Run: s.run, Event: event,
			At: c.At, DurationMS: c.DurationMS, Status: callStatuses[c.State()], Input: c.Args,
			Result: c.Result, Error: c.Error, error: s.anonymous(c.Error), ident: ident,
		}
		if session != nil {
			st.Event, st.End, st.Taken = session.Event, session.End, session.Taken
		}
		s.steps = append(s.steps, st)
	}
	s.calls = len(calls)
}

// session returns the skills session that an event completed, or the newest for 0, or nil. The
// calls in its result are not compared again.
func (s *builder) session(ended int64) *Step {
	for i := range slices.Backward(s.steps) {
		st := &s.steps[i]
		if st.Kind == KindActivity && st.Name == ace.ActivitySkills && st.Run == s.run &&
			(ended == 0 || st.End == ended) {
			st.hasCalls = !s.all
			return st
		}
	}
	return nil
}

// loggedCalls reads the complete tool calls of a session from its artifact, if the history only has previews.
func (s *builder) loggedCalls(session *Step) map[string]ace.Invocation {
	var r ace.SkillSessionResult
	if session == nil || !bytes.Contains(session.Result, []byte(`"log"`)) ||
		json.Unmarshal(session.Result, &r) != nil || r.Log == nil {
		return nil
	}
	var data []byte
	err := errors.New("no artifact store is available")
	if s.side.Artifact != nil {
		data, err = s.side.Artifact(*r.Log)
	}
	if err != nil {
		s.notes = append(s.notes, fmt.Sprintf(
			"the artifact with the tool calls of event %d cannot be read (%v): only the first %d bytes of each are compared",
			session.End, err, ace.PreviewBytes))
		return nil
	}
	logged := map[string]ace.Invocation{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, MaxPayload)
	for lines.Scan() {
		var c ace.Invocation
		if json.Unmarshal(lines.Bytes(), &c) == nil && c.ID != "" {
			logged[c.ID] = c
		}
	}
	return logged
}

// addReused adds the steps that a fork reuses from its original and that the run has reached. Their results
// are in its input. A result that is an artifact is loaded by an activity, which becomes the step; later
// steps follow it.
func (s *builder) addReused(e *historypb.HistoryEvent) {
	f := s.fold.Input.Fork
	if f == nil || f.WorkflowID == "" {
		return
	}
	s.about.Fork = &f.Forked
	for steps := ace.Steps(); s.phase < len(steps)*(1+len(f.Passes)); s.phase++ {
		pass, n := s.phase/len(steps), s.phase%len(steps)
		phase := steps[n]
		now := len(s.fold.Passes)
		if f.StoredResult(pass, phase) != nil &&
			(now < pass || now == pass && s.fold.Steps[n].Status != ace.StatusDone) {
			return
		}
		result := f.InlineResult(pass, phase)
		if result == nil {
			continue
		}
		st := s.once(e, KindActivity, phase.Activity(), "", nil)
		st.Taken = true
		st.Result = result
		if phase == ace.PhaseSkills { // the fold has the calls of later answers too
			s.addCalls(e, s.calls+int(gjson.GetBytes(result, "invocations.#").Int()))
		}
	}
}

// setLoaded changes an activity that loads the result of a reused step into that step, so that both
// runs align.
func (s *builder) setLoaded(st *Step) {
	var in ace.LoadStepInput
	if st.Name != ace.ActivityLoadStep || json.Unmarshal(st.Input, &in) != nil || in.Phase.Activity() == "" {
		return
	}
	st.Name = in.Phase.Activity()
	st.ident = KindActivity + " " + st.Name
	st.Taken = true
	st.Input = nil
	st.Key = s.numbered(st.ident, false)
}

// withoutFork returns an input without its fork, which is compared as steps.
func withoutFork(raw json.RawMessage) json.RawMessage {
	var in struct {
		Fork *ace.Forked `json:"fork"`
	}
	if json.Unmarshal(raw, &in) != nil || in.Fork == nil || in.Fork.WorkflowID == "" {
		return raw
	}
	return without(raw, "fork")
}

// without returns a JSON object without some members. It returns other JSON unchanged.
func without(raw json.RawMessage, names ...string) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return raw
	}
	for _, name := range names {
		delete(all, name)
	}
	out, err := plainjson.Marshal(all)
	if err != nil {
		return raw
	}
	return out
}

// reused returns the usage and duration of reused steps, which belong to the original.
func (s *builder) reused() (used ace.Usage, ms float64) {
	for _, st := range s.fold.Steps {
		if !st.Reused {
			continue
		}
		if st.Usage != nil {
			used = used.Add(*st.Usage)
		}
		if st.Time != nil {
			ms += max(st.Time.DurationMS, 0)
		}
	}
	return used, ms
}
