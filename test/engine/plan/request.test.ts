import { describe, expect, it } from 'vitest';
import { snapshotFromManifests, templateRevision } from '../../../engine/observe/manifests.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { defaultAssumptions } from '../../../engine/plan/document.ts';
import { requestChanges } from '../../../engine/plan/world.ts';
import type { World } from '../../../engine/world/model.ts';
import { createWorld } from '../../../engine/world/world.ts';
import type { GroupDefinition, PolicyDefinition } from '../../../policies/definition.ts';
import { group } from '../../kit/groups.ts';
import { manifest, manifests } from '../../kit/manifests.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { policy, policyRule } from '../../kit/questions.ts';

interface Asked {
  readonly desired: readonly unknown[];
  /** The manifests before the defaults of the API server. */
  readonly written?: readonly unknown[];
  readonly current?: readonly unknown[];
  readonly group?: GroupDefinition;
  readonly before?: readonly GroupDefinition[];
  readonly policies?: readonly PolicyDefinition[];
  readonly preparations?: 'succeed' | 'fail';
}

function request({
  desired,
  written = desired,
  current = manifests(),
  group: of = group(),
  before = [],
  policies = [],
  preparations = 'succeed',
}: Asked) {
  const read = (objects: readonly unknown[]) => snapshotFromManifests(objects, { nowMs: kitNowMs, groups: [of] }).snapshot;
  const world = createWorld({ ...read(current), policies }, { ...defaultAssumptions, preparations }, 'p50');
  return requestChanges({ group: of, groupsBefore: before, world, after: read(desired), desired, written });
}

const setOf = (world: World, zone = 'a') => world.snapshot.statefulSets.find(({ name }) => name === `ingester-zone-${zone}`);
const image = 'grafana/mimir:2.17.1';
const revisionOf = (object: unknown) => templateRevision(fieldAt(object, ['spec', 'template']));
const whats = ({ refused }: ReturnType<typeof request>) => refused.map(({ zone, what }) => `${zone}: ${what}`);

describe('the request for a member', () => {
  it('is a new template, which makes its pods outdated', () => {
    const { world, refused } = request({ desired: manifests({ image }) });
    expect(refused).toEqual([]);
    expect(setOf(world)?.status).toMatchObject({
      updateRevision: revisionOf(manifest('a', { image })),
      currentRevision: revisionOf(manifest('a')),
    });
    expect(setOf(world)?.replicas).toBe(3);
  });

  it('is another number of replicas', () => {
    const { world } = request({ desired: [manifest('a', { replicas: 5 }), manifest('b', { replicas: 4 }), manifest('c')] });
    expect(['a', 'b', 'c'].map((zone) => setOf(world, zone)?.replicas)).toEqual([5, 4, 3]);
  });

  it('is evaluated in the order of the zones, each after the changes of the zones before', () => {
    const asked = request({ desired: [manifest('c'), manifest('b', { replicas: 2 }), manifest('a', { replicas: 5 })] });
    expect([whats(asked), setOf(asked.world, 'b')?.replicas]).toEqual([['b: scale StatefulSet ingester-zone-b from 3 to 2'], 3]);
    expect(asked.refused[0]?.message).toContain('other-zones-ready: zone a has 3 of 5 pods available');
  });

  it('has no number without a number in the manifest', () => {
    const { world } = request({ desired: manifests({ replicas: undefined }), current: manifests({ replicas: 7 }) });
    expect(setOf(world)?.replicas).toBe(7);
  });

  it('contains other settings, which take effect at once and keep the numbers of the server', () => {
    const { world } = request({ desired: manifests({ metadata: { annotations: { team: 'x' } }, spec: { minReadySeconds: 30 } }) });
    expect(setOf(world)).toMatchObject({
      annotations: { team: 'x' },
      minReadySeconds: 30,
      uid: 'statefulset-mimir-ingester-zone-a',
      replicas: 3,
    });
    expect(setOf(world)?.status.readyReplicas).toBe(3);
  });

  it('is empty for other StatefulSets', () => {
    const { world, refused } = request({ desired: [...manifests(), manifest('d', { image })], current: [...manifests(), manifest('d')] });
    expect([setOf(world, 'd')?.status.updateRevision, refused]).toEqual([revisionOf(manifest('d')), []]);
  });
});

describe('a member that does not exist yet', () => {
  it('is created without pods, which then start', () => {
    const { world, refused } = request({ desired: manifests(), current: manifests({}, ['a', 'b']) });
    expect(refused).toEqual([]);
    expect(setOf(world, 'c')).toMatchObject({ replicas: 3, status: { readyReplicas: 0 } });
  });

  it('has 1 replica if its manifest names none, also if the zone follows another one', () => {
    const following = group({ zones: ['a', { name: 'b', follows: 'a' }] });
    const desired = [manifest('a', { replicas: 5 }), manifest('b', { replicas: undefined })];
    const { world } = request({ desired, current: [], group: following });
    expect(['a', 'b'].map((zone) => setOf(world, zone)?.replicas)).toEqual([5, 1]);
  });
});

describe('a member without a request', () => {
  it('is denied if it is protected, and nothing else changes', () => {
    const guarded = group({ zones: [{ name: 'a', noDelete: true }, 'b'] });
    const asked = request({ desired: manifests({}, ['c']), group: guarded });
    expect(whats(asked)).toEqual(['a: delete StatefulSet ingester-zone-a']);
    expect(setOf(asked.world)?.replicas).toBe(3);
    expect(whats(request({ desired: [], current: [], group: guarded }))).toEqual([]);
  });
});

