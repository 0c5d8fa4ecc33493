import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lintPolicies } from '../../policies/lint/lint.ts';
import { group, header, onDelete, policy, problems, set, waves } from './lint-texts.ts';

const exception = (name: string, spec: string) =>
  `---\n${header('RolloutException', name)}  ${spec}\n  allow: { anything: true }\n  reason: INC-1\n`;
const autoscaler = (target: string) =>
  `---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: { name: auto }\nspec: { scaleTargetRef: { apiVersion: apps/v1, kind: StatefulSet, name: ${target} } }\n`;
const allow = (name: string, times: string) => policy(`  windows: [{ name: w, kind: allow, actions: [rollout], ${times} }]\n`, name);
const cron = (text: string, duration: string, zone = 'Europe/Amsterdam') =>
  `schedule: { cron: "${text}", duration: ${duration}, timeZone: ${zone} }`;

describe('lint has no finding for', () => {
  it.each([
    ['a star of followers', group(onDelete).replace('ingester-b }', 'ingester-b, follows: a }')],
    [
      'waves that stay level, or count pods first',
      group(
        waves(
          'name: one, zones: [a], pods: 1',
          'name: half, zones: [a, b], percent: 50',
          'name: soak, zones: [a], percent: 50',
          'name: rest, zones: [a, b], percent: 100',
        ),
      ),
    ],
    [
      'an approval after a wave that is not the last, and before the last',
      group(
        waves(
          'name: one, zones: [a], percent: 100, after: { approval: {} }',
          'name: rest, zones: [b], percent: 100, before: { approval: {} }',
        ),
      ),
    ],
    ['rollback with an engine that keeps revisions', group('  rollout: { strategy: pinned, onFailure: rollback }\n')],
    [
      'gates without a condition that have a natural one',
      group(
        `${waves('name: all, zones: [a, b], percent: 100, after: { gates: [up, web, kv] }')}  gates: [{ name: up, podsAvailable: {} }, { name: web, http: { port: 80, path: / } }, { name: kv, consul: { source: dc, service: kv, passing: 2 } }]\n`,
      ),
    ],
    [
      'a count that its bounds allow',
      group(`${onDelete}  replicas: { count: 9, bounds: { min: 3, max: 9, multipleOf: 3, parity: odd } }\n`),
    ],
    ['a count of zero within odd bounds', group(`${onDelete}  replicas: { count: 0, bounds: { max: 9, parity: odd } }\n`)],
    ['bounds of the follower alone', group(onDelete).replace('ingester-b }', 'ingester-b, follows: a, replicas: { bounds: { min: 1 } } }')],
    [
      'a partition with a named group',
      group(`${onDelete}  disruption: { maxUnavailable: 1, partition: { pattern: '(?P<zone>[a-z]+)-(?:x|y)([0-9]+)', group: 2 } }\n`),
    ],
    ['manifests of other groups in the namespace', `${group(onDelete)}${set('store-gateway')}`],
    [
      'groups and policies that other files define',
      `${policy('  limits: { minInterval: 1m }\n')}${exception('one', 'rule: platform/drained\n  target: { group: ingester }\n  expires: "2026-12-01T00:00:00Z"')}`,
    ],
    ['an autoscaler of a leader', `${group(onDelete).replace('ingester-b }', 'ingester-b, follows: a }')}${autoscaler('ingester-a')}`],
    [
      'an autoscaler of something else',
      `${group(`${onDelete}  replicas: { count: 3 }\n`)}${autoscaler('querier')}${autoscaler('ingester-a').replace('name: auto', 'name: auto, namespace: loki')}`,
    ],
    ['StatefulSets that are there', `${group(onDelete)}${set('ingester-a')}${set('ingester-b')}`],
    [
      'selectors that a label tells apart',
      `${header('RolloutGroup', 'x')}  members: { selector: { matchLabels: { zone: a } }, expect: { count: 1 } }\n${onDelete}---\n${header('RolloutGroup', 'z')}  members: { selector: { matchLabels: { zone: b } }, expect: { count: 1 } }\n${onDelete}`,
    ],
    [
      'a limit that is stricter for one group of two',
      `${group(onDelete)}---\n${group('  rollout: { strategy: onDelete, maxUnavailable: 5 }\n', ['a'], 'other')}${policy('  limits: { maxUnavailable: 2 }\n', 'p', 'all: true')}`,
    ],
    [
      'a number against a percentage',
      `${group('  rollout: { strategy: onDelete, maxUnavailable: 10% }\n')}${policy('  limits: { maxUnavailable: 3 }\n')}`,
    ],
    [
      'exceptions of two zones, or one after the other',
      `${group(onDelete)}${exception('one', 'rule: zone-gap\n  target: { group: ingester, zone: a }\n  expires: "2026-12-01T00:00:00Z"')}${exception('two', 'rule: zone-gap\n  target: { group: ingester, zone: b }\n  expires: "2026-12-01T00:00:00Z"')}${exception('three', 'rule: zone-gap\n  target: { group: ingester }\n  notBefore: "2026-12-01T00:00:00Z"\n  expires: "2026-12-02T00:00:00Z"')}`,
    ],
    [
      'windows of two policies that share an hour',
      `${group(onDelete)}${allow('days', cron('0 9 * * *', '8h'))}${allow('evenings', cron('0 16 * * *', '8h'))}`,
    ],
    [
      'windows of one policy that never meet',
      `${group(onDelete)}${policy(`  windows:\n    - { name: day, kind: allow, actions: [rollout], ${cron('0 9 * * *', '1h')} }\n    - { name: night, kind: allow, actions: [rollout], ${cron('0 21 * * *', '1h')} }\n`)}`,
    ],
    [
      'windows of two policies for different actions',
      `${group(onDelete)}${allow('days', cron('0 9 * * *', '1h'))}${allow('nights', cron('0 21 * * *', '1h')).replace('[rollout]', '[scaleDown]')}`,
    ],
    [
      'a yearly window that meets a range',
      `${group(onDelete)}${allow('yearly', cron('0 9 24 12 *', '2h', 'UTC'))}${allow('once', 'ranges: [{ from: "2026-06-01T00:00:00Z", to: "2026-06-02T00:00:00Z" }, { from: "2026-12-24T10:00:00Z", to: "2026-12-24T23:00:00Z" }]')}`,
    ],
    [
      'labels with dots in messages',
      `${group(onDelete)}${policy('  rules: [{ name: r, actions: [rollout], effect: deny, message: "of ${target.labels.app.kubernetes.io/name}" }]\n')}`,
    ],
  ])('%s', (_, text) => {
    expect(problems(text)).toEqual([]);
  });

  it('names in an invalid document', () => {
    const text = `${group('  rollout: { strategy: onDelete, typo: 1 }\n')}${policy('  limits: { minInterval: 1m }\n')}`;
    expect(problems(text)).toEqual(['6:34 RG2003']);
  });
});

