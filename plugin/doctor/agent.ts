// Contains the checks of doctor about the agent: it runs, publishes decisions, is the only agent, and has its rights, channels and Secrets.
import { isMisplacedUntilRetry } from '../../engine/publish/status.ts';
import { rollActions } from '../../engine/rules/agent-access.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import type { FindingCode } from '../../policies/findings/codes.ts';
import { counted } from '../../policies/wording.ts';
import { itemsOf } from '../cluster-snapshot/listing.ts';
import { type AgentLease, type LatestDecision, lapseOf, leaseState, notRunningText, renewedAgo } from '../live/agent.ts';
import { ageText, spanText } from '../output/plan/plan-text.ts';
import { version } from '../version.ts';
import { type MissingVerbs, missingText, missingVerbs, placeText, resourceText, unwatchedText } from './agent-rights.ts';
import { type AccountFact, type Check, check, type Facts, type Outcome, orOk, result, skipped } from './check.ts';

const again = 'Run doctor again in a minute';

/** Checks that an agent holds and renews the Lease. The message also contains the age of its latest decision. */
export const agentPresent: Check = check('agent', ['leases'], (facts) => {
  const { leases, agentNamespace } = facts;
  const held = leases.filter(({ holder }) => holder !== '');
  if (held.length === 0) {
    const released = leases.flatMap((lease) => lapseOf(lease, serverNow(facts)) ?? []);
    const [{ why } = { why: 'no Lease' }] = released;
    const message = `${notRunningText(why)} in namespace ${agentNamespace}`;
    if (released.some(({ isLost }) => !isLost)) return [result('warn', `${message}; the agent stopped or changed just now. ${again}`)];
    return [absence(facts, message, agentNamespace, 'RG6001')];
  }
  return held.map((lease) => {
    const message = `${lease.holder} holds Lease ${lease.namespace}/${lease.name}, renewed ${renewedAgo(lease, serverNow(facts))}`;
    const lapse = lapseOf(lease, serverNow(facts));
    const { namespace, name, holder } = lease;
    if (lapse !== undefined) return absence(facts, `${notRunningText(lapse.why)} (${namespace}/${name} of ${holder})`, namespace, 'RG6002');
    return result('ok', `${message}${lastDecision(facts, lease)}`);
  });
});

export const agentVersion: Check = check('version', [], (facts) =>
  keptLeases(facts).map(({ holder, version: ofAgent }) => {
    // Agents before 0.3 name no version.
    if (ofAgent === undefined) return result('SKIP', `the Lease of ${holder} names no version`);
    if (ofAgent === version) return result('ok', `${holder} has the version of this program, ${version}`);
    return result('warn', `${holder} has version ${ofAgent}, and this program has version ${version}. Install the same version`);
  }),
);

/** Returns the result for an agent that does not run: a failure only if the checked namespaces have a group, a decision or a ledger. */
function absence({ groups, published, ledgers }: Facts, message: string, namespace: string, code: FindingCode): Outcome {
  const lists = [groups, published, ledgers];
  const isNeeded = lists.some((list) => itemsOf<unknown>(list).length > 0);
  const unneeded = lists.some(isUnknown) ? '' : '; no group here needs it';
  const next = isNeeded ? `. Run: kubectl get pods -n ${namespace}` : unneeded;
  return result(isNeeded ? 'FAIL' : 'warn', `${message}${next}`, code);
}

function serverNow({ serverMs, nowMs }: Facts): number {
  return isUnknown(serverMs) ? nowMs : serverMs;
}

export function keptLeases(facts: Facts): readonly AgentLease[] {
  return itemsOf(facts.leases).filter((lease) => leaseState(lease, serverNow(facts)).kind === 'held');
}

/** Returns the age of the last decision of this holder. Other agents may publish in these namespaces too. */
function lastDecision(facts: Facts, { holder }: AgentLease): string {
  const own = itemsOf(facts.published).filter(({ leader }) => leader === undefined || leader === holder);
  if (own.length === 0) return '';
  const latest = Math.max(...own.map(({ decidedMs }) => decidedMs));
  return `, last decision published ${ageText(latest, serverNow(facts))} ago`;
}

