// Package sources observes runs and folds what it sees into snapshots. It may import
// engine/ace, engine/temporal/history, engine/learning/playbook, engine/temporal/compare and engine/agents/transcript; it knows
// no terminal.
//
// Order: a snapshot is never older than the one before it. Bounds: the mailbox
// [Store.Changed] has one slot; a list holds what was scrolled through, a detail's
// log at most [MaxLog] lines, problems at most [MaxProblems], playbooks list
// [VersionWindow] versions; a triage looks at as many runs as it is asked for, keeps what
// it learnt of 50,000 of them, and calls the server at most 250 times a second; a [Meter]
// keeps a minute; of transcripts the newest [MaxSessions] are there, of sessions on the engine the newest
// [MaxEngineSessions]. Loss: log lines that
// fall out are counted in [Detail.LogDropped]; a slow reader misses snapshots in
// between, never the newest.
package sources
