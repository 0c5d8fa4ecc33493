// Are the webhooks registered as an installation registers them, and in force where there are groups?
import { isUnknown } from '../../engine/snapshot.ts';
import { enforceLabel } from '../../install/object.ts';
import { type Check, type CheckResult, skipped } from './check.ts';

/** More of them have the same cause. */
const mostNamed = 5;

/** Whoever edits a configuration or a label takes protection away for all, and nothing that is refused later would tell. */
export const webhookRegistration: Check = ({ registration }) => {
  if (registration === undefined) return [];
  if (isUnknown(registration)) return skipped('webhooks', registration.unknown);
  const { areThere, problems, namespaces, unanswered = [] } = registration;
  const open = namespaces.filter(({ isOptedIn }) => !isOptedIn).map(({ name }) => name);
  if (!areThere && open.length === namespaces.length && problems.length === 0) {
    return [{ check: 'webhooks', verdict: 'ok', message: 'none is registered, and no namespace of a group asks for any' }];
  }
  const results: CheckResult[] = problems
    .slice(0, mostNamed)
    .map((problem) => ({ check: 'webhooks', verdict: 'FAIL', message: `${problem}; what it guards may pass unseen: install again` }));
  if (problems.length > mostNamed) {
    results.push({
      check: 'webhooks',
      verdict: 'FAIL',
      message: `${problems.length - mostNamed} more differences from what an installation registers`,
    });
  }
  for (const { message, isNeeded } of unanswered) {
    results.push({ check: 'webhooks', verdict: isNeeded ? 'FAIL' : 'warn', message, code: 'RG6025' });
  }
  for (const name of open) {
    const message = `nothing is enforced in namespace ${name}: kubectl label namespace ${name} ${enforceLabel}=true`;
    results.push({ check: 'webhooks', verdict: 'warn', message });
  }
  if (results.length > 0) return results;
  return [
    { check: 'webhooks', verdict: 'ok', message: 'registered as an installation registers them, and in force where there are groups' },
  ];
};
