import { describe, expect, it } from 'vitest';
import { adoptGroups } from '../../policies/adopt/adopt.ts';
import { loadPolicies } from '../../policies/load.ts';
import { type ResolveOptions, resolvePolicies, statefulSetsOf } from '../../policies/resolve/resolve.ts';

function resolve(text: string, options: ResolveOptions = {}) {
  const loaded = loadPolicies([{ name: 'policy.yaml', text }], { namespace: 'mimir' });
  expect(loaded.findings).toEqual([]);
  return resolvePolicies(loaded.documents, options);
}

const codesOf = (text: string, options: ResolveOptions = {}) =>
  resolve(text, options).findings.map((one) => `${one.line}:${one.column} ${one.code} ${one.message}`);

/** One line of JSON for each item, so that a snapshot fits a screen. */
const lines = (items: readonly unknown[] = []) => items.map((item) => JSON.stringify(item));

const header = (kind: string, name: string) =>
  `apiVersion: rollout-group.dev/v1alpha1\nkind: ${kind}\nmetadata: { name: ${name} }\nspec:\n`;

const zones = `${header('RolloutGroup', 'ingester')}  members:
    zones:
      - { name: a, statefulSet: ingester-zone-a, maxUnavailable: 2, scaling: { down: { betweenZones: 1h } } }
      - { name: b, statefulSet: ingester-zone-b, follows: a, paused: true, forceReplicas: 4, protect: { noDownscale: false } }
      - { name: c, statefulSet: ingester-zone-c, replicas: { count: 7 }, scaling: { hold: INC-1, duringRollout: allow } }
  replicas:
    mirror: { from: { apiVersion: v1, kind: Plan, name: q3, read: fieldPath, fieldPath: [spec, count] } }
    bounds: { min: 3, parity: odd }
  scaling:
    up: { followersWaitFor: nothing }
    down:
      betweenZones: 12h
      prepare: { endpoint: { port: 80, path: /prepare } }
  rollout: { strategy: onDelete, maxUnavailable: 10% }
  protect: { noDownscale: true, noDelete: true }
`;

