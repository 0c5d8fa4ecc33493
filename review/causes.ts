// Names the change of a definition that makes a rule block more on one side: a removed object, rule, window or member, or another limit.
import type { RuleResult } from '../engine/decision.ts';
import type { PolicyDefinition, Source, WindowDefinition } from '../policies/definition.ts';
import { parseDuration } from '../policies/duration.ts';
import { isSameValue } from '../policies/values/canonical-json.ts';
import { type Flip, isOtherAnswer } from './compare.ts';
import { type ChangedSetting, rulesOf } from './settings.ts';
import { type BoundGroup, comparableText, type Pair, type Side } from './sides.ts';

export interface Sides {
  readonly before: Side;
  readonly after: Side;
}

/** The verbs for a definition that only the stricter side has: after a loosening it is gone, after a tightening it is new. */
const verbs = {
  loosened: { object: 'is removed', binding: 'no longer applies to', member: 'leaves', rule: 'no longer blocks' },
  tightened: { object: 'is added', binding: 'now applies to', member: 'joins', rule: 'now blocks' },
} as const;

interface Cause {
  /** The change as a clause, such as `RolloutPolicy mimir/calendar is removed`. */
  readonly text: string;
  /** The place of an object or member that only one side has. Absent: the places of the results. */
  readonly source?: Source | undefined;
}

/** Returns the change behind a difference. */
export function causeOf(flip: Flip, pair: Pair, sides: Sides, settings: readonly ChangedSetting[]): Cause {
  const { direction, rule } = flip;
  const [strict, loose] = strictFirst(direction);
  const verb = verbs[direction];
  const [strictGroup, looseGroup] = [pair[strict], pair[loose]];
  const name = `${pair.namespace}/${(strictGroup ?? looseGroup)?.group.name}`;
  if (strictGroup === undefined) return { text: `RolloutGroup ${name} is ${direction === 'loosened' ? 'added' : 'removed'}` };
  const { sources } = strictGroup.group;
  if (looseGroup === undefined) return { text: `RolloutGroup ${name} ${verb.object}`, source: sources[''] };
  const member = memberOf(strictGroup, flip.question.statefulSet);
  if (member !== undefined && memberOf(looseGroup, member.statefulSet) === undefined) {
    return { text: `StatefulSet ${member.statefulSet} ${verb.member} ${name}`, source: sources[`zones.${member.name}`] };
  }
  const policy = policyOf(flip, strictGroup.policies);
  if (policy !== undefined && !looseGroup.policies.some((other) => isSameObject(policy, other))) {
    const isThere = sides[loose].bundle.policies.some((other) => isSameObject(policy, other));
    const text = `RolloutPolicy ${policy.namespace}/${policy.name} ${isThere ? `${verb.binding} ${name}` : verb.object}`;
    return { text, source: policy.source };
  }
  if (rule.includes('/')) return { text: policyRuleCause(rule, looseGroup, verb.object) };
  const window = rule === 'window' ? windowOf(flip[strict], policy) : undefined;
  if (window === undefined) return { text: limitCause(flip, name, verb.rule) ?? settingCause(flip, settings, name) };
  const other = looseGroup.policies.find((one) => one.name === policy?.name)?.windows.find(({ name: found }) => found === window.name);
  const text = `window ${window.name} of RolloutPolicy ${policy?.namespace}/${policy?.name}`;
  if (other === undefined) return { text: `${text} ${verb.object}` };
  return { text: comparableText(other) === comparableText(window) ? `the windows of ${name} change` : `${text} changes` };
}

/** Returns the side that blocks more, and the other side. */
export function strictFirst(direction: Flip['direction']): readonly ['before' | 'after', 'before' | 'after'] {
  return direction === 'loosened' ? ['before', 'after'] : ['after', 'before'];
}

function memberOf({ group }: BoundGroup, statefulSet: string | undefined): BoundGroup['group']['zones'][number] | undefined {
  return group.zones.find((zone) => zone.statefulSet === statefulSet);
}

function policyRuleCause(rule: string, { policies }: BoundGroup, verb: string): string {
  const isThere = policies.some((policy) => policy.rules.some(({ name }) => `${policy.name}/${name}` === rule));
  return `rule ${rule} ${isThere ? 'changes' : verb}`;
}

