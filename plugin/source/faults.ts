// Faults of a simulation: accidents of `--fail` with name and instant, and random faults of `--faults`.
import type { GroupDefinition } from '../../policies/definition.ts';
import { durationMs } from '../../policies/duration.ts';
import { listed } from '../../policies/wording.ts';
import type { FaultClass } from '../../simulation/faults/fault.ts';
import type { ScenarioEvent } from '../../simulation/scenario.ts';
import { exitCodes, Failure, usageFailure } from '../failure.ts';
import { faultNames, usualFaults } from '../verbs/preview.ts';

const kinds = ['pod', 'zone', 'node', 'drain', 'agent'] as const;
type Kind = (typeof kinds)[number];

interface FaultRequest {
  readonly text: string;
  readonly kind: Kind;
  readonly name: string;
  readonly afterMs: number;
  /** Duration; undefined for the default. */
  readonly forMs?: number;
}

/**
 * Reads `WHAT=NAME@DURATION` or `WHAT=NAME@DURATION+DURATION`; the second duration is the length.
 *
 * @throws Failure with exit code 3 for anything else.
 */
export function parseFault(text: string): FaultRequest {
  const [, kind, name = '', after = '', lasting] = /^([a-z]+)=([^@\s]+)@([^+]+)(?:\+(.+))?$/.exec(text) ?? [];
  const afterMs = offsetMs(after);
  const forMs = lasting === undefined ? undefined : offsetMs(lasting);
  const isKnown = kinds.some((known) => known === kind);
  if (!isKnown || afterMs === undefined || (lasting !== undefined && forMs === undefined)) {
    throw usageFailure(
      `--fail ${text} is not understood`,
      'write pod=NAME@DURATION, or zone=, node=ZONE, drain=ZONE or agent=a, such as pod=ingester-zone-b-1@20m or node=zone-a@14m+5m',
    );
  }
  return { text, kind: kind as Kind, name, afterMs, ...(forMs === undefined ? {} : { forMs }) };
}

function offsetMs(text: string): number | undefined {
  try {
    return durationMs(text);
  } catch {
    return undefined;
  }
}

/** Default time after which a lost node returns and a dead agent restarts. */
const nodeAwayMs = 10 * 60_000;
const agentAwayMs = 5000;
/** The agents of a simulation. */
const agents = ['a', 'b'];

/**
 * Returns the events of a request in the group. The container of a failed pod restarts, or the pod is replaced; a pod that fails for a
 * duration is not ready.
 *
 * @param pods the pods of the group by StatefulSet.
 */
export function eventsOf(
  requests: readonly FaultRequest[],
  group: GroupDefinition,
  pods: ReadonlyMap<string, readonly string[]>,
): readonly ScenarioEvent[] {
  const events = requests.flatMap((request) => eventsOfOne(request, group, pods));
  return events.sort((one, other) => one.atMs - other.atMs);
}

function eventsOfOne(
  request: FaultRequest,
  { zones }: GroupDefinition,
  pods: ReadonlyMap<string, readonly string[]>,
): readonly ScenarioEvent[] {
  const { kind, name, afterMs: atMs, forMs } = request;
  if (kind === 'agent') return agents.includes(name) ? [{ atMs, kind: 'crash', process: name, restartAfterMs: forMs ?? agentAwayMs }] : [];
  return zones.flatMap(({ name: zoneName, statefulSet }, index): readonly ScenarioEvent[] => {
    const zone = String.fromCharCode('a'.charCodeAt(0) + index);
    const members = pods.get(statefulSet) ?? [];
    if (kind === 'pod') return podEvents(request, zone, members.includes(name) ? [name] : []);
    if (zoneName !== name) return [];
    if (kind === 'node') return [{ atMs, kind: 'nodeLost', zone, forMs: forMs ?? nodeAwayMs }];
    return kind === 'drain' ? [{ atMs, kind: 'nodeDrained', zone }] : podEvents(request, zone, members);
  });
}

