// Writes RolloutRun objects if the kind is installed: one record for each rollout and each scaling. Deletes the oldest finished records.
import { isNamespaceGone, isStatus } from '../../cluster/request/failure.ts';
import { asJsonObject, isSameJson } from '../../cluster/request/json.ts';
import { getObject, listObjects } from '../../cluster/request/read.ts';
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { createObject, deleteObject, patchObject, type Target, targetOf } from '../../cluster/request/write.ts';
import { mergePatch } from '../../engine/diff/merge-patch.ts';
import { runRecord } from '../../engine/publish/run-record.ts';
import { messageOf } from '../../policies/error-message.ts';
import { type RolloutRun, resourceOfKind, schemas } from '../../policies/schema/kinds.ts';
import { getOrCreate } from '../../policies/values/map.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import { isRunRemembered, type TurnListener, type TurnReport } from '../report.ts';
import { groupKey, removedKeys } from '../wake-index.ts';
import { WriteQueue } from './write-queue.ts';

interface RunRecordsOptions {
  readonly env: AgentEnv;
  readonly config: Pick<AgentConfig, 'publishEveryMs' | 'kubernetesTimeoutMs'>;
  readonly mayWrite: () => boolean;
  readonly onWrite?: (result: 'done' | 'failed' | 'dropped') => void;
}

const rolloutRuns = resourceOfKind('RolloutRun');

/** The most turns of a group that are kept until the stored records are read. Further turns are dropped. */
const maxPendingTurns = 100;
const longestTimeoutMs = 30_000;
/** The minimum time between two checks whether the kind is installed and may be read. */
const missingRetryMs = 300_000;
/** The pause before the next read after a failure other than 403 and 404. */
const reloadDelayMs = 5000;

/** A record as it should be stored, and as it was last stored. */
interface RecordEntry {
  record: RolloutRun;
  written?: { readonly target: Target; readonly spec: unknown };
}

interface GroupRuns {
  rollout?: RolloutRun;
  scale?: RolloutRun;
  /** Turns that wait until the stored records are read. */
  readonly pendingTurns: TurnReport[];
  /** The number of finished records to keep; absent until the first turn is recorded. While it is absent, no record is deleted. */
  historyLimit?: number;
}

