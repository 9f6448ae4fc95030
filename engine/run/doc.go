// Package run is the contract of runs: one execution of a blueprint, by an agent or by a
// deterministic program, on a runner that meets its demands. It may import engine/ace,
// engine/runner, engine/session and the standard library.
//
// A run is one workflow, "run/<run id>" of type [Workflow]: it asks the dispatcher for a
// runner, has the runner execute it, and tells the session that asked for it how it ended.
// What is known of a run is state = fold(facts), as with a task: the workflow answers its
// query with it, and a reader of its history folds the same.
//
// Order: pending, claimed, running, and then exactly one of completed, failed and stopped.
// Bounds: texts are cut to the Max constants; what is longer is an artifact. Loss: a run
// that was started ends in one of the three, whatever dies meanwhile, unless its workflow is
// terminated; its parent is told then too, by the dispatcher.
package run
