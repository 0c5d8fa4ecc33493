// Draws the scenario of a seed: the group, the agents, the faults and their rates. Each seed leaves out some classes of faults, so that
// rare combinations of the other classes occur.

import { defined } from '../../../policies/values/defined.ts';
import { type DrawInput, drawnRates, isDrawn } from '../../../simulation/faults/drawn.ts';
import type { FaultClass } from '../../../simulation/faults/fault.ts';
import { between, draw, oneOf, type Random, streamOf, wholeBetween } from '../../../simulation/random.ts';
import {
  type GroupShape,
  isByPeople,
  letterOf,
  type OtherGroup,
  type RuleShape,
  type Scenario,
  type ScenarioEvent,
  traitsOfShape,
  type WaveShape,
  type WindowShape,
} from '../../../simulation/scenario.ts';
import { drawnEvents } from './events.ts';
import { drawnTogether, heldScaling } from './together.ts';

/** The time until which faults happen, in virtual milliseconds. */
const safetyMs = 400_000;

/** `quietMs` of most seeds. Every eighth seed has the default, which is longer than five minutes. */
const shortQuietMs = 90_000;

/** The constant part of `healingMs`: twice ten minutes. */
const healingBaseMs = 1_200_000;

/** The time in which a gate passes: its readings, and those before its first answer. */
const gateMs = 30_000;

const daySeconds = 86_400;

/** The time in which people approve a wave that waits for it. */
const approvalMs = 60_000;

/** Returns the scenario of a seed. The same seed always gives the same scenario. */
export function scenarioOf(seed: number): Scenario {
  const scenario = scenarioOfGroup(seed);
  const others = drawnOthers(seed, scenario.group);
  if (others.length === 0) return scenario;
  const healingMs = Math.max(scenario.healingMs, ...others.map(({ group }) => healingMsOf(group) + aheadMs(scenario.events)));
  return { ...scenario, others, healingMs };
}

/** The names of the other groups: a second group in the namespace, and a group with the same name in another namespace. */
export const neighbour = { namespace: 'mimir', name: 'ingester-cold' } as const;
const namesake = { namespace: 'mimir-dev', name: 'ingester' } as const;

/** The groups of other seeds become the other groups of a seed. */
const otherSeeds = 40_000_000;

/** Lets some agents manage a second group in the namespace, a group in a second namespace, or both. Seeds that are compared have none. */
function drawnOthers(seed: number, first: GroupShape): readonly OtherGroup[] {
  if (seed % 20 === 0) return [];
  const names = [neighbour, namesake].filter(({ namespace }) => draw(seed, `another group in ${namespace}`) < 0.12);
  return names.map((name, index): OtherGroup => {
    const { group, events } = scenarioOfGroup(seed + otherSeeds * (index + 1));
    const isNeighbour = name === neighbour;
    const isKept = (event: ScenarioEvent): boolean => isOfGroup(event) && (event.kind !== 'override' || !isNeighbour);
    const own = events.filter(isKept);
    return { ...name, group: besides(first, group, isNeighbour), events: isNeighbour ? own : withTermination(seed, own) };
  });
}

/** Lets most of the second namespaces be deleted in the middle of the faults. */
function withTermination(seed: number, events: readonly ScenarioEvent[]): readonly ScenarioEvent[] {
  if (draw(seed, 'the namespace is deleted') >= 0.7) return events;
  const atMs = Math.round(between(streamOf(seed, 'deletion of the namespace'), 20_000, safetyMs - 60_000));
  return [...events, { atMs, kind: 'terminateNamespace' } as const].sort((one, other) => one.atMs - other.atMs);
}

/**
 * Returns the shape of another group: without a gate, and reviewed by the webhooks of the first group, which expect one kind, and budgets for
 * evictions for all groups or none. Two policies of a namespace need two names, so a neighbour has no policy.
 */
