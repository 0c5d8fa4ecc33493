import { describe, expect, it } from 'vitest';
import type { AdmissionRequest, Judgement } from '../../../engine/decision.ts';
import { judge, judgeTogether } from '../../../engine/judge/judge.ts';
import { digestOfRule } from '../../../engine/run/requests.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { adopted, group } from '../../kit/groups.ts';
import { kitNowMs, newRevision, oldRevision, outdatedStatefulSet, statefulSet } from '../../kit/objects.ts';
import { exception, freeze, intent, ledgerOf, line, outdatedSets, policy, policyRule, type RunFields, runOf } from '../../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';

const native = group({ sources: { 'rollout.strategy': line(1), disruption: line(3) } });
const set = { namespace: 'mimir', statefulSet: 'ingester-zone-a', dryRun: false } as const;
const pod = { namespace: 'mimir', pod: 'ingester-zone-a-1', dryRun: false } as const;

const ask = (request: AdmissionRequest, definition: GroupDefinition = native, overrides: SnapshotOverrides = {}): Judgement =>
  judge(snapshotOf({ groups: [definition], ...overrides }), request);
const short = ({ outcome, code, effect, message }: Judgement) => ({ outcome, code, effect, message });
const rules = ({ results }: Judgement) => results.map(({ rule, outcome }) => `${rule} ${outcome}`);
const denying = (action: 'rollout' | 'restart' | 'delete' | 'evict', more: object = {}) => ({
  policies: [policy({ rules: [policyRule({ actions: [action], ...more })] })],
});
const closed = (action: 'rollout' | 'restart' | 'delete' | 'evict') => ({
  policies: [policy({ windows: [freeze({ actions: [action] })] })],
});

