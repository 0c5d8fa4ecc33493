import { expect, it } from 'vitest';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { fakeApiServer } from './api-server.ts';
import { runInProcess } from './in-process.ts';
import { rolling, waiting } from './live-kit.ts';
import { publishedObject } from './live-objects.ts';

async function explained(decision: PublishedDecision, subject: string): Promise<string> {
  const { url } = await fakeApiServer([publishedObject({ ...decision, decidedMs: Date.now() })], {});
  return (await runInProcess(['explain', subject, '--server', url, '-n', 'mimir'])).stdout;
}

it.each([
  ['pod/ingester-zone-c-0', 'c: waits for zone b (wave 3/3 rest)'],
  ['sts/ingester-zone-c', 'c: waits for zone b (wave 3/3 rest)'],
  ['sts/ingester-zone-b', 'b: blocked by zone-budget (wave 3/3 rest)'],
  ['sts/ingester-zone-a', undefined],
  ['pod/ingester-zone-b-19', undefined],
])('shows the state of the group for %s, and what its zone waits for', async (name, wait) => {
  const pod = { zone: 'b', pod: 'ingester-zone-b-12', state: 'crashing', reason: 'CrashLoopBackOff' } as const;
  const crashing = { ...rolling, pods: [pod, ...rolling.pods.slice(1)] };
  const stdout = await explained(crashing, name);
  const whole = await explained(crashing, 'ingester');
  const others = (text: string) => text.split('\n').filter((line) => !/^ {2}(pod|zone|decided) /.test(line));
  expect(others(stdout)).toEqual(others(whole));
  expect(stdout).toContain('Some pods do not recover by themselves and need a repair.');
  expect(stdout).toContain('  trouble  b-12 crashes (CrashLoopBackOff)\n');
  expect(/^ {2}zone +(.*)$/m.exec(stdout)?.[1]).toBe(wait);
});

it('names the wave in which the zone of a pod has no step', async () => {
  const steps = [{ id: 'after/canary', kind: 'roll', zone: 'a', outcome: 'wait', podCount: 0 }] as const;
  const soaking = { ...waiting, wave: { name: 'canary', index: 0, count: 3 }, steps };
  expect(await explained(soaking, 'pod/ingester-zone-c-0')).toContain('  zone     c: waits for wave canary (wave 1/3 canary)\n');
});
