import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../engine/decide/decide.ts';
import type { AdmissionRequest, RuleResult } from '../../../engine/decision.ts';
import { judge } from '../../../engine/judge/judge.ts';
import { decidedLedger } from '../../../engine/ledger/ledger.ts';
import { runRecord } from '../../../engine/publish/run-record.ts';
import { blocks } from '../../../engine/rule.ts';
import { ruleCatalog } from '../../../engine/rules/catalog.ts';
import { withException } from '../../../engine/rules/exception.ts';
import { afterWave } from '../../../engine/rules/wave.ts';
import { abortRequests, digestOfRule, digestOfWaves, pauses } from '../../../engine/run/requests.ts';
import type { IntentView, Ledger, Snapshot } from '../../../engine/snapshot.ts';
import type {
  ExceptionDefinition,
  GateDefinition,
  GroupDefinition,
  PolicyDefinition,
  WaveDefinition,
} from '../../../policies/definition.ts';
import { canOverride, rulesWithoutException } from '../../../policies/rollout/rules-without-exception.ts';
import type { RolloutRun } from '../../../policies/schema/kinds.ts';
import { adopted, gate, group, wave } from '../../kit/groups.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { partitionedCase } from '../../kit/partition-cases.ts';
import { pinnedCase } from '../../kit/pinned-cases.ts';
import {
  ago,
  contextWith,
  exception,
  hourMs,
  intent,
  ledgerOf,
  line,
  minuteMs,
  outdatedSets,
  policy,
  policyRule,
  preparation,
  runOf,
} from '../../kit/questions.ts';
import { randomCase } from '../../kit/random-groups.ts';
import { blockedSteps, replacedPods, roll } from '../../kit/rolls.ts';

const vouched = (user: string, atMs: number, groups: readonly string[] = ['oncall']): IntentView['requestedBy'] & object => ({
  user,
  groups,
  atMs,
});

describe('a promotion', () => {
  const gated = group({ gates: [gate()], rollout: { waves: [wave('all', ['a'], { after: { soakMs: hourMs, gates: ['errors'] } })] } });
  const [first] = gated.rollout.waves;
  const asked = (intents: readonly IntentView[], readings: Snapshot['gateReadings'] = []) => {
    if (first === undefined) throw new Error('the test expected a wave');
    const { results, failure } = afterWave(
      contextWith(gated, { intents, gateReadings: readings }),
      first,
      runOf({ waveAvailableMs: ago(minuteMs) }),
    );
    return [...results.map(({ rule, outcome }) => `${rule} ${outcome}`), ...(failure === undefined ? [] : ['failed'])];
  };
  const bad: Snapshot['gateReadings'] = [
    { namespace: 'mimir', group: 'ingester', gate: 'errors', readings: [{ atMs: kitNowMs - 1000, result: 'value', value: 9 }] },
  ];

  it('with a future time has no effect', () => {
    const said = (aheadMs: number) => intent({ action: 'promote', requestedBy: vouched('kim', kitNowMs + aheadMs) });
    expect(asked([said(30_001)])).toEqual(['soak wait', 'gate wait']);
    expect(asked([said(30_000)])).toEqual(['soak skip', 'gate skip']);
  });

  it('skips soak and gates, also a gate that would fail the run, and names its requester', () => {
    expect(asked([])).toEqual(['soak wait', 'gate wait']);
    expect(asked([], bad)).toEqual(['soak wait', 'gate no', 'failed']);
    expect(asked([intent({ action: 'promote' })], bad)).toEqual(['soak skip', 'gate skip']);
  });

  it('of one gate does not skip the soak', () => {
    expect(asked([intent({ action: 'promote', gate: 'errors' })], bad)).toEqual(['soak wait', 'gate skip']);
    expect(asked([intent({ action: 'promote', gate: 'other' })], bad)).toEqual(['soak wait', 'gate no', 'failed']);
  });

  it('skips no approval', () => {
    const approval = { count: 1, from: [] };
    const approved = group({ rollout: { waves: [wave('all', ['a', 'b', 'c'], { before: { approval, gates: [] } })] } });
    const decided = roll(approved, runOf(), { intents: [intent({ action: 'promote' })] });
    expect(blockedSteps(decided)).toEqual(['roll/a wait: approval']);
  });
});

