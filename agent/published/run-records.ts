// RolloutRun objects where the kind is installed: one per rollout and per change of replicas, kept up while it goes on, bounded in number.
import { isStatus } from '../../cluster/request/failure.ts';
import { isSameJson } from '../../cluster/request/json.ts';
import { getObject, listObjects } from '../../cluster/request/read.ts';
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { createObject, deleteObject, patchObject, type Target } from '../../cluster/request/write.ts';
import { runRecord } from '../../engine/publish/run-record.ts';
import { messageOf } from '../../policies/error-message.ts';
import { type RolloutRun, resourceOfKind, schemas } from '../../policies/schema/kinds.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import { isRunRemembered, type TurnListener, type TurnReport } from '../report.ts';
import { mergePatch } from './publisher.ts';
import { WriteQueue } from './write-queue.ts';

interface RunRecordsOptions {
  readonly env: AgentEnv;
  readonly config: Pick<AgentConfig, 'publishEveryMs' | 'kubernetesTimeoutMs'>;
  readonly onWrite?: (result: 'done' | 'failed' | 'dropped') => void;
}

const rolloutRuns = resourceOfKind('RolloutRun');

/** Turns of a group that wait until its records were read. */
const maxTurnsWaiting = 100;
const longestTimeoutMs = 30_000;
/** Interval of the check whether the kind is installed now. */
const missingMs = 300_000;
/** Pause after the records could not be read for another reason. */
const reloadMs = 5000;

/** One record as it should be, and as it was last written. */
interface Kept {
  record: RolloutRun;
  written?: { readonly target: Target; readonly spec: unknown };
}

interface GroupRuns {
  /** The current or last record of rollouts, and that of changes of replicas. */
  rollout?: RolloutRun;
  scale?: RolloutRun;
  readonly turns: TurnReport[];
  /** Number of finished records to keep. Before the first turn it is unknown, and no record is deleted. */
  historyLimit?: number;
}

