// In place of a deletion that is refused: a pod is taken out of its StatefulSet by its labels or its owner, and then deleted as nobody's, or is ended.
import { describe, expect, it } from 'vitest';
import type { ModelObject } from '../../../simulation/server/request.ts';
import { isReleased, readTarget } from '../../../webhook/native/requests-of.ts';
import type { Review } from '../../../webhook/review/review.ts';
import { deletionOf, type EnforceWorld, enforceWorld, evictionOf, type Json, withLabels } from './enforce-world.ts';

const person = { name: 'kim', groups: ['system:authenticated'] };

function updateOf(pod: ModelObject, object: Json, overrides: Partial<Review> = {}): Review {
  return { ...deletionOf(pod, { user: person }), operation: 'UPDATE', object, ...overrides };
}

const ownersOf = (pod: ModelObject): readonly unknown[] => (pod.metadata['ownerReferences'] ?? []) as readonly unknown[];

const withOwners = (pod: ModelObject, ownerReferences: unknown): Json => ({ ...pod, metadata: { ...pod.metadata, ownerReferences } });

/** Every way in which a pod is taken out. */
function releases(pod: ModelObject): Readonly<Record<string, Json>> {
  const [label = ''] = Object.keys(pod.metadata.labels ?? {});
  const owner = (ownersOf(pod)[0] ?? {}) as Json;
  return {
    'a label taken off': withLabels({ [label]: undefined })(pod),
    'a label changed': withLabels({ [label]: 'other' })(pod),
    'all labels taken off': { ...pod, metadata: { ...pod.metadata, labels: undefined } },
    'the revision changed': withLabels({ 'controller-revision-hash': 'the-newest' })(pod),
    'no owners': withOwners(pod, []),
    'owners left out': withOwners(pod, undefined),
    'an owner that controls no more': withOwners(pod, [{ ...owner, controller: false }]),
    'another owner': withOwners(pod, [{ ...owner, uid: 'another' }]),
    'a deadline': { ...pod, spec: { ...(pod['spec'] as Json), activeDeadlineSeconds: 1 } },
    'another image': { ...pod, spec: { ...(pod['spec'] as Json), containers: [{ name: 'app', image: 'no/such:image' }] } },
    'a status that it has failed': { ...pod, status: { ...(pod['status'] as Json), phase: 'Failed' } },
  };
}

function worldOf(): EnforceWorld {
  const world = enforceWorld({ spec: { disruption: { maxUnavailable: 1 } } });
  for (const { metadata } of world.api.list('pods', 'mimir')) {
    world.api.change('pods', 'mimir', metadata.name, { metadata: { labels: { 'controller-revision-hash': 'old', team: 'storage' } } });
  }
  return world;
}

describe('a write that releases a pod from its StatefulSet, or ends it', () => {
  it('is judged like a deletion of the pod: denied beyond the budget, and counted within it', async () => {
    for (const what of Object.keys(releases(worldOf().pod('a', 0)))) {
      const world = worldOf();
      const process = await world.start();
      const ask = (review: Review) => world.env.finish(process.ask(review));
      const release = (zone: string, ordinal: number, overrides: Partial<Review> = {}) => {
        const pod = world.pod(zone, ordinal);
        return ask(updateOf(pod, releases(pod)[what] ?? {}, overrides));
      };
      expect(await release('a', 0, { dryRun: true }), what).toMatchObject({ allowed: true });
      expect(world.ledger().claims).toEqual([]);
      expect(await release('a', 0), what).toMatchObject({ allowed: true, warnings: [expect.stringContaining('counts as its deletion')] });
      expect(world.ledger().claims).toMatchObject([{ verb: 'deletePod', zone: 'a', ordinal: 0, user: 'kim' }]);
      const second = await release('b', 1);
      expect(second, what).toMatchObject({ allowed: false });
      expect(second.warnings).toEqual(['ending a pod, or removing it from its StatefulSet, counts as its deletion']);
      expect(await ask(evictionOf(world.pod('b', 1), { user: person })), what).toMatchObject({ allowed: false });
      expect(await release('b', 1, { subresource: 'status' }), what).toMatchObject({ allowed: false });
    }
  });

  it('passes without protection, and while the protection is unknown', async () => {
    const free = enforceWorld({ kind: 'none' });
    const process = await free.start();
    const pod = free.pod('a', 0);
    expect(await free.env.finish(process.ask(updateOf(pod, withOwners(pod, []))))).toMatchObject({ allowed: true });
    const world = worldOf();
    const other = await world.start();
    other.cutOff();
    const answer = await world.env.finish(other.ask(updateOf(world.pod('a', 0), withOwners(world.pod('a', 0), []))));
    expect(answer).toMatchObject({ allowed: true });
    expect(answer.warnings?.[0]).toContain('was not judged');
  });

  it('never blocks nodes and controllers, terminating pods, and writes that release no pod', async () => {
    const world = worldOf();
    const process = await world.start();
    const pod = world.pod('a', 0);
    const going = { ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2026-01-15T12:00:00Z' } } as ModelObject;
    const free = withOwners(pod, []);
    const reviews = [
      updateOf(pod, free, { user: { name: 'system:node:n1', groups: ['system:nodes'] } }),
      updateOf(pod, free, { user: { name: 'system:serviceaccount:kube-system:statefulset-controller', groups: [] } }),
      updateOf(pod, free, { user: { name: 'system:kube-controller-manager', groups: [] } }),
      updateOf(going, free),
      updateOf(pod, withLabels({ added: 'yes' })(pod)),
      updateOf(pod, { ...pod, metadata: { ...pod.metadata, annotations: { changed: 'yes' } } }),
      updateOf(pod, { ...pod, status: { ...(pod['status'] as Json), phase: 'Running', message: 'changed' } }),
      updateOf({ ...pod, status: { phase: 'Failed' } } as ModelObject, { ...pod, status: { phase: 'Failed', reason: 'x' } }),
      updateOf(pod, withOwners(pod, [...ownersOf(pod), { kind: 'Other', name: 'x', uid: 'y' }])),
    ];
    for (const review of reviews) expect(readTarget(review).kind).toBe('pass');
    // A label that no template gave it is the business of whoever set it; whether that is so, only the StatefulSet tells.
    const own = updateOf(pod, withLabels({ team: undefined })(pod));
    expect(readTarget(own)).toMatchObject({ release: { labels: ['team'], isOrphaned: false } });
    expect(await world.env.finish(process.ask(own))).toEqual({ allowed: true });
    expect(process.writes).toEqual([]);
  });
});

describe('a label of a pod', () => {
  it.each([
    [['name'], true],
    [['team'], false],
    [['team', 'statefulset.kubernetes.io/pod-name'], true],
    [['controller-revision-hash'], true],
    [[], false],
  ])('%j selects it: %s', (labels, isBound) => {
    expect(isReleased({ labels, isOrphaned: false, isEnded: false }, { name: 'db' })).toBe(isBound);
    expect(isReleased({ labels, isOrphaned: true, isEnded: false }, { name: 'db' })).toBe(true);
  });
});
