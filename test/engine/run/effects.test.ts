// States of a run against the requests about it: a request has an effect exactly if the engine says so. The oracle plays the run to its end.
import { describe, expect, it } from 'vitest';
import { contextOf } from '../../../engine/context.ts';
import { decideGroup } from '../../../engine/decide/decide.ts';
import type { RuleResult } from '../../../engine/decision.ts';
import { runForward } from '../../../engine/plan/forward.ts';
import { publishedDecision } from '../../../engine/publish/decision.ts';
import { mayRetry, whyRunStays } from '../../../engine/publish/status.ts';
import { mayApprove } from '../../../engine/rules/approval.ts';
import { effectOfAnswer, effectOfPromotion } from '../../../engine/run/effects.ts';
import { digestOfWaves } from '../../../engine/run/requests.ts';
import { rollsBack } from '../../../engine/run/run.ts';
import type { IntentView, Snapshot } from '../../../engine/snapshot.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { gate, group, wave } from '../../kit/groups.ts';
import { kitNowMs, newRevision, oldRevision } from '../../kit/objects.ts';
import {
  ago,
  hourMs,
  intent,
  ledgerOf,
  minuteMs,
  outdatedSets,
  type RunFields,
  runOf,
  secondMs,
  updatedPods,
} from '../../kit/questions.ts';
import { snapshotOf } from '../../kit/snapshots.ts';
import { worldOf } from '../../kit/worlds.ts';

const oncall = { count: 1, from: ['oncall'] };
const owners = { count: 1, from: ['owners'] };
const halfHourMs = 30 * minuteMs;

const definition = group({
  gates: [
    gate({ initialDelayMs: 5 * minuteMs }),
    gate({ name: 'latency', initialDelayMs: hourMs + 5 * minuteMs }),
    gate({ name: 'seen', mode: 'observe', initialDelayMs: 5 * minuteMs }),
  ],
  rollout: {
    waves: [
      wave('both', ['a'], { before: { approval: oncall, gates: ['latency'] }, after: { approval: owners, soakMs: halfHourMs, gates: [] } }),
      wave('end', ['b'], { after: { approval: owners, soakMs: 0, gates: ['errors', 'seen'] } }),
      wave('start', ['c'], { before: { approval: oncall, gates: [] } }),
      // The same pods do not soak twice.
      wave('again', ['a'], { after: { soakMs: halfHourMs, gates: ['seen'] } }),
    ],
  },
});
const waves = digestOfWaves(definition);
const replaced = { waves, waveStartedMs: ago(10 * minuteMs), lastDisruptionMs: ago(5 * minuteMs) };
const back = {
  kind: 'rollback',
  target: { a: newRevision, b: newRevision, c: newRevision },
  previous: { a: oldRevision, b: oldRevision, c: oldRevision },
} as const;

interface State {
  readonly run: RunFields;
  readonly updated?: readonly string[];
  readonly of?: GroupDefinition;
}

const withoutFastTrack: GroupDefinition = { ...definition, rollout: { ...definition.rollout, skipOnRollback: false } };
const failedRevisions = { revisions: back.previous, because: 'aborted' };

const states: Readonly<Record<string, State>> = {
  'before the first wave': { run: {} },
  'the first wave replaces pods': { run: replaced },
  'the first wave soaks': { run: { ...replaced, waveAvailableMs: ago(minuteMs) }, updated: ['a'] },
  'the first wave has soaked': {
    run: { ...replaced, waveStartedMs: ago(hourMs), lastDisruptionMs: ago(50 * minuteMs), waveAvailableMs: ago(45 * minuteMs) },
    updated: ['a'],
  },
  'the second wave replaces pods': { run: { ...replaced, wave: 1 }, updated: ['a'] },
  'the second wave is available': { run: { ...replaced, wave: 1, waveAvailableMs: ago(minuteMs) }, updated: ['a', 'b'] },
  'the third wave has not started': { run: { ...replaced, wave: 2, waveStartedMs: ago(minuteMs) }, updated: ['a', 'b'] },
  'the third wave replaces pods': { run: { ...replaced, wave: 2 }, updated: ['a', 'b'] },
  'an undo': { run: back },
  'a rollback': { run: { ...back, rolledBack: failedRevisions } },
  'an undo that skips nothing': { run: back, of: withoutFastTrack },
  'a rollback that skips only gates': { run: { ...back, rolledBack: failedRevisions }, of: withoutFastTrack },
};

