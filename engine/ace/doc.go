// Package ace is the domain and the contract: what an ACE run is, the names and
// payloads by which any worker can be observed, and the fold that turns the facts
// of a run into what is known of it.
//
// It imports the standard library only and everybody may import it. It holds no
// clock, no random source and no I/O, so workflow code may call all of it.
//
// Order: [State.Apply] gives the same state whatever the order in which tool events
// and step results that reach a workflow together are applied (Temporal's SDKs do
// not promise one); facts of the same kind keep their order.
// Bounds: a state keeps at most [MaxInvocations] tool calls in detail and counts the
// rest; payloads are kept as previews of at most [PreviewBytes] bytes.
// Loss: nothing is dropped without being counted in [SkillAnswer.Dropped].
package ace
