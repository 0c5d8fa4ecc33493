// Chooses the order in which `apply` writes the parts of a change. The agent must not act on a mixture of the old and the new state.
import type { GroupDefinition } from '../../policies/definition.ts';
import { decideGroup } from '../decide/decide.ts';
import { type Action, replacedBy } from '../decision.ts';
import { withObservedLedgers } from '../ledger/ledger.ts';
import { agentRuns } from '../rules/agent-access.ts';
import { isUnknown, podsNamed, type Snapshot, setNamed } from '../snapshot.ts';
import { createWorld } from '../world/world.ts';
import { withAssumedMetrics, withReadings } from './forward.ts';
import type { PlanInput } from './plan.ts';
import { desiredGroup, type PlanSnapshots, readPlanSnapshots, requestedWorld, snapshotAsked } from './world.ts';

/** The parts of a change: policies, exceptions and budgets; groups; members, replica sources and all other objects. */
export type WritePart = 'policies' | 'groups' | 'members';

/** Actions that the agent would take between two writes, and would take neither before nor after the whole change. */
interface EarlyActions {
  /** The group as `namespace/name`. */
  readonly group: string;
  readonly after: readonly WritePart[];
  /** The object of each action, such as `pod ingester-zone-a-0`. */
  readonly actions: readonly string[];
}

export interface WriteOrder {
  readonly parts: readonly WritePart[];
  /** False if every order causes early actions. */
  readonly isSafe: boolean;
  readonly early: readonly EarlyActions[];
}

/** The orders by preference. The first is the usual one. */
const orders: readonly (readonly WritePart[])[] = [
  ['policies', 'groups', 'members'],
  ['groups', 'policies', 'members'],
  ['members', 'policies', 'groups'],
  ['members', 'groups', 'policies'],
  ['policies', 'members', 'groups'],
  ['groups', 'members', 'policies'],
];

export const usualOrder: WriteOrder = { parts: orders[0] ?? [], isSafe: true, early: [] };

/** Returns the first order of the writes without early actions. `input` must be a plan on a cluster. */
export function writeOrder(input: PlanInput): WriteOrder {
  const snapshots = readPlanSnapshots(input);
  const groups = input.groups.map((group) => earlyActions({ input, snapshots, group }));
  const earlyIn = (order: readonly WritePart[]) => [1, 2].flatMap((count) => groups.flatMap((after) => after(order.slice(0, count))));
  const early = earlyIn(usualOrder.parts);
  const parts = early.length === 0 ? usualOrder.parts : orders.find((order) => earlyIn(order).length === 0);
  return { parts: parts ?? usualOrder.parts, isSafe: parts !== undefined, early };
}

/**
 * Returns the StatefulSets, by `objectKey`, of which the StatefulSet controller deletes pods as soon as they are written. These writes
 * come first: then the agent sees the missing pods before it replaces pods of another zone, as in the plan.
 */
export function disruptiveMembers(input: PlanInput): ReadonlySet<string> {
  const snapshots = readPlanSnapshots(input);
  const names = input.groups.flatMap((group) => {
    const before = snapshotAsked(input, snapshots, group);
    const { snapshot: after } = requestedWorld(input, snapshots, group).world;
    const present = ({ namespace }: GroupDefinition, name: string, snapshot: Snapshot): readonly string[] => {
      const pods = podsNamed(snapshot, namespace, name) ?? [];
      return isUnknown(pods) ? [] : pods.flatMap(({ uid, isTerminating }) => (isTerminating ? [] : [uid]));
    };
    return group.zones.flatMap(({ statefulSet }) => {
      const kept = new Set(present(group, statefulSet, after));
      const isDisrupted = present(group, statefulSet, before).some((uid) => !kept.has(uid));
      return isDisrupted ? [`${group.namespace}/${statefulSet}`] : [];
    });
  });
  return new Set(names);
}

interface Question {
  readonly input: PlanInput;
  readonly snapshots: PlanSnapshots;
  readonly group: GroupDefinition;
}

/** Returns a function that finds the early actions of the group after some parts are written. */
function earlyActions(question: Question): (after: readonly WritePart[]) => readonly EarlyActions[] {
  const group = `${question.group.namespace}/${question.group.name}`;
  // A gate or metric that the agent can read is unknown here, so the states are compared without these values and with values that pass.
  const states = [false, true].map((isAssumed) => {
    const actionsOf = (written: readonly WritePart[]) => actionsAfter(question, written, isAssumed);
    return { actionsOf, expected: new Map([...actionsOf([]), ...actionsOf(usualOrder.parts)]) };
  });
  return (after) => {
    const early = states.flatMap(({ actionsOf, expected }) => actionsOf(after).filter(([key]) => !expected.has(key)));
    return early.length === 0 ? [] : [{ group, after, actions: [...new Set(early.map(([, text]) => text))] }];
  };
}

type KeyedAction = readonly [key: string, text: string];

/** Returns the actions that the agent makes at once in this state, by a key that also names the update revision. */
function actionsAfter(question: Question, written: readonly WritePart[], isAssumed: boolean): readonly KeyedAction[] {
  const { input, snapshots, group } = question;
  const [hasPolicies, hasGroups, hasMembers] = [written.includes('policies'), written.includes('groups'), written.includes('members')];
  const isSame = ({ namespace, name }: GroupDefinition): boolean => namespace === group.namespace && name === group.name;
  const definition = hasGroups ? group : input.groupsBefore?.find(isSame);
  if (definition === undefined) return [];
  const { before, after } = snapshots;
  const { zoneBudgets, podBudgets } = hasPolicies ? after : before;
  const state = { ...snapshots, after: { ...after, zoneBudgets, podBudgets }, ...(hasMembers ? {} : { changedSources: [] }) };
  const of: PlanInput = { ...input, ...(hasPolicies ? {} : input.before), ...(hasGroups ? {} : { desiredGroups: [definition] }) };
  const decided = desiredGroup(of, definition);
  const { world, refused } = hasMembers
    ? requestedWorld(of, state, definition, { hasMetrics: isAssumed })
    : { world: createWorld(snapshotAsked(of, state, decided), input.assumptions, 'p50'), refused: [] };
  if (agentRuns(world.snapshot, decided) !== undefined) return [];
  const assumed = isAssumed ? withAssumedMetrics(world, decided) : world;
  const { snapshot } = isAssumed ? withReadings(assumed, decided, decideGroup(assumed.snapshot, decided)) : world;
  const denied = isAssumed ? refused.map(({ what }) => [what, `the denied write: ${what}`] as const) : [];
  return [...denied, ...decideGroup(withObservedLedgers(snapshot), decided).actions.flatMap((one) => keyed(one, snapshot))];
}

function keyed(action: Action, snapshot: Snapshot): readonly KeyedAction[] {
  if (action.kind === 'writeBackReplicas') return [[JSON.stringify(action), `${action.resourceKind} ${action.name}`]];
  const revision = setNamed(snapshot, action.namespace, action.statefulSet)?.status.updateRevision ?? '';
  const replaced = replacedBy(action);
  const target = ('pinTo' in action ? action.pinTo : undefined) ?? revision;
  if (replaced.length > 0) return replaced.map(({ pod }) => [`${pod} ${target}`, `pod ${pod}`]);
  return [[`${JSON.stringify(action)} ${revision}`, `StatefulSet ${action.statefulSet}`]];
}