function podEvents({ afterMs: atMs, forMs }: FaultRequest, zone: string, pods: readonly string[]): readonly ScenarioEvent[] {
  return pods.map((pod) => {
    const place = { atMs, zone, ordinal: Number(/\d+$/.exec(pod)?.[0] ?? 0) };
    return forMs === undefined ? { kind: 'podDies', ...place } : { kind: 'podFails', ...place, forMs };
  });
}

/** @throws Failure if no group has an object with the name of a request. */
export function refuseUnknownFault(
  requests: readonly FaultRequest[],
  groups: readonly GroupDefinition[],
  isKnown: (request: FaultRequest) => boolean,
): void {
  const unknown = requests.find((request) => !isKnown(request));
  if (unknown === undefined) return;
  const zones = groups.flatMap((group) => group.zones);
  const isPod = unknown.kind === 'pod';
  throw new Failure({
    exitCode: exitCodes.notFound,
    what: `--fail ${unknown.text} names no ${isPod ? 'pod' : unknown.kind === 'agent' ? 'agent' : 'zone'} of the groups`,
    why: isPod
      ? `pods are named after ${zones.map(({ statefulSet }) => statefulSet).join(', ')}, with their number`
      : `known are ${unknown.kind === 'agent' ? agents.join(', ') : zones.map(({ name }) => name).join(', ')}`,
  });
}

/** A named kind of fault: its classes, and for classes with several kinds of accident the chosen kinds. */
interface NamedFaults {
  readonly classes: readonly FaultClass[];
  readonly events: readonly ScenarioEvent['kind'][];
}

const named: Readonly<Record<string, NamedFaults>> = {
  network: { classes: ['F1', 'F2', 'F3', 'F5'], events: [] },
  conflicts: { classes: ['F4'], events: [] },
  watch: { classes: ['F6', 'F7', 'F8', 'F9'], events: [] },
  server: { classes: ['F10'], events: ['frontEndLags', 'frontEndRestarts'] },
  crash: { classes: ['F11'], events: ['crash', 'stop'] },
  pause: { classes: ['F12'], events: ['pauseProcess'] },
  clock: { classes: ['F14'], events: ['jumpWallClock'] },
  lease: { classes: ['F13'], events: ['deleteLease', 'editLease'] },
  pods: { classes: ['F15', 'F17', 'F21'], events: ['slowKubelet', 'stuckTerminating', 'podFlaps', 'podFails', 'podDies'] },
  nodes: { classes: ['F15', 'F17'], events: ['nodeLost', 'nodeDrained'] },
  controllers: { classes: ['F16'], events: ['controllerLags', 'controllerIsStale'] },
  webhook: { classes: ['F20'], events: ['webhookAway'] },
  people: { classes: ['F17', 'F18'], events: ['deletePod', 'scaleByHand', 'recreateStatefulSet', 'leaveGroup', 'setStrategy'] },
};

/**
 * Returns the kinds in `--faults`. Without the flag returns the default kinds, or none if `--fail` is given.
 *
 * @throws Failure with exit code 3 for an unknown name.
 */
export function parseFaults(text: string | undefined, hasRequests: boolean): readonly string[] {
  if (text === undefined) return hasRequests ? [] : usualFaults;
  const names = text.split(',').map((name) => name.trim());
  const [only] = names;
  if (names.length === 1 && only === 'none') return [];
  if (names.length === 1 && only === 'all') return faultNames;
  const unknown = names.find((name) => !faultNames.includes(name));
  if (unknown === undefined) return faultNames.filter((name) => names.includes(name));
  throw usageFailure(`--faults ${text}: ${unknown} is unknown`, `known are ${listed(faultNames)}; or write all, or none`);
}

/** Returns the union of the named faults. */
export function faultsNamed(names: readonly string[]): NamedFaults {
  const parts = names.flatMap((name) => named[name] ?? []);
  return {
    classes: [...new Set(parts.flatMap(({ classes }) => classes))],
    events: [...new Set(parts.flatMap(({ events }) => events))],
  };
}
