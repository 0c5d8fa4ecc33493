// Checks the webhook configurations and the namespaces in which they are enforced.
import { isUnknown } from '../../engine/snapshot.ts';
import { enforceLabel } from '../../install/object.ts';
import { type Check, type CheckResult, skipped } from './check.ts';

/** Problems that are listed one by one: more of them have the same cause. */
const mostNamed = 5;

/** Reports edited configurations and labels: they remove protection silently for all groups. */
export const webhookRegistration: Check = ({ registration }) => {
  if (registration === undefined) return [];
  if (isUnknown(registration)) return skipped('webhooks', registration.unknown);
  const { areThere, problems, namespaces, unanswered = [] } = registration;
  const open = namespaces.filter(({ isOptedIn }) => !isOptedIn).map(({ name }) => name);
  if (!areThere && open.length === namespaces.length && problems.length === 0) {
    return [{ check: 'webhooks', verdict: 'ok', message: 'no webhook is registered, and no namespace of a group has the enforce label' }];
  }
  const results: CheckResult[] = problems
    .slice(0, mostNamed)
    .map((problem) => ({ check: 'webhooks', verdict: 'FAIL', message: `${problem}. Requests may pass unchecked; install again` }));
  if (problems.length > mostNamed) {
    results.push({
      check: 'webhooks',
      verdict: 'FAIL',
      message: `${problems.length - mostNamed} more differences from the installed configuration`,
    });
  }
  for (const { message, isNeeded } of unanswered) {
    results.push({ check: 'webhooks', verdict: isNeeded ? 'FAIL' : 'warn', message, code: 'RG6025' });
  }
  for (const name of open) {
    const message = `namespace ${name} is not enforced. Run: kubectl label namespace ${name} ${enforceLabel}=true`;
    results.push({ check: 'webhooks', verdict: 'warn', message });
  }
  if (results.length > 0) return results;
  return [{ check: 'webhooks', verdict: 'ok', message: 'registered as installed, and enforced in every namespace of a group' }];
};
