// Package playbook holds what a learning loop has learnt: bullets, the operations that
// change them, and every version that there ever was.
//
// It owns the canonical form and its hash, the merge rules ([Apply]), the text and JSON
// formats in the field ([Parse], [WriteText], [WriteSkillbook]), a directory of
// versions ([Store]), and what can be said about them: what differs ([Diff]), who wrote
// each bullet ([History]), and what is wrong ([Check]). It imports engine/ace, the standard library and a file lock; the
// engine, sources and commands may import it.
//
// Order: a branch is one line of versions. Merges into it take turns, in all processes,
// and each applies to the newest head. Operations apply in the order given.
// Bounds: a bullet that is merged has at most [MaxContent] bytes, a merge [MaxOperations]
// operations, a file that is parsed [MaxFile] bytes and [MaxLine] bytes a line; a store
// keeps [cachedBooks] books and, for each version, some two hundred bytes in memory; a
// history keeps [MaxTouches] changes of each bullet there is, and counts the others.
// Loss: a merge that has returned is on disk. One that was cut short is there whole or
// not at all, and merging it again under the same delta id never applies it twice.
// No operation disappears: each comes back with its fate.
package playbook
