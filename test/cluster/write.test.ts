import { describe, expect, it } from 'vitest';
import { type KubernetesObject, type Resource, resources } from '../../cluster/request/resource.ts';
import {
  applyObject,
  createObject,
  deleteObject,
  evictPod,
  patchObject,
  replaceObject,
  WriteRefused,
} from '../../cluster/request/write.ts';
import { status, type VirtualEnv, virtualEnv } from '../kit/virtual-env.ts';

const site = 'test.write';
const target = { namespace: 'ns', name: 'a', uid: 'u-1', resourceVersion: '7' };
const object = (metadata: Record<string, unknown>): KubernetesObject => ({ metadata: { name: 'a', namespace: 'ns', ...metadata } });

/** What went out, for a server that agrees with everything. */
async function sent(write: (env: VirtualEnv) => Promise<unknown>) {
  const env = virtualEnv({ serve: () => ({ status: 200, body: object({ resourceVersion: '8' }) }) });
  await env.finish(write(env));
  expect(env.requests.length).toBe(1);
  const [request] = env.requests;
  return { method: request?.method, path: request?.path, type: request?.contentType, body: request?.json };
}

/** What is refused must not have gone out. */
async function expectRefused(write: (env: VirtualEnv) => Promise<unknown>): Promise<void> {
  const env = virtualEnv();
  await expect(env.finish(write(env))).rejects.toBeInstanceOf(WriteRefused);
  expect(env.requests).toEqual([]);
}

describe('deleteObject', () => {
  it('names UID and version, and no grace period', async () => {
    expect(await sent((env) => deleteObject(env, resources.pods, target, { site }))).toEqual({
      method: 'DELETE',
      path: '/api/v1/namespaces/ns/pods/a',
      type: undefined,
      body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: 'u-1', resourceVersion: '7' } },
    });
  });

  it.each(['uid', 'resourceVersion', 'name', 'namespace'] as const)('is not sent without %s', async (field) => {
    await expectRefused((env) => deleteObject(env, resources.pods, { ...target, [field]: '' }, { site }));
  });

  it('is not sent with version 0, which means any version', async () => {
    await expectRefused((env) => deleteObject(env, resources.pods, { ...target, resourceVersion: '0' }, { site }));
  });

  const volumes = { group: '', version: 'v1', plural: 'persistentvolumes', kind: 'PersistentVolume', isNamespaced: false };
  const claims = { ...volumes, plural: 'persistentvolumeclaims', kind: 'PersistentVolumeClaim', isNamespaced: true };
  it.each<Resource>([resources.statefulSets, resources.namespaces, volumes, claims])('never deletes a $kind', async (resource) => {
    await expectRefused((env) => deleteObject(env, resource, target, { site }));
  });

  it('returns undefined if the object is gone at once', async () => {
    const env = virtualEnv({ serve: () => ({ status: 200, body: { kind: 'Status', status: 'Success', metadata: {} } }) });
    expect(await env.finish(deleteObject(env, resources.configMaps, target, { site }))).toBeUndefined();
  });
});

describe('evictPod', () => {
  it('names the UID only', async () => {
    expect(await sent((env) => evictPod(env, { namespace: 'ns', name: 'a', uid: 'u-1' }, { site, dryRun: true }))).toEqual({
      method: 'POST',
      path: '/api/v1/namespaces/ns/pods/a/eviction',
      type: undefined,
      body: {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { namespace: 'ns', name: 'a' },
        deleteOptions: { preconditions: { uid: 'u-1' }, dryRun: ['All'] },
      },
    });
  });

  it('is not sent without a UID', async () => {
    await expectRefused((env) => evictPod(env, { namespace: 'ns', name: 'a', uid: '' }, { site }));
  });
});

