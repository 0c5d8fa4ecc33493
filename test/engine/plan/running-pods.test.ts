import { describe, expect, it } from 'vitest';
import type { GroupPlan } from '../../../engine/plan/document.ts';
import { planGroups } from '../../../engine/plan/plan.ts';
import { readPlanSnapshots } from '../../../engine/plan/world.ts';
import { isUnknown, type PodView, type Snapshot } from '../../../engine/snapshot.ts';
import { groupDifferences } from '../../../plugin/difference.ts';
import { renderDifference } from '../../../plugin/output/diff.ts';
import { changeText } from '../../../plugin/output/plan/changes.ts';
import { renderPlanHtml } from '../../../plugin/output/plan/html.ts';
import { renderPlanMarkdown } from '../../../plugin/output/plan/markdown.ts';
import { supersedesText } from '../../../plugin/output/plan/plan-text.ts';
import { renderPlanTable } from '../../../plugin/output/plan/table.ts';
import { group } from '../../kit/groups.ts';
import { manifest, planInput } from '../../kit/manifests.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { intent, ledgerOf, runOf } from '../../kit/questions.ts';
import { checkOutput } from '../../plugin/output-schema.ts';
import { look, planOf } from '../../plugin/plan-kit.ts';

const zones = ['a', 'b', 'c'] as const;
const groups = [group()];
const image = (version: string) => `grafana/mimir:${version}`;
const uidOf = (name: string) => `uid-${name}`;
const objects = (version: string, spec: object = {}) =>
  zones.map((zone) => {
    const object = manifest(zone, { image: image(version), spec });
    return { ...object, metadata: { ...Object(object).metadata, uid: uidOf(`ingester-zone-${zone}`) } };
  });
const snapshotsOf = (version: string): Snapshot => readPlanSnapshots(planInput({ groups, current: objects(version) })).before;
const revisionIn = ({ statefulSets }: Snapshot, zone: string): string =>
  statefulSets.find(({ name }) => name === `ingester-zone-${zone}`)?.status.updateRevision ?? '';
const targetsIn = (snapshot: Snapshot) => Object.fromEntries(zones.map((zone) => [zone, revisionIn(snapshot, zone)]));

/** The ControllerRevisions of a version, as Kubernetes keeps them. */
const revisionsOf = (version: string) =>
  objects(version).map((object, index) => ({
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name: revisionIn(snapshotsOf(version), zones[index] ?? ''),
      ownerReferences: [{ kind: 'StatefulSet', uid: object.metadata.uid, controller: true }],
    },
    data: { spec: { template: { $patch: 'replace', ...Object(object).spec.template } } },
  }));

/** Returns a cluster whose StatefulSets have the template of `version`, while pods run the given versions, by zone and ordinal. */
function cluster(version: string, podsAt: Readonly<Record<string, readonly string[]>>, run: object = {}): Snapshot {
  const [now, before] = [snapshotsOf(version), snapshotsOf('1.0')];
  const ledger = ledgerOf({
    run: runOf({
      target: targetsIn(now),
      previous: targetsIn(before),
      startedMs: kitNowMs - 60_000,
      lastDisruptionMs: kitNowMs - 30_000,
      ...run,
    }),
  });
  const pods = now.pods.map((view) => ({
    ...view,
    pods: (isUnknown(view.pods) ? [] : view.pods).map((pod) => {
      const zone = view.statefulSet.slice(-1);
      return { ...pod, revision: revisionIn(snapshotsOf(podsAt[zone]?.[pod.ordinal] ?? '1.0'), zone) };
    }),
  }));
  return { ...now, nowMs: kitNowMs, pods, ledgers: [ledger] };
}

function planTo(version: string, running: Snapshot, of = '1.1'): GroupPlan {
  const revisions = ['1.0', '1.1', '1.2'].flatMap(revisionsOf);
  const input = { groups, current: objects(of), desired: objects(version), running, revisions, nowMs: kitNowMs };
  const [plan] = planGroups(planInput(input)).groups;
  if (plan === undefined) throw new Error('no plan');
  return plan;
}

const textsOf = ({ changes }: GroupPlan): readonly string[] => changes.map(changeText);

