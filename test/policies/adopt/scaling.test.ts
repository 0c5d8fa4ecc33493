import { describe, expect, it } from 'vitest';
import { adoptGroups } from '../../../policies/adopt/adopt.ts';
import { annotationKeys, labelKeys } from '../../../policies/adopt/keys.ts';
import { adoptZone, statefulSet } from './kit.ts';

const mirrored = { [annotationKeys.mirrorName]: 'ingester', [annotationKeys.mirrorKind]: 'ReplicaTemplate' };

describe('the leader', () => {
  const leads = (leader: string) => adoptZone({ annotations: { [annotationKeys.leader]: leader } });

  it('is followed if it is a member', () => {
    expect(leads('ingester-zone-b')).toEqual({
      zone: { name: 'a', statefulSet: 'ingester-zone-a', follows: 'b' },
      findings: [],
    });
  });

  it('is undefined if a StatefulSet names itself', () => {
    expect(leads('ingester-zone-a')).toEqual({ zone: { name: 'a', statefulSet: 'ingester-zone-a' }, findings: [] });
  });

  it.each(['stranger', ''])('that is no member, such as %j, blocks all scaling of its follower', (leader) => {
    const text = `grafana.com/rollout-downscale-leader is ${JSON.stringify(leader)}, which names no StatefulSet of the group`;
    expect(leads(leader)).toEqual({
      zone: { name: 'a', statefulSet: 'ingester-zone-a', scaling: { hold: text } },
      findings: [`RG4002 ${annotationKeys.leader}`],
    });
  });

  it('overrides a mirrored object, with a finding', () => {
    expect(adoptZone({ annotations: { [annotationKeys.leader]: 'ingester-zone-b', ...mirrored } })).toEqual({
      zone: { name: 'a', statefulSet: 'ingester-zone-a', follows: 'b' },
      findings: [`RG4003 ${annotationKeys.mirrorName}`],
    });
  });

  it('may be in a cycle, which is kept and reported once', () => {
    const ring = { a: 'c', b: 'a', c: 'b' };
    const sets = Object.entries(ring).map(([zone, leader]) =>
      statefulSet({ name: `ingester-zone-${zone}`, annotations: { [annotationKeys.leader]: `ingester-zone-${leader}` } }),
    );
    const { groups, findings } = adoptGroups(sets);
    expect(groups[0]?.spec.members.zones?.map((zone) => zone.follows)).toEqual(['c', 'a', 'b']);
    expect(findings).toEqual([
      {
        code: 'RG4018',
        message:
          'grafana.com/rollout-downscale-leader forms a cycle: ingester-zone-a follows ingester-zone-c follows ingester-zone-b follows ingester-zone-a',
        object: 'StatefulSet mimir/ingester-zone-a',
        field: 'grafana.com/rollout-downscale-leader',
      },
    ]);
  });

  it.each([
    ['both followers wait', 'true', 'true', 'leaderReady', undefined],
    ['no follower waits', 'false', 'false', 'nothing', undefined],
    ['one of two followers waits', 'true', 'false', 'nothing', 'leaderReady'],
  ])('has the wait of its followers: %s', (_, waitsB, waitsC, ofGroup, ofZoneB) => {
    const follower = (zone: string, waits: string) =>
      statefulSet({
        name: `ingester-zone-${zone}`,
        annotations: { [annotationKeys.leader]: 'ingester-zone-a', [annotationKeys.upscaleOnlyWhenLeaderReady]: waits },
      });
    const { groups } = adoptGroups([statefulSet(), follower('b', waitsB), follower('c', waitsC)]);
    const spec = groups[0]?.spec;
    expect([spec?.scaling?.up?.followersWaitFor, spec?.members.zones?.[1]?.scaling?.up?.followersWaitFor]).toEqual([ofGroup, ofZoneB]);
  });
});

