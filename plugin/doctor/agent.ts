// Is an agent there, does it work, is it the only one, and may it do what it has to?
import { isUnknown } from '../../engine/snapshot.ts';
import { ageText } from '../live/when.ts';
import { plural } from '../output/plural.ts';
import type { AgentRight } from './agent-rights.ts';
import {
  type AccountFact,
  type Check,
  type CheckResult,
  type Facts,
  type LeaseFact,
  orOk,
  type PublishedFact,
  type RightFact,
  skipped,
} from './check.ts';

/** The Lease, its holder, and the latest decision. */
export const agentPresent: Check = (facts) => {
  const { leases, agentNamespace, nowMs } = facts;
  if (isUnknown(leases)) return skipped('agent', leases.unknown);
  const held = leases.filter(({ holder }) => holder !== '');
  if (held.length === 0) {
    return [{ check: 'agent', verdict: 'FAIL', message: `no agent holds a Lease in namespace ${agentNamespace}`, code: 'RG6001' }];
  }
  return held.map((lease): CheckResult => {
    const age = lease.renewedMs === undefined ? 'never' : `${ageText(lease.renewedMs, serverNow(facts, nowMs))} ago`;
    const message = `${lease.holder} holds Lease ${lease.namespace}/${lease.name}, renewed ${age}`;
    if (isExpired(lease, serverNow(facts, nowMs))) return { check: 'agent', verdict: 'FAIL', message, code: 'RG6002' };
    return { check: 'agent', verdict: 'ok', message: `${message}${lastDecision(facts, lease)}` };
  });
};

/** Instants in objects are those of the cluster's clocks. */
function serverNow({ serverMs }: Facts, nowMs: number): number {
  return isUnknown(serverMs) ? nowMs : serverMs;
}

/** Those that somebody holds and renews. */
export function keptLeases(facts: Facts): readonly LeaseFact[] {
  const now = serverNow(facts, facts.nowMs);
  return isUnknown(facts.leases) ? [] : facts.leases.filter((lease) => lease.holder !== '' && !isExpired(lease, now));
}

function isExpired({ renewedMs, durationMs }: LeaseFact, nowMs: number): boolean {
  return renewedMs === undefined || nowMs - renewedMs > durationMs;
}

/** Of the holder: other agents may publish here too. */
function lastDecision(facts: Facts, { holder }: LeaseFact): string {
  const { published, nowMs } = facts;
  const own = isUnknown(published) ? [] : published.filter(({ leader }) => leader === undefined || leader === holder);
  if (own.length === 0) return '';
  const latest = Math.max(...own.map(({ decidedMs }) => decidedMs));
  return `, last decision published ${ageText(latest, serverNow(facts, nowMs))} ago`;
}

/** A group that the agent does not know about waits for ever. */
export const publishedDecisions: Check = ({ groups, leases, published, accounts }) => {
  if (groups.length === 0) return [];
  if (isUnknown(published)) return skipped('decisions', published.unknown);
  if (!isUnknown(leases) && leases.every(({ holder }) => holder === '')) return [];
  const unwatched = new Set(accounts.flatMap((account) => account.unwatched?.namespaces ?? []));
  const silent = groups.filter(
    ({ namespace, name }) => !unwatched.has(namespace) && !published.some((one) => one.namespace === namespace && one.group === name),
  );
  return orOk(
    'decisions',
    silent.map(({ namespace, name }) => ({
      check: 'decisions',
      verdict: 'warn',
      message: `${namespace}/${name}: the agent has published nothing about it`,
      code: 'RG6003',
    })),
    `published for ${plural(groups.length, 'group')}`,
  );
};

/** A group that a person has to let go on: restarts would be for nothing until the webhook is mended. */
export const placedPins: Check = ({ published }) =>
  (isUnknown(published) ? [] : published).flatMap(({ namespace, group, misplaced }): readonly CheckResult[] => {
    if (misplaced === undefined) return [];
    const message = `${namespace}/${group} stands still: ${misplaced}; mend the webhook, then: kubectl rollout-group retry ${group} -n ${namespace}`;
    return [{ check: 'pin', verdict: 'FAIL', message, code: 'RG6026' }];
  });

/** Two Leases that are kept mean two agents that know nothing of one another; so do two names under the decisions of one namespace. */
export const singleAgent: Check = ({ leases, published, ...facts }) => {
  if (isUnknown(leases)) return skipped('one agent', leases.unknown);
  const now = serverNow({ ...facts, leases, published }, facts.nowMs);
  const kept = keptLeases({ ...facts, leases, published });
  const holders = new Set(kept.map(({ holder }) => holder));
  const strangers = isUnknown(published)
    ? []
    : published.filter(({ leader, decidedMs }) => leader !== undefined && !holders.has(leader) && now - decidedMs < 60_000);
  const results: CheckResult[] = [];
  if (kept.length > 1) {
    const names = kept.map(({ namespace, name, holder }) => `${namespace}/${name} (${holder})`).join(', ');
    const verdict = doMeet(isUnknown(published) ? [] : published, holders) ? 'FAIL' : 'warn';
    results.push({ check: 'one agent', verdict, message: `${kept.length} Leases are kept: ${names}`, code: 'RG6004' });
  }
  const changedMs = lastChangeMs(leases, now);
  for (const { namespace, group, leader, decidedMs } of kept.length === 0 ? [] : strangers) {
    const name = `${namespace}/${group}`;
    if (decidedMs <= changedMs + clockSlackMs) {
      const message = `${name} was last decided by ${leader}, who no longer holds the Lease: the agent has just stopped or changed, look again in a minute`;
      results.push({ check: 'one agent', verdict: 'warn', message });
    } else {
      const message = `${name} is decided by ${leader}, who does not hold the Lease`;
      results.push({ check: 'one agent', verdict: 'FAIL', message, code: 'RG6004' });
    }
  }
  return kept.length === 0 ? [] : orOk('one agent', results, 'nobody else acts');
};