/** The age below which a group may be too new for a decision of the agent. */
const newGroupMs = 60_000;

export const publishedDecisions: Check = check('decisions', ['groups'], (facts) => {
  const { groups, leases, published, accounts, createdMs } = facts;
  if (groups.length === 0) return [];
  if (isUnknown(published)) return skipped(published.unknown);
  if (!isUnknown(leases) && leases.every(({ holder }) => holder === '')) return [];
  const unwatched = new Set(accounts.flatMap((account) => account.unwatched?.namespaces ?? []));
  const silent = groups.filter(
    ({ namespace, name }) => !unwatched.has(namespace) && !published.some((one) => one.namespace === namespace && one.group === name),
  );
  return orOk(
    silent.map(({ namespace, name }) => {
      const message = `${namespace}/${name}: the agent has published no decision`;
      const ageMs = serverNow(facts) - (createdMs.get(`${namespace}/${name}`) ?? Number.NaN);
      if (!(ageMs < newGroupMs)) return result('warn', message, 'RG6003');
      const age = spanText(ageMs / 1000);
      return result('warn', `${message} yet; the group was created ${age} ago. ${again}`);
    }),
    `published for ${counted(groups.length, 'group')}`,
  );
});

/** Reports groups whose pinned pods came back at another revision. Replacing them again is useless until the webhook is repaired. */
export const placedPins: Check = check('pin', [], ({ published }) =>
  itemsOf(published).flatMap(({ namespace, group, waits }): readonly Outcome[] => {
    const misplaced = waits?.find(isMisplacedUntilRetry);
    if (misplaced === undefined) return [];
    const message = `${namespace}/${group} makes no progress: ${misplaced.fact}. Repair the webhook, then run: kubectl rollout-group retry ${group} -n ${namespace}`;
    return [result('FAIL', message, 'RG6026')];
  }),
);

/** Reports agents without a common Lease: two renewed Leases, or decisions of an agent that does not hold a Lease. */
export const singleAgent: Check = check('one agent', ['leases'], (facts) => {
  const { leases } = facts;
  const published = itemsOf(facts.published);
  const now = serverNow(facts);
  const kept = keptLeases(facts);
  if (kept.length === 0) return [];
  const holders = new Set(kept.map(({ holder }) => holder));
  const foreign = published.filter(({ leader, decidedMs }) => leader !== undefined && !holders.has(leader) && now - decidedMs < 60_000);
  const names = kept.map(({ namespace, name, holder }) => `${namespace}/${name} (${holder})`).join(', ');
  const verdict = shareNamespace(published, holders) ? 'FAIL' : 'warn';
  const several = kept.length > 1 ? [result(verdict, `${kept.length} Leases are renewed: ${names}`, 'RG6004')] : [];
  const changedMs = lastChangeMs(leases, now);
  const others = foreign.map(({ namespace, group, leader, decidedMs }) => {
    const name = `${namespace}/${group}`;
    if (decidedMs > changedMs + clockSlackMs)
      return result('FAIL', `${name} is decided by ${leader}, which does not hold the Lease`, 'RG6004');
    const message = `${name} was last decided by ${leader}, which no longer holds the Lease: the agent stopped or changed just now. ${again}`;
    return result('warn', message);
  });
  return orOk([...several, ...others], 'no other agent decides', facts.unread?.leases ?? facts.published);
});

/** The tolerated difference of clocks: each machine writes its own time into decisions and Leases. */
const clockSlackMs = 5_000;

/** Returns when a Lease last changed: acquired, released or expired. A Lease without acquireTime may have changed just now. */
function lastChangeMs(leases: readonly AgentLease[], nowMs: number): number {
  return Math.max(Number.NEGATIVE_INFINITY, ...leases.map((lease) => leaseState(lease, nowMs).sinceMs ?? nowMs));
}