function besides(first: GroupShape, drawn: GroupShape, isNeighbour: boolean): GroupShape {
  const isReviewed = first.webhooks === true || first.disruption !== undefined;
  const base = isReviewed && first.kind !== drawn.kind ? first : drawn;
  const {
    gate: _,
    gateFailureLimit: __,
    webhooks: ___,
    prepares,
    noDownscale,
    zoneBudget = first.zoneBudget,
    disruption,
    windows,
    rules,
    hasPolicyDirectory: ____,
    ...group
  } = base;
  const isPrepared = first.webhooks === true || group.replicas === 'delayedMirror';
  return {
    ...group,
    ...(isPrepared ? defined({ prepares }) : {}),
    ...(isReviewed ? defined({ disruption }) : {}),
    ...(first.webhooks === true ? { webhooks: true, ...defined({ noDownscale }) } : {}),
    ...(first.zoneBudget === undefined ? {} : defined({ zoneBudget })),
    ...(isNeighbour ? {} : defined({ windows, rules })),
  };
}

/** Returns whether the event concerns one group: the request of a person, or an accident of a pod. */
function isOfGroup(event: ScenarioEvent): boolean {
  if (isByPeople(event)) return event.kind !== 'defineGroup';
  return ['podFails', 'podFlaps', 'podDies', 'stuckTerminating'].includes(event.kind);
}

function scenarioOfGroup(seed: number): Scenario {
  const shape = withPreparation(seed, withStrategy(seed, drawnGroup(streamOf(seed, 'group'))));
  const base = withRules(seed, withWindows(seed, withRollback(seed, withDisruption(seed, withDeadline(seed, withWaves(seed, shape))))));
  const group = withPolicyDirectory(seed, withScaling(seed, withHanging(seed, withWebhooks(seed, base))));
  const agents = oneOf(streamOf(seed, 'agents'), [2, 2, 2, 2, 2, 2, 2, 2, 1, 3]);
  const rates = drawnRates(seed, 1, (faultClass) => isDrawn(seed, faultClass));
  const clockRates = drawnClockRates(seed, agents);
  const input = { group, agents, endMs: safetyMs, isDrawn: (faultClass: FaultClass) => isDrawn(seed, faultClass) };
  const single = drawnEvents(seed, input);
  const waves = drawnWaveChanges(seed, input, single);
  const events = [...single, ...drawnTogether(seed, input, single), ...waves].sort((one, other) => one.atMs - other.atMs);
  return {
    seed,
    group,
    agents,
    ...(clockRates === undefined ? {} : { clockRates }),
    safetyMs,
    healingMs: Math.max(...[group, ...waves.map((one) => ({ ...group, waves: one.waves }))].map(healingMsOf)) + aheadMs(events),
    // One seed in eight has the default of `quietMs`. No such seed is played several times.
    ...(seed % 8 === 1 ? {} : { quietMs: shortQuietMs }),
    events,
    rates,
    faults: isDrawn(seed, 'F3') ? heldScaling(seed, group) : [],
  };
}

/** Returns `healingMs` for correct clocks: the base, and twice the time to roll pod by pod and wave by wave and to scale zone by zone. */
function healingMsOf(group: GroupShape): number {
  const podMs = group.drainMs + group.startMs + (group.minReadySeconds + (group.minIntervalSeconds ?? 0)) * 1000 + 15_000;
  const wavesMs = (group.waves ?? []).reduce(
    (sum, { soakSeconds = 0, gates = [], approvals = [] }) =>
      sum + 1000 * soakSeconds + gateMs * gates.length + approvalMs * approvals.length,
    0,
  );
  const scalingMs = (group.delaySeconds + group.betweenZonesSeconds) * 1000 * group.zones;
  return Math.ceil(healingBaseMs + 2 * group.zones * group.podsPerZone * podMs + 2 * wavesMs + 2 * scalingMs);
}

/** Returns how far a stored time may be in the future because of clock jumps. A reader with a correct clock waits for that time. */
function aheadMs(events: readonly ScenarioEvent[]): number {
  return events.reduce((sum, event) => sum + (event.kind === 'jumpWallClock' ? Math.max(0, event.byMs) : 0), 0);
}

