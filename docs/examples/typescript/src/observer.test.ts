/** npm test: needs no server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { WorkflowNotFoundError } from '@temporalio/common';
import { NullObserver, Observer, ObserverClient, TemporalObserver, ToolEvent, observer } from './observer';

/** Stands in for a client. Each call first throws the next of the errors, if there is one. */
function fake(errors: unknown[] = [], gate: Promise<void> = Promise.resolve()) {
  const started: { input: Record<string, unknown>; options: Record<string, any> }[] = [];
  const signals: { workflowId: string; events: ToolEvent[] }[] = [];
  const fail = async () => {
    await gate;
    if (errors.length > 0) throw errors.shift();
  };
  const workflow = {
    async signalWithStart(_name: string, options: any) {
      await fail();
      started.push({ input: { ...options.args[0] }, options });
      signals.push({ workflowId: options.workflowId, events: options.signalArgs[0] });
    },
    getHandle: (workflowId: string) => ({
      async signal(name: string, events: ToolEvent[]) {
        await fail();
        assert.equal(name, 'record_tool_event');
        signals.push({ workflowId, events });
      },
    }),
  };
  const connect = async () => ({ workflow }) as unknown as ObserverClient;
  const events = (id?: string) =>
    signals.flatMap((s) => (id === undefined || s.workflowId === id ? s.events : []));
  return { connect, started, signals, events };
}

const numbers = (n: number) => Array.from({ length: n }, (_, i) => String(i));
const names = (events: ToolEvent[]) => events.map((e) => e.name);

test('reports a run', async () => {
  const to = fake();
  const ace = new TemporalObserver({ connect: to.connect });
  const run = ace.start({ task_id: 'q-7', prompt: 'What?', model: 'm', experiment_id: 'e' });
  run.phase('skills');
  const call = run.toolUse('look_up', { q: 1 });
  run.toolResult(call, { known: 0 }, { duration_ms: 12 });
  run.toolResult(run.toolUse('rm'), undefined, { accepted: false, error: 'denied' });
  run.slashCommand('/review');
  run.step('skills', { invocations: [], answer: '42' });
  run.finish({ answer: '42', correct: true });
  assert.equal(await ace.close(), 0);
  const [{ input, options }] = to.started;
  assert.equal(options.workflowId, 'ace/q-7');
  assert.equal(options.taskQueue, 'ace');
  assert.equal(input.observed, true);
  assert.equal(input.prompt, 'What?');
  assert.equal(options.typedSearchAttributes.getAll().length, 7);
  const kinds = to.events().map((e) => e.kind);
  const calls = ['tool_use', 'tool_result', 'tool_use', 'tool_result'];
  assert.deepEqual(kinds, ['message', 'phase', ...calls, 'slash_command', 'step', 'finish']);
  const events = to.events();
  assert.equal(events[2].event_id, call);
  assert.equal(events[3].call_id, call);
  assert.equal(events[3].ok, true);
  assert.equal(events[5].accepted, false);
  assert.deepEqual(events[8].result, { answer: '42', correct: true });
  assert.equal(new Set(events.map((e) => e.event_id)).size, 9);
  assert.deepEqual(
    events.map((e) => e.seq),
    events.map((e) => e.seq).toSorted(),
  );
});

test('retries in order until the server answers', async () => {
  const missing = new WorkflowNotFoundError('no namespace', 'ace/t', undefined);
  const to = fake([new Error('away'), missing, 'odd']);
  const ace = new TemporalObserver({ connect: to.connect });
  const run = ace.start({ task_id: 't' });
  numbers(250).forEach((n) => run.toolUse(n));
  while (ace.waiting > 0) await sleep(1);
  assert.equal(ace.failure, '');
  assert.deepEqual(names(to.events()), ['start', ...numbers(250)]);
  assert.ok(to.signals.every((s) => s.events.length <= 100));
  assert.equal(ace.dropped, 0);
});

test('drops what a closed run refuses', async () => {
  const to = fake([new WorkflowNotFoundError('workflow execution already completed', 'ace/old', undefined)]);
  const ace = new TemporalObserver({ connect: to.connect });
  ace.attach('ace/old').toolUse('late');
  ace.attach('ace/new', 'run').toolUse('next');
  assert.equal(await ace.close(), 0);
  assert.equal(ace.dropped, 1);
  assert.deepEqual(names(to.events('ace/new')), ['next']);
});

