// The reasons of verbs that delete requests, and the deletions before one that fails.
import { expect, it } from 'vitest';
import { type Acted, act, apiVersion } from './live-requests-kit.ts';
import type { FakeObject } from './served-objects.ts';

const pause = (name: string, reason: string): FakeObject => ({
  apiVersion,
  kind: 'RolloutIntent',
  metadata: { name, namespace: 'mimir' },
  spec: { group: 'ingester', action: 'pause', reason },
});
const two = [pause('pause-1', 'latency'), pause('pause-2', 'INC-441')];

const eventsIn = ({ kept }: Acted): readonly unknown[] => kept.filter(({ path }) => path.includes('/events')).map(({ body }) => body);

it('resume names the pauses that are gone if the deletion of another pause fails', async () => {
  const acted = await act('resume ingester', { extra: two, options: { forbiddenWrites: ['pause-2'] } });
  expect([acted.status, acted.stdout]).toEqual([
    11,
    'mimir/ingester was resumed only in part\n  deleted RolloutIntent pause-1: the pause by an unverified requester (latency) without an end\n',
  ]);
  const first = await act('resume ingester', { extra: two, options: { forbiddenWrites: ['pause-1'] } });
  expect([first.status, first.stdout]).toEqual([11, '']);
});

it('resume and cancel record the reason in an Event about the group', async () => {
  const resumed = await act('resume ingester --reason "latency is back"', { extra: two });
  const regarding = { kind: 'RolloutGroup', name: 'ingester', namespace: 'mimir' };
  expect(eventsIn(resumed)).toMatchObject([{ reason: 'Resumed', action: 'Resume', note: 'latency is back', regarding }]);
  expect(resumed.stdout).toContain('mimir/ingester resumed (latency is back)\n');
  const cancelled = await act('cancel ingester pause-2 --reason mistake', { extra: two });
  expect(eventsIn(cancelled)).toMatchObject([{ reason: 'Cancelled', action: 'Cancel', note: 'pause-2: mistake', regarding }]);
  expect(cancelled.stdout).toBe('mimir/ingester: pause-2 cancelled (mistake)\n');
  for (const line of ['resume ingester', 'cancel ingester pause-2', 'resume ingester --reason x --dry-run client'])
    expect(eventsIn(await act(line, { extra: two }))).toEqual([]);
});
