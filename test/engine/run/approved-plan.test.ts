// The annotation of an approved plan: what it covers, what counts as a difference, and the effect requireApprovedPlan.
import { describe, expect, it } from 'vitest';
import { decide } from '../../../engine/decide/decide.ts';
import { templateDigest } from '../../../engine/diff/field-diff.ts';
import { approvedPlanAnnotation, observeStatefulSet } from '../../../engine/observe/objects.ts';
import { approvedPlans, comparedPlan } from '../../../engine/run/approved-plan.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import { isUnknown, type StatefulSetView } from '../../../engine/snapshot.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs, newRevision, oldRevision } from '../../kit/objects.ts';
import { contextWith, exception, hourMs, intent, ledgerOf, policy, policyRule, runOf } from '../../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';

const container = { name: 'ingester', image: 'grafana/mimir:3.1.0', resources: { limits: { memory: '1Gi' } } };

function manifest(zone: string, spec: object = {}, annotations: Readonly<Record<string, string>> = {}) {
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: `ingester-zone-${zone}`, namespace: 'mimir', uid: `uid-${zone}`, generation: 2, annotations },
    spec: {
      replicas: 3,
      updateStrategy: { type: 'OnDelete' },
      podManagementPolicy: 'Parallel',
      template: { spec: { containers: [container] } },
      ...spec,
    },
    status: {
      observedGeneration: 2,
      replicas: 3,
      readyReplicas: 3,
      updatedReplicas: 0,
      currentRevision: oldRevision,
      updateRevision: newRevision,
    },
  };
}

const gentle = policy({ name: 'gentle', limits: { maxUnavailable: 1 } });
const reviewed = () => group({ zones: ['a', 'b'] });
const manifests = ['a', 'b'].map((zone) => manifest(zone));

/** Returns the StatefulSets as the API server has them after the reviewed change. */
function applied(change: (zone: string) => object = () => ({}), by: GroupDefinition = reviewed()): readonly StatefulSetView[] {
  const named = approvedPlans(contextWith(by, { policies: [gentle] }), manifests);
  return ['a', 'b'].map((zone) => {
    const text = named.get(`mimir/ingester-zone-${zone}`);
    const set = observeStatefulSet(manifest(zone, change(zone), text === undefined ? {} : { [approvedPlanAnnotation]: text }));
    if (isUnknown(set)) throw new Error(set.unknown);
    return set;
  });
}

function compared(statefulSets: readonly StatefulSetView[], overrides: SnapshotOverrides = {}, now = reviewed()) {
  const found = comparedPlan(contextWith(now, { statefulSets, policies: [gentle], ...overrides }));
  return found && { ...found, deviations: found.deviations.map(({ fact }) => fact) };
}

