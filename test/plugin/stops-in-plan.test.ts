import { describe, expect, it } from 'vitest';
import { defaultAssumptions, type Plan } from '../../engine/plan/document.ts';
import { planGroups } from '../../engine/plan/plan.ts';
import { digestOfWaves } from '../../engine/run/requests.ts';
import type { RunState } from '../../engine/run/run-state.ts';
import { groupDifferences } from '../../plugin/difference.ts';
import { renderDifference } from '../../plugin/output/diff.ts';
import { renderPlanHtml } from '../../plugin/output/plan/html.ts';
import { renderPlanMarkdown } from '../../plugin/output/plan/markdown.ts';
import { renderPlanTable } from '../../plugin/output/plan/table.ts';
import { holdingPartition } from '../../policies/strategies.ts';
import { group, wave } from '../kit/groups.ts';
import { manifests, planInput } from '../kit/manifests.ts';
import { kitNowMs, newRevision, statefulSet } from '../kit/objects.ts';
import { exception, freeze, hourMs, intent, policy } from '../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../kit/snapshots.ts';
import { look } from './plan-kit.ts';
import { afterRun, ended, name, otherTemplate, outdated, type Row, rowOf, rows, run, saying, zones } from './stop-rows.ts';

const failedManifests = manifests({ image: 'grafana/mimir:2.17.1' }, zones).map((one) => ({
  ...one,
  status: { updateRevision: newRevision },
}));

/** The plan of the update revision of the row, or of other manifests, in the cluster of the row. */
function planOf({ overrides, definition = group({ zones }) }: Row, desired: readonly unknown[] = failedManifests): Plan {
  const running = snapshotOf({ groups: [definition], ...overrides });
  return planGroups(
    planInput({
      groups: [definition],
      policies: overrides.policies ?? [],
      exceptions: overrides.exceptions ?? [],
      current: manifests({}, zones),
      desired,
      running,
    }),
  );
}

const formats = [
  ['table', (plan: Plan) => renderPlanTable(plan, look())],
  ['markdown', (plan: Plan) => renderPlanMarkdown(plan).replaceAll('&#58;', ':')],
  ['html', renderPlanHtml],
  ['diff', (plan: Plan) => renderDifference({ groups: groupDifferences(plan, { current: [] }), objects: [] }, look())],
] as const;

describe.each(rows)('$stop', (row) => {
  const plan = planOf(row);

  it.each(formats)('%s names requester, reason, end and the command that ends it', (_, render) => {
    const shown = render(plan);
    for (const text of [row.fact, row.until ?? '', ...row.commands]) expect(shown).toContain(text);
    expect(shown).not.toMatch(/(?:WAITS|BLOCKED) /);
  });
});

it('a plan without a stop shows no stop', () => {
  expect(planGroups(planInput({ desired: manifests({ image: 'grafana/mimir:2.17.1' }) })).groups[0]?.stops).toBeUndefined();
});

it.each([
  ['names undo if a StatefulSet has the undone revision', outdated, true],
  ['does not name undo, which would change nothing, if only the change requests the undone revision', undefined, false],
])('a plan that an undone revision stops %s', (_, statefulSets, isNamed) => {
  const undo = saying('undo', { undone: zones.map((zone) => ({ zone, revision: newRevision })) });
  const row = { stop: 'undo', fact: '', commands: [] };
  const plan = planOf({ ...row, overrides: { ...undo, ...(statefulSets && { statefulSets }) } });
  const [stop] = plan.groups[0]?.stops ?? [];
  const ways = [`kubectl rollout-group undo ${name}`, otherTemplate];
  expect([stop?.rule, stop?.endsWith, stop?.alternatives]).toEqual([
    'undone',
    `kubectl rollout-group cancel ${name} undo.ingester`,
    isNamed ? ways : [otherTemplate],
  ]);
});

