// Lists the requests that the policies of a group can judge: by people and autoscalers, and by the agent outside a rollout.
import type { PolicyQuestion } from '../engine/policy-test/policy-test.ts';
import type { GroupDefinition, ZoneDefinition } from '../policies/definition.ts';
import type { GivenState } from '../policies/schema/policy-test.ts';
import type { PolicyAction } from '../policies/schema/rollout-policy.ts';
import { defined } from '../policies/values/defined.ts';
import { listed } from '../policies/wording.ts';
import type { BoundGroup } from './sides.ts';

type Request = PolicyQuestion['request'];
type ZoneState = NonNullable<GivenState['zones']>[string];

/** A request in a state that both sides understand: zones are named by their StatefulSets, and replicas count from their resting number. */
export interface Question {
  /** The permission that is asked for, as a clause: `zone b may shrink`. */
  readonly may: string;
  /** The circumstances, as an adverbial clause; empty in a question without circumstances. */
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
  /** True if the agent must wait for another zone, which the state pauses. So an agent with nothing to do waits, too. */
  readonly isAboutOrder?: true;
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
  /** The members that the first one follows on either side. */
  readonly leaders: readonly Pick<Member, 'statefulSet' | 'zone'>[];
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

interface Circumstance {
  readonly when: string;
  readonly members: Readonly<Record<string, MemberState>>;
  readonly rest?: Partial<GivenState>;
}

/** One kind of question about a member, and the circumstances in which it is asked. */
interface Row extends Pick<Question, 'may' | 'action' | 'isDone' | 'isAboutOrder'> {
  readonly circumstances: readonly Circumstance[];
  /** Returns the request about the zone with its resting replicas; undefined if the zone cannot have it. */
  readonly request: (zone: ZoneDefinition, rest: number) => Request | undefined;
  /** Returns the states that the request needs, besides those of the circumstance. */
  readonly members?: (group: GroupDefinition, zone: ZoneDefinition) => Readonly<Record<string, MemberState>>;
}

/** Returns the questions about one member: without circumstances, and in the circumstances that the rules read. */
export function memberQuestions(scene: Scene, member: Member): readonly Question[] {
  const shrink = shrinkRow(scene, member);
  const rows = [...clientRows(scene, member), ...scaleRows(scene, member), shrink, growRow(member), beforeLeaderRow(shrink, member)];
  return rows.flatMap((row) => row.circumstances.map((one) => questionOf(scene, member, row, one)));
}

const noStates = (): Readonly<Record<string, MemberState>> => ({});

function questionOf(scene: Scene, { statefulSet }: Member, row: Row, { when, members, rest }: Circumstance): Question {
  const { may, action, isDone, isAboutOrder, request, members: needed = noStates } = row;
  return {
    may,
    when,
    action,
    statefulSet,
    asksAgent: isDone !== undefined,
    nowMs: scene.instantOf(action),
    ...defined({ isDone, isAboutOrder }),
    build: (side) => {
      const zone = side.group.zones.find((one) => one.statefulSet === statefulSet);
      const asked = zone && request(zone, restingReplicas(side.group, zone, scene.replicas));
      if (zone === undefined || asked === undefined) return undefined;
      const states = Object.entries(needed(side.group, zone)).map(([name, state]) => [name, { ...state, ...members[name] }] as const);
      return { given: givenState(side, scene, { ...members, ...Object.fromEntries(states) }, rest), request: asked };
    },
  };
}

/**
 * Returns the zones of a member and those alike: `zone a`, `zones b and c`. Texts name no StatefulSet, so that groups with equal zones have equal
 * texts.
 */
function zonesOf({ alike }: Member): string {
  // After a change of its StatefulSet, a zone has two members.
  const names = [...new Set(alike.map(({ zone }) => zone))];
  return `zone${names.length === 1 ? '' : 's'} ${listed(names, 'and')}`;
}

/** Returns the word for things of a member and those alike: `zone a ... its pods`, `zones b and c ... their pods`. */
function possessive({ alike }: Member): string {
  return new Set(alike.map(({ zone }) => zone)).size === 1 ? 'its' : 'their';
}

const plain: Circumstance = { when: '', members: {} };

/** Returns the circumstances of a member that its zone rules and budgets read. */
function circumstancesOf(scene: Scene, own: Member): Readonly<Record<'ownPod' | 'otherPod' | 'otherShrank', readonly Circumstance[]>> {
  const other = scene.members.find(({ statefulSet }) => statefulSet !== own.statefulSet);
  const ofOther = (when: (zone: string) => string, state: MemberState): readonly Circumstance[] =>
    other === undefined ? [] : [{ when: when(other.zone), members: { [other.statefulSet]: state } }];
  return {
    ownPod: [{ when: 'while another pod of the same zone is not ready', members: { [own.statefulSet]: { notReady: 1 } } }],
    otherPod: ofOther((zone) => `while a pod of zone ${zone} is not ready`, { notReady: 1 }),
    otherShrank: ofOther((zone) => `after zone ${zone} shrank`, { lastDownscale: '0s' }),
  };
}

/** A requester who is in no group. */
const someone = { user: 'someone', groups: [] };

function clientRows(scene: Scene, member: Member): readonly Row[] {
  const { ownPod, otherPod } = circumstancesOf(scene, member);
  const zones = zonesOf(member);
  const sets = `the StatefulSet${zones.startsWith('zones ') ? 's' : ''} of ${zones}`;
  const pods = `pods of ${zones}`;
  const ofSet = (may: string, action: 'delete' | 'restart'): Row => {
    return { may, action, circumstances: [plain], request: ({ name }) => ({ action, zone: name, ...someone }) };
  };
  const ofPod = (may: string, action: 'delete' | 'evict', circumstances: readonly Circumstance[]): Row => ({
    may,
    action,
    circumstances,
    request: ({ name }, rest) => (rest === 0 ? undefined : { action, zone: name, ordinal: 0, ...someone }),
  });
  return [
    ofSet(`${sets} may be deleted`, 'delete'),
    ofPod(`${pods} may be evicted`, 'evict', [plain, ...ownPod, ...otherPod]),
    ofPod(`${pods} may be deleted`, 'delete', [plain]),
    ofSet(`${sets} may be restarted`, 'restart'),
  ];
}

function scaleRows(scene: Scene, member: Member): readonly Row[] {
  const { ownPod, otherPod, otherShrank } = circumstancesOf(scene, member);
  const zones = zonesOf(member);
  const scaled = (what: string, action: 'scaleUp' | 'scaleDown', target: (rest: number) => number, circumstances = [plain]): Row => ({
    may: `${zones} may be scaled ${what}`,
    action,
    circumstances,
    request: ({ name }, rest) => {
      const to = target(rest);
      if (to < 0 || (action === 'scaleUp' ? to <= rest : to >= rest)) return undefined;
      return { action, zone: name, to, via: ['update'], ...someone };
    },
  });
  return [
    scaled('down by one pod', 'scaleDown', (rest) => rest - 1, [plain, ...ownPod, ...otherPod, ...otherShrank]),
    scaled('to 0', 'scaleDown', () => 0),
    scaled('up by one pod', 'scaleUp', (rest) => rest + 1),
    ...scene.targets.flatMap((target) => (['scaleDown', 'scaleUp'] as const).map((action) => scaled(`to ${target}`, action, () => target))),
  ];
}

/** Returns the zones that copy their replicas from this zone, also through other zones. */
function followersOf({ zones }: GroupDefinition, { name }: ZoneDefinition): readonly ZoneDefinition[] {
  const found = new Set([name]);
  for (const _ of zones) for (const zone of zones) if (found.has(zone.follows ?? '')) found.add(zone.name);
  return zones.filter((zone) => zone.name !== name && found.has(zone.name));
}

/** Reports whether the group sets or copies the number of the zone. Otherwise the agent does not scale the zone. */
function isScaledByAgent({ replicas, follows }: ZoneDefinition): boolean {
  return replicas.kind !== 'leader' || follows !== undefined;
}

/** Returns the question about a scale-up by the agent. */
function growRow(member: Member): Row {
  const { statefulSet, leaders } = member;
  const below = { above: -1 };
  return {
    may: `${zonesOf(member)} may grow`,
    action: 'scaleUp',
    isDone: ({ replicas }) => Object.keys(replicas).length > 0,
    request: (zone, rest) => (isScaledByAgent(zone) && rest > 1 ? { action: 'none' } : undefined),
    members: (group, zone) => ({
      ...Object.fromEntries(followersOf(group, zone).map((follower) => [follower.statefulSet, below])),
      [statefulSet]: below,
    }),
    circumstances: [
      plain,
      ...leaders.map((leader) => ({
        when: `while a pod of zone ${leader.zone} is not ready`,
        members: { [leader.statefulSet]: { notReady: 1 } },
      })),
    ],
  };
}

/** Returns the question about a scale-down of a follower while its leader still has the number of pods from which both shrink. */
function beforeLeaderRow(shrink: Row, { leaders }: Member): Row {
  return {
    ...shrink,
    isAboutOrder: true,
    circumstances: leaders.map(({ statefulSet, zone }) => ({
      when: `before zone ${zone}`,
      members: { [statefulSet]: { above: 1, paused: true } },
    })),
  };
}

/** Returns the question about a scale-down by the agent. */
function shrinkRow(scene: Scene, member: Member): Row {
  const { statefulSet } = member;
  const { otherPod, otherShrank } = circumstancesOf(scene, member);
  const other = scene.members.find((one) => one.statefulSet !== statefulSet);
  return {
    may: `${zonesOf(member)} may shrink`,
    action: 'scaleDown',
    isDone: ({ replicas }) => Object.keys(replicas).length > 0,
    request: (zone) => (isScaledByAgent(zone) ? { action: 'none' } : undefined),
    members: (group, zone) => ({
      ...Object.fromEntries(followersOf(group, zone).map((follower) => [follower.statefulSet, { above: 1 }])),
      [statefulSet]: { above: 1, preparedFor: longAgo },
    }),
    circumstances: [
      plain,
      { when: `after ${possessive(member)} pods prepared`, members: { [statefulSet]: { preparedFor: '0s' } } },
      ...otherPod,
      ...otherShrank,
      { when: 'while the group is paused', members: {}, rest: { paused: true } },
      ...(other === undefined ? [] : [{ when: 'during a rollout', members: { [other.statefulSet]: { updated: 1, readyFor: longAgo } } }]),
    ],
  };
}
