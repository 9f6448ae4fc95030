// Package host lets agent sessions live on this machine: it serves their activities
// (claim_session, run_turn, run_session_tool, close_session) and keeps the processes of the
// agent command lines warm between turns. It may import engine/session, engine/agentcli,
// engine/process with its filelock, engine/redact, engine/artifact, engine/transcript,
// engine/price and Temporal's SDK; the engine imports it.
//
// One process of a data directory serves its sessions at a time: the one that holds
// sessions/host.lock there. Where it dies, another that waits for the lock goes on at once.
// The process of an agent holds a lock of its session for as long as it or a child of its
// lives, so that no session ever has two.
//
// Order: turns of a session come one after the other; its events are written to the turn's
// log before anything is made of them. Bounds: Max constants here, in engine/session and in
// engine/artifact. Loss: none of a turn that the agent has ended. After a crash a turn is
// looked for in the logs of its earlier attempts, and then in the agent's own transcript:
// what is found done is not done again, what was begun is gone on with, by a new message.
// What an agent asked the session to do is done at most once: with the process that asked,
// the call is gone, and the agent asks anew.
//
// Costs are what the agent says. Claude Code says, with the end of a turn, what the process
// has cost so far, and the process begins where its transcript's last count is: the turn's
// is the difference. What a process spent that ended in a turn without a word is what it
// counted when it ended, or, where it was killed, the messages of the transcript at list
// prices; a model without a list price makes the usage unpriced.
//
// Secrets that are known from the environment, or look like secrets, are struck out of
// logs, results and requests. The agent and its tools see texts as they are; they are
// passed on in memory only.
package host
