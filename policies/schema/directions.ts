// States for each setting of a RolloutGroup and a RolloutPolicy which of its values permits more.
import { isSameValue } from '../values/canonical-json.ts';
import { listOf } from '../values/list-of.ts';

/**
 * The values of a setting that permit more. An absent value of the first four permits most.
 * `greater`, `less`: a number, duration or percentage. `absent`: a restriction as a whole; between two values only its fields decide.
 * `fewer`: a list of restrictions.
 * `more`: a list of permitted users; the empty list permits every user.
 * A list: all values, from the strictest to the loosest. An absent value is the first one.
 * `neutral`: no value permits more than another in every case. It also applies to all fields below.
 */
type Looser = 'greater' | 'less' | 'absent' | 'fewer' | 'more' | 'neutral' | readonly (string | boolean)[];

const approval = (path: string): Readonly<Record<string, Looser>> => ({
  [path]: 'absent',
  [`${path}.count`]: 'less',
  [`${path}.from`]: 'more',
  [`${path}.expires`]: 'greater',
});

/** The settings of a RolloutGroup by their paths below `spec`, without the indexes of lists. A zone repeats settings of its group. */
const ofGroup: Readonly<Record<string, Looser>> = {
  members: 'neutral',
  'members.zones.paused': [true, false],
  profile: 'neutral',
  groupLabel: 'neutral',
  replicas: 'neutral',
  'replicas.bounds.min': 'less',
  'replicas.bounds.max': 'greater',
  'scaling.hold': 'absent',
  'scaling.duringRollout': ['wait', 'allow'],
  'scaling.up.followersWaitFor': ['leaderReady', 'nothing'],
  'scaling.down.hold': 'absent',
  'scaling.down.betweenZones': 'less',
  'scaling.down.delayed': 'absent',
  'scaling.down.delayed.after': 'less',
  'scaling.down.delayed.endpoint': 'neutral',
  'scaling.down.delayed.onUnreachable': ['fail', 'hold'],
  'scaling.down.prepare': 'absent',
  'scaling.down.prepare.endpoint': 'neutral',
  'scaling.down.prepare.onFailure': ['deny', 'hold'],
  'protect.noDownscale': [true, false],
  'protect.noDelete': [true, false],
  'protect.noEviction': [true, false],
  'rollout.strategy': 'neutral',
  'rollout.order': 'neutral',
  'rollout.rotateBy': ['evict', 'delete'],
  'rollout.maxUnavailable': 'greater',
  'rollout.minInterval': 'less',
  'rollout.replaceUnready.when': ['none', 'crashing', 'any'],
  'rollout.replaceUnready.after': 'less',
  'rollout.waves': 'neutral',
  ...approval('rollout.waves.before.approval'),
  'rollout.waves.before.gates': 'fewer',
  'rollout.waves.after.soak': 'less',
  ...approval('rollout.waves.after.approval'),
  'rollout.waves.after.gates': 'fewer',
  // The waves of a schedule are compared instead.
  'rollout.schedule': 'neutral',
  'rollout.deadlines.progress': 'greater',
  'rollout.deadlines.run': 'greater',
  // A pause stops every further replacement, and a rollback replaces pods without a request.
  'rollout.onFailure': 'neutral',
  'rollout.skipOnRollback': [false, true],
  'rollout.historyLimit': 'neutral',
  'rollout.onPolicyDeleted': ['hold', 'release'],
  gates: 'neutral',
  'gates.mode': ['enforce', 'observe'],
  'gates.consul.passing': 'less',
  'gates.podsAvailable.minReadySeconds': 'less',
  // An earlier reading can pass the gate earlier.
  'gates.initialDelay': 'less',
  'gates.every': 'less',
  'gates.consecutive': 'less',
  'gates.failureLimit': 'greater',
  'gates.noData': ['fail', 'hold', 'pass'],
  'gates.onError': ['fail', 'hold'],
  disruption: 'absent',
  'disruption.maxUnavailable': 'greater',
  'disruption.maxUnavailablePercent': 'greater',
  'disruption.partition': 'neutral',
  'disruption.crossZoneDelay': 'less',
  notify: 'neutral',
};

