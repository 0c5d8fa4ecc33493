// Creating and changing objects on the model of the API server.
import { describe, expect, it } from 'vitest';
import { modelOfApplies, played, sequences } from './applies.ts';
import { asking, configMap, paths, pod, refusalOf, statefulSet } from './asking.ts';

const { configMaps, sets, pods, leases, intents, groups, budgets } = paths;
const intent = (name: string, spec = {}) => ({
  apiVersion: 'rollout-group.dev/v1alpha1',
  kind: 'RolloutIntent',
  metadata: { name },
  spec: { group: 'g', action: 'pause', ...spec },
});

describe('creating', () => {
  it('gives the object a uid, a version and the time in whole seconds', async () => {
    const { ask, advance } = asking();
    await advance(1700);
    const { status, body } = ask('POST', configMaps, configMap('a'));
    expect([status, body.kind, body['apiVersion'], body['data']]).toEqual([201, 'ConfigMap', 'v1', { key: '1' }]);
    expect(body.metadata).toEqual({
      name: 'a',
      namespace: 'one',
      uid: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      resourceVersion: '1001',
      creationTimestamp: '2026-01-15T12:00:01Z',
    });
  });

  it('refuses what is taken, wrongly named, or of another place', () => {
    const { ask } = asking();
    ask('POST', configMaps, configMap('a'));
    expect(refusalOf(ask('POST', configMaps, configMap('a')))).toEqual([409, 'AlreadyExists', 'configmaps "a" already exists']);
    expect(refusalOf(ask('POST', configMaps, configMap('A_b'))).slice(0, 2)).toEqual([422, 'Invalid']);
    expect(refusalOf(ask('POST', configMaps, { metadata: {} }))).toEqual([
      422,
      'Invalid',
      'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
    ]);
    expect(refusalOf(ask('POST', configMaps, { metadata: { name: 'k', namespace: 'two' } }))).toEqual([
      400,
      'BadRequest',
      'the namespace of the provided object does not match the namespace sent on the request',
    ]);
    expect(refusalOf(ask('POST', configMaps, { metadata: { name: 'k', resourceVersion: '5' } }))).toEqual([
      500,
      undefined,
      'resourceVersion should not be set on objects to be created',
    ]);
    expect(ask('POST', configMaps, { kind: 'Pod', apiVersion: 'v1', metadata: { name: 'k' } }).status).toBe(400);
    expect(ask('POST', configMaps, '{bad').status).toBe(400);
    expect(ask('POST', intents, { metadata: { name: 'k' }, spec: {} }).status).toBe(400);
  });

  it('keeps no status that comes with a pod or a StatefulSet, and fills in defaults', () => {
    const { ask } = asking();
    expect(ask('POST', pods, { ...pod('p-0'), status: { phase: 'Running' } }).body.status).toEqual({
      phase: 'Pending',
      qosClass: 'BestEffort',
    });
    const set = ask('POST', sets, { ...statefulSet('s'), status: { replicas: 9 } }).body;
    expect([set.status, set.spec?.['podManagementPolicy'], set.spec?.['updateStrategy'], set.metadata.generation]).toEqual([
      { replicas: 0, availableReplicas: 0 },
      'OrderedReady',
      { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
      1,
    ]);
  });

  it('keeps nothing of a dry run', () => {
    const { ask, commits } = asking();
    expect(ask('POST', `${configMaps}?dryRun=All`, configMap('a')).status).toBe(201);
    expect([ask('GET', `${configMaps}/a`).status, commits]).toEqual([404, []]);
    expect(refusalOf(ask('POST', `${configMaps}?dryRun=Some`, configMap('a'))).slice(0, 2)).toEqual([422, 'Invalid']);
  });
});

describe('replacing', () => {
  it('needs the version that is stored, where one is named', () => {
    const { ask } = asking();
    const { resourceVersion } = ask('POST', configMaps, configMap('a')).body.metadata;
    expect(ask('PUT', `${configMaps}/a`, configMap('a', { key: '2' })).body.metadata.resourceVersion).toBe('1002');
    const stale = { metadata: { name: 'a', resourceVersion }, data: {} };
    expect(refusalOf(ask('PUT', `${configMaps}/a`, stale))).toEqual([
      409,
      'Conflict',
      'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
    ]);
    const other = { metadata: { name: 'a', uid: 'other' }, data: {} };
    expect(refusalOf(ask('PUT', `${configMaps}/a`, other)).slice(0, 2)).toEqual([409, 'Conflict']);
  });

  it('needs a version at all for Leases, budgets and custom kinds', () => {
    const { ask } = asking();
    ask('POST', leases, { metadata: { name: 'l' }, spec: { holderIdentity: 'a' } });
    ask('POST', budgets, { metadata: { name: 'b' }, spec: { maxUnavailable: 1 } });
    ask('POST', intents, intent('i'));
    const unnamed = [
      ask('PUT', `${leases}/l`, { metadata: { name: 'l' }, spec: {} }),
      ask('PUT', `${budgets}/b`, { metadata: { name: 'b' }, spec: {} }),
      ask('PUT', `${intents}/i`, intent('i')),
    ];
    expect(unnamed.map(({ status }) => status)).toEqual([422, 422, 422]);
    expect(unnamed[2]?.body.message).toBe(
      'rolloutintents.rollout-group.dev "i" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update',
    );
  });

  it('creates a Lease that is not there, and no ConfigMap', () => {
    const { ask } = asking();
    expect(ask('PUT', `${leases}/l`, { metadata: { name: 'l' }, spec: { holderIdentity: 'a' } }).status).toBe(201);
    expect(refusalOf(ask('PUT', `${configMaps}/a`, configMap('a')))).toEqual([404, 'NotFound', 'configmaps "a" not found']);
  });

  it('refuses another name and another namespace', () => {
    const { ask } = asking();
    ask('POST', configMaps, configMap('a'));
    expect(refusalOf(ask('PUT', `${configMaps}/a`, configMap('b')))).toEqual([
      400,
      'BadRequest',
      'the name of the object (b) does not match the name on the URL (a)',
    ]);
    expect(ask('PUT', `${configMaps}/a`, { metadata: { name: 'a', namespace: 'two' } }).status).toBe(400);
    expect(ask('PUT', `${configMaps}/a`, { metadata: {} }).status).toBe(400);
  });
});

describe('patching', () => {
  it('merges, and stores nothing when nothing changes', () => {
    const { ask, merge, commits } = asking();
    ask('POST', configMaps, configMap('a', { x: '1', y: '2' }));
    expect(merge(`${configMaps}/a`, { data: { x: null, z: '3' } }).body['data']).toEqual({ y: '2', z: '3' });
    expect(merge(`${configMaps}/a`, { data: { y: '2' } }).body.metadata.resourceVersion).toBe('1002');
    expect(commits.map(({ type, revision }) => `${type} ${revision}`)).toEqual(['ADDED 1001', 'MODIFIED 1002']);
  });

  it('takes a version as a precondition, and says of another uid that it cannot change', () => {
    const { ask, merge } = asking();
    ask('POST', configMaps, configMap('a'));
    expect(merge(`${configMaps}/a`, { metadata: { resourceVersion: '1' }, data: {} }).status).toBe(409);
    expect(merge(`${configMaps}/a`, { metadata: { resourceVersion: '1', uid: 'other' }, data: {} }).status).toBe(409);
    const { status, body } = merge(`${configMaps}/a`, { metadata: { uid: 'other' }, data: { key: '2' } });
    expect([status, body.message]).toEqual([422, 'ConfigMap "a" is invalid: metadata.uid: Invalid value: "other": field is immutable']);
    expect(body.details?.causes?.map(({ field }) => field)).toEqual(['metadata.uid', 'metadata.uid']);
    expect(ask('GET', `${configMaps}/a`).body['data']).toEqual({ key: '1' });
  });

  it('takes the operations of a JSON patch all or none', () => {
    const { ask } = asking();
    ask('POST', configMaps, configMap('a'));
    const patch = (operations: unknown) => ask('PATCH', `${configMaps}/a`, operations, { contentType: 'application/json-patch+json' });
    const test = { op: 'test', path: '/data/key', value: '1' };
    expect(patch([test, { op: 'replace', path: '/data/key', value: '2' }]).body['data']).toEqual({ key: '2' });
    const failed = patch([{ op: 'add', path: '/data/more', value: '1' }, test]);
    expect(refusalOf(failed)).toEqual([422, 'Invalid', 'the server rejected our request due to an error in our request']);
    expect(patch({ op: 'add' }).status).toBe(400);
    expect(ask('GET', `${configMaps}/a`).body['data']).toEqual({ key: '2' });
  });

  it('knows the formats of patches, and no strategic one', () => {
    const { ask } = asking();
    ask('POST', pods, pod('p-0'));
    ask('POST', intents, intent('i'));
    const strategic = { contentType: 'application/strategic-merge-patch+json' };
    expect(ask('PATCH', `${pods}/p-0`, {}, strategic).status).toBe(415);
    expect(ask('PATCH', `${intents}/i`, {}, strategic).status).toBe(415);
    expect(refusalOf(ask('PATCH', `${pods}/p-0`, {}, { contentType: 'application/json' })).slice(0, 2)).toEqual([
      415,
      'UnsupportedMediaType',
    ]);
  });
});

describe('generations', () => {
  it('count changes of the spec only', () => {
    const { ask, merge } = asking();
    ask('POST', sets, statefulSet('s'));
    expect(merge(`${sets}/s`, { spec: { replicas: 3 } }).body.metadata.generation).toBe(2);
    expect(merge(`${sets}/s`, { metadata: { labels: { a: '1' } } }).body.metadata.generation).toBe(2);
    expect(merge(`${sets}/s/status`, { status: { replicas: 3 } }).body.metadata.generation).toBe(2);
    ask('POST', intents, intent('i'));
    expect(merge(`${intents}/i`, { spec: { reason: 'why' } }).body.metadata.generation).toBe(2);
  });
});

describe('statuses', () => {
  it('change by their subresource, and everything else does not', () => {
    const { ask, merge } = asking();
    ask('POST', sets, statefulSet('s'));
    expect(merge(`${sets}/s`, { status: { replicas: 2 } }).body.metadata.resourceVersion).toBe('1001');
    const { body } = merge(`${sets}/s/status`, {
      status: { replicas: 2, readyReplicas: 0 },
      spec: { replicas: 7 },
      metadata: { labels: { a: '1' } },
    });
    expect([body.status, body.spec?.['replicas'], body.metadata['labels']]).toEqual([{ replicas: 2, availableReplicas: 0 }, 2, { a: '1' }]);
  });

  it('of custom kinds leave metadata alone, with any uid in the patch', () => {
    const { ask, merge } = asking();
    const group = { apiVersion: 'rollout-group.dev/v1alpha1', kind: 'RolloutGroup', metadata: { name: 'g' }, spec: { paused: false } };
    expect(ask('POST', groups, { ...group, status: { replicas: 4 } }).body.status).toEqual({ observedGeneration: -1 });
    const patched = merge(`${groups}/g/status`, { metadata: { uid: 'other', labels: { a: '1' } }, status: { replicas: 4 } }).body;
    expect([patched.status, patched.metadata['labels'], patched.metadata.generation]).toEqual([
      { observedGeneration: -1, replicas: 4 },
      undefined,
      1,
    ]);
    expect(merge(`${groups}/g/status`, { metadata: { resourceVersion: '1' }, status: {} }).status).toBe(409);
    expect(ask('GET', `${intents}/i/status`).status).toBe(404);
  });
});

describe('invalid objects', () => {
  it('is refused of StatefulSets', () => {
    const { ask, merge } = asking();
    ask('POST', sets, statefulSet('s'));
    expect(refusalOf(merge(`${sets}/s`, { spec: { replicas: -1 } }))).toEqual([
      422,
      'Invalid',
      'StatefulSet.apps "s" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
    ]);
    expect(merge(`${sets}/s`, { spec: { serviceName: 'other' } }).body.message).toMatch(
      /^StatefulSet.apps "s" is invalid: spec: Forbidden: updates to/,
    );
    expect(merge(`${sets}/s`, { spec: { updateStrategy: { type: 'OnDelete' } } }).body.details?.causes).toMatchObject([
      { field: 'spec.updateStrategy.rollingUpdate' },
    ]);
    expect(merge(`${sets}/s`, { spec: { updateStrategy: { type: 'OnDelete', rollingUpdate: null } } }).status).toBe(200);
    expect(ask('POST', sets, statefulSet('t', { template: { metadata: { labels: { app: 'y' } } } })).status).toBe(422);
  });

  it('is refused of pods', () => {
    const { ask, merge } = asking();
    ask('POST', pods, pod('p-0'));
    expect(merge(`${pods}/p-0`, { spec: { nodeName: 'other' } }).body.message).toMatch(
      /spec: Forbidden: pod updates may not change fields/,
    );
    expect(merge(`${pods}/p-0`, { metadata: { annotations: { a: '1' } } }).status).toBe(200);
    expect(ask('POST', pods, { metadata: { name: 'empty' } }).body.message).toBe('Pod "empty" is invalid: spec.containers: Required value');
  });

  it('is refused of budgets and Leases', () => {
    const { ask } = asking();
    expect(ask('POST', budgets, { metadata: { name: 'b' }, spec: { minAvailable: 1, maxUnavailable: 1 } }).status).toBe(422);
    expect(ask('POST', leases, { metadata: { name: 'l' }, spec: { leaseDurationSeconds: 0 } }).status).toBe(422);
  });
});

describe('unreadable bodies', () => {
  it('is refused with the field', () => {
    const { ask, merge } = asking();
    ask('POST', configMaps, configMap('a'));
    ask('POST', leases, { metadata: { name: 'l' }, spec: { renewTime: '2026-01-01T00:00:00.000000Z' } });
    expect(refusalOf(merge(`${configMaps}/a`, { data: { key: 1 } })).slice(0, 2)).toEqual([422, 'Invalid']);
    expect(merge(`${leases}/l`, { spec: { renewTime: '2026-01-01T00:00:00Z' } }).status).toBe(422);
    expect(refusalOf(ask('POST', configMaps, configMap('b', { key: 1 })))).toEqual([
      400,
      'BadRequest',
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string',
    ]);
    expect(ask('POST', sets, statefulSet('s', { replicas: '2' })).status).toBe(400);
  });

  it('is metadata that only a deletion sets', () => {
    const { ask, merge } = asking();
    ask('POST', configMaps, configMap('a'));
    expect(merge(`${configMaps}/a`, { metadata: { deletionTimestamp: '2020-01-01T00:00:00Z' } }).status).toBe(422);
    expect(merge(`${configMaps}/a`, { metadata: { deletionGracePeriodSeconds: 5 } }).status).toBe(422);
    expect(
      merge(`${configMaps}/a`, { metadata: { creationTimestamp: '2020-01-01T00:00:00Z', generation: 7 } }).body.metadata,
    ).toMatchObject({
      creationTimestamp: '2026-01-15T12:00:00Z',
      resourceVersion: '1001',
    });
  });
});

// Server-side apply on the model of the API server. applies.cluster.ts compares the same sequences with the real one.
describe('server-side apply', () => {
  it.each(Object.entries(sequences))('answers %s', async (_what, steps) => {
    expect(await played(modelOfApplies(), steps)).toMatchSnapshot();
  });
});
