// One changed value of a group or policy: the review names it, and nothing else, and the reverted change is the opposite.
import { describe, expect, it } from 'vitest';
import { readPolicyFiles } from '../../plugin/policy-files.ts';
import type { PolicyEffect } from '../../review/document.ts';
import { reviewPolicies } from '../../review/review.ts';
import type { Side } from '../../review/sides.ts';
import { withValue } from './with-value.ts';

const zones = ['a', 'b', 'c'].map((name) => ({ name, statefulSet: `x-${name}` }));
const group = {
  members: { zones },
  replicas: { count: 3, bounds: { min: 2 } },
  scaling: { up: { followersWaitFor: 'leaderReady' }, down: { betweenZones: '1h' } },
  rollout: {
    strategy: 'onDelete',
    maxUnavailable: 2,
    minInterval: '1m',
    waves: [
      { name: 'canary', zones: ['a'], pods: 1, after: { soak: '1h', gates: ['g'] } },
      { name: 'rest', zones: ['a', 'b', 'c'], percent: 100, before: { approval: { count: 2, from: ['oncall'] } } },
    ],
    deadlines: { progress: '10m' },
  },
  gates: [
    { name: 'g', http: { port: 8080, path: '/ready' }, failureLimit: 2 },
    { name: 'errors', prometheus: { source: 'prom', query: 'sum(errors)' }, pass: { '<': [{ var: 'value' }, 1] } },
  ],
  protect: { noDelete: true },
};
const followers = { ...group, members: { zones: zones.map((zone) => (zone.name === 'a' ? zone : { ...zone, follows: 'a' })) } };
const target = (zone: string) => ({ '==': [{ var: 'target.zone' }, zone] });
const policy = {
  targets: { all: true },
  inputs: { metrics: { queue: { source: 'prom', query: 'sum(queue)' } } },
  rules: [
    { name: 'queue', actions: ['rollout'], effect: 'hold', when: { '>': [{ var: 'inputs.metrics.queue' }, 5] } },
    { name: 'zone', actions: ['rollout'], effect: 'hold', when: target('a') },
    { name: 'unreached', actions: ['rollout'], effect: 'hold', when: { '==': [{ var: 'target.zone' }, 'elsewhere'] } },
  ],
  windows: [{ name: 'nights', kind: 'deny', actions: ['rollout'], schedule: { cron: '0 20 * * *', duration: '8h', timeZone: 'UTC' } }],
  limits: { maxUnavailable: 3, minReplicas: 1 },
};

function sideOf(groupSpec: unknown, policySpec: unknown): Side {
  const document = (kind: string, name: string, spec: unknown) =>
    JSON.stringify({ apiVersion: 'rollout-group.dev/v1alpha1', kind, metadata: { name, namespace: 'n' }, spec });
  const files = [
    { name: 'group.json', text: document('RolloutGroup', 'x', groupSpec) },
    { name: 'policy.json', text: document('RolloutPolicy', 'p', policySpec) },
  ];
  const { findings, resolution } = readPolicyFiles(files, { agentNamespace: 'rollout-group' });
  expect(findings.filter(({ code }) => code.startsWith('RG10') || code.startsWith('RG20')).map(({ message }) => message)).toEqual([]);
  return { bundle: resolution.bundle, manifests: [], agentNamespace: 'rollout-group' };
}

interface Change {
  /** The path of the value below `spec`. */
  readonly path: string;
  readonly to: unknown;
  /** The words with which each effect names the change. */
  readonly named: RegExp;
  /** The group before the change, if it is another one. */
  readonly from?: object;
}

