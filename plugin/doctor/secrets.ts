// Are the Secrets there that metric sources and notification channels name?
import { isUnknown } from '../../engine/snapshot.ts';
import { type Check, type CheckResult, orOk, skipped } from './check.ts';

const check = 'Secrets';

/** A gate whose source lacks its Secret waits, and nobody is told by such a channel. */
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
      ...(names === ''
        ? []
        : skipped(check, `no permission to get Secrets in ${agentNamespace}, so that it is not known whether ${names} is there`)),
    ],
    'every Secret that a source or a channel names is there',
  );
};
