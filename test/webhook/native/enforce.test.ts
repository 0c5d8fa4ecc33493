import { describe, expect, it } from 'vitest';
import type { ModelObject } from '../../../simulation/server/request.ts';
import type { Review } from '../../../webhook/review/review.ts';
import {
  deletionOf,
  type EnforceWorld,
  enforceWorld,
  evictionOf,
  type Json,
  scaleOf,
  updateOf,
  withLabels,
  withSpec,
} from './enforce-world.ts';

const protectedSpec = {
  protect: { noDownscale: true, noDelete: true, noEviction: true },
  disruption: { maxUnavailable: 1 },
};
const fromSpec = (set: ModelObject): Json => set['spec'] as Json;
const withoutReplicas = (object: Json): Json => {
  const { replicas: _replicas, ...spec } = object['spec'] as Json;
  return { ...object, spec };
};

/** Each write path, and what it asks of zone a. */
const shrinking: Readonly<Record<string, (world: EnforceWorld) => Review>> = {
  PUT: ({ set }) => updateOf(set('a'), withSpec({ replicas: 2 }), { options: { kind: 'UpdateOptions' } }),
  'a patch': ({ set }) => updateOf(set('a'), withSpec({ replicas: 2 }), { options: { kind: 'PatchOptions' } }),
  'server-side apply': ({ set }) =>
    updateOf(set('a'), withSpec({ replicas: 2 }), { options: { kind: 'PatchOptions', fieldManager: 'flux', force: true } }),
  '/scale': ({ set }) => scaleOf(set('a'), 2),
  '/scale without a number': ({ set }) => scaleOf(set('a'), undefined),
  'a write without replicas': ({ set }) => updateOf(set('a'), withoutReplicas),
  'a write with replicas null': ({ set }) => updateOf(set('a'), withSpec({ replicas: null })),
  'a write that changes the template too': ({ set }) =>
    updateOf(set('a'), withSpec({ replicas: 2, template: { ...(fromSpec(set('a'))['template'] as Json), spec: { containers: [] } } })),
  'an autoscaler': ({ set }) =>
    scaleOf(set('a'), 2, {
      user: { name: 'system:serviceaccount:kube-system:horizontal-pod-autoscaler', groups: ['system:serviceaccounts:kube-system'] },
    }),
  'another version of Scale': ({ set }) =>
    scaleOf(set('a'), 2, { kind: { group: 'extensions', version: 'v1beta1', kind: 'Scale' }, apiVersion: 'admission.k8s.io/v1beta1' }),
  'a dry run': ({ set }) => scaleOf(set('a'), 2, { dryRun: true }),
};
const deleting: Readonly<Record<string, (world: EnforceWorld) => Review>> = {
  'the deletion of a StatefulSet': ({ set }) => deletionOf(set('a')),
  'the deletion that leaves the pods': ({ set }) =>
    deletionOf(set('a'), { options: { kind: 'DeleteOptions', propagationPolicy: 'Orphan' } }),
  'the deletion of a collection, which names nothing': ({ set }) => deletionOf(set('a'), { name: '' }),
  'an eviction': ({ pod }) => evictionOf(pod('a', 1)),
  'an eviction of the old version': ({ pod }) =>
    evictionOf(pod('a', 1), { kind: { group: 'policy', version: 'v1beta1', kind: 'Eviction' } }),
};