describe('an approval', () => {
  const approval = { count: 1, from: ['oncall'], expiresMs: hourMs };
  const approved = group({ rollout: { waves: [wave('all', ['a', 'b', 'c'], { before: { approval, gates: [] } })] } });
  const answered = (...intents: readonly IntentView[]): string => {
    const decided = roll(approved, runOf(), { intents: intents.map((one, index) => ({ ...one, name: `intent-${index}` })) });
    return replacedPods(decided) || (blockedSteps(decided)[0] ?? '');
  };
  const yes = (atMs: number, more: Partial<IntentView> = {}): IntentView =>
    intent({ wave: 'all', digest: digestOfWaves(approved), requestedBy: vouched('kim', atMs), ...more });
  const no = (atMs: number): IntentView => ({ ...yes(atMs), action: 'reject' });

  it('passes the wave, but ends no rejection, also of the same user and with a later time', () => {
    expect(answered(yes(ago(1000)))).toBe('a-2');
    expect(answered(no(ago(2000)), yes(ago(1000)))).toBe('roll/a blocked: approval');
    expect(answered(yes(ago(2000)), no(ago(1000)))).toBe('roll/a blocked: approval');
    expect(answered(no(ago(2000)), yes(ago(1000), { requestedBy: vouched('lea', ago(1000)) }))).toBe('roll/a blocked: approval');
  });

  it('names its end, the first of both ends', () => {
    const results = roll(approved, runOf(), { intents: [yes(ago(1000), { expiresMs: kitNowMs + minuteMs })] }).steps[0]?.results;
    expect(results?.find(({ rule }) => rule === 'approval')?.earliestMs).toBe(kitNowMs + minuteMs);
  });
});

describe('the digest of an approved definition', () => {
  const [canary, rest] = [
    wave('canary', ['a'], { amount: { pods: 1 }, after: { soakMs: hourMs, gates: ['errors'] } }),
    wave('rest', ['a', 'b', 'c'], { before: { approval: { count: 1, from: ['oncall'] }, gates: [] } }),
  ];
  const of = (waves: readonly WaveDefinition[], gates: readonly GateDefinition[] = [gate(), gate({ name: 'other' })]): string =>
    digestOfWaves(group({ gates, rollout: { waves } }));
  const base = of([canary, rest]);

  it('of waves is independent of the rest of the group and of the location of its definition', () => {
    const elsewhere = group({
      name: 'store',
      gates: [gate({ name: 'third' }), gate()],
      sources: { 'gates.errors': line(3) },
      rollout: { waves: [canary, rest], strategy: 'partition', minIntervalMs: 5 },
    });
    expect([base, digestOfWaves(elsewhere)]).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), base]);
  });

  it.each<[string, string]>([
    ['an amount', of([{ ...canary, amount: { pods: 2 } }, rest])],
    ['a zone', of([{ ...canary, zones: ['b'] }, rest])],
    ['the order', of([rest, canary])],
    ['a wave more', of([canary, rest, wave('last', ['c'])])],
    ['a soak', of([{ ...canary, after: { ...canary.after, soakMs: 0 } }, rest])],
    ['who approves', of([canary, { ...rest, before: { gates: [], approval: { count: 1, from: ['dev'] } } }])],
    ['a gate that a wave names', of([canary, rest], [gate({ pass: { '<=': [{ var: 'value' }, 9] } })])],
    ['a gate that is gone', of([canary, rest], [])],
  ])('of waves changes with %s', (_what, other) => {
    expect(other).not.toBe(base);
  });

  it('of a rule changes with everything that it evaluates, and is the same at every location', () => {
    const metric = { source: 'prod', query: 'max(queue)', noData: 'unknown', maxAgeMs: minuteMs } as const;
    const rule = policyRule({ effect: 'requireApproval', when: { '>': [{ var: 'inputs.metrics.queue' }, 100] } });
    const safety = policy({ metrics: { queue: metric, idle: metric }, rules: [rule] });
    const digest = digestOfRule(safety, rule);
    expect(digestOfRule({ metrics: { queue: metric } }, { ...rule, source: line(99) })).toBe(digest);
    const others = [
      digestOfRule(safety, { ...rule, when: { '>': [{ var: 'inputs.metrics.queue' }, 1000] } }),
      digestOfRule(safety, { ...rule, approval: { count: 2, from: [] } }),
      digestOfRule(safety, { ...rule, actions: ['evict'] }),
      digestOfRule({ metrics: { queue: { ...metric, query: 'min(queue)' } } }, rule),
    ];
    expect(new Set([digest, ...others]).size).toBe(5);
  });
});

