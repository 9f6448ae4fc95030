// Package ace defines the domain and the contract: the names and payloads by which a worker
// in any language can be observed, and the fold that computes the state of a run from its
// facts.
//
// It imports only the standard library and has no clock, random source or I/O, so workflow
// code may call all of it.
//
// Order: [State.Apply] returns the same state for every order of the tool events and step
// results that reach a workflow together; Temporal's SDKs do not define that order. Facts of
// the same kind keep their order.
// Bounds: a state keeps at most [MaxInvocations] tool calls in detail and counts the rest.
// Payloads are kept as previews of at most [PreviewBytes] bytes.
// Loss: [SkillAnswer.Dropped] counts everything that is dropped.
package ace