/** Records runs while this process leads. Turns do not wait for the writes. Failed writes are retried. */
export class RunRecorder {
  readonly #options: RunRecordsOptions;
  readonly #groups = new Map<string, GroupRuns>();
  /** The records by namespace and name of the RolloutRun. */
  readonly #records = new Map<string, RecordEntry>();
  /** The progress of reading the stored records, by namespace. `missing`: the kind is not installed or may not be read. */
  readonly #loading = new Map<string, { state: 'loading' | 'loaded' } | { state: 'missing'; untilMs: number }>();
  readonly #timeoutMs: number;
  #isLeader = false;
  #isHandingOver = false;
  /** A number that grows when the leadership is lost, so that the answer to an earlier read is ignored. */
  #term = 0;
  #hasWarned = false;
  #isClosed = false;
  /** The functions that cancel the planned next read of records, by namespace. */
  readonly #reloads = new Map<string, () => void>();
  readonly #queue: WriteQueue;
  readonly listener: TurnListener = {
    turnEnded: (report) => {
      if (!this.#isLeader || report.decision === undefined || !isRunRemembered(report)) return;
      const { namespace } = report.group;
      const key = groupKey(report.group);
      const runs = this.#runsOf(key);
      const known = this.#loading.get(namespace);
      if (known?.state === 'loaded') return this.#record(key, runs, report);
      if (known?.state === 'missing' && this.#options.env.clock.monotonicMs() < known.untilMs) return;
      if (runs.pendingTurns.length < maxPendingTurns) runs.pendingTurns.push(report);
      else this.#options.onWrite?.('dropped');
      if (known?.state !== 'loading') void this.#load(namespace);
    },
    groupsChanged: (all) => {
      for (const key of removedKeys(this.#groups.keys(), all)) this.#groups.delete(key);
    },
    leadershipChanged: (state) => {
      this.#isLeader = state.isLeader;
      if (this.#isLeader || this.#isHandingOver) return;
      this.#term += 1;
      this.#forgetReloads();
      for (const state of [this.#groups, this.#records, this.#loading]) state.clear();
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
      mayWrite: this.#options.mayWrite,
      onWritten: () => this.#options.onWrite?.('done'),
      onFailure: (_, error) => {
        this.#options.onWrite?.('failed');
        this.#warn(error);
      },
    });
  }

  /** Keeps the pending writes when the leadership ends, so that `close` can do them. Call this before the agent stops. */
  beginHandOver(): void {
    this.#isHandingOver = true;
  }

  /** Does the pending writes once, and stops. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#forgetReloads();
    await this.#queue.close();
  }

  #forgetReloads(): void {
    for (const cancel of this.#reloads.values()) cancel();
    this.#reloads.clear();
  }

  /** Reads the stored records of the namespace, then records the pending turns. */
  async #load(namespace: string): Promise<void> {
    const term = this.#term;
    this.#loading.set(namespace, { state: 'loading' });
    try {
      const { items } = await listObjects(this.#options.env, rolloutRuns, { namespace, site: 'runs.list', timeoutMs: this.#timeoutMs });
      if (term !== this.#term) return;
      for (const object of items) this.#addStored(object);
      this.#loading.set(namespace, { state: 'loaded' });
      for (const [key, runs] of this.#groupsIn(namespace)) {
        for (const report of runs.pendingTurns.splice(0)) this.#record(key, runs, report);
      }
    } catch (error) {
      if (term !== this.#term || this.#isClosed) return;
      if (isStatus(error, 403, 404)) {
        this.#loading.set(namespace, { state: 'missing', untilMs: this.#options.env.clock.monotonicMs() + missingRetryMs });
        for (const [, runs] of this.#groupsIn(namespace)) runs.pendingTurns.length = 0;
        return;
      }
      this.#warn(error);
      this.#loadLater(namespace);
    }
  }

  #groupsIn(namespace: string): readonly (readonly [string, GroupRuns])[] {
    return [...this.#groups].filter(([key]) => key.startsWith(`${namespace}/`));
  }

  #runsOf(key: string): GroupRuns {
    return getOrCreate(this.#groups, key, () => ({ pendingTurns: [] }));
  }

  #loadLater(namespace: string): void {
    const cancel = this.#options.env.timers.after(reloadDelayMs, () => {
      this.#reloads.delete(namespace);
      void this.#load(namespace);
    });
    this.#reloads.set(namespace, cancel);
  }

  #addStored(object: KubernetesObject): void {
    const { apiVersion, metadata, spec } = object;
    const { namespace = '', name } = metadata;
    const read = schemas.RolloutRun.safeParse({ apiVersion, kind: 'RolloutRun', metadata: { namespace, name }, spec });
    if (!read.success) return;
    const record = read.data;
    this.#records.set(`${namespace}/${name}`, { record, written: { target: targetOf(object), spec: record.spec } });
    const runs = this.#runsOf(`${namespace}/${record.spec.group}`);
    const lane = record.spec.kind === 'scale' ? 'scale' : 'rollout';
    const known = runs[lane];
    if (known === undefined || known.spec.startedAt < record.spec.startedAt) runs[lane] = record;
  }

  #record(key: string, runs: GroupRuns, { group, snapshot, decision, performed, startedMs }: TurnReport): void {
    // An earlier leader may have stopped after it finished a record and before it deleted older records.
    if (runs.historyLimit === undefined) this.#queueFinished(group.namespace, runs);
    runs.historyLimit = group.rollout.historyLimit;
    const turn = { group, snapshot, performed, startedMs, ...(decision === undefined ? {} : { decision }) };
    for (const lane of ['rollout', 'scale'] as const) {
      // In one turn a record may end and the next one may start.
      for (let count = 0; count < 2; count += 1) {
        const before = runs[lane];
        const next = runRecord(before, turn, lane);
        if (next === undefined || next === before) break;
        runs[lane] = next;
        const name = `${key.split('/')[0]}/${next.metadata.name}`;
        this.#records.set(name, { ...this.#records.get(name), record: next });
        this.#queue.queueWrite(name);
      }
    }
  }

  /** Queues the latest records if they are finished: `#write` then deletes the records beyond the limit, and writes no unchanged record. */
  #queueFinished(namespace: string, { rollout, scale }: GroupRuns): void {
    for (const record of [rollout, scale]) {
      if (record !== undefined && record.spec.outcome !== 'running') this.#queue.queueWrite(`${namespace}/${record.metadata.name}`);
    }
  }

  async #write(key: string): Promise<'written' | 'unchanged'> {
    const entry = this.#records.get(key);
    if (entry === undefined) return 'unchanged';
    const { record } = entry;
    const isWritten = entry.written !== undefined && isSameJson(entry.written.spec, record.spec);
    if (!isWritten) {
      const object = await this.#store(record, entry.written).catch((error: unknown) => {
        if (!isNamespaceGone(error)) throw error;
      });
      if (object === undefined) {
        this.#records.delete(key);
        return 'unchanged';
      }
      entry.written = { target: targetOf(object), spec: record.spec };
    }
    if (record.spec.outcome !== 'running') await this.#prune(record.metadata.namespace ?? '', record.spec.group);
    return isWritten ? 'unchanged' : 'written';
  }