describe('protected objects are protected on every path', () => {
  for (const [path, review] of Object.entries({ ...shrinking, ...deleting })) {
    it(`${path}, and passes without protection`, async () => {
      const guarded = enforceWorld({ spec: protectedSpec });
      const process = await guarded.start();
      const refused = await guarded.env.finish(process.ask(review(guarded)));
      expect(refused).toMatchObject({ allowed: false, code: 403, reason: 'Forbidden' });
      expect(refused.message).toMatch(
        /denied by no-(downscale|delete|eviction): zone a .*; kubectl rollout-group explain decision\/[0-9a-f]{12}$/,
      );
      expect(guarded.ledger().claims).toEqual([]);

      const member = enforceWorld({ spec: { disruption: { maxUnavailable: 1 } } });
      const third = await member.start();
      const asked = review(member);
      // The floor of a group is a protection too.
      const isToNothing = path === '/scale without a number';
      expect(await member.env.finish(third.ask(asked))).toMatchObject({ allowed: !isToNothing });
      expect(member.ledger().claims).toHaveLength(asked.dryRun || isToNothing ? 0 : 1);

      const free = enforceWorld({ kind: 'none' });
      const other = await free.start();
      expect(await free.env.finish(other.ask(review(free)))).toMatchObject({ allowed: true });
      expect(other.writes).toEqual([]);
    });
  }

  it('names the rule, the fact, its location and the next command, and writes the audit log', async () => {
    const world = enforceWorld({ spec: protectedSpec });
    const process = await world.start();
    const answer = await world.env.finish(process.ask(scaleOf(world.set('a'), 2)));
    const id = answer.auditAnnotations?.['decision'];
    expect(answer.message).toBe(
      `scale of statefulset/ingester-zone-a from 3 to 2 in namespace mimir is denied by no-downscale: zone a must not shrink (limit: noDownscale); defined at RolloutGroup mimir/ingester spec.protect; kubectl rollout-group explain decision/${id}`,
    );
    expect(answer.auditAnnotations).toMatchObject({ outcome: 'deny', rule: 'no-downscale', group: 'mimir/ingester' });
    expect(answer.auditAnnotations?.['policy']).toMatch(/^[0-9a-f]+$/);
    await world.env.settle();
    expect(world.api.list('events.events.k8s.io')).toMatchObject([
      { regarding: { kind: 'StatefulSet', name: 'ingester-zone-a' }, reason: 'DownscaleForbidden', type: 'Warning' },
    ]);
  });

  it('the deletion of a pod, by the budget of its group', async () => {
    const world = enforceWorld({ spec: { disruption: { maxUnavailable: 1 } } });
    const process = await world.start();
    expect(await world.env.finish(process.ask(deletionOf(world.pod('a', 1))))).toMatchObject({ allowed: true });
    const second = await world.env.finish(process.ask(deletionOf(world.pod('b', 1))));
    expect(second).toMatchObject({ allowed: false, code: 403, reason: 'Forbidden' });
    expect(second.message).toContain('denied by disruption-budget: 1 pod not ready in ingester-zone-a');
  });

  it('a restart, a strategy, a partition, a first ordinal', async () => {
    const world = enforceWorld();
    const message = 'ask https://me:s3cr3t@files.example.com/a?sig=s3cr3t, password: s3cr3t';
    world.api.put('rolloutpolicies.rollout-group.dev', {
      metadata: { name: 'safety', namespace: 'mimir' },
      spec: { targets: { groups: ['ingester'] }, rules: [{ name: 'no-restarts', actions: ['restart'], effect: 'deny', message }] },
    });
    world.workloads.setImage('ingester-zone-a', 'app:2');
    const process = await world.start();
    await world.env.advance(1000);
    const set = world.set('a');
    const template = fromSpec(set)['template'] as Json;
    const restarted = {
      ...template,
      metadata: { ...(template['metadata'] as Json), annotations: { 'kubectl.kubernetes.io/restartedAt': 'now' } },
    };
    const ask = (change: (object: Json) => Json) => world.env.finish(process.ask(updateOf(set, change)));
    const denied = await ask(withSpec({ template: restarted }));
    expect(denied.message).toContain('denied by safety/no-restarts: ask https://***@files.example.com/a?sig=*** password: ***');
    expect(JSON.stringify(denied)).not.toContain('s3cr3t');
    expect((await ask(withSpec({ updateStrategy: { type: 'RollingUpdate' } }))).message).toContain('denied by update-strategy');
    expect((await ask(withSpec({ ordinals: { start: 1 } }))).message).toContain('denied by ordinals-kept');
    world.api.change('statefulsets.apps', 'mimir', set.metadata.name, {
      spec: { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 3 } } },
    });
    await world.env.advance(1000);
    const rolling = world.set('a');
    const lower = { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 1 } } };
    const answer = await world.env.finish(process.ask(updateOf(rolling, withSpec(lower))));
    expect(answer.message).toContain('denied by update-strategy: the partition 1 would replace 2 pods');
  });
});