function snapshotFor({ run, updated = [], of = definition }: State, intents: readonly IntentView[] = []): Snapshot {
  return snapshotOf({
    groups: [of],
    statefulSets: outdatedSets(),
    podChanges: Object.fromEntries(updated.map((zone) => [`ingester-zone-${zone}`, updatedPods()])),
    ledgers: [ledgerOf({ run: runOf(run) })],
    intents: [...intents],
  });
}

/** Every result and stop of the run until its end, at its instant. Other people approve when the run waits for them. */
function courseOf(state: State, requests: readonly IntentView[] = []): string {
  const { of = definition } = state;
  const facts: string[] = [];
  runForward(worldOf({ ...snapshotFor(state, requests) }), of, {
    untilMs: kitNowMs + 2 * hourMs,
    onTurn: ({ nowMs, decision: { run, steps, stops } }) => {
      const results: readonly Pick<RuleResult, 'fact'>[] = [...steps.flatMap((step) => step.results), ...stops];
      if (run?.id === 'run-1') facts.push(...results.map(({ fact }) => `${nowMs} ${fact}`));
    },
  });
  return facts.join('\n');
}

const usualCourses = new Map<State, string>();

/** Reports whether a request of kim changes the course of the run. */
function changesCourse(state: State, request: Partial<IntentView>): boolean {
  const requestedBy = { user: 'kim', groups: ['oncall'], atMs: kitNowMs };
  const digest = digestOfWaves(state.of ?? definition);
  const usual = usualCourses.get(state) ?? courseOf(state);
  usualCourses.set(state, usual);
  return courseOf(state, [intent({ name: 'of-kim', runId: 'run-1', digest, requestedBy, ...request })]) !== usual;
}

const rows = Object.entries(states).flatMap(([name, state]) => definition.rollout.waves.map((one) => ({ name, state, wave: one.name })));
const contextFor = (state: State) => contextOf(snapshotFor(state), state.of ?? definition);

describe('an answer to a wave counts exactly for the approvals that the engine names', () => {
  const answered = rows.filter(({ wave: name }) => name !== 'again');
  const actions = ['approve', 'reject'] as const;
  const cases = answered.flatMap((row) =>
    actions.flatMap((action) => ['oncall', 'owners', 'guests'].map((of) => ({ ...row, action, of }))),
  );

  it.each(cases)('$action of $wave by $of: $name', ({ state, wave: name, action, of }) => {
    const context = contextFor(state);
    const [meant] = context.group.rollout.waves.filter((one) => one.name === name);
    if (meant === undefined) throw new Error(`the test expected a wave ${name}`);
    const requestedBy = { user: 'kim', groups: [of], atMs: kitNowMs };
    const { counts } = effectOfAnswer(context, runOf(state.run), meant, action);
    const isCounted = counts.some(({ approval }) => mayApprove({ requestedBy }, approval));
    expect(isCounted).toBe(changesCourse(state, { action, wave: name, requestedBy }));
  });

  it.each([
    ['before the first wave', 'both', undefined],
    ['the first wave replaces pods', 'both', 'an approval of the end of wave both counts only after its last pod is replaced'],
    ['the first wave replaces pods', 'end', 'an approval of the end of wave end counts only after its last pod is replaced'],
    ['the third wave replaces pods', 'start', 'wave start has already started'],
    ['the third wave replaces pods', 'end', 'wave end is over; the run is in wave start'],
    ['an undo', 'start', 'a return to the previous template needs no approval (skipOnRollback)'],
  ])('%s: an approval of wave %s', (name, wanted, why) => {
    const state = states[name];
    const meant = definition.rollout.waves.find((one) => one.name === wanted);
    if (state === undefined || meant === undefined) throw new Error('the test expected a state and a wave');
    expect(effectOfAnswer(contextFor(state), runOf(state.run), meant, 'approve').why).toBe(why);
  });
});

it('an approval of a wave that adds no pod counts for its start, although the wave is filled', () => {
  const approval = { count: 1, from: [] };
  const mid = wave('mid', ['a'], { amount: { percent: 10 }, before: { approval, gates: [] } });
  const waves = [wave('canary', ['a'], { amount: { pods: 1 } }), mid, wave('rest', ['a', 'b', 'c'])];
  const state: State = { run: { ...replaced, wave: 1, waveStartedMs: ago(minuteMs) }, updated: ['a'], of: group({ rollout: { waves } }) };
  expect(effectOfAnswer(contextFor(state), runOf(state.run), mid, 'approve').counts).toEqual([{ when: 'before', approval }]);
  const end = { ...mid, before: { gates: [] }, after: { soakMs: 0, gates: [], approval } };
  const ofEnd = { ...state, of: group({ rollout: { waves: waves.map((one) => (one === mid ? end : one)) } }) };
  expect(effectOfAnswer(contextFor(ofEnd), runOf(ofEnd.run), end, 'approve').counts).toEqual([{ when: 'after', approval }]);
  const both = { ...mid, after: end.after };
  const ofBoth = { ...state, of: group({ rollout: { waves: waves.map((one) => (one === mid ? both : one)) } }) };
  expect(effectOfAnswer(contextFor(ofBoth), runOf(state.run), both, 'approve').counts.map(({ when }) => when)).toEqual(['before', 'after']);
});

