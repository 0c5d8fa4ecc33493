import { expect, it } from 'vitest';
import { zoneProgress } from '../../plugin/output/zone-progress.ts';

const zone = { zone: 'a', statefulSet: 'ingester-zone-a', replicas: 3, available: 2, isReady: false, desiredRevision: 'rev-1' };
const crash = { zone: 'a', pod: 'ingester-zone-a-2', state: 'crashing', reason: 'CrashLoopBackOff' } as const;

it.each([
  [
    'at the undone revision',
    2,
    [
      { revision: 'rev-2', ordinals: '2' },
      { revision: 'rev-1', ordinals: '0-1' },
    ],
    { done: 2, toDo: 0 },
  ],
  [
    'at the restored revision',
    2,
    [
      { revision: 'rev-2', ordinals: '0' },
      { revision: 'rev-1', ordinals: '1-2' },
    ],
    { done: 1, toDo: 1 },
  ],
  [
    'next to an outdated pod',
    1,
    [
      { revision: 'rev-2', ordinals: '1-2' },
      { revision: 'rev-1', ordinals: '0' },
    ],
    { done: 1, toDo: 1 },
  ],
])('counts a crashing pod %s once, and not as done', (_name, updated, revisions, counts) => {
  expect(zoneProgress({ ...zone, updated, revisions }, [crash])).toMatchObject({ updated, ...counts, failing: 1, inFlight: 0 });
});