it('a restart of an undone template is denied; the manifest without the annotation and any other template pass, and end the block with a warning', async () => {
  const world = enforceWorld();
  world.workloads.setImage('ingester-zone-a', 'app:2');
  await world.env.advance(1000);
  const set = world.set('a');
  const undone = [{ zone: 'a', revision: (set['status'] as Json)['updateRevision'] }];
  world.api.put('rolloutintents.rollout-group.dev', {
    metadata: { name: 'undo.ingester', namespace: 'mimir' },
    spec: { group: 'ingester', action: 'undo', undone },
  });
  const process = await world.start();
  await world.env.advance(1000);
  const template = fromSpec(set)['template'] as Json;
  const withAnnotation = (key: string): Json => ({
    ...template,
    metadata: { ...(template['metadata'] as Json), annotations: { [key]: 'now' } },
  });
  const restarted = withAnnotation('kubectl.kubernetes.io/restartedAt');
  const ask = (old: ModelObject, to: Json) => world.env.finish(process.ask(updateOf(old, withSpec({ template: to }))));
  expect(await ask(set, restarted)).toMatchObject({
    allowed: false,
    message: expect.stringContaining('a restart would roll out a blocked template'),
  });
  expect(await ask(set, withAnnotation('checksum/config'))).toMatchObject({
    allowed: true,
    warnings: [expect.stringMatching(/^undone: the new template ends a block: .* undid the revisions/)],
  });
  const applied = world.api.change('statefulsets.apps', 'mimir', set.metadata.name, { spec: { template: restarted } });
  expect(applied).toBeDefined();
  await world.env.advance(1000);
  expect(await ask(world.set('a'), template)).toMatchObject({ allowed: true });
});

