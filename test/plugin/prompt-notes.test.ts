// All that a dry run says about stops, exceptions and the agent is said before the question, and only once. Verbs that delete requests record
// their reasons.
import { expect, it } from 'vitest';
import { runOf } from '../kit/questions.ts';
import { rolling } from './live-kit.ts';
import { leaseObject, ledgerObject, requesterWebhook } from './live-objects.ts';
import { type Acted, act, apiVersion, history } from './live-requests-kit.ts';
import type { FakeObject } from './served-objects.ts';

const startedMs = Date.now() - 60_000;
const run = runOf({ id: rolling.run?.id ?? '', startedMs, waveStartedMs: startedMs, movableAsOfMs: startedMs });
const decision = { ...rolling, wave: { name: 'canary', index: 0, count: 3 } };
const kind = (name: string, spec: object): FakeObject => ({ apiVersion, kind: name, metadata: { name: 'p', namespace: 'mimir' }, spec });
const extra: readonly FakeObject[] = [
  ...history,
  requesterWebhook,
  ledgerObject({ run }),
  leaseObject('agent-0', Date.now() - 3_600_000),
  kind('RolloutIntent', { group: 'ingester', action: 'pause', reason: 'read latency' }),
  kind('RolloutPolicy', { targets: { all: true }, rules: [{ name: 'calm', actions: ['rollout'], effect: 'deny' }] }),
  kind('RolloutException', {
    rule: 'p/calm',
    target: { group: 'ingester' },
    allow: { anything: true },
    reason: 'CHG-1',
    expires: '2999-01-01T00:00:00Z',
  }),
];

const notesIn = (text: string): readonly string[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('note: '))
    .map((line) => line.replace(/ \d+s ago/, ''));

it.each([
  ['restart ingester', ['paused by', 'agent']],
  // This undo replaces no pod, so the pause does not stop it.
  ['undo ingester', ['permitted by exception p', 'agent']],
  ['promote ingester --full', ['agent']],
  ['override ingester --rule zone-gap --duration 30m --reason x', ['agent']],
])('%s prints the note before the question', async (line, expected) => {
  const circumstances = { decision, extra, options: { stamp: { user: 'anna', groups: ['oncall'] } } };
  const first = await act(`${line} --dry-run client`, circumstances);
  expect(first.status, first.stderr).toBe(0);
  const dry = notesIn(first.stderr);
  for (const text of expected) expect(dry.join('\n'), line).toContain(text);
  const refused = await act(line, { ...circumstances, answer: 'n' });
  expect([refused.status, refused.kept]).toEqual([5, []]);
  for (const text of expected) expect(notesIn(refused.stderr).join('\n')).toContain(text);
  const done = await act(`${line} --yes`, circumstances);
  expect(done.status, done.stderr).toBe(0);
  expect(notesIn(done.stderr)).toEqual(notesIn(refused.stderr));
});

const pause = (name: string, reason: string): FakeObject => ({
  apiVersion,
  kind: 'RolloutIntent',
  metadata: { name, namespace: 'mimir' },
  spec: { group: 'ingester', action: 'pause', reason },
});
const two = [pause('pause-1', 'latency'), pause('pause-2', 'INC-441')];

const eventsIn = ({ kept }: Acted): readonly unknown[] => kept.filter(({ path }) => path.includes('/events')).map(({ body }) => body);

it('resume names the deleted pauses if the deletion of another pause fails', async () => {
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