describe('the change of a plan while pods run other templates than the StatefulSets have', () => {
  it('starts from the images of the pods, and names the template that no pod runs', () => {
    const plan = planTo('1.2', cluster('1.1', {}));
    expect(plan.changes).toMatchObject([{ before: image('1.1'), after: image('1.2'), running: [{ value: image('1.0'), pods: 9 }] }]);
    expect(textsOf(plan)).toEqual([`${image('1.0')} (9 pods) -> 1.2 (template: ${image('1.1')})`]);
  });

  it('names both images if pods run two', () => {
    const plan = planTo('1.2', cluster('1.1', { a: ['1.1', '1.1', '1.1'], b: ['1.0', '1.0', '1.1'] }));
    expect(textsOf(plan)).toEqual([`${image('1.0')} (5 pods) and 1.1 (4 pods) -> 1.2`]);
  });

  it('reports that only the template changes if the pods have the image already', () => {
    expect(textsOf(planTo('1.0', cluster('1.1', {})))).toEqual([`${image('1.1')} -> 1.0 (the pods have it)`]);
  });

  it('has the fields that change only in pods', () => {
    const running = cluster('1.1', {});
    const withGrace = objects('1.1').map((object) => {
      const { template } = Object(object).spec;
      return { ...object, spec: { ...Object(object).spec, template: { ...template, spec: { ...template.spec, hostNetwork: true } } } };
    });
    const input = { groups, current: objects('1.1'), desired: withGrace, running, revisions: revisionsOf('1.0'), nowMs: kitNowMs };
    const [plan] = planGroups(planInput(input)).groups;
    expect(plan === undefined ? [] : textsOf(plan)).toEqual(['false -> true', `${image('1.0')} (9 pods) -> 1.1 (the template has it)`]);
  });

  it('is the change of the StatefulSets if every pod has their template, or its revision is not kept', () => {
    const all = { a: ['1.1', '1.1', '1.1'], b: ['1.1', '1.1', '1.1'], c: ['1.1', '1.1', '1.1'] };
    const done = planTo('1.2', cluster('1.1', all, { outcome: 'completed', completedMs: kitNowMs }));
    expect(done.changes[0]?.running).toBeUndefined();
    const lost = planTo('1.2', cluster('1.1', { a: ['0.9', '0.9', '0.9'], b: ['0.9', '0.9', '0.9'], c: ['0.9', '0.9', '0.9'] }));
    expect(lost.changes[0]?.running).toBeUndefined();
  });
});

type Fields = Readonly<Record<string, unknown>>;

/** StatefulSets whose only container has these fields. */
const withContainer = (container: Fields) =>
  zones.map((zone) => {
    const uid = uidOf(`ingester-zone-${zone}`);
    const object = manifest(zone, { container: { image: image('1.0'), ...container } });
    return { ...object, metadata: { ...Object(object).metadata, uid } };
  });

interface Mixed {
  readonly pods: Fields;
  readonly object: Fields;
  readonly asked: Fields;
  /** The zones whose first pod has the template of the StatefulSet. */
  readonly updated?: readonly string[];
  readonly change?: (snapshot: Snapshot) => Snapshot;
}

/** Plans `asked` while the StatefulSets have `object` and nearly all pods have `pods`: fields of the only container. */
function planMixed({ pods: old, object, asked, updated = [], change = (snapshot) => snapshot }: Mixed): GroupPlan {
  const current = withContainer(object);
  const now = readPlanSnapshots(planInput({ groups, current })).before;
  const views = now.pods.map((view) => ({
    ...view,
    pods: (isUnknown(view.pods) ? [] : view.pods).map((pod) =>
      pod.ordinal === 0 && updated.includes(view.statefulSet.slice(-1)) ? pod : { ...pod, revision: 'old' },
    ),
  }));
  const revisions = withContainer(old).map(({ metadata, ...rest }) => ({
    metadata: { name: 'old', ownerReferences: [{ kind: 'StatefulSet', uid: metadata.uid, controller: true }] },
    data: { spec: Object(rest).spec },
  }));
  const running = change({ ...now, nowMs: kitNowMs, pods: views });
  const [plan] = planGroups(planInput({ groups, current, desired: withContainer(asked), running, revisions, nowMs: kitNowMs })).groups;
  if (plan === undefined) throw new Error('no plan');
  return plan;
}