test('never blocks, and counts what it drops', async () => {
  let open = () => {};
  const to = fake([], new Promise((resolve) => (open = resolve)));
  const ace = new TemporalObserver({ connect: to.connect, buffer: 10 });
  const run = ace.attach('ace/t');
  numbers(1000).forEach((n) => run.toolUse(n));
  assert.equal(ace.waiting, 10);
  assert.equal(ace.dropped, 990);
  assert.equal(await ace.close(20), 10);
  open();
});

test('never throws', async () => {
  const to = fake();
  const odd = {
    toJSON: () => {
      throw new Error('no');
    },
    toString: () => {
      throw new Error('no');
    },
  };
  const loop: unknown[] = [];
  loop.push(loop);
  const both: Observer[] = [new TemporalObserver({ connect: to.connect }), new NullObserver()];
  for (const ace of both) {
    const run = ace.start({ task_id: 7, prompt: odd } as never);
    ace.start(null as never).finish(null as never);
    run.toolUse('x', odd);
    run.toolUse('y', loop);
    run.toolUse('z', { big: 'x'.repeat(100_000), number: 10n ** 30n });
    run.toolUse('w', 'x'.repeat(100_000));
    run.toolResult(undefined as never, () => 1, null as never);
    run.recordToolEvent('message', 'v', null);
    run.step('skills', 'x'.repeat(100_000));
    await ace.close();
    assert.equal(ace.dropped, 0);
  }
  const sent = new Map(to.events().map((e) => [e.name, e]));
  assert.equal(sent.get('w')!.args, 'x'.repeat(256) + '…');
  assert.equal(sent.get('skills')!.result, undefined);
});

test('leaves out fields that cannot be read', async () => {
  const to = fake();
  const ace = new TemporalObserver({ connect: to.connect });
  const broken = <T extends object>(fields: T): T & Record<string, never> =>
    Object.defineProperty(fields, 'answer', {
      enumerable: true,
      get: () => {
        throw new Error('no');
      },
    }) as never;
  const locked = new Proxy({}, { ownKeys: () => [][1]! });
  const run = ace.start(broken({ task_id: 't', prompt: 'p' }));
  run.recordToolEvent('message', 'm', broken({ call_id: 'c' }));
  run.toolResult('c', 1, broken({ name: 'n' }));
  run.finish(broken({ exit_status: 'failed', error: 'e' }) as never);
  ace.start({ task_id: { toString: 1 } } as never).finish(locked);
  await ace.close();
  assert.equal(ace.dropped, 0);
  const [first, , , finish] = to.events();
  assert.equal(first.name, 'start');
  assert.equal(to.started[0].input.prompt, 'p');
  assert.deepEqual([finish.kind, finish.error, finish.result], ['finish', 'e', { exit_status: 'failed' }]);
});

test('sends an event without what cannot be printed', async () => {
  const to = fake();
  const ace = new TemporalObserver({ connect: to.connect });
  const odd = Object.assign(Object.create(null), { number: 1n });
  const run = ace.start({ task_id: 't', prompt: odd, model: 'm' });
  run.toolUse('x', odd);
  run.finish({ exit_status: 'failed', answer: odd, correct: false, error: odd });
  assert.equal(await ace.close(), 0);
  assert.equal(ace.dropped, 0);
  const [{ input }] = to.started;
  assert.deepEqual([input.prompt, input.model], ['', 'm']);
  const [, call, end] = to.events();
  assert.deepEqual([call.name, call.args], ['x', undefined]);
  assert.deepEqual([end.kind, end.error], ['finish', 'an error that cannot be shown']);
  assert.deepEqual(end.result, { exit_status: 'failed', correct: false });
});

test('a null observer keeps the newest events', async () => {
  assert.ok(observer({ enabled: false }) instanceof NullObserver);
  const ace = new NullObserver(2);
  const run = ace.start({ task_id: 't' });
  run.phase('skills');
  run.finish();
  assert.deepEqual(
    ace.events.map(({ workflowId, event }) => [workflowId, event.kind]),
    [
      ['ace/t', 'phase'],
      ['ace/t', 'finish'],
    ],
  );
  assert.equal(await ace.close(), 0);
});
