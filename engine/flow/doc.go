// Package flow defines workflows of steps that are declared in a file: it parses and checks the file,
// interprets it as a Temporal workflow on engine/temporal/operation, and folds a run's history to the state
// of its steps. It may import engine/ace, engine/temporal and Temporal's workflow packages.
//
// A run carries the text of its file in its input, so that it is replayed with the file that it began with.
// The language is YAML with expressions in CEL (https://cel.dev), which have no side effects: they see
// inputs, variables, results of earlier steps and the recorded time, and never the environment, files or the
// network.
//
// Order: steps run one after the other, except for branches of parallel and iterations of for_each with
// at_once. Bounds: [MaxSource] bytes of source, [MaxSteps] steps, [MaxDepth] nested blocks, [maxCost] units
// of work per expression, [MaxItems] items per loop, [MaxCarried] bytes of state when a run continues as new.
// A run continues as new between steps and iterations that do not run in parallel. Loss: beyond
// [maxInstances] steps, the state keeps only the number of finished iterations.
package flow
