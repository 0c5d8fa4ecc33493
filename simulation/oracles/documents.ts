// Reads stored ledgers for the judges, without code of the agent: claims, epoch, preparations and pins.

import type { TurnReport } from '../../agent/report.ts';
import { keptByObject } from '../../policies/values/map.ts';
import {
  configMapResource,
  field,
  groupResource,
  isTerminating,
  leaseResource,
  listAt,
  numberAt,
  parsed,
  podResource,
  statefulSetResource,
  textAt,
} from '../objects.ts';
import { runStartMs } from '../process/clock.ts';
import type { Commit, ModelObject } from '../server/request.ts';
import type { Oracle, Scene } from './oracle.ts';

type ClaimVerb = 'deletePod' | 'evictPod' | 'scaleDown' | 'setPartition';

export interface Claimed {
  readonly verb: ClaimVerb;
  readonly zone: string;
  /** The UID of the pod, or of the StatefulSet for scaleDown and setPartition. */
  readonly uid: string;
  readonly resourceVersion: string | undefined;
  readonly to: number | undefined;
  /** The time at which a webhook made the claim, on its wall clock; undefined for a claim of an agent. */
  readonly admittedWallMs: number | undefined;
}

/** A pin: a new pod of this ordinal is created at this revision. */
export interface PinnedPod {
  readonly zone: string;
  readonly ordinal: number;
  readonly revision: string;
}

/** The run of a ledger. Revisions are by the name of the zone. */
export interface RunText {
  readonly id: string;
  readonly outcome: string;
  readonly target: Readonly<Record<string, unknown>>;
  readonly previous: Readonly<Record<string, unknown>>;
  /** True if the run returns zones to earlier revisions. */
  readonly isRollback: boolean;
  /** True if the failure of the run causes no rollback: it is a rollback, or a person aborted it without a rollback. */
  readonly stays: boolean;
  readonly openZone: string | undefined;
  /** The index of the wave. */
  readonly wave: number;
  /** True if the run has replaced a pod. */
  readonly hasReplaced: boolean;
  /** The revisions that failed and that the run replaces by its target. */
  readonly rolledBack: Readonly<Record<string, unknown>>;
  /** The revisions to which a rollback returns, also of zones that left the group since. */
  readonly restores: Readonly<Record<string, unknown>>;
}

export interface LedgerText {
  readonly format: string;
  readonly group: string;
  readonly epoch: number | undefined;
  /** The claims by `keyOf`. */
  readonly claims: ReadonlyMap<string, Claimed>;
  /** The pods that may be prepared to leave. Entries outlive their pods, because successors may be prepared too. */
  readonly prepared: readonly { readonly zone: string; readonly ordinal: number }[];
  readonly pins: ReadonlyMap<string, PinnedPod>;
  /** The zones of the run; empty without a run, and after its end. */
  readonly rolling: readonly string[];
  readonly run?: RunText;
}

/** Returns whether a ConfigMap is the ledger of a group. */
export function isLedger({ metadata }: ModelObject): boolean {
  return metadata.name.startsWith('rollout-group-') && metadata.labels?.['rollout-group.dev/document'] === 'ledger';
}

/** Returns the content of a ledger; undefined if it cannot be parsed. Several judges read each stored state, which never changes. */
export const readLedger: (object: ModelObject) => LedgerText | undefined = keptByObject(contentOf);

function contentOf(object: ModelObject): LedgerText | undefined {
  const value = parsed(textAt(object, 'data', 'ledger'));
  if (value === undefined) return undefined;
  const claims = new Map<string, Claimed>();
  for (const entry of listAt(value, 'claims')) for (const claim of claimsOf(entry)) claims.set(keyOf(claim), claim);
  const prepared = listAt(value, 'preparations')
    // The entry of a failed preparation stays after the withdrawal, but its pod is no longer prepared.
    .filter((entry) => field(entry, 'isWithdrawn') !== true)
    .flatMap((entry) => ordinalsOf(textAt(entry, 'ordinals') ?? '').map((ordinal) => ({ zone: textAt(entry, 'zone') ?? '', ordinal })));
  const pins = new Map(
    listAt(value, 'pins')
      .flatMap(pinnedOf)
      .map((one) => [pinKey(one.zone, one.ordinal), one]),
  );
  const run = runIn(value);
  return {
    format: textAt(value, 'format') ?? '',
    group: textAt(value, 'group') ?? '',
    epoch: numberAt(value, 'epoch'),
    claims,
    prepared,
    pins,
    rolling: textAt(value, 'run', 'outcome') === 'completed' ? [] : Object.keys(field(value, 'run', 'target') ?? {}),
    ...(run === undefined ? {} : { run }),
  };
}