/** Records while this process leads. Nothing waits for a record; failures are tried again. */
export class RunRecorder {
  readonly #options: RunRecordsOptions;
  readonly #groups = new Map<string, GroupRuns>();
  /** By namespace and name of the object. */
  readonly #kept = new Map<string, Kept>();
  readonly #loading = new Map<string, { state: 'loading' | 'loaded' } | { state: 'missing'; untilMs: number }>();
  readonly #timeoutMs: number;
  #isLeader = false;
  #isHandingOver = false;
  /** Changes with the leadership, so that what was asked for before it is not believed. */
  #term = 0;
  #hasWarned = false;
  #isClosed = false;
  /** By namespace: how to cancel that its records are read again. */
  readonly #reloads = new Map<string, () => void>();
  readonly #queue: WriteQueue;
  readonly listener: TurnListener = {
    turnEnded: (report) => {
      if (!this.#isLeader || report.decision === undefined || !isRunRemembered(report)) return;
      const { namespace, name } = report.group;
      const key = `${namespace}/${name}`;
      const runs: GroupRuns = this.#groups.get(key) ?? { turns: [] };
      this.#groups.set(key, runs);
      const known = this.#loading.get(namespace);
      if (known?.state === 'loaded') return this.#record(key, runs, report);
      if (known?.state === 'missing' && this.#options.env.clock.monotonicMs() < known.untilMs) return;
      if (runs.turns.length < maxTurnsWaiting) runs.turns.push(report);
      else this.#options.onWrite?.('dropped');
      if (known?.state !== 'loading') void this.#load(namespace);
    },
    groupsChanged: (all) => {
      const keys = new Set(all.map(({ namespace, name }) => `${namespace}/${name}`));
      for (const key of this.#groups.keys()) if (!keys.has(key)) this.#groups.delete(key);
    },
    leadershipChanged: (state) => {
      this.#isLeader = state.isLeader;
      if (this.#isLeader || this.#isHandingOver) return;
      this.#term += 1;
      this.#forgetReloads();
      for (const one of [this.#groups, this.#kept, this.#loading]) one.clear();
      this.#queue.clear();
    },
  };

  constructor(options: RunRecordsOptions) {
    this.#options = options;
    this.#timeoutMs = Math.min(this.#options.config.kubernetesTimeoutMs, longestTimeoutMs);
    this.#queue = new WriteQueue({
      env: this.#options.env,
      everyMs: this.#options.config.publishEveryMs,
      write: (key) => this.#write(key),
      onWritten: () => this.#options.onWrite?.('done'),
      onFailure: (_, error) => {
        this.#options.onWrite?.('failed');
        this.#warn(error);
      },
    });
  }

  /** Begins the hand-over: waiting records are still written. Call it before the agent stops. */
  beginHandOver(): void {
    this.#isHandingOver = true;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#forgetReloads();
    await this.#queue.close();
  }

  #forgetReloads(): void {
    for (const cancel of this.#reloads.values()) cancel();
    this.#reloads.clear();
  }

  async #load(namespace: string): Promise<void> {
    const mine = this.#term;
    this.#loading.set(namespace, { state: 'loading' });
    try {
      const { items } = await listObjects(this.#options.env, rolloutRuns, { namespace, site: 'runs.list', timeoutMs: this.#timeoutMs });
      if (mine !== this.#term) return;
      for (const object of items) this.#keep(object);
      this.#loading.set(namespace, { state: 'loaded' });
      for (const [key, runs] of this.#groupsIn(namespace)) {
        for (const report of runs.turns.splice(0)) this.#record(key, runs, report);
      }
    } catch (error) {
      if (mine !== this.#term || this.#isClosed) return;
      if (isStatus(error, 403, 404)) {
        this.#loading.set(namespace, { state: 'missing', untilMs: this.#options.env.clock.monotonicMs() + missingMs });
        for (const [, runs] of this.#groupsIn(namespace)) runs.turns.length = 0;
        return;
      }
      this.#warn(error);
      this.#loadLater(namespace);
    }
  }

  #groupsIn(namespace: string): readonly (readonly [string, GroupRuns])[] {
    return [...this.#groups].filter(([key]) => key.startsWith(`${namespace}/`));
  }

  #loadLater(namespace: string): void {
    const cancel = this.#options.env.timers.after(reloadMs, () => {
      this.#reloads.delete(namespace);
      void this.#load(namespace);
    });
    this.#reloads.set(namespace, cancel);
  }

  #keep(object: KubernetesObject): void {
    const { namespace = '', name, uid = '', resourceVersion = '' } = object.metadata;
    const read = schemas.RolloutRun.safeParse({
      apiVersion: object.apiVersion,
      kind: 'RolloutRun',
      metadata: { namespace, name },
      spec: object['spec'],
    });
    if (!read.success) return;
    const record = read.data;
    this.#kept.set(`${namespace}/${name}`, { record, written: { target: { namespace, name, uid, resourceVersion }, spec: record.spec } });
    const key = `${namespace}/${record.spec.group}`;
    const runs: GroupRuns = this.#groups.get(key) ?? { turns: [] };
    this.#groups.set(key, runs);
    const lane = record.spec.kind === 'scale' ? 'scale' : 'rollout';
    const known = runs[lane];
    if (known === undefined || known.spec.startedAt < record.spec.startedAt) runs[lane] = record;
  }

  #record(key: string, runs: GroupRuns, { group, snapshot, decision, performed, startedMs }: TurnReport): void {
    // An earlier leader may have ended between the last word of a record and what was to go for it.
    if (runs.historyLimit === undefined) this.#wantEnded(group.namespace, runs);
    runs.historyLimit = group.rollout.historyLimit;
    const turn = { group, snapshot, performed, startedMs, ...(decision === undefined ? {} : { decision }) };
    for (const lane of ['rollout', 'scale'] as const) {
      // A record that ends may be followed by the next one in the same turn.
      for (let follows = 0; follows < 2; follows += 1) {
        const before = runs[lane];
        const next = runRecord(before, turn, lane);
        if (next === undefined || next === before) break;
        runs[lane] = next;
        const name = `${key.split('/')[0]}/${next.metadata.name}`;
        this.#kept.set(name, { ...this.#kept.get(name), record: next });
        this.#queue.queueWrite(name);
      }
    }
  }

  #wantEnded(namespace: string, { rollout, scale }: GroupRuns): void {
    for (const record of [rollout, scale]) {
      if (record !== undefined && record.spec.outcome !== 'running') this.#queue.queueWrite(`${namespace}/${record.metadata.name}`);
    }
  }

  async #write(key: string): Promise<'written' | 'unchanged'> {
    const one = this.#kept.get(key);
    if (one === undefined) return 'unchanged';
    const { record: wanted } = one;
    const isWritten = one.written !== undefined && isSameJson(one.written.spec, wanted.spec);
    if (!isWritten) {
      const object = one.written === undefined ? await this.#create(wanted) : await this.#update(wanted, one.written);
      const { namespace = '', name, uid = '', resourceVersion = '' } = object.metadata;
      one.written = { target: { namespace, name, uid, resourceVersion }, spec: wanted.spec };
    }
    if (wanted.spec.outcome !== 'running') await this.#prune(wanted.metadata.namespace ?? '', wanted.spec.group);
    return isWritten ? 'unchanged' : 'written';
  }

