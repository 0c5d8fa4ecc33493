import { describe, expect, it } from 'vitest';
import { adoptionDigest } from '../../../policies/adopt/statefulset.ts';
import { placeText } from '../../../policies/findings/finding.ts';
import { readIntent } from '../../../policies/live/intents.ts';
import { type LiveInput, type LivePolicies, resolveLive } from '../../../policies/live/sources.ts';
import { usualAgentNamespace } from '../../../policies/objects/agent-deployment.ts';
import { statefulSet } from '../adopt/kit.ts';

const apiVersion = 'rollout-group.dev/v1alpha1';
const serverMetadata = {
  uid: 'f5b0',
  resourceVersion: '17',
  generation: 3,
  creationTimestamp: '2026-01-01T00:00:00Z',
  managedFields: [{ manager: 'kubectl', fieldsV1: { 'f:spec': {} } }],
};

interface GroupText {
  readonly name?: string;
  readonly namespace?: string;
  readonly sets?: readonly string[];
  readonly maxUnavailable?: unknown;
  readonly annotations?: Readonly<Record<string, string>>;
}

function group({ name = 'ingester', namespace = 'mimir', sets = ['ingester-zone-a'], maxUnavailable = 1, annotations }: GroupText = {}) {
  return {
    apiVersion,
    kind: 'RolloutGroup',
    metadata: { name, namespace, ...serverMetadata, ...(annotations && { annotations }) },
    spec: {
      members: { zones: sets.map((set) => ({ name: set.slice(-1), statefulSet: set })) },
      rollout: { strategy: 'onDelete', maxUnavailable },
    },
    status: { phase: 'Done' },
  };
}

function policy(name: string, targets: unknown, namespace = 'mimir') {
  return {
    apiVersion,
    kind: 'RolloutPolicy',
    metadata: { name, namespace, ...serverMetadata },
    spec: { targets, limits: { minReplicas: 2 } },
  };
}

function intent(name: string, spec: Record<string, unknown> = {}) {
  const requestedBy = { user: 'jane', groups: ['oncall'], at: '2026-01-01T00:00:00Z' };
  return {
    apiVersion,
    kind: 'RolloutIntent',
    metadata: { name, namespace: 'mimir', ...serverMetadata },
    spec: { group: 'ingester', action: 'pause', requestedBy, ...spec },
  };
}

function exception(name: string) {
  const spec = {
    rule: 'window',
    target: { group: 'ingester' },
    allow: { anything: true },
    reason: 'hotfix',
    expires: '2027-01-01T00:00:00Z',
  };
  return { ...intent(name), kind: 'RolloutException', spec: { ...spec, requestedBy: intent(name).spec.requestedBy } };
}

const file = (...documents: readonly object[]) => [
  { name: 'policies.yaml', text: documents.map((one) => JSON.stringify(one)).join('\n---\n') },
];
const plain = (given: GroupText) => {
  const { status: _, ...rest } = group(given);
  return { ...rest, metadata: { name: rest.metadata.name, namespace: rest.metadata.namespace } };
};
const sets = ['a', 'b', 'c'].map((zone) => statefulSet({ name: `ingester-zone-${zone}` }));

function live(input: Partial<LiveInput>): LivePolicies {
  return resolveLive({ statefulSets: sets, order: ['directory', 'objects', 'adopted'], agentNamespace: usualAgentNamespace, ...input });
}

const groupsOf = (result: LivePolicies) =>
  result.groups.map(
    (one) => `${one.namespace}/${one.name} ${one.zones.map((zone) => zone.statefulSet.slice(-1)).join('')} ${result.origin(one)}`,
  );
const findingsOf = ({ findings }: LivePolicies) => findings.map((one) => `${one.code} ${placeText(one)}: ${one.message}`);