function runIn(value: unknown): RunText | undefined {
  const id = textAt(value, 'run', 'id');
  if (id === undefined) return undefined;
  const outcome = textAt(value, 'run', 'outcome') ?? '';
  const target: Readonly<Record<string, unknown>> = { ...(field(value, 'run', 'target') ?? {}) };
  const rolledBack: Readonly<Record<string, unknown>> = { ...(field(value, 'run', 'rolledBack', 'revisions') ?? {}) };
  const previous: Readonly<Record<string, unknown>> = { ...(field(value, 'run', 'previous') ?? {}) };
  const restores: Readonly<Record<string, unknown>> = { ...(field(value, 'run', 'restores') ?? {}) };
  const isRollback = textAt(value, 'run', 'kind') === 'rollback';
  const stays = isRollback || textAt(value, 'run', 'onFailure') === 'pause';
  const openZone = textAt(value, 'run', 'openZone');
  const wave = numberAt(value, 'run', 'wave') ?? 0;
  const hasReplaced = (numberAt(value, 'run', 'lastDisruptionMs') ?? -1) >= (numberAt(value, 'run', 'startedMs') ?? 0);
  return { id, outcome, target, previous, isRollback, stays, openZone, wave, hasReplaced, rolledBack, restores };
}

export function pinKey(zone: string, ordinal: number): string {
  return `${zone} ${ordinal}`;
}

function pinnedOf(row: unknown): readonly PinnedPod[] {
  const [zone, revision] = [textAt(row, 'zone') ?? '', textAt(row, 'revision') ?? ''];
  const one = numberAt(row, 'ordinal');
  const ordinals = one === undefined ? ordinalsOf(textAt(row, 'ordinals') ?? '') : [one];
  return ordinals.map((ordinal) => ({ zone, ordinal, revision }));
}

/** Returns the prepared pods that are not removed, because their ordinals belong to the StatefulSet. */
export function stayingPods({ prepared }: LedgerText, scene: Pick<Scene, 'list' | 'get' | 'namespace'>): readonly string[] {
  if (prepared.length === 0) return [];
  const zones = scene.list(groupResource, scene.namespace).flatMap((group) => listAt(group, 'spec', 'members', 'zones'));
  return prepared.flatMap(({ zone, ordinal }) => {
    // Zones found by labels have the names of their StatefulSets.
    const member = zones.find((one) => field(one, 'name') === zone);
    const name = textAt(member, 'statefulSet') ?? zone;
    const spec = scene.get(statefulSetResource, scene.namespace, name)?.['spec'];
    const end = (numberAt(spec, 'ordinals', 'start') ?? 0) + (numberAt(spec, 'replicas') ?? 1);
    return ordinal < end ? [`${name}-${ordinal}`] : [];
  });
}

function ordinalsOf(ranges: string): readonly number[] {
  return ranges.split(',').flatMap((range) => {
    const [from = 0, to = from] = range.split('-').map(Number);
    return Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);
  });
}

/** The time after which a request without an effect no longer counts: twice the longest duration of a request. */
export const unappliedMs = 120_000;
/** The time in which the agent has its next turn. */
const nextTurnMs = 1_000;

/**
 * Returns whether the claim is open. A claim of a webhook stays stored until the next write, also when it is applied or has expired. It
 * expires by the time since which the leader knows it, because the clocks of the webhooks can be wrong.
 */
export function isOpenClaim(claim: Claimed, scene: Pick<Scene, 'list' | 'namespace' | 'nowMs' | 'claimKnownMs'>): boolean {
  if (claim.admittedWallMs === undefined) return true;
  const sinceMs = scene.claimKnownMs?.(claim) ?? claim.admittedWallMs - runStartMs;
  return isUnapplied(claim, scene) && scene.nowMs() - sinceMs < unappliedMs + nextTurnMs;
}

