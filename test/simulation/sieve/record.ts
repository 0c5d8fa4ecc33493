// Records a run without faults: each write of an agent and each line of a watch, in order.

import { playGenerated } from '../../../scripts/soak/generated.ts';
import type { Point } from '../../../simulation/faults/fault.ts';
import type { RunOptions, RunResult } from '../../../simulation/run.ts';
import type { Scenario } from '../../../simulation/scenario.ts';
import type { Json, ModelObject } from '../../../simulation/server/request.ts';

/** An effective request, or a call that changed a pod; without renewals of the Lease. */
export interface RecordedWrite {
  /** Place of the request (Point.key). */
  readonly at: string;
  readonly process: string;
  readonly site: string;
  /** Position in the recording. */
  readonly order: number;
  /** Finished turns of its process when it was sent. */
  readonly turn: number;
  /** `delete pods ingester-zone-a-1`. */
  readonly what: string;
}

/** A delivered line. */
export interface RecordedLine {
  readonly at: string;
  readonly process: string;
  readonly atMs: number;
  readonly order: number;
  readonly turn: number;
  /** Resource of the watch and name of the object: `pods mimir/ingester-zone-a-1`. */
  readonly object: string;
  readonly revision: number;
  /** Facts that a controller may read in it: `{ ready: 'true', revision: '…' }`. */
  readonly says: Says;
  /** The facts before this change. */
  readonly before: Says;
}

export type Says = Readonly<Record<string, string>>;

export interface Recording {
  readonly scenario: Scenario;
  readonly result: RunResult;
  readonly writes: readonly RecordedWrite[];
  readonly lines: readonly RecordedLine[];
}

/** Plays and records the scenario. */
export async function record(scenario: Scenario, options: RunOptions = {}): Promise<Recording> {
  const sent = new Map<string, RecordedWrite>();
  const effective = new Set<string>();
  const lines: RecordedLine[] = [];
  const turns = new Map<string, number>();
  const former = new Map<number, ModelObject>();
  let order = 0;
  /** No fault is injected any more. */
  let isOver = false;
  const next = (process: string): { readonly order: number; readonly turn: number } => {
    order += 1;
    return { order, turn: turns.get(process) ?? 0 };
  };
  const note = ({ key, process, site }: Point, verb: string): void => {
    sent.set(key, { at: key, process, site, ...next(process), what: verb });
    // Pods do not report the effect of a call.
    if (!isOver && isPodWrite(site)) effective.add(key);
  };
  const result = await playGenerated(scenario, {
    ...options,
    observer: {
      sending: note,
      answered: ({ request, verb, resource, subresource, name, revisions, isDryRun }) => {
        const write = sent.get(request.actor.point ?? '');
        if (isOver || write === undefined || revisions.length === 0 || isDryRun || resource === 'leases.coordination.k8s.io') return;
        effective.add(write.at);
        sent.set(write.at, { ...write, what: `${verb} ${subresource === '' ? resource : `${resource}/${subresource}`} ${name}` });
      },
      lineArrived: ({ key, process, site, atMs }, text) => {
        const told = toldBy(site, text);
        if (isOver || told === undefined) return;
        const before = former.get(told.revision);
        const said = before === undefined ? isGone : { exists: 'true', ...sayings(resourceOf(site), before) };
        lines.push({ at: key, process, atMs, ...next(process), ...told, before: said });
      },
      committed: ({ revision, before }) => {
        if (before !== undefined) former.set(revision, before);
      },
      healingBegan: () => {
        isOver = true;
      },
      turnEnded: (process) => {
        turns.set(process, (turns.get(process) ?? 0) + 1);
      },
    },
  });
  return { scenario, result, writes: [...sent.values()].filter(({ at }) => effective.has(at)), lines };
}

function isPodWrite(site: string): boolean {
  return site === 'pods.prepare' || site === 'pods.withdraw';
}

const isGone: Says = { exists: 'false' };

function toldBy(site: string, text: string): Pick<RecordedLine, 'object' | 'revision' | 'says'> | undefined {
  const { type, object } = JSON.parse(text) as { readonly type: string; readonly object: Json };
  const { namespace = '', name, resourceVersion } = part(object, 'metadata');
  if (type === 'BOOKMARK' || type === 'ERROR' || typeof name !== 'string') return undefined;
  const resource = resourceOf(site);
  return {
    object: `${resource} ${String(namespace)}/${name}`,
    revision: Number(resourceVersion),
    says: type === 'DELETED' ? isGone : { exists: 'true', ...sayings(resource, object) },
  };
}

function resourceOf(site: string): string {
  return site.replace(/^watch\./, '').replace(/\.watch$/, '');
}

/** Returns the facts of an object that a rollout controller could act on. */
export function sayings(resource: string, object: Json): Says {
  const [metadata, spec, status] = [part(object, 'metadata'), part(object, 'spec'), part(object, 'status')];
  if (resource === 'pods') {
    const conditions = (status['conditions'] ?? []) as readonly { readonly type: string; readonly status: string }[];
    const isReady = conditions.some((condition) => condition.type === 'Ready' && condition.status === 'True');
    const isLeaving = metadata['deletionTimestamp'] !== undefined;
    return said({ isReady: isReady && !isLeaving, isLeaving, revision: part(metadata, 'labels')['controller-revision-hash'] });
  }
  if (resource === 'statefulsets') {
    const { updateRevision, currentRevision, readyReplicas, replicas } = status;
    return said({ wanted: spec['replicas'], updateRevision, currentRevision, readyReplicas, replicas, uid: metadata['uid'] });
  }
  return said({ spec: JSON.stringify(spec), replicas: status['replicas'] });
}

function said(values: Readonly<Record<string, unknown>>): Says {
  return Object.fromEntries(Object.entries(values).map(([aspect, value]) => [aspect, String(value)]));
}

function part(value: Json, name: string): Json {
  return (value[name] ?? {}) as Json;
}