describe('a group', () => {
  it('gives each zone its own settings, and otherwise the settings of the group', () => {
    const [group] = resolve(zones).bundle.groups;
    expect(lines(group?.zones)).toMatchInlineSnapshot(`
      [
        "{"name":"a","statefulSet":"ingester-zone-a","replicas":{"apiVersion":"v1","name":"q3","read":"fieldPath","fieldPath":["spec","count"],"kind":"mirror","resourceKind":"Plan","writeBack":"none","onMissing":"hold"},"bounds":{"min":3,"multipleOf":1,"parity":"odd"},"maxUnavailable":2,"paused":false,"duringRollout":"wait","followersWaitFor":"nothing","betweenZonesMs":3600000,"prepare":{"endpoint":{"scheme":"http","port":80,"path":"/prepare","timeout":"5s"},"onFailure":"deny"},"noDownscale":true,"noDelete":true,"noEviction":false}",
        "{"name":"b","statefulSet":"ingester-zone-b","follows":"a","replicas":{"kind":"leader"},"bounds":{"min":3,"multipleOf":1,"parity":"odd"},"maxUnavailable":"10%","paused":true,"forceReplicas":4,"duringRollout":"wait","followersWaitFor":"nothing","betweenZonesMs":43200000,"prepare":{"endpoint":{"scheme":"http","port":80,"path":"/prepare","timeout":"5s"},"onFailure":"deny"},"noDownscale":false,"noDelete":true,"noEviction":false}",
        "{"name":"c","statefulSet":"ingester-zone-c","replicas":{"kind":"count","count":7},"bounds":{"multipleOf":1,"parity":"any"},"maxUnavailable":"10%","paused":false,"scalingHold":"INC-1","duringRollout":"allow","followersWaitFor":"nothing","betweenZonesMs":43200000,"prepare":{"endpoint":{"scheme":"http","port":80,"path":"/prepare","timeout":"5s"},"onFailure":"deny"},"noDownscale":true,"noDelete":true,"noEviction":false}",
      ]
    `);
  });

  it('distinguishes settings of a zone from settings of the group', () => {
    const [group] = resolve(zones).bundle.groups;
    const places = Object.entries(group?.sources ?? {}).map(([path, source]) => `${path} ${source.line}:${source.column}`);
    expect(places).toMatchInlineSnapshot(`
      [
        " 1:1",
        "rollout.maxUnavailable 18:50",
        "rollout.strategy 18:24",
        "zones.a 7:9",
        "zones.a.maxUnavailable 7:66",
        "zones.a.replicas 11:5",
        "zones.a.betweenZones 7:102",
        "zones.a.prepare 17:16",
        "zones.a.protect 19:12",
        "zones.a.scaling 7:78",
        "zones.b 8:9",
        "zones.b.maxUnavailable 18:50",
        "zones.b.paused 8:70",
        "zones.b.forceReplicas 8:91",
        "zones.b.follows 8:59",
        "zones.b.replicas 11:5",
        "zones.b.betweenZones 16:21",
        "zones.b.prepare 17:16",
        "zones.b.protect 8:103",
        "zones.b.scaling 14:5",
        "zones.c 9:9",
        "zones.c.maxUnavailable 18:50",
        "zones.c.replicas 9:60",
        "zones.c.betweenZones 16:21",
        "zones.c.prepare 17:16",
        "zones.c.protect 19:12",
        "zones.c.scaling 9:91",
      ]
    `);
  });

  it('without waves brings every zone to 100 percent in one wave, and keeps the defaults', () => {
    const [group] = resolve(zones).bundle.groups;
    expect(lines([group?.rollout, ...(group?.gates ?? []), group?.disruption])).toMatchInlineSnapshot(`
      [
        "{"strategy":"onDelete","order":"descending","rotateBy":"evict","onFailure":"pause","skipOnRollback":true,"historyLimit":10,"minIntervalMs":0,"replaceUnready":{"when":"any","afterMs":300000},"waves":[{"name":"all","zones":["a","b","c"],"amount":{"percent":100},"before":{"gates":[]},"after":{"soakMs":0,"gates":[]}}],"deadlines":{}}",
        undefined,
      ]
    `);
  });

  it('has waves, gates and the budget with durations in milliseconds', () => {
    const text = `${header('RolloutGroup', 'store')}  members: { zones: [{ name: a, statefulSet: store-a }] }
  rollout:
    strategy: partition
    minInterval: 90s
    waves:
      - { name: canary, zones: [a], pods: 0, before: { approval: { from: [sre], expires: 1h }, gates: [up] } }
      - { name: rest, zones: [a], percent: 100, after: { soak: 1h30m, gates: [errors, consul] } }
    deadlines: { progress: 20m }
  gates:
    - { name: up, podsAvailable: {} }
    - { name: errors, prometheus: { source: prod, query: up }, pass: { "<": [{ var: value }, 2] }, failureLimit: 0 }
    - { name: consul, consul: { source: dc1, service: kv, passing: 3 } }
  disruption: { maxUnavailable: 1, partition: { pattern: 'store-([0-9]+)' }, crossZoneDelay: 2m }
`;
    const [group] = resolve(text).bundle.groups;
    expect(lines([group?.rollout, ...(group?.gates ?? []), group?.disruption])).toMatchInlineSnapshot(`
      [
        "{"strategy":"partition","order":"descending","rotateBy":"evict","onFailure":"pause","skipOnRollback":true,"historyLimit":10,"minIntervalMs":90000,"replaceUnready":{"when":"any","afterMs":300000},"waves":[{"name":"canary","zones":["a"],"amount":{"pods":0},"before":{"approval":{"count":1,"from":["sre"],"expiresMs":3600000},"gates":["up"]},"after":{"soakMs":0,"gates":[]}},{"name":"rest","zones":["a"],"amount":{"percent":100},"before":{"gates":[]},"after":{"soakMs":5400000,"gates":["errors","consul"]}}],"deadlines":{"progressMs":1200000}}",
        "{"name":"up","mode":"enforce","consecutive":1,"failureLimit":1,"noData":"fail","onError":"hold","provider":{"podsAvailable":{"minReadySeconds":0}},"initialDelayMs":0,"everyMs":60000,"pass":{"==":[{"var":"value"},0]}}",
        "{"name":"errors","mode":"enforce","consecutive":1,"failureLimit":0,"noData":"fail","onError":"hold","provider":{"prometheus":{"source":"prod","query":"up"}},"initialDelayMs":0,"everyMs":60000,"pass":{"<":[{"var":"value"},2]}}",
        "{"name":"consul","mode":"enforce","consecutive":1,"failureLimit":1,"noData":"fail","onError":"hold","provider":{"consul":{"source":"dc1","service":"kv","passing":3}},"initialDelayMs":0,"everyMs":60000,"pass":{">=":[{"var":"value"},3]}}",
        "{"maxUnavailable":1,"partition":{"pattern":"store-([0-9]+)","group":1},"crossZoneDelayMs":120000}",
      ]
    `);
  });
});