  async #create(record: RolloutRun): Promise<KubernetesObject> {
    try {
      return await createObject(this.#options.env, rolloutRuns, objectOf(record), { site: 'runs.create', timeoutMs: this.#timeoutMs });
    } catch (error) {
      if (!isStatus(error, 409)) throw error;
      // Its answer was lost, or an earlier leader made it: names follow from the run.
      return await this.#refreshed(record);
    }
  }

  async #update(record: RolloutRun, { target, spec }: NonNullable<Kept['written']>): Promise<KubernetesObject> {
    try {
      const patch = { spec: mergePatch(spec, record.spec) };
      return await patchObject(this.#options.env, rolloutRuns, target, { patch, site: 'runs.patch', timeoutMs: this.#timeoutMs });
    } catch (error) {
      if (isStatus(error, 404)) return await this.#create(record);
      if (!isStatus(error, 409)) throw error;
      return await this.#refreshed(record);
    }
  }

  /** Writes the record over the existing object. */
  async #refreshed(record: RolloutRun): Promise<KubernetesObject> {
    const { namespace = '', name } = record.metadata;
    const found = await getObject(this.#options.env, rolloutRuns, { namespace, name }, { site: 'runs.get', timeoutMs: this.#timeoutMs });
    if (found === undefined)
      return await createObject(this.#options.env, rolloutRuns, objectOf(record), { site: 'runs.create', timeoutMs: this.#timeoutMs });
    const { uid = '', resourceVersion = '' } = found.metadata;
    const patch = { spec: mergePatch(found['spec'], record.spec) };
    return await patchObject(
      this.#options.env,
      rolloutRuns,
      { namespace, name, uid, resourceVersion },
      { patch, site: 'runs.patch', timeoutMs: this.#timeoutMs },
    );
  }

  /** Deletes the oldest finished records beyond the limit. */
  async #prune(namespace: string, group: string): Promise<void> {
    const finished = [...this.#kept]
      .filter(([key, { record: one }]) => key.startsWith(`${namespace}/`) && one.spec.group === group && one.spec.outcome !== 'running')
      .sort(([, a], [, b]) => ((a.record.spec.endedAt ?? '') < (b.record.spec.endedAt ?? '') ? 1 : -1));
    const limit = this.#groups.get(`${namespace}/${group}`)?.historyLimit ?? finished.length;
    for (const [key, { written }] of finished.slice(limit)) {
      this.#kept.delete(key);
      if (written === undefined) continue;
      try {
        await deleteObject(this.#options.env, rolloutRuns, written.target, { site: 'runs.delete', timeoutMs: this.#timeoutMs });
      } catch (error) {
        // Another writer changed the record and may want to keep it.
        if (!isStatus(error, 404, 409)) this.#warn(error);
      }
    }
  }

  #warn(error: unknown): void {
    if (!this.#hasWarned) this.#options.env.log.warn('run could not be recorded', { error: messageOf(error) });
    this.#hasWarned = true;
  }
}

function objectOf({ apiVersion, kind, metadata: { name, namespace }, spec }: RolloutRun): KubernetesObject {
  return { apiVersion, kind, metadata: { name, ...(namespace === undefined ? {} : { namespace }) }, spec };
}
