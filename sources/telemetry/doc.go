// Package telemetry exports what happens in a namespace: metrics for Prometheus, and traces over OTLP. Only
// cmd imports it. Both are off by default.
//
// It reads closed runs from the server, as the console does: their rows from visibility and their histories.
// Another way would be to record from the code that executes runs. That would miss the runs of workers in
// other languages and count a step once for each of its replays and retries; a history has the runs of all
// workers, and each step once. Workers do nothing for telemetry, so it cannot slow or fail a run. The price
// is that a run appears when it closes.
//
// A metric therefore describes the namespace, not the process: two processes that export the same namespace
// give the same figures, so that a query over both takes their maximum, not their sum.
//
// Order and loss: runs are exported in the order in which they closed, each event in the run that wrote it.
// The position of the reader is a file in the data directory, so that a process continues where it or its
// predecessor stopped, at most [maxCatchUp] back. A process that is killed may omit the runs that it was
// exporting, and never counts a run twice. Traces wait in a bounded queue while the collector cannot be
// reached; the oldest are dropped, and counted by acescope_telemetry_spans_dropped_total.
//
// Bounds of labels: workflow types, steps, tools, models and task queues are named by code, but not by this
// code. A label has at most [maxLabelValues] values; further ones become [otherValue]. No label holds an
// experiment, a data set, a task or a run, except that acescope_playbook_bullets names the [maxBranches]
// branches that changed last.
//
// Spans hold no prompts, answers, arguments, results or messages of failures, which may contain secrets.
// Their names and attributes are those of the OpenTelemetry semantic conventions, version 1.41.0.
package telemetry