describe('an update', () => {
  const update: Extract<AdmissionRequest, { kind: 'update' }> = {
    kind: 'update',
    ...set,
    from: 3,
    to: 3,
    isTemplateChanged: true,
    strategy: 'OnDelete',
    via: 'apply',
  };

  it('of the template is allowed at any time', () => {
    expect(short(ask(update))).toEqual({
      outcome: 'allow',
      code: 200,
      effect: 'allow',
      message: 'update of statefulset/ingester-zone-a is allowed',
    });
    expect(ask(update, native, closed('rollout')).outcome).toBe('allow');
    expect(ask(update, native, denying('rollout', { effect: 'hold' })).outcome).toBe('allow');
    expect(ask(update, native, denying('rollout', { effect: 'requireApproval' })).outcome).toBe('allow');
  });

  it('of the template is denied by a policy that denies it', () => {
    expect(short(ask(update, native, denying('rollout')))).toEqual({
      outcome: 'deny',
      code: 403,
      effect: 'deny',
      message: 'update of statefulset/ingester-zone-a in namespace mimir is denied by safety/rule: the rule always applies',
    });
    expect(ask({ ...update, isTemplateChanged: false }, native, denying('rollout')).outcome).toBe('allow');
  });

  it('of the template passes with an exception from the policy rule that denies it, as the pods do', () => {
    const permitted = ask(update, native, { ...denying('rollout'), exceptions: [exception('safety/rule')] });
    expect([permitted.outcome, rules(permitted)]).toEqual(['allow', ['safety/rule ok']]);
    const other = ask(update, native, { ...denying('rollout'), exceptions: [exception('safety/other')] });
    expect(other.outcome).toBe('deny');
  });

  it('includes the requester', () => {
    const notKim = denying('rollout', { when: { '!=': [{ var: 'user.name' }, 'kim'] } });
    expect(ask({ ...update, user: 'kim' }, native, notKim).outcome).toBe('allow');
    expect(ask({ ...update, user: 'zoe' }, native, notKim).outcome).toBe('deny');
  });

  it('that lowers replicas is judged as a scale first', () => {
    const guarded = group({ zones: [{ name: 'a', noDownscale: true }] });
    expect(ask({ ...update, to: 2 }, guarded).message).toBe(
      'scale of statefulset/ingester-zone-a from 3 to 2 in namespace mimir is denied by no-downscale: zone a must not shrink (limit: noDownscale)',
    );
    expect(rules(ask({ ...update, to: 4 }))).toEqual(['scale-ceiling skip', 'window skip']);
    expect(rules(ask({ ...update, to: 4 }, native, denying('rollout')))).toEqual(['scale-ceiling skip', 'window skip', 'safety/rule no']);
  });

  const outdated = (strategy: 'OnDelete' | 'RollingUpdate', podChanges: object = {}) => ({
    statefulSets: [outdatedStatefulSet({ updateStrategy: strategy })],
    podChanges: { 'ingester-zone-a': podChanges as never },
  });
  const refusal = (fact: string) => [{ rule: 'update-strategy', outcome: 'no', fact, limit: 'OnDelete', source: line(1) }];

  it('of the strategy is denied while pods are not at the update revision', () => {
    const other = { ...update, isTemplateChanged: false, strategy: 'RollingUpdate' } as const;
    expect(ask(other, native, outdated('OnDelete')).results).toEqual(
      refusal('another strategy would replace 3 pods of ingester-zone-a that are not at the update revision'),
    );
    const one = { 0: { revision: newRevision }, 1: { revision: newRevision } };
    expect(ask(other, native, outdated('OnDelete', one)).results).toEqual(
      refusal('another strategy would replace 1 pod of ingester-zone-a that is not at the update revision'),
    );
    expect(ask(other).outcome).toBe('allow');
    expect(ask({ ...other, strategy: 'OnDelete' }, native, outdated('OnDelete')).outcome).toBe('allow');
    // Under OnDelete nothing is replaced by itself, so this stops a rollout that nobody asked for.
    expect(ask({ ...other, strategy: 'OnDelete' }, native, outdated('RollingUpdate')).outcome).toBe('allow');
    expect(ask(other, adopted(), outdated('OnDelete')).results).toMatchObject([{ rule: 'update-strategy', outcome: 'no' }]);
  });

  it('of the strategy together with the template is denied in any case', () => {
    expect(ask({ ...update, strategy: 'RollingUpdate' }).results).toEqual(
      refusal('another strategy would replace 3 pods of ingester-zone-a that are not at the update revision'),
    );
  });

  it('of the strategy waits until the status names the outdated pods', () => {
    const behind = { statefulSets: [statefulSet({ generation: 2, status: { observedGeneration: 1 } })] };
    const answer = ask({ ...update, isTemplateChanged: false, strategy: 'RollingUpdate' }, native, behind);
    expect(answer.outcome).toBe('deny');
    expect(rules(answer)).toEqual(['view-complete wait']);
  });

  it('of the template is denied after a change of the strategy, except for pods below the partition', () => {
    const rolling = { statefulSets: [statefulSet({ updateStrategy: 'RollingUpdate' })] };
    const later = { ...update, strategy: 'RollingUpdate' } as const;
    expect(ask(later, native, rolling).results).toEqual(
      refusal('a template under RollingUpdate would replace 3 pods of ingester-zone-a that are not at the update revision'),
    );
    expect(ask({ ...later, partition: 3 }, native, rolling).outcome).toBe('allow');
    expect(ask({ ...later, strategy: 'OnDelete' }, native, rolling).outcome).toBe('allow');
    expect(ask({ ...later, isTemplateChanged: false }, native, rolling).outcome).toBe('allow');
    expect(ask(later, adopted(), rolling).results).toMatchObject([{ rule: 'update-strategy', outcome: 'no' }]);
  });

  it('of the strategy or the ordinals passes with an exception', () => {
    const permit = (rule: string) => ({ exceptions: [exception(rule)] });
    const other = { ...update, strategy: 'RollingUpdate', firstOrdinal: 2 } as const;
    expect(rules(ask(other))).toEqual(['ordinals-kept no', 'update-strategy no']);
    expect(rules(ask(other, native, permit('update-strategy')))).toEqual(['ordinals-kept no', 'update-strategy ok']);
    expect(rules(ask(other, native, permit('ordinals-kept')))).toEqual(['ordinals-kept ok', 'update-strategy no']);
  });

  it('of a StatefulSet without a group is allowed', () => {
    expect(ask({ ...update, statefulSet: 'other' }, native, denying('rollout'))).toMatchObject({ outcome: 'allow', results: [] });
  });
});

