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
function told(changes: readonly Change[]): readonly string[] {
  const changed = changes.reduce<unknown>((spec, { path, to }) => withValue(spec, path.split('.'), to), group);
  const { effects } = reviewPolicies({ before: sideOf(group), after: sideOf(changed) }, nowMs);
  const texts = effects.map(({ direction, cause, decisions }) => `${direction}: ${cause}${decisions.length === 0 ? ' (unseen)' : ''}`);
  return [...new Set(texts)].sort();
}

interface Change {
  readonly path: string;
  readonly to: unknown;
}

const changes: readonly Change[] = [
  { path: 'rollout.deadlines.progress', to: '20m' },
  { path: 'rollout.maxUnavailable', to: 3 },
  { path: 'rollout.maxUnavailable', to: 1 },
  { path: 'protect.noDelete', to: true },
  { path: 'rollout.waves.0.pods', to: 2 },
  { path: 'rollout.waves.0.after.soak', to: '2h' },
];

describe('two changes', () => {
  it('have effects that decisions show, except for a deadline', () => {
    const unseen = changes.filter((change) => told([change]).some((text) => text.endsWith('(unseen)')));
    expect(unseen.map(({ path }) => path)).toEqual(['rollout.deadlines.progress']);
  });

  // The size of a wave moves its end, so only together with the soak of the same wave it is no change of its own.
  const placeOf = ({ path }: Change): string => path.replace(/^(rollout\.waves\.0)\..*/, '$1');
  const pairs = changes.flatMap((one, index) =>
    changes
      .slice(index + 1)
      .filter((other) => placeOf(one) !== placeOf(other))
      .map((other) => [`${one.path} to ${one.to}`, `${other.path} to ${other.to}`, one, other] as const),
  );
  it.each(pairs)('%s and %s are told as each of them alone', (_one, _other, one, other) => {
    expect(told([one, other])).toEqual([...new Set([...told([one]), ...told([other])])].sort());
  });
});
