// Names the change of a definition that makes a rule block more on one side: a removed object, rule, window or member, or another setting.
import type { PolicyDefinition, Source, WindowDefinition } from '../policies/definition.ts';
import { type Flip, isOfPolicy, isOfRule, type RuleFlip, strictFirst } from './compare.ts';
import { type Cause, ownCause, shapeCause } from './setting-causes.ts';
import type { ChangedSetting } from './settings.ts';
import { type BoundGroup, comparableText, differs, type Pair, type Sides } from './sides.ts';

/** The verbs for a definition that only the stricter side has: after a loosening it is gone, after a tightening it is new. */
const verbs = {
  loosened: { object: 'is removed', binding: 'no longer applies to', member: 'leaves' },
  tightened: { object: 'is added', binding: 'now applies to', member: 'joins' },
} as const;

/**
 * Returns the change behind a difference: of the rule itself, of a setting that it reads, or else of a definition that every rule reads, such as
 * the zones of a wave. Returns undefined if all of them are equal, or permit more where the rule permits less: then the difference comes from
 * the state of the question.
 */
export function causeOf(flip: Flip, pair: Pair, sides: Sides, settings: readonly ChangedSetting[]): Cause | undefined {
  const own = isOfRule(flip) ? (objectCause(flip, pair, sides) ?? ruleCause(flip, pair, sides, settings)) : undefined;
  return own ?? shapeCause(flip, pair, settings);
}

/** Returns the group, member or policy that only the stricter side has. */
function objectCause(flip: RuleFlip, pair: Pair, sides: Sides): Cause | undefined {
  const { direction } = flip;
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
  if (policy === undefined || looseGroup.policies.some((other) => isSameObject(policy, other))) return undefined;
  const isThere = sides[loose].bundle.policies.some((other) => isSameObject(policy, other));
  const text = `RolloutPolicy ${policy.namespace}/${policy.name} ${isThere ? `${verb.binding} ${name}` : verb.object}`;
  return { text, source: policy.source };
}

function memberOf({ group }: BoundGroup, statefulSet: string | undefined): BoundGroup['group']['zones'][number] | undefined {
  return group.zones.find((zone) => zone.statefulSet === statefulSet);
}

/** Returns the change of the rule, of its window, or of a setting that it reads; undefined if all of them are equal. */
function ruleCause(flip: RuleFlip, pair: Pair, sides: Sides, settings: readonly ChangedSetting[]): Cause | undefined {
  if (isOfPolicy(flip.rule)) return policyRuleCause(flip, pair);
  return flip.rule === 'window' ? windowCause(flip, pair) : ownCause(flip, pair, sides, settings);
}

function policyRuleCause({ rule, direction }: RuleFlip, pair: Pair): Cause | undefined {
  const named = ({ policies }: BoundGroup) =>
    policies.flatMap((policy) => policy.rules.filter(({ name }) => `${policy.name}/${name}` === rule));
  if (!differs(pair, named)) return undefined;
  const loose = pair[strictFirst(direction)[1]];
  const isThere = loose !== undefined && named(loose).length > 0;
  return { text: `rule ${rule} ${isThere ? 'changes' : verbs[direction].object}` };
}

function windowCause(flip: RuleFlip, pair: Pair): Cause | undefined {
  if (!differs(pair, ({ policies }) => policies.map(({ windows }) => windows))) return undefined;
  const [strict, loose] = strictFirst(flip.direction);
  const policy = policyOf(flip, pair[strict]?.policies ?? []);
  const window = windowOf(flip[strict]?.source, policy);
  const all: Cause = { text: `the windows of ${pair.namespace}/${pair.name} change` };
  if (policy === undefined || window === undefined) return all;
  const others = pair[loose]?.policies.find((one) => isSameObject(one, policy))?.windows ?? [];
  const other = others.find(({ name }) => name === window.name);
  const text = `window ${window.name} of RolloutPolicy ${policy.namespace}/${policy.name}`;
  if (other === undefined) return { text: `${text} ${verbs[flip.direction].object}` };
  return comparableText(other) === comparableText(window) ? all : { text: `${text} changes` };
}

/** Returns the policy of the stricter side that contains the rule, or the source of its result. */
function policyOf(flip: Flip, policies: readonly PolicyDefinition[]): PolicyDefinition | undefined {
  const source = flip[strictFirst(flip.direction)[0]]?.source;
  return policies.find((policy) => {
    if (policy.rules.some(({ name }) => `${policy.name}/${name}` === flip.rule)) return true;
    const places = [...policy.windows.map((window) => window.source), ...Object.values(policy.limitSources)];
    return source !== undefined && places.some((place) => isSamePlace(place, source));
  });
}

function windowOf(source: Source | undefined, policy: PolicyDefinition | undefined): WindowDefinition | undefined {
  return policy?.windows.find((window) => source !== undefined && isSamePlace(window.source, source));
}

function isSameObject(a: PolicyDefinition, b: PolicyDefinition): boolean {
  return a.namespace === b.namespace && a.name === b.name;
}

function isSamePlace(a: Source, b: Source): boolean {
  return a.file === b.file && a.line === b.line && a.column === b.column && a.object === b.object && a.field === b.field;
}
