// Checks the webhook configurations, the namespaces in which they are enforced, and the admission policies.
import { isUnknown } from '../../engine/snapshot.ts';
import { enforceLabel } from '../../install/object.ts';
import { type Check, type CheckResult, orOk, result, skipped } from './check.ts';

/** Problems that are listed one by one: more of them have the same cause. */
const maxNamed = 5;

/** Reports edited configurations and labels: they remove protection silently for all groups. */
export const webhookRegistration: Check = ({ registration }) => {
  if (registration === undefined) return [];
  if (isUnknown(registration)) return skipped('webhooks', registration.unknown);
  const { areThere, problems, namespaces, unanswered = [] } = registration;
  const open = namespaces.filter(({ isOptedIn }) => !isOptedIn).map(({ name }) => name);
  if (!areThere && open.length === namespaces.length && problems.length === 0) {
    return [result('ok', 'webhooks', 'no webhook is registered, and no namespace of a group has the enforce label')];
  }
  const results: CheckResult[] = problems
    .slice(0, maxNamed)
    .map((problem) => result('FAIL', 'webhooks', `${problem}. Requests may pass unchecked; install again`));
  if (problems.length > maxNamed) {
    results.push(result('FAIL', 'webhooks', `${problems.length - maxNamed} more differences from the installed configuration`));
  }
  for (const { message, isNeeded } of unanswered) results.push(result(isNeeded ? 'FAIL' : 'warn', 'webhooks', message, 'RG6025'));
  for (const name of open) {
    const message = `namespace ${name} is not enforced. Run: kubectl label namespace ${name} ${enforceLabel}=true`;
    results.push(result('warn', 'webhooks', message));
  }
  return orOk('webhooks', results, 'registered as installed, and enforced in every namespace of a group');
};

/** Reports missing or changed admission policies: they protect groups while webhooks are not registered or do not answer. */
export const admissionPolicies: Check = ({ admissionPolicies: fact }) => {
  if (fact === undefined) return [];
  if (isUnknown(fact)) return skipped('policies', fact.unknown);
  if (!fact.isServed) {
    const why = 'this API server has no ValidatingAdmissionPolicies: groups are unprotected while the webhooks do not answer';
    return skipped('policies', why);
  }
  return orOk(
    'policies',
    fact.problems.map(({ kind, message }) => result(kind === 'changed' ? 'FAIL' : 'warn', 'policies', message, 'RG6021')),
    'the admission policies are as installed',
  );
};
