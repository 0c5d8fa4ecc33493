import { describe, expect, it } from 'vitest';
import { Departures, departuresName } from '../../../agent/admission/departures.ts';
import { decisionLabel, judgementEvent, judgementReporter, requestAnnotation } from '../../../agent/admission/judgement-events.ts';
import type { AgentEnv } from '../../../agent/env.ts';
import type { Judgement } from '../../../engine/decision.ts';
import type { Claim, Ledger } from '../../../engine/snapshot.ts';
import { startProcess } from '../../kit/agent-process.ts';
import { type Cluster, newCluster } from '../../kit/cluster.ts';
import { enforceWorld, scaleOf } from '../../webhook/native/enforce-world.ts';

const group = { namespace: 'mimir', name: 'ingester' };
const silent = (): void => undefined;

function agentEnv({ env }: Cluster): AgentEnv {
  const pods = { call: () => Promise.reject(new Error('no pod listens')) };
  return { ...env, pods, log: { debug: silent, info: silent, warn: silent, error: silent } };
}

/** Nobody hears of anything any more: watches are silent, and what is listed for them comes late. */
function silence({ api, env }: Cluster): void {
  api.hold();
  env.replaceServer((request) =>
    request.site?.startsWith('watch.') === true && !request.isStream ? { lost: 'reply', forever: true } : api.serve(request),
  );
}

describe('the inputs that place pods', () => {
  it('returns known groups and UIDs, and stored ledgers', async () => {
    const world = enforceWorld({ spec: { rollout: { strategy: 'pinned' } } });
    const process = await world.start();
    const { guard } = process.admission;
    expect(guard.groups('mimir')).toMatchObject([{ name: 'ingester', rollout: { strategy: 'pinned' } }]);
    // The agent of this test watches only the namespace mimir.
    expect([guard.groups('loki'), guard.everyGroup('loki')]).toEqual([[], { unknown: expect.any(String) }]);
    expect(guard.everyGroup('mimir')).toEqual(guard.groups('mimir'));
    expect(guard.pinned()).toEqual(['a', 'b', 'c'].map((zone) => ({ namespace: 'mimir', statefulSet: `ingester-zone-${zone}` })));
    const seen = { uid: world.set('a').metadata.uid, updateRevision: expect.any(String) };
    expect([guard.statefulSet('mimir', 'ingester-zone-a'), guard.statefulSet('mimir', 'other')]).toEqual([seen, undefined]);
    world.api.put('configmaps', { metadata: { name: 'rollout-group-ingester', namespace: 'mimir' }, data: { ledger: 'garbage' } });
    await expect(world.env.finish(guard.ledger(group))).rejects.toThrow('the ledger of mimir/ingester is not JSON');
    world.dropLedger();
    expect(await world.env.finish(guard.ledger(group))).toMatchObject({ group: 'ingester', claims: [] });
    process.cutOff();
    await expect(world.env.finish(guard.ledger(group), 60_000)).rejects.toThrow();
  });

  it('is also that the webhook for them is missing, in the process of an agent', async () => {
    const world = enforceWorld({ spec: { rollout: { strategy: 'pinned' } } });
    const { agent } = startProcess({ env: world.env });
    await world.env.advance(5_000);
    const { webhookProblems } = await world.env.finish(agent.guard.snapshot('mimir', [group], 1000));
    expect(webhookProblems).toEqual({ pins: 'MutatingWebhookConfiguration 0-rollout-group-pinned-mimir does not exist' });
  });

  it('returns no input for other strategies, and is unknown until everything was read', async () => {
    const world = enforceWorld();
    expect((await world.start()).admission.guard.pinned()).toEqual([]);
    const { agent } = startProcess({ env: world.env });
    const unknown = { unknown: expect.any(String) };
    expect([agent.guard.groups('mimir'), agent.guard.everyGroup('mimir'), agent.guard.pinned()]).toEqual([unknown, unknown, undefined]);
    await world.env.until(() => agent.isReady());
    await world.env.finish(agent.stop());
  });
});

