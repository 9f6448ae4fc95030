// Package operation is the boundary between workflow code, which is replayed, and side
// effects, which happen once: a small API over a workflow's context. It may import
// engine/ace, engine/history and Temporal's API and SDK.
//
// The workflow's side ([Runner]) gives operations ids that are the same in every replay,
// runs them as activities, and offers time, random values, variables and versions. The
// worker's side ([Handlers]) runs what was asked for, records the result as JSON and may
// take it from a [Cache]. [Project] reads a history as operation events, whoever wrote it.
// [Mock] stands in for the worker's side in tests.
//
// Order: results of a batch come in the order of its operations. Bounds: parameters and
// recorded results have at most [MaxInline] bytes, what is larger goes by reference; a
// batch has at most [MaxBatch] operations, [MaxWindow] at a time; a [FileCache] has a size.
// Loss: a result is recorded once. A worker that dies in the middle of an operation leaves
// it to the next one, which is given the same [Call.Key], so that the effect can be made
// once too. Notes on what happened between operations are dropped and counted beyond
// [MaxNotes].
package operation
