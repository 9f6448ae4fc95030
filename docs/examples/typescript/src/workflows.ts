import * as wf from '@temporalio/workflow';
import type * as activities from './activities';
import type { Json } from './activities';

const ACESCOPE = 'ace'; // acescope's task queue: its activities keep the playbooks
const options: wf.ActivityOptions = { startToCloseTimeout: '1 minute', retry: { maximumAttempts: 5 } };
const solver = wf.proxyActivities<typeof activities>(options);
const acescope = wf.proxyActivities<
  Record<'playbook_head' | 'read_playbook' | 'persist_results', (request: Json) => Promise<Json>>
>({
  ...options,
  taskQueue: ACESCOPE,
});

const PHASES = ['generator', 'skills', 'reflector', 'curator', 'persist'];
const NO_USAGE = { input_tokens: 0, output_tokens: 0, cost_usd: 0 };

/** The run of a task such as "What is 3 dozen?". It learns how many a dozen is. */
export async function AceTaskWorkflow(task: Json): Promise<Json> {
  const { workflowId, runId } = wf.workflowInfo();
  const state = { phase: 'generator', status: 'running', curated: {} as Json, merged: {} as Json };
  const steps: Json[] = PHASES.map((phase) => ({ phase, status: 'pending' }));
  const calls = new Map<string, Json>();
  answer(state, steps, calls);

  const step = async (phase: string, run: () => Promise<Json>): Promise<Json> => {
    const row = steps.find((s) => s.phase === phase)!;
    state.phase = phase;
    row.status = 'running';
    try {
      const result = await run();
      row.status = 'done';
      return result;
    } catch (e) {
      row.status = state.status = 'failed';
      throw e; // a run that did not do its work fails its workflow
    }
  };

  const branch = task.branch ?? '';
  const about: Json = { workflow_id: workflowId, run_id: runId, skills_config: task.skills_config ?? {} };
  for (const k of ['task_id', 'experiment_id', 'playbook_hash', 'provider', 'model'])
    about[k] = task[k] ?? '';
  if (branch) {
    const head = await acescope.playbook_head({ branch, initial: about.playbook_hash });
    about.playbook_hash = head.playbook_hash;
  }
  const book = await acescope.read_playbook({ playbook_hash: about.playbook_hash });

  const { prompt, label } = task;
  const plan = await step('generator', () =>
    solver.run_generator({ task: about, prompt, bullets: book.bullets ?? [] }),
  );
  const given = { task: about, prompt, plan: plan.plan, program: plan.program, bullet_ids: plan.bullet_ids };
  const session = await step('skills', () => solver.run_skills_session(given));
  const insight = await step('reflector', () =>
    solver.run_reflector({ ...given, answer: session.answer, label }),
  );
  state.curated = await step('curator', () => solver.run_curator({ task: about, ...insight }));
  const { accepted: operations, rationale } = state.curated;
  state.merged = await step('persist', () =>
    acescope.persist_results({ task: about, branch, operations, rationale }),
  );
  state.phase = 'done';
  state.status = 'completed';
  return finish(task, session, insight.correct, state.merged);
}

function finish(task: Json, session: Json, correct: boolean | undefined, merged: Json): Json {
  const exitStatus = correct === false ? 'wrong' : 'success';
  const ungraded = task.label === undefined ? 'unlabeled' : 'ungraded';
  const verdict = correct === undefined ? ungraded : correct ? 'correct' : 'wrong';
  const accepted = merged.operations.filter((o: Json) => o.fate === 'accepted');
  const count = (type: string) => accepted.filter((o: Json) => o.type === type).length;
  const summary = {
    verdict,
    skills: session.invocations.length,
    skills_ok: session.invocations.filter((i: Json) => i.accepted && i.ok).length,
    added: count('ADD'),
    updated: count('UPDATE'),
    removed: count('REMOVE'),
    tagged: count('TAG'),
    rejected: merged.operations.length - accepted.length,
    usage: NO_USAGE,
  };
  wf.upsertMemo({ ace_summary: summary });
  // An attribute that the namespace lacks would block the run: set only those that it started with.
  const started = wf
    .workflowInfo()
    .typedSearchAttributes.getAll()
    .map((pair) => pair.key.name);
  const values = { Phase: 'done', ExitStatus: exitStatus };
  wf.upsertSearchAttributes(
    Object.entries(values)
      .filter(([name]) => started.includes(name))
      .map(([name, value]) => ({ key: { name, type: 'KEYWORD' as const }, value })),
  );
  return {
    task_id: task.task_id,
    exit_status: exitStatus,
    answer: session.answer,
    correct,
    verdict,
    playbook_hash: merged.playbook_after,
    bullets: merged.bullets,
    seq: merged.seq ?? 0,
    index: task.index ?? 0,
    summary,
  };
}

/** Takes the signal and answers the queries. */
function answer(state: Json, steps: Json[], calls: Map<string, Json>): void {
  wf.setHandler(wf.defineSignal<[Json]>('record_tool_event'), (events) => {
    for (const e of Array.isArray(events) ? events : [events]) {
      const id = e.call_id ?? e.event_id;
      calls.set(id, { ...calls.get(id), ...e });
    }
  });
  wf.setHandler(wf.defineQuery<Json>('get_current_phase'), () => ({
    phase: state.phase,
    status: state.status,
    steps,
    usage: NO_USAGE,
  }));
  wf.setHandler(wf.defineQuery<Json>('get_skill_usage'), () => {
    const skills = new Map<string, Json>();
    for (const call of calls.values()) {
      const empty = {
        name: call.name,
        calls: 0,
        ok: 0,
        failed: 0,
        denied: 0,
        pending: 0,
        p50_ms: 0,
        p95_ms: 0,
      };
      const s: Json = skills.get(call.name) ?? empty;
      s.calls++;
      s[
        call.kind === 'tool_use'
          ? 'pending'
          : !(call.accepted ?? true)
            ? 'denied'
            : (call.ok ?? true)
              ? 'ok'
              : 'failed'
      ]++;
      skills.set(call.name, s);
    }
    return { skills: [...skills.values()], total: calls.size, recent: [] };
  });
  wf.setHandler(wf.defineQuery<Json>('get_playbook_delta'), () => ({
    playbook_before: state.merged.playbook_before ?? '',
    playbook_after: state.merged.playbook_after ?? '',
    operations: state.merged.operations ?? state.curated.accepted ?? [],
    rationale: state.curated.rationale ?? '',
  }));
}
