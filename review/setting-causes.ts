// Names the settings behind a difference: those that the rule reads, or else those that decide which pods a rollout replaces next.
import type { LimitsDefinition, Source } from '../policies/definition.ts';
import { parseDuration } from '../policies/duration.ts';
import { isSameValue } from '../policies/values/canonical-json.ts';
import { listed } from '../policies/wording.ts';
import { type Flip, isOtherAnswer, ofBudgets, strictFirst } from './compare.ts';
import { type ChangedSetting, rulesOf, settingText, sharedZones } from './settings.ts';
import { budgetTexts, differs, type Pair, type Sides } from './sides.ts';

export interface Cause {
  /** The change as a clause, such as `RolloutPolicy mimir/calendar is removed`. */
  readonly text: string;
  /** The place of an object or member that only one side has. Absent: the places of the results, or of the settings. */
  readonly source?: Source | undefined;
  /** The settings that the text names. */
  readonly settings?: readonly ChangedSetting[];
  /** True if the rule itself is the same on both sides, and the change only moves the points of a rollout at which the rule is evaluated. */
  readonly isShape?: true;
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

/** Returns the change of a setting that the rule reads, in the group, a policy or a budget; undefined if none of them explains the difference. */
export function ownCause(flip: Flip, pair: Pair, sides: Sides, changed: readonly ChangedSetting[]): Cause | undefined {
  const { rule } = flip;
  const read = changed.filter((setting) => rulesOf(setting)?.includes(rule));
  const own = agreeing(flip, read);
  const readBy = (limits: LimitsDefinition) =>
    Object.entries(limits).filter(([name]) => rulesOf({ path: `limits.${name}` })?.includes(rule));
  const hasOtherLimit = differs(pair, ({ policies }) => policies.map(({ limits }) => readBy(limits)));
  if (own.length === 0 && !hasOtherLimit && !hasOtherBudget(rule, pair, sides)) return undefined;
  const group = `${pair.namespace}/${pair.name}`;
  return { text: limitText(flip, group) ?? ownText(flip, own, group), settings: own };
}

function hasOtherBudget(rule: string, { namespace }: Pair, { before, after }: Sides): boolean {
  const [old, next] = [before, after].map((side) => budgetTexts(side, namespace));
  return ofBudgets.has(rule) && !isSameValue(old, next);
}

/** Returns the settings that do not contradict a difference: of the same direction, or without a direction if the whole answer differs. */
function agreeing({ question, answers, direction }: Flip, changed: readonly ChangedSetting[]): readonly ChangedSetting[] {
  if (direction === 'changed') return changed;
  const isOther = isOtherAnswer(answers.before, answers.after, question.nowMs);
  return changed.filter((setting) => (setting.direction === 'changed' ? isOther : setting.direction === direction));
}

/** Returns the change of the limit of a rule, or of a protection; undefined if the results of both sides do not show it. */
function limitText({ rule, before, after, direction }: Flip, group: string): string | undefined {
  const what = `${settings[rule] ?? `the rule ${rule}`} of ${group}`;
  // The results of a gate have limits of several kinds.
  if (rule === 'gate') return undefined;
  const [old, next] = [before?.limit, after?.limit].map((limit) => limit?.replace(/^at (?:least|most) /, ''));
  if (old !== undefined && next !== undefined && old !== next) return `${what} ${changeVerb(old, next)} from ${old} to ${next}`;
  const isProtection = rule.startsWith('no-') && settings[rule] !== undefined;
  return isProtection ? `${what} is ${direction === 'loosened' ? 'removed' : 'added'}` : undefined;
}

/**
 * Returns the change of the only setting of the group that the rule reads. If several differ, returns that the rule blocks less or more. If none
 * differs, the limit comes from another object, such as a policy or a PodDisruptionBudget.
 */
function ownText(flip: Flip, own: readonly ChangedSetting[], group: string): string {
  const [only, ...others] = own;
  if (only !== undefined && others.length === 0) return settingText(only, group);
  if (only !== undefined && own.every(isOfWaves)) return `the waves of ${group} change`;
  const { direction } = flip;
  const what = `${settings[flip.rule] ?? `the rule ${flip.rule}`} of ${group}`;
  const limit = flip[strictFirst(direction)[0]]?.limit;
  if (only !== undefined || limit === undefined || settings[flip.rule] === undefined) {
    return `${what} ${direction === 'loosened' ? 'no longer blocks' : 'now blocks'}`;
  }
  // A budget that permits an eviction gives no result, so a removed budget cannot be told from one that requires fewer pods.
  if (flip.rule === 'eviction-budget') return `${what} ${direction === 'loosened' ? 'no longer' : 'now'} requires ${limit} pods`;
  return direction === 'loosened' ? `${what} is removed, which was ${limit}` : `${what} is added: ${limit}`;
}

function isOfWaves({ path }: ChangedSetting): boolean {
  return path.startsWith('rollout.waves');
}

/** Returns the change that moves a rollout to another wave, zone or number of pods, where other rules block: of members, waves or replicas. */
export function shapeCause(flip: Flip, pair: Pair, changed: readonly ChangedSetting[]): Cause | undefined {
  const group = `${pair.namespace}/${pair.name}`;
  const members = memberText(pair, group);
  if (members !== undefined) return { text: members, isShape: true };
  const shapes = agreeing(
    flip,
    changed.filter((setting) => rulesOf(setting) === undefined),
  );
  const [only, ...others] = shapes;
  if (only === undefined) return undefined;
  const text =
    others.length === 0
      ? settingText(only, group)
      : shapes.every(isOfWaves)
        ? `the waves of ${group} change`
        : `the settings ${listed([...new Set(shapes.map(({ name }) => name))], 'and')} of ${group} change`;
  return { text, settings: shapes, isShape: true };
}

/** Returns which members leave or join the group; undefined if both sides have the same members. */
function memberText({ before, after }: Pair, group: string): string | undefined {
  if (before === undefined || after === undefined) return undefined;
  const shared = new Set(sharedZones(before.group, after.group).map(({ statefulSet }) => statefulSet));
  const text = (zones: typeof before.group.zones, verb: readonly [one: string, several: string]): readonly string[] => {
    const names = zones.map(({ statefulSet }) => statefulSet).filter((name) => !shared.has(name));
    if (names.length === 0) return [];
    return [`StatefulSet${names.length === 1 ? '' : 's'} ${listed(names, 'and')} ${verb[names.length === 1 ? 0 : 1]} ${group}`];
  };
  const texts = [...text(before.group.zones, ['leaves', 'leave']), ...text(after.group.zones, ['joins', 'join'])];
  return texts.length === 0 ? undefined : texts.join(', and ');
}

function changeVerb(old: string, next: string): string {
  const [from, to] = [old, next].map((text) => parseDuration(text) ?? Number.parseFloat(text));
  if (from === undefined || to === undefined || Number.isNaN(from) || Number.isNaN(to) || from === to) return 'changes';
  return to < from ? 'falls' : 'rises';
}