describe('the mirrored object', () => {
  const mirror = (annotations: Readonly<Record<string, string>>) => adoptZone({ annotations: { ...mirrored, ...annotations } });
  const from = { apiVersion: '', kind: 'ReplicaTemplate', name: 'ingester', read: 'scale' };

  it.each([
    ['', ''],
    ['/', ''],
    ['v1', 'v1'],
    ['rollout-operator.grafana.com/v1', 'rollout-operator.grafana.com/v1'],
  ])('has the API version %j', (text, apiVersion) => {
    expect(mirror({ [annotationKeys.mirrorApiVersion]: text })).toEqual({
      zone: {
        name: 'a',
        statefulSet: 'ingester-zone-a',
        replicas: { mirror: { from: { ...from, apiVersion }, writeBack: 'status', onMissing: 'hold' } },
      },
      findings: [],
    });
  });

  it('with two slashes in its API version blocks all scaling', () => {
    expect(mirror({ [annotationKeys.mirrorApiVersion]: 'a/b/c' })).toEqual({
      zone: {
        name: 'a',
        statefulSet: 'ingester-zone-a',
        scaling: { hold: `${annotationKeys.mirrorApiVersion} is "a/b/c", which is not a group/version` },
      },
      findings: [`RG4008 ${annotationKeys.mirrorApiVersion}`],
    });
  });

  it.each([
    ['true', 'status', []],
    ['T', 'status', []],
    ['0', 'none', []],
    ['False', 'none', []],
    ['yes', 'none', [`RG4009 ${annotationKeys.mirrorWriteBack}`]],
    ['', 'none', [`RG4009 ${annotationKeys.mirrorWriteBack}`]],
  ])('is written back for %j: %s', (text, writeBack, findings) => {
    const read = mirror({ [annotationKeys.mirrorWriteBack]: text });
    expect([read.zone?.replicas?.mirror?.writeBack, read.findings]).toEqual([writeBack, findings]);
  });

  it.each([
    ['name', { [annotationKeys.mirrorName]: '' }, annotationKeys.mirrorKind],
    ['kind', { [annotationKeys.mirrorKind]: '' }, annotationKeys.mirrorName],
  ])('is off without its %s', (_, annotations, field) => {
    expect(mirror(annotations)).toEqual({ zone: { name: 'a', statefulSet: 'ingester-zone-a' }, findings: [`RG4021 ${field}`] });
  });

  it('is named once for the group if all zones without a leader mirror the same object', () => {
    const { groups } = adoptGroups([
      statefulSet({ annotations: mirrored }),
      statefulSet({ name: 'ingester-zone-b', annotations: { [annotationKeys.leader]: 'ingester-zone-a' } }),
    ]);
    expect(groups[0]?.spec.replicas).toEqual({ mirror: { from, writeBack: 'status', onMissing: 'hold' } });
    expect(groups[0]?.spec.members.zones?.map((zone) => zone.replicas)).toEqual([undefined, undefined]);
  });
});

describe('an invalid interval between zones', () => {
  const broken = { [labelKeys.minTimeBetweenZones]: '1d' };
  const prepare = { [labelKeys.prepareDownscale]: 'true' };
  const endpoint = { [annotationKeys.preparePort]: '80', [annotationKeys.preparePath]: 'p' };
  const holds = (sets: readonly unknown[]) => adoptGroups(sets).groups[0]?.spec.members.zones?.map((zone) => zone.scaling?.down?.hold);

  it('blocks the prepared downscales of the other zones, never those of its zone', () => {
    const prepared = (zone: string, labels: object) =>
      statefulSet({ name: `ingester-zone-${zone}`, labels: { ...prepare, ...labels }, annotations: endpoint });
    const text = `${labelKeys.minTimeBetweenZones} of StatefulSet mimir/ingester-zone-b is no Go duration`;
    expect(holds([prepared('a', {}), prepared('b', broken), prepared('c', {})])).toEqual([text, undefined, text]);
  });

  it('blocks the follower with the annotation after another zone can have shrunk', () => {
    const follower = statefulSet({ name: 'ingester-zone-b', labels: broken, annotations: { [annotationKeys.leader]: 'ingester-zone-a' } });
    const recorded = statefulSet({ annotations: { [annotationKeys.lastDownscale]: '2026-01-01T00:00:00Z' } });
    const text = `${labelKeys.minTimeBetweenZones} is no Go duration`;
    expect([holds([statefulSet(), follower]), holds([recorded, follower])]).toEqual([
      [undefined, undefined],
      [undefined, text],
    ]);
  });
});