describe('an abort', () => {
  const now = { nowMs: kitNowMs };
  it.each<[string, Partial<IntentView>, boolean]>([
    ['of somebody vouched, of a run', { runId: 'run-1' }, false],
    ['of somebody vouched, of no run', {}, true],
  ])('%s blocks like a pause: %j', (_name, more, expected) => {
    expect(pauses(now, intent({ action: 'abort', ...more }), { id: 'run-1' })).toBe(expected);
  });

  it('without a verified requester blocks only the run that it names', () => {
    const { requestedBy: _nobody, ...anonymous } = intent({ action: 'abort', runId: 'run-1' });
    expect([pauses(now, anonymous, { id: 'run-1' }), pauses(now, anonymous, { id: 'run-2' })]).toEqual([true, false]);
  });

  it('with a future time ends no run, and blocks until that time', () => {
    const early = (aheadMs: number) => intent({ action: 'abort', runId: 'run-1', requestedBy: vouched('kim', kitNowMs + aheadMs) });
    expect([30_000, 30_001].map((aheadMs) => pauses(now, early(aheadMs), { id: 'run-1' }))).toEqual([false, true]);
    expect(blockedSteps(roll(group(), runOf(), { intents: [early(30_001)] })).join()).toContain('paused');
    const ended = [30_000, 30_001].map(
      (aheadMs) => abortRequests(contextWith(group(), { intents: [early(aheadMs)] }), runOf()).length === 1,
    );
    expect(ended).toEqual([true, false]);
  });

  it('that is older than a retry has no effect', () => {
    const abort = intent({ action: 'abort', runId: 'run-1', requestedBy: vouched('kim', ago(minuteMs)) });
    expect(replacedPods(roll(group(), runOf({ retriedMs: ago(1000) }), { intents: [abort] }))).toBe('a-2');
  });
});

