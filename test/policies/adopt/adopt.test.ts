import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { adoptGroups } from '../../../policies/adopt/adopt.ts';
import { annotationKeys, labelKeys } from '../../../policies/adopt/keys.ts';
import { writeDocument } from '../../../policies/write.ts';
import { statefulSet } from './kit.ts';

describe('an adopted group', () => {
  const member = (zone: string, leader?: string) =>
    statefulSet({
      name: `ingester-zone-${zone}`,
      labels: { [labelKeys.prepareDownscale]: 'true', [labelKeys.minTimeBetweenZones]: '12h' },
      annotations: {
        [annotationKeys.preparePort]: '80',
        [annotationKeys.preparePath]: 'ingester/prepare-shutdown',
        [annotationKeys.maxUnavailable]: '50',
        ...(leader === undefined ? {} : { [annotationKeys.leader]: `ingester-zone-${leader}` }),
      },
    });
  const { groups, findings, sources } = adoptGroups([member('b', 'a'), member('a')]);

  it('has shared settings once, and every difference from the original', () => {
    expect(findings).toEqual([]);
    expect(groups).toMatchInlineSnapshot(`
      [
        {
          "apiVersion": "rollout-group.dev/v1alpha1",
          "kind": "RolloutGroup",
          "metadata": {
            "name": "ingester",
            "namespace": "mimir",
          },
          "spec": {
            "members": {
              "zones": [
                {
                  "name": "a",
                  "statefulSet": "ingester-zone-a",
                },
                {
                  "follows": "a",
                  "name": "b",
                  "statefulSet": "ingester-zone-b",
                },
              ],
            },
            "profile": "rolloutOperator",
            "replicas": {
              "leader": true,
            },
            "rollout": {
              "deadlines": {},
              "historyLimit": 10,
              "maxUnavailable": 50,
              "minInterval": "0s",
              "onFailure": "pause",
              "onPolicyDeleted": "hold",
              "order": "ascending",
              "replaceUnready": {
                "after": "0s",
                "when": "crashing",
              },
              "rotateBy": "delete",
              "skipOnRollback": true,
              "strategy": "onDelete",
            },
            "scaling": {
              "down": {
                "betweenZones": "12h",
                "prepare": {
                  "endpoint": {
                    "path": "/ingester/prepare-shutdown",
                    "port": 80,
                    "scheme": "http",
                    "timeout": "5s",
                  },
                  "onFailure": "deny",
                },
              },
              "duringRollout": "allow",
              "up": {
                "followersWaitFor": "nothing",
              },
            },
          },
        },
      ]
    `);
  });

  it('keeps the place of each setting, for every zone and for shared ones', () => {
    const a = 'StatefulSet mimir/ingester-zone-a';
    const b = 'StatefulSet mimir/ingester-zone-b';
    const settings = (object: string, prefix: string) => ({
      [`${prefix}scaling.down.betweenZones`]: { object, field: labelKeys.minTimeBetweenZones },
      [`${prefix}scaling.down.prepare`]: { object, field: labelKeys.prepareDownscale },
      [`${prefix}scaling.down.prepare.endpoint`]: { object, field: annotationKeys.preparePath },
      [`${prefix}${prefix === '' ? 'rollout.' : ''}maxUnavailable`]: { object, field: annotationKeys.maxUnavailable },
    });
    expect(sources).toEqual({
      'mimir/ingester': {
        '': { object: a, field: labelKeys.group },
        ...settings(a, ''),
        'zones.a': { object: a, field: labelKeys.group },
        ...settings(a, 'zones.a.'),
        'zones.b': { object: b, field: labelKeys.group },
        'zones.b.follows': { object: b, field: annotationKeys.leader },
        ...settings(b, 'zones.b.'),
      },
    });
  });

  it('has the differences of each zone, with the default in the group', () => {
    const differing = adoptGroups([
      statefulSet({ labels: { [labelKeys.noDownscale]: 'true' }, annotations: { [annotationKeys.maxUnavailable]: '2' } }),
      statefulSet({ name: 'ingester-zone-b', labels: { [labelKeys.minTimeBetweenZones]: '1h' } }),
    ]);
    const spec = differing.groups[0]?.spec;
    expect({ zones: spec?.members.zones, maxUnavailable: spec?.rollout.maxUnavailable, protect: spec?.protect }).toEqual({
      zones: [
        { name: 'a', statefulSet: 'ingester-zone-a', maxUnavailable: 2, protect: { noDownscale: true, noDelete: true } },
        { name: 'b', statefulSet: 'ingester-zone-b', scaling: { down: { betweenZones: '1h' } } },
      ],
      maxUnavailable: 1,
      protect: undefined,
    });
    expect(Object.keys(differing.sources['mimir/ingester'] ?? {}).sort()).toEqual([
      '',
      'zones.a',
      'zones.a.maxUnavailable',
      'zones.a.protect.noDelete',
      'zones.a.protect.noDownscale',
      'zones.b',
      'zones.b.scaling.down.betweenZones',
    ]);
  });
});