const waves = /^the (?:setting waves\.|waves of n\/x change)/;
const changesOfGroup: readonly Change[] = [
  { path: 'members.zones.2.follows', to: undefined, named: /^the setting follows of n\/x/, from: followers },
  { path: 'members.zones.2.follows', to: 'b', named: /^the setting follows of n\/x/, from: followers },
  { path: 'members.zones', to: [...zones].reverse(), named: /^the order of zones of n\/x changes/ },
  { path: 'members.zones.1.paused', to: true, named: /^(?:the setting paused|the rule paused)/ },
  {
    path: 'replicas.count',
    to: 2,
    named: /^the setting replicas.count of n\/x falls from 3 to 2/,
    from: { ...group, replicas: { count: 3 } },
  },
  { path: 'replicas.count', to: 5, named: /^the setting replicas.count of n\/x rises from 3 to 5/ },
  { path: 'replicas.bounds.min', to: 1, named: /^the minimum of replicas of n\/x/ },
  { path: 'scaling.up.followersWaitFor', to: 'nothing', named: /^the setting followersWaitFor/, from: followers },
  { path: 'scaling.down.betweenZones', to: '2h', named: /^the time between zones of n\/x rises from 1h to 2h/ },
  { path: 'rollout.maxUnavailable', to: 1, named: /^the maximum of unavailable pods of n\/x falls from 2 to 1/ },
  { path: 'rollout.maxUnavailable', to: '50%', named: /^the (?:maximum of unavailable pods|setting maxUnavailable) of n\/x/ },
  { path: 'rollout.minInterval', to: '2m', named: /^the interval between replacements of n\/x rises from 1m to 2m/ },
  { path: 'rollout.order', to: 'ascending', named: /^the setting order of n\/x changes from descending to ascending/ },
  { path: 'rollout.strategy', to: 'partition', named: /^the setting strategy of n\/x changes from onDelete to partition/ },
  { path: 'rollout.deadlines.progress', to: '20m', named: /^the setting deadlines.progress/ },
  { path: 'rollout.waves.0.pods', to: 2, named: /^the setting waves.canary.pods of n\/x rises from 1 to 2/ },
  { path: 'rollout.waves.0.pods', to: 3, named: /^the setting waves.canary.pods of n\/x rises from 1 to 3/ },
  { path: 'rollout.waves.0.zones', to: ['b'], named: /^the setting waves.canary.zones of n\/x changes from x-a to x-b/ },
  { path: 'rollout.waves.0.zones', to: ['a', 'b'], named: /^the setting waves.canary.zones of n\/x/ },
  { path: 'rollout.waves.0', to: undefined, named: /^the setting waves.canary of n\/x is removed/ },
  { path: 'rollout.waves.0.name', to: 'first', named: waves },
  { path: 'rollout.waves.0.after.soak', to: '2h', named: /^the soak time of n\/x rises from 1h to 2h/ },
  { path: 'rollout.waves.0.after.gates', to: ['errors'], named: /^the setting waves.canary.after.gates of n\/x/ },
  { path: 'rollout.waves.1.zones', to: ['a', 'b'], named: /^the setting waves.rest.zones of n\/x changes from x-a, x-b, x-c to x-a, x-b/ },
  { path: 'rollout.waves.1.zones', to: ['a', 'c', 'b'], named: /^the setting waves.rest.zones of n\/x changes/ },
  { path: 'rollout.waves.1.percent', to: 50, named: /^the setting waves.rest.percent of n\/x falls from 100 to 50/ },
  {
    path: 'rollout.waves.1.before.approval.count',
    to: 1,
    named: /^the (?:required approval|setting waves.rest.before.approval.count) of n\/x/,
  },
  {
    path: 'rollout.waves.1.before.approval.from',
    to: ['sre'],
    named: /^the (?:required approval|setting waves.rest.before.approval.from) of n\/x/,
  },
  { path: 'gates.0.http.path', to: '/healthy', named: /^the setting gates.g.http.path of n\/x changes from \/ready to \/healthy/ },
  { path: 'gates.0.failureLimit', to: 3, named: /^the setting gates.g.failureLimit of n\/x rises from 2 to 3/ },
  { path: 'gates.1.prometheus.query', to: 'sum(other)', named: /^the setting gates.errors.prometheus.query of n\/x changes/ },
  { path: 'gates.1.pass', to: { '<': [{ var: 'value' }, 9] }, named: /^the setting gates.errors.pass of n\/x changes/ },
  { path: 'protect.noDelete', to: false, named: /^the protection noDelete of n\/x is removed/ },
];

