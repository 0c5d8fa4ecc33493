// Splits a change of the shape of a group and of its other settings into two changes, so that each effect has a cause in its own part.
import type { GroupDefinition, RolloutDefinition, WaveDefinition, ZoneDefinition } from '../policies/definition.ts';
import { compareText } from '../policies/values/compare-text.ts';
import { defined } from '../policies/values/defined.ts';
import { bound, decidingText, isBudget, type Pair, type Side, type Sides } from './sides.ts';

/** The change of a group, and everything else on both sides. */
export interface Change {
  readonly pair: Pair;
  readonly sides: Sides;
}

/**
 * Returns the parts of a change in their order, or the whole change. The shape of a group is its zones, leaders and replicas, and the order and
 * the size of its waves: it decides when other rules are evaluated. Exchanged sides give the same parts in the opposite order. `ends` are the
 * texts of both sides.
 */
export function splitChange(change: Change, ends: readonly string[]): readonly Change[] {
  const { pair, sides } = change;
  const { before, after } = pair;
  if (before === undefined || after === undefined) return [change];
  const [old, next] = [
    { side: sides.before, group: before.group },
    { side: sides.after, group: after.group },
  ];
  const first = middleOf(old, next, pair);
  if (ends.includes(first.text)) return [change];
  const other = middleOf(next, old, pair);
  const { side, between } = compareText(first.text, other.text) < 0 ? first : other;
  return [
    { pair: { ...pair, after: between }, sides: { ...sides, after: side } },
    { pair: { ...pair, before: between }, sides: { ...sides, before: side } },
  ];
}

interface End {
  readonly side: Side;
  readonly group: GroupDefinition;
}

/** Returns the side between both ends: with the shape and the manifests of one, and the other settings, the policies and the budgets of the other. */
function middleOf(shape: End, settings: End, pair: Pair) {
  const group = withShape(settings.group, shape.group);
  const { bundle } = settings.side;
  const side: Side = {
    ...settings.side,
    bundle: { ...bundle, groups: bundle.groups.map((one) => (one === settings.group ? group : one)) },
    manifests: [...shape.side.manifests.filter((one) => !isBudget(one)), ...settings.side.manifests.filter(isBudget)],
  };
  const between = bound(side, group);
  return { side, between, text: decidingText(between, pair, side) };
}

/** Returns the group with the shape of another one. The names of both stay equal to the policies that name them. */
function withShape(group: GroupDefinition, shape: GroupDefinition): GroupDefinition {
  return {
    ...group,
    profile: shape.profile,
    zones: shape.zones.map((zone) =>
      zoneWithShape(
        group.zones.find(({ statefulSet }) => statefulSet === zone.statefulSet),
        zone,
      ),
    ),
    rollout: rolloutWithShape(group.rollout, shape.rollout),
    sources: {
      ...Object.fromEntries(Object.entries(group.sources).filter(([path]) => !isOfShape.test(path))),
      ...Object.fromEntries(Object.entries(shape.sources).filter(([path]) => isOfShape.test(path))),
    },
  };
}

/** The places of a shape, as paths of `sources`. */
const isOfShape =
  /^(?:rollout\.(?:strategy|order|replaceUnready|skipOnRollback)|waves\.[^.]+|zones\.[^.]+(?:\.(?:follows|replicas|forceReplicas))?)$/;

function zoneWithShape(zone: ZoneDefinition | undefined, shape: ZoneDefinition): ZoneDefinition {
  const { follows: _follows, forceReplicas: _forceReplicas, ...settings } = zone ?? shape;
  const { name, statefulSet, replicas, follows, forceReplicas } = shape;
  return { ...settings, name, statefulSet, replicas, ...defined({ follows, forceReplicas }) };
}

function rolloutWithShape(rollout: RolloutDefinition, shape: RolloutDefinition): RolloutDefinition {
  const { strategy, order, replaceUnready, skipOnRollback } = shape;
  const waves = shape.waves.map((wave): WaveDefinition => {
    const { before, after } = rollout.waves.find(({ name }) => name === wave.name) ?? wave;
    return { ...wave, before, after };
  });
  return { ...rollout, strategy, order, replaceUnready, skipOnRollback, waves };
}