function drawnGroup(random: Random): GroupShape {
  const isUsual = random() < 0.7;
  const zones = isUsual ? 3 : oneOf(random, [2, 3, 3, 4]);
  const podsPerZone = isUsual ? 3 : oneOf(random, [1, 2, 4, 5]);
  const kind = random() < 0.7 ? 'native' : 'adopted';
  const replicas = oneOf(random, ['own', 'own', 'leader', 'mirror', 'delayedMirror'] as const);
  const gate = kind === 'native' && random() < 0.35 ? oneOf(random, ['passing', 'flipping'] as const) : undefined;
  return {
    kind,
    zones,
    podsPerZone,
    maxUnavailable: oneOf(random, [1, 1, 1, 2, '34%', '50%']),
    minReadySeconds: oneOf(random, [0, 0, 5, 10]),
    podManagementPolicy: random() < 0.7 ? 'Parallel' : 'OrderedReady',
    // grafana/rollout-operator deletes pods, so a drop-in group does too.
    rotateBy: kind === 'native' && random() < 0.4 ? 'evict' : 'delete',
    replicas,
    delaySeconds: replicas === 'delayedMirror' ? oneOf(random, [20, 30, 60]) : 0,
    betweenZonesSeconds: replicas === 'own' ? 0 : oneOf(random, [0, 0, 10, 30]),
    drainMs: Math.round(between(random, 500, 10_000)),
    startMs: Math.round(between(random, 1000, 15_000)),
    ...(gate === undefined ? {} : { gate }),
  };
}

/** Gives some native groups the strategy `partition` or `pinned`. Its random number is separate, so that no other number changes. */
function withStrategy(seed: number, group: GroupShape): GroupShape {
  const lot = draw(seed, 'engine');
  if (group.kind === 'adopted' || lot >= 0.3) return group;
  return lot < 0.15 ? { ...group, strategy: 'partition', rotateBy: 'delete' } : { ...group, strategy: 'pinned' };
}

/** Lets half of the groups with a delay prepare their pods also before the removal. Its random number is separate, as in `withStrategy`. */
function withPreparation(seed: number, group: GroupShape): GroupShape {
  return group.replicas === 'delayedMirror' && draw(seed, 'prepares') < 0.5 ? { ...group, prepares: true } : group;
}

/** Lets pods with a broken image of some native groups hang instead of crash. Their random number is separate, as in `withStrategy`. */
function withHanging(seed: number, group: GroupShape): GroupShape {
  if (group.kind === 'adopted' || draw(seed, 'hangs') >= 0.3) return group;
  return { ...group, replaceUnreadySeconds: oneOf(streamOf(seed, 'hangs for'), [20, 40]) };
}

/** Gives some native groups a budget for disruptions by others, which the webhooks enforce. Its random number is separate, as in `withStrategy`. */
function withDisruption(seed: number, group: GroupShape): GroupShape {
  if (group.kind === 'adopted' || draw(seed, 'disruption') >= 0.35) return group;
  return { ...group, disruption: oneOf(streamOf(seed, 'disruption limit'), [1, 1, 2]) };
}

/**
 * Lets the webhooks review all requests for some groups. Some of the groups with labels of grafana/rollout-operator prepare pods in the
 * webhook, some have a budget for evictions, and some forbid that zone a shrinks. The random numbers are separate, as in `withStrategy`.
 */
function withWebhooks(seed: number, group: GroupShape): GroupShape {
  if (draw(seed, 'webhooks') >= (group.kind === 'native' ? 0.25 : 0.5)) return group;
  if (group.kind === 'native') return { ...group, webhooks: true };
  const mayForbid = group.replicas === 'own' || group.replicas === 'leader';
  return {
    ...group,
    webhooks: true,
    // A follower shrinks after its leader only with a time between zones, because the webhook records the time of the leader.
    ...(draw(seed, 'prepares in webhook') < 0.5 ? { prepares: true, betweenZonesSeconds: group.betweenZonesSeconds || 10 } : {}),
    ...(draw(seed, 'zone budget') < 0.6 ? { zoneBudget: oneOf(streamOf(seed, 'zone budget limit'), [1, 1, 2]) } : {}),
    ...(mayForbid && draw(seed, 'no downscale') < 0.5 ? { noDownscale: true } : {}),
  };
}

