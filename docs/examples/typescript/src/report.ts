/** Reports a run that happens outside Temporal: node lib/report.js TASK-ID. acescope's worker must run. */
import { observer } from './observer';

async function main(taskId: string): Promise<void> {
  const ace = observer({ enabled: true }); // enabled: from your configuration
  const run = ace.start({
    task_id: taskId,
    prompt: 'What is 3 dozen?',
    model: 'lookup',
    experiment_id: 'report',
  });
  run.step('generator', {
    plan: 'multiply by 12',
    prompt_tokens: 6,
    completion_tokens: 4,
    trajectory_id: 't1',
  });
  const call = run.toolUse('multiply', { amount: 3, factor: 12 });
  run.toolResult(call, 36, { duration_ms: 0.1 });
  run.slashCommand('/review');
  const operation = { type: 'ADD', section: 'CONVERSIONS', content: '1 dozen = 12' };
  run.step('curator', { accepted: [operation], rejected: [], rationale: 'a new unit' });
  run.finish({ answer: '36', correct: true });
  process.exitCode = (await ace.close()) === 0 ? 0 : 1;
  process.exit(); // the connection to Temporal keeps the process alive
}

void main(process.argv[2]);