describe('lint compares members with', () => {
  const strategy = (name: string, text: string) => set(name).replace(/$/, `spec: { updateStrategy: ${text} }\n`);
  const pinned = '  rollout: { strategy: pinned }\n';

  it.each([
    ['the engine: no strategy means RollingUpdate', `${group(onDelete, ['a'])}${strategy('ingester-a', '{}')}`, ['11:9 RG2117']],
    ['the engine: OnDelete has no partition', `${group(pinned, ['a'])}${strategy('ingester-a', '{ type: OnDelete }')}`, ['11:33 RG2117']],
    ['the strategy: pinned sets the partition', `${group(pinned, ['a'])}${strategy('ingester-a', '{ type: RollingUpdate }')}`, []],
    ['the source of replicas: count', `${group(`${onDelete}  replicas: { count: 3 }\n`)}${autoscaler('ingester-a')}`, ['12:73 RG2118']],
  ])('%s', (_, text, expected) => {
    expect(problems(text)).toEqual(expected);
  });
});

describe('lint of a partition in a manifest', () => {
  const member = (metadata: string, partition: number) =>
    `---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: { name: ingester-a, namespace: mimir${metadata} }\nspec: { updateStrategy: { type: RollingUpdate, rollingUpdate: { partition: ${partition} } } }\n`;
  const hintOf = (strategy: string, text: string) =>
    lintPolicies([{ name: 'a.yaml', text: `${group(`  rollout: { strategy: ${strategy} }\n`, ['a'])}${text}` }], {
      namespace: 'mimir',
    }).findings.map(({ code, hint }) => `${code} ${hint}`);
  const remove = 'RG2117 remove the line spec.updateStrategy.rollingUpdate.partition, and keep type: RollingUpdate';
  const dumped = '; the API server always stores a partition, 0 by default';

  it.each([
    ['pinned', member('', 0), [`${remove}${dumped}`]],
    ['pinned', member(', uid: 1b2c', 3), [`${remove}${dumped}`]],
    ['pinned', member('', 3), [remove]],
    ['partition', member(', uid: 1b2c', 1_000_000), [`${remove}${dumped}`]],
    ['partition', member('', 1_000_000), [remove]],
    ['pinned', member(', uid: 1b2c', 1_000_000), []],
  ])('under the strategy %s: %s', (strategy, text, expected) => {
    expect(hintOf(strategy, text)).toEqual(expected);
  });

  it('and has no finding after the line is removed, as the hint says', () => {
    const dump = member(', uid: 1b2c', 0);
    const mended = [dump.replace('rollingUpdate: { partition: 0 }', 'rollingUpdate: {}'), dump.replace('{ partition: 0 }', '')];
    expect(mended.flatMap((text) => hintOf('pinned', text))).toEqual([]);
  });
});