describe('an approved plan', () => {
  it('has no deviation while everything is as reviewed, in any order and place', () => {
    const moved = { ...gentle, source: { file: 'elsewhere.yaml', line: 7, column: 1 } };
    const found = compared(applied(), { policies: [moved] });
    expect(found).toEqual({ plan: expect.stringMatching(/^[0-9a-f]{16}$/), deviations: [] });
  });

  it('is undefined if no StatefulSet names one', () => {
    expect(compared(['a', 'b'].map((zone) => observeStatefulSet(manifest(zone)) as StatefulSetView))).toBeUndefined();
  });

  it('names the zone whose template or replicas differ', () => {
    const other = { template: { spec: { containers: [{ ...container, image: 'grafana/mimir:3.2.0' }] } } };
    const sets = applied((zone) => (zone === 'a' ? other : { replicas: 4 }));
    expect(compared(sets)?.deviations).toEqual([
      'the pod template of zone a is not the approved one',
      'zone b has 4 replicas instead of 3',
    ]);
  });

  it('names the objects that changed, came or went', () => {
    const faster = group({ zones: ['a', 'b'], rollout: { ...reviewed().rollout, minIntervalMs: hourMs } });
    const changed = { ...gentle, limits: { maxUnavailable: 2 } };
    expect(compared(applied(), { policies: [changed] }, faster)?.deviations).toEqual([
      'RolloutGroup mimir/ingester changed after the review',
      'RolloutPolicy mimir/gentle changed after the review',
    ]);
    expect(compared(applied(), { policies: [policy({ name: 'late', rules: [policyRule({})] })] })?.deviations).toEqual([
      'RolloutPolicy mimir/gentle was removed after the review',
      'RolloutPolicy mimir/late was added after the review',
    ]);
  });

  it('covers exceptions without their requester, until they expire', () => {
    const ofGit = { ...exception('zone-gap'), name: 'from-git' };
    const stamped = { ...ofGit, requestedBy: { user: 'kim', atMs: kitNowMs } };
    const named = approvedPlans(contextWith(reviewed(), { policies: [gentle], exceptions: [ofGit] }), manifests);
    const sets = applied().map((set) => ({ ...set, annotations: { [approvedPlanAnnotation]: named.get(`mimir/${set.name}`) ?? '' } }));
    expect(compared(sets, { exceptions: [stamped] })?.deviations).toEqual([]);
    expect(compared(applied(), { exceptions: [{ ...stamped, expiresMs: kitNowMs }] })?.deviations).toEqual([]);
    const past = { ...stamped, expiresMs: kitNowMs };
    expect(compared(sets, { exceptions: [past] })?.deviations).toEqual(['RolloutException mimir/from-git expired after the review']);
    expect(compared(sets)?.deviations).toEqual(['RolloutException mimir/from-git was removed after the review']);
    expect(compared(applied(), { exceptions: [stamped] })?.deviations).toEqual([
      'RolloutException mimir/from-git was added after the review',
    ]);
  });

  it('does not depend on replicas that the manifest leaves to an autoscaler', () => {
    const open = manifests.map(({ spec: { replicas: _, ...spec }, ...rest }) => ({ ...rest, spec }));
    const named = approvedPlans(contextWith(reviewed(), { policies: [gentle] }), open);
    expect([...named.values()].map((text) => JSON.parse(text).replicas)).toEqual([undefined, undefined]);
  });

  it('reports zones without a plan, with another plan, and with an unreadable one', () => {
    const [a, b] = applied();
    const [, other] = applied(undefined, group({ zones: ['a', 'b'], rollout: { ...reviewed().rollout, minIntervalMs: hourMs } }));
    if (a === undefined || b === undefined || other === undefined) throw new Error('the group has two zones');
    expect(compared([a, { ...b, annotations: {} }])?.deviations).toEqual(['zone b names no approved plan']);
    expect(compared([a, { ...b, annotations: { [approvedPlanAnnotation]: '{' } }])?.deviations).toEqual([
      'the approved plan of zone b cannot be read: it is not JSON',
    ]);
    expect(compared([a, other])).toEqual({ deviations: [expect.stringMatching(/^the zones name different plans \(\w+, \w+\)$/)] });
  });
});