describe('a group of the cluster', () => {
  it('is adopted if no file or object defines it', () => {
    expect(groupsOf(live({}))).toEqual(['mimir/ingester abc adopted']);
  });

  it('is not adopted if adoption is no source', () => {
    expect(groupsOf(live({ order: ['directory', 'objects'] }))).toEqual([]);
  });

  it('replaces the whole adopted group of its member, with any name', () => {
    const result = live({ objects: [group({ name: 'mine', sets: ['ingester-zone-b'] })] });
    expect([groupsOf(result), findingsOf(result)]).toEqual([['mimir/mine b objects'], []]);
  });

  it('replaces the adopted group of its name, with any members', () => {
    expect(groupsOf(live({ objects: [group({ sets: ['other-z'] })] }))).toEqual(['mimir/ingester z objects']);
  });

  it('does not affect adopted groups of other namespaces', () => {
    expect(groupsOf(live({ objects: [group({ namespace: 'loki' })] }))).toEqual(['loki/ingester a objects', 'mimir/ingester abc adopted']);
  });

  it('comes from the first source; a second definition is a finding at its place', () => {
    const given = { directory: file(plain({ maxUnavailable: 2 })), objects: [group({ maxUnavailable: 3 })] };
    const limitOf = (result: LivePolicies) => result.groups[0]?.zones[0]?.maxUnavailable;
    const first = live(given);
    expect([limitOf(first), groupsOf(first), findingsOf(first)]).toEqual([
      2,
      ['mimir/ingester a directory'],
      ['RG2101 RolloutGroup mimir/ingester metadata.name: RolloutGroup mimir/ingester is defined twice; this definition is ignored'],
    ]);
    const second = live({ ...given, order: ['objects', 'directory', 'adopted'] });
    expect([limitOf(second), groupsOf(second)]).toEqual([3, ['mimir/ingester a objects']]);
    expect(findingsOf(second)).toEqual([expect.stringMatching(/^RG2101 policies\.yaml:1:\d+: /)]);
  });

  it('stays adopted if adoption is the first source, and the definition is a finding', () => {
    const result = live({ objects: [group({ name: 'mine' })], order: ['adopted', 'objects'] });
    expect(groupsOf(result)).toEqual(['mimir/ingester abc adopted']);
    expect(findingsOf(result)).toEqual([
      expect.stringContaining('RG2101 RolloutGroup mimir/mine metadata.name: RolloutGroup mimir/mine is defined twice'),
    ]);
  });

  it('is no second definition if the agent wrote it for its own directory', () => {
    const copy = group({ maxUnavailable: 3, annotations: { 'rollout-group.dev/source': 'directory' } });
    const result = live({ directory: file(plain({ maxUnavailable: 2 })), objects: [copy] });
    expect([groupsOf(result), findingsOf(result)]).toEqual([['mimir/ingester a directory'], []]);
  });

  it('that shares a StatefulSet with another one is a finding, and both exist to be blocked', () => {
    const result = live({ objects: [group({ name: 'one' }), group({ name: 'two' })] });
    expect([groupsOf(result), findingsOf(result)]).toEqual([
      ['mimir/one a objects', 'mimir/two a objects'],
      ['RG2102 RolloutGroup mimir/two spec.members.zones[0].statefulSet: the StatefulSet ingester-zone-a is in two groups: one and two'],
    ]);
  });

  it('of another namespace is omitted, and a file that defines one is a finding', () => {
    const result = live({ directory: file(plain({ namespace: 'loki' })), namespaces: ['mimir'] });
    expect(groupsOf(result)).toEqual(['mimir/ingester abc adopted']);
    expect(findingsOf(result)).toContainEqual(expect.stringContaining('the namespace loki, which the agent does not manage'));
  });

  it('finds its members by labels among the StatefulSets of the cluster', () => {
    const bySelector = {
      ...group(),
      spec: { ...group().spec, members: { selector: { matchLabels: { 'rollout-group': 'ingester' } }, expect: { count: 3 } } },
    };
    expect(groupsOf(live({ objects: [bySelector], order: ['objects'] }))).toEqual(['mimir/ingester abc objects']);
    const none = live({ objects: [bySelector], order: ['objects'], statefulSets: [] });
    expect([groupsOf(none), findingsOf(none)]).toEqual([
      [],
      ['RG2112 RolloutGroup mimir/ingester spec.members.selector: the selector finds no StatefulSet'],
    ]);
  });
});

