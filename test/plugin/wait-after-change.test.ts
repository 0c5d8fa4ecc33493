// A wait is met only by a decision about the last change: not by the run that the change supersedes.
import { expect, it } from 'vitest';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { fakeApiServer } from './api-server.ts';
import { runInProcess } from './in-process.ts';
import { done, paused, rolling } from './live-kit.ts';
import { publishedObject, type SetOptions, statefulSetObject } from './live-objects.ts';
import { groupObject, runOf } from './live-requests-kit.ts';
import { folderWith } from './process.ts';

async function wait(condition: string, decision: PublishedDecision, set: SetOptions): Promise<number> {
  const objects = decision.zones.map(({ zone, replicas, desiredRevision = '' }) =>
    statefulSetObject(zone, { replicas, updateRevision: desiredRevision, ...set }),
  );
  const server = await fakeApiServer([groupObject, ...objects, publishedObject({ ...decision, decidedMs: Date.now() })]);
  const line = ['status', 'ingester', '--for', condition, '--timeout', '50ms', '--server', server.url, '-n', 'mimir'];
  return (await runInProcess(line, {})).status;
}

/** The canary is over, and no zone is updated. */
const afterCanary = paused;

const failed: PublishedDecision = {
  ...afterCanary,
  phase: 'Failed',
  run: { ...runOf(afterCanary), outcome: 'failed', failedMs: Date.now(), failure: 'a gate failed' },
  stops: [
    {
      rule: 'run-failed',
      fact: 'the run failed: a gate failed',
      zones: ['a', 'b', 'c'],
      isBlocking: true,
      endsWith: 'kubectl rollout-group retry',
    },
  ],
};

const cases = [
  ['wave=canary', afterCanary, 0],
  ['zone=a', rolling, 0],
  ['complete', done, 0],
  ['complete', failed, 6],
] as const;

it.each(cases)('--for %s: the decision about the present templates ends the wait, %#', async (condition, decision, status) => {
  expect(await wait(condition, decision, {})).toBe(status);
});

it.each(cases)('--for %s: a decision before the last change does not end the wait, %#', async (condition, decision) => {
  expect(await wait(condition, decision, { updateRevision: 'rev-3' })).toBe(7);
  expect(await wait(condition, decision, { observedGeneration: 0 })).toBe(7);
});

it('--for wave: a decision whose run does not roll out a new template does not end the wait', async () => {
  const zones = afterCanary.zones.map((zone) => (zone.zone === 'a' ? { ...zone, desiredRevision: 'rev-3' } : zone));
  expect(await wait('wave=canary', { ...afterCanary, zones }, { updateRevision: 'rev-3' })).toBe(7);
});

it.each(['status ingester querier', 'apply -f . --yes --wait'])('%s --timeout: the time is over for all groups at once', async (line) => {
  const querier = { ...groupObject, metadata: { ...groupObject.metadata, name: 'querier' } };
  const sets = JSON.parse(JSON.stringify(rolling.zones.map(({ zone }) => statefulSetObject(zone, {}))));
  const others = JSON.parse(JSON.stringify([querier, ...sets]).replaceAll('ingester-zone', 'querier-zone'));
  const objects = [groupObject, ...sets, ...others];
  const decisions = ['ingester', 'querier'].map((group) => publishedObject({ ...rolling, group, decidedMs: Date.now() }));
  const server = await fakeApiServer([...objects, ...decisions]);
  // Each look at the clock is later than the timeout. A wait for the timeout of the second group would exceed the time of the test.
  let nowMs = Date.now();
  const clock = () => {
    nowMs += 2 * 3_600_000;
    return nowMs;
  };
  const cwd = folderWith({ 'groups.json': JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [groupObject, others[0]] }) });
  const words = [...line.split(' '), '--timeout', '1h', '--server', server.url, '-n', 'mimir'];
  const { status, stderr } = await runInProcess(words, { cwd, nowMs: clock });
  expect([status, stderr.match(/timed out before complete/g)]).toEqual([7, ['timed out before complete', 'timed out before complete']]);
});
