// Finds the replicas that each zone should have: a forced number, or the number of its leader zone, of a mirrored object or of the group.

import { fitsBounds } from '../../policies/bounds.ts';
import type { BoundsDefinition, LimitsDefinition, ZoneDefinition } from '../../policies/definition.ts';
import { isSameValue } from '../../policies/values/canonical-json.ts';
import { extended } from '../../policies/values/defined.ts';
import { counted } from '../../policies/wording.ts';
import { boundSource, contextOf, type GroupContext, intentsOf, limitSource, sourceOf, zoneNamed } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import type { ZoneView } from '../observe/view.ts';
import { blocks, result } from '../rule.ts';
import { sourceAccess } from '../rules/agent-access.ts';
import { cancelRequests, digestOfCancel } from '../run/requests.ts';
import { type IntentView, isUnknown, type Ledger, type ReplicaSourceView } from '../snapshot.ts';

export interface DesiredReplicas {
  readonly replicas: number;
  /** True if a person forced the number: then readiness and delays do not count. */
  readonly isForced: boolean;
  /** The result of the rule `replica-source`, or `agent-access` if the agent lacks a right. It blocks if the number could not be read. */
  readonly answer: RuleResult;
  readonly mirrored?: ReplicaSourceView;
}

/** Returns the replicas that a zone should have; undefined if other clients set them, or its StatefulSet was not read. */
export function desiredReplicas(context: GroupContext, view: ZoneView): DesiredReplicas | undefined {
  const { zone } = view;
  if (view.set === undefined) return undefined;
  if (zone.follows !== undefined) return fromLeader(context, view, zone.follows);
  switch (zone.replicas.kind) {
    case 'leader':
      return undefined;
    case 'count':
      return forced(context, view) ?? within(context, view, zone.replicas.count, 'the group asks for');
    case 'mirror':
      return fromMirror(context, view, zone.replicas);
  }
}

/**
 * Returns the ledger with the cancelled downscales that have ended, because another number than the cancelled one was requested. Such a
 * cancellation stays ended: the same number is then a new request. While the requested number cannot be read, nothing changes.
 */
export function withEndedCancels(ledger: Ledger, { snapshot, group }: Pick<GroupContext, 'snapshot' | 'group'>): Ledger {
  const { endedCancels: known = [], ...rest } = ledger;
  const intents = intentsOf(snapshot, group);
  if (isUnknown(intents) || (known.length === 0 && !intents.some(({ action }) => action === 'cancel'))) return ledger;
  const context = contextOf(snapshot, group);
  const ended = context.view.zones.flatMap((view) => {
    const desired = desiredReplicas(context, view);
    const requested = desired === undefined || blocks(desired.answer) ? undefined : desired.replicas;
    const isOther = ({ replicas }: IntentView): boolean => replicas !== undefined && requested !== undefined && replicas !== requested;
    return cancelRequests(context, view.zone.name).flatMap((intent) => {
      const digest = digestOfCancel(intent, view.zone.name);
      return known.includes(digest) || isOther(intent) ? [digest] : [];
    });
  });
  if (isSameValue(ended.sort(), known)) return ledger;
  return ended.length === 0 ? rest : { ...rest, endedCancels: ended };
}

function forced(context: GroupContext, { zone }: ZoneView): DesiredReplicas | undefined {
  if (zone.forceReplicas === undefined) return undefined;
  const source = sourceOf(context, `zones.${zone.name}.forceReplicas`);
  return {
    replicas: zone.forceReplicas,
    isForced: true,
    answer: result('replica-source', 'ok', `replicas are forced to ${zone.forceReplicas}`, { source }),
  };
}

function fromLeader(context: GroupContext, view: ZoneView, leaderName: string): DesiredReplicas {
  const override = forced(context, view);
  if (override !== undefined) return override;
  const source = sourceOf(context, `zones.${view.zone.name}.follows`);
  const leader = zoneNamed(context, leaderName);
  if (leader?.set === undefined) {
    const answer = result('replica-source', 'unknown', `leader zone ${leaderName} could not be read`, { source });
    return { replicas: view.replicas, isForced: false, answer };
  }
  const answer = result('replica-source', 'ok', `leader zone ${leaderName} has ${counted(leader.replicas, 'replica')}`, { source });
  return { replicas: leader.replicas, isForced: false, answer };
}