describe('the deletion of a StatefulSet', () => {
  const deletion: AdmissionRequest = { kind: 'deleteStatefulSet', ...set };

  it('is allowed without protection', () => {
    expect(short(ask(deletion))).toEqual({
      outcome: 'allow',
      code: 200,
      effect: 'allow',
      message: 'delete of statefulset/ingester-zone-a is allowed',
    });
    expect(rules(ask(deletion))).toEqual(['window skip']);
    expect(ask({ ...deletion, statefulSet: 'other' }).results).toEqual([]);
  });

  it('is denied in a protected zone, unless an exception allows it', () => {
    const guarded = group({ zones: [{ name: 'a', noDelete: true }], sources: { 'zones.a.protect': line(2) } });
    expect(ask(deletion, guarded).results[0]).toEqual({
      rule: 'no-delete',
      outcome: 'no',
      fact: 'zone a must not be deleted',
      source: line(2),
    });
    expect(short(ask(deletion, guarded))).toEqual({
      outcome: 'deny',
      code: 403,
      effect: 'deny',
      message: 'delete of statefulset/ingester-zone-a in namespace mimir is denied by no-delete: zone a must not be deleted',
    });
    expect(ask(deletion, guarded, { exceptions: [exception('no-delete')] }).outcome).toBe('allow');
  });

  it('disturbs all of its pods, so that an exception for fewer does not allow it', () => {
    const guarded = group({ zones: [{ name: 'a', noDelete: true }] });
    const upTo = (podsAtMost: number) => ({ exceptions: [exception('no-delete', { allow: { podsAtMost } })] });
    expect(ask(deletion, guarded, upTo(2)).outcome).toBe('deny');
    expect(ask({ ...deletion, pods: 4 }, guarded, upTo(3)).outcome).toBe('deny');
    expect(ask(deletion, guarded, upTo(3)).outcome).toBe('allow');
  });

  it('is denied by windows and policies of the action delete', () => {
    expect(ask(deletion, native, closed('delete'))).toMatchObject({ outcome: 'deny', effect: 'hold' });
    expect(ask(deletion, native, denying('delete'))).toMatchObject({ outcome: 'deny', effect: 'deny' });
    expect(ask(deletion, native, denying('evict')).outcome).toBe('allow');
  });
});