/** The changes as `field: text`, with the field's path inside the container. */
const rowsOf = (plan: GroupPlan): readonly string[] =>
  plan.changes.map((change) => `${change.field.replace('spec.template.spec.containers[ingester].', '')}: ${changeText(change)}`);

const variable = (name: string, value = '1') => ({ name, value });
const [foo, bar, baz] = [variable('FOO'), variable('BAR'), variable('BAZ')];
const texts = (...entries: readonly object[]): string => entries.map((entry) => JSON.stringify(entry)).join(' ');

describe('a change of a field if pods lack an enclosing field', () => {
  it('counts only the pods that have the enclosing field, and names the enclosing field for the other pods', () => {
    const plan = planMixed({ pods: {}, object: { env: [foo] }, asked: { env: [foo, baz] }, updated: ['a'] });
    expect(rowsOf(plan)).toEqual([
      `env[BAZ]: no value (1 pod) -> ${texts(baz)}`,
      `env: added ${texts(foo, baz)} (8 pods) (the template has it)`,
    ]);
  });

  it('reports no pods if no pod changes at this field', () => {
    const plan = planMixed({ pods: {}, object: { env: [foo] }, asked: { env: [foo, baz] } });
    expect(rowsOf(plan)).toEqual([
      `env[BAZ]: added ${texts(baz)} (the pods have it)`,
      `env: added ${texts(foo, baz)} (9 pods) (the template has it)`,
    ]);
  });

  it('names an inner field of the pods if the StatefulSet lacks the enclosing field', () => {
    const limits = (memory: string) => ({ resources: { limits: { memory } } });
    const plan = planMixed({ pods: limits('1Gi'), object: {}, asked: limits('2Gi') });
    expect(rowsOf(plan)).toEqual([
      `resources: added {"limits":{"memory":"2Gi"}} (the pods have it)`,
      'resources.limits.memory: 1Gi (9 pods) -> 2Gi (the template has it)',
    ]);
    const [difference] = groupDifferences(planOf([plan]), { current: [] });
    expect(difference?.parts.flatMap(({ changes }) => changes.map(({ field }) => field))).toEqual([
      'spec.template.spec.containers[ingester].resources',
    ]);
  });
});

describe('the difference of the objects while pods run another template', () => {
  const shown = (plan: GroupPlan): string =>
    renderDifference({ groups: groupDifferences(planOf([plan]), { current: [] }), objects: [] }, look());

  it('names the pods that have the change, or reports that only the template has it', () => {
    const request = { pods: {}, object: { env: [foo] }, asked: { env: [foo, baz] } };
    expect(shown(planMixed({ ...request, updated: ['a'] }))).toContain('in pods: no value (1 pod)');
    expect(shown(planMixed(request))).toContain('the pods have it');
  });
});

describe('a change of a list', () => {
  it('names the entries that only pods get and lose', () => {
    const plan = planMixed({ pods: { args: ['-a', '-x'] }, object: { args: ['-a', '-b'] }, asked: { args: ['-a', '-b', '-c'] } });
    expect(rowsOf(plan)).toEqual(['args: added -c (the pods have it)', 'args: added -b -c, removed -x (9 pods) (the template has it)']);
  });

  it('is one change if the pods and the StatefulSet get the same entries', () => {
    const plan = planMixed({ pods: { args: ['-x'] }, object: { args: ['-y'] }, asked: { args: ['-c'] }, updated: ['a', 'b'] });
    expect(rowsOf(plan)).toEqual(['args: added -c, removed -x (7 pods) and added -c, removed -y (2 pods)']);
  });

  it('is no difference of the objects if only the pods have another order', () => {
    const asked = { env: [foo, bar], image: image('1.1') };
    const plan = planMixed({ pods: { env: [bar, foo] }, object: { env: [foo, bar] }, asked });
    expect(rowsOf(plan)).toEqual([`image: ${image('1.0')} -> 1.1`, 'env: entries reordered (9 pods) (the template has it)']);
    const [difference] = groupDifferences(planOf([plan]), { current: [] });
    expect(difference?.parts.flatMap(({ changes }) => changes.map(({ field }) => field))).toEqual([
      'spec.template.spec.containers[ingester].image',
    ]);
    expect(() => checkOutput(JSON.stringify(planOf([plan])))).not.toThrow();
  });
});

