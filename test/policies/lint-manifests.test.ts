import { describe, expect, it } from 'vitest';
import { lintPolicies } from '../../policies/lint/lint.ts';
import { group, header, onDelete, policy, problems, set, waves } from './lint-texts.ts';

describe('lint of StatefulSets next to a group', () => {
  const said = (...texts: readonly string[]) =>
    lintPolicies(
      texts.map((text, index) => ({ name: `${index}.yaml`, text })),
      { namespace: 'mimir' },
    ).findings.map(({ severity, code, message }) => `${severity} ${code} ${message}`);
  const elsewhere = (name: string, namespace = 'loki') => set(name).replace('metadata: {', `metadata: { namespace: ${namespace},`);

  it('names both namespaces and their places', () => {
    expect(said(group(onDelete), elsewhere('ingester-a'), elsewhere('ingester-b'))).toEqual([
      'notice RG2119 the group ingester has no StatefulSet in its namespace mimir (its document sets no namespace): ingester-a and ingester-b are in loki',
    ]);
    const written = group(onDelete).replace('metadata: {', 'metadata: { namespace: prod,');
    expect(said(written, set('ingester-a'), set('ingester-b'))).toEqual([
      'notice RG2119 the group ingester has no StatefulSet in its namespace prod: ingester-a and ingester-b are in mimir (their manifests set no namespace)',
    ]);
    const [found] = lintPolicies([
      { name: 'group.yaml', text: written },
      { name: 'set.yaml', text: elsewhere('ingester-a') },
    ]).findings;
    expect(found?.message).toBe('the group ingester has no StatefulSet in its namespace prod: ingester-a is in loki');
    expect([found?.file, found?.line, found?.related]).toEqual(['group.yaml', 3, [{ file: 'set.yaml', line: 4, column: 24 }]]);
  });

  describe('is a warning for a misspelt namespace, and a notice for', () => {
    const inside = (namespace: string, text = group(onDelete)) => text.replace('metadata: {', `metadata: { namespace: ${namespace},`);
    const both = (namespace: string) => [elsewhere('ingester-a', namespace), elsewhere('ingester-b', namespace)];
    const severity = (...texts: readonly string[]) =>
      said(...texts)
        .filter((one) => one.includes('RG2119'))
        .map((one) => one.split(' ')[0]);
    const bySelector = `${header('RolloutGroup', 'ingester')}  members: { selector: { matchLabels: { app: x } }, expect: { count: 1 } }\n${onDelete}`;
    const labelled = set('ingester-a', 'app: x').replace('metadata: {', 'metadata: { namespace: mimir-prod,');

    it.each<[string, readonly string[], string]>([
      ['a slip', [inside('mimir-prdo'), ...both('mimir-prod')], 'warning'],
      ['sets that kustomize puts into it', [inside('mimir-prdo'), set('ingester-a'), set('ingester-b')], 'notice'],
      ['a group that kustomize puts into it', [group(onDelete), ...both('mimri')], 'notice'],
      ['another environment', [inside('prod'), ...both('dev')], 'notice'],
      ['another region', [inside('mimir-eu'), ...both('mimir-us')], 'notice'],
      ['another number', [inside('mimir-1'), ...both('mimir-2')], 'notice'],
      ['one that the files know', [inside('mimir-prdo'), ...both('mimir-prod'), elsewhere('cache', 'mimir-prdo')], 'notice'],
      [
        'one that the files make',
        [inside('mimir-prdo'), ...both('mimir-prod'), '---\napiVersion: v1\nkind: Namespace\nmetadata: { name: mimir-prdo }\n'],
        'notice',
      ],
      ['labels', [inside('mimir-prdo', bySelector), labelled], 'notice'],
    ])('%s', (_name, texts, expected) => {
      expect(severity(...texts)).toEqual([expected]);
    });
  });

  it('omits only the zones in another namespace from the missing zones', () => {
    expect(said(group(onDelete), elsewhere('ingester-a')).filter((one) => !one.includes('RG2119'))).toEqual([
      'notice RG2111 the files contain no StatefulSet for zone b of the group ingester in the namespace mimir: it was not checked',
    ]);
    expect(said(group(onDelete), elsewhere('ingester-a'), set('ingster-b')).filter((one) => one.startsWith('error'))).toEqual([
      'error RG2110 the StatefulSet ingester-b of zone b is not in the files',
    ]);
  });

  it('does not name another namespace if a group there has the StatefulSets', () => {
    const other = group(onDelete).replace('metadata: {', 'metadata: { namespace: loki,');
    expect(said(group(onDelete), other, elsewhere('ingester-a'), elsewhere('ingester-b'))).toEqual([
      'notice RG2111 the files contain no StatefulSet of the group ingester in the namespace mimir: its members were not checked',
    ]);
  });

  it('stays an error for one zone of several, and names its place', () => {
    const { findings } = lintPolicies(
      [group(onDelete), set('ingester-a'), elsewhere('ingester-b')].map((text, index) => ({ name: `${index}.yaml`, text })),
      { namespace: 'mimir' },
    );
    expect(findings.map(({ code, hint }) => `${code} ${hint}`)).toEqual([
      'RG2110 a StatefulSet of this name is in the namespace loki',
      'RG2120 if a StatefulSet belongs to a group, add it to the group; otherwise change nothing',
    ]);
  });

  it('is one bounded notice for all StatefulSets in no group', () => {
    expect(said(group(onDelete, ['a']), set('ingester-a'), set('cache'))).toEqual([
      'notice RG2120 1 StatefulSet is in no group: mimir/cache',
    ]);
    const many = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => set(`cache-${name}`));
    expect(said(group(onDelete, ['a']), set('ingester-a'), ...many)).toEqual([
      'notice RG2120 7 StatefulSets are in no group: mimir/cache-a, mimir/cache-b, mimir/cache-c, mimir/cache-d, mimir/cache-e and 2 more',
    ]);
  });

  it('is absent if no file has a group, or if a group is invalid', () => {
    expect(said(set('cache'))).toEqual([]);
    expect(said(policy('  limits: { minInterval: 1m }\n', 'p', 'all: true'), set('cache'))).toEqual([]);
    const broken = group('  rollout: { strategy: onDelete, typo: 1 }\n', ['a']);
    expect(said(broken, group(onDelete, ['a'], 'other'), set('other-a'), set('cache')).map((text) => text.slice(0, 12))).toEqual([
      'error RG2003',
    ]);
  });
});

