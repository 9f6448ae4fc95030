package ace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// ObservedExperiment is the experiment of observed agents whose user sets no experiment.
const ObservedExperiment = "observed"

// MaxStepResult bounds the result of a step that an observer reports, in bytes and without its
// invocations. Larger results must be sent by reference.
const MaxStepResult = 2 * InlineBytes

// Bounds of the texts that an observer reports, in bytes.
const (
	maxID     = 256
	maxName   = 256
	maxError  = 1 << 10
	maxAnswer = 4 << 10
)

// ObservedStart is the memo of an observed run. A reporter of events uses it to decide whether its events
// belong to a closed run.
type ObservedStart struct {
	ID        string    `json:"start"` // identifies the run among the runs of a task
	Source    string    `json:"source,omitempty"`
	SessionID string    `json:"session_id,omitempty"` // of the agent
	At        time.Time `json:"at,omitzero"`          // of the first event
}

// observed holds the reported progress of an observed run: for each subject, the last event in
// the observer's order. The state is derived from these, so the order of arrival is irrelevant.
type observed struct {
	reports []ToolEvent // at most one per phase, step, usage and finish
	changed bool
	idle    bool      // the idle timeout fired
	ended   time.Time // the latest [PhaseUsage.EndedAt]
}

func (o *observed) clone() *observed {
	if o == nil {
		return nil
	}
	c := *o
	c.reports = slices.Clone(o.reports)
	return &c
}

// Finished reports whether an observed run ended: its observer finished it or was idle too long.
func (s *State) Finished() bool {
	if s.observed == nil {
		return false
	}
	finish := func(e ToolEvent) bool { return e.Kind == KindFinish }
	return s.observed.idle || slices.ContainsFunc(s.observed.reports, finish)
}

// observe starts an observed run, with the state that it carried over.
func (s *State) observe(c *Carried) {
	s.Input.Carried = nil // it is restored below and no longer needed
	s.observed = &observed{changed: true}
	if c != nil {
		s.observed.reports = slices.Clone(c.Reports)
		s.restore(c)
	}
	s.derive()
}

// toolEvents applies tool events. Only in observed runs do phases, steps and the finish define the progress;
// in other runs they are counted.
func (s *State) toolEvents(f Fact) {
	s.unreadable += f.Unreadable
	for _, e := range f.Events {
		if s.observed == nil {
			s.event(e)
		} else {
			s.observed.event(e, &s.ToolCalls)
		}
	}
	s.derive()
}

// event keeps a report, and applies other events to the tool calls.
func (o *observed) event(e ToolEvent, calls *ToolCalls) {
	e.EventID = shortID(e.EventID)
	e.CallID = shortID(e.CallID)
	e.Name = truncate(e.Name, maxName)
	e.Error = truncate(e.Error, maxError)
	if !e.isProgress() {
		calls.event(e)
		return
	}
	if calls.knows(e.EventID) {
		return
	}
	if !calls.full() {
		calls.seen.add(e.EventID)
	}
	o.report(normalize(e, calls))
}

// isProgress reports whether the event is a valid phase, step, usage or finish.
func (e ToolEvent) isProgress() bool {
	isStep := Phase(e.Name).Activity() != ""
	switch e.Kind {
	case KindPhase:
		return isStep || Phase(e.Name) == PhaseDone
	case KindStep, KindUsage:
		return isStep
	}
	return e.Kind == KindFinish
}

// normalize moves the tool calls of a session's result out of the event, and drops a result that is too
// large.
func normalize(e ToolEvent, calls *ToolCalls) ToolEvent {
	e.Args = nil
	if e.Kind == KindFinish {
		e.Name = ""
	}
	if e.Kind == KindStep && Phase(e.Name) == PhaseSkills {
		var session SkillSessionResult
		if json.Unmarshal(e.Result, &session) == nil {
			for _, inv := range session.Invocations {
				inv.ID = shortID(inv.ID)
				inv.Name = truncate(inv.Name, maxName)
				inv.Error = truncate(inv.Error, maxError)
				calls.setResult(inv, markOf(e))
			}
			session.Invocations = nil
			e.Result, _ = json.Marshal(session)
		}
	}
	if len(e.Result) > MaxStepResult {
		e.Error = fmt.Sprintf("its result has %d bytes, more than %d", len(e.Result), MaxStepResult)
		e.Result = nil
	}
	return e
}

// report keeps the event unless a newer one of the same subject is known.
func (o *observed) report(e ToolEvent) {
	at := slices.IndexFunc(o.reports, func(old ToolEvent) bool {
		return old.Kind == e.Kind && old.Name == e.Name
	})
	if at >= 0 {
		if !markOf(e).supersedes(markOf(o.reports[at])) {
			return
		}
		o.reports = slices.Delete(o.reports, at, at+1)
	}
	o.reports = append(o.reports, e)
	o.changed = true
}

// timeOut ends an observed run after its idle timeout.
func (s *State) timeOut() {
	if s.observed != nil {
		s.observed.idle = true
		s.observed.changed = true
		s.derive()
	}
}