/** Lets some native groups change their replicas during a rollout. Its random number is separate, as in `withStrategy`. */
function withScaling(seed: number, group: GroupShape): GroupShape {
  return group.kind === 'adopted' || draw(seed, 'scales during a rollout') >= 0.3 ? group : { ...group, scalesDuringRollout: true };
}

/** Puts the windows and rules of some groups into the policy directory. Its random number is separate, as in `withStrategy`. */
function withPolicyDirectory(seed: number, group: GroupShape): GroupShape {
  if ((group.windows ?? group.rules) === undefined || draw(seed, 'has a policy directory') >= 0.4) return group;
  return { ...group, hasPolicyDirectory: true };
}

/** Lets a GitOps tool write other waves during rollouts, in many groups with waves. Some waves are those that another seed would have. */
function drawnWaveChanges(seed: number, { group, endMs, isDrawn }: DrawInput, events: readonly ScenarioEvent[]): readonly WaveChange[] {
  const rollouts = events.filter(({ kind }) => kind === 'setImage');
  if (group.waves === undefined || rollouts.length === 0 || !isDrawn('F18') || seed % 20 === 0 || draw(seed, 'changes waves') >= 0.8)
    return [];
  const random = streamOf(seed, 'changes of waves');
  const [first, ...rest] = group.waves;
  return Array.from({ length: wholeBetween(random, 1, 3) }, (_, index): WaveChange => {
    const atMs = Math.round(Math.min(oneOf(random, rollouts).atMs + between(random, 3000, 90_000), endMs - 60_000));
    const other = withDrawnWaves(seed + otherSeeds * (index + 3), group).waves ?? [];
    // A person often removes a wave at the front, or adds one there.
    const edited = [rest, rest.slice(1), group.waves ?? [], first === undefined ? [] : [first, first, ...rest]];
    // The CustomResourceDefinition refuses an empty list.
    const kept = rest.length === 0 ? [] : [rest];
    const waves = oneOf(random, [other, ...kept, ...edited.filter((one) => isComplete(group, one))]);
    return { atMs, kind: 'setWaves', waves };
  });
}

/** Returns whether the waves include every pod of the group. */
function isComplete({ zones }: GroupShape, waves: readonly WaveShape[]): boolean {
  const whole = waves.filter(({ pods, percent }) => pods === undefined && percent === undefined);
  return Array.from({ length: zones }, (_, index) => letterOf(index)).every((zone) => whole.some((wave) => wave.zones.includes(zone)));
}

type WaveChange = Extract<ScenarioEvent, { readonly kind: 'setWaves' }>;

/** Gives some native groups waves. Their random numbers are separate, as in `withStrategy`. */
function withWaves(seed: number, group: GroupShape): GroupShape {
  return group.kind === 'adopted' || draw(seed, 'has waves') >= 0.45 ? group : withDrawnWaves(seed, group);
}

