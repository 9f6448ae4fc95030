// Package tui is the shell of the console: the root model, panes, key routing,
// dialogs, header and status line, and the frame clock. It may import sources and
// theme. It routes; it knows no concrete view and does no IO.
//
// Data: the root has exactly one command waiting on [SnapshotSource.Changed]. When
// that fires, the command sleeps out the rest of the frame, takes the newest snapshot
// and hands it over; so at most one snapshot per frame reaches [Model.Update], and
// the newest is never lost. Snapshots in between are skipped on purpose.
//
// Keys: a [Binding] holds key, help and handler in one value. Help and hints are
// generated from the bindings that dispatch. An open dialog takes every key but
// ctrl+c; then come the focused view's bindings, then the global ones. Handlers run
// inside Update and reach the root through [Shell], so a key typed right after
// another finds the dialog that the first one opened.
//
// Drawing: every [View] returns exactly as many lines as it was given, each exactly
// as wide. The drawn frame is kept until something changed, since View runs after
// every message. Text from outside is made safe where it is drawn (package tui/text).
package tui