// derive computes the progress of an observed run from its reports, in the observer's order.
func (s *State) derive() {
	if s.observed == nil || !s.observed.changed {
		return
	}
	s.observed.changed = false
	*s = State{Input: s.Input, Unread: s.Unread, ToolCalls: s.ToolCalls, observed: s.observed,
		Execution: Execution{CancelRequested: s.CancelRequested, ClosedAs: s.ClosedAs}}
	s.begin()
	defer s.closeSteps()
	reports := slices.Clone(s.observed.reports)
	slices.SortStableFunc(reports, func(a, b ToolEvent) int { return markOf(a).compare(markOf(b)) })
	p := progress{s: s, implied: true}
	s.observed.ended = time.Time{}
	var finish *ToolEvent
	for i, e := range reports {
		switch e.Kind {
		case KindPhase:
			p.enter(Phase(e.Name))
		case KindStep:
			p.endStep(Phase(e.Name), e)
		case KindUsage:
			p.use(Phase(e.Name), e)
		case KindFinish:
			finish = &reports[i]
		}
	}
	if p.used {
		s.Usage = Usage{}
		for _, st := range s.Steps {
			if st.Usage != nil {
				s.Usage = s.Usage.Add(*st.Usage)
			}
		}
	}
	switch {
	case finish != nil:
		p.finish(*finish)
	case s.observed.idle:
		s.Reported = TimedOut
		message := "no event received for " + s.Input.Idle().String()
		s.Failure = &Failure{Kind: TimedOut, Type: TypeIdleTimeout, Message: message}
		p.leave(StatusFailed)
	}
}

// progress replays the reports of an observed run.
type progress struct {
	s       *State
	implied bool // no event reported the start of the current step
	used    bool // an event reported the usage of a phase
}

// leave sets the status of the current step if it ended without a report.
func (p *progress) leave(status string) {
	if st := p.s.step(p.s.Phase); st != nil && st.Status == StatusRunning {
		st.Status = status
		if p.implied {
			st.Status = StatusPending
		}
	}
}

func (p *progress) enter(phase Phase) {
	if phase != p.s.Phase {
		p.leave(StatusDone)
	}
	p.s.enter(phase)
	p.s.scheduled |= stepBit(phase)
	p.implied = false
}

// endStep applies the result of a step. The run then enters the next phase unless it is already
// past that.
func (p *progress) endStep(phase Phase, e ToolEvent) {
	s := p.s
	fact := StepCompleted(phase, e.Result)
	if e.Error != "" {
		fact = StepFailed(phase, Failure{Kind: Failed, Type: TypeObserved, Message: e.Error})
	}
	forward := !s.isPast(phase)
	if forward && phase != s.Phase {
		p.leave(StatusDone)
	}
	if fact.Kind == FactStepFailed {
		s.fail(phase, *fact.Failure)
		s.Reported = Running // the observed program may retry
		if forward {
			s.Phase = phase
			p.implied = false
		}
		return
	}
	s.record(fact)
	if forward {
		s.enter(phase.next())
		p.implied = true
	}
}

// use sets the usage and the time of a phase, which the result of its step replaces.
func (p *progress) use(phase Phase, e ToolEvent) {
	var u PhaseUsage
	if json.Unmarshal(e.Result, &u) != nil {
		return // ignore an unreadable usage
	}
	p.used = true
	p.s.Input.Model = cmp.Or(truncate(u.Model, maxName), p.s.Input.Model)
	step := p.s.step(phase)
	step.Usage = &u.Usage
	if !u.StartedAt.IsZero() {
		took := float64(u.EndedAt.Sub(u.StartedAt)) / float64(time.Millisecond)
		step.Time = &StepTime{StartedAt: u.StartedAt, DurationMS: max(took, 0)}
	}
	if u.EndedAt.After(p.s.observed.ended) {
		p.s.observed.ended = u.EndedAt
	}
}

func (p *progress) finish(e ToolEvent) {
	s := p.s
	var f Finish
	_ = json.Unmarshal(e.Result, &f) // an unreadable result counts as empty
	if f.Answer != "" {
		s.Answer = truncate(f.Answer, maxAnswer)
	}
	if f.Correct != nil {
		s.Correct = f.Correct
	}
	status, verdict := f.ExitStatus.Split()
	if verdict == Wrong && s.Correct == nil {
		s.Correct = new(bool)
	}
	switch {
	case status != "" && status != Running:
		s.Reported = status
	case e.Error != "":
		s.Reported = Failed
	default:
		s.Reported = Completed
	}
	message := "the observer reported a failure"
	switch s.Reported {
	case Completed:
		p.leave(StatusDone)
		s.Phase = PhaseDone
		s.Failure = nil
		return
	case Canceled:
		p.leave(StatusCanceled)
		message = "the observer reported a cancellation"
	case TimedOut:
		p.leave(StatusFailed)
		message = "the observer reported a timeout"
	default:
		p.leave(StatusFailed)
	}
	if e.Error != "" || s.Failure == nil {
		s.Failure = &Failure{Kind: s.Reported, Type: TypeObserved, Message: e.Error}
	}
	s.Failure.Message = cmp.Or(s.Failure.Message, message)
}

// shortID returns the ID, or if it is too long its beginning and its hash.
func shortID(id string) string {
	if len(id) <= maxID {
		return id
	}
	return truncate(id, maxID/2) + strconv.FormatUint(hashOf(id), 16)
}

// truncate truncates text to at most n bytes, including an ellipsis.
func truncate(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return Cut(text, n-len("…"))
}
