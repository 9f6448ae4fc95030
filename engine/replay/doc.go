// Package replay looks at what a run did without running it again. It verifies that the
// workflow code of today still decides as a recorded history says, and steps through the
// fold of a history, forwards and backwards. It may import engine/ace, engine/history and
// Temporal's API and SDK; the workflow code is handed to it.
//
// Order: a [Verdict] names the first divergence. Bounds: verifying holds one history;
// stepping holds its events and a checkpoint every so many of them. Loss: none; a history
// that cannot be verified gives a verdict that says why.
package replay