type MirroredReplicas = Extract<ZoneDefinition['replicas'], { readonly kind: 'mirror' }>;

function fromMirror(context: GroupContext, view: ZoneView, spec: MirroredReplicas): DesiredReplicas {
  const source = sourceOf(context, `zones.${view.zone.name}.replicas`);
  const mirrored = context.snapshot.replicaSources.find(
    (candidate) =>
      candidate.namespace === context.group.namespace &&
      candidate.kind === spec.resourceKind &&
      candidate.name === spec.name &&
      apiGroupOf(candidate.apiVersion) === apiGroupOf(spec.apiVersion),
  );
  const name = `${spec.resourceKind} ${spec.name}`;
  const denied = sourceAccess(context, name, mirrored?.replicas);
  if (denied !== undefined) return { replicas: view.replicas, isForced: false, answer: denied };
  if (mirrored === undefined || isUnknown(mirrored.replicas)) {
    const why = mirrored !== undefined && isUnknown(mirrored.replicas) ? `: ${mirrored.replicas.unknown}` : '';
    const outcome = spec.onMissing === 'fail' ? 'no' : 'unknown';
    return {
      replicas: view.replicas,
      isForced: false,
      answer: result('replica-source', outcome, `${name} could not be read${why}`, { source }),
    };
  }
  const desired = forced(context, view) ?? within(context, view, mirrored.replicas, `${name} asks for`);
  return extended(desired, { mirrored });
}

/** Returns the API group of an API version. The version within the group does not identify the resource. */
function apiGroupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '';
}

function within(context: GroupContext, view: ZoneView, asked: number, who: string): DesiredReplicas {
  const replicas = boundedReplicas(asked, view.zone.bounds, context.limits);
  if (replicas === asked)
    return { replicas, isForced: false, answer: result('replica-source', 'ok', `${who} ${counted(asked, 'replica')}`) };
  const source =
    replicas === context.limits.minReplicas
      ? limitSource(context, 'minReplicas')
      : boundSource(context, view.zone.name, 'maxReplicas', replicas);
  const fact = `${who} ${counted(asked, 'replica')}; the bounds change that to ${replicas}`;
  return { replicas, isForced: false, answer: result('replica-source', 'ok', fact, { limit: describeBounds(view.zone.bounds), source }) };
}

/**
 * Returns a count within its bounds: at least the minimum, at most the maximum, rounded up to the multiple and parity. Rounds down if the
 * next higher count exceeds the maximum. If no count fits, only minimum and maximum apply.
 */
export function boundedReplicas(asked: number, bounds: BoundsDefinition, limits: LimitsDefinition): number {
  const min = Math.max(bounds.min ?? 0, limits.minReplicas ?? 0);
  const max = Math.min(bounds.max ?? Number.POSITIVE_INFINITY, limits.maxReplicas ?? Number.POSITIVE_INFINITY);
  const wanted = Math.min(Math.max(asked, min), max);
  const { multipleOf } = bounds;
  const above = Math.ceil(wanted / multipleOf) * multipleOf;
  const below = Math.floor(wanted / multipleOf) * multipleOf;
  // If two neighbouring multiples have the wrong parity, then all multiples have the wrong parity.
  const up = [above, above + multipleOf].find((count) => count <= max && fitsBounds(count, bounds));
  return up ?? [below, below - multipleOf].find((count) => count >= min && fitsBounds(count, bounds)) ?? wanted;
}

function describeBounds({ min, max, multipleOf, parity }: BoundsDefinition): string {
  const parts = [
    ...(min === undefined ? [] : [`at least ${min}`]),
    ...(max === undefined ? [] : [`at most ${max}`]),
    ...(multipleOf === 1 ? [] : [`a multiple of ${multipleOf}`]),
    ...(parity === 'any' ? [] : [parity]),
  ];
  return parts.join(', ') || 'the limits of policies';
}