describe('a snapshot of the guard', () => {
  const claim = (uid: string, atMs: number): Claim => ({ verb: 'evictPod', zone: 'a', uid, ordinal: 1, atMs });

  async function claimed(verb: (uid: string, atMs: number) => Claim = claim) {
    const world = enforceWorld({ spec: { disruption: { maxUnavailable: 1 } } });
    const { guard } = (await world.start()).admission;
    const seen = (): Promise<Ledger | undefined> =>
      world.env.finish(guard.snapshot('mimir', [group], 2000)).then(({ ledgers }) => ledgers[0]);
    const base = await seen();
    if (base === undefined) throw new Error('there is no ledger');
    const next = { ...base, claims: [verb(world.pod('a', 1).metadata.uid, world.env.clock.nowMs())] };
    expect(await world.env.finish(guard.store(group, base, next))).toBe(true);
    return { world, guard, seen, base, next };
  }

  it('shows a claim until a direct read shows that the request ended', async () => {
    const { world, seen } = await claimed();
    world.api.hold();
    expect((await seen())?.claims).toHaveLength(1);
    world.api.terminate('mimir', 'ingester-zone-a-1');
    await world.env.advance(5000);
    expect((await seen())?.claims).toHaveLength(1);
    await world.env.advance(10_000);
    expect((await seen())?.claims).toEqual([]);
    expect(world.ledger().claims).toHaveLength(1);
  });

  it('is still current after the agent was stopped, if requests arrive', async () => {
    const world = enforceWorld();
    const { agent } = startProcess({ env: world.env });
    await world.env.until(() => agent.isReady());
    const names = async (): Promise<readonly string[]> =>
      (await world.env.finish(agent.guard.snapshot('mimir', [], 2000))).statefulSets.map(({ name }) => name);
    let end = silent;
    const guarded = new Promise<void>((resolve) => {
      end = resolve;
    });
    await world.env.finish(agent.stop(guarded));
    world.workloads.create({ name: 'later' });
    await world.env.advance(1000);
    expect(await names()).toContain('later');
    end();
    await world.env.advance(1000);
    world.workloads.create({ name: 'too-late' });
    await world.env.advance(1000);
    expect(await names()).not.toContain('too-late');
  });

  it('drops an unused claim after two minutes by the clock of the process, also if the wall clock differs', async () => {
    const { world, seen } = await claimed();
    world.env.jumpWallClock(3_600_000);
    await world.env.advance(100_000);
    expect((await seen())?.claims).toHaveLength(1);
    await world.env.advance(21_000);
    expect((await seen())?.claims).toEqual([]);
  });

  it('contains the stored ledger after the release of a claim', async () => {
    const { world, guard, seen, base, next } = await claimed();
    await world.env.advance(121_000);
    const over = await seen();
    if (over === undefined) throw new Error('there is no ledger');
    expect(over.claims).toEqual([]);
    // Two processes have read the same; the second one has lost.
    expect(await world.env.finish(guard.store(group, base, next))).toBe(false);
    expect(await world.env.finish(guard.store(group, over, { ...over, claims: [claim('u', 0)] }))).toBe(true);
    expect(world.ledger().claims).toMatchObject([{ uid: 'u' }]);
  });

  it('makes a decrease that was carried out a dated one, for as long as the longest delay', async () => {
    const world = enforceWorld({ spec: { scaling: { down: { betweenZones: '1h' } } } });
    const { guard } = (await world.start()).admission;
    const seen = (): Promise<Ledger | undefined> =>
      world.env.finish(guard.snapshot('mimir', [group], 2000)).then(({ ledgers }) => ledgers[0]);
    const base = await seen();
    if (base === undefined) throw new Error('there is no ledger');
    const atMs = world.env.clock.nowMs();
    const decrease: Claim = { verb: 'scaleDown', zone: 'a', uid: world.set('a').metadata.uid, from: 3, to: 2, atMs };
    await world.env.finish(guard.store(group, base, { ...base, claims: [decrease] }));
    world.scaleTo('a', 2);
    await world.env.advance(600_000);
    expect(await seen()).toMatchObject({ claims: [], downscales: [{ zone: 'a', from: 3, to: 2 }] });
    await world.env.advance(3_600_000);
    expect(await seen()).toMatchObject({ claims: [], downscales: [] });
  });

  it('is denied until the requests of users are known', async () => {
    const world = enforceWorld();
    const { guard } = (await world.start()).admission;
    silence(world);
    world.api.change('rolloutgroups.rollout-group.dev', 'mimir', 'ingester', { spec: { protect: { noDownscale: true } } });
    await world.env.advance(11_000);
    await expect(world.env.finish(guard.snapshot('mimir', [group], 2000))).rejects.toThrow('the watch cache is behind the API server');
    world.env.replaceServer(world.api.serve);
    world.api.release();
    await world.env.advance(40_000);
    const { groups } = await world.env.finish(guard.snapshot('mimir', [group], 2000));
    expect(groups[0]?.zones[0]?.noDownscale).toBe(true);
  });

  it('uses a list if a watch reports no events', async () => {
    const world = enforceWorld();
    const { guard } = (await world.start()).admission;
    world.api.hold();
    world.api.change('rolloutgroups.rollout-group.dev', 'mimir', 'ingester', { spec: { protect: { noDownscale: true } } });
    await world.env.advance(11_000);
    const { groups } = await world.env.finish(guard.snapshot('mimir', [group], 2000));
    expect(groups[0]?.zones[0]?.noDownscale).toBe(true);
  });

  it('waits for an overdue watch event and then uses the current policies', async () => {
    const { world, guard } = await claimed();
    world.api.hold();
    world.api.change('statefulsets.apps', 'mimir', 'ingester-zone-a', { metadata: { annotations: { written: 'just-now' } } });
    world.api.change('rolloutgroups.rollout-group.dev', 'mimir', 'ingester', { spec: { protect: { noDownscale: true } } });
    const seen = guard.snapshot('mimir', [group], 2000);
    await world.env.advance(150);
    world.api.release();
    const { groups } = await world.env.finish(seen);
    expect(groups[0]?.zones[0]?.noDownscale).toBe(true);
  });

  const newGroup = {
    metadata: { name: 'ingester', namespace: 'mimir' },
    spec: { members: { zones: [{ name: 'a', statefulSet: 'ingester-zone-a' }] }, rollout: { strategy: 'onDelete' } },
  };

  it('contains a new group within ten seconds, although no watch event arrived', async () => {
    const world = enforceWorld({ kind: 'none' });
    const { guard } = (await world.start()).admission;
    const names = async (): Promise<readonly string[]> =>
      (await world.env.finish(guard.snapshot('mimir', [], 2000))).groups.map(({ name }) => name);
    await world.env.advance(60_000);
    world.api.hold();
    expect(await names()).toEqual([]);
    world.api.put('rolloutgroups.rollout-group.dev', newGroup);
    await world.env.advance(10_100);
    expect(await names()).toEqual(['ingester']);
  });

  it('is denied if a new group cannot be read: no watch event arrived, and the list failed or is unexpected', async () => {
    const world = enforceWorld({ kind: 'none' });
    const { guard } = (await world.start()).admission;
    silence(world);
    world.api.put('rolloutgroups.rollout-group.dev', newGroup);
    await world.env.advance(11_000);
    await expect(world.env.finish(guard.snapshot('mimir', [], 2000))).rejects.toThrow('the watch cache is behind the API server');
    world.api.forbid('list rolloutgroups.rollout-group.dev');
    await expect(world.env.finish(guard.snapshot('mimir', [], 2000))).rejects.toThrow('cannot list resource "rolloutgroups"');
  });

  it('is denied at the timeout of its request, although a check for other requests still runs', async () => {
    const world = enforceWorld({ kind: 'none' });
    const { guard } = (await world.start()).admission;
    world.env.replaceServer((request) =>
      request.method === 'GET' && request.path.includes('/rolloutgroups') ? { lost: 'reply', forever: true } : world.api.serve(request),
    );
    await world.env.advance(60_000);
    const seen: string[] = [];
    const ask = (timeoutMs: number) => guard.snapshot('mimir', [], timeoutMs).catch(() => seen.push(`${timeoutMs} ms`));
    const both = [ask(2000), ask(300)];
    await world.env.advance(500);
    expect(seen).toEqual(['300 ms']);
    await world.env.finish(Promise.all(both), 60_000);
  });

  it('lists groups and policies once in ten seconds for all requests of a namespace', async () => {
    const world = enforceWorld({ kind: 'none' });
    const { requests, admission } = await world.start();
    const lists = async (count: number): Promise<readonly string[]> => {
      const before = requests.length;
      const all = Array.from({ length: count }, () => admission.guard.snapshot('mimir', [], 2000));
      await world.env.finish(Promise.all(all));
      return requests.slice(before).filter((request) => !request.includes('/configmaps/'));
    };
    await world.env.advance(60_000);
    world.api.hold();
    const kinds = ['rolloutexceptions', 'rolloutgroups', 'rolloutintents', 'rolloutpolicies'];
    expect([...(await lists(50))].sort()).toEqual([
      'GET /apis/apps/v1/namespaces/mimir/statefulsets',
      ...kinds.map((plural) => `GET /apis/rollout-group.dev/v1alpha1/namespaces/mimir/${plural}`),
    ]);
    expect(await lists(50)).toEqual([]);
  });

  it('lists a cache again that a read past it contradicts', async () => {
    const { world, guard } = await claimed();
    const { env, api } = world;
    const lists = (plural: string): number => env.requests.filter(({ site }) => site === `watch.${plural}.list`).length;
    await env.advance(60_000);
    // The watch is told of everything but this one change.
    api.hold();
    api.change('pods', 'mimir', 'ingester-zone-a-1', { metadata: { annotations: { swallowed: 'yes' } } });
    await env.advance(100);
    api.forgetHeld();
    api.change('pods', 'mimir', 'ingester-zone-a-2', { metadata: { annotations: { told: 'yes' } } });
    await env.advance(1000);
    const before = { pods: lists('pods'), statefulsets: lists('statefulsets') };
    await env.finish(guard.snapshot('mimir', [group], 2000));
    await env.advance(5000);
    expect({ pods: lists('pods'), statefulsets: lists('statefulsets') }).toEqual({ ...before, pods: before.pods + 1 });
    await env.advance(60_000);
    await env.finish(guard.snapshot('mimir', [group], 2000));
    await env.advance(5000);
    expect(lists('pods')).toBe(before.pods + 1);
  });

  it('lists a cache again that the object of a request contradicts', async () => {
    const world = enforceWorld({ kind: 'adopted' });
    const { env, api } = world;
    const process = await world.start();
    await env.advance(60_000);
    api.hold();
    api.change('statefulsets.apps', 'mimir', 'ingester-zone-a', { metadata: { labels: { 'grafana.com/no-downscale': 'true' } } });
    await env.advance(100);
    api.forgetHeld();
    api.change('statefulsets.apps', 'mimir', 'ingester-zone-b', { metadata: { annotations: { told: 'yes' } } });
    await env.advance(1000);
    // The request waits until it is known what the label says.
    expect(await env.finish(process.ask(scaleOf(world.set('a'), 2)))).toMatchObject({
      allowed: false,
      code: 403,
      message: expect.stringContaining('no-downscale'),
    });
  });

  it('names members that certainly left no group while removals cannot be read', async () => {
    const world = enforceWorld({ kind: 'none' });
    const { guard } = (await world.start()).admission;
    const unprotected = async (): Promise<number | undefined> =>
      (await world.env.finish(guard.snapshot('mimir', [], 2000))).unprotected?.length;
    world.api.forbid('get configmaps');
    expect(await unprotected()).toBe(0);
    world.api.permit('get configmaps');
    expect(await unprotected()).toBe(3);
    world.api.forbid('get configmaps');
    expect(await unprotected()).toBe(3);
    world.workloads.create({ name: 'later' });
    await world.env.advance(1000);
    expect(await unprotected()).toBe(3);
    await world.env.advance(601_000);
    expect(await unprotected()).toBe(4);
    // Whoever comes under policy is forgotten.
    world.api.change('statefulsets.apps', 'mimir', 'later', { metadata: { labels: { 'rollout-group': 'new' } } });
    await world.env.advance(1000);
    expect(await unprotected()).toBe(3);
  });

  it('names the objects that could not be read', async () => {
    const world = enforceWorld();
    const { guard } = (await world.start()).admission;
    world.api.forbid('get configmaps');
    const seen = await world.env.finish(guard.snapshot('mimir', [group], 2000));
    expect(seen.ledgers).toEqual([]);
    expect(seen.unread).toMatchObject([{ kind: 'Ledger', namespace: 'mimir', name: 'ingester' }]);
    expect(seen.departures).toHaveProperty('unknown');
  });
});

