// Package process runs programs for others: with an argument vector and never a shell, an
// environment that names what goes into it, a process group of their own, bounded output,
// and an end that does not hang. It imports the standard library only; everybody may import
// it.
//
// End: when the context is done, or [Process.Stop] is called, the group gets SIGTERM, and
// after the grace SIGKILL. A program that has ended takes its children with it: what is left
// of its group gets the same. Children that left the group cannot be reached; if they hold
// the output open, it is closed before them after [Spec.Drain].
// Order: of each output, what was written comes in order and before [Process.Wait] returns.
// Between standard output and standard error there is none.
// Bounds: a [Tail] keeps the first and the last bytes; a process holds 64 KiB for each of its
// outputs. Writers are called by one goroutine each; while they do not return, the program
// waits.
// Loss: a Tail counts what it has dropped. What comes after the drain is over is lost.
//
// On Windows there are no groups and no SIGTERM: the program alone is ended, at once.
package process
