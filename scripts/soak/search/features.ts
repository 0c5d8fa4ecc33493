// Names the features of a group and the requests of people that a scenario has, for the report of a soak.
import { letterOf, type RuleShape, type Scenario, traitsOfShape, type WaveShape, type WindowShape } from '../../../simulation/scenario.ts';

import { neighbour } from './draw.ts';
import { firstImage } from './events.ts';

type IsSo = (scenario: Scenario) => boolean;

/** Returns whether no wave updates the zone completely. */
function isLeft(waves: readonly WaveShape[] = [], zone: string): boolean {
  return !waves.some(({ zones, pods, percent = 100 }) => zones.includes(zone) && pods === undefined && percent === 100);
}

const hasWave =
  (isSo: (wave: WaveShape) => boolean): IsSo =>
  ({ group }) =>
    group.waves?.some(isSo) === true;

const hasWindow =
  (action: WindowShape['actions'][number]): IsSo =>
  ({ group }) =>
    group.windows?.some(({ actions }) => actions.includes(action)) === true;

const hasRule =
  (kind: RuleShape['kind']): IsSo =>
  ({ group }) =>
    group.rules?.some((rule) => rule.kind === kind) === true;

const hasEvent =
  (name: Scenario['events'][number]['kind']): IsSo =>
  ({ events }) =>
    events.some(({ kind }) => kind === name);

/** The features in the order of the report. */
const features: Readonly<Record<string, IsSo>> = {
  'labels of grafana/rollout-operator': ({ group }) => group.kind === 'adopted',
  'strategy partition': ({ group }) => traitsOfShape(group).lowersPartition,
  'strategy pinned': ({ group }) => traitsOfShape(group).pinsPods,
  'gate without waves': ({ group }) => group.gate !== undefined && group.waves === undefined,
  waves: ({ group }) => group.waves !== undefined,
  'waves that leave pods out': ({ group }) =>
    group.waves !== undefined &&
    Array.from({ length: group.zones }, (_, index) => letterOf(index)).some((zone) => isLeft(group.waves, zone)),
  'soak of a wave': hasWave(({ soakSeconds }) => soakSeconds !== undefined),
  'gate before a wave': hasWave(({ gates }) => gates?.includes('before') === true),
  'gate after a wave': hasWave(({ gates }) => gates?.includes('after') === true),
  'gate that fails a run': ({ group }) => group.gateFailureLimit !== undefined,
  'approval before a wave': hasWave(({ approvals }) => approvals?.includes('before') === true),
  'approval after a wave': hasWave(({ approvals }) => approvals?.includes('after') === true),
  'onFailure: rollback': ({ group }) => group.rollsBack === true,
  'deadline for progress': ({ group }) => group.deadlineSeconds !== undefined,
  'budget for disruptions by others': ({ group }) => group.disruption !== undefined,
  'webhooks for all requests': ({ group }) => group.webhooks === true,
  'preparation in a webhook': ({ group }) => group.webhooks === true && group.kind === 'adopted' && group.prepares === true,
  'zone budget for evictions': ({ group }) => group.zoneBudget !== undefined,
  'zone that must not shrink': ({ group }) => group.noDownscale === true,
  'restart of the group or a zone': ({ events }) => events.some(({ kind }) => kind === 'restart'),
  'return of one zone': ({ events }) =>
    events.some(
      (one) =>
        (one.kind === 'request' && one.action === 'undo' && one.zone !== undefined) ||
        (one.kind === 'setImage' && one.image === firstImage && one.zones !== undefined),
    ),
  'apply of a GitOps tool': ({ events }) => events.some(({ kind }) => kind === 'reapply'),
  'apply that resets replicas': ({ events }) => events.some((one) => one.kind === 'reapply' && one.owns.includes('replicas')),
  'apply that resets the partition': ({ events }) => events.some((one) => one.kind === 'reapply' && one.owns.includes('partition')),
  'window for rollouts': hasWindow('rollout'),
  'window for scale-downs': hasWindow('scaleDown'),
  'policy rule that ends at a time': hasRule('early'),
  'policy rule about another zone': hasRule('order'),
  'policy rule about replicas': hasRule('floor'),
  'policy rule that asks for an approval': hasRule('ask'),
  'policy rule that requires an approved plan': hasRule('plan'),
  'policies in a directory': ({ group }) => group.hasPolicyDirectory === true,
  'policies that change': hasEvent('setPolicies'),
  'waves that change': hasEvent('setWaves'),
  'duringRollout: allow': ({ group }) => group.scalesDuringRollout === true,
  'replicas that change during a rollout': ({ events }) => {
    const rollouts = events.filter(({ kind }) => kind === 'setImage');
    return events.some(({ kind, atMs }) => kind === 'setReplicas' && rollouts.some((one) => atMs > one.atMs && atMs < one.atMs + 40_000));
  },
  'agent of another version': hasEvent('otherVersion'),
  minInterval: ({ group }) => group.minIntervalSeconds !== undefined,
  'second group in the namespace': ({ others = [] }) => others.some(({ namespace }) => namespace === neighbour.namespace),
  'group in a second namespace': ({ others = [] }) => others.some(({ namespace }) => namespace !== neighbour.namespace),
  'namespace that is deleted': ({ others = [] }) => others.some(({ events }) => events.some(({ kind }) => kind === 'terminateNamespace')),
};

/** The names of all features. */
export const featureNames: readonly string[] = Object.keys(features);

/** Returns the names of the features and requests of the scenario, each once. */
export function featuresOf(scenario: Scenario): readonly string[] {
  const requests = scenario.events.flatMap((event) =>
    event.kind === 'request' ? [`request: ${event.action}`] : event.kind === 'override' ? ['request: override'] : [],
  );
  return [...featureNames.filter((name) => features[name]?.(scenario)), ...new Set(requests)];
}