/** Records since when the holder of the Lease knows each stored claim: it compares ledgers only when it writes one. */
export class KnownClaims implements Oracle {
  readonly #nowMs: () => number;
  /** The times at which the claims were stored, by ledger and claim. */
  readonly #storedMs = new Map<string, Map<string, number>>();
  /** The claims that this holder knows, with the times at which the first turn of this holder with the claim ended. */
  readonly #turns = new Map<string, { readonly claim: Pick<Claimed, 'uid' | 'to'>; readonly endedMs: number }>();
  #holder: string | undefined;
  #isLeading = false;
  #ledSinceMs = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  committed({ resource, type, after, atMs }: Pick<Commit, 'resource' | 'type' | 'after' | 'atMs'>): void {
    if (resource === leaseResource) this.#ledBy(type === 'DELETED' ? undefined : textAt(after, 'spec', 'holderIdentity'));
    if (resource !== configMapResource || !isLedger(after)) return;
    const before = this.#storedMs.get(after.metadata.name);
    const claims = type === 'DELETED' ? [] : (readLedger(after)?.claims.values() ?? []);
    const keys = [...claims].map((claim) => timedKeyOf(claim, claim.admittedWallMs));
    this.#storedMs.set(after.metadata.name, new Map(keys.map((key) => [key, before?.get(key) ?? atMs])));
  }

  turnEnded(process: string, { ledger }: Pick<TurnReport, 'ledger'>): void {
    if (process !== this.#holder || ledger === undefined) return;
    const claims = new Map(ledger.claims.map((claim) => [timedKeyOf(claim, claim.epoch === undefined ? claim.atMs : undefined), claim]));
    for (const key of this.#turns.keys()) if (!claims.has(key)) this.#turns.delete(key);
    for (const [key, { uid, to }] of claims)
      if (!this.#turns.has(key)) this.#turns.set(key, { claim: { uid, to }, endedMs: this.#nowMs() });
  }

  /** Returns since when the claim counts, in virtual milliseconds. A claim that the holder has not read yet counts since it was stored. */
  knownMs(claim: Claimed): number {
    const key = timedKeyOf(claim, claim.admittedWallMs);
    const storedMs = [...this.#storedMs.values()].flatMap((claims) => claims.get(key) ?? []);
    return this.#turns.get(key)?.endedMs ?? Math.max(this.#ledSinceMs, ...storedMs);
  }

  /** Returns whether a webhook removed a claim that has not expired for the holder. The holder writes the ledger when the claim ends for it. */
  hasRemovedClaim(scene: Pick<Scene, 'list' | 'namespace' | 'nowMs'>): boolean {
    const isStored = (key: string): boolean => [...this.#storedMs.values()].some((claims) => claims.has(key));
    return [...this.#turns].some(
      ([key, { claim, endedMs }]) => !isStored(key) && isUnapplied(claim, scene) && scene.nowMs() - endedMs < unappliedMs + nextTurnMs,
    );
  }

  /** A leader that could not renew its Lease forgets its claims, and may then lead again without another holder between. */
  leadershipChanged(process: string, isLeader: boolean): void {
    if (process !== this.#holder || isLeader === this.#isLeading) return;
    this.#isLeading = isLeader;
    this.#forget();
  }

  #ledBy(holder: string | undefined): void {
    if (holder === this.#holder) return;
    this.#holder = holder;
    this.#isLeading = false;
    this.#forget();
  }

  #forget(): void {
    this.#ledSinceMs = this.#nowMs();
    this.#turns.clear();
  }
}

/** Returns whether the pod is present, or the replicas are above those of the claim, so that the request may still arrive. */
function isUnapplied({ uid, to }: Pick<Claimed, 'uid' | 'to'>, { list, namespace }: Pick<Scene, 'list' | 'namespace'>): boolean {
  if (to === undefined) return list(podResource, namespace).some((pod) => pod.metadata.uid === uid && !isTerminating(pod));
  return list(statefulSetResource, namespace).some((set) => set.metadata.uid === uid && (numberAt(set, 'spec', 'replicas') ?? 1) > to);
}

interface ClaimParts {
  readonly verb: string;
  readonly uid: string;
  readonly to?: number | undefined;
  readonly resourceVersion?: string | undefined;
}

/** Returns a key that is the same for equal claims. */
export function keyOf({ verb, uid, to, resourceVersion }: ClaimParts): string {
  return `${verb} ${uid} ${to ?? ''} ${resourceVersion ?? ''}`;
}

/** Returns a key that differs for the claim of a repeated request: the leader counts its time from the start. */
function timedKeyOf(claim: ClaimParts, atMs: number | undefined): string {
  return `${keyOf(claim)} ${atMs ?? ''}`;
}

function claimsOf(entry: unknown): readonly Claimed[] {
  const verb = textAt(entry, 'verb') as ClaimVerb | undefined;
  const zone = textAt(entry, 'zone') ?? '';
  if (verb === undefined) return [];
  const admittedWallMs = numberAt(entry, 'epoch') === undefined ? numberAt(entry, 'atMs') : undefined;
  if (verb === 'scaleDown' || verb === 'setPartition') {
    return [
      {
        verb,
        zone,
        uid: textAt(entry, 'uid') ?? '',
        resourceVersion: textAt(entry, 'resourceVersion'),
        to: numberAt(entry, 'to'),
        admittedWallMs,
      },
    ];
  }
  const versions = listAt(entry, 'resourceVersions');
  return listAt(entry, 'uids').map((uid, index) => {
    const version = versions[index];
    return {
      verb,
      zone,
      uid: String(uid),
      resourceVersion: typeof version === 'string' ? version : undefined,
      to: undefined,
      admittedWallMs,
    };
  });
}
