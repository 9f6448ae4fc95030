package sources

import (
	"fmt"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/sources/histories"
	"acescope/sources/runners"
)

// foldCourse folds the next event of a run of a blueprint, and logs what it tells.
func (w *watcher) foldCourse(e *historypb.HistoryEvent) {
	c := w.course
	before := c.State
	fact, ok, err := c.Decoder.Fact(e)
	if err != nil {
		c.Foreign = err
	}
	if !ok {
		return
	}
	c.State.Apply(fact)
	for _, l := range runners.CourseNews(&before, &c.State) {
		l.Event, l.At = e.GetEventId(), e.GetEventTime().AsTime()
		w.line(l)
	}
}

// takeCourse takes over what the fold says of a run of a blueprint.
func (w *watcher) takeCourse() {
	s, d := w.course.State, &w.detail
	if w.course.Foreign != nil {
		d.Err = fmt.Sprintf("the input of this run is not the contract's: %v", w.course.Foreign)
	}
	d.Course = &s
	d.Phase = ace.PhaseAnswer{Phase: ace.Phase(s.Status), ExitStatus: histories.StatusOf(s.Exit, d), Steps: runners.CourseSteps(&s, d.Start, d.Close)}
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
