// Checks the webhook configurations, the namespaces in which they are enforced, and the admission policies.
import { profileOf } from '../../engine/profiles.ts';
import { needsApproval } from '../../engine/rules/approval.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import { enforceLabel } from '../../install/object.ts';
import { listed } from '../../install/registered-policies.ts';
import type { GroupDefinition, PolicyDefinition } from '../../policies/definition.ts';
import { policiesFor } from '../../policies/join.ts';
import { itemsOf } from '../cluster-snapshot/listing.ts';
import { keptLeases } from './agent.ts';
import { type Check, check, type Facts, type KnownFacts, type Outcome, orOk, type RegistrationFact, result, skipped } from './check.ts';

/** The maximum number of problems that are listed one by one. More problems usually have the same cause. */
const maxNamed = 5;

/** Reports edited configurations, webhooks that cannot answer and missing enforce labels. Each can silently leave groups unprotected. */
export const webhookRegistration: Check = check('webhooks', ['groups', 'registration', 'policies'], (facts) => {
  const { registration, groups, policies, agentNamespace } = facts;
  const { isRegistered, problems, namespaces, unanswered = [] } = registration;
  const needs = [
    ...(isRegistered ? [] : uncountedApprovals(groups, policies)),
    ...groups.flatMap((group) => openGroup(group, registration)),
    ...(isRegistered ? unknownNamespaces(facts) : []),
    ...(isRegistered ? [] : groups.flatMap((group) => unboundClients(group, policiesFor(policies, group, agentNamespace)))),
  ];
  const notEnforced = namespaces.filter(({ isOptedIn }) => !isOptedIn).map(({ name }) => name);
  if (!isRegistered && notEnforced.length === namespaces.length && problems.length + needs.length === 0) {
    return [result('ok', 'no webhook is registered, and no namespace of a group has the enforce label')];
  }
  const results: Outcome[] = [
    ...problems.slice(0, maxNamed).map((problem) => result('FAIL', `${problem}. Requests may pass unchecked; install again`, 'RG6028')),
    ...laggingResults(facts, registration),
    ...needs,
  ];
  if (problems.length > maxNamed) {
    results.push(result('FAIL', `${problems.length - maxNamed} more differences from the configuration of this version`, 'RG6028'));
  }
  for (const { message, isNeeded } of unanswered) results.push(result(isNeeded ? 'FAIL' : 'warn', message, 'RG6025'));
  for (const name of isRegistered ? notEnforced : []) {
    const message = `the webhooks do not protect namespace ${name}. Run: ${enforceCommand(name)}`;
    results.push(result('warn', message));
  }
  return orOk(results, `registered as installed, and enforced in every namespace of a group${unlimitedEvictions(groups)}`);
});

/** Returns a clause that names the groups for which the webhook counts no disrupted pods. */
function unlimitedEvictions(groups: readonly GroupDefinition[]): string {
  const open = groups.filter(({ disruption }) => disruption === undefined).map(({ namespace, name }) => `${namespace}/${name}`);
  if (open.length === 0) return '';
  const which = open.length > maxNamed ? `${open.length} groups` : listed(open);
  return `; without spec.disruption, only a ZoneAwarePodDisruptionBudget limits evictions of ${which}`;
}

/** Reports namespaces whose groups the webhook does not know: it allows every request there. */
function unknownNamespaces({ accounts, groups }: KnownFacts<'groups'>): readonly Outcome[] {
  return accounts.flatMap(({ unwatched: { namespaces, flag } = { namespaces: [], flag: '' } }) =>
    namespaces
      .filter((name) => groups.some(({ namespace }) => namespace === name))
      .map((name) => {
        const cause = `the webhook does not know it (the agent runs with ${flag})`;
        return result('FAIL', `namespace ${name} has groups but ${cause}: nothing is enforced there`, 'RG6024');
      }),
  );
}