describe('a denial', () => {
  const deny = (action: 'rollout' | 'scaleUp') => [
    policy({ rules: [policyRule({ actions: [action], when: { '==': [{ var: 'target.zone' }, 'b'] } })] }),
  ];

  it('names an update, or a scale with both numbers, and changes nothing in that zone', () => {
    const update = request({ desired: manifests({ image }), policies: deny('rollout') });
    expect(whats(update)).toEqual(['b: update StatefulSet ingester-zone-b']);
    expect(
      ['a', 'b', 'c'].map((zone) => setOf(update.world, zone)?.status.updateRevision === revisionOf(manifest(zone, { image }))),
    ).toEqual([true, false, true]);
    const scale = request({ desired: manifests({ replicas: 4, image }), policies: deny('scaleUp') });
    expect(whats(scale)).toEqual(['b: scale StatefulSet ingester-zone-b from 3 to 4']);
    expect(['a', 'b', 'c'].map((zone) => setOf(scale.world, zone)?.replicas)).toEqual([4, 3, 4]);
  });

  it('counts also when only the former group denies, so that removing a label does not bypass it', () => {
    const guarded = group({ zones: [{ name: 'a', noDownscale: true }, 'b', 'c'] });
    const desired = [manifest('a', { replicas: 2 }), manifest('b'), manifest('c')];
    expect(whats(request({ desired }))).toEqual([]);
    expect(whats(request({ desired, before: [guarded] }))).toEqual(['a: scale StatefulSet ingester-zone-a from 3 to 2']);
    expect(request({ desired, before: [guarded] }).refused[0]?.hint).toContain('apply the group first, then the StatefulSet');
    expect(request({ desired, group: guarded, before: [guarded] }).refused[0]?.hint).toBeUndefined();
    expect(whats(request({ desired, group: guarded, before: [group()] }))).toEqual(['a: scale StatefulSet ingester-zone-a from 3 to 2']);
    const deleted = { desired: manifests({}, ['b', 'c']), before: [group({ zones: [{ name: 'a', noDelete: true }] })] };
    expect(whats(request(deleted))).toEqual(['a: delete StatefulSet ingester-zone-a']);
  });
});

describe('the way out of a denial', () => {
  const hints = ({ refused }: ReturnType<typeof request>) => refused.map(({ zone, hint }) => [zone, hint]);
  const advice = (zone: string, replicas: number) =>
    `other changes of this request cause the denial; to change one zone after the other: kubectl rollout-group scale mimir/ingester --zone ${zone} --replicas ${replicas}; repeat the request when all zones are available`;

  it('names the change to make first if others of the request cause the denial, and so on until all of them are made', () => {
    const desired = manifests({ replicas: 2 });
    const requested = (...shrunk: readonly string[]) =>
      request({ desired, current: ['a', 'b', 'c'].map((zone) => manifest(zone, { replicas: shrunk.includes(zone) ? 2 : 3 })) });
    expect(hints(requested())).toEqual([
      ['b', advice('a', 2)],
      ['c', advice('a', 2)],
    ]);
    expect(hints(requested('a'))).toEqual([['c', advice('b', 2)]]);
    expect(hints(requested('a', 'b'))).toEqual([]);
  });

  it('names the replicas to keep if a manifest that no longer names them resets them', () => {
    const counted = group({ zones: [{ name: 'a', replicas: { kind: 'count', count: 3 } }] });
    const desired = [manifest('a', { replicas: 1 })];
    const asked = { desired, current: [manifest('a')], group: counted };
    expect(hints(request(asked))).toEqual([['a', undefined]]);
    expect(hints(request({ ...asked, written: [manifest('a', { replicas: undefined })] }))).toEqual([
      [
        'a',
        'the manifest of StatefulSet ingester-zone-a no longer names its replicas, so an apply resets them to 1; write replicas: 3 into the manifest',
      ],
    ]);
  });

  it('names no change that a rule also denies alone, and no change for such a denial', () => {
    const guarded = group({ zones: [{ name: 'a', noDownscale: true }, 'b', 'c'] });
    expect(hints(request({ desired: manifests({ replicas: 2 }), group: guarded }))).toEqual([
      ['a', undefined],
      ['c', advice('b', 2)],
    ]);
  });
});

describe('a downscale with preparation', () => {
  const endpoint = { scheme: 'http', port: 80, path: '/prepare', timeout: '5s' } as const;
  const native = group({ zones: [{ name: 'a', prepare: { endpoint, onFailure: 'deny' } }] });
  const preparing = { ...native, profile: 'rolloutOperator' } as const;
  const desired = manifests({ replicas: 2 }, ['a']);

  it('is requested again after the calls', () => {
    const asked = request({ desired, group: preparing });
    expect([whats(asked), setOf(asked.world)?.replicas]).toEqual([[], 2]);
    expect(asked.world.snapshot.ledgers[0]?.preparations).toMatchObject([{ zone: 'a', ordinal: 2, call: 'prepare', state: 'prepared' }]);
  });

  it('is denied in a native group, because only the agent prepares its pods', () => {
    const asked = request({ desired, group: native });
    expect(whats(asked)).toEqual(['a: scale StatefulSet ingester-zone-a from 3 to 2']);
    expect(asked.refused[0]?.message).toContain('1 pod must prepare, and only the agent prepares pods');
  });

  it('is denied if the calls fail', () => {
    const asked = request({ desired, group: preparing, preparations: 'fail' });
    expect(whats(asked)).toEqual(['a: scale StatefulSet ingester-zone-a from 3 to 2']);
    expect(asked.refused[0]?.message).toContain('ingester-zone-a-2 failed to prepare: preparations are assumed to fail');
    expect(setOf(asked.world)?.replicas).toBe(3);
  });
});
