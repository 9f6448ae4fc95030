// Package logfile follows log files: given ones, and those of directories. It is a leaf:
// it imports nothing of acescope and knows no terminal.
//
// Watching: directories are watched with fsnotify; nothing is polled. For a file that is
// not there the nearest existing parent is watched. Where the system gives no watch (too
// many of them, a file system without) everything is looked at every [PollEvery] instead,
// and an event says so. When the system lost notices, everything is looked at again. A
// directory is looked into [Options.Depth] levels deep, hidden directories and symbolic
// links to directories below it left out; of its files those whose names match
// [Options.Match] are followed, at most [MaxFiles], the newest.
//
// What happens to a file: appended, its new lines are read. Renamed, the rest of it is
// read under its old name, and what a writer still adds to it, until the next renaming;
// the new file of the old name is read from its start. Renamed to a name that is followed
// too, it goes on there. Emptied (also where it has grown past the old place since, which
// the last bytes read tell), it is read from its start. Removed, its rest is read and it
// is waited for. Two names of one file are followed once.
//
// Order: the lines of a file come in its order; between files there is none. One goroutine
// reads and calls the [Handler].
//
// Bounds: a buffer of 256 KiB for all files, and for each file a line whose end is not
// there, at most [Options.MaxLine]; what a line has beyond that is dropped and counted in
// [Line.Cut]. Nothing is kept. Loss: none but that. A handler that is slow holds the
// reading up (back-pressure); files keep what was not read yet. Only what is removed or
// emptied before it was read is lost, as for every follower of files.
//
// A last line without an end is given as [Line.Partial] where [Options.Partial] asks for
// it, and again when it has grown or ended; when its end can no longer come, it is given
// as [Line.Torn]. Text is as it stands in the file: any bytes, made safe by whoever draws
// them.
package logfile
