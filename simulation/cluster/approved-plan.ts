// Models the pipeline that writes the approved plan of a rollout next to its templates.
import { contextOf } from '../../engine/context.ts';
import { approvedPlanAnnotation } from '../../engine/observe/objects.ts';
import { approvedPlans } from '../../engine/run/approved-plan.ts';
import { emptySnapshot } from '../../engine/snapshot.ts';
import { resolveLive } from '../../policies/live/sources.ts';
import { groupResource, policyResource, statefulSetResource } from '../objects.ts';
import type { RuleShape } from '../scenario.ts';
import { mergePatch } from '../server/json.ts';
import type { Json, ModelObject } from '../server/request.ts';
import type { World } from './world.ts';

/** The id of every plan, because the pipeline approves all zones together. */
const plan = 'reviewed';

export interface PlannedGroup extends Pick<World, 'server' | 'wallMs'> {
  readonly namespace: string;
  readonly group: string;
  /** The template whose plan people write with each template. Absent: they write no plan. */
  readonly approves?: RuleShape['approves'];
}

/** Returns the change with the plan that `approves` names; the change itself without a plan, or while no object defines the group. */
export function withPlan(planned: PlannedGroup, set: ModelObject, change: Json): Json {
  const { approves } = planned;
  if (approves === undefined) return change;
  return { ...planOf(planned, approves === 'old' ? set : (mergePatch(set, change) as Json)), ...change };
}

function planOf({ server, wallMs, namespace, group }: PlannedGroup, set: Json): Json {
  const objects = [server.get(groupResource, namespace, group), ...server.list(policyResource, namespace)];
  const statefulSets = server.list(statefulSetResource, namespace);
  const { groups, policies } = resolveLive({ objects, statefulSets, order: ['objects'], agentNamespace: namespace });
  const definition = groups.find(({ name }) => name === group);
  if (definition === undefined) return {};
  const snapshot = { ...emptySnapshot(wallMs()), groups, policies, agentNamespace: namespace };
  const [text] = approvedPlans(contextOf(snapshot, definition), [set]).values();
  if (text === undefined) return {};
  // The replicas belong to an autoscaler.
  const { replicas: _, ...approved } = JSON.parse(text);
  return { metadata: { annotations: { [approvedPlanAnnotation]: JSON.stringify({ ...approved, plan }) } } };
}
