// Package views holds the console's screens, one file or family of files each: runs
// (the list), run (the detail of the selected run) and the filter language of the
// query bar. It may import tui, sources, engine/ace and theme.
//
// Views draw snapshots and change nothing themselves. They steer what is observed
// through [Controls], which must return at once, and act on the engine through
// [Actions], which are called inside commands only.
//
// Bounds: the list caches the drawn text of at most a few screens of rows, the detail
// the text of one run. Order: rows are shown as the snapshot has them; the selection
// stays on its run, by workflow id and run id, wherever that moves to; until somebody
// moves or opens a run it follows the newest open one.
package views
