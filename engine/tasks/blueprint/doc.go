// Package blueprint reads blueprints: directories that describe how an agent or a
// deterministic program is run. It finds them on a search path, reports their problems, fills
// in and checks the parameters of a run by their schema, and creates new blueprints. It may
// import engine/tasks/run, engine/tasks/runner, engine/agents/session, engine/internal/redact,
// the JSON Schema and shellquote libraries and the standard library.
//
// The JSON Schema library checks agent.json, by agent.schema.json, and the parameters; its texts are
// those of the problems.
//
// The files of a blueprint are read within its directory only; links out of it are not
// followed. Nothing is fetched.
//
// Order: results are sorted by name or by place, so that equal files give equal results.
// Bounds: [MaxFile] bytes per file, [MaxBlueprints] directories of a library, [MaxProblems]
// problems of a blueprint and [MaxViolations] of parameters, the rest is counted; JSON has a
// depth of at most maxDepth; filling in and checking take at most maxWork steps for any
// schema. Loss: none; a blueprint with a problem is not loaded at all.
package blueprint