describe('the known state of the pods', () => {
  it('is the ControllerRevision while the status is older than the spec of the StatefulSet', () => {
    const change = (snapshot: Snapshot): Snapshot => ({
      ...snapshot,
      statefulSets: snapshot.statefulSets.map((set) => ({
        ...set,
        generation: 2,
        status: { ...set.status, observedGeneration: 1, updateRevision: 'old' },
      })),
    });
    const images = { pods: { image: image('1.0') }, object: { image: image('1.1') }, asked: { image: image('1.2') } };
    expect(rowsOf(planMixed({ ...images, change }))).toEqual([`image: ${image('1.0')} (9 pods) -> 1.2 (template: ${image('1.1')})`]);
  });

  it('is counted without unreadable pods', () => {
    const change = (snapshot: Snapshot): Snapshot => ({
      ...snapshot,
      pods: snapshot.pods.map((view) => (view.statefulSet.endsWith('c') ? { ...view, pods: { unknown: 'forbidden' } } : view)),
    });
    const images = { pods: { image: image('1.0') }, object: { image: image('1.1') }, asked: { image: image('1.2') } };
    expect(rowsOf(planMixed({ ...images, change }))).toEqual([`image: ${image('1.0')} (6 pods) -> 1.2 (template: ${image('1.1')})`]);
  });
});

describe('a plan during a run', () => {
  it('names the run that it supersedes, with the pods that are replaced again', () => {
    const running = cluster('1.1', { a: ['1.0', '1.0', '1.1'] });
    const [ledger] = running.ledgers;
    const plan = planTo('1.2', running);
    expect(plan.supersedes).toEqual({
      run: ledger?.run?.id,
      kind: 'rollout',
      to: [image('1.1')],
      pods: 9,
      updated: 1,
      replacedAgain: 1,
    });
    expect(supersedesText(plan)).toBe(
      `supersedes run ${ledger?.run?.id} (to ${image('1.1')}): 1 of 9 pods updated; this pod is replaced again`,
    );
  });

  it('names the changes of the superseded run in its pods, not in a template that no pod ran', () => {
    const from = targetsIn(snapshotsOf('0.9'));
    expect(planTo('1.2', cluster('1.1', { a: ['1.0', '1.0', '1.1'] }, { from })).supersedes?.to).toEqual([image('1.1')]);
  });

  it('names the superseded run in every format', () => {
    const plan = planOf([planTo('1.2', cluster('1.1', { a: ['1.0', '1.0', '1.1'] }))]);
    for (const text of [renderPlanTable(plan, look()), renderPlanMarkdown(plan), renderPlanHtml(plan)])
      expect(text).toContain('1 of 9 pods updated; this pod is replaced again');
    expect(() => checkOutput(JSON.stringify(plan))).not.toThrow();
  });

  it('names the superseded run also if it replaced no pod yet', () => {
    const none = cluster('1.1', {}, { lastDisruptionMs: kitNowMs - 90_000 });
    expect(supersedesText(planTo('1.2', none))).toBe(`supersedes run run-1 (to ${image('1.1')}): 0 of 9 pods updated`);
  });

  const failedRun = cluster('1.1', { a: ['1.0', '1.0', '1.1'] }, { outcome: 'failed', failure: 'aborted by kim', failedMs: kitNowMs });

  it('supersedes nothing if the run has ended, has the requested template, or gets another zone', () => {
    const running = cluster('1.1', { a: ['1.0', '1.0', '1.1'] });
    const targets = { ...targetsIn(snapshotsOf('1.1')), c: targetsIn(snapshotsOf('1.0'))['c'] };
    const ofTwoZones = { ...cluster('1.1', {}, { target: targets }) };
    const plans = [planTo('1.1', running), planTo('1.2', failedRun), planTo('1.1', ofTwoZones)];
    expect(plans.map(({ supersedes }) => supersedes)).toEqual([undefined, undefined, undefined]);
  });

  it('names the failed run that the change unblocks, in every format, and unblocks no run with the same template', () => {
    expect([planTo('1.1', failedRun).ends, planTo('1.2', cluster('1.1', {})).ends]).toEqual([undefined, undefined]);
    const plan = planOf([planTo('1.2', failedRun)]);
    expect(plan.groups[0]?.ends).toMatchObject([{ rule: 'run-failed', zones: [...zones] }]);
    for (const text of [renderPlanTable(plan, look()), renderPlanMarkdown(plan), renderPlanHtml(plan)])
      expect(text).toContain('ends a block: the run failed: aborted by kim');
    expect(() => checkOutput(JSON.stringify(plan))).not.toThrow();
  });
});