/** Decisions and Leases are dated by the machines that write them. */
const clockSlackMs = 5_000;

/** When a Lease last changed hands: taken, given up, or run out. Never having been told when one was taken, it may have been just now. */
function lastChangeMs(leases: readonly LeaseFact[], nowMs: number): number {
  const changes = leases.map((lease) => {
    if (lease.holder === '') return lease.renewedMs ?? nowMs;
    if (isExpired(lease, nowMs)) return (lease.renewedMs ?? nowMs) + lease.durationMs;
    return lease.acquiredMs ?? nowMs;
  });
  return Math.max(Number.NEGATIVE_INFINITY, ...changes);
}

/** Whether two of the holders decide in one namespace. Agents with namespaces of their own are well. */
function doMeet(published: readonly PublishedFact[], holders: ReadonlySet<string>): boolean {
  const deciders = new Map<string, string>();
  return published.some(({ namespace, leader }) => {
    if (leader === undefined || !holders.has(leader)) return false;
    const other = deciders.get(namespace) ?? leader;
    deciders.set(namespace, leader);
    return other !== leader;
  });
}

/** Right by right, in words of what is missing; several verbs on one resource in one line. */
export const agentPermissions: Check = ({ accounts }) => accounts.flatMap(permissionsOf);

/** Namespaces that somebody looks at and the agent does not: nothing is missing there but the agent. */
export const unwatchedNamespaces: Check = ({ accounts, groups }) =>
  accounts.flatMap(({ unwatched }): readonly CheckResult[] => {
    if (unwatched === undefined) return [];
    const { namespaces, told } = unwatched;
    return namespaces.map((namespace) => ({
      check: 'namespaces',
      verdict: groups.some((one) => one.namespace === namespace) ? 'FAIL' : 'warn',
      message: `the agent does not look after ${namespace} (it is told ${told}): install again with --groups-in ${namespace} besides, or look elsewhere with -n`,
      code: 'RG6024',
    }));
  });

/** More lines about one account in one namespace have the same cause, such as a Role that was never bound. */
const mostNamed = 3;

function permissionsOf({ rights, name: agentUser }: AccountFact): readonly CheckResult[] {
  if (isUnknown(rights)) return skipped('RBAC', rights.unknown);
  const missing = missingRights(rights);
  const keyOf = ({ right: { weight }, where }: MissingRight): string => `${weight} ${where}`;
  const results = [...new Set(missing.map(keyOf))].flatMap((key): readonly CheckResult[] => {
    const lines = missing.filter((one) => keyOf(one) === key);
    const verdict = lines[0]?.right.weight === 'required' ? 'FAIL' : 'warn';
    const texts = lines.map(
      ({ right, where, verbs }) => `${agentUser} may not ${verbs.join(', ')} ${resourceText(right)} ${where}: ${right.without}`,
    );
    if (texts.length <= mostNamed) return texts.map((message) => ({ check: 'RBAC', verdict, message, code: 'RG6007' }));
    const named = lines.slice(0, mostNamed).map(({ right, verbs }) => `${verbs.join(', ')} ${resourceText(right)}`);
    const message = `${agentUser} lacks ${texts.length} rights ${lines[0]?.where ?? ''}: to ${named.join('; to ')}; and ${texts.length - mostNamed} more`;
    return [{ check: 'RBAC', verdict, message, code: 'RG6007', details: texts }];
  });
  return orOk('RBAC', results, `${agentUser} may do all it needs`);
}

interface MissingRight {
  readonly right: AgentRight;
  readonly where: string;
  readonly verbs: string[];
}

function missingRights(rights: readonly RightFact[]): readonly MissingRight[] {
  const missing = new Map<string, MissingRight>();
  for (const { right, namespace, isAllowed } of rights) {
    if (isAllowed) continue;
    const where = namespace === undefined ? 'in the cluster' : `in ${namespace}`;
    const key = `${right.group}/${right.resource}/${where}/${right.without}`;
    const known = missing.get(key);
    if (known === undefined) missing.set(key, { right, where, verbs: [right.verb] });
    else known.verbs.push(right.verb);
  }
  return [...missing.values()];
}

function resourceText({ group, resource }: AgentRight): string {
  return group === '' ? resource : `${resource} (${group})`;
}
