// Announces admitted evictions that are not observed yet, so that no other webhook and no agent grants the same step again.
import { isStatus } from '../../../cluster/request/failure.ts';
import { claimant } from '../../../engine/judge/admission-claims.ts';
import { observeLedger, openClaims } from '../../../engine/ledger/ledger.ts';
import type { Claim, Ledger, PodView, Snapshot } from '../../../engine/snapshot.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { messageOf } from '../../../policies/error-message.ts';
import type { GroupIdentity, Guard, WebhookEnv } from '../../env.ts';
import { type EvictionRecords, evictionRecords } from './eviction-records.ts';

/** The objects that count for one eviction. */
interface EvictionPlace {
  readonly namespace: string;
  /** Name of the ZoneAwarePodDisruptionBudget. */
  readonly budget: string;
  /** The StatefulSets that the budget selects, and the StatefulSet of the pod. */
  readonly statefulSets: readonly string[];
}

/** An eviction that the snapshot allows. */
interface Approval {
  readonly pod: PodView;
  readonly statefulSet: string;
  /** Name of the requester. */
  readonly user?: string | undefined;
  /** The snapshot behind the verdict. */
  readonly seen: Pick<Snapshot, 'nowMs' | 'statefulSets' | 'pods'>;
}

interface OpenEvictions {
  /** Claims of any kind for these StatefulSets. */
  readonly claims: readonly Claim[];
  /**
   * Announces the eviction. Returns false if another eviction was announced since `open`; then everything must be read again. Rejects with
   * EvictionNotRecorded; the claim may exist nevertheless and makes only the next verdict stricter.
   */
  readonly record: (approval: Approval) => Promise<boolean>;
}

export interface EvictionCache {
  /**
   * Reads the claims from the quorum. Call it before reading the objects, so that they show the end of a claim. Rejects with
   * EvictionNotRecorded if the claims are unknown. `leftMs` is called before each request and throws if no time is left.
   */
  readonly open: (place: EvictionPlace, leftMs: () => number) => Promise<OpenEvictions>;
}

/** Thrown if an eviction cannot be announced and therefore must not be granted. Resolves by itself, or as the message says. */
export class EvictionNotRecorded extends Error {
  override readonly name = 'EvictionNotRecorded';
}

export interface EvictionCacheOptions {
  /** Knows groups and ledgers. Without it every budget has its own record. */
  readonly guard?: Guard | undefined;
  /** Returns whether no other process answers evictions. Only then may records stay in memory if ConfigMaps are forbidden. */
  readonly isAlone: () => boolean;
  /** Called when records are first kept in memory and would be lost with this process. */
  readonly onDegraded?: ((message: string) => void) | undefined;
}

/**
 * If the StatefulSets of a budget form one group, an approval is a claim in the ledger of the group: the agent and every replica count it,
 * it survives restarts, and it ends by observation. Other budgets have a record in a ConfigMap with the same meaning. A pod of a group is
 * also announced in its ledger, for the agent.
 */
export function evictionCache(env: WebhookEnv, { guard, isAlone, onDegraded }: EvictionCacheOptions): EvictionCache {
  const records = evictionRecords(env, { isAlone, onDegraded });
  return {
    open: async (place, leftMs) => {
      const groups = guard === undefined ? noGroups : await groupsOf(guard, place, leftMs);
      const record = groups.areOne ? undefined : await orNotRecorded('read', () => records.read(place));
      const claims = [...groups.members.flatMap(({ ledger }) => ledger.claims), ...(record?.claims ?? [])];
      return { claims, record: (approval) => announce({ place, groups, record, records, guard, leftMs }, approval) };
    },
  };
}

interface Member {
  readonly group: GroupDefinition;
  readonly ledger: Ledger;
}

interface Groups {
  readonly members: readonly Member[];
  /** Every StatefulSet belongs to the same group. */
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

async function announce({ place, groups, record, records, guard, leftMs }: Announcement, approval: Approval): Promise<boolean> {
  const { pod, statefulSet, seen, user } = approval;
  // The record comes first: replicas compare it if there are several groups or none.
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

/** API servers limit a request to this time, so a claim of this age outlasts its eviction. */
const requestMs = 60_000;

/** Returns the same ledger if the pod was announced recently; renews an older claim. Throws EvictionNotRecorded if the ledger is full. */
function withEviction(ledger: Ledger, claim: Claim, pruned: (ledger: Ledger) => Ledger): Ledger {
  const known = ledger.claims.filter(({ uid, verb }) => uid === claim.uid && verb !== 'scaleDown');
  if (known.some(({ atMs }) => Math.abs(claim.atMs - atMs) <= requestMs)) return ledger;
  const older = known.find(({ verb }) => verb === 'evictPod');
  const others = keeping(pruned(ledger), (candidate) => candidate !== older);
  const next = openClaims(others, [{ ...older, ...claim }]);
  if (next !== undefined) return next;
  const what = `${ledger.claims.length} disruptions of ${ledger.group} are announced`;
  throw new EvictionNotRecorded(`${what}, the maximum; they end when the replacement pods are available`);
}

/** Ten minutes: longer than the two minutes for which a claim counts, even with clocks that differ. */
const keepMs = 600_000;

/** Removes evictions that ended or were never carried out, because without an agent nothing else does. Claims of an agent stay. */
function prunedLedger(ledger: Ledger, groups: readonly GroupDefinition[], seen: Approval['seen']): Ledger {
  const openForMs = ({ atMs }: Claim): number => (Math.abs(seen.nowMs - atMs) > keepMs ? keepMs : 0);
  const observed = observeLedger(ledger, { ...seen, groups }, { keepDownscalesMs: Number.POSITIVE_INFINITY, openForMs });
  const open = new Set(observed.claims);
  return keeping(ledger, (claim) => claim.verb !== 'evictPod' || claim.epoch !== undefined || open.has(claim));
}

/** Drops entries without a pod from a record: the successor counts by itself. */
function prunedRecord(record: Ledger, { nowMs, pods }: Approval['seen']): Ledger {
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
