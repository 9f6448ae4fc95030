// Package filed serves histories that were read from files as a Temporal server serves
// those of its runs, so that everything which reads a server reads files too. It may
// import engine/ace, history, historyfile and playbook, and of the server only its
// query language.
//
// [Files] is a set of histories, [Files.Load] reads them, [Files.Client] is a client that
// is answered from the set: nothing is ever dialled. What changes a run is refused.
//
// Order: runs are listed as a server lists them, the open ones first, then by the time they
// closed, the newest first; events as they stand in their file. Bounds: [MaxEvents] events
// are held; the files beyond are not read and [Problem] says so. Loss: of two histories of
// one run the longer is kept; what could not be read is a Problem. Search attributes and
// memo are what the history tells; pending activities are those that it leaves open.
package filed