describe('protection', () => {
  const names = (members: readonly { readonly statefulSet: string }[] | undefined) => members?.map(({ statefulSet }) => statefulSet).sort();

  it('covers members of groups and StatefulSets with protecting labels', async () => {
    const world = enforceWorld();
    world.workloads.create({ name: 'other' });
    world.workloads.create({ name: 'labelled', labels: { 'grafana.com/no-downscale': 'true' } });
    const { guard } = (await world.start()).admission;
    expect(names(guard.members())).toEqual(['ingester-zone-a', 'ingester-zone-b', 'ingester-zone-c', 'labelled']);
    world.api.change('statefulsets.apps', 'mimir', 'other', { metadata: { labels: { 'rollout-group': 'others' } } });
    await world.env.advance(1000);
    expect(names(guard.members())).toContain('other');
  });

  it('is unknown while StatefulSets or groups cannot be read', async () => {
    for (const resource of ['statefulsets.apps', 'rolloutgroups.rollout-group.dev']) {
      const world = enforceWorld();
      world.api.forbid(`list ${resource}`, `watch ${resource}`);
      const { guard } = (await world.start()).admission;
      await world.env.advance(5000);
      expect(guard.members(), resource).toBeUndefined();
    }
  });
});

describe('group removals', () => {
  const departure = { statefulSet: 'db', uid: 'u1', group: 'ingester', untilMs: 0 };

  it('are known to every process until they end', async () => {
    const cluster = newCluster();
    const [one, other] = [new Departures(agentEnv(cluster), 1000), new Departures(agentEnv(cluster), 1000)];
    const untilMs = cluster.env.clock.nowMs() + 600_000;
    expect(await cluster.env.finish(one.read('mimir'))).toEqual([]);
    await cluster.env.finish(
      Promise.all([one.keep('mimir', [{ ...departure, untilMs }]), other.keep('mimir', [{ ...departure, uid: 'u2', untilMs }])]),
    );
    await cluster.env.finish(one.keep('mimir', [{ ...departure, untilMs: untilMs - 1000 }]));
    expect(await cluster.env.finish(other.read('mimir'))).toEqual([
      { ...departure, untilMs },
      { ...departure, uid: 'u2', untilMs },
    ]);
    await cluster.env.advance(600_000);
    expect(await cluster.env.finish(other.read('mimir'))).toEqual([]);
    await cluster.env.advance(120_000);
    await cluster.env.finish(other.keep('mimir', [{ ...departure, uid: 'u3', untilMs: untilMs + 900_000 }]));
    const data = cluster.api.get('configmaps', 'mimir', departuresName)?.['data'] as { readonly departures: string };
    expect(JSON.parse(data.departures)).toHaveLength(1);
  });

  it('keep the state before the first of several changes, and start again after they end', async () => {
    const cluster = newCluster();
    const store = new Departures(agentEnv(cluster), 1000);
    const label = 'grafana.com/min-time-between-zones-downscale';
    const keep = (value: string) => {
      const untilMs = cluster.env.clock.nowMs() + 600_000;
      return cluster.env.finish(store.keep('mimir', [{ statefulSet: 'db', uid: 'u1', label, value, untilMs }]));
    };
    const kept = async () => (await cluster.env.finish(store.read('mimir'))).map(({ value }) => value);
    await keep('12h');
    await cluster.env.advance(300_000);
    await keep('6h');
    await cluster.env.advance(400_000);
    expect(await kept()).toEqual(['12h']);
    await cluster.env.advance(220_000);
    expect(await kept()).toEqual([]);
    await keep('5h');
    expect(await kept()).toEqual(['5h']);
  });

  it('that are invalid are an error, and so are too many', async () => {
    const cluster = newCluster();
    const store = new Departures(agentEnv(cluster), 1000);
    const untilMs = cluster.env.clock.nowMs() + 1000;
    const many = Array.from({ length: 501 }, (_, index) => ({ ...departure, uid: `u${index}`, untilMs }));
    await expect(cluster.env.finish(store.keep('mimir', many))).rejects.toThrow('more than 500');
    for (const departures of ['{', '{}', '[{}]', '[7]']) {
      cluster.api.put('configmaps', { metadata: { name: departuresName, namespace: 'mimir' }, data: { departures } });
      await expect(cluster.env.finish(store.read('mimir'))).rejects.toThrow();
    }
  });
});