describe('a template that the group does not roll out', () => {
  const restart: AdmissionRequest = { kind: 'restart', ...set, user: 'kim' };
  const strategy = 'RollingUpdate';
  const update: AdmissionRequest = { kind: 'update', ...set, from: 3, to: 3, isTemplateChanged: true, strategy, via: 'patch' };
  const pinned = group({ rollout: { strategy: 'pinned' } });
  const held = { updateStrategy: strategy, partition: holdingPartition } as const;
  const at = (run: RunFields, more: SnapshotOverrides = {}): SnapshotOverrides => ({
    statefulSets: outdatedSets(['a', 'b', 'c'], held),
    ledgers: [ledgerOf({ run: runOf(run) })],
    ...more,
  });
  const { target, previous } = runOf();
  const back = {
    kind: 'rollback',
    target: previous,
    previous: target,
    rolledBack: { revisions: target, because: 'aborted by kim' },
  } as const;
  const failed = { outcome: 'failed', failure: 'no pod came' } as const;
  const onlyA = { ...previous, a: newRevision };
  const earlier = outdatedSets(['b', 'c'], { ...held, status: { updateRevision: oldRevision } });
  const others = { statefulSets: [...outdatedSets(['a'], held), ...earlier] };
  const undone = { intents: [intent({ action: 'undo', undone: [{ zone: 'a', revision: newRevision, to: oldRevision }] })] };

  const wasRolledBack = 'the update revision is blocked, because it was rolled back: aborted by kim';
  const isRolledBack = 'the update revision is blocked, because it is being rolled back: aborted by kim';

  it('of a failed run stays blocked while other zones have it', () => {
    expect(ask(update, pinned, at(failed))).toMatchObject({ outcome: 'allow', warnings: [] });
  });

  it.each<[string, SnapshotOverrides, string, string]>([
    ['after a rollback', at({ ...back, outcome: 'completed' }), 'rolled-back', wasRolledBack],
    ['during a rollback', at(back, { podChanges: { 'ingester-zone-a': { 2: { revision: newRevision } } } }), 'rolled-back', isRolledBack],
    ['of a failed run', at({ ...failed, target: onlyA }, others), 'run-failed', 'the run failed: no pod came'],
    [
      'of a run that a person aborts',
      at({}, { intents: [intent({ action: 'abort', runId: 'run-1' })] }),
      'run-failed',
      'the run was aborted by kim',
    ],
    ['that was undone', at({}, undone), 'undone', 'kim undid the revisions rev-2 of zone a'],
  ])('%s is denied to a restart, and any other template ends its block with a warning', (_, overrides, rule, fact) => {
    const denied = ask(restart, pinned, overrides);
    expect([denied.outcome, denied.override]).toEqual(['deny', undefined]);
    expect(denied.message).toContain(` is denied by ${rule}: a restart would roll out a blocked template: ${fact}`);
    const other = ask(update, pinned, overrides);
    expect([other.outcome, other.warnings]).toEqual(['allow', [`${rule}: the new template ends a block: ${fact}`]]);
  });

  it('is denied in its own zone only after an undo', () => {
    expect(ask({ ...restart, statefulSet: 'ingester-zone-b' }, pinned, at({}, undone)).outcome).toBe('allow');
  });

  it('is not denied to an earlier template, whose restart is older than the run or the undo', () => {
    const undoMs = kitNowMs - 60_000;
    const requestedBy = { user: 'kim', groups: [], atMs: undoMs };
    const [undo] = undone.intents;
    const runMs = runOf().startedMs;
    const failed = at({ outcome: 'failed', failure: 'no pod came' });
    const withUndo = at({}, { intents: undo === undefined ? [] : [{ ...undo, requestedBy }] });
    const policies = [policy({ rules: [policyRule({ actions: ['restart'] })] })];
    for (const [overrides, sinceMs] of [
      [failed, runMs],
      [withUndo, undoMs],
    ] as const) {
      const ofPolicy = { ...overrides, policies };
      expect(ask({ ...restart, restartedAtMs: sinceMs + 1 }, pinned, overrides).outcome).toBe('deny');
      expect(ask({ ...restart, restartedAtMs: sinceMs }, pinned, overrides)).toMatchObject({ outcome: 'allow' });
      expect(ask({ ...restart, restartedAtMs: sinceMs }, pinned, ofPolicy)).toMatchObject({ outcome: 'allow' });
    }
    expect(ask({ ...restart, restartedAtMs: runMs + 1 }, pinned, at({}, { policies })).outcome).toBe('deny');
  });

  it('ends its block only in the zone that has it now', () => {
    const both = [intent({ action: 'undo', undone: ['a', 'b'].map((zone) => ({ zone, revision: newRevision, to: oldRevision })) })];
    const sets = outdatedSets(['a', 'c'], held);
    const other = statefulSet({ name: 'ingester-zone-b', ...held });
    const overrides = at({}, { intents: both, statefulSets: [...sets, other] });
    expect(ask(update, pinned, overrides).warnings).toHaveLength(1);
    expect(ask({ ...update, statefulSet: 'ingester-zone-b' }, pinned, overrides).warnings).toEqual([]);
    expect(ask({ ...restart, statefulSet: 'ingester-zone-b' }, pinned, overrides).outcome).toBe('allow');
  });

  it('is no block while a run rolls it out, or after a retry', () => {
    const requestedBy = { user: 'kim', groups: [], atMs: kitNowMs - 1000 };
    const retried = at(
      { ...back, outcome: 'completed', completedMs: kitNowMs - 60_000 },
      { intents: [intent({ action: 'retry', runId: 'run-1', requestedBy })] },
    );
    for (const overrides of [at({}), retried]) {
      expect(ask(restart, pinned, overrides).outcome).toBe('allow');
      expect(ask(update, pinned, overrides).warnings).toEqual([]);
    }
  });
});

