// Lists the requests that the policies of a group can judge: by people and autoscalers, and by the agent outside a rollout.
import type { PolicyQuestion } from '../engine/policy-test/policy-test.ts';
import type { GroupDefinition, ZoneDefinition } from '../policies/definition.ts';
import type { GivenState } from '../policies/schema/policy-test.ts';
import type { PolicyAction } from '../policies/schema/rollout-policy.ts';
import { listed } from '../policies/wording.ts';
import type { BoundGroup } from './sides.ts';

type Request = PolicyQuestion['request'];
type ZoneState = NonNullable<GivenState['zones']>[string];

/** A request in a state that both sides understand: zones are named by their StatefulSets, and replicas count from their resting number. */
export interface Question {
  /** The permission that is asked for, as a clause: `zone b may shrink`. */
  readonly may: string;
  /** The circumstances, as an adverbial clause; empty in the plain state. */
  readonly when: string;
  readonly action: PolicyAction;
  /** The member that the request is about; absent if the request is about the group. */
  readonly statefulSet?: string;
  readonly asksAgent: boolean;
  readonly nowMs: number;
  /** True for a case of a policy test. Such a decision comes after the others. */
  readonly isCase?: true;
  /** Reports whether the agent does what the question asks for. Absent for a request of a client. */
  readonly isDone?: (answer: { readonly pods: readonly string[]; readonly replicas: Readonly<Record<string, number>> }) => boolean;
  /** Returns state and request for the group of one side; undefined if the side cannot have them. */
  readonly build: (side: BoundGroup) => Case | undefined;
}

export interface Case {
  readonly given: GivenState;
  readonly request: Request;
}

/** A member, or several members whose zones have the same settings on both sides. The first one is asked about. */
export interface Member {
  readonly statefulSet: string;
  /** The name of the zone in texts. */
  readonly zone: string;
  /** The members with the same settings, itself included. */
  readonly alike: readonly Pick<Member, 'statefulSet' | 'zone'>[];
}

/** The parts of both sides that determine the questions. */
export interface Scene {
  readonly members: readonly Member[];
  /** The resting replicas of a zone whose number no group sets. */
  readonly replicas: number;
  /** Other replicas that a policy of either side names. */
  readonly targets: readonly number[];
  readonly instantOf: (action: PolicyAction) => number;
  /** Returns readings at which every gate passes and no policy rule blocks. */
  readonly readings: (side: BoundGroup) => Pick<GivenState, 'metrics' | 'gates'>;
}

/** The state of a member. `above` counts replicas above the resting number, `notReady` pods that are not ready. */
export interface MemberState extends Omit<ZoneState, 'replicas' | 'ready'> {
  readonly above?: number;
  readonly notReady?: number;
}

/** A time that is longer than any delay of a policy. */
export const longAgo = '300d';

/** Returns the replicas that a zone keeps without any change: its own number, the number of its leader, or that of the scene. */
export function restingReplicas({ zones }: GroupDefinition, zone: ZoneDefinition, replicas: number): number {
  let leader = zone;
  for (let hops = 0; hops < zones.length; hops += 1) {
    if (leader.forceReplicas !== undefined) return leader.forceReplicas;
    if (leader.replicas.kind === 'count') return leader.replicas.count;
    const next = zones.find(({ name }) => name === leader.follows);
    if (next === undefined) return replicas;
    leader = next;
  }
  return replicas;
}

/** Returns the subject of a request about a member and those alike: `zones b and c`, `pods x-0 and y-0`. */
function subject(noun: string, { alike }: Member, nameOf: (member: Pick<Member, 'statefulSet' | 'zone'>) => string): string {
  return `${noun}${alike.length === 1 ? '' : 's'} ${listed(alike.map(nameOf), 'and')}`;
}

export function givenState(
  side: BoundGroup,
  scene: Scene,
  members: Readonly<Record<string, MemberState>> = {},
  rest: Partial<GivenState> = {},
): GivenState {
  const { group } = side;
  const zones = group.zones.map((zone): [string, ZoneState] => {
    const { above = 0, notReady = 0, ...state } = members[zone.statefulSet] ?? {};
    const replicas = restingReplicas(group, zone, scene.replicas) + above;
    return [zone.name, { ...state, replicas, ...(notReady === 0 ? {} : { ready: Math.max(0, replicas - notReady) }) }];
  });
  const isMirrored = group.zones.some(({ replicas }) => replicas.kind === 'mirror');
  return { zones: Object.fromEntries(zones), ...(isMirrored ? { source: scene.replicas } : {}), ...scene.readings(side), ...rest };
}

function zoneOf({ group }: BoundGroup, { statefulSet }: Member): ZoneDefinition | undefined {
  return group.zones.find((zone) => zone.statefulSet === statefulSet);
}

interface Circumstance {
  readonly when: string;
  readonly members: Readonly<Record<string, MemberState>>;
  readonly rest?: Partial<GivenState>;
}

const plain: Circumstance = { when: '', members: {} };

/** Returns the circumstances of a request about a member that its zone rules and budgets read. */
function troubles(scene: Scene, own: Member): readonly Circumstance[] {
  const other = scene.members.find(({ statefulSet }) => statefulSet !== own.statefulSet);
  return [
    { when: 'while a pod of its zone is not ready', members: { [own.statefulSet]: { notReady: 1 } } },
    ...(other === undefined
      ? []
      : [{ when: `while a pod of zone ${other.zone} is not ready`, members: { [other.statefulSet]: { notReady: 1 } } }]),
  ];
}

