// Stores a claim for each eviction that pod-eviction admits, so that no other webhook and no agent uses the same free part of a budget.
import { isStatus } from '../../../cluster/request/failure.ts';
import { dataText, type KubernetesObject, resources } from '../../../cluster/request/resource.ts';
import { SharedObject } from '../../../cluster/shared/shared-object.ts';
import { claimant, repeatMs } from '../../../engine/judge/admission-claims.ts';
import { observeLedger, openClaims } from '../../../engine/ledger/ledger.ts';
import { decodeLedger, encodeLedger, ledgerKey, ledgerLabel } from '../../../engine/ledger/ledger-document.ts';
import { type Claim, emptyLedger, type Known, type Ledger, orThrow, type PodView, type Snapshot } from '../../../engine/snapshot.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { messageOf } from '../../../policies/error-message.ts';
import { hashText } from '../../../policies/values/hash.ts';
import { getOrCreate } from '../../../policies/values/map.ts';
import type { GroupIdentity, Guard, WebhookEnv } from '../../env.ts';

/** The budget and the StatefulSets that count for one eviction. */
interface EvictionPlace {
  readonly namespace: string;
  /** Name of the ZoneAwarePodDisruptionBudget. */
  readonly budget: string;
  /** The StatefulSets that the budget selects, and the StatefulSet of the pod. */
  readonly statefulSets: readonly string[];
}

interface AllowedEviction {
  readonly pod: PodView;
  readonly statefulSet: string;
  readonly user?: string | undefined;
  readonly seen: Pick<Snapshot, 'nowMs' | 'statefulSets' | 'pods'>;
}

interface OpenEvictions {
  /** All claims in the record of the budget and in the ledgers of its groups. */
  readonly claims: readonly Claim[];
  /**
   * Stores the claim. Returns false if the record or the ledger changed after `open`; then the caller must read all again. Rejects with
   * EvictionNotRecorded if the write failed or its outcome is unknown.
   */
  readonly record: (allowed: AllowedEviction) => Promise<boolean>;
}

export interface EvictionCache {
  /**
   * Reads the claims with quorum reads. Must precede the read of pods, because pods show the end of a claim. Rejects with
   * EvictionNotRecorded if the claims are unknown. Calls `leftMs` before each request; `leftMs` throws if no time is left.
   */
  readonly open: (place: EvictionPlace, leftMs: () => number) => Promise<OpenEvictions>;
}

/** The error for an eviction whose claim cannot be stored. The eviction must be denied. */
export class EvictionNotRecorded extends Error {
  override readonly name = 'EvictionNotRecorded';
}

export interface EvictionCacheOptions {
  /** Reads groups and ledgers. Without a guard, every budget has its own record. */
  readonly guard?: Guard | undefined;
  /** Returns whether this process may assume that no other process answers evictions. Only then may it keep records in memory. */
  readonly isAlone: () => boolean;
}

/**
 * Returns the cache. If all StatefulSets of a budget belong to one group, the claims are in the ledger of this group. Otherwise the claims
 * are in a record (a ConfigMap for each budget). The claim of a pod that belongs to a group is also in the ledger of that group.
 */
export function evictionCache(env: WebhookEnv, options: EvictionCacheOptions): EvictionCache {
  const { guard } = options;
  const records = evictionRecords(env, options);
  return {
    open: async (place, leftMs) => {
      const groups = guard === undefined ? noGroups : await groupsOf(guard, place, leftMs);
      const record = groups.areOne ? undefined : await orNotRecorded('read', () => records.read(place));
      const claims = [...groups.members.flatMap(({ ledger }) => ledger.claims), ...(record?.claims ?? [])];
      return { claims, record: (allowed) => announce({ place, groups, record, records, guard, leftMs }, allowed) };
    },
  };
}

interface Member {
  readonly group: GroupDefinition;
  readonly ledger: Ledger;
}

interface Groups {
  readonly members: readonly Member[];
  /** True if all StatefulSets belong to one group. */
  readonly areOne: boolean;
  readonly policies: readonly GroupDefinition[];
}

const noGroups: Groups = { members: [], areOne: false, policies: [] };

async function groupsOf(guard: Guard, { namespace, statefulSets }: EvictionPlace, leftMs: () => number): Promise<Groups> {
  if (!guard.isSettled()) throw new EvictionNotRecorded('policies are not loaded yet, so the ledger of the pod is unknown');
  return orNotRecorded('read', async () => {
    const first = await guard.snapshot(namespace, [], leftMs());
    const found = groupsWith(first.groups, namespace, statefulSets);
    if (found.length === 0) return { ...noGroups, policies: first.groups };
    const { groups, ledgers, unread = [] } = await guard.snapshot(namespace, found.map(identityOf), leftMs());
    const members = found.map((group): Member => {
      const problem = unread.find(
        ({ kind, namespace: where, name }) =>
          kind === 'Ledger' && (where ?? namespace) === namespace && (name === undefined || name === group.name),
      );
      if (problem !== undefined) throw new Error(problem.unknown);
      const ledger = ledgers.find((candidate) => candidate.namespace === namespace && candidate.group === group.name);
      if (ledger === undefined) throw new Error(`the ledger of ${namespace}/${group.name} was not read`);
      return { group, ledger };
    });
    const [only] = found;
    const areOne = found.length === 1 && only !== undefined && statefulSets.every((name) => zoneOf(only, name) !== undefined);
    return { members, areOne, policies: groups };
  });
}

