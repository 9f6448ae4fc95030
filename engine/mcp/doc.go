// Package mcp is the one tool interface to runs: a server of the Model Context Protocol over
// [run.Verbs], for orchestrating agents. The same verbs are commands of cmd/acescope. It may
// import engine/ace, engine/run, engine/runner and the official SDK of the protocol; what a
// run is and how it is executed it does not know.
//
// What a caller did wrong is a tool error in one sentence that says what to do. A run that
// failed is no error of the call: its result says so. A call that waits for the end of a run
// may be given up at any time; the run goes on.
//
// Order: calls are answered as they are done, side by side. Bounds: a prompt has at most
// [run.MaxPrompt] characters, parameters at most [run.MaxParams] bytes, the texts of a
// result together [MaxResult] characters, a wait [MaxWait], a message [MaxMessage] bytes;
// over HTTP at most [MaxRequests] requests are under way. Loss: notices of progress are lost where the client does not read
// them; nothing else is.
package mcp
