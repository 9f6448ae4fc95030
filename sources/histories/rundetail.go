package histories

import "acescope/engine/tasks/run"

// CourseState is what is known of a run of a blueprint.
type CourseState = run.State

// CourseFolder folds the history of a run of a blueprint.
type CourseFolder struct {
	State   run.State
	Decoder run.Decoder
	Foreign error  // why its input is none of a run
	RunID   string // of its workflow, as its first event has it
}
