import { describe, expect, it } from 'vitest';
import type { KubernetesRequest, KubernetesResponse } from '../../../cluster/env.ts';
import { TransportFailure } from '../../../cluster/request/failure.ts';
import { type KubernetesObject, resources } from '../../../cluster/request/resource.ts';
import type { Cluster } from '../../../plugin/connection.ts';
import { applyAll } from '../../../plugin/source/cluster/apply.ts';
import { conflictsOf, handOver, type ReadyObject, serverApply } from '../../../plugin/source/cluster/server-apply.ts';

type Answer = (request: KubernetesRequest) => KubernetesResponse | Error;

/** An API server that answers as it is told, and what it was asked. */
function serverWith(answer: Answer): { readonly cluster: Cluster; readonly asked: KubernetesRequest[] } {
  const asked: KubernetesRequest[] = [];
  const request = async (sent: KubernetesRequest): Promise<KubernetesResponse> => {
    asked.push(sent);
    const given = answer(sent);
    if (given instanceof Error) throw given;
    return given;
  };
  const never = (): never => {
    throw new Error('not used');
  };
  const env = {
    clock: { nowMs: () => 0, monotonicMs: () => 0 },
    timers: { after: never },
    random: () => 0,
    kubernetes: { request, stream: never },
  };
  return {
    cluster: { env, namespace: 'm', server: 'https://x', contextName: '', timeoutMs: 1000, close: () => undefined },
    asked,
  };
}

function ready(name: string, live?: Partial<KubernetesObject>): ReadyObject {
  const object: KubernetesObject = { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name, namespace: 'm' } };
  const seen = live === undefined ? undefined : { ...object, metadata: { name, namespace: 'm', uid: 'u', resourceVersion: '1' }, ...live };
  return { resource: resources.statefulSets, object, live: seen };
}

const run = { plan: 'abc', forceConflicts: false };
const dryRun = { isDryRun: true, forceConflicts: false };

const ok: KubernetesResponse = { status: 200, headers: {}, body: JSON.stringify({ metadata: { name: 'a' } }) };

function status(code: number, more: object = {}): KubernetesResponse {
  return { status: code, headers: {}, body: JSON.stringify({ kind: 'Status', reason: 'Conflict', message: 'no', ...more }) };
}

const conflict = status(409, {
  details: { causes: [{ reason: 'FieldManagerConflict', message: 'conflict with "helm" using apps/v1', field: '.spec.replicas' }] },
});

describe('an apply', () => {
  it('marks every object with the plan, names the expected state, and never uses force', async () => {
    const { cluster, asked } = serverWith(() => ok);
    const { applied, error } = await applyAll(cluster, [ready('a', { spec: {} }), ready('b')], run);
    expect(error).toBeUndefined();
    expect(applied.map(({ object, result }) => `${object} ${result}`)).toEqual(['StatefulSet m/a configured', 'StatefulSet m/b created']);
    const bodies = asked.map(({ body = '' }) => JSON.parse(body).metadata);
    expect(bodies).toEqual([
      { name: 'a', namespace: 'm', annotations: { 'rollout-group.dev/plan': 'abc' }, uid: 'u', resourceVersion: '1' },
      { name: 'b', namespace: 'm', annotations: { 'rollout-group.dev/plan': 'abc' } },
    ]);
    expect(asked.every(({ path }) => path.includes('force=false') && path.includes('fieldManager=rollout-group'))).toBe(true);
  });

  it('stops at the first failure and names the remaining objects', async () => {
    const { cluster } = serverWith(({ path }) => (path.includes('/b?') ? status(403, { reason: 'Forbidden' }) : ok));
    const { applied, error } = await applyAll(cluster, [ready('a'), ready('b'), ready('c')], run);
    expect(applied.map(({ result }) => result)).toEqual(['created', 'failed', 'notAttempted']);
    expect(error).toMatchObject({ status: 403 });
  });

  it('reports an unknown result for an object if the answer was lost', async () => {
    const lost = new TransportFailure('cut', { site: 'apply.apply', mayBeApplied: true });
    const { cluster } = serverWith(() => lost);
    const { applied } = await applyAll(cluster, [ready('a')], run);
    expect(applied).toEqual([{ object: 'StatefulSet m/a', result: 'unknown', message: 'cut' }]);
  });

  it('continues after a newer resource version of an equal object', async () => {
    const now = {
      kind: 'StatefulSet',
      metadata: { name: 'a', namespace: 'm', uid: 'u', resourceVersion: '2' },
      spec: { replicas: 3 },
      status: { x: 1 },
    };
    let tries = 0;
    const { cluster, asked } = serverWith(({ method }) => {
      if (method === 'GET') return { ...ok, body: JSON.stringify(now) };
      tries += 1;
      return tries === 1 ? status(409) : ok;
    });
    const { applied } = await applyAll(cluster, [ready('a', { spec: { replicas: 3 } })], run);
    expect(applied).toMatchObject([{ result: 'configured' }]);
    expect(JSON.parse(asked.at(-1)?.body ?? '').metadata.resourceVersion).toBe('2');
  });

  it('stops at an object that has changed', async () => {
    const now = { kind: 'StatefulSet', metadata: { name: 'a', namespace: 'm', uid: 'u', resourceVersion: '2' }, spec: { replicas: 4 } };
    const { cluster } = serverWith(({ method }) => (method === 'GET' ? { ...ok, body: JSON.stringify(now) } : status(409)));
    const { applied, error } = await applyAll(cluster, [ready('a', { spec: { replicas: 3 } })], run);
    expect(applied).toMatchObject([{ result: 'failed' }]);
    expect(error).toMatchObject({ status: 409 });
  });
});

