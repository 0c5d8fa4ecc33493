import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mergePatch } from '../../../engine/diff/merge-patch.ts';
import { toApply } from '../../../plugin/source/cluster/desired-objects.ts';

/** RFC 7386, as it is written there. */
function patched(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> = typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = patched(result[key], value);
  }
  return result;
}

describe('the patch from one object to another', () => {
  const leaf = fc.oneof(fc.integer(), fc.string({ maxLength: 3 }), fc.boolean(), fc.array(fc.integer(), { maxLength: 2 }));
  const object = fc.dictionary(
    fc.constantFrom('a', 'b', 'c'),
    fc.oneof(leaf, fc.dictionary(fc.constantFrom('x', 'y'), leaf, { maxKeys: 2 })),
    { maxKeys: 3 },
  );

  it('turns one object into the other, and is empty for equal objects', () => {
    fc.assert(
      fc.property(object, object, (from, to) => {
        const patch = mergePatch(from, to);
        expect(patched(from, patch ?? {})).toEqual({ ...to });
        expect(mergePatch(to, { ...to })).toBeUndefined();
      }),
    );
  });
});

describe('an applied manifest', () => {
  it('omits the server fields of its exported copy', () => {
    const exported = {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: {
        name: 'a',
        namespace: 'm',
        uid: 'u',
        resourceVersion: '1',
        generation: 2,
        creationTimestamp: '2026-01-01T00:00:00Z',
        managedFields: [],
        labels: { app: 'a' },
        annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}', team: 'x' },
      },
      spec: { replicas: 1 },
      status: { replicas: 1 },
    };
    expect(toApply(exported)).toEqual({
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'a', namespace: 'm', labels: { app: 'a' }, annotations: { team: 'x' } },
      spec: { replicas: 1 },
    });
  });

  it('may have the key for annotations without a value', () => {
    const metadata = { name: 'a', namespace: 'm', annotations: null };
    expect(toApply({ kind: 'StatefulSet', metadata })).toEqual({ kind: 'StatefulSet', metadata: { name: 'a', namespace: 'm' } });
  });

  it.each([
    ['the partition 1000000 that an earlier manifest named', { type: 'RollingUpdate' }, 1_000_000, 'rollout-group', 1_000_000],
    ['no partition under OnDelete', { type: 'OnDelete' }, 1_000_000, 'rollout-group', undefined],
    ['no partition of another writer', { type: 'RollingUpdate' }, 1_000_000, 'rollout-group-agent', undefined],
    ['no other partition', { type: 'RollingUpdate' }, 3, 'rollout-group', undefined],
    ['a partition that it names', { rollingUpdate: { partition: 4 } }, 1_000_000, 'rollout-group', 4],
  ])('keeps %s', (_what, updateStrategy, partition, manager, expected) => {
    const object = (strategy: object, metadata: object) => ({
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'a', ...metadata },
      spec: { updateStrategy: strategy },
    });
    const fieldsV1 = { 'f:spec': { 'f:updateStrategy': { 'f:rollingUpdate': { 'f:partition': {} } } } };
    const live = object(
      { type: 'RollingUpdate', rollingUpdate: { partition } },
      { managedFields: [{ manager, operation: 'Apply', fieldsV1 }] },
    );
    const { spec } = toApply(object(updateStrategy, {}), live) as { readonly spec?: unknown };
    expect(spec).toEqual({
      updateStrategy: expected === undefined ? updateStrategy : { ...updateStrategy, rollingUpdate: { partition: expected } },
    });
  });
});
