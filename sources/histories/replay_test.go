package histories

import (
	"slices"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/stepper"
	"acescope/engine/temporal/replay/replaytest"
)

// A wrong run is shown where its answer became wrong. The next error after the last one is the first.
func TestStepsToWrongAnswer(t *testing.T) {
	w := NewWalk(replaytest.WrongTask(), nil, nil)
	errors := w.Marks(stepper.ByError)
	if at := w.Start(true); at != w.WrongAt() || !slices.Contains(errors, at) || at == errors[0] {
		t.Fatalf("starts at %d, errors %v", at, errors)
	}
	if at := w.Start(false); at != w.Len() {
		t.Errorf("an open run starts at %d of %d", at, w.Len())
	}
	r := &stepReader{stepper: w, pos: w.Len()}
	r.move(stepper.ByError, true)
	if r.pos != errors[0] || r.out.Message == "" {
		t.Errorf("position %d, message %q", r.pos, r.out.Message)
	}
	r.move(stepper.ByError, false)
	if r.pos != errors[0] || r.out.Message == "" {
		t.Errorf("position %d, message %q", r.pos, r.out.Message)
	}
	r.toWrong()
	if r.pos != w.WrongAt() {
		t.Errorf("position %d", r.pos)
	}
}

// Messages of a run without a wrong answer say so.
func TestNoWrongAnswer(t *testing.T) {
	r := &stepReader{stepper: NewWalk(replaytest.Recorded(t, "right"), nil, nil), pos: 1}
	r.toWrong()
	if r.pos != 1 || r.out.Message == "" {
		t.Errorf("position %d, message %q", r.pos, r.out.Message)
	}
}

// A step beyond the last tool call is named as the workflow type calls it.
func TestNameOfToolSteps(t *testing.T) {
	for name, want := range map[string]string{"right": "no later tool call", "experiment": "no later task",
		"flow-loop": "no later operation"} {
		w := NewWalk(replaytest.Recorded(t, name), nil, nil)
		r := &stepReader{stepper: w, pos: w.Len()}
		r.move(stepper.ByTool, true)
		if r.out.Message != want {
			t.Errorf("%s: %q, want %q", name, r.out.Message, want)
		}
	}
}

// The page of a run has a file name that every file system takes.
func TestPageFile(t *testing.T) {
	for id, want := range map[string]string{ace.TaskIDPrefix + "q-1~f2": "ace-q-1~f2.html",
		"../../etc": "------etc.html"} {
		if got := pageFile(id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}