/** The settings of a RolloutPolicy by their paths below `spec`. */
const ofPolicy: Readonly<Record<string, Looser>> = {
  targets: 'neutral',
  inputs: 'neutral',
  rules: 'neutral',
  'rules.actions': 'fewer',
  'rules.effect': ['deny', 'hold', 'requireApproval', 'requireApprovedPlan', 'warn'],
  'rules.onUnknown': ['deny', 'hold', 'requireApproval', 'requireApprovedPlan', 'warn', 'allow'],
  'rules.approval': 'absent',
  'rules.approval.count': 'less',
  'rules.approval.from': 'more',
  windows: 'neutral',
  'windows.actions': 'fewer',
  'windows.inFlight': ['finishPod', 'finishZone', 'finishAll'],
  'limits.maxUnavailable': 'greater',
  'limits.minReplicas': 'less',
  'limits.maxReplicas': 'greater',
  'limits.betweenZones': 'less',
  'limits.minInterval': 'less',
};

const directions = { RolloutGroup: ofGroup, RolloutPolicy: ofPolicy };
export type DirectedKind = keyof typeof directions;

/**
 * Returns which values of a setting permit more; undefined for a path that nothing states, such as an object of directed settings. A field
 * below a neutral setting is neutral, unless it is stated itself.
 */
export function looserValues(kind: DirectedKind, path: string): Looser | undefined {
  const own = directions[kind][path];
  if (own !== undefined) return own;
  for (let end = path.lastIndexOf('.'); end > 0; end = path.lastIndexOf('.', end - 1)) {
    const above = directions[kind][path.slice(0, end)];
    if (above !== undefined) return above === 'neutral' ? above : undefined;
  }
  return undefined;
}

/**
 * Returns whether the change of a setting from `before` to `after` permits more or less; `changed` if neither is true in every case. Durations
 * are in milliseconds.
 */
export function directionOf(looser: Looser | undefined, before: unknown, after: unknown): 'loosened' | 'tightened' | 'changed' {
  const isLooser = (from: unknown, to: unknown): boolean => looser !== undefined && permitsMore(looser, from, to);
  return isLooser(before, after) ? 'loosened' : isLooser(after, before) ? 'tightened' : 'changed';
}

function permitsMore(looser: Looser, from: unknown, to: unknown): boolean {
  if (typeof looser !== 'string') return rankOf(looser, from) < rankOf(looser, to);
  switch (looser) {
    case 'neutral':
      return false;
    case 'absent':
      return from !== undefined && to === undefined;
    case 'fewer':
      return isProperPart(listOf(to), listOf(from));
    case 'more':
      return listOf(to).length === 0 ? listOf(from).length > 0 : listOf(from).length > 0 && isProperPart(listOf(from), listOf(to));
    case 'greater':
    case 'less': {
      if (from === undefined || to === undefined) return from !== undefined;
      const [small, great] = looser === 'greater' ? [from, to] : [to, from];
      return isGreater(great, small);
    }
  }
}

function rankOf(values: readonly unknown[], value: unknown): number {
  return value === undefined ? 0 : values.indexOf(value);
}

function isProperPart(part: readonly unknown[], whole: readonly unknown[]): boolean {
  return part.length < whole.length && part.every((item) => whole.some((other) => isSameValue(item, other)));
}

/** Compares numbers with numbers and percentages with percentages. 100 % is no less than any number of pods. */
function isGreater(great: unknown, small: unknown): boolean {
  if (typeof great === 'number' && typeof small === 'number') return great > small;
  const [percent, other] = [percentOf(great), percentOf(small)];
  if (percent === undefined) return false;
  return other === undefined ? percent === 100 && typeof small === 'number' : percent > other;
}

function percentOf(value: unknown): number | undefined {
  return typeof value === 'string' && value.endsWith('%') ? Number(value.slice(0, -1)) : undefined;
}
