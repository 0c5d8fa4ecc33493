// Checks the notification channels for doctor, and the Secrets that channels and metric sources name.
import { isUnknown } from '../../engine/snapshot.ts';
import { type Check, check, orOk, result, skipped } from './check.ts';

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
