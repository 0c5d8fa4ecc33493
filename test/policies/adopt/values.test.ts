import { describe, expect, it } from 'vitest';
import { annotationKeys, labelKeys } from '../../../policies/adopt/keys.ts';
import { goBoolean } from '../../../policies/adopt/settings.ts';
import { adoptZone } from './kit.ts';

describe('rollout-max-unavailable', () => {
  const valid: readonly (readonly [string, number | string])[] = [
    ['3', 3],
    [' 3 ', 3],
    ['+3', 3],
    ['003', 3],
    ['25%', '25%'],
    ['1%', '1%'],
    ['100%', '100%'],
    ['+30%', '30%'],
    [' 30%\t', '30%'],
    ['100001', 100_000],
    ['9223372036854775807', 100_000],
  ];
  it.each(valid)('reads %j as %j', (text, maxUnavailable) => {
    expect(adoptZone({ annotations: { [annotationKeys.maxUnavailable]: text } })).toEqual({
      zone: { name: 'a', statefulSet: 'ingester-zone-a', maxUnavailable },
      findings: [],
    });
  });

  const invalid = ['0', '-1', 'xxx', '', '1.5', '1e1', '0x3', '5_0', '12345678901234567890', '9223372036854775808'];
  const invalidPercents = ['0%', '101%', '300%', '-5%', '50 %', '50%%', '%', '1.5%'];
  it.each([...invalid, ...invalidPercents])('counts %j as 1, with a finding', (text) => {
    expect(adoptZone({ annotations: { [annotationKeys.maxUnavailable]: text } })).toEqual({
      zone: { name: 'a', statefulSet: 'ingester-zone-a' },
      findings: ['RG4001 rollout-max-unavailable'],
    });
  });

  it('is 1 without the annotation, without a finding', () => {
    expect(adoptZone({})).toEqual({ zone: { name: 'a', statefulSet: 'ingester-zone-a' }, findings: [] });
  });
});

describe('grafana.com/min-time-between-zones-downscale', () => {
  const valid: readonly (readonly [string, string])[] = [
    ['12h', '12h'],
    ['90m', '1h30m'],
    ['1.5h', '1h30m'],
    ['48h', '2d'],
    ['0', '0s'],
    ['1h0m0.5s', '1h500ms'],
  ];
  it.each(valid)('reads the Go duration %j as %j', (text, betweenZones) => {
    const { zone, findings } = adoptZone({ labels: { [labelKeys.minTimeBetweenZones]: text } });
    expect({ scaling: zone?.scaling, findings }).toEqual({ scaling: { down: { betweenZones } }, findings: [] });
  });

  it.each(['1d', '12', 'h', '', ' 12h', '2562048h', `${'1'.repeat(100_000)}`])('rejects the duration %.20j', (text) => {
    const { zone, findings } = adoptZone({ labels: { [labelKeys.minTimeBetweenZones]: text } });
    expect({ scaling: zone?.scaling, findings }).toEqual({ scaling: undefined, findings: [`RG4004 ${labelKeys.minTimeBetweenZones}`] });
  });

  it('permits a downscale at once with a negative time like the original, with a finding', () => {
    const { zone, findings } = adoptZone({ labels: { [labelKeys.minTimeBetweenZones]: '-5m' } });
    expect({ scaling: zone?.scaling, findings }).toEqual({
      scaling: { down: { betweenZones: '0s' } },
      findings: [`RG4004 ${labelKeys.minTimeBetweenZones}`],
    });
  });
});