/** Reports StatefulSets that the webhook configurations lack: as a warning, or as a failure if the agent does not run or reports them too. */
function laggingResults(facts: Facts, { lagging = [] }: RegistrationFact): readonly Outcome[] {
  if (lagging.length === 0) return [];
  const published = itemsOf(facts.published);
  const isReported = published.some(
    ({ namespace, zones = [], unenforced }) =>
      unenforced !== undefined && zones.some(({ statefulSet }) => lagging.includes(`${namespace}/${statefulSet}`)),
  );
  const [are, them] = lagging.length === 1 ? ['is', 'it'] : ['are', 'them'];
  const what = `${listed(lagging)} ${are} not covered by the webhooks`;
  if (isReported || (!isUnknown(facts.leases) && keptLeases(facts).length === 0))
    return [result('FAIL', `${what}, because the agent did not add ${them}. See the log of the agent`)];
  return [result('warn', `${what} yet: the agent adds new StatefulSets within seconds. Run doctor again`)];
}

function uncountedApprovals(groups: readonly GroupDefinition[], policies: readonly PolicyDefinition[]): readonly Outcome[] {
  const needing = [
    ...groups.filter((group) => needsApproval([group], [])).map(({ namespace, name }) => `${namespace}/${name}`),
    ...policies.filter((policy) => needsApproval([], [policy])).map(({ namespace, name }) => `RolloutPolicy ${namespace}/${name}`),
  ];
  const cause = 'no webhook that records requesters is registered, so no approval counts';
  return needing.map((name) => result('FAIL', `${name} needs approvals: ${cause}`, 'RG6027'));
}

const effects = { noDownscale: 'scale it down', noDelete: 'delete its StatefulSets', noEviction: 'evict its pods' } as const;
type Protection = keyof typeof effects;

/** Reports protections of a group that no webhook enforces, so that other clients need not obey them. */
function openGroup(group: GroupDefinition, registration: RegistrationFact): readonly Outcome[] {
  const { namespace, name, zones } = group;
  const { isOptedIn = true, deniesDownscale = false } = registration.namespaces.find((one) => one.name === namespace) ?? {};
  const set = (Object.keys(effects) as Protection[]).filter((field) => zones.some((zone) => zone[field]));
  if ((registration.isRegistered && isOptedIn) || set.length === 0) return [];
  const hasOther = profileOf(group).downscaleWebhook !== undefined;
  if (hasOther && isUnknown(deniesDownscale)) return skipped(`${namespace}/${name}: ${deniesDownscale.unknown}`);
  if (hasOther && deniesDownscale === true) return [];
  const cause = registration.isRegistered ? `the webhooks do not protect namespace ${namespace}` : 'no webhook is registered';
  const command = registration.isRegistered ? `. Run: ${enforceCommand(namespace)}` : '';
  const may = set.map((field) => effects[field]).join(' and ');
  return [result('FAIL', `${namespace}/${name} has ${set.join(' and ')}: ${cause}, so other clients can ${may}${command}`, 'RG6027')];
}

/** Reports the policies that other clients can violate. A policy about `rollout` alone is left out, because only the agent rolls out. */
function unboundClients({ namespace, name }: GroupDefinition, policies: readonly PolicyDefinition[]): readonly Outcome[] {
  const limiting = policies.filter(({ rules, windows }) => {
    const strict = [...rules.filter(({ effect }) => effect !== 'warn'), ...windows];
    return strict.some(({ actions }) => actions.some((action) => action !== 'rollout'));
  });
  if (limiting.length === 0) return [];
  const names = limiting.map((policy) => policy.name).join(', ');
  const message = `${namespace}/${name}: no webhook is registered, so other clients can make requests that RolloutPolicy ${names} denies`;
  return [result('warn', message, 'RG6027')];
}

function enforceCommand(namespace: string): string {
  return `kubectl label namespace ${namespace} ${enforceLabel}=true`;
}

/** Reports missing or changed admission policies. These policies protect groups while webhooks are not registered or do not answer. */
export const admissionPolicies: Check = check('policies', ['admissionPolicies'], ({ admissionPolicies: fact }) => {
  if (fact === undefined) return [];
  if (!fact.isServed) {
    const why = 'this API server has no ValidatingAdmissionPolicies: groups are unprotected while the webhooks do not answer';
    return skipped(why);
  }
  return orOk(
    fact.problems.map(({ kind, message }) => result(kind === 'changed' ? 'FAIL' : 'warn', message, 'RG6021')),
    'the admission policies are as installed',
  );
});
