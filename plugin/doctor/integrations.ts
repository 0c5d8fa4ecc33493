// Checks the notification channels for doctor, and the Secrets that channels and metric sources name.
import { isUnknown } from '../../engine/snapshot.ts';
import { type Check, type GroupCheck, orOk, result, skipped } from './check.ts';

export const channels: GroupCheck = ({ groups, failingChannels }) => {
  const isUsed = groups.some(({ notify }) => notify !== undefined);
  if (isUnknown(failingChannels)) return isUsed ? skipped('channels', failingChannels.unknown) : [];
  if (failingChannels === undefined || (!isUsed && failingChannels.length === 0)) return [];
  return orOk(
    'channels',
    failingChannels.map(({ namespace, group, channel, problem }) =>
      result('warn', 'channels', `${namespace}/${group}: the channel ${channel} fails: ${problem}`, 'RG6020'),
    ),
    'no channel has a failed delivery on record',
  );
};

/** Reports missing Secrets: a gate without its Secret blocks its wave, and a channel without its Secret sends nothing. */
export const namedSecrets: Check = ({ agentNamespace, secrets }) => {
  if (isUnknown(secrets)) return skipped('Secrets', secrets.unknown);
  const { named, problems, forbidden } = secrets;
  if (named === 0) return [];
  const names = forbidden.join(', ');
  return orOk(
    'Secrets',
    [
      ...problems.map((message) => result('warn', 'Secrets', message, 'RG6022')),
      ...(names === '' ? [] : skipped('Secrets', `no permission to get Secrets in ${agentNamespace}; whether ${names} exists is unknown`)),
    ],
    'every Secret that a source or a channel names exists',
  );
};