describe('a restart', () => {
  const restart: AdmissionRequest = { kind: 'restart', ...set, user: 'kim' };

  it('is denied by windows and policies of the action restart', () => {
    expect(short(ask(restart))).toEqual({
      outcome: 'allow',
      code: 200,
      effect: 'allow',
      message: 'restart of statefulset/ingester-zone-a is allowed',
    });
    expect(ask(restart, native, closed('restart'))).toMatchObject({ outcome: 'deny', effect: 'hold' });
    expect(ask(restart, native, denying('restart', { when: { '==': [{ var: 'user.name' }, 'kim'] } }))).toMatchObject({
      outcome: 'deny',
      effect: 'deny',
    });
    expect(ask(restart, native, denying('rollout')).outcome).toBe('allow');
  });

  it('disturbs all of its pods, so that an exception for fewer does not allow it', () => {
    const upTo = (podsAtMost: number) => ({ ...denying('restart'), exceptions: [exception('safety/rule', { allow: { podsAtMost } })] });
    expect(ask(restart, native, upTo(1)).outcome).toBe('deny');
    expect(ask(restart, native, upTo(2)).outcome).toBe('deny');
    expect(ask(restart, native, upTo(3)).outcome).toBe('allow');
    expect(ask(restart, native, { ...upTo(3), statefulSets: [statefulSet({ replicas: 4 })] }).outcome).toBe('deny');
  });

  it('of all zones offers an exception for the group, and for the only blocked zone', () => {
    const members = ['a', 'b'].map((zone) => statefulSet({ name: `ingester-zone-${zone}` }));
    const overridesOf = (asked: object) => {
      const snapshot = snapshotOf({ groups: [group({ zones: ['a', 'b'] })], statefulSets: members, ...asked });
      return judgeTogether(
        snapshot,
        members.map(({ name }) => ({ ...restart, statefulSet: name })),
      ).map(({ override }) => override);
    };
    const command = (place: string): string =>
      `kubectl rollout-group override mimir/ingester --rule ${place} --duration 1h --reason REASON --yes`;
    expect(overridesOf(closed('restart'))).toEqual([command('window'), command('window')]);
    const onlyB = denying('restart', { when: { '==': [{ var: 'target.zone' }, 'b'] } });
    expect(overridesOf(onlyB)).toEqual([undefined, command('safety/rule --zone b')]);
  });

  it('is allowed once it is approved', () => {
    const reviewed = denying('restart', { effect: 'requireApproval' });
    expect(ask(restart, native, reviewed)).toMatchObject({ outcome: 'deny', effect: 'requireApproval' });
    const [asked] = reviewed.policies;
    const [rule] = asked?.rules ?? [];
    if (asked === undefined || rule === undefined) throw new Error('the test expected a rule');
    const approved = ask(restart, native, { ...reviewed, intents: [intent({ rule: 'safety/rule', digest: digestOfRule(asked, rule) })] });
    expect(approved).toMatchObject({ outcome: 'allow', effect: 'allow' });
  });
});