describe('removal of protection, in one request or in two (threat 10)', () => {
  const label = 'rollout-group';

  for (const [how, labels] of Object.entries({ removed: { [label]: undefined }, renamed: { [label]: 'other' } })) {
    it(`is denied if the label is ${how} in the write that shrinks`, async () => {
      const world = enforceWorld({ kind: 'adopted' });
      const process = await world.start();
      const both = updateOf(world.set('a'), (object) => withLabels(labels)(withSpec({ replicas: 2 })(object)));
      const answer = await world.env.finish(process.ask(both));
      expect(answer).toMatchObject({ allowed: false, code: 403 });
      expect(answer.message).toContain('denied by protection-kept');
    });

    it(`protects for ten more minutes if the label is ${how} first`, async () => {
      const world = enforceWorld({ kind: 'adopted' });
      const [first, second] = [await world.start(), await world.start({ name: 'webhook-2' })];
      const relabelled = withLabels(labels)(world.set('a'));
      expect(await world.env.finish(first.ask(updateOf(world.set('a'), () => relabelled)))).toMatchObject({ allowed: true });
      world.api.put('statefulsets.apps', relabelled as never);
      await world.env.advance(2000);
      for (const review of [scaleOf(world.set('a'), 0), deletionOf(world.set('a')), evictionOf(world.pod('a', 0))]) {
        const answer = await world.env.finish(second.ask(review));
        expect(answer).toMatchObject({ allowed: false, code: review.operation === 'CREATE' ? 429 : 403 });
        expect(answer.message).toContain('denied by protection-kept: ingester-zone-a left the group ingester less than ten minutes ago');
      }
      await world.env.advance(600_000);
      if (how === 'removed') expect(await world.env.finish(second.ask(scaleOf(world.set('a'), 0)))).toMatchObject({ allowed: true });
    });
  }

  it('keeps the protection after the label that denies a downscale is removed', async () => {
    const world = enforceWorld({ kind: 'none', sets: { labels: { 'grafana.com/no-downscale': 'true' } } });
    const process = await world.start();
    const without = withLabels({ 'grafana.com/no-downscale': undefined })(world.set('a'));
    expect(await world.env.finish(process.ask(updateOf(world.set('a'), () => without)))).toMatchObject({ allowed: true });
    world.api.put('statefulsets.apps', without as never);
    await world.env.advance(1000);
    const answer = await world.env.finish(process.ask(scaleOf(world.set('a'), 2)));
    expect(answer.message).toContain('denied by protection-kept: ingester-zone-a lost the label grafana.com/no-downscale');
    expect(await world.env.finish(process.ask(scaleOf(world.set('b'), 2)))).toMatchObject({ allowed: false, code: 403 });
  });

  it('keeps the protection after the interval between zones is lowered, or the prepare endpoint is changed', async () => {
    const time = 'grafana.com/min-time-between-zones-downscale';
    const path = 'grafana.com/prepare-downscale-http-path';
    const annotations = { [path]: 'ingester/prepare', 'grafana.com/prepare-downscale-http-port': '80' };
    const changes = {
      [`had 12h in the label ${time}`]: withLabels({ [time]: '0s' }),
      [`lost the label ${time}`]: withLabels({ [time]: undefined }),
      [`had another value in the annotation ${path}`]: (object: Json): Json => {
        return { ...object, metadata: { ...(object['metadata'] as Json), annotations: { ...annotations, [path]: 'ready' } } };
      },
    };
    for (const [fact, change] of Object.entries(changes)) {
      const world = enforceWorld({
        kind: 'adopted',
        sets: { labels: { [time]: '12h', 'grafana.com/prepare-downscale': 'true' }, annotations },
      });
      const [one, other] = [
        await world.start({ isPreparedElsewhere: true }),
        await world.start({ name: 'webhook-2', isPreparedElsewhere: true }),
      ];
      const ask = (process: typeof one, review: Review) => world.env.finish(process.ask(review));
      expect(await ask(one, updateOf(world.set('a'), withLabels({ [time]: '13h' })))).toEqual(expect.objectContaining({ allowed: true }));
      const both = updateOf(world.set('a'), (object) => change(withSpec({ replicas: 2 })(object)));
      expect((await ask(one, both)).message).toContain('denied by protection-kept: one write lowers replicas and changes');
      expect(await ask(one, updateOf(world.set('a'), change))).toMatchObject({ allowed: true });
      world.api.put('statefulsets.apps', change(world.set('a')) as never);
      await world.env.advance(2000);
      for (const process of [one, other]) {
        const answer = await ask(process, scaleOf(world.set('a'), 2));
        expect(answer).toMatchObject({ allowed: false, code: 403 });
        expect(answer.message).toContain(`denied by protection-kept: ingester-zone-a ${fact} less than ten minutes ago`);
      }
      await world.env.advance(600_000);
      expect(await ask(other, scaleOf(world.set('a'), 2)), fact).toMatchObject({ allowed: true });
      // From here on others wait for it, and the zone tracker may be all that dates it.
      world.scaleTo('a', 2);
      await world.env.advance(2000);
      if (fact.includes('annotation'))
        expect((await ask(one, updateOf(world.set('a'), withLabels({ [time]: '1h' })))).message).toContain('while other zones wait');
    }
  });

  it('is denied while a claim on the zone is open', async () => {
    const world = enforceWorld({ kind: 'adopted' });
    const process = await world.start();
    expect(await world.env.finish(process.ask(evictionOf(world.pod('a', 0))))).toMatchObject({ allowed: true });
    const answer = await world.env.finish(process.ask(updateOf(world.set('a'), withLabels({ [label]: undefined }))));
    expect(answer).toMatchObject({ allowed: false, code: 403 });
    expect(answer.message).toContain('zone a leaves the group while it has open claims');
  });

  it('is recorded if a write of the status removes it', async () => {
    const world = enforceWorld({ kind: 'adopted' });
    const process = await world.start();
    const without = withLabels({ [label]: undefined })(world.set('a'));
    const review = updateOf(world.set('a'), () => without, { subresource: 'status' });
    expect(await world.env.finish(process.ask(review))).toMatchObject({ allowed: true });
    world.api.put('statefulsets.apps', without as never);
    await world.env.advance(1000);
    expect(await world.env.finish(process.ask(scaleOf(world.set('a'), 0)))).toMatchObject({ allowed: false, code: 403 });
  });

  it('does not happen if other labels change', async () => {
    const world = enforceWorld({ sets: { labels: { chart: 'mimir-1' } } });
    const process = await world.start();
    const upgraded = withLabels({ chart: 'mimir-2' })(world.set('a'));
    expect(await world.env.finish(process.ask(updateOf(world.set('a'), () => upgraded)))).toMatchObject({ allowed: true });
    world.api.put('statefulsets.apps', upgraded as never);
    await world.env.advance(1000);
    expect(await world.env.finish(process.ask(scaleOf(world.set('a'), 2)))).toMatchObject({ allowed: true });
  });
});