describe('a template that undo has written', () => {
  const owned = (...[manager, field]: readonly [string, string]) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with "${manager}" using apps/v1`,
    field,
  });
  const ours = owned('rollout-group', '.spec.template.spec.containers[name="x"].image');
  const refusing = (...causes: readonly object[]): Answer => {
    return ({ path }) => (path.includes('force=true') ? ok : status(409, { details: { causes } }));
  };

  it('is taken over, in the observed state', async () => {
    const { cluster, asked } = serverWith(refusing(ours));
    const { applied } = await applyAll(cluster, [ready('a', { spec: {} })], run);
    expect(applied).toEqual([
      { object: 'StatefulSet m/a', result: 'configured', taken: [{ manager: 'rollout-group', field: ours.field }] },
    ]);
    expect(asked.map(({ path }) => /force=\w+/.exec(path)?.[0])).toEqual(['force=false', 'force=true']);
    expect(JSON.parse(asked.at(-1)?.body ?? '').metadata).toMatchObject({ uid: 'u', resourceVersion: '1' });
  });

  it('is taken over with the replicas that scale wrote', async () => {
    const replicas = {
      ...owned('rollout-group', '.spec.replicas'),
      message: 'conflict with "rollout-group" with subresource "scale"',
    };
    const { cluster } = serverWith(refusing(ours, replicas));
    const { applied } = await applyAll(cluster, [ready('a', { spec: {} })], run);
    expect(applied).toMatchObject([{ result: 'configured', taken: [{ field: ours.field }, { field: '.spec.replicas' }] }]);
  });

  it('assigns the added fields to the manager of the template, also if the agent changes the spec in between', async () => {
    const env = { 'f:env': {} };
    const entry = (manager: string, operation: string, container: object) => ({
      manager,
      operation,
      apiVersion: 'apps/v1',
      fieldsV1: { 'f:spec': { 'f:template': { 'f:spec': { 'f:containers': { 'k:{"name":"x"}': container } } } } },
    });
    const set = (resourceVersion: string, partition: number, managedFields: readonly object[]): KubernetesObject => ({
      kind: 'StatefulSet',
      apiVersion: 'apps/v1',
      metadata: { name: 'a', namespace: 'm', uid: 'u', resourceVersion, managedFields },
      spec: { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition } } },
    });
    const before = [entry('argocd', 'Apply', { 'f:name': {} })];
    const after = [...before, entry('rollout-group', 'Update', env)];
    const { cluster, asked } = serverWith(({ method, body = '' }) => {
      if (method === 'GET') return { ...ok, body: JSON.stringify(set('3', 2, after)) };
      return body.includes('"3"') ? ok : status(422, { reason: 'Invalid' });
    });
    await handOver(cluster, set('1', 3, before), set('2', 3, after));
    expect(asked.map(({ method }) => method)).toEqual(['PATCH', 'GET', 'PATCH']);
    expect(JSON.parse(asked.at(-1)?.body ?? '').at(-1)).toMatchObject({
      path: '/metadata/managedFields',
      value: [entry('argocd', 'Apply', { 'f:name': {}, ...env })],
    });
  });

  it('is reported before the apply', async () => {
    const { cluster, asked } = serverWith(refusing(ours));
    const { taken } = await serverApply(cluster, ready('a', { spec: {} }), dryRun);
    expect(taken).toEqual([{ manager: 'rollout-group', field: ours.field }]);
    expect(asked.every(({ path }) => path.includes('dryRun=All'))).toBe(true);
  });

  it('is taken over only in the last observed state, and a newer state needs confirmation first', async () => {
    const now = { kind: 'StatefulSet', metadata: { name: 'a', namespace: 'm', uid: 'u', resourceVersion: '2' }, spec: {} };
    // Somebody else owns the field by then, too.
    const { cluster, asked } = serverWith(({ method, path, body = '' }) => {
      if (method === 'GET') return { ...ok, body: JSON.stringify(now) };
      if (path.includes('force=true')) return status(409);
      const isLate = body.includes('"resourceVersion":"2"');
      return status(409, { details: { causes: isLate ? [ours, owned('helm', ours.field)] : [ours] } });
    });
    const { applied, error } = await applyAll(cluster, [ready('a', { spec: {} })], run);
    expect(applied).toMatchObject([{ result: 'failed' }]);
    expect(error).toMatchObject({ status: 409 });
    expect(asked.map(({ method, path }) => /force=\w+/.exec(path)?.[0] ?? method)).toEqual([
      'force=false',
      'force=true',
      'GET',
      'force=false',
    ]);
  });

  it('of an object that changes all the time is not taken over', async () => {
    let version = 1;
    const { cluster, asked } = serverWith(({ method, path }) => {
      if (method === 'GET') {
        version += 1;
        const metadata = { name: 'a', namespace: 'm', uid: 'u', resourceVersion: `${version}` };
        return { ...ok, body: JSON.stringify({ kind: 'StatefulSet', metadata, spec: {} }) };
      }
      return path.includes('force=true') ? status(409) : status(409, { details: { causes: [ours] } });
    });
    const { applied } = await applyAll(cluster, [ready('a', { spec: {} })], run);
    expect(applied).toMatchObject([{ result: 'failed' }]);
    expect(asked.length).toBeLessThan(20);
  });

  it.each([
    ['others own something, too', [ours, owned('helm', '.spec.template.spec.x')]],
    ['somebody else owns the same field, too', [ours, { ...ours, message: 'conflict with "helm" with subresource "scale" using apps/v1' }]],
    ['another manager begins like ours', [owned('rollout-group\\" or not', '.spec.template.spec.x')]],
    ['a cause cannot be understood', [ours, { reason: 'Unknown', message: 'no' }]],
  ])('is unchanged if %s', async (_name, causes) => {
    const { cluster, asked } = serverWith(refusing(...causes));
    const { applied } = await applyAll(cluster, [ready('a', { spec: {} })], run);
    expect(applied).toMatchObject([{ result: 'failed' }]);
    expect(asked.some(({ path }) => path.includes('force=true'))).toBe(false);
  });

  it.each([
    ['of an object that was not there', ready('a')],
    ['of one whose version nobody knows', ready('a', { metadata: { name: 'a', namespace: 'm', uid: 'u' } })],
  ])('is not taken over: %s', async (_what, one) => {
    const { cluster, asked } = serverWith(refusing(ours));
    const { applied } = await applyAll(cluster, [one], run);
    expect(applied).toMatchObject([{ result: 'failed' }]);
    expect(asked.some(({ path }) => path.includes('force=true'))).toBe(false);
  });
});

describe('a dry run', () => {
  it('stores nothing, and names the obstacle', async () => {
    const { cluster, asked } = serverWith(({ path }) => (path.includes('/a?') ? conflict : status(422, { reason: 'Invalid' })));
    const [a, b] = await Promise.all(['a', 'b'].map((name) => serverApply(cluster, ready(name), dryRun).catch((error: unknown) => error)));
    expect([conflictsOf(a), conflictsOf(b)]).toEqual([[{ manager: 'helm', field: '.spec.replicas' }], []]);
    expect(b).toMatchObject({ status: 422 });
    expect(asked.every(({ path }) => path.includes('dryRun=All'))).toBe(true);
  });
});
