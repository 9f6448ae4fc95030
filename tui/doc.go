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
// Commands: ":" takes screens, the shell's own commands, those of the views and every
// action whose key works, by name. Lists of what may be meant come from what would run.
//
// What a view can do beyond [View] the shell finds by small interfaces: [Copier],
// [Commander], [Wheeler], [Clicker], [Keeper].
//
// Bounds: 100 past errors besides those of the snapshot, 50 lines of history a prompt and
// 16 prompts, and what [MaxKept] and [MaxKeptBytes] say of a view's state. [Options.Save]
// gets the state every 3 s at most. In a console that only reads, bindings and commands
// that mutate neither dispatch nor show.
//
// Drawing: every [View] returns exactly as many lines as it was given, each exactly
// as wide. The drawn frame is kept until something changed, since View runs after
// every message. Text from outside is made safe where it is drawn (package tui/text).
package tui
