import { describe, expect, it } from 'vitest';
import { type LintOptions, lintPolicies } from '../../policies/lint/lint.ts';

/** Errors and warnings as `line:column code`; notices are left out. */
function problems(text: string, options: LintOptions = {}): readonly string[] {
  const { findings } = lintPolicies([{ name: 'policy.yaml', text }], { namespace: 'mimir', ...options });
  return findings.filter((one) => one.severity !== 'notice').map((one) => `${one.line}:${one.column} ${one.code}`);
}

const header = (kind: string, name: string) =>
  `apiVersion: rollout-group.dev/v1alpha1\nkind: ${kind}\nmetadata: { name: ${name} }\nspec:\n`;

const group = (rest: string, zones = ['a', 'b'], name = 'ingester') =>
  `${header('RolloutGroup', name)}  members: { zones: [${zones.map((zone) => `{ name: ${zone}, statefulSet: ${name}-${zone} }`).join(', ')}] }\n${rest}`;

const onDelete = '  rollout: { engine: onDelete }\n';
const waves = (...list: string[]) =>
  `  rollout:\n    engine: onDelete\n    waves:\n${list.map((wave) => `      - { ${wave} }\n`).join('')}`;
const policy = (rest: string, name = 'safety', targets = 'groups: [ingester]') =>
  `---\n${header('RolloutPolicy', name)}  targets: { ${targets} }\n${rest}`;
const set = (name: string, labels = '') =>
  `---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: { name: ${name}, labels: { ${labels} } }\n`;

describe('lint of StatefulSets beside a group', () => {
  const said = (...texts: readonly string[]) =>
    lintPolicies(
      texts.map((text, index) => ({ name: `${index}.yaml`, text })),
      { namespace: 'mimir' },
    ).findings.map(({ severity, code, message }) => `${severity} ${code} ${message}`);
  const elsewhere = (name: string, namespace = 'loki') => set(name).replace('metadata: {', `metadata: { namespace: ${namespace},`);

  it('names both namespaces, and where each is written', () => {
    expect(said(group(onDelete), elsewhere('ingester-a'), elsewhere('ingester-b'))).toEqual([
      'warning RG2119 the group ingester is in the namespace mimir, since it names none, and its StatefulSets ingester-a and ingester-b are in loki',
    ]);
    const written = group(onDelete).replace('metadata: {', 'metadata: { namespace: prod,');
    expect(said(written, set('ingester-a'), set('ingester-b'))).toEqual([
      'warning RG2119 the group ingester is in the namespace prod, and its StatefulSets ingester-a and ingester-b are in mimir, since their manifests name none',
    ]);
    const [found] = lintPolicies([
      { name: 'group.yaml', text: written },
      { name: 'set.yaml', text: elsewhere('ingester-a') },
    ]).findings;
    expect([found?.file, found?.line, found?.related]).toEqual(['group.yaml', 3, [{ file: 'set.yaml', line: 4, column: 24 }]]);
  });

  it('says nothing of another namespace where a group of it has them', () => {
    const other = group(onDelete).replace('metadata: {', 'metadata: { namespace: loki,');
    expect(said(group(onDelete), other, elsewhere('ingester-a'), elsewhere('ingester-b'))).toEqual([
      'notice RG2111 the files hold no StatefulSet of the group ingester in the namespace mimir, so its members were not checked',
    ]);
  });

  it('stays an error for one zone of several, and says where it is', () => {
    const { findings } = lintPolicies(
      [group(onDelete), set('ingester-a'), elsewhere('ingester-b')].map((text, index) => ({ name: `${index}.yaml`, text })),
      { namespace: 'mimir' },
    );
    expect(findings.map(({ code, hint }) => `${code} ${hint}`)).toEqual([
      'RG2110 a StatefulSet of this name is in the namespace loki',
      'RG2120 add what belongs to a group to its zones, and leave the rest as it is',
    ]);
  });

  it('is one notice for all that are in no group, bounded', () => {
    expect(said(group(onDelete, ['a']), set('ingester-a'), set('cache'))).toEqual([
      'notice RG2120 1 StatefulSet is in no group: mimir/cache',
    ]);
    const many = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => set(`cache-${name}`));
    expect(said(group(onDelete, ['a']), set('ingester-a'), ...many)).toEqual([
      'notice RG2120 7 StatefulSets are in no group: mimir/cache-a, mimir/cache-b, mimir/cache-c, mimir/cache-d, mimir/cache-e and 2 more',
    ]);
  });

  it('says nothing where no file has a group, nor where a group cannot be used', () => {
    expect(said(set('cache'))).toEqual([]);
    expect(said(policy('  limits: { minInterval: 1m }\n', 'p', 'all: true'), set('cache'))).toEqual([]);
    const broken = group('  rollout: { engine: onDelete, typo: 1 }\n', ['a']);
    expect(said(broken, group(onDelete, ['a'], 'other'), set('other-a'), set('cache')).map((text) => text.slice(0, 12))).toEqual([
      'error RG2003',
    ]);
  });
});