describe('a protection', () => {
  const protect = (more: Partial<IntentView> = {}): IntentView =>
    intent({ action: 'protect', reason: 'restore', expiresMs: kitNowMs + hourMs, ...more });
  const ask = (request: AdmissionRequest, intents: Snapshot['intents'], definition = group()): string => {
    const { outcome, results } = judge(contextWith(definition, { intents }).snapshot, request);
    return `${outcome} ${results.filter((one) => one.outcome === 'wait' || one.outcome === 'unknown').map(({ rule }) => rule)}`.trim();
  };
  const pod = { namespace: 'mimir', pod: 'ingester-zone-a-1', dryRun: false } as const;
  const set = { namespace: 'mimir', statefulSet: 'ingester-zone-a', dryRun: false } as const;
  const evict: AdmissionRequest = { kind: 'evictPod', ...pod };
  const remove: AdmissionRequest = { kind: 'deletePod', ...pod };
  const removeSet: AdmissionRequest = { kind: 'deleteStatefulSet', ...set };
  const shrink: AdmissionRequest = { kind: 'scale', ...set, from: 3, to: 2, via: 'scale' };

  it.each<[string, AdmissionRequest, Partial<IntentView>, string]>([
    ['an eviction of its pod', evict, { zone: 'a', ordinals: [1] }, 'deny protected'],
    ['a deletion of its pod', remove, { zone: 'a', ordinals: [1] }, 'deny protected'],
    ['no eviction of another', evict, { zone: 'a', ordinals: [2] }, 'allow'],
    ['no eviction in another zone', evict, { zone: 'b' }, 'allow'],
    ['a decrease that takes its pod', shrink, { zone: 'a', ordinals: [2] }, 'deny protected'],
    ['no decrease above its pod', shrink, { zone: 'a', ordinals: [0] }, 'allow'],
    ['a decrease of a whole zone', shrink, {}, 'deny protected'],
    ['the deletion of a StatefulSet', removeSet, { zone: 'a', ordinals: [0] }, 'deny protected'],
    ['nothing after its end', evict, { expiresMs: kitNowMs }, 'allow'],
  ])('denies %s', (_name, request, more, expected) => {
    expect(ask(request, [protect(more)])).toBe(expected);
  });

  it.each<[Partial<IntentView>, string]>([
    [{}, 'the group'],
    [{ zone: 'a' }, 'zone a'],
    [{ ordinals: [1] }, 'a-1'],
  ])('%j names its location in the denial', (more, place) => {
    const { snapshot } = contextWith(group(), { intents: [protect(more)] });
    expect(judge(snapshot, evict).message).toContain(`protects ${place}`);
  });

  it('that cannot be read blocks in native groups; labelled groups have no intents', () => {
    expect(ask(evict, { unknown: 'forbidden' })).toBe('deny protected');
    expect(ask(evict, { unknown: 'forbidden' }, adopted())).toBe('allow');
  });

  it('of a pod puts it last, and of a zone blocks the zone', () => {
    expect(replacedPods(roll(group(), runOf(), { intents: [protect({ zone: 'a', ordinals: [2] })] }))).toBe('a-1');
    expect(blockedSteps(roll(group(), runOf(), { intents: [protect({ zone: 'a' })] }))).toEqual(['roll/a wait: protected']);
    expect(blockedSteps(roll(group(), runOf(), { intents: [protect({ zone: 'a', ordinals: [0, 1, 2] })] }))).toEqual([
      'roll/a wait: protected',
    ]);
  });
});

