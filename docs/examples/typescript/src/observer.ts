/**
 * Report what an ACE run does to Temporal, where acescope shows it.
 *
 *     const ace = observer({ enabled: true });                // TemporalObserver; NullObserver if not enabled
 *     const run = ace.start({ task_id: 'q-7', prompt: 'What is ...', model: 'my-model' });
 *     run.phase('skills');
 *     const call = run.toolUse('look_up', { q: 1 });
 *     run.toolResult(call, { known: 0 });
 *     run.finish({ answer: '42', correct: true });
 *     await ace.close();
 *
 * No method but close waits, and none throws. A TemporalObserver keeps events in memory and delivers them in
 * order, again and again until the server has them. When the buffer is full, further events are dropped and
 * counted.
 */
import { randomUUID } from 'node:crypto';
import { hostname, userInfo } from 'node:os';
import {
  Client,
  Connection,
  WorkflowExecutionAlreadyStartedError,
  isGrpcServiceError,
} from '@temporalio/client';
import { SearchAttributeType, TypedSearchAttributes, WorkflowNotFoundError } from '@temporalio/common';
import { loadClientConnectConfig } from '@temporalio/envconfig';

const BUFFER = 10_000; // events that wait
const BATCH = 100; // events in a signal
const BATCH_BYTES = 256 << 10;
const FIELD_BYTES = 16 << 10; // arguments or result of a tool call; a larger value becomes a preview
const STEP_BYTES = 64 << 10; // result of a step; a larger one is left out
const PREVIEW = 256;
const INTERVAL = 50; // ms between signals; the first event after a pause is sent at once
const RETRY = { first: 50, longest: 5000 }; // ms
const CALL = 5000; // ms
const INVALID_ARGUMENT = 3; // gRPC

export type ToolEvent = Record<string, unknown> & { event_id: string; kind: string };

/** Task is the task input of the contract, of which only task_id is needed. */
export type Task = { task_id?: string } & Record<string, unknown>;

export interface ToolResult {
  name?: string;
  error?: string;
  accepted?: boolean; // false: denied
  duration_ms?: number;
}

export interface Finish {
  exit_status?: 'success' | 'wrong' | 'failed' | 'cancelled' | 'timeout';
  answer?: string;
  correct?: boolean;
  error?: string;
}

/** A run that is reported. */
export class Run {
  /** The input of a run that the observer starts, undefined for one that exists. */
  task?: Record<string, unknown>;

  constructor(
    private readonly observer: Observer,
    readonly workflowId: string,
    readonly runId?: string,
    task?: Record<string, unknown>,
  ) {
    this.task = task;
  }

  /** Records an event with fields of the contract, and returns its call_id. */
  recordToolEvent(kind: string, name = '', fields?: Record<string, unknown> | null): string {
    const given = readable(fields);
    const eventId = typeof given.event_id === 'string' ? given.event_id : randomUUID();
    this.observer.record(this, { ...given, event_id: eventId, kind, name });
    return typeof given.call_id === 'string' ? given.call_id : eventId;
  }

  /** Records that a tool call began, and returns its call_id. */
  toolUse(name: string, args?: unknown, callId?: string): string {
    return this.recordToolEvent('tool_use', name, { args, call_id: callId });
  }

  /** Records the end of a tool call. */
  toolResult(callId: string, result?: unknown, more: ToolResult = {}): void {
    const { name = '', error = '', accepted = true, duration_ms } = readable(more);
    const ok = accepted && !error;
    this.recordToolEvent('tool_result', name, { call_id: callId, result, error, accepted, ok, duration_ms });
  }

  slashCommand(name: string): void {
    this.recordToolEvent('slash_command', name);
  }

  /** Records that a phase begins: generator, skills, reflector, curator or persist. */
  phase(phase: string): void {
    this.recordToolEvent('phase', phase);
  }

  /** Records the result of a phase, or why it failed. */
  step(phase: string, result?: unknown, error = ''): void {
    this.recordToolEvent('step', phase, { result, error });
  }

  /** Records the end of the run. */
  finish(end: Finish = {}): void {
    const { error = '', ...result } = readable(end);
    this.recordToolEvent('finish', '', { result: plainFields(result, FIELD_BYTES), error });
  }
}

/** What NullObserver and TemporalObserver share. */
export abstract class Observer {
  /** Number of events that will not be delivered. */
  dropped = 0;
  private seq = 0;

  constructor(protected readonly source = 'typescript') {}