describe('a denial', () => {
  const judgement: Judgement = {
    outcome: 'deny',
    code: 403,
    message: 'scale of statefulset/db is denied by no-downscale',
    effect: 'deny',
    warnings: [],
    actions: [],
    results: [{ rule: 'no-downscale', outcome: 'no', fact: 'it must not shrink' }],
    request: { kind: 'scale', namespace: 'mimir', statefulSet: 'db', from: 3, to: 2, via: 'scale', dryRun: false },
    decisionId: '0123456789ab',
  };
  const subject = { namespace: 'mimir', statefulSet: 'db', uid: 'u1' };

  it('is one Event in ten minutes over all processes, found by its id', async () => {
    const cluster = newCluster();
    const processes = ['one', 'two'].map((identity) => judgementReporter(agentEnv(cluster), { identity }));
    for (let minute = 0; minute < 9; minute += 1) {
      for (const report of processes) report(judgement, subject);
      await cluster.env.advance(60_000);
    }
    expect(cluster.api.list('events.events.k8s.io', 'mimir')).toMatchObject([
      {
        metadata: {
          labels: { [decisionLabel]: '0123456789ab' },
          annotations: { [requestAnnotation]: '{"from":3,"kind":"scale","namespace":"mimir","statefulSet":"db","to":2,"via":"scale"}' },
        },
        regarding: { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', namespace: 'mimir', uid: 'u1' },
        type: 'Warning',
        reason: 'DownscaleForbidden',
        action: 'Deny',
        reportingController: 'rollout-group.dev/webhook',
        note: `${judgement.message}; kubectl rollout-group explain decision/0123456789ab`,
      },
    ]);
    await cluster.env.advance(60_000);
    processes[0]?.(judgement, subject);
    processes[0]?.({ ...judgement, decisionId: 'ba9876543210' }, subject);
    await cluster.env.advance(1_000);
    expect(cluster.api.list('events.events.k8s.io', 'mimir')).toHaveLength(3);
  });

  it('names the instant instead of the age in its Event', () => {
    const aged = { rule: 'zone-gap', outcome: 'wait', fact: 'zone b shrank 5m ago', age: { words: '5m ago', fromMs: 0 } } as const;
    const denied = { ...judgement, message: 'scale is denied: zone b shrank 5m ago (limit: 1h)', results: [aged] };
    expect(judgementEvent(denied, subject, { nowMs: 300_000, identity: 'one' })['note']).toContain(
      'scale is denied: zone b shrank at 1970-01-01T00:00:00Z (limit: 1h)',
    );
  });

  it('writes another Event for a request that an exception permits', () => {
    const fact = 'it must not shrink; permitted by exception shrink-a of anna until 2026-01-01T00:00:00.000Z (cost)';
    const permitted = { rule: 'no-downscale', outcome: 'ok', fact, exception: 'shrink-a' } as const;
    const message = `scale of statefulset/db is allowed; no-downscale: ${fact}`;
    const allowed = { ...judgement, outcome: 'allow', code: 200, message, results: [permitted] } as const;
    const event = judgementEvent(allowed, subject, { nowMs: 0, identity: 'one' });
    expect(event).toMatchObject({ type: 'Warning', reason: 'ExceptionUsed', action: 'Allow', note: message, regarding: { name: 'db' } });
    expect(event.metadata).not.toHaveProperty('labels');
  });

  it('is counted in one Event of its StatefulSet and reason if too many Events wait', async () => {
    const cluster = newCluster();
    const report = judgementReporter(agentEnv(cluster), { identity: 'one' });
    const long = { ...judgement, message: 'ä'.repeat(2_000) };
    for (let index = 0; index < 300; index += 1) report({ ...long, decisionId: `${index}` }, subject);
    report({ ...long, decisionId: 'other' }, { ...subject, statefulSet: 'cache' });
    await cluster.env.advance(1_000);
    const events = cluster.api.list('events.events.k8s.io', 'mimir');
    const counts = events.map(({ series }) => (series as { readonly count?: number } | undefined)?.count ?? 1);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(301);
    const combined = events.filter(({ note }) => String(note).startsWith('(combined from similar events): '));
    expect(
      combined.map(({ regarding, metadata }) => [(regarding as { readonly name: string }).name, metadata.labels?.[decisionLabel]]),
    ).toEqual(
      expect.arrayContaining([
        ['db', '299'],
        ['cache', 'other'],
      ]),
    );
    expect(events.every(({ note }) => Buffer.byteLength(String(note)) <= 1_024)).toBe(true);
  });

  it('never fails for an Event that cannot be written', async () => {
    const cluster = newCluster();
    const report = judgementReporter(agentEnv(cluster), { identity: 'one' });
    for (let index = 0; index < 300; index += 1) report({ ...judgement, decisionId: `${index}` }, subject);
    await cluster.env.advance(1_000);
    expect(cluster.env.requests.length).toBeLessThanOrEqual(102);
  });
});
