// Lint checks of the replica bounds of groups and policies.
import { type Finding, finding } from '../findings/finding.ts';
import type { Loaded } from '../load.ts';
import type { ReplicasSpec } from '../schema/rollout-group.ts';
import type { Path } from '../yaml/document.ts';
import { eachGroup, eachPolicy, type LintCheck } from './context.ts';

type Bounds = NonNullable<ReplicasSpec['bounds']>;

export const checkReplicaBounds: LintCheck = eachGroup((group) => {
  const { replicas, members } = group.value.spec;
  const ofZones = (members.zones ?? []).map((zone, index) => [zone.replicas, ['spec', 'members', 'zones', index, 'replicas']] as const);
  return [[replicas, ['spec', 'replicas']] as const, ...ofZones].flatMap(([spec, path]) => boundsFindings(group, spec, path));
});

export const checkPolicyBounds: LintCheck = eachPolicy((policy) => {
  const { minReplicas, maxReplicas } = policy.value.spec.limits ?? {};
  if (minReplicas === undefined || maxReplicas === undefined || minReplicas <= maxReplicas) return [];
  const message = `minReplicas ${minReplicas} is above maxReplicas ${maxReplicas}`;
  return [finding('RG2208', policy.place(['spec', 'limits', 'minReplicas']), message)];
});

function boundsFindings(group: Loaded<'RolloutGroup'>, replicas: ReplicasSpec | undefined, path: Path): readonly Finding[] {
  const bounds = replicas?.bounds;
  if (!bounds) return [];
  const { min, max } = bounds;
  if (min !== undefined && max !== undefined && min > max) {
    return [finding('RG2208', group.place([...path, 'bounds', 'min']), `min ${min} is above max ${max}`)];
  }
  if (!allowsAny(bounds)) {
    const message = `the bounds allow no replica count: no number is ${boundsText(bounds)}`;
    return [finding('RG2210', group.place([...path, 'bounds'], 'key'), message)];
  }
  if (replicas.count === undefined || allows(bounds, replicas.count)) return [];
  const message = `count ${replicas.count} is outside its bounds: it must be ${boundsText(bounds)}`;
  return [finding('RG2209', group.place([...path, 'count']), message)];
}

function allows({ min = 0, max = Number.POSITIVE_INFINITY, multipleOf, parity }: Bounds, count: number): boolean {
  const isOfParity = parity === 'any' || (count % 2 === 0) === (parity === 'even');
  return count >= min && count <= max && count % multipleOf === 0 && isOfParity;
}

/** Multiples alternate in parity or keep it, so the first two multiples above the minimum decide. */
function allowsAny(bounds: Bounds): boolean {
  const first = Math.ceil((bounds.min ?? 0) / bounds.multipleOf) * bounds.multipleOf;
  return allows(bounds, first) || allows(bounds, first + bounds.multipleOf);
}

function boundsText({ min, max, multipleOf, parity }: Bounds): string {
  const range = min !== undefined && max !== undefined ? `from ${min} to ${max}` : min !== undefined ? `${min} or more` : `${max} or less`;
  return [
    ...(min === undefined && max === undefined ? [] : [range]),
    ...(multipleOf === 1 ? [] : [`a multiple of ${multipleOf}`]),
    ...(parity === 'any' ? [] : [parity]),
  ].join(' and ');
}