  /** Starts a run of a task. */
  start(task: Task): Run {
    const given = plainFields(task, STEP_BYTES);
    const about = {
      prompt: '',
      adapter: 'online',
      playbook_hash: '',
      skills_config: {},
      experiment_id: '',
      dataset_id: '',
      model: '',
      by: user(),
      ...given,
      task_id: typeof given.task_id === 'object' ? randomUUID() : String(given.task_id ?? randomUUID()),
      observed: true,
      source: this.source,
      revision: 1,
    };
    const run = new Run(this, `ace/${about.task_id}`, undefined, about);
    run.recordToolEvent('message', 'start');
    return run;
  }

  /** Returns a run that exists, such as that of the activity that calls this. */
  attach(workflowId: string, runId?: string): Run {
    return new Run(this, workflowId, runId);
  }

  /** Delivers what waits, at most for so many ms, and returns the number of events that still wait. */
  async close(_timeoutMs?: number): Promise<number> {
    return 0;
  }

  /** Called by Run. */
  record(run: Run, fields: ToolEvent): void {
    try {
      const step = fields.kind === 'step';
      const event: ToolEvent = { at: new Date().toISOString(), source: this.source, event_id: '', kind: '' };
      for (const [name, value] of Object.entries(fields)) {
        if (value === undefined || value === null || value === '') continue;
        event[name] = plain(value, step ? STEP_BYTES : FIELD_BYTES, !step);
        if (name === 'error') event.error ??= 'an error that cannot be shown'; // the call or the run has failed
      }
      this.seq = Math.max(Date.now() * 1000, this.seq + 1);
      event.seq ??= this.seq;
      this.keep(run, event);
    } catch {
      this.dropped++; // an observer never harms the run that it observes
    }
  }

  protected abstract keep(run: Run, event: ToolEvent): void;
}

/** Sends nothing. It keeps the newest events in memory. */
export class NullObserver extends Observer {
  readonly events: { workflowId: string; event: ToolEvent }[] = [];

  constructor(
    private readonly buffer = BUFFER,
    source?: string,
  ) {
    super(source);
  }

  protected keep(run: Run, event: ToolEvent): void {
    this.events.push({ workflowId: run.workflowId, event });
    if (this.events.length > this.buffer) this.events.shift();
  }
}

/** The part of a Temporal client that an observer needs. */
export type ObserverClient = { workflow: Pick<Client['workflow'], 'getHandle' | 'signalWithStart'> };

export interface Options {
  /** Returns a client; the default reads TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and so on. */
  connect?: () => Promise<ObserverClient>;
  /** Task queue of the workers that execute observed runs: acescope's own. */
  taskQueue?: string;
  buffer?: number;
  source?: string;
}

/** Delivers events to the workflows of runs. */
export class TemporalObserver extends Observer {
  /** Why the last attempt failed, '' if it did not. */
  failure = '';
  private readonly queue: { run: Run; event: ToolEvent; bytes: number }[] = [];
  private client?: Promise<ObserverClient>;
  private delivering?: Promise<void>;
  private sent = 0;
  private closed = false;
  private deadline = Infinity;
  private wake = () => {};

  constructor(private readonly options: Options = {}) {
    super(options.source);
  }

  /** Number of events that are not delivered yet. */
  get waiting(): number {
    return this.queue.length;
  }

  override async close(timeoutMs = 5000): Promise<number> {
    this.closed = true;
    this.deadline = Date.now() + timeoutMs;
    this.wake();
    const alive = setTimeout(() => {}, timeoutMs); // unlike the other timers, it keeps the process alive
    await Promise.race([this.delivering, sleep(timeoutMs)]);
    clearTimeout(alive);
    return this.queue.length;
  }

  protected keep(run: Run, event: ToolEvent): void {
    if (this.closed || this.queue.length >= (this.options.buffer ?? BUFFER)) {
      this.dropped++;
      return;
    }
    this.queue.push({ run, event, bytes: JSON.stringify(event).length });
    this.delivering ??= this.deliver().finally(() => (this.delivering = undefined));
  }

  /** Delivers until nothing waits. */
  private async deliver(): Promise<void> {
    let delay = RETRY.first;
    while (this.queue.length > 0 && Date.now() < this.deadline) {
      await this.pause(this.sent + INTERVAL - Date.now());
      this.sent = Date.now();
      const { run, events } = this.next();
      try {
        await Promise.race([this.send(run, events), sleep(CALL, 'the server did not answer')]);
        this.failure = '';
      } catch (e) {
        this.failure = e instanceof Error ? e.message : String(e);
        if (!refused(e, run.task !== undefined)) {
          await this.pause(delay);
          delay = Math.min(2 * delay, RETRY.longest);
          continue;
        }
        this.dropped += events.length;
      }
      delay = RETRY.first;
      this.queue.splice(0, events.length);
    }
  }

