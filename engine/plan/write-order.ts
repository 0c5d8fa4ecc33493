// Chooses whether apply writes the policies or the members of groups first, so that the agent acts only as before or after the whole change.
import type { GroupDefinition } from '../../policies/definition.ts';
import { decideGroup } from '../decide/decide.ts';
import { type Action, replacedBy } from '../decision.ts';
import { withObservedLedgers } from '../ledger/ledger.ts';
import { agentRuns } from '../rules/agent-access.ts';
import { setNamed } from '../snapshot.ts';
import type { World } from '../world/model.ts';
import { createWorld } from '../world/world.ts';
import { withAssumedMetrics, withReadings } from './forward.ts';
import type { PlanInput } from './plan.ts';
import { desiredGroup, type PlanSnapshots, readPlanSnapshots, requestedWorld, snapshotAsked } from './world.ts';

/** The parts of a change: policies, exceptions and budgets; groups; members, replica sources and all other objects. */
export type WritePart = 'policies' | 'groups' | 'members';

/** Actions of the agent that neither the state before the change nor the state after it has. */
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
  /** The early actions of the usual order. */
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
  const earlyIn = (order: readonly WritePart[]) =>
    [order.slice(0, 1), order.slice(0, 2)].flatMap((after) =>
      input.groups.flatMap((group) => earlyActions({ input, snapshots, group }, after)),
    );
  const early = earlyIn(usualOrder.parts);
  const parts = early.length === 0 ? usualOrder.parts : orders.find((order) => earlyIn(order).length === 0);
  return { parts: parts ?? usualOrder.parts, isSafe: parts !== undefined, early };
}

interface Question {
  readonly input: PlanInput;
  readonly snapshots: PlanSnapshots;
  readonly group: GroupDefinition;
}

function earlyActions(question: Question, after: readonly WritePart[]): readonly EarlyActions[] {
  const { namespace, name } = question.group;
  // A gate or a metric that the agent can read is unknown here, so the states are compared without these values and with passing ones.
  const actions = [false, true].flatMap((isAssumed) => {
    const actionsOf = (written: readonly WritePart[]) => actionsAfter(question, written, isAssumed);
    const expected = new Map([...actionsOf([]), ...actionsOf(usualOrder.parts)]);
    return [...actionsOf(after)].flatMap(([key, text]) => (expected.has(key) ? [] : [text]));
  });
  return actions.length === 0 ? [] : [{ group: `${namespace}/${name}`, after, actions: [...new Set(actions)] }];
}

/** Returns the actions that the agent makes at once in this state, by a key that also names the update revision. */
function actionsAfter(question: Question, written: readonly WritePart[], isAssumed: boolean): ReadonlyMap<string, string> {
  const { input, snapshots, group } = question;
  const [hasPolicies, hasMembers] = [written.includes('policies'), written.includes('members')];
  const isSame = ({ namespace, name }: GroupDefinition): boolean => namespace === group.namespace && name === group.name;
  const hasGroups = written.includes('groups');
  const definition = hasGroups ? group : input.groupsBefore?.find(isSame);
  if (definition === undefined) return new Map();
  const { before, after } = snapshots;
  const { zoneBudgets, podBudgets } = hasPolicies ? after : before;
  const state = { ...snapshots, after: { ...after, zoneBudgets, podBudgets }, ...(hasMembers ? {} : { changedSources: [] }) };
  const of: PlanInput = { ...input, ...(hasPolicies ? {} : input.before), ...(hasGroups ? {} : { desiredGroups: [] }) };
  const decided = desiredGroup(of, definition);
  const { world, refused } = hasMembers
    ? requestedWorld(of, state, definition, { hasMetrics: isAssumed })
    : { world: createWorld(snapshotAsked(of, state, decided), input.assumptions, 'p50'), refused: [] };
  if (agentRuns(world.snapshot, decided) !== undefined) return new Map();
  const { snapshot } = isAssumed ? withReadings(withAssumedMetrics(world, decided), decided) : world;
  const denied = isAssumed ? refused.map(({ what }) => [what, `the denied write: ${what}`] as const) : [];
  return new Map([...denied, ...decideGroup(withObservedLedgers(snapshot), decided).actions.flatMap((one) => keyed(one, snapshot))]);
}

function keyed(action: Action, snapshot: World['snapshot']): readonly (readonly [string, string])[] {
  if (action.kind === 'writeBackReplicas') return [[JSON.stringify(action), `${action.resourceKind} ${action.name}`]];
  const revision = setNamed(snapshot, action.namespace, action.statefulSet)?.status.updateRevision ?? '';
  const replaced = replacedBy(action);
  const target = ('pinTo' in action ? action.pinTo : undefined) ?? revision;
  if (replaced.length > 0) return replaced.map(({ pod }) => [`${pod} ${target}`, `pod ${pod}`]);
  return [[`${JSON.stringify(action)} ${revision}`, `StatefulSet ${action.statefulSet}`]];
}