describe.each(ended.map((row) => row.stop))('after the stop %s', (stop) => {
  const { overrides, ...row } = rowOf(stop);
  const stopsWith = (more: SnapshotOverrides) => {
    const plan = planOf({ ...row, overrides: { ...overrides, ...more } });
    return { plan, rules: plan.groups[0]?.stops?.map(({ rule }) => rule).sort() };
  };
  const ofRun = [...(stop.includes('rollback') ? ['rolled-back'] : []), ...(stop === 'abort --rollback' ? [] : ['run-failed'])];

  it.each([
    ['until a time', { expiresMs: kitNowMs + hourMs }],
    ['without end', {}],
  ])('a plan also shows the pause of a zone with outdated pods, %s', (_, until) => {
    const request = intent({ action: 'pause', reason: 'INC-441', zone: 'b', ...until });
    const { plan, rules } = stopsWith({ intents: [request] });
    expect(rules).toEqual(['paused', ...ofRun]);
    for (const [, render] of formats) expect(render(plan)).toContain('zone b is paused by kim (INC-441)');
  });

  it('a plan also shows a window', () => {
    expect(stopsWith({ policies: [policy({ windows: [freeze()] })] }).rules).toEqual([...ofRun, 'window']);
  });
});

it('a plan after an abort shows no pause of a zone without pods to replace', () => {
  const [a, b] = outdated;
  const { overrides, ...row } = rowOf('abort');
  const updated = statefulSet({ ...b, status: { ...b?.status, updatedReplicas: 3, currentRevision: newRevision } });
  const statefulSets = [a, updated].filter((set) => set !== undefined);
  const plan = planOf({ ...row, overrides: { ...overrides, statefulSets, ...saying('pause', { zone: 'b' }) } });
  expect(plan.groups[0]?.stops?.map(({ rule }) => rule)).toEqual(['run-failed']);
});

it.each([
  ['ends during the plan', hourMs / 2, []],
  ['ends before the zone is done', hourMs / 20, ['RG5011']],
  ['ends later', 5 * hourMs, []],
])('a plan shows the window that stops the other zone if an exception of one zone %s', (_, forMs, codes) => {
  const definition = group({ zones });
  const exceptions = [exception('window', { zone: 'a', expiresMs: kitNowMs + forMs })];
  const overrides = { policies: [policy({ windows: [freeze()] })], exceptions, statefulSets: outdated };
  const [planned] = planOf({ stop: '', fact: '', commands: [], overrides, definition }).groups;
  expect(planned?.stops?.map(({ rule, zones: stopped, endsWith }) => [rule, stopped, endsWith])).toEqual([
    ['window', ['b'], expect.stringContaining('--rule window --zone b')],
  ]);
  expect(planned?.risks.map(({ code }) => code)).toEqual(codes);
});

const held = outdated.map((set) => ({ ...set, updateStrategy: 'RollingUpdate' as const, partition: holdingPartition }));
const back: RunState = {
  ...run,
  kind: 'rollback',
  target: run.previous,
  previous: run.target,
  outcome: 'running',
  rolledBack: { revisions: run.target, because: 'slow' },
};
/** One pod of zone a has not returned yet. */
const duringRollback = { ...afterRun(back), statefulSets: held, podChanges: { 'ingester-zone-a': { 2: { revision: newRevision } } } };

it('a plan during a rollback counts a pod twice that is rolled out again later, but only the pods that return while it is paused', () => {
  const definition = group({ zones, rollout: { strategy: 'pinned' } });
  const overrides = duringRollback;
  const [planned] = planOf({ stop: '', fact: '', commands: [], overrides, definition }).groups;
  const rolled = planned?.waves.flatMap(({ steps }) => steps).flatMap(({ kind, pods }) => (kind === 'roll' ? pods : [])) ?? [];
  const later = planned?.zones.flatMap(({ afterWait = [] }) => afterWait) ?? [];
  expect(planned?.stops?.map(({ endsWith }) => endsWith)).toEqual(['after the rollback: kubectl rollout-group retry mimir/ingester']);
  expect([rolled.length, later.length, planned?.totals.restarts]).toEqual([1, 6, 7]);
  const [paused] = planOf({
    stop: '',
    fact: '',
    commands: [],
    overrides: { ...overrides, intents: [intent({ action: 'pause' })] },
    definition,
  }).groups;
  expect(paused?.zones.map(({ afterWait }) => afterWait)).toEqual([['ingester-zone-a-2'], undefined]);
});

