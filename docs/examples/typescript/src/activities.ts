/** The activities: replace them by calls of your models. */
import { activityInfo } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { TemporalObserver } from './observer';

// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Json = Record<string, any>;

export const observer = new TemporalObserver();

export async function run_generator({ task, prompt, bullets }: Json): Promise<Json> {
  const [, amount, unit] = /(\d+) (\w+)/.exec(prompt) ?? [];
  // Another attempt would not find one either.
  if (!unit) throw ApplicationFailure.nonRetryable('no amount and unit in the prompt', 'BadPrompt');
  const known = bullets.filter((b: Json) => b.content.startsWith(`1 ${unit} = `));
  const factor = known.length > 0 ? Number(known[0].content.split('= ')[1]) : 1;
  return {
    prompt_tokens: 0,
    completion_tokens: 0,
    trajectory_id: task.task_id,
    plan: `multiply by ${factor}` + (known.length > 0 ? '' : ', a guess'),
    program: { amount: Number(amount), unit, factor },
    bullet_ids: known.map((b: Json) => b.id),
  };
}

export async function run_skills_session({ program }: Json): Promise<Json> {
  const { workflowExecution, attempt } = activityInfo();
  const run = observer.attach(workflowExecution!.workflowId, workflowExecution!.runId);
  const args = { amount: program.amount, factor: program.factor };
  const call = run.toolUse('multiply', args, `skills-${attempt}.1`);
  const product = args.amount * args.factor;
  run.toolResult(call, product, { name: 'multiply' });
  const invocation = {
    id: call,
    name: 'multiply',
    args,
    result: product,
    accepted: true,
    ok: true,
    duration_ms: 0,
  };
  return { invocations: [invocation], answer: String(product) };
}

export async function run_reflector({ program, bullet_ids, answer, label }: Json): Promise<Json> {
  if (label === undefined) return { insights: 'There is no label.' };
  const correct = answer === label;
  return {
    insights: correct ? 'The answer is right.' : `${answer} is wrong, ${label} is right.`,
    bullet_tags: bullet_ids.map((id: string) => ({ id, tag: correct ? 'helpful' : 'harmful' })),
    correct,
    findings: { unit: program.unit, factor: Math.floor(Number(label) / program.amount) },
  };
}

export async function run_curator({ insights, bullet_tags, findings, correct }: Json): Promise<Json> {
  const accepted: Json[] = (bullet_tags ?? []).map((t: Json) => ({
    type: 'TAG',
    bullet_id: t.id,
    metadata: { [t.tag]: 1 },
  }));
  if (correct === false) {
    accepted.push({
      type: 'ADD',
      section: 'CONVERSIONS',
      content: `1 ${findings.unit} = ${findings.factor}`,
    });
  }
  return { accepted, rejected: [], rationale: insights };
}
