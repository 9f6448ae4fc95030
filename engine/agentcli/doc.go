// Package agentcli speaks with agent command lines: Claude Code, Codex, Gemini and
// OpenCode. It knows how each is called, what it prints, what its end means, and Claude's
// control protocol, and gives all of it one model. It starts no process and opens no file.
// It imports engine/ace; the engine may import it.
//
// The way of a call: [For] gives the [Adapter] of a CLI; Adapter.Command makes the argument
// vector of a [Call]; what the process prints goes through a [Reader], whose [Event] values
// are shown, and counted by a [Judge]; that says at the end how it went, as an [Outcome]. A
// [Meter] makes of cumulative costs what one turn cost.
//
// Order: events come in the order of their lines, and within a line in that of its blocks.
// Bounds: a line, or an element of an array, is read up to [MaxLine] bytes; of a longer one
// the first [MaxText] bytes are kept and the rest is read past without being held. A reader
// holds one line, the events of one line, and, for CLIs that send texts in parts, one text
// of at most [maxParts] bytes; a parser remembers at most [maxKnown] tool calls and names.
// Loss: nothing is dropped unsaid. What is no JSON, too long or torn comes as an event of
// [KindGarbage]; what is not understood comes as one of [KindOther].
package agentcli