function groupsWith(groups: readonly GroupDefinition[], namespace: string, statefulSets: readonly string[]): readonly GroupDefinition[] {
  return groups
    .filter((group) => group.namespace === namespace && statefulSets.some((name) => zoneOf(group, name) !== undefined))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function zoneOf(group: GroupDefinition, statefulSet: string): string | undefined {
  return group.zones.find((zone) => zone.statefulSet === statefulSet)?.name;
}

function identityOf({ namespace, name }: GroupDefinition): GroupIdentity {
  return { namespace, name };
}

interface Announcement {
  readonly place: EvictionPlace;
  readonly groups: Groups;
  readonly record: Ledger | undefined;
  readonly records: EvictionRecords;
  readonly guard: Guard | undefined;
  readonly leftMs: () => number;
}

async function announce({ place, groups, record, records, guard, leftMs }: Announcement, allowed: AllowedEviction): Promise<boolean> {
  const { pod, statefulSet, seen, user } = allowed;
  // The record comes first: other replicas compare it, because no ledger has all claims of a budget with several groups.
  if (record !== undefined) {
    const next = withEviction(record, claimOn(statefulSet, pod, { atMs: seen.nowMs, user }), (known) => prunedRecord(known, seen));
    const isStored = next === record || (await orNotRecorded('write', () => records.write(place, record, next)));
    if (!isStored) return false;
  }
  const member = groups.members.find(({ group }) => zoneOf(group, statefulSet) !== undefined);
  if (member === undefined || guard === undefined) return true;
  const zone = zoneOf(member.group, statefulSet) ?? statefulSet;
  const { ledger } = member;
  const next = withEviction(ledger, claimOn(zone, pod, { atMs: seen.nowMs, user }), (known) => prunedLedger(known, groups.policies, seen));
  if (next === ledger) return true;
  return orNotRecorded('write', () => guard.store(identityOf(member.group), ledger, next, leftMs()));
}

function claimOn(
  zone: string,
  { uid, ordinal }: PodView,
  { atMs, user }: { readonly atMs: number; readonly user: string | undefined },
): Claim {
  return { verb: 'evictPod', zone, uid, ...(ordinal < 0 ? {} : { ordinal }), atMs, ...claimant(user) };
}

/** Adds a claim, or renews one that may end before the request. Returns the ledger unchanged for another claim. Throws if the ledger is full. */
function withEviction(ledger: Ledger, claim: Claim, pruned: (ledger: Ledger) => Ledger): Ledger {
  const known = ledger.claims.filter(({ uid, verb }) => uid === claim.uid && verb !== 'scaleDown');
  if (known.some(({ atMs }) => Math.abs(claim.atMs - atMs) <= repeatMs)) return ledger;
  const older = known.find(({ verb }) => verb === 'evictPod');
  const others = keeping(pruned(ledger), (candidate) => candidate !== older);
  const next = openClaims(others, [{ ...older, ...claim }]);
  if (next !== undefined) return next;
  const what = `${ledger.claims.length} disruptions of ${ledger.group} are announced`;
  throw new EvictionNotRecorded(`${what}, the maximum; they end when the replacement pods are available`);
}

/** The age at which a claim on an unchanged pod is removed. It exceeds the two minutes for which a claim counts, even if clocks differ. */
const keepMs = 600_000;

/** Removes claims of evictions that ended or never happened: without an agent, no other code removes them. Claims of an agent stay. */
function prunedLedger(ledger: Ledger, groups: readonly GroupDefinition[], seen: AllowedEviction['seen']): Ledger {
  const openForMs = ({ atMs }: Claim): number => (Math.abs(seen.nowMs - atMs) > keepMs ? keepMs : 0);
  const observed = observeLedger(ledger, { ...seen, groups }, { keepDownscalesMs: Number.POSITIVE_INFINITY, openForMs });
  const open = new Set(observed.claims);
  return keeping(ledger, (claim) => claim.verb !== 'evictPod' || claim.epoch !== undefined || open.has(claim));
}

/** Removes old claims, and claims whose pod is gone: the successor of such a pod counts as unavailable until it is ready. */
function prunedRecord(record: Ledger, { nowMs, pods }: AllowedEviction['seen']): Ledger {
  const uids = new Set<string>();
  const read = new Set<string>();
  for (const view of pods) {
    if ('unknown' in view.pods) continue;
    read.add(view.statefulSet);
    for (const { uid } of view.pods) uids.add(uid);
  }
  return keeping(record, ({ uid, zone, atMs }) => Math.abs(nowMs - atMs) <= keepMs && (uids.has(uid) || !read.has(zone)));
}

function keeping(ledger: Ledger, isKept: (claim: Claim) => boolean): Ledger {
  const claims = ledger.claims.filter(isKept);
  return claims.length === ledger.claims.length ? ledger : { ...ledger, claims };
}

async function orNotRecorded<Value>(verb: 'read' | 'write', attempt: () => Promise<Value>): Promise<Value> {
  try {
    return await attempt();
  } catch (error) {
    if (error instanceof EvictionNotRecorded) throw error;
    const what = verb === 'read' ? 'announced evictions could not be read' : 'the eviction could not be announced';
    const advice = isStatus(error, 403) ? '; grant get, create and update of configmaps, or run a single replica' : '';
    throw new EvictionNotRecorded(`${what}: ${messageOf(error)}${advice}`);
  }
}

type RecordIdentity = Pick<EvictionPlace, 'namespace' | 'budget'>;

type EvictionRecords = ReturnType<typeof evictionRecords>;

/** Value of the label that distinguishes a record from the ledger of a group. */
const recordLabel = 'evictions';

const longestName = 253;

/** Timeout of each request. It is shorter than the deadline of the endpoint, so that a second attempt fits. */
const timeoutMs = 4000;

function recordName(budget: string): string {
  const name = `rollout-group-evictions-${budget}`;
  return name.length <= longestName ? name : `rollout-group-evictions-${hashText(budget)}`;
}

/**
 * Returns the records of all budgets. A record is a ledger with claims only, and its zones are StatefulSets. If ConfigMaps are forbidden
 * and `isAlone` returns true, keeps the records in memory and reports this once.
 */
function evictionRecords(env: WebhookEnv, { isAlone }: EvictionCacheOptions) {
  const shared = new Map<string, SharedObject<Ledger>>();
  const memory = new Map<string, Ledger>();
  let isDegraded = false;

  const create = (identity: RecordIdentity): SharedObject<Ledger> =>
    new SharedObject<Ledger>({
      env,
      resource: resources.configMaps,
      namespace: identity.namespace,
      name: recordName(identity.budget),
      decode: (stored) => orThrow(decode(stored, identity)),
      encode,
      timeoutMs,
      site: 'evictionRecord',
    });
  const objectOf = (identity: RecordIdentity): SharedObject<Ledger> => getOrCreate(shared, keyOf(identity), () => create(identity));

  /** Returns undefined if ConfigMaps are forbidden and `isAlone` returns true. */
  const unlessForbidden = async <Value>(attempt: () => Promise<Value>): Promise<Value | undefined> => {
    try {
      return await attempt();
    } catch (error) {
      if (!isStatus(error, 403) || !isAlone()) throw error;
      if (!isDegraded) {
        isDegraded = true;
        const consequence = 'announced evictions are kept in memory and lost with this process; run only one replica';
        env.log.error('announced evictions cannot be stored', { problem: error.message, consequence });
      }
      return undefined;
    }
  };

  // Claims that were kept in memory while the API server refused writes still count after it accepts writes.
  const current = (identity: RecordIdentity, stored = emptyLedger(identity.namespace, identity.budget)): Ledger =>
    joined(stored, memory.get(keyOf(identity)));

  return {
    /** Reads the stored record with a quorum read. Rejects if it cannot be read or parsed. */
    read: async (identity: RecordIdentity): Promise<Ledger> =>
      current(identity, await unlessForbidden(async () => (await objectOf(identity).read()).value)),
    /** Stores `next` if the record is still `base`. Returns false otherwise; rejects if the outcome is unknown. */
    write: async (identity: RecordIdentity, base: Ledger, next: Ledger): Promise<boolean> => {
      const isBase = (stored?: Ledger): boolean => textOf(current(identity, stored)) === textOf(base);
      const isStored = await unlessForbidden(() => replaced(objectOf(identity), next, isBase));
      if (isStored === true) memory.delete(keyOf(identity));
      if (isStored !== undefined) return isStored;
      if (!isBase()) return false;
      memory.set(keyOf(identity), next);
      return true;
    },
  };
}

async function replaced(object: SharedObject<Ledger>, next: Ledger, isBase: (current: Ledger) => boolean): Promise<boolean> {
  let isStored = false;
  await object.update((current) => {
    isStored = isBase(current);
    return isStored ? next : current;
  });
  return isStored;
}

function joined(record: Ledger, kept: Ledger | undefined): Ledger {
  if (kept === undefined) return record;
  const uids = new Set(record.claims.map(({ uid }) => uid));
  return { ...record, claims: [...record.claims, ...kept.claims.filter(({ uid }) => !uids.has(uid))] };
}

function keyOf({ namespace, budget }: RecordIdentity): string {
  return `${namespace}/${budget}`;
}

function decode(object: KubernetesObject | undefined, { namespace, budget }: RecordIdentity): Known<Ledger> {
  return decodeLedger(dataText(object, ledgerKey), { namespace, group: budget });
}

function encode(record: Ledger) {
  return { metadata: { labels: { [ledgerLabel.key]: recordLabel } }, data: { [ledgerKey]: textOf(record) } };
}

function textOf(record: Ledger): string {
  return orThrow(encodeLedger(record));
}