describe('the adopted objects', () => {
  const names = (...sets: readonly unknown[]) =>
    adoptGroups(sets).groups.map(({ metadata, spec }) => [
      metadata.namespace,
      metadata.name,
      spec.groupLabel,
      spec.members.zones?.map((zone) => `${zone.name}=${zone.statefulSet}`).join(' '),
    ]);

  it('one group per namespace and value, sorted; other objects are skipped', () => {
    expect(
      names(
        statefulSet({ name: 'y', group: 'b', namespace: 'two' }),
        statefulSet({ name: 'x', group: 'b', namespace: 'one' }),
        statefulSet({ name: 'x', group: 'a', namespace: 'two' }),
        { kind: 'StatefulSet', metadata: { name: 'unlabelled' } },
        { kind: 'Deployment', metadata: { name: 'd', labels: { 'rollout-group': 'a' } } },
        { kind: 'StatefulSet', metadata: { labels: { 'rollout-group': 'nameless' } } },
        'text',
        undefined,
        null,
      ),
    ).toEqual([
      ['one', 'b', undefined, 'x=x'],
      ['two', 'a', undefined, 'x=x'],
      ['two', 'b', undefined, 'y=y'],
    ]);
  });

  it('an object without namespace, kind or spec is read with the defaults of the API server', () => {
    const bare = { metadata: { name: 'x', annotations: null, labels: { 'rollout-group': 'g' } } };
    const { groups, findings } = adoptGroups([bare], { namespace: 'prod' });
    expect([groups[0]?.metadata, findings.map(({ code, object }) => `${code} ${object}`)]).toEqual([
      { name: 'g', namespace: 'prod' },
      ['RG4012 StatefulSet prod/x', 'RG4013 StatefulSet prod/x', 'RG4014 StatefulSet prod/x'],
    ]);
  });

  it.each([
    ['', 'group-e3b0c442'],
    ['Ingester_A', 'ingester-a-aaca7abc'],
    ['UPPER', 'upper-9cba1c65'],
    ['under_score', 'under-score-d8071166'],
  ])('the value %j is not an object name, so the group has a slug with a short hash', (group, name) => {
    expect(names(statefulSet({ group }))).toEqual([['mimir', name, group, 'ingester-zone-a=ingester-zone-a']]);
  });

  it.each([
    ['what all names share is left out', ['ingester-zone-a', 'ingester-zone-b'], ['a', 'b']],
    ['zones go in byte-wise order', ['zone-2', 'zone-10', 'zone-1'], ['1', '10', '2']],
    ['only whole parts are shared', ['store-gateway', 'store-gate-b'], ['gate-b', 'gateway']],
    ['names that share no part are kept', ['alpha', 'beta'], ['alpha', 'beta']],
    ['a rest that is no short name leaves all names whole', ['z-a.b', 'z-c'], ['z-a-b', 'z-c']],
    ['names that become the same get a short hash', ['z.a-b', 'z-a.b'], ['z-a-b-e94d597d', 'z-a-b-cd2af2da']],
    ['a single member keeps its name', ['store-gateway'], ['store-gateway']],
  ])('names of zones: %s', (_, statefulSets, zones) => {
    const { groups } = adoptGroups(statefulSets.map((name) => statefulSet({ name })));
    expect(groups[0]?.spec.members.zones?.map((zone) => zone.name)).toEqual(zones);
  });

  it('a StatefulSet that is listed twice counts once, in any order', () => {
    const one = statefulSet();
    const other = statefulSet({ annotations: { [annotationKeys.maxUnavailable]: '3' } });
    expect(adoptGroups([one, other])).toEqual(adoptGroups([other, one]));
    expect(names(one, other)).toEqual([['mimir', 'ingester', undefined, 'ingester-zone-a=ingester-zone-a']]);
  });

  it('an invalid group is omitted as a whole and named', () => {
    const sets = Array.from({ length: 51 }, (_, index) => statefulSet({ name: `zone-${index}` }));
    const { groups, findings } = adoptGroups(sets);
    expect([groups, findings.map(({ code, object }) => `${code} ${object}`)]).toEqual([[], ['RG4019 StatefulSet mimir/zone-0']]);
  });
});

describe('findings about the object itself', () => {
  it('another strategy, no pod label and a single member', () => {
    const { findings } = adoptGroups([statefulSet({ strategy: 'RollingUpdate', podLabels: {} })]);
    expect(findings).toMatchInlineSnapshot(`
      [
        {
          "code": "RG4012",
          "field": "spec.updateStrategy.type",
          "message": "spec.updateStrategy.type is RollingUpdate; no pod of the group is replaced until it is OnDelete",
          "object": "StatefulSet mimir/ingester-zone-a",
        },
        {
          "code": "RG4013",
          "field": "spec.template.metadata.labels.name",
          "message": "spec.template.metadata.labels.name is missing; the agent finds the pods by this label",
          "object": "StatefulSet mimir/ingester-zone-a",
        },
        {
          "code": "RG4014",
          "field": "rollout-group",
          "message": "the group has one member, so no rule compares zones",
          "object": "StatefulSet mimir/ingester-zone-a",
        },
      ]
    `);
  });
});

const realInputs = ['../shared/real/mimir-jsonnet', '../shared/real/mimir-helm-multizone'];

for (const folder of realInputs) {
  const title = existsSync(folder) ? `the real input ${folder}` : `SKIPPED because ${folder} is not beside this repository`;
  describe.skipIf(!existsSync(folder))(title, () => {
    const objects = existsSync(folder)
      ? readdirSync(folder).flatMap((file) =>
          parseAllDocuments(readFileSync(`${folder}/${file}`, 'utf8')).map((document): unknown => document.toJS()),
        )
      : [];

    it('becomes groups without a finding', async () => {
      const { groups, findings } = adoptGroups(objects);
      expect(findings).toEqual([]);
      await expect(groups.map((one) => writeDocument(one)).join('---\n')).toMatchFileSnapshot(`../golden/adopted-${basename(folder)}.yaml`);
    });

    it('becomes the same bytes in any order', () => {
      const shuffled = objects.map((object, index) => ({ object, rank: (index * 7919) % 101 })).sort((a, b) => a.rank - b.rank);
      expect(JSON.stringify(adoptGroups(shuffled.map(({ object }) => object)))).toBe(JSON.stringify(adoptGroups(objects)));
    });
  });
}