describe('requests that always pass (S32)', () => {
  const system = { name: 'system:kube-controller-manager', groups: [] };
  const cases: Readonly<Record<string, (world: EnforceWorld) => Review>> = {
    "the kubelet's final removal": ({ pod }) => deletionOf(pod('a', 0), { user: { name: 'system:node:n1', groups: ['system:nodes'] } }),
    'the deletion of a pod that already goes': ({ pod }) => {
      const going = { ...pod('a', 0), metadata: { ...pod('a', 0).metadata, deletionTimestamp: '2026-01-15T12:00:00Z' } };
      return deletionOf(going);
    },
    "the StatefulSet controller's own scale-down": ({ pod }) =>
      deletionOf(pod('a', 2), {
        user: { name: 'system:serviceaccount:kube-system:statefulset-controller', groups: ['system:serviceaccounts:kube-system'] },
      }),
    'a controller without a ServiceAccount of its own': ({ pod }) => deletionOf(pod('a', 2), { user: system }),
    'a write that changes nothing': ({ set }) => updateOf(set('a'), (object) => object),
    'a write of annotations': ({ set }) =>
      updateOf(set('a'), (object) => ({ ...object, metadata: { ...(object['metadata'] as Json), annotations: { a: 'b' } } })),
    'a new label': ({ set }) => updateOf(set('a'), withLabels({ team: 'db' })),
    'a write of the status': ({ set }) => updateOf(set('a'), (object) => ({ ...object, status: {} }), { subresource: 'status' }),
    'a /scale to the same number': ({ set }) => scaleOf(set('a'), 3),
  };
  for (const [what, review] of Object.entries(cases)) {
    it(`${what}, without any request`, async () => {
      const world = enforceWorld({ spec: protectedSpec });
      const process = await world.start();
      const before = process.requests.length;
      expect(await world.env.finish(process.ask(review(world)))).toEqual({ allowed: true });
      expect(process.requests.length).toBe(before);
    });
  }

  it('a scale-up', async () => {
    const world = enforceWorld({ spec: protectedSpec });
    const process = await world.start();
    expect(await world.env.finish(process.ask(scaleOf(world.set('a'), 4)))).toMatchObject({ allowed: true });
    expect(await world.env.finish(process.ask(updateOf(world.set('a'), withSpec({ replicas: 5 }))))).toMatchObject({ allowed: true });
    expect(process.writes).toEqual([]);
  });

  it('the deletion of a whole namespace', async () => {
    const world = enforceWorld({ spec: protectedSpec });
    world.endNamespace();
    const process = await world.start();
    for (const object of [world.set('a'), world.pod('b', 0)]) {
      expect(await world.env.finish(process.ask(deletionOf(object, { name: '' })))).toMatchObject({ allowed: true });
    }
  });

  it('our workloads, and namespaces without an agent', async () => {
    const world = enforceWorld({ spec: protectedSpec });
    const own = await world.start({ own: { namespace: 'mimir', names: ['ingester-zone-a', 'agent'] } });
    const before = own.requests.length;
    const agentPod = { ...world.pod('a', 0), metadata: { ...world.pod('a', 0).metadata, name: 'agent-7d9c5b8f6d-x2x4k' } };
    expect(await world.env.finish(own.ask(evictionOf(agentPod)))).toEqual({ allowed: true });
    expect(await world.env.finish(own.ask(scaleOf(world.set('a'), 0)))).toEqual({ allowed: true });
    expect(own.requests.length).toBe(before);
    expect(await world.env.finish(own.ask(evictionOf(world.pod('a', 0))))).toMatchObject({ allowed: false });
    const elsewhere = await world.start({ namespaces: ['loki'] });
    expect(await world.env.finish(elsewhere.ask(evictionOf(world.pod('b', 0))))).toEqual({ allowed: true });
  });

  it('the agent, which has a claim for its action', async () => {
    const world = enforceWorld({ spec: { ...protectedSpec, replicas: { count: 2 }, protect: { noEviction: true } } });
    const process = await world.start();
    const refused = await world.env.finish(process.ask(scaleOf(world.set('a'), 2)));
    expect(refused.message).toContain('denied by replicas-owned');
    const base = world.ledger();
    const { uid, resourceVersion } = world.set('a').metadata;
    const claim = { verb: 'scaleDown', zone: 'a', uid, from: 3, to: 2, resourceVersion, epoch: 4, atMs: world.env.clock.nowMs() } as const;
    const group = { namespace: 'mimir', name: 'ingester' };
    await world.env.finish(process.admission.guard.store(group, base, { ...base, claims: [claim], epoch: 4 }));
    const announced = world.ledger();
    expect(await world.env.finish(process.ask(scaleOf(world.set('a'), 2)))).toMatchObject({ allowed: true });
    expect(world.ledger()).toEqual(announced);
    expect(await world.env.finish(process.ask(scaleOf(world.set('a'), 1)))).toMatchObject({ allowed: false });
  });
});

