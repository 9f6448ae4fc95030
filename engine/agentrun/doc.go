// Package agentrun calls an agent's command line once and leaves a log of it: it makes the
// command, starts the process under supervision, writes every event to a live log as it
// comes, with secrets struck out, and judges the end. It knows no Temporal; activities and
// the provider of ACE's steps call it. It may import engine/ace, engine/agentcli,
// engine/process, engine/redact, engine/artifact, engine/transcript and engine/session (for
// identities).
//
// A call that is tried again finds what its earlier attempts did: in their logs, where the
// agent's own result may be, and in the agent's transcript. What was done is not done again:
// its result is given; what was broken off is gone on with in the same session. The cost and
// the tokens of an end are those of all attempts.
//
// Order: events are handed on, and logged, in the order of the agent's output.
// Bounds: one line of output at a time ([agentcli.MaxLine]); the log has [artifact.MaxLog]
// bytes at most, standard error [stderrKept] twice.
// Loss: where the log cannot be written any more, the call ends with [ClassLogBroken] and the
// log is marked as incomplete; what was written before stays.
package agentrun