describe('a rollout with an approved plan', () => {
  const needsPlan = policy({
    name: 'safety',
    rules: [policyRule({ effect: 'requireApprovedPlan', onUnknown: 'requireApprovedPlan', approval: { count: 1, from: ['release'] } })],
  });
  const decisionOf = (statefulSets: readonly StatefulSetView[], overrides: SnapshotOverrides = {}) => {
    const [decision] = decide(snapshotOf({ groups: [reviewed()], statefulSets, policies: [gentle], ...overrides })).groups;
    if (decision === undefined) throw new Error('the snapshot has one group');
    return decision;
  };
  const withPlan = (statefulSets: readonly StatefulSetView[], overrides: SnapshotOverrides = {}) => {
    const named = approvedPlans(contextWith(reviewed(), { policies: [gentle, needsPlan] }), manifests);
    const sets = statefulSets.map((set) => ({
      ...set,
      annotations: { [approvedPlanAnnotation]: named.get(`mimir/${set.name}`) ?? '' },
    }));
    return decisionOf(sets, { policies: [gentle, needsPlan], ...overrides });
  };

  it('warns what differs, and rolls', () => {
    const decision = decisionOf(applied((zone) => (zone === 'b' ? { replicas: 4 } : {})));
    expect(decision.warnings).toContainEqual(
      expect.objectContaining({ rule: 'approved-plan', fact: expect.stringMatching(/zone b has 4 replicas instead of 3$/) }),
    );
    expect(decision.outcome).toBe('act');
    expect(decisionOf(applied()).warnings).toEqual([]);
  });

  it('warns once of a template that differs from the plan and from its manifest, with who changed it', () => {
    const drift = { count: 1, fields: [{ field: 'spec.template.spec.hostNetwork', manager: 'kubectl-edit' }] };
    const hosted = { template: { spec: { containers: [container], hostNetwork: true } } };
    const sets = applied((zone) => (zone === 'b' ? hosted : {})).map((set) => (set.name.endsWith('b') ? { ...set, drift } : set));
    const text = '1 field differs from the manifests: kubectl-edit wrote spec.template.spec.hostNetwork of ingester-zone-b';
    const differs = `the pod template of zone b is not the approved one; ${text}`;
    expect(decisionOf(sets).warnings).toEqual([
      { rule: 'approved-plan', outcome: 'wait', fact: expect.stringMatching(new RegExp(`: ${differs}$`)) },
    ]);
    const unplanned = sets.map(({ annotations: _, ...set }) => ({ ...set, annotations: {} }));
    expect(decisionOf(unplanned).warnings).toEqual([{ rule: 'drift', outcome: 'wait', fact: text }]);
  });

  it('waits for an approval of exactly its differences if a policy requires the approved plan', () => {
    expect(withPlan(applied()).outcome).toBe('act');
    const other = applied((zone) => (zone === 'b' ? { replicas: 4 } : {}));
    const waiting = withPlan(other);
    const wait = waiting.waits.find(({ rule }) => rule === 'safety/rule');
    expect([waiting.outcome, wait?.fact]).toEqual([
      'wait',
      'the rule always applies; zone b has 4 replicas instead of 3; 0 of 1 approvals from release',
    ]);
    const approval = intent({
      action: 'approve',
      rule: 'safety/rule',
      digest: wait?.digest ?? '',
      requestedBy: { user: 'kim', groups: ['release'], atMs: kitNowMs },
    });
    expect(withPlan(other, { intents: [approval] }).outcome).toBe('act');
    const more = applied((zone) => (zone === 'b' ? { replicas: 5 } : {}));
    expect(withPlan(more, { intents: [approval] }).waits.map(({ fact }) => fact)).toEqual([
      expect.stringMatching(/5 replicas instead of 3; 0 of 1 approvals from release; .* approved an older version$/),
    ]);
  });

  it('waits for another approval if what differs changes again', () => {
    const wider = (maxUnavailable: number) => ({ policies: [{ ...gentle, limits: { maxUnavailable } }, needsPlan] });
    const wait = withPlan(applied(), wider(2)).waits.find(({ rule }) => rule === 'safety/rule');
    const requestedBy = { user: 'kim', groups: ['release'], atMs: kitNowMs };
    const intents = [intent({ action: 'approve', rule: 'safety/rule', digest: wait?.digest ?? '', requestedBy })];
    expect(withPlan(applied(), { ...wider(2), intents }).outcome).toBe('act');
    expect(withPlan(applied(), { ...wider(99), intents }).outcome).toBe('wait');
  });

  it('does not wait again if an expired exception is removed', () => {
    const past = { ...exception('zone-gap'), name: 'from-git', expiresMs: kitNowMs };
    const inForce = [{ ...past, expiresMs: kitNowMs + hourMs }];
    const named = approvedPlans(contextWith(reviewed(), { policies: [gentle, needsPlan], exceptions: inForce }), manifests);
    const sets = applied().map((set) => ({ ...set, annotations: { [approvedPlanAnnotation]: named.get(`mimir/${set.name}`) ?? '' } }));
    const policies = [gentle, needsPlan];
    const wait = decisionOf(sets, { policies, exceptions: [past] }).waits.find(({ rule }) => rule === 'safety/rule');
    expect(wait?.fact).toContain('RolloutException mimir/from-git expired after the review; 0 of 1 approvals');
    const requestedBy = { user: 'kim', groups: ['release'], atMs: kitNowMs };
    const intents = [intent({ action: 'approve', rule: 'safety/rule', digest: wait?.digest ?? '', requestedBy })];
    expect(decisionOf(sets, { policies, exceptions: [past], intents }).outcome).toBe('act');
    expect(decisionOf(sets, { policies, intents }).outcome).toBe('act');
  });

  it('waits also in an undo, because its request can name any revision', () => {
    const other = applied(() => ({ template: { spec: { containers: [{ ...container, image: 'grafana/mimir:0.0.1' }] } } }));
    const [a, b] = [oldRevision, newRevision];
    const undone = ['a', 'b'].map((zone) => ({ zone, revision: a, to: b }));
    const run = runOf({ outcome: 'completed', target: { a, b: a }, previous: { a: 'rev-0', b: 'rev-0' } });
    const undo = intent({ action: 'undo', undone, requestedBy: { user: 'mallory', groups: [], atMs: kitNowMs } });
    expect(withPlan(other, { intents: [undo], ledgers: [ledgerOf({ run })] }).outcome).toBe('wait');
  });

  // The whole group ran the update revision when the return was requested, by an undo or by the earlier templates.
  it.each([
    ['completed', {}, 'wait'],
    ['running', {}, 'act'],
    ['failed', { failure: 'no progress for 10m', failedMs: kitNowMs }, 'act'],
  ] as const)('that returns from a %s run, %o: %s', (outcome, ending, expected) => {
    const [from, to] = [newRevision, oldRevision];
    const run = runOf({ outcome, target: { a: from, b: from }, previous: { a: to, b: to }, ...ending });
    const updated = Object.fromEntries([0, 1, 2].map((ordinal) => [ordinal, { revision: from }]));
    const podChanges = { 'ingester-zone-a': updated, 'ingester-zone-b': updated };
    const returning = (sets: readonly StatefulSetView[], overrides: SnapshotOverrides = {}) =>
      withPlan(sets, { podChanges, ledgers: [ledgerOf({ run })], ...overrides });
    const older = applied(() => ({ template: { spec: { containers: [{ ...container, image: 'grafana/mimir:3.0.0' }] } } }));
    const asApplied = older.map((set) => ({ ...set, status: { ...set.status, updateRevision: to } }));
    const undone = ['a', 'b'].map((zone) => ({ zone, revision: from, to }));
    const undo = intent({ action: 'undo', undone, requestedBy: { user: 'mallory', groups: [], atMs: kitNowMs } });
    const ways = [returning(asApplied), returning(asApplied, { intents: [undo] })];
    for (const { run: started, outcome: next } of ways) expect([started?.kind, next]).toEqual(['rollback', expected]);
    // The warning says the same.
    for (const { warnings } of ways) expect(warnings.some(({ rule }) => rule === 'approved-plan')).toBe(expected === 'wait');
  });

  // No pod was replaced since the run completed, so no sequence of templates may replace one before an approval.
  it.each([
    ['a third template follows the return', 0, ['a=rev-1', 'a=rev-3', 'a=rev-1'], 'wait'],
    ['one zone returns while another one changes', hourMs, ['b=rev-3', 'a=rev-1'], 'wait'],
    ['a return is withdrawn in one of two zones', 0, ['a=rev-1', 'b=rev-1', 'a=rev-2'], 'wait'],
    ['both zones are back at the completed run', 0, ['a=rev-3', 'b=rev-1', 'b=rev-2', 'a=rev-2'], 'done'],
  ] as const)('waits after a completed run if %s', (_, soakMs, templates, expected) => {
    const [wave] = reviewed().rollout.waves;
    if (wave === undefined) throw new Error('the group has a wave');
    const waves = [{ ...wave, after: { ...wave.after, soakMs } }];
    const groups = [group({ zones: ['a', 'b'], rollout: { ...reviewed().rollout, waves } })];
    const updated = Object.fromEntries([0, 1, 2].map((ordinal) => [ordinal, { revision: newRevision }]));
    const podChanges = { 'ingester-zone-a': updated, 'ingester-zone-b': updated };
    const target: Record<string, string> = { a: newRevision, b: newRevision };
    let run: RunState = runOf({ outcome: 'completed', target: { ...target }, previous: { a: oldRevision, b: oldRevision } });
    const outcomes = templates.map((template, index) => {
      const [zone = '', revision = ''] = template.split('=');
      target[zone] = revision;
      const sets = applied().map((set) => {
        const updateRevision = target[set.name.slice(-1)] ?? '';
        return { ...set, annotations: {}, status: { ...set.status, currentRevision: newRevision, updateRevision } };
      });
      const nowMs = kitNowMs + index * 1000;
      const decision = decisionOf(sets, { groups, nowMs, podChanges, policies: [needsPlan], ledgers: [ledgerOf({ run })] });
      run = decision.run ?? run;
      return decision.outcome;
    });
    expect(outcomes).toEqual([...templates.slice(1).map(() => 'wait'), expected]);
  });

  it('returns from an unfinished run also if its updated zone is written last', () => {
    const [wave] = reviewed().rollout.waves;
    if (wave === undefined) throw new Error('the group has a wave');
    const waves = ['b', 'a'].map((zone) => ({ ...wave, name: zone, zones: [zone], after: { ...wave.after, soakMs: hourMs } }));
    const groups = [group({ zones: ['a', 'b'], rollout: { ...reviewed().rollout, waves } })];
    const podChanges = { 'ingester-zone-b': Object.fromEntries([0, 1, 2].map((ordinal) => [ordinal, { revision: newRevision }])) };
    const [old, updated] = [oldRevision, newRevision];
    let run: RunState = runOf({ target: { a: updated, b: updated }, previous: { a: old, b: old }, lastDisruptionMs: kitNowMs - 1000 });
    const outcomes = [updated, old].map((ofB, index) => {
      const sets = applied().map((set) => ({
        ...set,
        annotations: {},
        status: { ...set.status, updateRevision: set.name.endsWith('a') ? old : ofB },
      }));
      const nowMs = kitNowMs + index * 1000;
      const decision = decisionOf(sets, { groups, nowMs, podChanges, policies: [needsPlan], ledgers: [ledgerOf({ run })] });
      run = decision.run ?? run;
      return [run.kind, run.outcome, decision.outcome];
    });
    expect(outcomes).toEqual([
      ['rollback', 'completed', 'done'],
      ['rollback', 'running', 'act'],
    ]);
  });

  it('waits without any plan', () => {
    const sets = ['a', 'b'].map((zone) => observeStatefulSet(manifest(zone)) as StatefulSetView);
    const { waits } = decisionOf(sets, { policies: [needsPlan] });
    expect(waits.map(({ fact }) => fact)).toEqual([
      'the rule always applies; no StatefulSet names an approved plan; 0 of 1 approvals from release',
    ]);
  });
});

