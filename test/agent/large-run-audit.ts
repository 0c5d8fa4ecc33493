// What the API server's audit log says of a large run: which pods left in which order, how many were down at once, and what the ledger held.
import type { AuditEvent } from '../control-plane/audit.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { isReady, type Pod, revisionOf } from '../control-plane/workloads.ts';
import type { LargeZone } from './large-run.ts';

/** Pods of one zone that left in a row before one of another zone did. */
interface Stretch {
  readonly statefulSet: string;
  /** Ascending. */
  readonly ordinals: readonly number[];
}

export interface LargeRunFacts {
  readonly stretches: readonly Stretch[];
  /** Of the whole group, at any time: asked to leave, and their successors not Ready yet. */
  readonly maxDown: number;
  /** Times at which pods of more than one zone were down. */
  readonly zonesTogether: number;
  /** Evictions that the API server refused for the budget, whose controller may hear of a Ready pod after the agent has: they are asked for again. */
  readonly refused: number;
  readonly ledger: { readonly writes: number; readonly maxBytes: number; readonly maxClaims: number };
  readonly placements: PlacementFacts;
}

interface PlacementFacts {
  /** Pods that left after the ledger had said at which revision their successors are to be made: under the strategy pinned all of them. */
  readonly promised: number;
  /** Of those, names of the pods whose successors were made at another revision. */
  readonly broken: readonly string[];
  /** How often one pod was taken away so that it comes back at one revision. */
  readonly maxRepeated: number;
  /** Of all successors, as they were made, each once. */
  readonly images: readonly string[];
}

/**
 * Reads one namespace from the log alone. A pod is down from the answer to its eviction until the kubelet's first report that its successor is
 * Ready was sent: the shortest time that it can have been, so that whoever is accused has done it.
 */
export async function largeRunFacts(
  { auditLog, identities }: Pick<ControlPlane, 'auditLog' | 'identities'>,
  namespace: string,
): Promise<LargeRunFacts> {
  const events = (await auditLog()).filter(({ objectRef }) => objectRef?.namespace === namespace);
  const asked = events.filter(({ objectRef, verb, user }) => {
    const isPod = objectRef?.resource === 'pods' && user.username === identities.agent.user;
    return isPod && ((verb === 'create' && objectRef.subresource === 'eviction') || verb === 'delete');
  });
  const left = asked.filter(isDone).toSorted((one, other) => before(one.stageTimestamp, other.stageTimestamp));
  const readyAt = readiness(events, identities.kubelet.user, left);
  const changes = [
    ...left.map(({ objectRef, stageTimestamp }) => ({ at: stageTimestamp, zone: setOf(objectRef?.name), by: 1 })),
    ...readyAt.map(({ pod, at }) => ({ at, zone: setOf(pod), by: -1 })),
  ].sort((one, other) => before(one.at, other.at) || one.by - other.by);
  const down = new Map<string, number>();
  let [maxDown, zonesTogether] = [0, 0];
  for (const { zone, by } of changes) {
    down.set(zone, (down.get(zone) ?? 0) + by);
    const counts = [...down.values()].filter((count) => count > 0);
    maxDown = Math.max(
      maxDown,
      counts.reduce((sum, count) => sum + count, 0),
    );
    if (by > 0 && counts.length > 1) zonesTogether += 1;
  }
  const refused = asked.filter(({ responseStatus }) => responseStatus?.code === 429).length;
  const stored = ledgersIn(events);
  const placements = placementsOf(events, left, stored);
  return { stretches: stretchesOf(left), maxDown, zonesTogether, refused, ledger: ledgerOf(stored), placements };
}

/** What the waves ask for: zone after zone in each, the highest ordinals first, and only those that the wave before has left. */
export function expectedStretches(zones: readonly LargeZone[], percents: readonly number[]): readonly Stretch[] {
  const share = (replicas: number, percent: number): number =>
    percent === 100 ? replicas : Math.min(replicas - 1, Math.ceil((replicas * percent) / 100));
  return percents.flatMap((percent, index) =>
    zones.map(({ statefulSet, replicas }) => {
      const [from, to] = [replicas - share(replicas, percent), replicas - share(replicas, percents[index - 1] ?? 0)];
      return { statefulSet, ordinals: Array.from({ length: to - from }, (_, offset) => from + offset) };
    }),
  );
}

interface Ready {
  readonly pod: string;
  readonly at: string;
}

/** When the successor of each pod that left was first said to be Ready. */
function readiness(events: readonly AuditEvent[], kubelet: string, left: readonly AuditEvent[]): readonly Ready[] {
  const leftAt = new Map(left.map(({ objectRef, stageTimestamp }) => [objectRef?.name ?? '', stageTimestamp]));
  const first = new Map<string, Ready>();
  const born = new Map<string, string>();
  for (const event of events) {
    if (event.objectRef?.resource !== 'pods' || !isDone(event)) continue;
    const pod = podOf(event);
    if (event.verb === 'create' && event.objectRef.subresource === undefined && pod !== undefined)
      born.set(pod.metadata.uid, event.stageTimestamp);
    const isReport = event.user.username === kubelet && event.verb === 'patch' && event.objectRef.subresource === 'status';
    if (!isReport || pod === undefined || !isReady(pod) || first.has(pod.metadata.uid)) continue;
    const wasBorn = born.get(pod.metadata.uid);
    const leaving = leftAt.get(pod.metadata.name);
    if (wasBorn !== undefined && leaving !== undefined && before(leaving, wasBorn) < 0)
      first.set(pod.metadata.uid, { pod: pod.metadata.name, at: event.requestReceivedTimestamp });
  }
  return [...first.values()];
}