const scaler = (kind: string, apiVersion: string, target: string, name: string) =>
  `---\napiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: { name: scaler }\nspec: { scaleTargetRef: { kind: ${target}, name: ${name} } }\n`;

describe('lint of limits of zero', () => {
  const found = (text: string) => problems(text).filter((one) => one.endsWith('RG2216'));
  const members = (labels = 'app: x') =>
    ['a', 'b']
      .map((zone) => set(`ingester-${zone}`).replace(/$/, `spec: { replicas: 3, template: { metadata: { labels: { ${labels} } } } }\n`))
      .join('');
  const budget = (amount: string, selector = 'matchLabels: { app: x }') =>
    `---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: { name: pdb }\nspec: { selector: { ${selector} }, ${amount} }\n`;
  const evicting = '  rollout: { strategy: onDelete, rotateBy: evict }\n';

  it.each<[string, string, boolean]>([
    ['a budget of none', `${group(evicting)}${members()}${budget('maxUnavailable: 0')}`, true],
    ['a budget of all', `${group(evicting)}${members()}${budget('minAvailable: 6')}`, true],
    ['a share of all', `${group(evicting)}${members()}${budget('minAvailable: 100%')}`, true],
    ['a budget that spares one', `${group(evicting)}${members()}${budget('minAvailable: 5')}`, false],
    ['pods that are deleted', `${group(evicting.replace('evict', 'delete'))}${members()}${budget('maxUnavailable: 0')}`, false],
    [
      'the strategy partition, which asks budgets too',
      `${group('  rollout: { strategy: partition }\n')}${members()}${budget('maxUnavailable: 0')}`,
      true,
    ],
    ['other pods', `${group(evicting)}${members('app: y')}${budget('maxUnavailable: 0')}`, false],
    [
      'no pods at all',
      `${group(evicting)}${members()}${budget('maxUnavailable: 0', 'matchExpressions: [{ key: app, operator: In, values: [] }]')}`,
      false,
    ],
    [
      'another namespace',
      `${group(evicting)}${members()}${budget('maxUnavailable: 0').replace('name: pdb', 'name: pdb, namespace: loki')}`,
      false,
    ],
    [
      'a number of pods that an autoscaler knows',
      `${group(evicting)}${members().replaceAll('replicas: 3, ', '')}${budget('minAvailable: 6')}`,
      false,
    ],
    ['none of whatever number', `${group(evicting)}${members().replaceAll('replicas: 3, ', '')}${budget('maxUnavailable: 0')}`, true],
  ])('%s', (_name, text, isFound) => {
    expect(found(text).length).toBe(isFound ? 1 : 0);
  });

  const workload = (kind: string, spec: string, apiVersion = 'apps/v1') =>
    `---\napiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: { name: other, labels: { app: x } }\nspec: ${spec}\n`;
  const pods = 'template: { metadata: { labels: { app: x } } }';
  it.each([
    ['a Deployment', workload('Deployment', `{ replicas: 2, ${pods} }`)],
    ['a CronJob', workload('CronJob', `{ jobTemplate: { spec: { ${pods} } } }`, 'batch/v1')],
    ['a Pod', workload('Pod', '{}', 'v1')],
    ['a StatefulSet of no group', workload('StatefulSet', `{ replicas: 2, ${pods} }`)],
  ])('by number does not count only the pods of the group if it covers %s', (_name, other) => {
    expect(found(`${group(evicting)}${members()}${budget('minAvailable: 6')}${other}`)).toEqual([]);
    expect(found(`${group(evicting)}${members()}${budget('minAvailable: 6')}${other.replaceAll('app: x', 'app: y')}`)).toHaveLength(1);
    for (const whole of ['maxUnavailable: 0', 'maxUnavailable: 0%', 'minAvailable: 100%']) {
      expect(found(`${group(evicting)}${members()}${budget(whole)}${other}`)).toHaveLength(1);
    }
  });

  it('is unknown for a budget that base and overlay write differently', () => {
    const base = `${group(evicting)}${members()}${budget('maxUnavailable: 0')}`;
    expect(found(`${base}${budget('maxUnavailable: 1')}`)).toEqual([]);
    expect(found(`${base}${budget('maxUnavailable: 0')}`)).not.toEqual([]);
  });

  const exception = (rest = '', rule = 'zone-budget') =>
    `---\n${header('RolloutException', 'now')}  rule: ${rule}\n  target: { group: ingester${rest} }\n  allow: { podsAtMost: 1 }\n  reason: r\n  expires: 2026-02-01T00:00:00Z\n`;

  it('is absent for a group or zone with an exception', () => {
    const zero = '  rollout: { strategy: onDelete, maxUnavailable: 0 }\n';
    expect(found(`${group(zero)}${exception()}`)).toEqual([]);
    expect(found(`${group(zero)}${exception(', zone: a')}`)).toHaveLength(1);
    expect(found(`${group(zero)}${exception('', 'zone-gap')}`)).toHaveLength(1);
    const ofZone = group(onDelete).replace('ingester-b }', 'ingester-b, maxUnavailable: 0 }');
    expect(found(`${ofZone}${exception(', zone: b')}`)).toEqual([]);
    expect(found(`${ofZone}${exception(', zone: a')}`)).toHaveLength(1);
    const cap = policy('  limits: { maxUnavailable: 0 }\n');
    expect(found(`${group(onDelete)}${cap}${exception()}`)).toEqual([]);
    expect(found(`${group(onDelete)}${cap}${exception(', zone: a')}`)).toHaveLength(1);
    const fromBudget = group('  rollout: { strategy: onDelete, rotateBy: delete, maxUnavailable: fromBudget }\n');
    expect(found(`${fromBudget}${members()}${budget('maxUnavailable: 0')}`)).toHaveLength(1);
    expect(found(`${fromBudget}${members()}${budget('maxUnavailable: 0')}${exception()}`)).toEqual([]);
    expect(found(`${group(evicting)}${members()}${budget('maxUnavailable: 0')}${exception()}`)).toHaveLength(1);
  });

  it('is unknown for pods that an autoscaler counts', () => {
    const text = `${group(evicting)}${members()}${budget('minAvailable: 6')}`;
    expect(found(`${text}${scaler('HorizontalPodAutoscaler', 'autoscaling/v2', 'StatefulSet', 'ingester-b')}`)).toEqual([]);
  });

  it('counts the pods of followers like the pods of their leader', () => {
    const follows = group(evicting).replace('ingester-b }', 'ingester-b, follows: a }');
    const sets = members().replace(/(ingester-b[\s\S]*)replicas: 3, /, '$1');
    expect(found(`${follows}${sets}${budget('minAvailable: 6')}`)).toHaveLength(1);
    expect(found(`${follows}${sets}${budget('minAvailable: 5')}`)).toEqual([]);
  });

  it('of a zone, and of the others once', () => {
    const zero = '  rollout: { strategy: onDelete, maxUnavailable: 0 }\n';
    expect(found(group(zero))).toEqual(['6:50 RG2216']);
    expect(
      found(group(zero).replaceAll(' }, {', ', maxUnavailable: 1 }, {').replace('ingester-b }', 'ingester-b, paused: true }')),
    ).toEqual([]);
    expect(found(group(onDelete).replace('ingester-b }', 'ingester-b, maxUnavailable: 0 }'))).toEqual(['5:112 RG2216']);
  });

  it('of a policy', () => {
    expect(found(`${group(onDelete)}${policy('  limits: { maxUnavailable: 0 }\n')}`)).toEqual(['13:29 RG2216']);
  });
});

