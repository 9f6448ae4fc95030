// Package artifact keeps payloads that are too big for a history, each in a file
// named by the SHA-256 of its content.
//
// It owns one directory: ab/<sha256> for what is kept (ab being the first two digits)
// and tmp for what is being written. It imports engine/ace and the standard library;
// the engine and the commands may import it.
//
// Order: a [ace.Ref] is returned only when its content is on disk under its name, so
// whoever is told of a reference can read it. Several processes and goroutines may use
// one directory; nothing is ever changed in place, so there is no lock.
// Bounds: contents are streamed, never held whole, except by [Store.Get], which has a
// limit. Opening a store looks at no more than [sweepLimit] leftovers.
// Loss: none. A failed or killed Put leaves nothing under a final name; its temporary
// file goes with the error, or after a day.
//
// [Logs] are the other kind of file: JSON lines below logs/ of the data directory, written
// while something happens so that others follow it, and sealed at its end: read-only, with a
// digest, and an artifact under a second name. A log that lacks lines has an empty file
// beside it whose name ends with .incomplete; one that may still be written has write
// permission.
package artifact