/** Reports whether two of the holders decide in one namespace. Agents with separate namespaces do not conflict. */
function shareNamespace(published: readonly LatestDecision[], holders: ReadonlySet<string>): boolean {
  const deciders = new Map<string, string>();
  return published.some(({ namespace, leader }) => {
    if (leader === undefined || !holders.has(leader)) return false;
    const other = deciders.get(namespace) ?? leader;
    deciders.set(namespace, leader);
    return other !== leader;
  });
}

export const agentPermissions: Check = check('RBAC', [], (facts) => facts.accounts.flatMap((account) => permissionsOf(account, facts)));

export const unwatchedNamespaces: Check = check('namespaces', [], ({ accounts, groups }) =>
  accounts.flatMap(({ unwatched: { namespaces, flag } = { namespaces: [], flag: '' } }) =>
    namespaces.map((namespace) => {
      const message = `${unwatchedText({ namespaces: [namespace], flag })}. Install it again with --groups-in ${namespace} added, or choose another namespace with -n`;
      return result(itemsOf(groups).some((one) => one.namespace === namespace) ? 'FAIL' : 'warn', message, 'RG6024');
    }),
  ),
);

/** The number of missing rights up to which each right has a line. More make one line, because the usual cause is one unbound Role. */
const maxNamed = 3;

function permissionsOf({ rights, name: agentUser }: AccountFact, { groups, published }: Facts): readonly Outcome[] {
  if (isUnknown(rights)) return skipped(rights.unknown);
  const all = missingVerbs(rights);
  const verdictOf = ({ right: { weight, action }, namespace }: MissingVerbs) => {
    const isUsed = itemsOf(groups).some((group) => group.namespace === namespace && rollActions(group).some((one) => one === action));
    return weight === 'required' || isUsed ? 'FAIL' : 'warn';
  };
  const keyOf = (one: MissingVerbs): string => `${verdictOf(one)} ${placeText(one)}`;
  const results = [...new Set(all.map(keyOf))].flatMap((key): readonly Outcome[] => {
    const missing = all.filter((one) => keyOf(one) === key);
    const [first] = missing;
    if (first === undefined) return [];
    const verdict = verdictOf(first);
    const texts = missing.map((one) => missingText(agentUser, one));
    if (texts.length <= maxNamed) return texts.map((message) => result(verdict, message, 'RG6007'));
    const named = missing.slice(0, maxNamed).map(({ right, verbs }) => `${verbs.join(', ')} ${resourceText(right)}`);
    const message = `${agentUser} lacks ${texts.length} rights ${placeText(first)}: to ${named.join('; to ')}; and ${texts.length - maxNamed} more`;
    return [{ ...result(verdict, message, 'RG6007'), details: texts }];
  });
  return orOk(results, `${agentUser} has all rights that it needs`, [groups, published].find(isUnknown));
}

export const channels: Check = check('channels', ['groups'], ({ groups, failingChannels }) => {
  const isUsed = groups.some(({ notify }) => notify !== undefined);
  if (isUnknown(failingChannels)) return isUsed ? skipped(failingChannels.unknown) : [];
  if (failingChannels === undefined || (!isUsed && failingChannels.length === 0)) return [];
  return orOk(
    failingChannels.map(({ namespace, group, channel, problem }) =>
      result('warn', `${namespace}/${group}: the channel ${channel} fails: ${problem}`, 'RG6020'),
    ),
    'no channel has a failed delivery on record',
  );
});

/** Reports missing Secrets: a gate without its Secret blocks its wave, and a channel without its Secret sends nothing. */
export const namedSecrets: Check = check('Secrets', ['secrets'], ({ agentNamespace, secrets }) => {
  const { named, problems, forbidden } = secrets;
  if (named === 0) return [];
  const names = forbidden.join(', ');
  return orOk(
    [
      ...problems.map((message) => result('warn', message, 'RG6022')),
      ...(names === '' ? [] : skipped(`no permission to get Secrets in ${agentNamespace}; whether ${names} exists is unknown`)),
    ],
    'every Secret that a source or a channel names exists',
  );
});
