// Package host is the process of a runner: it registers, holds its lease, executes the runs
// that it is assigned, drains and leaves. It may import engine/ace, engine/tasks/run,
// engine/tasks/runner, engine/tasks/executor, engine/internal/{process,filelock,redact},
// engine/store/artifact and Temporal's SDK.
//
// Order: an assigned run starts at once; above the number of slots, runs wait in the runner's
// task queue. Bounds: one program per slot, and the executor's buffers for each. Loss: when
// the lease is lost, all programs are ended, since another runner may have their runs. When
// the process is killed, the system ends its programs, or the next process that takes the
// runner's directory does. Their output so far is in their logs.
package host