function stretchesOf(left: readonly AuditEvent[]): readonly Stretch[] {
  const stretches: { readonly statefulSet: string; readonly ordinals: number[] }[] = [];
  for (const { objectRef } of left) {
    const name = objectRef?.name ?? '';
    const statefulSet = setOf(name);
    const last = stretches.at(-1);
    const ordinal = Number(name.slice(statefulSet.length + 1));
    if (last?.statefulSet === statefulSet) last.ordinals.push(ordinal);
    else stretches.push({ statefulSet, ordinals: [ordinal] });
  }
  return stretches.map(({ statefulSet, ordinals }) => ({ statefulSet, ordinals: ordinals.sort((a, b) => a - b) }));
}

interface ConfigMap {
  readonly metadata?: { readonly name?: string };
  readonly data?: { readonly ledger?: string };
}

/** As far as it is read here. */
interface LedgerText {
  readonly claims?: readonly { readonly uids?: readonly string[] }[];
  /** Those that have settled name neither what they replace nor how often. */
  readonly pins?: readonly { readonly revision: string; readonly replaces?: string; readonly placements?: number }[];
}

interface StoredLedger {
  /** When the write was answered. */
  readonly at: string;
  readonly bytes: number;
  readonly ledger: LedgerText;
}

/** Every ledger that was stored, in the order of the log. */
function ledgersIn(events: readonly AuditEvent[]): readonly StoredLedger[] {
  return (
    events
      .filter((event) => event.objectRef?.resource === 'configmaps' && ['create', 'update', 'patch'].includes(event.verb) && isDone(event))
      // The audit log holds what the server answered, which is the object as it was stored.
      .flatMap(({ responseObject, stageTimestamp: at }) => {
        const text = (responseObject as ConfigMap | undefined)?.data?.ledger;
        return text === undefined ? [] : [{ at, bytes: Buffer.byteLength(text), ledger: JSON.parse(text) as LedgerText }];
      })
  );
}

function ledgerOf(stored: readonly StoredLedger[]): LargeRunFacts['ledger'] {
  // Claims that differ in their pods alone are stored as one.
  const claims = stored.map(({ ledger }) => (ledger.claims ?? []).reduce((sum, { uids }) => sum + (uids?.length ?? 1), 0));
  return {
    writes: stored.length,
    maxBytes: Math.max(0, ...stored.map(({ bytes }) => bytes)),
    maxClaims: Math.max(0, ...claims),
  };
}

type MadePod = Pod & { readonly spec: { readonly containers: readonly { readonly image: string }[] } };

/** A promise counts that was stored before the pod was asked to leave; the successor is the next pod of that name, as the API server stored it. */
function placementsOf(events: readonly AuditEvent[], left: readonly AuditEvent[], stored: readonly StoredLedger[]): PlacementFacts {
  const promises = new Map<string, { readonly at: string; readonly revision: string }>();
  for (const { at, ledger } of stored) {
    for (const { replaces, revision } of ledger.pins ?? [])
      if (replaces !== undefined && !promises.has(replaces)) promises.set(replaces, { at, revision });
  }
  const made = new Map<string, { readonly at: string; readonly pod: MadePod }[]>();
  for (const event of events) {
    const { verb, objectRef, stageTimestamp: at, requestURI } = event;
    const isMade = verb === 'create' && objectRef?.resource === 'pods' && objectRef.subresource === undefined && isDone(event);
    const pod = podOf(event) as MadePod | undefined;
    if (!isMade || pod === undefined || requestURI.includes('dryRun=')) continue;
    const ofName = made.get(pod.metadata.name) ?? [];
    made.set(
      pod.metadata.name,
      [...ofName, { at, pod }].sort((one, other) => before(one.at, other.at)),
    );
  }
  const replaced = left.map(({ objectRef, requestReceivedTimestamp: at }) => {
    const ofName = made.get(objectRef?.name ?? '') ?? [];
    const gone = ofName.findLast((one) => before(one.at, at) < 0)?.pod;
    const next = ofName.find((one) => before(one.at, at) > 0)?.pod;
    const promise = promises.get(gone?.metadata.uid ?? '');
    const isPromised = promise !== undefined && before(promise.at, at) < 0;
    return { name: objectRef?.name ?? '', next, promise: isPromised ? promise.revision : undefined };
  });
  return {
    promised: replaced.filter(({ promise }) => promise !== undefined).length,
    broken: replaced.flatMap(({ name, next, promise }) =>
      promise !== undefined && (next === undefined || revisionOf(next) !== promise) ? [name] : [],
    ),
    maxRepeated: Math.max(0, ...stored.map(({ ledger }) => Math.max(0, ...(ledger.pins ?? []).map(({ placements = 0 }) => placements)))),
    images: [...new Set(replaced.flatMap(({ next }) => next?.spec.containers.map(({ image }) => image) ?? ['none']))].sort(),
  };
}

function podOf({ responseObject }: AuditEvent): Pod | undefined {
  return (responseObject as { readonly kind?: string } | undefined)?.kind === 'Pod' ? (responseObject as Pod) : undefined;
}

function isDone({ responseStatus }: AuditEvent): boolean {
  const code = responseStatus?.code ?? 500;
  return code >= 200 && code < 300;
}

function setOf(pod = ''): string {
  return pod.slice(0, pod.lastIndexOf('-'));
}

/** Instants of the log have microseconds, and one form. */
function before(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
