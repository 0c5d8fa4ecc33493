import { describe, expect, it } from 'vitest';
import { type FakeOptions, fakeApiServer } from './api-server.ts';
import { runInProcess } from './in-process.ts';
import { adoptedObjects } from './live-objects.ts';
import type { FakeObject } from './served-objects.ts';

const id = '3f9c2e1b8a40';
const nowMs = Date.now();

/** The Event of a denial, as the webhook writes it. */
function denial(name: string, agoMs: number, namespace = 'mimir', request?: object): FakeObject {
  const annotations = request === undefined ? {} : { annotations: { 'rollout-group.dev/request': JSON.stringify(request) } };
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { namespace, name, labels: { 'rollout-group.dev/decision': id }, ...annotations },
    eventTime: new Date(nowMs - agoMs).toISOString().replace('Z', '000Z'),
    regarding: { apiVersion: 'apps/v1', kind: 'StatefulSet', namespace, name: 'ingester-zone-b' },
    type: 'Warning',
    reason: 'ZoneGapNotOver',
    action: 'Deny',
    note: `scale of statefulset/ingester-zone-b from 3 to 2 is denied by zone-gap: zone a shrank 2h ago (limit: 13h); kubectl rollout-group explain decision/${id}`,
    reportingController: 'rollout-group.dev/webhook',
    reportingInstance: 'agent-0',
  };
}

async function ask(objects: readonly FakeObject[], line: string, options: FakeOptions = {}) {
  const { url } = await fakeApiServer(objects, options);
  return runInProcess([...line.split(' '), '--server', url]);
}

it('shows the denied request, the rule and the time', async () => {
  const { status, stdout, stderr } = await ask([denial('b', 120_000), denial('a', 900_000)], `explain decision/${id} -n mimir`);
  expect([status, stderr]).toEqual([0, '']);
  expect(stdout.replace(/when .*Z, 2m(?:\d+s)? ago/, 'when     INSTANT, AGE ago')).toBe(
    `decision/${id}
  denied   statefulset/ingester-zone-b in mimir
  reason   ZoneGapNotOver
  when     INSTANT, AGE ago; reported 2 times
  why      scale of statefulset/ingester-zone-b from 3 to 2 is denied by zone-gap: zone a shrank 2h ago (limit: 13h)
`,
  );
});

it('searches other namespaces if this one has no Event', async () => {
  const { status, stdout } = await ask([denial('a', 60_000, 'loki')], `explain decision/${id} -n mimir -o json`);
  expect(status).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    kind: 'Denial',
    decision: id,
    events: [{ namespace: 'loki', reason: 'ZoneGapNotOver', object: 'statefulset/ingester-zone-b' }],
  });
});

it('fails if no Event is found', async () => {
  const { status, stdout, stderr } = await ask([denial('a', 60_000)], 'explain decision/000000000000 -n mimir');
  expect([status, stdout]).toEqual([10, '']);
  expect(stderr).toContain('no Event was found for decision/000000000000');
  expect(stderr).toContain('repeat the denied request, or name a denial that has an Event in mimir: ');
});

it('fails if Events are not readable', async () => {
  const { status } = await ask([denial('a', 60_000)], `explain decision/${id} -n mimir`, { forbidden: ['events'] });
  expect(status).toBe(11);
});

it('names the denials that have Events, for an unknown and for a malformed ID', async () => {
  for (const name of ['000000000000', 'zzz']) {
    const { status, stderr } = await ask([denial('a', 60_000)], `explain decision/${name} -n mimir`);
    expect([status, stderr]).toEqual([10, expect.stringContaining(`name a denial that has an Event in mimir: decision/${id}\n`)]);
  }
});

it('treats other text as a group of the namespace decision', async () => {
  const { status, stderr } = await ask([], 'explain decision/ingester');
  expect(status).toBe(10);
  expect(stderr).toContain('decision/ingester');
  expect(stderr).toContain('list the Events of a group: kubectl rollout-group events GROUP');
  expect(stderr).toContain('the ID of decision/ID has 12 hexadecimal digits');
});

describe('the current judgement', () => {
  const shrink = { kind: 'scale', namespace: 'mimir', statefulSet: 'ingester-zone-b', from: 2, to: 1, via: 'scale' };
  const told = denial('b', 60_000, 'mimir', shrink);
  const guarded = adoptedObjects({ labels: { 'grafana.com/no-downscale': 'true' } });

  it('is computed from the request in the Event', async () => {
    const { stdout } = await ask([told, ...guarded], `explain decision/${id} -n mimir`);
    expect(stdout).toContain('  why      scale of statefulset/ingester-zone-b from 3 to 2 is denied by zone-gap');
    expect(stdout).toContain('  now      scale of statefulset/ingester-zone-b from 2 to 1 in namespace mimir is denied by no-downscale: ');
    expect(stdout).toContain('  source   no-downscale: StatefulSet mimir/ingester-zone-b');
  });

  it('reports whether the request would be allowed, or that this is unknown', async () => {
    expect((await ask([told, ...adoptedObjects()], `explain decision/${id} -n mimir`)).stdout).toContain(
      '  now      the request would be allowed\n',
    );
    const blind = await ask([told, ...guarded], `explain decision/${id} -n mimir`, { forbidden: ['statefulsets', 'rolloutgroups'] });
    expect(blind.status).toBe(0);
    expect(blind.stdout).toMatch(/ {2}now {6}unknown: |denied by view-complete/);
  });

  it('is omitted if the Event does not contain the request', async () => {
    const odd = denial('b', 60_000, 'mimir', { kind: 'other' });
    for (const event of [odd, denial('b', 60_000)]) {
      expect((await ask([event, ...guarded], `explain decision/${id} -n mimir`)).stdout).not.toContain('  now ');
    }
  });

  it('is found by the id if the Event has expired and nothing has changed', async () => {
    const first = await ask([...guarded, told], `explain decision/${id} -n mimir -o json`);
    const { now } = JSON.parse(first.stdout) as { readonly now: { readonly decision: string; readonly outcome: string } };
    expect(now.outcome).toBe('deny');
    const again = await ask(guarded, `explain decision/${now.decision} -n mimir`);
    expect(again.status).toBe(0);
    expect(again.stdout).toContain(
      `decision/${now.decision}\n  denied   the denial has no Event: dry runs write no Events, and Events expire; the request is evaluated again\n  now      scale of`,
    );
    const json = await ask(guarded, `explain decision/${now.decision} -n mimir -o json`);
    expect(JSON.parse(json.stdout)).toMatchObject({ kind: 'Denial', events: [], now: { decision: now.decision, outcome: 'deny' } });
    expect((await ask(adoptedObjects(), `explain decision/${now.decision} -n mimir`)).status).toBe(10);
  });
});
