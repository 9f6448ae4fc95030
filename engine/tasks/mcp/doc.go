// Package mcp serves [run.Service] as tools of the Model Context Protocol, for orchestrating
// agents. The commands of cmd/acescope do the same for users. It may import engine/ace,
// engine/tasks/run, engine/tasks/runner, engine/tasks/blueprint, the official SDK of the protocol
// and the JSON Schema library.
//
// A mistake of the caller is a tool error: one sentence that says what to do. A failed run is
// not an error of the call: its result says so. A call that waits for a run may be canceled at
// any time; the run continues.
//
// Order: calls are answered concurrently. Bounds: a prompt has at most [run.MaxPrompt]
// characters, parameters [run.MaxParams] bytes, the texts of a result together [MaxResult]
// characters, a wait [MaxWait], a message [MaxMessage] bytes, and HTTP serves [MaxRequests]
// requests at a time. Loss: progress notifications are lost if the client does not read them.
package mcp
