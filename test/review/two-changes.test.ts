// Two changed settings of a group: the review tells the effect of each, with the words with which it tells this change alone.
import { describe, expect, it } from 'vitest';
import { readPolicyFiles } from '../../plugin/policy-files.ts';
import { reviewPolicies } from '../../review/review.ts';
import type { Side } from '../../review/sides.ts';
import { withValue } from './with-value.ts';

const zones = ['a', 'b'].map((name) => ({ name, statefulSet: `x-${name}` }));
// Several pods of a zone are replaced at once only with parallel pod management.
const manifests = zones.map(({ statefulSet: name }) => ({
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: { name, namespace: 'n' },
  spec: {
    replicas: 6,
    podManagementPolicy: 'Parallel',
    serviceName: name,
    selector: { matchLabels: { name } },
    updateStrategy: { type: 'OnDelete' },
    template: { metadata: { labels: { name } }, spec: { containers: [{ name: 'main', image: 'main' }] } },
  },
}));

const group = {
  members: { zones },
  replicas: { count: 6 },
  rollout: {
    strategy: 'onDelete',
    maxUnavailable: 2,
    waves: [
      { name: 'canary', zones: ['a'], pods: 1, after: { soak: '1h' } },
      { name: 'rest', zones: ['a', 'b'], percent: 100 },
    ],
    deadlines: { progress: '10m' },
  },
};

function sideOf(spec: unknown): Side {
  const text = JSON.stringify({
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutGroup',
    metadata: { name: 'x', namespace: 'n' },
    spec,
  });
  const { resolution } = readPolicyFiles([{ name: 'group.json', text }], { agentNamespace: 'rollout-group' });
  expect(resolution.bundle.groups).toHaveLength(1);
  return { bundle: resolution.bundle, manifests, agentNamespace: 'rollout-group' };
}

const nowMs = Date.parse('2026-11-26T10:00:00Z');

/** Returns the directions and causes of a change, and whether a decision shows the effect. */
function told(changes: readonly Change[], isReverted = false): readonly string[] {
  const changed = changes.reduce<unknown>((spec, { path, to }) => withValue(spec, path.split('.'), to), group);
  const [before, after] = isReverted ? [sideOf(changed), sideOf(group)] : [sideOf(group), sideOf(changed)];
  const { effects } = reviewPolicies({ before, after }, nowMs);
  const texts = effects.map(({ direction, cause, decisions }) => `${direction}: ${cause}${decisions.length === 0 ? ' (unseen)' : ''}`);
  return [...new Set(texts)].sort();
}

interface Change {
  readonly path: string;
  readonly to: unknown;
}

/** The settings that rules read. */
const settings: readonly Change[] = [
  { path: 'rollout.deadlines.progress', to: '20m' },
  { path: 'rollout.maxUnavailable', to: 3 },
  { path: 'rollout.maxUnavailable', to: 1 },
  { path: 'protect.noDelete', to: true },
  { path: 'rollout.waves.0.after.soak', to: '2h' },
  { path: 'rollout.waves.0.after.soak', to: '30m' },
  { path: 'rollout.waves.0.after.approval', to: { count: 1, from: ['sre'] } },
];

/** The shape of the group, which decides when the rules of waves are evaluated. */
const shapes: readonly Change[] = [
  { path: 'rollout.waves.0.pods', to: 2 },
  { path: 'rollout.waves.0.zones', to: ['b'] },
  { path: 'rollout.order', to: 'ascending' },
  { path: 'members.zones', to: [...zones, { name: 'c', statefulSet: 'x-c' }] },
  { path: 'members.zones', to: [...zones].reverse() },
];

describe('two changes', () => {
  it('have effects that decisions show, except for a deadline', () => {
    const unseen = settings.filter((change) => told([change]).some((text) => text.endsWith('(unseen)')));
    expect(unseen.map(({ path }) => path)).toEqual(['rollout.deadlines.progress']);
  });

  const pairs = settings.flatMap((one, index) =>
    [...settings.slice(index + 1), ...shapes]
      .filter((other) => one.path !== other.path)
      .map((other) => [`${one.path} to ${JSON.stringify(one.to)}`, `${other.path} to ${JSON.stringify(other.to)}`, one, other] as const),
  );
  it.each(pairs)('%s and %s are told as each of them alone, and the opposite if they are reverted', (_one, _other, one, other) => {
    const both = told([one, other]);
    expect(both).toEqual([...new Set([...told([one]), ...told([other])])].sort());
    expect(told([one, other], true).map(subjectOf).map(opposite).sort()).toEqual(both.map(subjectOf).sort());
  });
});

function opposite(text: string): string {
  return text.replace(/^(?:loosened|tightened)/, (direction) => (direction === 'loosened' ? 'tightened' : 'loosened'));
}

/** Returns the direction and the setting, without the values, which the reverted change names in the opposite order. */
function subjectOf(text: string): string {
  return text.replace(/ (?:rises|falls|changes|is removed|is added|leaves|joins).*/, '');
}
