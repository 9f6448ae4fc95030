// Package executor executes one run on this machine: it reads and writes the invocation that
// an executor is given, brings parameters to a program in one of four ways, runs the program
// and says what came of it. It may import engine/ace, engine/run, engine/runner,
// engine/process, engine/redact, engine/artifact and the standard library.
//
// Parameters are data. They are never part of a shell's text, never make a flag of a value,
// and never set a variable that is not named PARAM_…; see [Strategies] in strategies.go.
//
// Order: of each output, lines come in order and before [Executor.Run] returns; between the
// two there is none but that of the log. Bounds: output goes through memory in pieces of
// [maxHeld] bytes to files; [run.MaxCapture] of each is kept, [run.MaxText] stands in the
// result, and what comes after is counted. Loss: what could not be written is counted, and
// the result says so; a result without its output is a failure. Secrets are struck out before
// anything is written.
package executor
