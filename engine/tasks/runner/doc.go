// Package runner is the contract of runners and of the dispatcher that assigns runs to them:
// the requirements of runs, the capabilities of runners, how they are matched, and the state
// of both workflows. It may import engine/ace and the standard library.
//
// A runner is a process that executes runs (package engine/tasks/run). It registers with a
// workflow of its own, "acescope-runner/<id>" of type [Workflow], which holds a lease on it: an
// activity on the runner's queue whose heartbeats show that the process is alive. One
// workflow of type [DispatcherWorkflow] matches runs with runners.
//
// Order: a runner gets the oldest of the waiting runs that it can execute. A run that no free
// runner can execute does not block the others. Bounds: [MaxPending] runs wait and
// [MaxRunners] runners are known at a time; more are refused with a reason. Loss: the
// dispatcher keeps its state over continue-as-new; a repeated notice counts once.
package runner
