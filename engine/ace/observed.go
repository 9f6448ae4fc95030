package ace

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// Bounds of what an observer says.
const (
	// MaxStepResult bounds the result of a step that an observer tells, in bytes and without
	// its invocations: what is larger goes by reference.
	MaxStepResult = 2 * InlineBytes
	maxID         = 256
	maxName       = 256
	maxError      = 1 << 10
	maxAnswer     = 4 << 10
)

// ObservedStart is left in the memo of an observed run, so that whoever delivers its
// events can tell whether a run that has closed is the one they belong to.
type ObservedStart struct {
	ID     string `json:"start"` // of what began the run; unique among the runs of a task
	Source string `json:"source,omitempty"`
}

// observed is what the observer of a run said of its course: of each thing the word that
// is newest in his order. The rest of the state follows from it, so that the order in
// which it arrives does not matter.
type observed struct {
	said    []ToolEvent // at most one for each phase, step and the end
	changed bool
	silent  bool // nothing was heard for too long
}

func (o *observed) clone() *observed {
	if o == nil {
		return nil
	}
	c := *o
	c.said = slices.Clone(o.said)
	return &c
}

// Finished tells whether an observed run has ended, by its observer's word or his silence.
func (s *State) Finished() bool {
	return s.observed != nil && (s.observed.silent || slices.ContainsFunc(s.observed.said, func(e ToolEvent) bool { return e.Kind == KindFinish }))
}

// observe begins an observed run, with what it knew when it was continued.
func (s *State) observe(c *Carried) {
	s.Input.Carried = nil // it is kept where it belongs
	s.observed = &observed{changed: true}
	if c != nil {
		s.observed.said = slices.Clone(c.Said)
		s.calls.restore(c)
	}
	s.derive()
}

// event takes an event to where it belongs. In an observed run phases, steps and the end
// are the observer's word; in others they are counted.
func (s *State) event(e ToolEvent) {
	if s.observed == nil {
		s.calls.event(e)
		return
	}
	e.EventID, e.CallID, e.Name, e.Error = shortID(e.EventID), shortID(e.CallID), cutText(e.Name, maxName), cutText(e.Error, maxError)
	if !e.onCourse() {
		s.calls.event(e)
		return
	}
	if s.calls.knows(e.EventID) {
		return
	}
	if !s.calls.full() {
		s.calls.seen.add(e.EventID)
	}
	s.observed.say(s.settled(e))
}

// onCourse tells whether the event says something of the course of a run.
func (e ToolEvent) onCourse() bool {
	_, isStep := activities[Phase(e.Name)]
	switch e.Kind {
	case KindPhase:
		return isStep || Phase(e.Name) == PhaseDone
	case KindStep:
		return isStep
	case KindFinish:
		return true
	}
	return false
}

// settled takes the tool calls out of a session's result, which are kept with all others,
// and refuses a result that is too large to be kept.
func (s *State) settled(e ToolEvent) ToolEvent {
	e.Args = nil
	if e.Kind == KindFinish {
		e.Name = ""
	}
	if e.Kind == KindStep && Phase(e.Name) == PhaseSkills {
		var session SkillSessionResult
		if json.Unmarshal(e.Result, &session) == nil {
			for _, inv := range session.Invocations {
				inv.ID, inv.Name, inv.Error = shortID(inv.ID), cutText(inv.Name, maxName), cutText(inv.Error, maxError)
				s.calls.settle(inv, markOf(e))
			}
			session.Invocations = nil
			e.Result, _ = json.Marshal(session)
		}
	}
	if len(e.Result) > MaxStepResult {
		e.Result, e.Error = nil, fmt.Sprintf("its result has %d bytes, more than %d", len(e.Result), MaxStepResult)
	}
	return e
}

// say keeps the event unless a newer one says the same.
func (o *observed) say(e ToolEvent) {
	at := slices.IndexFunc(o.said, func(old ToolEvent) bool { return old.Kind == e.Kind && old.Name == e.Name })
	if at >= 0 {
		if !markOf(e).takes(markOf(o.said[at])) {
			return
		}
		o.said = slices.Delete(o.said, at, at+1)
	}
	o.said, o.changed = append(o.said, e), true
}

// silent ends an observed run of which nothing was heard for too long.
func (s *State) silent() {
	if s.observed == nil {
		return
	}
	s.observed.silent, s.observed.changed = true, true
	s.derive()
}