/** Returns the policy of the stricter side that contains the rule, or the source of its result. */
function policyOf(flip: Flip, policies: readonly PolicyDefinition[]): PolicyDefinition | undefined {
  const source = flip[strictFirst(flip.direction)[0]]?.source;
  return policies.find((policy) => {
    if (policy.rules.some(({ name }) => `${policy.name}/${name}` === flip.rule)) return true;
    const places = [...policy.windows.map((window) => window.source), ...Object.values(policy.limitSources)];
    return source !== undefined && places.some((place) => isSameValue(place, source));
  });
}

function windowOf(result: RuleResult | undefined, policy: PolicyDefinition | undefined): WindowDefinition | undefined {
  const source: Source | undefined = result?.source;
  return policy?.windows.find((window) => source !== undefined && isSameValue(window.source, source));
}

function isSameObject(a: PolicyDefinition, b: PolicyDefinition): boolean {
  return a.namespace === b.namespace && a.name === b.name;
}

/** The settings behind the rules of the engine. Another rule is named itself. */
const settings: Readonly<Record<string, string>> = {
  'zone-gap': 'the time between zones',
  'delayed-downscale': 'the delay of a scale-down',
  'prepare-downscale': 'the preparation of a scale-down',
  'min-interval': 'the interval between replacements',
  soak: 'the soak time',
  'zone-budget': 'the maximum of unavailable pods',
  'disruption-budget': 'the disruption budget',
  'eviction-budget': 'the PodDisruptionBudget',
  'scale-floor': 'the minimum of replicas',
  'scale-ceiling': 'the maximum of replicas',
  approval: 'the required approval',
  gate: 'the gate',
  'no-delete': 'the protection noDelete',
  'no-downscale': 'the protection noDownscale',
  'no-eviction': 'the protection noEviction',
};

/** Returns the change of the limit of a rule, or of a protection; undefined if the results of both sides do not show it. */
function limitCause({ rule, before, after }: Flip, group: string, verb: string): string | undefined {
  const what = `${settings[rule] ?? `the rule ${rule}`} of ${group}`;
  // The results of a gate have limits of several kinds.
  if (rule === 'gate') return undefined;
  const [old, next] = [before?.limit, after?.limit].map((limit) => limit?.replace(/^at (?:least|most) /, ''));
  if (old !== undefined && next !== undefined && old !== next) return `${what} ${changeVerb(old, next)} from ${old} to ${next}`;
  return rule.startsWith('no-') && settings[rule] !== undefined
    ? `${what} is ${verb === verbs.loosened.rule ? 'removed' : 'added'}`
    : undefined;
}

/**
 * Returns the change of the only setting of the group that the rule reads and that differs. If several differ, returns that the rule blocks
 * less or more. If none differs, the limit comes from another object, such as a policy or a PodDisruptionBudget.
 */
function settingCause(flip: Flip, changed: readonly ChangedSetting[], group: string): string {
  const [only, ...others] = settingsOf(flip, changed);
  if (only !== undefined && others.length === 0) return `the setting ${only.name} of ${group} ${only.change}`;
  if (only !== undefined && [only, ...others].every(({ path }) => path.startsWith('rollout.waves'))) return `the waves of ${group} change`;
  const what = `${settings[flip.rule] ?? `the rule ${flip.rule}`} of ${group}`;
  const limit = flip[strictFirst(flip.direction)[0]]?.limit;
  if (only !== undefined || limit === undefined || settings[flip.rule] === undefined) return `${what} ${verbs[flip.direction].rule}`;
  return flip.direction === 'loosened' ? `${what} is removed, which was ${limit}` : `${what} is added: ${limit}`;
}

function settingsOf({ rule }: Flip, changed: readonly ChangedSetting[]): readonly ChangedSetting[] {
  return changed.filter((setting) => rulesOf(setting).includes(rule));
}

/**
 * Reports whether the settings behind a difference contradict it: all have the opposite direction, or none has a direction and the whole answer
 * is the same. Such a difference comes from the state of the question, such as the time of a reading.
 */
export function isContrary(flip: Flip, changed: readonly ChangedSetting[]): boolean {
  const { question, answers, direction } = flip;
  const found = settingsOf(flip, changed);
  if (found.length === 0) return false;
  const isOther = isOtherAnswer(answers.before, answers.after, question.nowMs);
  return found.every((setting) => (setting.direction === 'changed' ? !isOther : setting.direction !== direction));
}

function changeVerb(old: string, next: string): string {
  const [from, to] = [old, next].map((text) => parseDuration(text) ?? Number.parseFloat(text));
  if (from === undefined || to === undefined || Number.isNaN(from) || Number.isNaN(to) || from === to) return 'changes';
  return to < from ? 'falls' : 'rises';
}
