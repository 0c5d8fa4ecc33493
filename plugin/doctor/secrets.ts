// Checks the Secrets that metric sources and notification channels name.
import { isUnknown } from '../../engine/snapshot.ts';
import { type Check, type CheckResult, orOk, skipped } from './check.ts';

const check = 'Secrets';

/** Reports missing Secrets: a gate without its Secret waits, and a channel without its Secret sends nothing. */
export const namedSecrets: Check = ({ agentNamespace, secrets }) => {
  if (secrets === undefined) return [];
  if (isUnknown(secrets)) return skipped(check, secrets.unknown);
  const { named, problems, forbidden } = secrets;
  if (named === 0) return [];
  const names = forbidden.join(', ');
  return orOk(
    check,
    [
      ...problems.map((message): CheckResult => ({ check, verdict: 'warn', message, code: 'RG6022' })),
      ...(names === '' ? [] : skipped(check, `no permission to get Secrets in ${agentNamespace}; whether ${names} exists is unknown`)),
    ],
    'every Secret that a source or a channel names exists',
  );
};