describe('invalid definitions', () => {
  it('omit only themselves, with a finding at the field', () => {
    const result = live({ objects: [group({ name: 'bad', sets: ['x-z'], maxUnavailable: 'lots' }), group({ name: 'good' })] });
    expect(groupsOf(result)).toEqual(['mimir/good a objects']);
    expect(findingsOf(result)).toEqual([
      expect.stringContaining('RG2007 RolloutGroup mimir/bad spec.rollout.maxUnavailable: spec.rollout.maxUnavailable is "lots"'),
    ]);
  });

  it.each([
    ['its name', { sets: ['x-z'] }],
    ['its member', { name: 'mine' }],
  ])('leave no group of %s to adoption', (_case, text) => {
    expect(groupsOf(live({ objects: [group({ ...text, maxUnavailable: 'lots' })] }))).toEqual([]);
  });

  it('leave no group to a later source', () => {
    expect(groupsOf(live({ directory: file(plain({ maxUnavailable: 'lots' })), objects: [group()] }))).toEqual([]);
  });

  it.each<[string, unknown, string]>([
    ['an unknown kind', { ...group(), kind: 'RolloutGroups' }, 'RG2001'],
    ['another version', { ...group(), apiVersion: 'rollout-group.dev/v9' }, 'RG2002'],
    ['an unknown field', { ...group(), extra: 1 }, 'RG2003'],
    ['a key of JavaScript', JSON.parse(JSON.stringify(group()).replace('"strategy"', '"__proto__":{"x":1},"strategy"')), 'RG1011'],
    ['no object at all', 7, 'RG1012'],
    ['nothing', null, 'RG1012'],
  ])('are a finding: %s', (_case, raw, code) => {
    const result = live({ objects: [raw], order: ['objects'] });
    expect([groupsOf(result), result.findings[0]?.code]).toEqual([[], code]);
  });

  it('are rejected if they are nested deeper than any policy', () => {
    let when: unknown = 1;
    for (let depth = 0; depth < 5000; depth += 1) when = { '!': [when] };
    const deep = {
      ...policy('deep', { all: true }),
      spec: { targets: { all: true }, rules: [{ name: 'r', actions: ['rollout'], effect: 'deny', when }] },
    };
    const result = live({ objects: [deep] });
    expect([result.policies.map((one) => one.name), result.findings.map((one) => one.code)]).toEqual([['unreadable-deep'], ['RG1003']]);
  });
});