describe('lint of a canary without pods', () => {
  const sized = (name: string, replicas: number) => set(name).replace(/$/, `spec: { replicas: ${replicas} }\n`);
  const said = (text: string) =>
    lintPolicies([{ name: 'a.yaml', text }], { namespace: 'mimir' }).findings.flatMap(({ code, message }) =>
      code === 'RG2217' ? [message] : [],
    );
  const canary = waves('name: canary, zones: [a], pods: 1', 'name: rest, zones: [a, b], percent: 100');

  it('names the wave, the zone, and the wave that has pods', () => {
    const text = 'wave canary has no pods: zone a has 0 replicas; wave rest updates the first pods';
    expect(said(`${group(canary)}${sized('ingester-a', 0)}${sized('ingester-b', 3)}`)).toEqual([text]);
    const counted = group(canary).replace('ingester-a }', 'ingester-a, replicas: { count: 0 } }');
    expect(said(`${counted}${sized('ingester-a', 3)}${sized('ingester-b', 3)}`)).toEqual([text]);
  });

  it.each<[string, string, boolean]>([
    ['an autoscaler', scaler('HorizontalPodAutoscaler', 'autoscaling/v2', 'StatefulSet', 'ingester-a'), false],
    ['a ScaledObject', scaler('ScaledObject', 'keda.sh/v1alpha1', 'StatefulSet', 'ingester-a'), false],
    ['an autoscaler of the group', scaler('HorizontalPodAutoscaler', 'autoscaling/v2', 'RolloutGroup', 'ingester'), false],
    ['an autoscaler of another zone', scaler('HorizontalPodAutoscaler', 'autoscaling/v2', 'StatefulSet', 'ingester-b'), true],
    ['an autoscaler of a Deployment', scaler('ScaledObject', 'keda.sh/v1alpha1', 'Deployment', 'ingester-a'), true],
    ['a patch with another number', sized('ingester-a', 3), false],
    ['a patch that names none', set('ingester-a'), false],
    ['a copy', sized('ingester-a', 0), true],
  ])('next to %s', (_name, beside, isFound) => {
    expect(said(`${group(canary)}${sized('ingester-a', 0)}${sized('ingester-b', 3)}${beside}`)).toHaveLength(isFound ? 1 : 0);
  });

  it('uses the leader of a zone that follows, and not a mirrored number', () => {
    const follows = group(canary).replace('ingester-a }', 'ingester-a, follows: b }');
    expect(said(`${follows}${sized('ingester-a', 0)}${sized('ingester-b', 3)}`)).toEqual([]);
    const mirror = group(canary).replace(
      'ingester-a }',
      'ingester-a, replicas: { mirror: { apiVersion: example.com/v1, kind: Ring, name: r } } }',
    );
    expect(said(`${mirror}${sized('ingester-a', 0)}${sized('ingester-b', 3)}`)).toEqual([]);
  });

  it('names all stages of a schedule', () => {
    const schedule = '  rollout: { strategy: onDelete, schedule: { kind: linear, start: 50%, step: 50% } }\n';
    const [text] = said(`${group(schedule)}${sized('ingester-a', 0)}${sized('ingester-b', 3)}`);
    expect(text).toBe('waves stage-1 to stage-2 have no pods: zone a has 0 replicas; wave rest updates the first pods');
  });

  it('is absent if the zone has pods, if the number is unknown, and if no zone has any', () => {
    expect(said(`${group(canary)}${sized('ingester-a', 1)}${sized('ingester-b', 3)}`)).toEqual([]);
    expect(said(`${group(canary)}${set('ingester-a')}${set('ingester-b')}`)).toEqual([]);
    expect(said(`${group(canary)}${sized('ingester-a', 0)}${sized('ingester-b', 0)}`)).toEqual([]);
    expect(said(group(canary))).toEqual([]);
  });
});