describe('members by selector', () => {
  const text = (expectation: string) => `${header('RolloutGroup', 'ingester')}  members:
    selector: { matchLabels: { app: ingester } }
${expectation}  rollout: { strategy: onDelete }
`;
  const set = (name: string, namespace = 'mimir', app = 'ingester') => ({ namespace, name, labels: { app } });
  const statefulSets = [set('zone-2'), set('zone-10'), set('other', 'mimir', 'querier'), set('zone-3', 'loki')];

  it('are the StatefulSets of the namespace that match, in byte-wise order', () => {
    const [group] = resolve(text('    expect: { count: 2, names: [zone-2, zone-10] }\n'), { statefulSets }).bundle.groups;
    expect(group?.zones.map((zone) => [zone.name, zone.statefulSet])).toEqual([
      ['zone-10', 'zone-10'],
      ['zone-2', 'zone-2'],
    ]);
    expect([group?.rollout.waves[0]?.zones, group?.sources['zones.zone-2']?.line]).toEqual([['zone-10', 'zone-2'], 6]);
  });

  it.each([
    [
      'no StatefulSet in the namespace',
      '',
      [],
      ['6:5 RG2111 the members of ingester are unknown: no StatefulSet of its namespace was read'],
    ],
    [
      'StatefulSets without the labels',
      '',
      statefulSets.map((set) => ({ ...set, labels: {} })),
      ['6:5 RG2112 the selector finds no StatefulSet'],
    ],
    [
      'another count',
      '    expect: { count: 3 }\n',
      statefulSets,
      ['6:5 RG2112 the selector finds 2 StatefulSets (zone-10, zone-2) instead of 3'],
    ],
    ['other names', '    expect: { names: [zone-2] }\n', statefulSets, ['6:5 RG2112 the selector finds zone-10, zone-2 instead of zone-2']],
    ['nothing known', '', undefined, ['6:5 RG2111 the members of ingester are unknown: no StatefulSet of its namespace was read']],
  ])('are rejected if there are %s', (_, expectation, sets, expected) => {
    const options = sets ? { statefulSets: sets } : {};
    expect([codesOf(text(expectation), options), resolve(text(expectation), options).bundle.groups]).toEqual([expected, []]);
  });
});

describe('several definitions', () => {
  it('of one object: the first applies, the second is named', () => {
    const text = `${zones}---\n${zones.replace('10%', '1')}`;
    const { bundle, findings } = resolve(text);
    expect(bundle.groups.map((group) => group.zones.map((zone) => zone.maxUnavailable))).toEqual([[2, '10%', '10%']]);
    expect(findings.map(({ code, line, related }) => ({ code, line, related }))).toEqual([
      { code: 'RG2101', line: 23, related: [{ file: 'policy.yaml', line: 1, column: 1 }] },
    ]);
  });

  const adopted = (name: string, labels: string) => `apiVersion: apps/v1
kind: StatefulSet
metadata: { name: ${name}, namespace: mimir, labels: { rollout-group: ${labels} } }
spec: { replicas: 3, template: { metadata: { labels: { name: ${name} } } }, updateStrategy: { type: OnDelete } }
`;

  it('by file and by adoption: a file that names a member replaces the whole adopted group', () => {
    const manifests = ['ingester-zone-a', 'ingester-zone-d'].map((name) => adopted(name, 'old')).concat(adopted('store-gateway', 'store'));
    const loaded = loadPolicies([{ name: 'all.yaml', text: manifests.join('---\n') }]);
    const adoption = adoptGroups(loaded.manifests.map((manifest) => manifest.value));
    const names = (text: string) =>
      resolve(text, { adoption, statefulSets: statefulSetsOf(loaded.manifests) }).bundle.groups.map((group) => group.name);
    expect([names(zones), names('')]).toEqual([
      ['ingester', 'store'],
      ['old', 'store'],
    ]);
  });

  it('by adoption keep the place of each label and annotation', () => {
    const loaded = loadPolicies([{ name: 'all.yaml', text: adopted('ingester-zone-a', 'ingester') }]);
    const adoption = adoptGroups(loaded.manifests.map((manifest) => manifest.value));
    const [group] = resolvePolicies([], { adoption }).bundle.groups;
    expect(group?.sources['']).toEqual({ object: 'StatefulSet mimir/ingester-zone-a', field: 'rollout-group' });
  });
});

