// Package host is the process of a runner: it registers, holds its lease, executes the runs
// that it is given, drains and leaves. It may import engine/ace, engine/run, engine/runner,
// engine/executor, engine/process, engine/process/filelock, engine/redact, engine/artifact
// and Temporal's SDK.
//
// Order: a run that is given to the runner begins at once; where more are given than it has
// slots, they wait in its queue. Bounds: as many programs as slots, and what an executor
// holds for each. Loss: when the lease is lost, all its programs are ended, since their runs
// may be another's by now; when the process is killed, they are ended by the system or by the
// next process that takes the runner's directory. What they had written is in their logs.
package host
