// Package views lists the screens of the console, their order and the keys that work on all of them. Each
// screen is a package of its own. It may import tui, sources, engine/ace and theme.
//
// A view draws the newest values of its feeds and changes nothing itself. It steers the readers through
// [console.Controls], whose methods return at once, and changes runs through [console.Actions], inside
// commands only.
//
// Bounds: a list caches the drawn text of a few screenfuls of rows, a detail pane the text of one run.
// Order: rows are shown in the order of the feed. The selection stays on its run, by workflow ID and run
// ID; until the user moves or opens a run it follows the newest open one.
package views
