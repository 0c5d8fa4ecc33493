// The failures that `--fail` asks for: a pod, or every pod of a zone, lost at an offset from the start.
import type { RequestedFault } from '../../engine/plan/simulate.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { durationMs } from '../../policies/duration.ts';
import { exitCodes } from '../exit-code.ts';
import { Failure, usageFailure } from '../failure.ts';

export interface FaultRequest {
  readonly text: string;
  readonly kind: 'pod' | 'zone';
  readonly name: string;
  readonly afterMs: number;
}

/**
 * Reads `pod=NAME@DURATION` or `zone=NAME@DURATION`.
 *
 * @throws Failure with exit code 3 for anything else.
 */
export function parseFault(text: string): FaultRequest {
  const [, kind, name = '', after = ''] = /^(pod|zone)=([^@\s]+)@(.+)$/.exec(text) ?? [];
  const afterMs = offsetMs(after);
  if (kind === undefined || afterMs === undefined) {
    throw usageFailure(
      `--fail ${text} is not understood`,
      'write pod=NAME@DURATION or zone=NAME@DURATION, such as pod=ingester-zone-b-1@20m',
    );
  }
  return { text, kind: kind === 'pod' ? 'pod' : 'zone', name, afterMs };
}

function offsetMs(text: string): number | undefined {
  try {
    return durationMs(text);
  } catch {
    return undefined;
  }
}

/**
 * The faults of one group. A lost pod is created again by its StatefulSet.
 *
 * @param pods the pods of the group by StatefulSet.
 */
export function faultsOf(
  requests: readonly FaultRequest[],
  group: GroupDefinition,
  pods: ReadonlyMap<string, readonly string[]>,
): readonly RequestedFault[] {
  return requests.flatMap(({ kind, name, afterMs }) => {
    const members = group.zones.filter((zone) => kind === 'pod' || zone.name === name).flatMap((zone) => pods.get(zone.statefulSet) ?? []);
    const lost = kind === 'pod' ? members.filter((pod) => pod === name) : members;
    return lost.map((pod) => ({ kind: 'podDies' as const, pod, afterMs }));
  });
}

/** A request that no group has pods for is a mistake in its name. */
export function refuseUnknownFault(
  requests: readonly FaultRequest[],
  groups: readonly GroupDefinition[],
  isKnown: (request: FaultRequest) => boolean,
): void {
  const unknown = requests.find((request) => !isKnown(request));
  if (unknown === undefined) return;
  const zones = groups.flatMap((group) => group.zones);
  throw new Failure({
    exitCode: exitCodes.notFound,
    what: `--fail ${unknown.text} names no ${unknown.kind} of the groups`,
    why:
      unknown.kind === 'zone'
        ? `known are ${zones.map(({ name }) => name).join(', ')}`
        : `pods are named after ${zones.map(({ statefulSet }) => statefulSet).join(', ')}, with their number`,
  });
}
