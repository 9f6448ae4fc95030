// Package llm makes a provider of ACE's steps out of any language model that can complete
// a conversation: it holds the prompts, reads the answers, runs the loop of tools, and
// says what is wrong in one sentence. Those who talk to a server are a [Completer] each.
//
// What programs write as results of steps is read by the same means: [Written].
//
// It imports engine/model, engine/ace, engine/playbook, engine/price, the arithmetic of
// the built-in provider, and a library that mends JSON.
//
// Order: the tool calls of one turn run at the same time, those of the next after them.
// Bounds: [MaxTurns] turns and [maxCalls] calls a turn of a session, [maxAnswer] bytes of
// an answer, one repair of each; short waits only ([maxWait]): the longer ones are left to
// whoever tries the step again.
// Loss: nothing that a model proposes disappears: operations that are not applied come
// back with their fate, and how an answer was read is in the result's verdict.
package llm