  #store(record: RolloutRun, written: RecordEntry['written']): Promise<KubernetesObject> {
    return written === undefined ? this.#create(record) : this.#update(record, written);
  }

  async #create(record: RolloutRun): Promise<KubernetesObject> {
    try {
      return await this.#createNew(record);
    } catch (error) {
      if (!isStatus(error, 409)) throw error;
      // The record exists: the answer to an earlier request was lost, or an earlier leader created it under the same name.
      return await this.#overwrite(record);
    }
  }

  #createNew(record: RolloutRun): Promise<KubernetesObject> {
    const options = { site: 'runs.create', timeoutMs: this.#timeoutMs };
    return createObject(this.#options.env, rolloutRuns, objectOf(record), options);
  }

  #patch(record: RolloutRun, target: Target, before: unknown): Promise<KubernetesObject> {
    const options = { patch: { spec: mergePatch(asJsonObject(before), record.spec) }, site: 'runs.patch', timeoutMs: this.#timeoutMs };
    return patchObject(this.#options.env, rolloutRuns, target, options);
  }

  async #update(record: RolloutRun, { target, spec }: NonNullable<RecordEntry['written']>): Promise<KubernetesObject> {
    try {
      return await this.#patch(record, target, spec);
    } catch (error) {
      if (isStatus(error, 404)) return await this.#create(record);
      if (!isStatus(error, 409)) throw error;
      return await this.#overwrite(record);
    }
  }

  /** Reads the stored object and replaces its content; creates it if it is missing. */
  async #overwrite(record: RolloutRun): Promise<KubernetesObject> {
    const { namespace = '', name } = record.metadata;
    const found = await getObject(this.#options.env, rolloutRuns, { namespace, name }, { site: 'runs.get', timeoutMs: this.#timeoutMs });
    return await (found === undefined ? this.#createNew(record) : this.#patch(record, targetOf(found), found['spec']));
  }

  async #prune(namespace: string, group: string): Promise<void> {
    const finished = [...this.#records]
      .filter(([key, { record }]) => key.startsWith(`${namespace}/`) && record.spec.group === group && record.spec.outcome !== 'running')
      .sort(([, a], [, b]) => ((a.record.spec.endedAt ?? '') < (b.record.spec.endedAt ?? '') ? 1 : -1));
    const limit = this.#groups.get(`${namespace}/${group}`)?.historyLimit ?? finished.length;
    for (const [key, { written }] of finished.slice(limit)) {
      this.#records.delete(key);
      if (written === undefined) continue;
      try {
        await deleteObject(this.#options.env, rolloutRuns, written.target, { site: 'runs.delete', timeoutMs: this.#timeoutMs });
      } catch (error) {
        // 404: the record is deleted already. 409: another writer changed it, and may want to keep it.
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
