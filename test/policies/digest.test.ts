import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { policyDigest } from '../../policies/digest.ts';
import { lintPolicies } from '../../policies/lint/lint.ts';
import { resolveLive } from '../../policies/live/sources.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { hashText, sha256 } from '../../policies/values/hash.ts';
import { statefulSet } from './adopt/kit.ts';

const apiVersion = 'rollout-group.dev/v1alpha1';

describe('the digest of policies', () => {
  it('is SHA-256, at every length around a block and for any text', () => {
    const reference = (text: string) => createHash('sha256').update(text).digest('hex');
    for (let length = 0; length < 200; length += 1) expect(sha256('x'.repeat(length))).toBe(reference('x'.repeat(length)));
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(sha256(text)).toBe(reference(text));
      }),
    );
  });

  const metadata = (name: string) => ({ name, namespace: 'mimir', labels: { source: 'git' } });
  const zones = ['a', 'b'].map((name) => ({ name, statefulSet: `ingester-zone-${name}` }));
  const group = {
    apiVersion,
    kind: 'RolloutGroup',
    metadata: metadata('ingester'),
    spec: { members: { zones }, rollout: { strategy: 'onDelete' } },
  };
  const policy = (source = 'prod') => ({
    apiVersion,
    kind: 'RolloutPolicy',
    metadata: metadata('load'),
    spec: {
      targets: { all: true },
      inputs: { metrics: { load: { source, query: 'up' } } },
      rules: [{ name: 'busy', actions: ['rollout'], effect: 'hold', when: { '>': [{ var: 'inputs.metrics.load' }, 5] } }],
      limits: { minInterval: '1m' },
    },
  });
  const exception = {
    apiVersion,
    kind: 'RolloutException',
    metadata: metadata('once'),
    spec: {
      rule: 'load/busy',
      target: { group: 'ingester' },
      allow: { anything: true },
      reason: 'a drill',
      expires: '2030-01-01T00:00:00Z',
    },
  };
  const store = statefulSet({
    name: 'store-gateway-zone-a',
    labels: { 'rollout-group': 'store-gateway' },
    annotations: { 'rollout-max-unavailable': '2' },
  });
  const sets = [store, ...zones.map((zone) => statefulSet({ name: zone.statefulSet, group: 'written' }))];
  const asFiles = (objects: readonly unknown[]) => objects.map((object, index) => ({ name: `${index}.yaml`, text: stringify(object) }));
  const ofFiles = (objects: readonly object[]) => policyDigest(lintPolicies(asFiles([...objects, ...sets])).resolution.bundle);
  const ofObjects = (objects: readonly object[]) =>
    resolveLive({
      objects: objects.map((object) => ({ ...object, metadata: { ...Reflect.get(object, 'metadata'), uid: 'u', resourceVersion: '7' } })),
      statefulSets: sets,
      order: ['directory', 'objects', 'adopted'],
      agentNamespace: 'rollout-group',
    }).digest;

  it('is the same for files of a plan and for objects of an agent, in any order', () => {
    const all = [group, policy(), exception];
    const digests = new Set([ofFiles(all), ofObjects(all), ofFiles([...all].reverse()), ofObjects([...all].reverse())]);
    expect(digests.size).toBe(1);
  });

  it('does not change with lines and files', () => {
    const [text] = asFiles([group]).map((file) => file.text);
    const moved = lintPolicies([...asFiles(sets), { name: 'elsewhere.yaml', text: `# moved\n\n${text}` }]).resolution.bundle;
    expect(policyDigest(moved)).toBe(ofFiles([group]));
  });

  it.each([
    ['the source of a metric', [group, policy('other'), exception]],
    [
      'a label named like a position',
      [{ ...group, metadata: { ...group.metadata, labels: { source: 'elsewhere' } } }, policy(), exception],
    ],
    ['a missing exception', [group, policy()]],
  ])('changes with %s', (_, objects) => {
    expect(ofFiles(objects)).not.toBe(ofFiles([group, policy(), exception]));
    expect(ofObjects(objects)).toBe(ofFiles(objects));
  });
});

it('is the start of the SHA-256', () => {
  expect(hashText('foobar')).toBe('c3ab8ff13720e8ad');
});

it('writes the same JSON for any order of keys, and omits undefined values', () => {
  const one = { b: [1, { d: null, c: undefined }], a: 'x' };
  const other = { a: 'x', b: [1, { d: null }] };
  expect([canonicalJson(one), canonicalJson(other)]).toEqual(['{"a":"x","b":[1,{"d":null}]}', '{"a":"x","b":[1,{"d":null}]}']);
});
