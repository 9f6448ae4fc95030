// Package runner is the contract of runners and of the dispatcher that gives runs to them:
// what a runner can do, what a run demands, how the two are matched, and what is known of
// all of them at any moment. It may import engine/ace and the standard library.
//
// A runner is a process that executes runs (package engine/run). It registers with a
// workflow of its own, "runner/<id>" of type [Workflow], which holds a lease on it: an
// activity on the runner's queue whose heartbeats tell that the process lives. One workflow
// of type [DispatcherWorkflow] matches runs with runners.
//
// Order: of the runs that a runner can take, it gets the one that asked first. A run that
// no free runner can take holds up nobody else. Bounds: [MaxPending] runs wait at a time and
// [MaxRunners] runners are known; who comes after is refused with a reason. Loss: what the
// dispatcher was told is kept over continue-as-new; a notice that is told twice counts once.
package runner