describe('an eviction', () => {
  const eviction: AdmissionRequest = { kind: 'evictPod', ...pod };
  const budget = { namespace: 'mimir', name: 'zpdb', matchLabels: { 'rollout-group': 'ingester' }, maxUnavailable: 1, crossZoneDelayMs: 0 };
  const source = { object: 'ZoneAwarePodDisruptionBudget mimir/zpdb' };

  it('is allowed by its budget', () => {
    expect(short(ask(eviction))).toEqual({
      outcome: 'allow',
      code: 200,
      effect: 'allow',
      message: 'eviction of pod/ingester-zone-a-1 is allowed',
    });
    expect(rules(ask(eviction))).toEqual(['window skip', 'disruption-budget ok']);
    expect(ask(eviction, native, { zoneBudgets: [budget] }).results[1]).toEqual({
      rule: 'disruption-budget',
      outcome: 'ok',
      fact: '0 of 1 unavailable in ingester-zone-a',
      limit: '1',
      source,
    });
  });

  it('is denied with 429 if the budget is spent, so that drains retry', () => {
    const spent = { zoneBudgets: [budget], podChanges: { 'ingester-zone-a': { 0: { isReady: false } } } };
    expect(short(ask(eviction, native, spent))).toEqual({
      outcome: 'deny',
      code: 429,
      effect: 'hold',
      message:
        'eviction of pod/ingester-zone-a-1 in namespace mimir is denied by disruption-budget: 1 pod not ready in ingester-zone-a (limit: 1)',
    });
  });

  it('is denied with 403 if the budget is zero', () => {
    expect(ask(eviction, native, { zoneBudgets: [{ ...budget, maxUnavailable: 0 }] })).toMatchObject({
      outcome: 'deny',
      code: 403,
      effect: 'deny',
    });
  });

  it('is denied with 500 if budgets could not be read', () => {
    expect(short(ask(eviction, native, { zoneBudgets: { unknown: 'forbidden' } }))).toEqual({
      outcome: 'deny',
      code: 500,
      effect: 'deny',
      message:
        'eviction of pod/ingester-zone-a-1 in namespace mimir is denied by disruption-budget: disruption budgets could not be read: forbidden',
    });
  });

  it('is denied while the pods of its zone could not be read; other pods do not matter', () => {
    const unread = { pods: [{ namespace: 'mimir', statefulSet: 'ingester-zone-a', pods: { unknown: 'forbidden' } }] };
    expect(ask(eviction, native, unread)).toMatchObject({ outcome: 'deny', code: 500, effect: 'deny' });
    expect(ask({ ...eviction, pod: 'distributor-7d4b9-x2x4z' }, native, unread)).toMatchObject({ outcome: 'allow' });
    expect(ask({ ...eviction, kind: 'deletePod' }, native, unread)).toMatchObject({
      outcome: 'allow',
      unjudged: 'the pods of ingester-zone-a could not be read: forbidden',
      message: 'delete of pod/ingester-zone-a-1 was not judged: the pods of ingester-zone-a could not be read: forbidden',
    });
    expect(ask({ ...eviction, kind: 'deletePod' })).not.toHaveProperty('unjudged');
  });

  it('counts claims', () => {
    const claims = [{ verb: 'evictPod' as const, zone: 'a', uid: 'uid-ingester-zone-a-0', atMs: kitNowMs }];
    expect(ask(eviction, native, { zoneBudgets: [budget], ledgers: [ledgerOf({ claims })] })).toMatchObject({ outcome: 'deny', code: 429 });
  });

  it('is denied with 429 while a PodDisruptionBudget would deny it, so that it leaves no claim', () => {
    const podBudget = { namespace: 'mimir', name: 'pdb', selector: { matchLabels: { name: 'ingester-zone-a' } }, maxUnavailable: 1 };
    const own = group({ disruption: { maxUnavailable: 2, crossZoneDelayMs: 0 } });
    const down = { podBudgets: [podBudget], podChanges: { 'ingester-zone-a': { 0: { isReady: false } } } };
    expect(short(ask(eviction, own, down))).toEqual({
      outcome: 'deny',
      code: 429,
      effect: 'hold',
      message:
        'eviction of pod/ingester-zone-a-1 in namespace mimir is denied by eviction-budget: pdb requires 2 of 3 pods: 2 healthy (limit: 2 healthy)',
    });
    expect(ask(eviction, own, { podBudgets: [podBudget] }).outcome).toBe('allow');
    // The eviction API decides about unhealthy pods by a policy that the snapshot does not contain.
    expect(ask({ ...eviction, pod: 'ingester-zone-a-0' }, own, down).outcome).toBe('allow');
    expect(ask({ ...eviction, kind: 'deletePod' }, own, down).outcome).toBe('allow');
    expect(ask(eviction, own, { ...down, podBudgets: { unknown: 'forbidden' } }).outcome).toBe('allow');
    expect(ask(eviction, own, { ...down, podBudgets: [podBudget, { ...podBudget, name: 'other' }] }).outcome).toBe('allow');
  });

  it('is checked by the budget of the group, and the denial names its location', () => {
    const own = group({ disruption: { maxUnavailable: 1, crossZoneDelayMs: 0 }, sources: { disruption: line(3) } });
    expect(ask(eviction, own).results[1]).toMatchObject({ rule: 'disruption-budget', outcome: 'ok', source: line(3) });
  });

  it('is denied in a protected zone, with 403 and the result of the budget', () => {
    const guarded = group({ zones: [{ name: 'a', noEviction: true }], sources: { 'zones.a.protect': line(2) } });
    const judgement = ask(eviction, guarded);
    expect(judgement).toMatchObject({ outcome: 'deny', code: 403, effect: 'deny' });
    expect(judgement.results[0]).toEqual({ rule: 'no-eviction', outcome: 'no', fact: 'zone a allows no eviction', source: line(2) });
    expect(rules(judgement)).toEqual(['no-eviction no', 'window skip', 'disruption-budget ok']);
  });

  it('is denied by windows and policies of the action evict', () => {
    expect(ask(eviction, native, closed('evict'))).toMatchObject({ outcome: 'deny', code: 403, effect: 'hold' });
    expect(ask(eviction, native, denying('evict'))).toMatchObject({ outcome: 'deny', code: 403, effect: 'deny' });
    expect(ask(eviction, native, denying('delete')).outcome).toBe('allow');
  });

  it('of a pod without a group is still checked by its budget', () => {
    const others = ['x', 'y'].map((name) => statefulSet({ name: `other-${name}`, labels: { app: 'other' }, podLabels: { app: 'other' } }));
    const request: AdmissionRequest = { ...eviction, pod: 'other-x-1' };
    const named = { ...budget, matchLabels: { app: 'other' } };
    expect(rules(ask(request, native, { statefulSets: others, zoneBudgets: [named] }))).toEqual(['disruption-budget ok']);
    const down = { 'other-y': { 1: { containersReady: false, isReady: false } } };
    expect(ask(request, native, { statefulSets: others, zoneBudgets: [named], podChanges: down })).toMatchObject({
      outcome: 'deny',
      code: 429,
    });
  });

  it('of an unknown pod is allowed', () => {
    expect(ask({ ...eviction, pod: 'nobody-0' })).toMatchObject({ outcome: 'allow', results: [] });
    expect(ask({ ...eviction, namespace: 'loki' })).toMatchObject({ outcome: 'allow', results: [] });
  });
});

