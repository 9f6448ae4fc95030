// Package fork works out, from the history of a task run, the input of a new run that
// takes over the results recorded before a point and executes anew what comes after it.
// It may import engine/ace, engine/history and Temporal's API types; it does no I/O, so
// that whoever asks "what would a fork do" gets the answer that doing it follows.
//
// Order: results are taken over in the order of the steps, from the first to the one
// before the point. Loss: tool events that were signalled and are not in the session's
// result stay with the original; nothing of the original is changed.
package fork