it.each([
  ['the query of a URL', 'prometheus: { url: "https://prometheus/?token=hunter2" }'],
  ['the path of a webhook', 'prometheus: { url: "https://hooks.example.com/services/hunter2", other: 1 }'],
  ['a token that is no reference', 'consul: { url: "https://consul", token: hunter2 }'],
  ['a quoted password', 'prometheus: { url: "https://x", basicAuth: { username: me, password: "hunter2" } }'],
  ['a quoted password with a space', 'prometheus: { url: "https://x", basicAuth: { password: "pass hunter2" } }'],
  ['a variable whose name contains password', 'prometheus: { url: "https://x", db_password_old: hunter2 }'],
  ['a cookie', 'prometheus: { url: "https://x", cookie: session-hunter2 }'],
])('lint shows no credential, in messages and excerpts: %s', (_, spec) => {
  const text = `${header('MetricSource', 'prod')}  usableFrom: { namespaces: [mimir] }\n  ${spec}\n`;
  const { findings } = lintPolicies([{ name: 'a.yaml', text }]);
  expect(findings.map(({ code }) => code)).not.toEqual([]);
  expect(JSON.stringify(findings)).not.toContain('hunter2');
});

// A pattern whose time grows with the square of the length would not return: the webhook reads values of any length.
it.each([' ', '?', 'a', 'token', '://a', 'https://hook', 'passw', 'token: ', 'Bearer '])(
  'lint reads a value of 200,000 characters: %j',
  (part) => {
    const spec = `prometheus: { url: 5 }\n  usableFrom: "${part.repeat(200_000 / part.length)}"`;
    const { findings } = lintPolicies([{ name: 'a.yaml', text: `${header('MetricSource', 'prod')}  ${spec}\n` }]);
    expect(findings.map(({ code }) => code)).toContain('RG2005');
  },
);