describe('the deletion of a pod', () => {
  const deletion: AdmissionRequest = { kind: 'deletePod', ...pod };
  const budgeted = group({ disruption: { maxUnavailable: 1, crossZoneDelayMs: 0 } });
  const down = { podChanges: { 'ingester-zone-a': { 0: { isReady: false } } } };

  it('is checked by windows and policies, and by the budget of the group if it has one', () => {
    expect(short(ask(deletion))).toEqual({
      outcome: 'allow',
      code: 200,
      effect: 'allow',
      message: 'delete of pod/ingester-zone-a-1 is allowed',
    });
    expect(rules(ask(deletion))).toEqual(['window skip']);
    expect(ask(deletion, native, denying('delete'))).toMatchObject({ outcome: 'deny', effect: 'deny' });
    expect(ask(deletion, native, denying('evict')).outcome).toBe('allow');
    expect(rules(ask(deletion, budgeted))).toEqual(['window skip', 'disruption-budget ok']);
    expect(ask(deletion, budgeted, down)).toMatchObject({ outcome: 'deny', code: 429 });
  });

  it('is not denied by the protection from evictions', () => {
    expect(ask(deletion, group({ zones: [{ name: 'a', noEviction: true }] })).outcome).toBe('allow');
  });

  it('of a terminating pod is allowed past every policy', () => {
    const going = { podChanges: { 'ingester-zone-a': { 1: { isTerminating: true } } }, ...denying('delete') };
    expect(ask(deletion, native, going)).toMatchObject({ outcome: 'allow', results: [] });
    expect(ask(deletion, budgeted, going)).toMatchObject({ outcome: 'allow', results: [] });
  });

  it('of a pod without a group is allowed', () => {
    const other = statefulSet({ name: 'other' });
    expect(ask({ ...deletion, pod: 'other-1' }, native, { statefulSets: [other], zoneBudgets: { unknown: 'forbidden' } })).toMatchObject({
      outcome: 'allow',
      results: [],
    });
  });
});