const changesOfPolicy: readonly Change[] = [
  ...['queue', 'zone', 'unreached'].flatMap((name, index): readonly Change[] => [
    { path: `rules.${index}.actions`, to: ['scaleDown'], named: new RegExp(`^(?:the setting actions of )?rule p/${name} `) },
    { path: `rules.${index}.actions`, to: ['rollout', 'scaleDown'], named: new RegExp(`^(?:the setting actions of )?rule p/${name} `) },
    { path: `rules.${index}.effect`, to: 'deny', named: new RegExp(`^(?:the setting (?:effect|onUnknown) of )?rule p/${name} `) },
    { path: `rules.${index}.when`, to: target('b'), named: new RegExp(`^(?:the setting when of )?rule p/${name} changes`) },
    { path: `rules.${index}.when`, to: undefined, named: new RegExp(`^(?:the setting when of )?rule p/${name} `) },
    { path: `rules.${index}`, to: undefined, named: new RegExp(`^rule p/${name} is removed`) },
  ]),
  { path: 'inputs.metrics.queue.query', to: 'max(queue)', named: /^the setting query of metric queue of RolloutPolicy n\/p changes/ },
  { path: 'windows.0.schedule.duration', to: '9h', named: /window nights of RolloutPolicy n\/p/ },
  { path: 'windows.0.actions', to: ['scaleDown'], named: /window nights of RolloutPolicy n\/p/ },
  { path: 'limits.maxUnavailable', to: 1, named: /^the maximum of unavailable pods of n\/x falls from 2 to 1/ },
  { path: 'limits.minReplicas', to: 3, named: /^the minimum of replicas of n\/x rises from 2 to 3/ },
];

/** The policy of changes of the group, with a rule that tells zones apart. */
const zonePolicy = { targets: { all: true }, rules: policy.rules.slice(1, 2), limits: policy.limits };

const nowMs = Date.parse('2026-11-26T10:00:00Z');
const opposite = { loosened: 'tightened', tightened: 'loosened', changed: 'changed' } as const;

/** An effect and its decisions, with the sides in their order or exchanged. */
function told({ direction, rule, decisions }: PolicyEffect, isReverted: boolean): string {
  const answers = decisions.map(({ may, when, before, after }) => [may, when, ...(isReverted ? [after, before] : [before, after])]);
  return JSON.stringify([isReverted ? opposite[direction] : direction, rule, answers.map((one) => JSON.stringify(one)).sort()]);
}

describe('one change', () => {
  const cases = [
    ...changesOfGroup.map(
      (change) => [`RolloutGroup ${change.path} to ${JSON.stringify(change.to)}`, change, change.from ?? group, true] as const,
    ),
    ...changesOfPolicy.map((change) => [`RolloutPolicy ${change.path} to ${JSON.stringify(change.to)}`, change, policy, false] as const),
  ];
  it.each(cases)('of %s is named, is the only one named, and reverts to the opposite', (_, { path, to, named }, from, isOfGroup) => {
    const changed = withValue(from, path.split('.'), to);
    const [before, after] = isOfGroup
      ? [sideOf(from, zonePolicy), sideOf(changed, zonePolicy)]
      : [sideOf(group, from), sideOf(group, changed)];
    const there = reviewPolicies({ before, after }, nowMs).effects;
    const back = reviewPolicies({ before: after, after: before }, nowMs).effects;
    expect(there).not.toEqual([]);
    expect(there.map(({ cause }) => cause).filter((cause) => !named.test(cause))).toEqual([]);
    expect(back.map((effect) => told(effect, true)).sort()).toEqual(there.map((effect) => told(effect, false)).sort());
  });
});
