// Package session is the contract of agent sessions, and their fold: what a session's
// workflow is started with, what can be asked of it, and what is known of it at any
// point of its history. It may import engine/ace and the standard library.
//
// A session is one workflow, "session/<id>" of type [Workflow]. It gives a coding agent
// one turn after another; each turn is one activity on the queue of the machine where the
// agent's files lie. What is known of a session is state = fold(facts), as with a run:
// the workflow answers queries with it, and a reader of the history folds the same.
//
// Order: messages are given to the agent in the order in which they were accepted, and
// come out with rising cursors. Bounds: see the Max constants; what no longer fits is
// counted. Loss: a message that was accepted is kept until the agent has answered it, also
// over continue-as-new; one that came out is kept until it is acknowledged or is older
// than [MaxOut] others.
package session