describe('a promotion skips something exactly if the engine says so', () => {
  const gates = [undefined, 'errors', 'latency', 'seen'];
  const cases = [...rows, ...Object.entries(states).map(([name, state]) => ({ name, state, wave: undefined }))];

  it.each(cases.flatMap((row) => gates.map((of) => ({ ...row, of }))))('gate $of of wave $wave: $name', ({ state, wave: name, of }) => {
    const { why } = effectOfPromotion(contextFor(state), runOf(state.run), { wave: name, gate: of });
    const about = { ...(name === undefined ? {} : { wave: name }), ...(of === undefined ? {} : { gate: of }) };
    expect(why === undefined).toBe(changesCourse(state, { action: 'promote', ...about }));
  });

  const nothingLeft =
    'waves both, end, start and again have no soak and no gate left; a return to the previous template skips soaks and gates (skipOnRollback)';

  it.each([
    ['before the first wave', { soakMs: halfHourMs, gates: ['latency', 'errors'] }],
    ['the first wave has soaked', { soakMs: 0, gates: ['errors'] }],
    ['an undo that skips nothing', { soakMs: halfHourMs, gates: ['latency', 'errors'] }],
    ['a rollback that skips only gates', { soakMs: halfHourMs, gates: [] }],
    ['an undo', { why: nothingLeft }],
    ['a rollback', { why: nothingLeft }],
    ['the third wave replaces pods', { why: 'waves start and again have no soak and no gate left' }],
  ])('%s: of all waves', (name, expected) => {
    const state = states[name];
    if (state === undefined) throw new Error('the test expected a state');
    expect(effectOfPromotion(contextFor(state), runOf(state.run), { wave: undefined, gate: undefined })).toMatchObject(expected);
  });
});

describe('the end of a run', () => {
  const failedRun = { outcome: 'failed', failure: 'aborted by kim', failedMs: ago(minuteMs), onFailure: 'rollback' } as const;
  const pinned: GroupDefinition = { ...definition, rollout: { ...definition.rollout, strategy: 'pinned' } };
  const unchanged = { previous: back.target };
  const ends: readonly (readonly [string, GroupDefinition, RunFields])[] = [
    ['a rollout', pinned, failedRun],
    ['a rollout of a group that cannot roll back', definition, failedRun],
    ['a rollout that changes no revision', pinned, { ...failedRun, ...unchanged }],
    ['an undo', pinned, { ...failedRun, ...back }],
    ['a rollback', pinned, { ...failedRun, ...back, rolledBack: failedRevisions }],
    ['a run that is not over', pinned, {}],
  ];
  const publishedOf = (of: GroupDefinition, run: RunFields) => {
    const snapshot = snapshotFor({ run, of });
    const decision = { ...decideGroup(snapshot, of), run: runOf(run) };
    return publishedDecision({ group: of, decision, snapshot, atMs: kitNowMs, leader: 'agent-0', origin: 'objects' });
  };

  it.each(ends)('%s: the published run is rolled back exactly if the engine rolls it back', (_name, of, run) => {
    const published = publishedOf(of, run);
    if (published.run === undefined) throw new Error('the test expected a run');
    const aborted = runOf({ ...run, ...failedRun });
    expect(whyRunStays(published.run, published.strategy) === undefined).toBe(rollsBack(contextFor({ run, of }), aborted));
  });

  it.each(ends)('%s: retry has an effect exactly if the engine continues it', (_name, of, run) => {
    const paused: GroupDefinition = { ...of, rollout: { ...of.rollout, onFailure: 'pause' } };
    const stored = run.outcome === 'failed' ? { ...run, onFailure: 'pause' as const } : run;
    const request = intent({ action: 'retry', runId: 'run-1', requestedBy: { user: 'kim', groups: [], atMs: ago(secondMs) } });
    const after = decideGroup(snapshotFor({ run: stored, of: paused }, [request]), paused);
    expect(mayRetry(publishedOf(paused, stored))).toBe(after.run?.retriedMs === kitNowMs);
  });
});