describe('a cancelled downscale', () => {
  const shrinking = group({ zones: [{ name: 'a', replicas: { kind: 'count', count: 2 } }] });
  const decided = (intents: readonly IntentView[]) => {
    const ledgers = [ledgerOf({ preparations: [preparation(2)] })];
    const { snapshot } = contextWith(shrinking, { intents, ledgers });
    const { actions, warnings } = decideGroup(snapshot, shrinking);
    return [
      ...actions.map((action) => `${action.kind}${'method' in action ? ` ${action.method}` : ''}`),
      ...warnings.map(({ fact }) => fact),
    ];
  };

  it('is not written, and prepared pods are cancelled', () => {
    expect(decided([])).toEqual(['scaleStatefulSet']);
    expect(decided([intent({ action: 'cancel', zone: 'a', replicas: 2 })])).toEqual([
      'callPods DELETE',
      'zone a stays at 3 replicas: kim cancelled the decrease to 2. To continue it, run: kubectl rollout-group cancel mimir/ingester intent-1',
    ]);
  });

  it('does not affect another number', () => {
    expect(decided([intent({ action: 'cancel', zone: 'a', replicas: 1 })])).toEqual(['scaleStatefulSet']);
  });

  describe('when the same number is requested again after another one', () => {
    const cancel = intent({ action: 'cancel', zone: 'a', replicas: 2 });
    const requesting = (count: number): GroupDefinition => group({ zones: [{ name: 'a', replicas: { kind: 'count', count } }] });
    /** Returns the ledger after a turn for each of these definitions, while the intents stay. */
    const afterTurns = (definitions: readonly GroupDefinition[], intents: Snapshot['intents'], first: Ledger = ledgerOf()): Ledger =>
      definitions.reduce((ledger, definition) => {
        const { snapshot } = contextWith(definition, { intents, ledgers: [ledger] });
        return decidedLedger(ledger, decideGroup(snapshot, definition), { snapshot, group: definition });
      }, first);
    const isDecreased = (ledger: Ledger, intents: Snapshot['intents'] = [cancel]): boolean => {
      const { snapshot } = contextWith(requesting(2), { intents, ledgers: [ledger] });
      return decideGroup(snapshot, requesting(2)).actions.some(({ kind }) => kind === 'scaleStatefulSet');
    };

    it.each([
      ['the same number all the time', [2, 2], false],
      ['the present number in between', [2, 3, 2], true],
      ['a higher number in between', [2, 5, 2, 2], true],
      ['a lower number in between', [2, 1], true],
    ])('stays ended: %s', (_, counts, isEnded) => {
      expect(isDecreased(afterTurns(counts.map(requesting), [cancel]))).toBe(isEnded);
    });

    it('ends in the zone of the other number only', () => {
      const zones = (count: number) => [
        { name: 'a', replicas: { kind: 'count', count } as const },
        { name: 'b', replicas: { kind: 'count', count: 2 } as const },
      ];
      const ofGroup = intent({ action: 'cancel', replicas: 2 });
      const ledger = afterTurns([group({ zones: zones(3) })], [ofGroup]);
      const { snapshot } = contextWith(group({ zones: zones(2) }), { intents: [ofGroup], ledgers: [ledger] });
      const scaled = decideGroup(snapshot, group({ zones: zones(2) })).steps.flatMap(({ kind, zone }) =>
        kind === 'scaleDown' ? [zone] : [],
      );
      expect(scaled).toEqual(['a']);
    });

    it('a later cancellation of the same number counts, and one without a number never ends', () => {
      const ended = afterTurns([requesting(3)], [cancel]);
      const later = intent({ action: 'cancel', zone: 'a', replicas: 2, requestedBy: { user: 'kim', groups: [], atMs: kitNowMs } });
      expect([isDecreased(ended), isDecreased(ended, [later])]).toEqual([true, false]);
      const every = intent({ action: 'cancel', zone: 'a' });
      expect(isDecreased(afterTurns([requesting(3), requesting(1)], [every]), [every])).toBe(false);
    });

    it('ends when a user deletes the cancellation, but not while requests cannot be read', () => {
      const ended = afterTurns([requesting(3)], [cancel]);
      expect(ended.endedCancels).toHaveLength(1);
      expect(afterTurns([requesting(2)], { unknown: 'timeout' }, ended)).toEqual(ended);
      expect(afterTurns([requesting(2)], [], ended).endedCancels).toBeUndefined();
    });
  });
});

