// A policy with errors forbids at least what it may have forbidden: scenarios of objects and of a directory.
import { describe, expect, it } from 'vitest';
import { policiesFor } from '../../../policies/join.ts';
import { type LiveInput, resolveLive } from '../../../policies/live/sources.ts';
import { statefulSet } from '../adopt/kit.ts';

const apiVersion = 'rollout-group.dev/v1alpha1';
const agentNamespace = 'ops';
const sets = [
  statefulSet(),
  statefulSet({ name: 'store-gateway-zone-a', group: 'store-gateway' }),
  statefulSet({ name: 'ingester-zone-a', namespace: 'loki' }),
];

const rule = (change: object = {}) => ({ name: 'busy', actions: ['rollout'], effect: 'warn', onUnknown: 'allow', ...change });
const policy = (spec: object, namespace = 'mimir') => ({
  apiVersion,
  kind: 'RolloutPolicy',
  metadata: { name: 'load', namespace },
  spec: { targets: { all: true }, ...spec },
});

/** The groups that are held, and the codes of what is wrong. */
function held(input: Partial<LiveInput>) {
  const live = resolveLive({ statefulSets: sets, order: ['directory', 'objects', 'adopted'], agentNamespace, ...input });
  const isHeld = (group: (typeof live.groups)[number]): boolean =>
    policiesFor(live.policies, group, agentNamespace).some(
      ({ name, rules }) => name.startsWith('unreadable-') && rules.some(({ effect, when }) => effect === 'hold' && when === undefined),
    );
  return {
    groups: live.groups.filter(isHeld).map(({ namespace, name }) => `${namespace}/${name}`),
    codes: [...new Set(live.findings.filter(({ severity }) => severity === 'error').map(({ code }) => code))],
    names: live.policies.map(({ name }) => name),
    isSound: live.isDirectorySound,
  };
}

const inMimir = ['mimir/ingester', 'mimir/store-gateway'];

describe('an invalid RolloutPolicy', () => {
  it.each<[string, object, string]>([
    ['a field that does not exist', { rules: [rule({ efect: 'deny' })] }, 'RG2003'],
    ['rules that are no list', { rules: 'nonsense' }, 'RG2005'],
    ['a condition with an operator that does not exist', { rules: [rule({ when: { greater: [1, 2] } })] }, 'RG3001'],
    ['a condition on a variable that does not exist', { rules: [rule({ when: { '>': [{ var: 'target.replica' }, 3] } })] }, 'RG3006'],
    [
      'an unreadable schedule',
      { windows: [{ name: 'w', kind: 'deny', actions: ['rollout'], schedule: { cron: '99 * * * *', duration: '1h', timeZone: 'UTC' } }] },
      'RG2401',
    ],
    [
      'a range that ends before it begins',
      {
        windows: [
          { name: 'w', kind: 'deny', actions: ['rollout'], ranges: [{ from: '2026-12-24T00:00:00Z', to: '2026-12-23T00:00:00Z' }] },
        ],
      },
      'RG2406',
    ],
  ])('blocks its targets: %s', (_, spec, code) => {
    expect(held({ objects: [policy(spec)] })).toMatchObject({ groups: inMimir, codes: [code], names: ['unreadable-load'] });
  });

  const broken = { rules: 'nonsense' };

  it('blocks only its targets, if they are readable', () => {
    expect(held({ objects: [policy({ ...broken, targets: { groups: ['ingester'] } })] }).groups).toEqual(['mimir/ingester']);
    expect(held({ objects: [policy({ ...broken, targets: { all: true, namespaces: ['loki'] } }, agentNamespace)] }).groups).toEqual([
      'loki/ingester',
    ]);
    expect(held({ objects: [policy({ ...broken, targets: { group: 'ingester' } })] }).groups).toEqual(inMimir);
    expect(held({ objects: [policy({ ...broken, targets: { all: true, groups: ['ingester'] } })] }).groups).toEqual(inMimir);
  });

  it('may have any namespace as its target if it is in the namespace of the agent', () => {
    expect(held({ objects: [policy({ targets: 7 }, agentNamespace)] }).groups).toEqual(['loki/ingester', ...inMimir]);
    expect(held({ objects: [policy({ targets: 7 }, 'elsewhere')] }).groups).toEqual([]);
  });

  it('is used if only a message names a missing variable', () => {
    const { groups, names } = held({ objects: [policy({ rules: [rule({ message: 'see {{target.nothing}}' })] })] });
    expect({ groups, names }).toEqual({ groups: [], names: ['load'] });
  });
});

describe('a directory', () => {
  const file = (text: string) => [{ name: 'policies.yaml', text }];

  it.each([
    ['a file that is no YAML', 'kind: RolloutPolicy\nspec: ['],
    ['a policy with an error', JSON.stringify(policy({ rules: 'nonsense' }))],
    ['a condition with an error', JSON.stringify(policy({ rules: [rule({ when: { greater: [1, 2] } })] }))],
    ['a group with an error', JSON.stringify({ apiVersion, kind: 'RolloutGroup', metadata: { name: 'x' }, spec: {} })],
  ])('with %s blocks every group', (_, text) => {
    expect(held({ directory: file(text) })).toMatchObject({ groups: ['loki/ingester', ...inMimir], isSound: false });
  });

  it('is valid although objects and StatefulSets have errors', () => {
    const missing = { ...policy({ targets: { groups: ['no-such-group'] } }) };
    const result = held({ directory: file(JSON.stringify(missing)), objects: [policy({ rules: 'nonsense' })], statefulSets: [] });
    expect(result.isSound).toBe(true);
  });

  it('that was not read blocks no group', () => {
    expect(held({ directory: file('spec: ['), order: ['objects', 'adopted'] }).groups).toEqual([]);
  });
});

it('an exception with errors permits nothing', () => {
  const exception = { apiVersion, kind: 'RolloutException', metadata: { name: 'x', namespace: 'mimir' }, spec: { rule: 'zone-gap' } };
  const live = resolveLive({ objects: [exception], statefulSets: sets, order: ['objects', 'adopted'], agentNamespace });
  expect([live.exceptions, live.findings.map(({ severity }) => severity)]).toEqual([[], expect.arrayContaining(['error'])]);
});
