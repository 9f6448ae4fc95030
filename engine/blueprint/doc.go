// Package blueprint reads blueprints: the directories that say how an agent or a
// deterministic program is run. It finds them on a search path, says what is wrong with
// them, fills in and checks the parameters of a run by their schema, and makes new ones. It
// runs nothing: how parameters reach a program is the executor's part. It may import
// engine/run, engine/runner, engine/session, engine/redact, the JSON Schema and shell-quoting libraries and
// the standard library.
//
// A blueprint's files are read within its directory only: no name and no link leads out of
// it. Nothing is ever fetched.
//
// Order: what a call returns is sorted, by name or by place, so that the same files give the
// same answer. Bounds: [MaxFile] bytes a file, [MaxBlueprints] directories of a library,
// [MaxProblems] problems of a blueprint and [MaxViolations] of parameters, the rest counted;
// JSON is at most maxDepth deep; filling in and checking cost at most maxWork steps, whatever
// the schema is. Loss: none; a blueprint that is not right in every part is not loaded at all.
package blueprint