describe('policies and intents', () => {
  it('are read from every source, with objects as their places', () => {
    const result = live({ directory: file(policyText('from-file')), objects: [policy('from-object', { groups: ['ingester'] })] });
    expect(result.policies.map((one) => [one.name, one.limitSources['minReplicas']])).toEqual([
      ['from-file', { file: 'policies.yaml', line: 1, column: expect.any(Number) }],
      ['from-object', { object: 'RolloutPolicy mimir/from-object', field: 'spec.limits.minReplicas' }],
    ]);
  });

  it('of a source that is not listed are ignored, except requests', () => {
    const result = live({ objects: [policy('p', { all: true }), intent('stop')], order: ['adopted'] });
    expect([result.policies, result.intents.map((one) => one.name)]).toEqual([[], ['stop']]);
  });

  it('have a verified requester only through the webhook, and never from a file', () => {
    const given = {
      objects: [intent('stop'), exception('more')],
      directory: file({ ...intent('file'), metadata: { name: 'file', namespace: 'mimir' } }),
    };
    expect(live(given).intents.map((one) => one.requestedBy)).toEqual([undefined, undefined]);
    const requesters = [given, { ...given, areIntentsStamped: true }].map((one) =>
      live(one).exceptions.map(({ requestedBy }) => requestedBy?.user),
    );
    expect(requesters).toEqual([[undefined], ['jane']]);
    expect(live({ ...given, areIntentsStamped: true }).intents.map((one) => [one.name, one.requestedBy?.user])).toEqual([
      ['file', undefined],
      ['stop', 'jane'],
    ]);
  });

  it('have every field of the object that the engine reads', () => {
    const given = intent('back', {
      ...{
        action: 'abort',
        rollback: true,
        zone: 'a',
        wave: 'first',
        rule: 'policy/rule',
        gate: 'errors',
        digest: '0'.repeat(32),
        replicas: 2,
      },
      ...{
        ordinals: [1],
        undone: [{ zone: 'a', revision: 'old', to: 'new' }],
        runId: 'r1',
        reason: 'wrong image',
        expires: '2027-01-01T00:00:00Z',
      },
    });
    const { intents } = live({ objects: [given], areIntentsStamped: true });
    expect(intents).toEqual([readIntent(given)]);
    expect(intents[0]?.rollback).toBe(true);
  });

  it('of the namespace of the agent may name other namespaces, and no other may', () => {
    const everywhere = { all: true, namespaces: ['mimir'] };
    const result = live({ objects: [policy('ours', everywhere, usualAgentNamespace), policy('theirs', everywhere, 'loki')] });
    expect(result.findings.map((one) => `${one.code} ${placeText(one)}`)).toEqual([
      'RG2302 RolloutPolicy loki/theirs spec.targets.namespaces',
    ]);
  });
});

function policyText(name: string) {
  const { metadata: _, ...rest } = policy(name, { groups: ['ingester'] });
  return { ...rest, metadata: { name, namespace: 'mimir' } };
}

describe('the digest', () => {
  const objects = [group(), policy('one', { all: true }), policy('two', { groups: ['ingester'] }), group({ name: 'other', sets: ['x-z'] })];

  it('and the findings are the same in any order of objects and StatefulSets', () => {
    const turned = live({ objects: [...objects].reverse(), statefulSets: [...sets].reverse() });
    const straight = live({ objects });
    expect([turned.digest, turned.findings, turned.groups]).toEqual([straight.digest, straight.findings, straight.groups]);
    expect(straight.digest).toMatch(/^[0-9a-f]{64}$/);
  });

  it('depends on the content of a definition and not on its place', () => {
    const inFile = live({ directory: file(plain({})) });
    expect(inFile.digest).toBe(live({ objects: [group()] }).digest);
    expect(inFile.digest).not.toBe(live({ objects: [group({ maxUnavailable: 2 })] }).digest);
  });
});

describe('the digest of the adopted settings', () => {
  const base = adoptionDigest(statefulSet());

  it.each<[string, Parameters<typeof statefulSet>[0], boolean]>([
    ['a label of ours', { labels: { 'grafana.com/no-downscale': 'true' } }, true],
    ['an annotation of ours', { annotations: { 'rollout-max-unavailable': '2' } }, true],
    ['the update strategy', { strategy: 'RollingUpdate' }, true],
    ['the service', { serviceName: 'other' }, true],
    ['the label of pods', { podLabels: {} }, true],
    ['a first downscale', { annotations: { 'grafana.com/last-downscale': '2026-01-01T00:00:00Z' } }, true],
    ['an annotation of somebody else', { annotations: { 'kubectl.kubernetes.io/x': 'y' } }, false],
  ])('changes with %s', (_case, text, isChanged) => {
    expect(adoptionDigest(statefulSet(text)) !== base).toBe(isChanged);
  });

  it('does not change with the next downscale, and is empty without an adopted group', () => {
    const at = (time: string) => adoptionDigest(statefulSet({ annotations: { 'grafana.com/last-downscale': time } }));
    expect(at('2026-01-01T00:00:00Z')).toBe(at('2026-01-02T00:00:00Z'));
    expect([adoptionDigest({ kind: 'StatefulSet', metadata: { name: 'a' } }), adoptionDigest(null)]).toEqual(['', '']);
  });
});
