// Package run is the contract of blueprint runs: one execution of a blueprint, by an agent or
// by a deterministic program, on a runner that meets its requirements. It may import
// engine/ace, engine/tasks/runner, engine/agents/session, engine/temporal/history, Temporal's
// SDK and the standard library.
//
// A run is one workflow, "run/<run id>" of type [Workflow]: it asks the dispatcher for a
// runner, has the runner execute it, and notifies the parent session when it ends. The state
// of a run is fold(facts): the workflow answers its query with it, and a reader of the
// history folds the same facts.
//
// Order: pending, claimed, running, then exactly one of completed, failed and stopped.
// Bounds: texts are truncated to the Max constants; longer ones are stored as artifacts.
// Loss: a started run always ends in one of the three, whatever process dies, unless its
// workflow is terminated; then the dispatcher notifies the parent.
package run