describe('the checks after the wait of a plan', () => {
  const approval = { count: 1, from: ['oncall'] };
  const waves = [
    wave('canary', ['a'], { amount: { pods: 1 }, after: { soakMs: hourMs, gates: [] } }),
    wave('rest', zones, { before: { approval, gates: [] }, after: { soakMs: hourMs, gates: [] } }),
  ];
  const failed = { ...run, outcome: 'failed', failure: 'slow', failedMs: kitNowMs - 1000, onFailure: 'pause' } as const;
  const inRest = { ...failed, wave: 1, lastDisruptionMs: kitNowMs - 2000 };
  const all = 'with the soaks and approval of the waves canary, rest';
  const canary = ['canary', 'soak'];
  const rest = ['rest', 'soak', 'approval'];

  it.each<[string, SnapshotOverrides, readonly (readonly string[])[], string]>([
    ['before a run', { statefulSets: outdated, intents: [intent({ action: 'pause' })] }, [canary, rest], all],
    ['in the first wave', afterRun({ ...failed, lastDisruptionMs: kitNowMs - 2000 }), [canary, rest], all],
    [
      'in the last wave before its approval',
      afterRun({ ...inRest, waveStartedMs: kitNowMs }),
      [rest],
      'with the soak and approval of wave rest',
    ],
    [
      'in the last wave',
      afterRun({ ...inRest, waves: digestOfWaves(group({ rollout: { waves } })) }),
      [['rest', 'soak']],
      'with the soak of wave rest',
    ],
    ['after a rollback', rowOf('abort --rollback').overrides, [canary, rest], all],
  ])('are the checks of the waves that follow %s', (_, overrides, checks, text) => {
    const strategy = overrides === rowOf('abort --rollback').overrides ? 'pinned' : 'onDelete';
    const plan = planOf({ stop: '', fact: '', commands: [], overrides, definition: group({ zones, rollout: { strategy, waves } }) });
    expect(plan.groups[0]?.checksAfterWait?.map(({ wave: name, kinds }) => [name, ...kinds])).toEqual(checks);
    expect(formats.slice(0, 3).map(([, render]) => render(plan).replace(/\s+/g, ' ').includes(`(6 pods), ${text}`))).toEqual([
      true,
      true,
      true,
    ]);
  });

  it.each([
    ['none', true, undefined],
    ['those of the rollback', false, [['rest', 'soak']]],
  ])('are %s while a rollback is paused, if skipOnRollback is %s', (_, skipOnRollback, checks) => {
    const definition = group({ zones, rollout: { strategy: 'pinned', waves, skipOnRollback } });
    const row = { stop: '', fact: '', commands: [], overrides: { ...duringRollback, intents: [intent({ action: 'pause' })] }, definition };
    const previous = manifests({}, zones).map((one) => ({ ...one, status: { updateRevision: 'rev-1' } }));
    for (const plan of [planOf(row), planOf(row, previous)].flatMap(({ groups }) => groups)) {
      expect(plan.zones.map(({ afterWait }) => afterWait)).toEqual([['ingester-zone-a-2'], undefined]);
      expect(plan.checksAfterWait?.map(({ wave: name, kinds }) => [name, ...kinds])).toEqual(checks);
    }
  });

  it('count no approval of a rollback for the run of a later retry', () => {
    const withApproval = [waves[0], wave('rest', zones, { after: { soakMs: hourMs, approval, gates: [] } })].filter(
      (one) => one !== undefined,
    );
    const definition = group({ zones, rollout: { strategy: 'pinned', waves: withApproval, skipOnRollback: false } });
    const sinceMs = kitNowMs - 2 * hourMs;
    const waiting = { ...back, wave: 1, waveStartedMs: sinceMs, lastDisruptionMs: sinceMs, waveAvailableMs: sinceMs };
    const overrides = { ...afterRun(waiting), statefulSets: held };
    const [plan] = planOf({ stop: '', fact: '', commands: [], overrides, definition }).groups;
    expect(plan?.checksAfterWait?.map(({ wave: name, kinds }) => [name, ...kinds])).toEqual([canary, rest]);
  });

  it('do not repeat the approval for which the plan waits', () => {
    const groups = [group({ zones, rollout: { waves: waves.slice(1) } })];
    const desired = manifests({ image: 'grafana/mimir:2.17.1' }, zones);
    const [plan] = planGroups(
      planInput({ groups, current: manifests({}, zones), desired, assumptions: { ...defaultAssumptions, approvals: 'missing' } }),
    ).groups;
    expect([plan?.waits.map(({ rule }) => rule), plan?.checksAfterWait]).toEqual([['approval'], [{ wave: 'rest', kinds: ['soak'] }]]);
  });
});