// derive works out where an observed run stands from what was said, in the observer's
// order.
func (s *State) derive() {
	if s.observed == nil || !s.observed.changed {
		return
	}
	s.observed.changed = false
	*s = State{Input: s.Input, CancelRequested: s.CancelRequested, ClosedAs: s.ClosedAs, calls: s.calls, observed: s.observed}
	s.begin()
	said := slices.Clone(s.observed.said)
	slices.SortStableFunc(said, func(a, b ToolEvent) int { return markOf(a).compare(markOf(b)) })
	c := course{s: s, implied: true}
	var finish *ToolEvent
	for i, e := range said {
		switch e.Kind {
		case KindPhase:
			c.begins(Phase(e.Name))
		case KindStep:
			c.ends(Phase(e.Name), e)
		case KindFinish:
			finish = &said[i]
		}
	}
	switch {
	case finish != nil:
		c.finish(*finish)
	case s.observed.silent:
		s.Exit = Timeout
		s.Failure = &Failure{Kind: Timeout, Type: TypeSilent, Message: "nothing was heard of it for " + s.Input.Idle().String()}
		c.leave(StatusFailed)
	}
}

// course goes through what was said of a run's steps.
type course struct {
	s       *State
	implied bool // nobody said that the step began at which the run stands
}

// leave is how a step stands that ended without a word.
func (c *course) leave(status string) {
	if st := c.s.step(c.s.Phase); st != nil && st.Status == StatusRunning {
		st.Status = status
		if c.implied {
			st.Status = StatusPending
		}
	}
}

func (c *course) begins(p Phase) {
	if p != c.s.Phase {
		c.leave(StatusDone)
	}
	c.s.enter(p)
	c.implied = false
}

// ends takes over the result of a step. The next one is where the run stands from then
// on, unless it was ahead already.
func (c *course) ends(p Phase, e ToolEvent) {
	s := c.s
	fact := StepCompleted(p, e.Result)
	if e.Error != "" {
		fact = StepFailed(p, Failure{Kind: Failed, Type: TypeObserved, Message: e.Error})
	}
	ahead := slices.Index(Steps(), p) >= slices.Index(Steps(), s.Phase) && s.Phase != PhaseDone
	if ahead && p != s.Phase {
		c.leave(StatusDone)
	}
	if fact.Kind == FactStepFailed {
		s.fail(p, *fact.Failure)
		s.Exit = Running // the observer may try again
		if ahead {
			s.Phase, c.implied = p, false
		}
		return
	}
	s.record(p, fact.Result)
	if ahead {
		s.enter(p.next())
		c.implied = true
	}
}

func (c *course) finish(e ToolEvent) {
	s := c.s
	var f Finish
	_ = json.Unmarshal(e.Result, &f) // what cannot be read says nothing
	if f.Answer != "" {
		s.Answer = cutText(f.Answer, maxAnswer)
	}
	if f.Correct != nil {
		s.Correct = f.Correct
	}
	s.Exit = f.exit(e.Error, s.Correct)
	switch s.Exit {
	case Success, Wrong:
		c.leave(StatusDone)
		s.Phase, s.Failure = PhaseDone, nil
		return
	case Cancelled:
		c.leave(StatusCancelled)
	default:
		c.leave(StatusFailed)
	}
	if e.Error != "" || s.Failure == nil {
		s.Failure = &Failure{Kind: s.Exit, Type: TypeObserved, Message: e.Error}
	}
	if s.Failure.Message == "" {
		s.Failure.Message = "the observer says that it " + map[ExitStatus]string{Failed: "failed", Timeout: "timed out", Cancelled: "was cancelled"}[s.Exit]
	}
}

func (f Finish) exit(failure string, correct *bool) ExitStatus {
	switch f.ExitStatus {
	case Failed, Cancelled, Timeout, Wrong:
		return f.ExitStatus
	case Success:
	default:
		if failure != "" {
			return Failed
		}
	}
	if correct != nil && !*correct {
		return Wrong
	}
	return Success
}

// shortID is the id itself unless it is too long to be kept.
func shortID(id string) string {
	if len(id) <= maxID {
		return id
	}
	return cutText(id, maxID/2) + strconv.FormatUint(hashOf(id), 16)
}

// cutText cuts a text to so many bytes, ending in an ellipsis where it was longer.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := most - len("…")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// ToolEventNow is the place in its observer's order of an event that happens now, behind
// all that came before it: microseconds since 1970, which JSON carries exactly.
func ToolEventNow(now time.Time, last int64) int64 { return max(now.UnixMicro(), last+1) }
