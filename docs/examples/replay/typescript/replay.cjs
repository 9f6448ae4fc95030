// Replays workflow histories for acescope with the TypeScript SDK's own replayer.
//
//   node replay.cjs WORKFLOWS [OPTIONS]
//
// WORKFLOWS is the module with the workflows, OPTIONS a module that exports further options of the worker, such as
// plugins, interceptors or dataConverter. Run it where node finds the project's @temporalio/worker. A line of
// standard input is a history, a line of standard output its verdict; see docs/guides/replayers.md.
const { createRequire } = require('node:module');
const path = require('node:path');
const readline = require('node:readline');
const inProject = createRequire(path.join(process.cwd(), 'replay.cjs')); // not where this file is
const { Worker, Runtime, DefaultLogger } = inProject('@temporalio/worker');
const { DeterminismViolationError } = inProject('@temporalio/workflow');

// Only answers may be on standard output: what workflows print goes to standard error.
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);
Runtime.install({
  logger: new DefaultLogger('ERROR', (e) => console.error(e.message)),
  telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } }, // else the native part writes there
});

const [workflows, options] = process.argv.slice(2);
const ids = new Map(); // workflow IDs by run ID

async function* histories() {
  for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const { workflow_id: workflowId, run_id: runId, history } = JSON.parse(line);
    ids.set(runId, workflowId);
    yield { workflowId, history };
  }
}

(async () => {
  const settings = { workflowsPath: path.resolve(workflows), ...(options ? inProject(path.resolve(options)) : {}) };
  for await (const { workflowId, runId, error } of Worker.runReplayHistories(settings, histories())) {
    const verdict = !error ? 'deterministic' : error instanceof DeterminismViolationError ? 'nondeterministic' : 'error';
    write(JSON.stringify({ workflow_id: workflowId, run_id: runId, verdict, message: error?.message }) + '\n');
  }
})().catch((e) => {
  console.error(e);
  process.exit(1);
});