describe('lint of limits of zero', () => {
  const found = (text: string) => problems(text).filter((one) => one.endsWith('RG2216'));
  const members = (labels = 'app: x') =>
    ['a', 'b']
      .map((zone) => set(`ingester-${zone}`).replace(/$/, `spec: { replicas: 3, template: { metadata: { labels: { ${labels} } } } }\n`))
      .join('');
  const budget = (amount: string, selector = 'matchLabels: { app: x }') =>
    `---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: { name: pdb }\nspec: { selector: { ${selector} }, ${amount} }\n`;
  const evicting = '  rollout: { engine: onDelete, rotateBy: evict }\n';

  it.each<[string, string, boolean]>([
    ['a budget of none', `${group(evicting)}${members()}${budget('maxUnavailable: 0')}`, true],
    ['a budget of all', `${group(evicting)}${members()}${budget('minAvailable: 6')}`, true],
    ['a share of all', `${group(evicting)}${members()}${budget('minAvailable: 100%')}`, true],
    ['a budget that spares one', `${group(evicting)}${members()}${budget('minAvailable: 5')}`, false],
    ['pods that are deleted', `${group(evicting.replace('evict', 'delete'))}${members()}${budget('maxUnavailable: 0')}`, false],
    [
      'the engine partition, which asks budgets too',
      `${group('  rollout: { engine: partition }\n')}${members()}${budget('maxUnavailable: 0')}`,
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

  it('counts followers as their leader has pods', () => {
    const follows = group(evicting).replace('ingester-b }', 'ingester-b, follows: a }');
    const sets = members().replace(/(ingester-b[\s\S]*)replicas: 3, /, '$1');
    expect(found(`${follows}${sets}${budget('minAvailable: 6')}`)).toHaveLength(1);
    expect(found(`${follows}${sets}${budget('minAvailable: 5')}`)).toEqual([]);
  });

  it('of a zone, and of the others once', () => {
    const zero = '  rollout: { engine: onDelete, maxUnavailable: 0 }\n';
    expect(found(group(zero))).toEqual(['6:48 RG2216']);
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
    const text = 'wave canary takes no pod, since zone a has none; the first pods with the new version are those of wave rest';
    expect(said(`${group(canary)}${sized('ingester-a', 0)}${sized('ingester-b', 3)}`)).toEqual([text]);
    const counted = group(canary).replace('ingester-a }', 'ingester-a, replicas: { count: 0 } }');
    expect(said(`${counted}${sized('ingester-a', 3)}${sized('ingester-b', 3)}`)).toEqual([text]);
  });

  it('names all stages of a schedule', () => {
    const schedule = '  rollout: { engine: onDelete, schedule: { kind: linear, start: 50%, step: 50% } }\n';
    const [text] = said(`${group(schedule)}${sized('ingester-a', 0)}${sized('ingester-b', 3)}`);
    expect(text).toBe(
      'waves stage-1 to stage-2 take no pod, since zone a has none; the first pods with the new version are those of wave rest',
    );
  });

  it('is none where the zone has pods, where nobody says how many, and where no zone has any', () => {
    expect(said(`${group(canary)}${sized('ingester-a', 1)}${sized('ingester-b', 3)}`)).toEqual([]);
    expect(said(`${group(canary)}${set('ingester-a')}${set('ingester-b')}`)).toEqual([]);
    expect(said(`${group(canary)}${sized('ingester-a', 0)}${sized('ingester-b', 0)}`)).toEqual([]);
    expect(said(group(canary))).toEqual([]);
  });
});
