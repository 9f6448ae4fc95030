// Package executor executes a run on this machine: it reads and writes the invocation of an
// executor, passes parameters to a program in one of four ways, runs the program and returns
// the result. It may import engine/ace, engine/tasks/{blueprint,run,runner},
// engine/internal/process, engine/internal/redact, engine/store/artifact, shellquote, the
// JSON Schema library and the standard library.
//
// Parameters are data. They are never part of a shell's text, a value never becomes a flag,
// and they only set variables named PARAM_…; see passParameters.
//
// Order: the lines of each output are in order and complete before [Executor.Run] returns;
// lines of different outputs are ordered by the log only. Bounds: outputs are copied to files
// in pieces of maxHeld bytes; [run.MaxCapture] of each is stored, the result has
// [run.MaxText], and the rest is counted. Loss: bytes that could not be written are counted
// and reported; a run whose output is lost fails. Secrets are redacted before anything is
// written.
package executor