describe('grafana.com/rollout-force-replicas', () => {
  const mirrored = { [annotationKeys.mirrorName]: 'ingester', [annotationKeys.mirrorKind]: 'ReplicaTemplate' };
  it.each([
    ['0', 0],
    ['7', 7],
    ['+7', 7],
    ['007', 7],
    ['-0', 0],
    ['2147483647', 2_147_483_647],
  ] as const)('reads %j', (text, forceReplicas) => {
    const { zone, findings } = adoptZone({ annotations: { ...mirrored, [annotationKeys.forceReplicas]: text } });
    expect({ forceReplicas: zone?.forceReplicas === 0 ? 0 : zone?.forceReplicas, findings }).toEqual({ forceReplicas, findings: [] });
  });

  it.each(['-1', '2147483648', ' 7', '7 ', '', '1.0', 'x'])('ignores %j like the original, with a finding', (text) => {
    const { zone, findings } = adoptZone({ annotations: { ...mirrored, [annotationKeys.forceReplicas]: text } });
    expect({ forceReplicas: zone?.forceReplicas, findings }).toEqual({
      forceReplicas: undefined,
      findings: [`RG4010 ${annotationKeys.forceReplicas}`],
    });
  });

  it.each([
    ['acts on a follower', { [annotationKeys.leader]: 'ingester-zone-b' }, 7],
    ['acts on a StatefulSet that leads itself', { [annotationKeys.leader]: 'ingester-zone-a' }, 7],
    ['is ignored without leader and mirror', {}, undefined],
    ['is ignored with a leader that is no member', { [annotationKeys.leader]: 'stranger' }, undefined],
    ['is ignored with a mirror that cannot be used', { ...mirrored, [annotationKeys.mirrorApiVersion]: 'a/b/c' }, undefined],
  ])('%s', (_, annotations, forceReplicas) => {
    const { zone, findings } = adoptZone({ annotations: { ...annotations, [annotationKeys.forceReplicas]: '7' } });
    const isSaid = findings.includes(`RG4010 ${annotationKeys.forceReplicas}`);
    expect({ forceReplicas: zone?.forceReplicas, isSaid }).toEqual({ forceReplicas, isSaid: forceReplicas === undefined });
  });
});

describe('switches', () => {
  const switches = [
    ['labels', labelKeys.noDownscale, { protect: { noDownscale: true, noDelete: true } }],
    ['annotations', annotationKeys.paused, { paused: true }],
  ] as const;
  for (const [where, key, on] of switches) {
    it(`${key} is on with exactly true`, () => {
      expect(adoptZone({ [where]: { [key]: 'true' } })).toEqual({
        zone: { name: 'a', statefulSet: 'ingester-zone-a', ...on },
        findings: [],
      });
    });
    it.each(['True', 'TRUE', 'yes', '1', 't', ' true', 'on', 'y', 'enabled'])(`${key} is off for %j, which is similar to true`, (text) => {
      expect(adoptZone({ [where]: { [key]: text } })).toEqual({
        zone: { name: 'a', statefulSet: 'ingester-zone-a' },
        findings: [`RG4015 ${key}`],
      });
    });
    it.each(['false', '', 'no', '0', 'whatever'])(`${key} is off for %j`, (text) => {
      expect(adoptZone({ [where]: { [key]: text } }).findings).toEqual([]);
    });
  }

  it('a value that is not a text counts as absent and is named', () => {
    expect(adoptZone({ labels: { [labelKeys.noDownscale]: true }, annotations: { [annotationKeys.maxUnavailable]: 5, other: 1 } })).toEqual(
      {
        zone: { name: 'a', statefulSet: 'ingester-zone-a' },
        findings: [`RG4017 ${labelKeys.noDownscale}`, `RG4017 ${annotationKeys.maxUnavailable}`],
      },
    );
  });

  it.each([labelKeys.noDownscale, labelKeys.prepareDownscale, labelKeys.minTimeBetweenZones])(
    '%s as an annotation has no effect',
    (key) => {
      expect(adoptZone({ annotations: { [key]: 'true' } })).toEqual({
        zone: { name: 'a', statefulSet: 'ingester-zone-a' },
        findings: [`RG4011 ${key}`],
      });
    },
  );
});

describe('booleans of Go', () => {
  it('are the thirteen texts of strconv.ParseBool', () => {
    const texts = ['1', 't', 'T', 'TRUE', 'true', 'True', '0', 'f', 'F', 'FALSE', 'false', 'False', 'yes', 'tRUE', '', ' true'];
    expect(texts.map((text) => goBoolean(text))).toEqual([
      ...Array.from({ length: 6 }, () => true),
      ...Array.from({ length: 6 }, () => false),
      ...Array.from({ length: 4 }, () => undefined),
    ]);
  });
});