describe('pods that must prepare', () => {
  const prepare = { 'grafana.com/prepare-downscale': 'true' };
  const annotations = { 'grafana.com/prepare-downscale-http-path': 'prepare', 'grafana.com/prepare-downscale-http-port': '80' };

  it('of a native group prepare only for the agent', async () => {
    const endpoint = { port: 8080, path: '/prepare' };
    const world = enforceWorld({ spec: { scaling: { down: { prepare: { endpoint, onFailure: 'deny' } } } } });
    const process = await world.start({ isPreparedElsewhere: true });
    const answer = await world.env.finish(process.ask(scaleOf(world.set('a'), 2)));
    expect(answer).toMatchObject({ allowed: false, code: 403 });
    expect(answer.message).toContain(
      'denied by prepare-downscale: 1 pod must prepare, and only the agent prepares pods: set replicas.count',
    );
    expect(process.writes.filter((write) => !write.includes('/events'))).toEqual([]);
    expect(await world.env.finish(process.ask(scaleOf(world.set('a'), 2, { dryRun: true })))).toMatchObject({ allowed: false });
  });

  it('of an adopted group prepare at the endpoint from before the change', async () => {
    const world = enforceWorld({ kind: 'adopted', sets: { labels: prepare, annotations } });
    const alone = await world.start();
    expect(await world.env.finish(alone.ask(scaleOf(world.set('a'), 2)))).toMatchObject({ allowed: false, code: 403 });
    const beside = await world.start({ isPreparedElsewhere: true });
    expect(await world.env.finish(beside.ask(scaleOf(world.set('a'), 2)))).toMatchObject({ allowed: true });
    expect(world.ledger().claims).toMatchObject([{ verb: 'scaleDown', from: 3, to: 2 }]);
  });
});

describe('a reservation', () => {
  it('names the allowed request, and is absent for a dry run (S29)', async () => {
    const world = enforceWorld({ spec: { disruption: { maxUnavailable: 1 } } });
    const process = await world.start();
    expect(await world.env.finish(process.ask(evictionOf(world.pod('a', 1), { dryRun: true })))).toMatchObject({ allowed: true });
    const drained = { deleteOptions: { dryRun: ['All'] }, metadata: { name: 'ingester-zone-a-1' } };
    expect(await world.env.finish(process.ask(evictionOf(world.pod('a', 1), { object: drained })))).toMatchObject({ allowed: true });
    expect(process.writes).toEqual([]);
    expect(await world.env.finish(process.ask(evictionOf(world.pod('a', 1))))).toMatchObject({ allowed: true });
    const { uid } = world.pod('a', 1).metadata;
    expect(world.ledger().claims).toMatchObject([{ verb: 'evictPod', zone: 'a', uid, ordinal: 1, user: 'kim' }]);
    expect(world.ledger().claims[0]).not.toHaveProperty('epoch');
    expect(world.ledger().claims[0]).not.toHaveProperty('resourceVersion');
    expect(await world.env.finish(process.ask(evictionOf(world.pod('a', 1))))).toMatchObject({ allowed: true });
    expect(world.ledger().claims).toHaveLength(1);
    expect(await world.env.finish(process.ask(evictionOf(world.pod('b', 1))))).toMatchObject({
      allowed: false,
      code: 429,
    });
  });

  it('is judged by the stored object, not by the review (threat 1)', async () => {
    const world = enforceWorld({ spec: { protect: { noDownscale: true } } });
    const process = await world.start();
    const forged = { ...world.set('a'), spec: { ...fromSpec(world.set('a')), replicas: 2 } } as ModelObject;
    expect(await world.env.finish(process.ask(scaleOf(forged, 1)))).toMatchObject({ allowed: false, code: 403 });
  });

  it('of many requests at once is one write', async () => {
    const world = enforceWorld({ spec: { disruption: { maxUnavailable: 3 } } });
    const process = await world.start({ latencyMs: 20 });
    const asked = [0, 1, 2].map((ordinal) => process.ask(evictionOf(world.pod('a', ordinal))));
    const answers = await world.env.finish(Promise.all(asked));
    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, true]);
    expect(world.ledger().claims).toHaveLength(3);
    expect(process.writes.length).toBeLessThanOrEqual(2);
  });
});
