// Checks the notification channels: reports those whose last delivery failed.
import { type Check, orOk } from './check.ts';

export const channels: Check = ({ groups, failingChannels }) => {
  const isUsed = groups.some(({ notify }) => notify !== undefined);
  if (failingChannels === undefined || (!isUsed && failingChannels.length === 0)) return [];
  return orOk(
    'channels',
    failingChannels.map(({ namespace, group, channel, problem }) => ({
      check: 'channels',
      verdict: 'warn',
      message: `${namespace}/${group}: the channel ${channel} fails: ${problem}`,
      code: 'RG6020',
    })),
    'the last delivery of every channel succeeded',
  );
};
