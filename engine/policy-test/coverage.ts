// Reports for each rule of a bundle in which policy test cases it blocked and in which it passed. A tested rule has both kinds of cases.
import type { GroupDefinition, PolicyBundle, PolicyDefinition, Source, WaveDefinition, ZoneDefinition } from '../../policies/definition.ts';
import { waveTarget } from '../amount.ts';
import type { GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { blocks } from '../rule.ts';
import { addsNothing } from '../rules/wave.ts';
import type { CaseResult, CaseSubject } from './policy-test.ts';

/** One rule, with the names of the cases in which it blocked and in which it passed. */
export interface RuleCoverage {
  /** `policy/rule`, `policy window name`, `policy limits.field` or `group path.of.the.setting`. */
  readonly rule: string;
  readonly source?: Source;
  readonly held: readonly string[];
  readonly passed: readonly string[];
  /** The reason why these cases cannot test the rule; absent if they can. */
  readonly unreachable?: string;
}

interface Seen {
  readonly name: string;
  readonly results: readonly RuleResult[];
  readonly asked: CaseSubject;
}

interface Target {
  readonly rule: string;
  readonly source?: Source | undefined;
  readonly isBlocked: (seen: Seen) => boolean;
  readonly isPassed: (seen: Seen) => boolean;
  /** Returns whether the state of a case can reach the rule; undefined for a case about another group. Absent: always. */
  readonly isReachable?: (seen: Seen) => boolean | undefined;
}

/** Returns the coverage of every rule of the bundle, in the order of groups and policies. Cases that could not be evaluated do not count. */
export function coverageOf(bundle: PolicyBundle, cases: readonly CaseResult[]): readonly RuleCoverage[] {
  const seen = cases.flatMap(({ name, results, asked }): readonly Seen[] => (asked === undefined ? [] : [{ name, results, asked }]));
  const targets = [...bundle.groups.flatMap(groupTargets), ...bundle.policies.flatMap(policyTargets)];
  return targets.map(({ rule, source, isBlocked, isPassed, isReachable }) => {
    const held = seen.filter(isBlocked).map(({ name }) => name);
    const passed = seen.filter(isPassed).map(({ name }) => name);
    const states = seen.flatMap((one) => isReachable?.(one) ?? []);
    const isOutOfReach = (held.length === 0 || passed.length === 0) && states.length > 0 && !states.includes(true);
    return {
      rule,
      ...(source === undefined ? {} : { source }),
      held,
      passed,
      ...(isOutOfReach ? { unreachable: noPodLeft } : {}),
    };
  });
}

/** In small zones several waves have the same pods, and the engine skips a wave that adds no pod. */
const noPodLeft = 'with the replicas of the cases, earlier waves contain every pod of this wave';

/** Returns predicates that report whether the rule blocked or passed in a case. With `source`, only results with this source count. */
function answers(rule: string, source?: Source): Pick<Target, 'isBlocked' | 'isPassed'> {
  const isOwn = (answer: RuleResult): boolean => answer.rule === rule && (source === undefined || isSame(answer.source, source));
  return {
    isBlocked: ({ results }) => results.some((answer) => isOwn(answer) && blocks(answer)),
    isPassed: ({ results }) => results.some((answer) => isOwn(answer) && answer.outcome === 'ok'),
  };
}

function isSame(a: Source | undefined, b: Source): boolean {
  return a !== undefined && a.file === b.file && a.line === b.line && a.column === b.column && a.object === b.object && a.field === b.field;
}

function groupTargets(group: GroupDefinition): readonly Target[] {
  const targets = [
    ...settingTargets(group),
    ...protectionTargets(group),
    ...group.rollout.waves.flatMap((wave, index) => waveTargets(group, wave, index)),
  ];
  const isAbout = ({ asked }: Seen): boolean => asked.group === group.name && asked.namespace === group.namespace;
  return targets.map((target) => ({
    ...target,
    rule: `${group.name} ${target.rule}`,
    isBlocked: (seen) => isAbout(seen) && target.isBlocked(seen),
    isPassed: (seen) => isAbout(seen) && target.isPassed(seen),
    ...(target.isReachable === undefined ? {} : { isReachable: (seen: Seen) => (isAbout(seen) ? target.isReachable?.(seen) : undefined) }),
  }));
}

interface ZoneSetting {
  readonly rule: string;
  /** The key under `zones.NAME.` in the sources of the group. */
  readonly place: string;
  readonly has: (zone: ZoneDefinition) => boolean;
  readonly id: string;
}

const zoneSettings: readonly ZoneSetting[] = [
  { rule: 'scaling.down.betweenZones', place: 'betweenZones', has: (zone) => zone.betweenZonesMs !== undefined, id: 'zone-gap' },
  { rule: 'scaling.down.delayed', place: 'delayed', has: (zone) => zone.delayed !== undefined, id: 'delayed-downscale' },
  { rule: 'scaling.down.prepare', place: 'prepare', has: (zone) => zone.prepare !== undefined, id: 'prepare-downscale' },
  {
    rule: 'scaling.up.followersWaitFor',
    place: 'scaling',
    has: (zone) => zone.follows !== undefined && zone.followersWaitFor === 'leaderReady',
    id: 'leader-ready',
  },
  { rule: 'rollout.maxUnavailable', place: 'maxUnavailable', has: () => true, id: 'zone-budget' },
];

function zoneSource({ zones, sources }: GroupDefinition, place: string, has: ZoneSetting['has']): Source | undefined {
  const owner = zones.find(has);
  return owner === undefined ? undefined : sources[`zones.${owner.name}.${place}`];
}

function settingTargets(group: GroupDefinition): readonly Target[] {
  const ofZones = zoneSettings
    .filter(({ has }) => group.zones.some(has))
    .map(({ rule, place, has, id }): Target => ({ rule, source: zoneSource(group, place, has), ...answers(id) }));
  return [
    ...ofZones,
    ...boundsTargets(group),
    ...deadlineTargets(group),
    ...(group.rollout.minIntervalMs > 0
      ? [{ rule: 'rollout.minInterval', source: group.sources['rollout.minInterval'], ...answers('min-interval') }]
      : []),
    ...(group.disruption === undefined
      ? []
      : [{ rule: 'disruption', source: group.sources['disruption'], ...answers('disruption-budget') }]),
  ];
}

/** Returns the targets of deadlines. An exceeded deadline blocks as the rule `run-failed`. */
function deadlineTargets({ rollout: { deadlines }, sources }: GroupDefinition): readonly Target[] {
  const failed = answers('run-failed');
  return [
    ...(deadlines.progressMs === undefined ? [] : ['progress-deadline']),
    ...(deadlines.runMs === undefined ? [] : ['run-deadline']),
  ].map((id) => ({
    rule: `rollout.deadlines.${id.replace('-deadline', '')}`,
    source: sources['rollout.deadlines'],
    isBlocked: failed.isBlocked,
    isPassed: answers(id).isPassed,
  }));
}

function boundsTargets(group: GroupDefinition): readonly Target[] {
  const isBounded = ({ bounds }: ZoneDefinition): boolean =>
    bounds.min !== undefined || bounds.max !== undefined || bounds.multipleOf > 1 || bounds.parity !== 'any';
  if (!group.zones.some(isBounded)) return [];
  const floor = answers('scale-floor');
  const ceiling = answers('scale-ceiling');
  const isCount = (answer: RuleResult): boolean => answer.rule === 'replica-source' && answer.outcome === 'ok';
  return [
    {
      rule: 'replicas.bounds',
      source: zoneSource(group, 'replicas', isBounded),
      isBlocked: (seen) =>
        floor.isBlocked(seen) || ceiling.isBlocked(seen) || seen.results.some((answer) => isCount(answer) && answer.limit !== undefined),
      isPassed: (seen) =>
        floor.isPassed(seen) || ceiling.isPassed(seen) || seen.results.some((answer) => isCount(answer) && answer.limit === undefined),
    },
  ];
}

/** Returns the targets of protections. A protection passed in a case about one of its related requests if its rule did not block. */
function protectionTargets(group: GroupDefinition): readonly Target[] {
  const flags = [
    { rule: 'protect.noDownscale', has: (zone: ZoneDefinition) => zone.noDownscale, id: 'no-downscale', related: ['scaleUp', 'scaleDown'] },
    { rule: 'protect.noDelete', has: (zone: ZoneDefinition) => zone.noDelete, id: 'no-delete', related: ['delete', 'restart'] },
    { rule: 'protect.noEviction', has: (zone: ZoneDefinition) => zone.noEviction, id: 'no-eviction', related: ['evict', 'delete'] },
  ];
  return flags
    .filter(({ has }) => group.zones.some(has))
    .map(({ rule, has, id, related }) => ({
      rule,
      source: zoneSource(group, 'protect', has),
      isBlocked: answers(id).isBlocked,
      isPassed: ({ results, asked }) => related.includes(asked.action) && !results.some(blocks),
    }));
}

/** Returns the targets of a wave. If the rollout enters the next wave, the checks after this wave count as passed. */
function waveTargets({ sources }: GroupDefinition, wave: WaveDefinition, index: number): readonly Target[] {
  const isMovedOn = ({ asked }: Seen): boolean => asked.waves !== undefined && asked.waves.from <= index && asked.waves.to > index;
  const isHere = ({ asked }: Seen): boolean => asked.waves?.to === index;
  const target = (part: 'before' | 'after', what: string, rule: string, place = `waves.${wave.name}.${part}.${what}`): Target => {
    const source = sources[place];
    const own = answers(rule, source);
    // If earlier waves have every pod of the wave, no check before the wave applies. After the wave, only a soak that is not longer than
    // theirs is skipped.
    const reach = part === 'before' ? 'rolled' : what === 'soak' ? 'soaking' : undefined;
    return {
      rule: `waves.${wave.name}.${part}.${what}`,
      source,
      isBlocked: (seen) => isHere(seen) && own.isBlocked(seen),
      isPassed: (seen) => (part === 'after' && isMovedOn(seen)) || (isHere(seen) && own.isPassed(seen)),
      ...(reach === undefined ? {} : { isReachable: ({ asked }: Seen) => asked.reach[reach].includes(index) }),
    };
  };
  const gates = (part: 'before' | 'after') => wave[part].gates.map((gate) => target(part, `gates ${gate}`, 'gate', `gates.${gate}`));
  const approvals = (['before', 'after'] as const).filter((part) => wave[part].approval !== undefined);
  return [
    ...gates('before'),
    ...approvals.map((part) => target(part, 'approval', 'approval')),
    ...(wave.after.soakMs === 0 ? [] : [target('after', 'soak', 'soak')]),
    ...gates('after'),
  ];
}

function policyTargets(policy: PolicyDefinition): readonly Target[] {
  const rules = policy.rules.map(({ name, source }): Target => {
    const rule = `${policy.name}/${name}`;
    const own = answers(rule);
    return { rule, source, isBlocked: (seen) => own.isBlocked(seen) || seen.asked.warned.includes(rule), isPassed: own.isPassed };
  });
  const windows = policy.windows.map(({ name, actions, source }): Target => {
    const opened = answers('window');
    const isNamed = ({ asked }: Seen): boolean => actions.some((action) => action === asked.action) || asked.action === 'none';
    return {
      rule: `${policy.name} window ${name}`,
      source,
      isBlocked: answers('window', source).isBlocked,
      isPassed: (seen) => isNamed(seen) && opened.isPassed(seen) && !opened.isBlocked(seen),
    };
  });
  return [...rules, ...windows, ...limitTargets(policy)];
}

const limitRules: Readonly<Record<string, readonly string[]>> = {
  maxUnavailable: ['zone-budget'],
  minReplicas: ['scale-floor', 'replica-source'],
  maxReplicas: ['scale-ceiling', 'replica-source'],
  betweenZones: ['zone-gap'],
  minInterval: ['min-interval'],
};

/** Returns the targets of limits. A limit blocks if a result that blocks or changes replicas names the limit as its source. */
function limitTargets(policy: PolicyDefinition): readonly Target[] {
  return Object.entries(policy.limitSources).map(([field, source]): Target => {
    const rules = limitRules[field] ?? [];
    const isOwn = (answer: RuleResult): boolean => rules.includes(answer.rule);
    const binds = (answer: RuleResult): boolean => isSame(answer.source, source) && (blocks(answer) || answer.rule === 'replica-source');
    return {
      rule: `${policy.name} limits.${field}`,
      source,
      isBlocked: ({ results }) => results.some((answer) => isOwn(answer) && binds(answer)),
      isPassed: ({ results }) => results.some((answer) => isOwn(answer) && answer.outcome === 'ok' && !binds(answer)),
    };
  });
}

export interface WaveReach {
  /** Waves with a pod that no earlier wave has. The checks before a wave apply only to these waves. */
  readonly rolled: readonly number[];
  /** Waves whose soak is not skipped. */
  readonly soaking: readonly number[];
}

/** Returns the waves that a case can reach. In small zones, waves may have the same pods: 1 % and 50 % of one pod are that pod. */
export function reachOf(context: GroupContext): WaveReach {
  const { waves } = context.group.rollout;
  const targetIn = (wave: WaveDefinition, zone: string): number => {
    const replicas = context.view.zones.find((view) => view.zone.name === zone)?.replicas ?? 0;
    return wave.zones.includes(zone) ? waveTarget(wave.amount, replicas) : 0;
  };
  const hasOwnPod = (wave: WaveDefinition, index: number): boolean =>
    wave.zones.some(
      (zone) => waves.slice(0, index).every((earlier) => targetIn(earlier, zone) < targetIn(wave, zone)) && targetIn(wave, zone) > 0,
    );
  const indicesOf = (has: (wave: WaveDefinition, index: number) => boolean): readonly number[] =>
    waves.flatMap((wave, index) => (has(wave, index) ? [index] : []));
  return { rolled: indicesOf(hasOwnPod), soaking: indicesOf((wave) => !addsNothing(context, wave)) };
}