function withDrawnWaves(seed: number, group: GroupShape): GroupShape {
  const random = streamOf(seed, 'waves');
  const zones = Array.from({ length: group.zones }, (_, index) => letterOf(index));
  const first = random() < 0.7 ? 'a' : oneOf(random, zones);
  const canary = oneOf(random, [{ pods: 1 }, { pods: 1 }, { pods: 2 }, { percent: 34 }, { percent: 50 }]);
  const rest = zones.filter((zone) => zone !== first);
  const half = { zones: random() < 0.5 ? zones : rest, percent: 60 };
  const last =
    random() < 0.5 ? [{ zones: [first] }, { zones: rest }] : oneOf(random, [[{ zones }], zones.map((zone) => ({ zones: [zone] }))]);
  const whole: readonly WaveShape[] = [{ zones: random() < 0.85 ? [first] : zones, ...canary }, ...(random() < 0.3 ? [half] : []), ...last];
  const waves = leavingPods(seed, whole);
  const gate = group.gate ?? (random() < 0.4 ? oneOf(random, ['passing', 'flipping'] as const) : undefined);
  const fails = gate === 'flipping' && draw(seed, 'gate fails') < 0.5;
  const intervalSeconds = random() < 0.3 ? oneOf(random, [5, 10, 20]) : 0;
  return {
    ...group,
    ...(gate === undefined ? {} : { gate }),
    ...(fails ? { gateFailureLimit: 3 } : {}),
    waves: withApprovals(
      seed,
      waves.map((wave) => withChecks(random, wave, gate !== undefined)),
    ),
    ...(intervalSeconds === 0 ? {} : { minIntervalSeconds: intervalSeconds }),
    ...(random() < 0.3 ? { soaksOnReturn: true } : {}),
  };
}

/** Lets the waves of some groups leave out the zones of the last wave, or end at half of their pods. */
function leavingPods(seed: number, waves: readonly WaveShape[]): readonly WaveShape[] {
  const drawn = draw(seed, 'waves leave pods out');
  if (drawn >= 0.1) return waves;
  return waves.flatMap((wave, index) => (index < waves.length - 1 ? [wave] : drawn < 0.05 ? [] : [{ ...wave, percent: 50 }]));
}

function withChecks(random: Random, wave: WaveShape, hasGate: boolean): WaveShape {
  const soakSeconds = oneOf(random, [0, 0, 3, 10, 30, 50]);
  const gates = oneOf(random, [[], [], ['before'], ['after'], ['after'], ['before', 'after']] as const);
  return { ...wave, ...(soakSeconds === 0 ? {} : { soakSeconds }), ...(hasGate && gates.length > 0 ? { gates } : {}) };
}

/** Gives some native groups a deadline. Healthy pods meet it, but a broken image and some accidents do not. */
function withDeadline(seed: number, group: GroupShape): GroupShape {
  if (group.kind === 'adopted' || draw(seed, 'has a deadline') >= 0.35) return group;
  return { ...group, deadlineSeconds: oneOf(streamOf(seed, 'deadline'), [60, 60, 90, 120]) };
}

/** Lets failed runs of some native groups be rolled back, and gives these groups the strategy `pinned` and a reason to fail. */
function withRollback(seed: number, group: GroupShape): GroupShape {
  const share = group.strategy === undefined ? 0.15 : traitsOfShape(group).canRollBack ? 0.6 : 0;
  if (group.kind === 'adopted' || draw(seed, 'rolls back') >= share) return group;
  const deadlineSeconds = group.deadlineSeconds ?? oneOf(streamOf(seed, 'deadline before a rollback'), [60, 90]);
  return { ...group, strategy: 'pinned', rollsBack: true, ...(group.gateFailureLimit === undefined ? { deadlineSeconds } : {}) };
}

/** Gives some native groups windows. After the faults no window blocks: an idle group publishes each time when a window opens or closes. */
function withWindows(seed: number, group: GroupShape): GroupShape {
  if (group.kind === 'adopted' || draw(seed, 'has windows') >= 0.35) return group;
  const random = streamOf(seed, 'windows');
  const actions = oneOf(random, [['rollout'], ['rollout'], ['rollout', 'scaleDown'], ['scaleDown']] as const);
  const window = (kind: WindowShape['kind'], isScheduled: boolean): WindowShape => {
    const inFlight = oneOf(random, ['finishPod', 'finishPod', 'finishZone', 'finishAll'] as const);
    const everyMinutes = oneOf(random, [2, 3]);
    const openSeconds = oneOf(random, kind === 'allow' ? [45, 60, 90] : [15, 30, 45]);
    if (isScheduled) return { kind, actions, inFlight, schedule: { everyMinutes, seconds: openSeconds } };
    const ranges = Array.from({ length: wholeBetween(random, 1, 4) }, () => {
      const from = wholeBetween(random, 5, 320);
      return { from, to: from + wholeBetween(random, 10, 80) };
    });
    return { kind, actions, inFlight, ranges };
  };
  const first = window(random() < 0.5 ? 'allow' : 'deny', random() < 0.5);
  const last = { from: safetyMs / 1000, to: safetyMs / 1000 + daySeconds };
  const later: readonly WindowShape[] = first.kind === 'deny' ? [] : [{ kind: 'allow', actions, inFlight: first.inFlight, ranges: [last] }];
  return { ...group, windows: [first, ...later, ...(random() < 0.25 ? [window('deny', false)] : [])] };
}