function shrunk(scene: Scene, own: Member): readonly Circumstance[] {
  const other = scene.members.find(({ statefulSet }) => statefulSet !== own.statefulSet);
  if (other === undefined) return [];
  return [{ when: `after zone ${other.zone} shrank`, members: { [other.statefulSet]: { lastDownscale: '0s' } } }];
}

/** Returns the questions about one member in the plain state, and in the circumstances that the rules read. */
export function memberQuestions(scene: Scene, member: Member): readonly Question[] {
  return [...clientQuestions(scene, member), ...scaleQuestions(scene, member), ...shrinkQuestions(scene, member)];
}

function clientQuestions(scene: Scene, member: Member): readonly Question[] {
  const { statefulSet } = member;
  const client = (may: string, action: 'delete' | 'evict' | 'restart', ordinal: boolean, circumstance: Circumstance): Question => ({
    may,
    action,
    statefulSet,
    when: circumstance.when,
    asksAgent: false,
    nowMs: scene.instantOf(action),
    build: (side) => {
      const zone = zoneOf(side, member);
      if (zone === undefined || (ordinal && restingReplicas(side.group, zone, scene.replicas) === 0)) return undefined;
      const given = givenState(side, scene, circumstance.members);
      return { given, request: { action, zone: zone.name, ...(ordinal ? { ordinal: 0 } : {}), ...someone } };
    },
  });
  const sets = subject('StatefulSet', member, (one) => one.statefulSet);
  const pods = subject('pod', member, (one) => `${one.statefulSet}-0`);
  return [
    client(`${sets} may be deleted`, 'delete', false, plain),
    ...[plain, ...troubles(scene, member)].map((one) => client(`${pods} may be evicted`, 'evict', true, one)),
    client(`${pods} may be deleted`, 'delete', true, plain),
    client(`${sets} may be restarted`, 'restart', false, plain),
  ];
}

/** A requester who is in no group. */
const someone = { user: 'someone', groups: [] };

function scaleQuestions(scene: Scene, member: Member): readonly Question[] {
  const { statefulSet } = member;
  const zones = subject('zone', member, (one) => one.zone);
  const scaled = (
    what: string,
    action: 'scaleUp' | 'scaleDown',
    target: (rest: number) => number,
    circumstance: Circumstance,
  ): Question => ({
    may: `${zones} may be scaled ${what}`,
    action,
    statefulSet,
    when: circumstance.when,
    asksAgent: false,
    nowMs: scene.instantOf(action),
    build: (side) => {
      const zone = zoneOf(side, member);
      if (zone === undefined) return undefined;
      const rest = restingReplicas(side.group, zone, scene.replicas);
      const to = target(rest);
      if (to < 0 || (action === 'scaleUp' ? to <= rest : to >= rest)) return undefined;
      return {
        given: givenState(side, scene, circumstance.members),
        request: { action, zone: zone.name, to, via: ['update'], ...someone },
      };
    },
  });
  const down = [plain, ...troubles(scene, member), ...shrunk(scene, member)];
  return [
    ...down.map((one) => scaled('down by one pod', 'scaleDown', (rest) => rest - 1, one)),
    scaled('to 0', 'scaleDown', () => 0, plain),
    scaled('up by one pod', 'scaleUp', (rest) => rest + 1, plain),
    ...scene.targets.flatMap((target) =>
      (['scaleDown', 'scaleUp'] as const).map((action) => scaled(`to ${target}`, action, () => target, plain)),
    ),
  ];
}

/** Returns the zones that copy their replicas from this zone, also through other zones. */
function followersOf({ zones }: GroupDefinition, { name }: ZoneDefinition): readonly ZoneDefinition[] {
  const found = new Set([name]);
  for (const _ of zones) for (const zone of zones) if (found.has(zone.follows ?? '')) found.add(zone.name);
  return zones.filter((zone) => zone.name !== name && found.has(zone.name));
}

/** Returns the questions about a scale-down by the agent. Without a number that the group sets or copies, the agent scales nothing. */
function shrinkQuestions(scene: Scene, member: Member): readonly Question[] {
  const { statefulSet } = member;
  const zones = subject('zone', member, (one) => one.zone);
  const shrink = ({ when, members, rest }: Circumstance): Question => ({
    may: `${zones} may shrink`,
    when,
    action: 'scaleDown',
    statefulSet,
    asksAgent: true,
    nowMs: scene.instantOf('scaleDown'),
    isDone: ({ replicas }) => Object.keys(replicas).length > 0,
    build: (side) => {
      const zone = zoneOf(side, member);
      if (zone === undefined || (zone.replicas.kind === 'leader' && zone.follows === undefined)) return undefined;
      const own: MemberState = { above: 1, preparedFor: longAgo, ...members[statefulSet] };
      const above = followersOf(side.group, zone).map(({ statefulSet: follower }) => [follower, { above: 1, ...members[follower] }]);
      const states = { ...members, ...Object.fromEntries(above), [statefulSet]: own };
      return { given: givenState(side, scene, states, rest), request: { action: 'none' } };
    },
  });
  const others = scene.members.filter((one) => one.statefulSet !== statefulSet);
  const [other] = others;
  return [
    shrink(plain),
    shrink({ when: 'after its pods prepared', members: { [statefulSet]: { preparedFor: '0s' } } }),
    ...troubles(scene, member).slice(1).map(shrink),
    ...shrunk(scene, member).map(shrink),
    shrink({ when: 'while the group is paused', members: {}, rest: { paused: true } }),
    ...(other === undefined
      ? []
      : [shrink({ when: 'during a rollout', members: { [other.statefulSet]: { updated: 1, readyFor: longAgo } } })]),
  ];
}
