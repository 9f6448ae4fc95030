// Package historyfile reads exported workflow histories, whoever wrote them, and writes
// them as a bare Go replayer takes them. It may import Temporal's API types only.
//
// Read are: what "temporal workflow show -o json" and the Web UI write (an object with
// "events", or the bare list of them), the server's response to GetWorkflowExecutionHistory
// as JSON, lists of those, one after the other or one a line, single events one a line,
// and any of it compressed with gzip.
//
// Order: histories come as they stand in the file, events too. Bounds: a file of more than
// [MaxBytes], compressed or not, is refused, and so is one that swells by more than 200
// times when it is decompressed. Loss: fields that this program does not know
// are left out; an event that cannot be read whole is kept as far as its id, time and type,
// and counted in [History.Unread]; a file that breaks off gives what came before the break,
// and an [Error] that says where.
package historyfile
