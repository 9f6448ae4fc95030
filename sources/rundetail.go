package sources

import (
	"fmt"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/history"
	"acescope/engine/run"
)

// CourseState is what is known of a run of a blueprint.
type CourseState = run.State

// courseFolder folds the history of a run of a blueprint.
type courseFolder struct {
	state   run.State
	decoder history.RunDecoder
	foreign error  // why its input is none of a run
	runID   string // of its workflow, as its first event has it
}

// foldCourse folds the next event of a run of a blueprint, and logs what it tells.
func (w *watcher) foldCourse(e *historypb.HistoryEvent) {
	c := w.course
	before := c.state
	fact, ok, err := c.decoder.Fact(e)
	if err != nil {
		c.foreign = err
	}
	if !ok {
		return
	}
	c.state.Apply(fact)
	for _, l := range courseNews(&before, &c.state) {
		l.Event, l.At = e.GetEventId(), e.GetEventTime().AsTime()
		w.line(l)
	}
}

// takeCourse takes over what the fold says of a run of a blueprint.
func (w *watcher) takeCourse() {
	s, d := w.course.state, &w.detail
	if w.course.foreign != nil {
		d.Err = fmt.Sprintf("the input of this run is not the contract's: %v", w.course.foreign)
	}
	d.Course = &s
	d.Phase = ace.PhaseAnswer{Phase: ace.Phase(s.Status), ExitStatus: statusOf(s.Exit, d), Steps: CourseSteps(&s, d.Start, d.Close)}
	d.Input = ace.TaskInput{TaskID: d.WorkflowID, Prompt: s.Input.Prompt}
	if b := s.Input.Blueprint; b != nil {
		d.Input.Model = b.Model
	}
	if r := s.Result; r != nil {
		d.Phase.Usage = r.Usage
		if r.Status == run.Failed {
			d.Phase.Failure = &ace.Failure{Kind: s.Exit, Type: string(r.Reason), Message: r.Error}
		}
	}
}