describe('patchObject', () => {
  it('is a merge patch with UID and version in its body', async () => {
    const patch = { spec: { replicas: 3 }, metadata: { annotations: { x: 'y' } } };
    expect(
      await sent((env) => patchObject(env, resources.statefulSets, target, { site, patch, subresource: 'scale', dryRun: true })),
    ).toEqual({
      method: 'PATCH',
      path: '/apis/apps/v1/namespaces/ns/statefulsets/a/scale?dryRun=All',
      type: 'application/merge-patch+json',
      body: { spec: { replicas: 3 }, metadata: { annotations: { x: 'y' }, uid: 'u-1', resourceVersion: '7' } },
    });
  });

  it('cannot replace its own preconditions', async () => {
    const patch = { metadata: { uid: 'other', resourceVersion: null } };
    const { body } = await sent((env) => patchObject(env, resources.pods, target, { site, patch }));
    expect(body).toEqual({ metadata: { uid: 'u-1', resourceVersion: '7' } });
  });

  it.each(['uid', 'resourceVersion'] as const)('is not sent without %s', async (field) => {
    await expectRefused((env) => patchObject(env, resources.pods, { ...target, [field]: '' }, { site, patch: {} }));
  });

  it('gets a conflict if another object has the name', async () => {
    const details = { name: 'a', causes: [{ reason: 'FieldValueInvalid', message: 'field is immutable', field: 'metadata.uid' }] };
    const env = virtualEnv({ serve: () => status(422, 'Invalid', 'field is immutable', details) });
    const write = patchObject(env, resources.pods, target, { site, patch: {} });
    await expect(env.finish(write)).rejects.toMatchObject({ status: 409, reason: 'Conflict', message: 'field is immutable', site });
  });

  it('is rejected as usual if a field is invalid', async () => {
    const details = { name: 'a', causes: [{ reason: 'FieldValueInvalid', message: 'negative', field: 'spec.replicas' }] };
    const env = virtualEnv({ serve: () => status(422, 'Invalid', 'negative', details) });
    const write = patchObject(env, resources.pods, target, { site, patch: {} });
    await expect(env.finish(write)).rejects.toMatchObject({ status: 422, reason: 'Invalid' });
  });

  it('does not change finalizers', async () => {
    await expectRefused((env) => patchObject(env, resources.pods, target, { site, patch: { metadata: { finalizers: null } } }));
  });
});

describe('createObject', () => {
  it('posts the object to its collection', async () => {
    expect(await sent((env) => createObject(env, resources.configMaps, object({}), { site }))).toEqual({
      method: 'POST',
      path: '/api/v1/namespaces/ns/configmaps',
      type: undefined,
      body: object({}),
    });
  });

  it('is not sent without a name, and not for existing objects', async () => {
    await expectRefused((env) => createObject(env, resources.configMaps, object({ name: '', generateName: 'a-' }), { site }));
    await expectRefused((env) => createObject(env, resources.configMaps, object({ uid: 'u-1' }), { site }));
    await expectRefused((env) => createObject(env, resources.configMaps, object({ namespace: '' }), { site }));
  });
});

describe('replaceObject', () => {
  it('puts the whole object', async () => {
    const whole = object({ uid: 'u-1', resourceVersion: '7' });
    expect(await sent((env) => replaceObject(env, resources.leases, whole, { site }))).toEqual({
      method: 'PUT',
      path: '/apis/coordination.k8s.io/v1/namespaces/ns/leases/a',
      type: undefined,
      body: whole,
    });
  });

  it('puts a status of any kind', async () => {
    const whole = object({ uid: 'u-1', resourceVersion: '7' });
    const { path } = await sent((env) => replaceObject(env, resources.statefulSets, whole, { site, subresource: 'status' }));
    expect(path).toBe('/apis/apps/v1/namespaces/ns/statefulsets/a/status');
  });

  it('is not sent without UID or version, nor for kinds with foreign fields', async () => {
    await expectRefused((env) => replaceObject(env, resources.leases, object({ uid: 'u-1' }), { site }));
    await expectRefused((env) => replaceObject(env, resources.leases, object({ resourceVersion: '7' }), { site }));
    await expectRefused((env) => replaceObject(env, resources.statefulSets, object({ uid: 'u-1', resourceVersion: '7' }), { site }));
  });
});

describe('applyObject', () => {
  it('applies without force, and without managedFields', async () => {
    const applied = await sent((env) =>
      applyObject(env, resources.configMaps, object({ managedFields: [{}] }), { site, fieldManager: 'tool', dryRun: true }),
    );
    expect(applied).toEqual({
      method: 'PATCH',
      path: '/api/v1/namespaces/ns/configmaps/a?fieldManager=tool&force=false&dryRun=All',
      type: 'application/apply-patch+yaml',
      body: object({}),
    });
  });

  it('is not sent without a field manager', async () => {
    await expectRefused((env) => applyObject(env, resources.configMaps, object({}), { site, fieldManager: '' }));
  });
});

describe('every write', () => {
  it('rejects with the answer of the server', async () => {
    const env = virtualEnv({ serve: () => status(409, 'Conflict', 'changed') });
    await expect(env.finish(deleteObject(env, resources.pods, target, { site }))).rejects.toMatchObject({
      status: 409,
      reason: 'Conflict',
      site,
    });
  });

  it('may have been carried out if the answer ends early', async () => {
    const env = virtualEnv({ serve: () => ({ status: 200, body: '{"metadata":{"na' }) });
    await expect(env.finish(createObject(env, resources.configMaps, object({}), { site }))).rejects.toMatchObject({
      name: 'TransportFailure',
      mayBeApplied: true,
    });
  });
});