  /** Returns the first events of one run. */
  private next(): { run: Run; events: ToolEvent[] } {
    const run = this.queue[0].run;
    const events: ToolEvent[] = [];
    let bytes = 0;
    for (const entry of this.queue) {
      bytes += entry.bytes;
      const full = events.length === BATCH || bytes > BATCH_BYTES;
      if (events.length > 0 && (full || entry.run !== run)) break;
      events.push(entry.event);
    }
    return { run, events };
  }

  /** Waits; close ends the first wait after it. */
  private async pause(ms: number): Promise<void> {
    const woken = new Promise<void>((resolve) => (this.wake = resolve));
    await Promise.race([woken, sleep(Math.max(0, ms))]);
  }

  private async send(run: Run, events: ToolEvent[]): Promise<void> {
    this.client ??= (this.options.connect ?? connect)();
    const { workflow } = await this.client.catch((e) => {
      this.client = undefined;
      throw e;
    });
    if (!run.task) {
      await workflow.getHandle(run.workflowId, run.runId).signal('record_tool_event', events);
      return;
    }
    const t = run.task;
    const values = {
      ExperimentId: t.experiment_id,
      DatasetId: t.dataset_id,
      ModelName: t.model,
      AdapterType: t.adapter,
      ExitStatus: 'running',
      TaskId: t.task_id,
      Phase: 'generator',
    };
    await workflow.signalWithStart('AceTaskWorkflow', {
      args: [t],
      workflowId: run.workflowId,
      taskQueue: this.options.taskQueue ?? 'ace',
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      typedSearchAttributes: new TypedSearchAttributes(
        Object.entries(values).map(([name, value]) => ({
          key: { name, type: SearchAttributeType.KEYWORD },
          value: String(value),
        })),
      ),
      memo: {
        ace_observed: { start: events[0].event_id, source: this.source, at: events[0].at },
        ace_by: t.by,
      },
      signal: 'record_tool_event',
      signalArgs: [events],
    });
    run.task = undefined;
  }
}

/** Returns a TemporalObserver with the options, or a NullObserver if it is not enabled. */
export function observer({ enabled = true, ...options }: Options & { enabled?: boolean } = {}): Observer {
  return enabled ? new TemporalObserver(options) : new NullObserver();
}

async function connect(): Promise<ObserverClient> {
  const { connectionOptions, namespace } = loadClientConnectConfig();
  return new Client({ connection: await Connection.connect(connectionOptions), namespace });
}

/** Reports whether the server will never accept the events: the run has closed, or they are not valid. */
function refused(e: unknown, starting: boolean): boolean {
  if (e instanceof WorkflowExecutionAlreadyStartedError) return true;
  if (e instanceof WorkflowNotFoundError) return !starting;
  const cause = e instanceof Error ? (e.cause ?? e) : e;
  return isGrpcServiceError(cause) && cause.code === INVALID_ARGUMENT;
}

/** Returns the fields of an object that can be read: a getter may throw. */
function readable<T extends object>(value?: T | null): Partial<T> {
  const given: Partial<T> = {};
  try {
    for (const name of Object.keys(value ?? {}) as (keyof T)[]) {
      try {
        given[name] = value![name];
      } catch {
        // the field is left out
      }
    }
  } catch {
    // the fields of a proxy that cannot be listed are left out
  }
  return given;
}

/** Returns the fields of an object as JSON can hold them, without those of which nothing is known. */
function plainFields(value: object, limit: number): Record<string, unknown> {
  const fields = Object.entries(readable(value)).map(([name, field]) => [name, plain(field, limit)]);
  return Object.fromEntries(fields.filter(([, field]) => field !== undefined));
}

/**
 * Returns the value as JSON can hold it, or undefined if it can neither be encoded nor printed. If it is too
 * large, returns a preview of its JSON, or undefined.
 */
function plain(value: unknown, limit: number, preview = true): unknown {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    // cycles and big integers are printed
  }
  try {
    text ??= JSON.stringify(String(value));
  } catch {
    return undefined;
  }
  if (text.length <= limit) return JSON.parse(text);
  return preview ? (typeof value === 'string' ? value : text).slice(0, PREVIEW) + '…' : undefined;
}

/** Waits, then throws an error if there is a message. The wait does not keep the process alive. */
function sleep(ms: number, message?: string): Promise<void> {
  return new Promise((resolve, reject) => {
    setTimeout(() => (message ? reject(new Error(message)) : resolve()), ms).unref();
  });
}

/** Returns the user and the machine of this process as user@host. */
function user(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    return ''; // a process in a container may have no user
  }
}
