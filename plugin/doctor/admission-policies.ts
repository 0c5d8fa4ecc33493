// Checks the admission policies, with which the API server denies requests without a webhook.
import { isUnknown } from '../../engine/snapshot.ts';
import { type Check, orOk, skipped } from './check.ts';

const check = 'policies';

/** Reports missing or changed admission policies: they protect groups while webhooks are not registered or do not answer. */
export const admissionPolicies: Check = ({ admissionPolicies: fact }) => {
  if (fact === undefined) return [];
  if (isUnknown(fact)) return skipped(check, fact.unknown);
  if (!fact.isServed) {
    return skipped(check, 'this API server has no ValidatingAdmissionPolicies: groups are unprotected while the webhooks do not answer');
  }
  return orOk(
    check,
    fact.problems.map(({ kind, message }) => ({ check, verdict: kind === 'changed' ? 'FAIL' : 'warn', message, code: 'RG6021' })),
    'the admission policies are as installed',
  );
};