/** Gives some native groups one or two policy rules, each of another kind. All of them end with the faults. */
function withRules(seed: number, group: GroupShape): GroupShape {
  if (group.kind === 'adopted' || draw(seed, 'has rules') >= 0.3) return group;
  const random = streamOf(seed, 'rules');
  const zone = letterOf(wholeBetween(random, 0, group.zones));
  const other = letterOf((zone.charCodeAt(0) - 96) % group.zones);
  const until = (): number => wholeBetween(random, 60, 380);
  const effect = oneOf(random, ['deny', 'hold'] as const);
  const rules: readonly RuleShape[] = [
    { kind: 'early', effect, until: until(), ...(random() < 0.5 ? { zone } : {}) },
    { kind: 'order', effect, until: until(), zone, other },
    { kind: 'floor', effect, until: until(), replicas: group.podsPerZone },
    { kind: 'ask', until: until(), ...(random() < 0.3 ? { zone } : {}) },
  ];
  const first = wholeBetween(random, 0, rules.length);
  const chosen = rules.filter((_, index) => index === first || (index === (first + 1) % rules.length && random() < 0.4));
  return { ...group, rules: chosen.map((rule) => (rule.kind === 'ask' ? planned(seed, rule) : rule)) };
}

/** Lets half of the rules that ask for an approval accept an approved plan instead. */
function planned(seed: number, rule: RuleShape): RuleShape {
  if (draw(seed, 'requires an approved plan') >= 0.5) return rule;
  const approves = oneOf(streamOf(seed, 'approved plans'), ['new', 'new', 'old', 'none'] as const);
  return { ...rule, kind: 'plan', ...(approves === 'none' ? {} : { approves }) };
}

/** Lets half of the groups with waves need approvals. The end of the last wave needs none, because it blocks no pod. */
function withApprovals(seed: number, waves: readonly WaveShape[]): readonly WaveShape[] {
  if (draw(seed, 'has approvals') >= 0.5) return waves;
  const random = streamOf(seed, 'approvals');
  return waves.map((wave, index) => {
    const drawn = oneOf(random, [[], ['before'], ['before'], ['after'], ['before', 'after']] as const);
    const approvals = drawn.filter((when) => when === 'before' || index < waves.length - 1);
    const isTwo = random() < 0.25;
    return approvals.length === 0 ? wave : { ...wave, approvals, ...(isTwo ? { approvers: 2 } : {}) };
  });
}

/** Draws clock rates for some seeds. The rates may differ by more than leader election tolerates. */
function drawnClockRates(seed: number, agents: number): Scenario['clockRates'] {
  if (!isDrawn(seed, 'F13') || draw(seed, 'clocks differ') >= 0.4) return undefined;
  const random = streamOf(seed, 'clock rates');
  const rates: Record<string, number> = {};
  for (let index = 0; index < agents; index += 1) {
    const letter = letterOf(index);
    // A clock is slow as often as it is fast.
    const isFast = random() < 0.5;
    rates[letter] = Math.round(between(random, isFast ? 1 : 0.4, isFast ? 2.2 : 1) * 1000) / 1000;
  }
  return rates;
}
