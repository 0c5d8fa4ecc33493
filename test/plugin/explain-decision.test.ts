import { expect, it } from 'vitest';
import { type FakeObject, type FakeOptions, fakeApiServer } from './api-server.ts';
import { runInProcess } from './in-process.ts';

const id = '3f9c2e1b8a40';
const nowMs = Date.now();

/** The Event of a denial, as the webhook writes it. */
function denial(name: string, agoMs: number, namespace = 'mimir'): FakeObject {
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { namespace, name, labels: { 'rollout-group.dev/decision': id } },
    eventTime: new Date(nowMs - agoMs).toISOString().replace('Z', '000Z'),
    regarding: { apiVersion: 'apps/v1', kind: 'StatefulSet', namespace, name: 'ingester-zone-b' },
    type: 'Warning',
    reason: 'ZoneGap',
    action: 'Deny',
    note: `scale of statefulset/ingester-zone-b from 3 to 2 is refused by zone-gap: zone a shrank 2h ago (limit: 13h); kubectl rollout-group explain decision/${id}`,
    reportingController: 'rollout-group.dev/webhook',
    reportingInstance: 'agent-0',
  };
}

async function ask(objects: readonly FakeObject[], line: string, options: FakeOptions = {}) {
  const { url } = await fakeApiServer(objects, options);
  return runInProcess([...line.split(' '), '--server', url]);
}

it('says what was refused, by which rule and when', async () => {
  const { status, stdout, stderr } = await ask([denial('b', 120_000), denial('a', 900_000)], `explain decision/${id} -n mimir`);
  expect([status, stderr]).toEqual([0, '']);
  expect(stdout.replace(/when .*Z, 2m(?:\d+s)? ago/, 'when     INSTANT, AGE ago')).toBe(
    `decision/${id}
  refused  statefulset/ingester-zone-b in mimir
  reason   ZoneGap
  when     INSTANT, AGE ago; 2 times told of
  why      scale of statefulset/ingester-zone-b from 3 to 2 is refused by zone-gap: zone a shrank 2h ago (limit: 13h)
`,
  );
});

it('looks in other namespaces when there is nothing in this one', async () => {
  const { status, stdout } = await ask([denial('a', 60_000, 'loki')], `explain decision/${id} -n mimir -o json`);
  expect(status).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    kind: 'Denial',
    decision: id,
    events: [{ namespace: 'loki', reason: 'ZoneGap', object: 'statefulset/ingester-zone-b' }],
  });
});

it('says so when no Event tells of it', async () => {
  const { status, stdout, stderr } = await ask([denial('a', 60_000)], 'explain decision/000000000000 -n mimir');
  expect([status, stdout]).toEqual([10, '']);
  expect(stderr).toContain('no Event tells of decision/000000000000');
  expect(stderr).toContain('kubectl rollout-group explain GROUP -n mimir');
});

it('says so when Events may not be read', async () => {
  const { status } = await ask([denial('a', 60_000)], `explain decision/${id} -n mimir`, { forbidden: ['events'] });
  expect(status).toBe(11);
});

it('takes what is no id to be a group of the namespace decision', async () => {
  const { status, stderr } = await ask([], 'explain decision/ingester');
  expect(status).toBe(10);
  expect(stderr).toContain('decision/ingester');
  expect(stderr).not.toContain('Event');
});