it('RG5016 is absent for a rolled-back revision if the change returns the template to the revision of the pods', () => {
  const pinned = group({ zones: ['a'], rollout: { strategy: 'pinned' } });
  const spec = { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 1000000 } } };
  const [good, bad] = [[manifest('a', { spec })], [manifest('a', { spec, image: image('2.17.1') })]];
  const revisionOf = (current: readonly unknown[]) =>
    readPlanSnapshots(planInput({ groups: [pinned], current })).before.statefulSets[0]?.status.updateRevision ?? '';
  const [to, failed] = [revisionOf(good), revisionOf(bad)];
  const rolledBack = { revisions: { a: failed }, because: 'gate errors' };
  const run = runOf({
    kind: 'rollback',
    outcome: 'completed',
    completedMs: kitNowMs,
    target: { a: to },
    previous: { a: failed },
    rolledBack,
  });
  const { before } = readPlanSnapshots(planInput({ groups: [pinned], current: bad }));
  const pods = before.pods.map((one) => ({ ...one, revision: to }));
  const running = { ...before, pods, ledgers: [ledgerOf({ run })] };
  const codes = (desired: readonly unknown[]) =>
    planGroups(planInput({ groups: [pinned], current: bad, desired, running })).groups[0]?.risks.filter(({ code }) => code === 'RG5016')
      .length;
  expect([codes(bad), codes(good)]).toEqual([1, 0]);
});

it('a plan that waits for a crashing pod names the time at which a deadline fails the run, and during a pause no deadline of a starting pod', () => {
  const snapshot = cluster('1.1', { a: ['1.0', '1.0', '1.1'] });
  const starting = { isReady: false, containersReady: false, readyChangedMs: kitNowMs - 10_000 };
  const podsWith = (down: Partial<PodView>) =>
    snapshot.pods.map((view) => ({
      ...view,
      pods: (isUnknown(view.pods) ? [] : view.pods).map((pod) => (pod.name === 'ingester-zone-a-2' ? { ...pod, ...down } : pod)),
    }));
  const pods = podsWith({ ...starting, waitingReasons: ['CrashLoopBackOff'] });
  const planTo = (version: string, more: Partial<Snapshot> = {}) => {
    const limited = [group({ rollout: { deadlines: { progressMs: 600_000 } } })];
    const revisions = ['1.0', '1.1', '1.2'].flatMap(revisionsOf);
    const running = { ...snapshot, pods, groups: limited, ...more };
    const files = { current: objects('1.1'), desired: objects(version) };
    return planGroups(planInput({ ...files, groups: limited, revisions, running, nowMs: kitNowMs })).groups[0];
  };
  const message =
    'the plan waits, and the run fails at 2026-03-02 12:09 UTC by progress-deadline: the last progress was 30s ago (limit: 10m)';
  const waiting = planTo('1.1');
  expect([waiting?.outcome, waiting?.risks]).toEqual(['waits', [{ code: 'RG5010', severity: 'warning', message }]]);
  // Another template supersedes the run.
  expect(planTo('1.2')?.risks).toEqual([]);
  // The pod becomes available, and no deadline counts the time of the pause.
  const paused = planTo('1.1', { pods: podsWith(starting), intents: [intent({ action: 'pause' })] });
  expect([paused?.outcome, paused?.risks]).toEqual(['waits', []]);
});