describe('an exception', () => {
  const inForce = (definition: GroupDefinition, rule: string, nowMs: number): readonly ExceptionDefinition[] => [
    exception(rule, { namespace: definition.namespace, group: definition.name, expiresMs: nowMs + hourMs }),
  ];
  const blocking = (results: readonly RuleResult[], policies: readonly PolicyDefinition[]): readonly string[] => [
    // An exception from the budget of a zone raises the limit to all pods, and all pods can be down.
    ...new Set(
      results.filter((one) => blocks(one) && one.rule !== 'zone-budget' && canOverride(one.rule, policies)).map(({ rule }) => rule),
    ),
  ];

  it.each([
    ['onDelete', randomCase],
    ['partition', partitionedCase],
    ['pinned', pinnedCase],
  ])('permits its rule wherever the rule blocks, for random groups with the strategy %s', (_, randomGroup) => {
    const passed = new Set<string>();
    const failed = new Set<string>();
    for (let seed = 1; seed <= 300; seed += 1) {
      const one = randomGroup(seed);
      if (one === undefined) continue;
      const { snapshot, group: definition } = one;
      const asked = (more: Partial<Snapshot> = {}): readonly RuleResult[] => {
        const world = { ...snapshot, ...more };
        const [zone] = definition.zones;
        const pod = { namespace: definition.namespace, pod: `${zone?.statefulSet}-0`, dryRun: false };
        const target = { namespace: definition.namespace, statefulSet: zone?.statefulSet ?? '', dryRun: false };
        return [
          ...decideGroup(world, definition).steps.flatMap(({ results }) => results),
          ...judge(world, { kind: 'evictPod', ...pod }).results,
          ...judge(world, { kind: 'deletePod', ...pod }).results,
          ...judge(world, { kind: 'deleteStatefulSet', ...target }).results,
        ];
      };
      for (const rule of blocking(asked({ exceptions: [] }), snapshot.policies)) {
        const exceptions = inForce(definition, rule, snapshot.nowMs);
        if (blocking(asked({ exceptions }), snapshot.policies).includes(rule)) failed.add(`seed ${seed}: ${rule}`);
        else passed.add(rule);
      }
    }
    expect([...failed]).toEqual([]);
    expect(passed.size).toBeGreaterThan(8);
  });

  it('never replaces an approval that a policy rule requires', () => {
    const demanding = policy({ name: 'change', rules: [policyRule({ name: 'ask', effect: 'requireApproval' })] });
    expect(canOverride('change/ask', [demanding])).toBe(false);
    expect(canOverride('change/ask', [policy({ name: 'change', rules: [policyRule({ name: 'ask' })] })])).toBe(true);
  });
});

describe('rules without exceptions', () => {
  it('are in the catalog, and no exception permits them', () => {
    const ids = ruleCatalog.map(({ id }) => id);
    expect(rulesWithoutException.filter((rule) => !ids.includes(rule))).toEqual([]);
    for (const rule of rulesWithoutException) {
      const held = { rule, outcome: 'wait', fact: 'x' } as const;
      expect(withException(contextWith(group(), { exceptions: [exception(rule)] }), held, { zone: 'a' })).toEqual(held);
    }
  });
});

describe('the record of a run', () => {
  const record = (intents: readonly IntentView[], previous?: RolloutRun, more: Partial<Snapshot> = {}): RolloutRun | undefined => {
    const definition = group();
    const { snapshot } = contextWith(definition, { statefulSets: outdatedSets(), ledgers: [ledgerOf({ run: runOf() })], intents, ...more });
    const decision = decideGroup(snapshot, definition);
    return runRecord(previous, { group: definition, snapshot, decision, performed: [], startedMs: kitNowMs });
  };
  const approve = intent({ wave: 'rest', runId: 'run-1', reason: 'fine' });

  it('names each request and its requester once, and no request of other runs', () => {
    const first = record([approve, intent({ name: 'other', action: 'promote', runId: 'run-0' })], undefined, {
      exceptions: [
        exception('zone-gap', { requestedBy: { user: 'anna', atMs: kitNowMs - 60_000 } }),
        exception('window', { name: 'unverified' }),
      ],
    });
    expect(first?.spec.people).toEqual([
      { name: 'intent-1', action: 'approve', by: 'kim', at: '2026-03-02T11:59:00Z', reason: 'fine', about: 'wave rest' },
      { name: 'exception-1', action: 'override', by: 'anna', at: '2026-03-02T11:59:00Z', reason: 'see CHG-1', about: 'zone-gap' },
      { name: 'unverified', action: 'override', at: '2026-03-02T12:00:00Z', reason: 'see CHG-1', about: 'window' },
    ]);
    expect(record([approve], first)).toBe(first);
    expect(record([], first)?.spec.people).toHaveLength(3);
  });

  it('keeps the first requests of many', () => {
    const many = Array.from({ length: 50 }, (_, index) => ({ ...approve, name: `intent-${index}` }));
    expect(record(many)?.spec.people).toHaveLength(30);
  });
});
