// Does the API server refuse by itself what an installation has it refuse?
import { isUnknown } from '../../engine/snapshot.ts';
import { type Check, orOk, skipped } from './check.ts';

const check = 'policies';

/** They stand in where webhooks are not registered or do not answer, and nothing that passes then would tell that they are gone. */
export const admissionPolicies: Check = ({ admissionPolicies: fact }) => {
  if (fact === undefined) return [];
  if (isUnknown(fact)) return skipped(check, fact.unknown);
  if (!fact.isServed) {
    return skipped(
      check,
      'ValidatingAdmissionPolicies are not available on this server: nothing stands in while the webhooks do not answer',
    );
  }
  return orOk(
    check,
    fact.problems.map(({ kind, message }) => ({ check, verdict: kind === 'changed' ? 'FAIL' : 'warn', message, code: 'RG6021' })),
    'the API server refuses by itself what an installation has it refuse',
  );
};
