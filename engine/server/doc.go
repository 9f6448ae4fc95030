// Package server runs a real Temporal server inside the process, on SQLite in a
// data directory, and lets any number of processes of one user share it.
//
// It owns the data directory's server files: host.lock, endpoint.json, format.json,
// token, port, temporal.db (with its -wal and -shm) and logs/server.log. It imports
// engine/ace, the Temporal server and SDK, and nothing else of acescope; cmd and the
// engine's other packages may import it.
//
// Hosting: [Join] takes an exclusive lock on host.lock. Whoever gets it hosts, the
// others attach through endpoint.json. The lock belongs to the process, so the
// operating system frees it however the process ends; an attached [Node] then takes
// it, starts a server on the same data and, when it can, on the same port. At no
// time do two servers work on one database.
//
// Order and loss: every state change of a workflow is in SQLite's write-ahead log
// before the server acknowledges it. That survives the end of the process, a kill -9
// included; after a power cut the last instants before it may be missing, and the
// database is still sound. Clients from [Node.ClientOptions] find the new host by
// themselves; calls in flight at the change fail or are retried by the SDK.
//
// Bounds: waiting for a host is limited by the context and by [Options.StartTimeout];
// [Node.Close] by its context and [closeTimeout]; the log by three files of 10 MB.
//
// Who gets in: only holders of the token, a file that only its user can read. The
// ports between the server's own services ask for a certificate that exists in this
// process's memory alone. Everything listens on 127.0.0.1.
package server