it('policies and exceptions have timestamps, durations and the place of each rule, window and limit', () => {
  const text = `${header('RolloutPolicy', 'safety')}  targets: { all: true }
  inputs: { metrics: { queue: { source: prod, query: up } } }
  rules:
    - { name: drained, actions: [scaleDown], effect: hold, when: { ">": [{ var: inputs.metrics.queue }, 1] } }
    - { name: ask, actions: [rollout], effect: requireApproval, onUnknown: deny, approval: { from: [sre] }, message: hi }
  windows:
    - { name: office, kind: allow, actions: [rollout], schedule: { cron: "0 9 * * 1-4", duration: 8h, timeZone: Europe/Amsterdam } }
    - { name: freeze, kind: deny, actions: [rollout], ranges: [{ from: "2026-12-18T18:00:00+01:00", to: "2027-01-04T08:00:00+01:00", reason: year }] }
  limits: { maxUnavailable: 10%, betweenZones: 1h, minInterval: 5m, minReplicas: 3 }
---
${header('RolloutException', 'inc-1')}  rule: safety/drained
  target: { group: ingester, zone: a }
  allow: { replicasAtLeast: 3 }
  reason: INC-1
  notBefore: "2026-11-21T09:00:00Z"
  expires: "2026-11-21T17:00:00+01:00"
`;
  const { bundle, findings } = resolve(text);
  expect(lines([...bundle.policies, ...bundle.exceptions, findings])).toMatchInlineSnapshot(`
    [
      "{"namespace":"mimir","name":"safety","targets":{"all":true},"metrics":{"queue":{"source":"prod","query":"up","noData":"unknown","maxAgeMs":120000}},"rules":[{"name":"drained","actions":["scaleDown"],"effect":"hold","when":{">":[{"var":"inputs.metrics.queue"},1]},"onUnknown":"hold","approval":{"count":1,"from":[]},"source":{"file":"policy.yaml","line":8,"column":7}},{"name":"ask","actions":["rollout"],"effect":"requireApproval","onUnknown":"deny","approval":{"count":1,"from":["sre"]},"message":"hi","source":{"file":"policy.yaml","line":9,"column":7}}],"windows":[{"name":"office","kind":"allow","actions":["rollout"],"inFlight":"finishPod","schedule":{"cron":"0 9 * * 1-4","durationMs":28800000,"timeZone":"Europe/Amsterdam"},"source":{"file":"policy.yaml","line":11,"column":7}},{"name":"freeze","kind":"deny","actions":["rollout"],"inFlight":"finishPod","ranges":[{"fromMs":1797613200000,"toMs":1799046000000,"reason":"year"}],"source":{"file":"policy.yaml","line":12,"column":7}}],"limits":{"maxUnavailable":"10%","minReplicas":3,"betweenZonesMs":3600000,"minIntervalMs":300000},"limitSources":{"maxUnavailable":{"file":"policy.yaml","line":13,"column":29},"minReplicas":{"file":"policy.yaml","line":13,"column":82},"betweenZones":{"file":"policy.yaml","line":13,"column":48},"minInterval":{"file":"policy.yaml","line":13,"column":65}},"source":{"file":"policy.yaml","line":1,"column":1}}",
      "{"namespace":"mimir","name":"inc-1","rule":"safety/drained","group":"ingester","zone":"a","allow":{"replicasAtLeast":3},"reason":"INC-1","notBeforeMs":1795251600000,"expiresMs":1795276800000,"source":{"file":"policy.yaml","line":19,"column":3}}",
      "[]",
    ]
  `);
});