it('lint shows no password of a URL, in messages and excerpts', () => {
  const source = `${header('MetricSource', 'prod')}  usableFrom: { namespaces: [mimir] }\n  prometheus: { url: "https://me:hunter2@prometheus" }\n`;
  const { findings } = lintPolicies([{ name: 'a.yaml', text: source }]);
  expect(findings.map(({ code, message }) => `${code} ${message}`)).toEqual([
    'RG2007 spec.prometheus.url is "https://**********@prometheus", which is not an address of a server',
  ]);
  expect(JSON.stringify(findings)).not.toContain('hunter2');
});

it('lint has only notices for a group and a policy that use most of the format', () => {
  const complete = readFileSync(join(import.meta.dirname, 'complete.yaml'), 'utf8');
  const members = ['a', 'b', 'c'].map((zone) => set(`ingester-zone-${zone}`).replace('metadata: {', 'metadata: { namespace: mimir,'));
  const { findings } = lintPolicies([
    { name: 'policies.yaml', text: complete },
    { name: 'members.yaml', text: members.join('') },
  ]);
  expect(findings.map(({ severity, code, message }) => `${severity} ${code} ${message}`)).toMatchInlineSnapshot(`
    [
      "notice RG2206 the user group oncall cannot be checked: only the cluster knows its user groups",
      "notice RG2206 the metric source prod is not in the files: only the agent can check it",
      "notice RG2206 the channel sre is not in the files: only the agent can check it",
      "notice RG2206 the metric source prod is not in the files: only the agent can check it",
    ]
  `);
});

describe('lint gets from its options', () => {
  const foreign = policy('  limits: { minInterval: 1m }\n', 'p', 'all: true, namespaces: [loki]');

  it('the namespace that may hold policies for other namespaces', () => {
    expect([problems(foreign), problems(foreign, { agentNamespace: 'mimir' })]).toEqual([['6:25 RG2302'], []]);
  });

  it('the rules of the engine', () => {
    const text = `${group(onDelete)}${exception('one', 'rule: zone-gaps\n  target: { group: ingester }\n  expires: "2026-12-01T00:00:00Z"')}`;
    expect([problems(text), problems(text, { engineRules: ['zone-gap'] })]).toEqual([[], ['12:9 RG2305']]);
  });
});

describe('several files', () => {
  const [one, other] = [
    group(onDelete),
    `${group(onDelete, ['a'], 'ingester')}${policy('  limits: { minInterval: 1m }\n', 'p', 'groups: [ingestr]')}`,
  ];

  it('have the same findings in any order', () => {
    const files = [one, other, set('ingester-a'), 'x: 1\n'].map((text, index) => ({ name: `${index}.yaml`, text }));
    const findings = lintPolicies(files, { namespace: 'mimir' }).findings;
    expect(lintPolicies([...files].reverse(), { namespace: 'mimir' }).findings).toEqual(findings);
    expect(
      findings.map((finding) => `${finding.file}:${finding.line}:${finding.column} ${finding.code} ${finding.hint ?? ''}`),
    ).toMatchInlineSnapshot(`
      [
        "0.yaml:5:84 RG2110 ",
        "1.yaml:3:19 RG2101 remove one of them",
        "1.yaml:12:23 RG2301 did you mean ingester",
        "3.yaml:1:1 RG1012 add apiVersion and kind, or move the file out of the directory",
      ]
    `);
  });
});

describe('adopted groups', () => {
  const adopted = `apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: ingester-a
  labels: { rollout-group: ingester }
  annotations: { rollout-max-unavailable: "0" }
spec: { template: { metadata: { labels: { name: ingester-a } } }, updateStrategy: { type: OnDelete } }
`;

  it('are read together with the policies, with findings at the annotation', () => {
    expect(problems(adopted)).toEqual(['6:43 RG4001']);
    expect(problems(`${adopted}${policy('  limits: { minInterval: 1m }\n')}`)).toEqual(['6:43 RG4001']);
  });

  it('are not checked after a file defines the group', () => {
    expect(problems(`${adopted}---\n${group(onDelete, ['a'])}`)).toEqual([]);
  });
});