describe('the digest of a template', () => {
  const digest = (template: unknown): string => templateDigest({ kind: 'StatefulSet', spec: { template } });

  it('is that of the object that the API server stores: with defaults, and quantities in its notation', () => {
    const probe = { httpGet: { path: '/ready', port: 80 } };
    const written = {
      spec: { containers: [{ ...container, readinessProbe: probe, resources: { limits: { cpu: '1000m', memory: '1024Mi' } } }] },
    };
    const stored = {
      metadata: { creationTimestamp: null },
      spec: {
        restartPolicy: 'Always',
        dnsPolicy: 'ClusterFirst',
        securityContext: {},
        terminationGracePeriodSeconds: 30,
        containers: [
          {
            ...container,
            imagePullPolicy: 'IfNotPresent',
            readinessProbe: {
              httpGet: { ...probe.httpGet, scheme: 'HTTP' },
              timeoutSeconds: 1,
              periodSeconds: 10,
              successThreshold: 1,
              failureThreshold: 3,
            },
            resources: { limits: { cpu: '1', memory: '1Gi' } },
          },
        ],
      },
    };
    expect(digest(stored)).toBe(digest(written));
  });

  it('differs for another value, another order of containers and another notation that the API server keeps', () => {
    const two = [container, { ...container, name: 'sidecar' }];
    const digests = [
      digest({ spec: { containers: two } }),
      digest({ spec: { containers: two.toReversed() } }),
      digest({ spec: { containers: [container] } }),
      digest({ spec: { containers: [{ ...container, resources: { limits: { memory: '1073741824' } } }] } }),
    ];
    expect(new Set(digests).size).toBe(4);
  });
});
