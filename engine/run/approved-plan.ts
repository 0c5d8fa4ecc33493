// Compares a rollout with the plan that a review approved. The plan travels with the change, as an annotation of each StatefulSet.
//
// The steps of a rollout follow from its inputs: the pod templates, the replicas, the group, its policies and exceptions. The annotation has
// digests of these inputs, so a rollout with equal inputs takes the reviewed steps, and for any other rollout they show what differs.

import * as z from 'zod';
import type { ExceptionDefinition, GroupDefinition, PolicyDefinition } from '../../policies/definition.ts';
import { plainDigest } from '../../policies/digest.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { extended } from '../../policies/values/defined.ts';
import { hashText } from '../../policies/values/hash.ts';
import { keptByObject } from '../../policies/values/map.ts';
import { counted } from '../../policies/wording.ts';
import type { GroupContext } from '../context.ts';
import { templateDigest } from '../diff/field-diff.ts';
import { approvedPlanAnnotation } from '../observe/objects.ts';
import { reader } from '../observe/raw.ts';
import { isUnknown, type Known, type Snapshot } from '../snapshot.ts';
import { isRollingBack } from './origin.ts';
import type { RunState } from './run-state.ts';

const digest = z.string().min(1).max(64);

/** Unknown fields are ignored, so that an older agent can read the plan of a newer review. */
const approvedPlan = z.object({
  /** Identifies the plan. The same for every zone. */
  plan: digest,
  template: digest,
  /** Absent if the manifest leaves the replicas to other writers. */
  replicas: z.int().min(0).optional(),
  group: digest,
  /** The policies and exceptions that bind the group, as `kind namespace/name`. */
  rules: z.record(z.string(), digest),
});

type ApprovedPlan = z.infer<typeof approvedPlan>;

/** Returns the annotation of each StatefulSet of the group, by `namespace/name`, for the manifests that a review approves. */
export function approvedPlans(context: GroupContext, manifests: readonly unknown[]): ReadonlyMap<string, string> {
  const { namespace, zones } = context.group;
  const members = zones.flatMap(({ statefulSet }): readonly Member[] => {
    const manifest = manifests.find((object) => isStatefulSet(object, namespace, statefulSet));
    if (manifest === undefined) return [];
    const replicas = reader(manifest).int32('spec.replicas');
    return [extended({ name: statefulSet, template: templateDigest(manifest) }, replicas === undefined ? {} : { replicas })];
  });
  return annotationsOf(context, members);
}

/** Returns the snapshot in which the StatefulSets of the group name a plan that approves their templates and replicas. */
export function withApprovedPlan(context: GroupContext): Snapshot {
  const { snapshot, view } = context;
  const members = view.zones.flatMap(({ set }) => (set === undefined ? [] : [{ set, template: hashText(set.status.updateRevision) }]));
  const annotations = annotationsOf(
    context,
    members.map(({ set: { name, replicas }, template }) => ({ name, template, replicas })),
  );
  const statefulSets = snapshot.statefulSets.map((set) => {
    const member = members.find((one) => one.set === set);
    const text = annotations.get(`${set.namespace}/${set.name}`);
    if (member === undefined || text === undefined) return set;
    return extended(set, { template: member.template, annotations: { ...set.annotations, [approvedPlanAnnotation]: text } });
  });
  return { ...snapshot, statefulSets };
}

interface Member extends Pick<ApprovedPlan, 'template' | 'replicas'> {
  readonly name: string;
}

function annotationsOf(context: GroupContext, members: readonly Member[]): ReadonlyMap<string, string> {
  const { namespace } = context.group;
  const { group, rules } = inputsOf(context);
  const plan = hashText(canonicalJson([group, rules, members]));
  return new Map(
    members.map(({ name, ...own }) => [`${namespace}/${name}`, canonicalJson({ plan, ...own, group, rules } satisfies ApprovedPlan)]),
  );
}

function isStatefulSet(object: unknown, namespace: string, name: string): boolean {
  const { text } = reader(object);
  return text('kind') === 'StatefulSet' && text('metadata.name') === name && (text('metadata.namespace') ?? namespace) === namespace;
}

/** A difference between a rollout and its approved plan. */
export interface Deviation {
  readonly fact: string;
  /** The digest of what differs, as it is now. An approval covers only this state. */
  readonly now?: string | undefined;
  /** The text that an approval covers instead of the fact, if the fact can change although the rollout has the same inputs. */
  readonly covered?: string;
}

interface PlanComparison {
  /** The approved plan; absent if the zones name none, or different ones. */
  readonly plan?: string;
  readonly deviations: readonly Deviation[];
}

/**
 * Compares a rollout with the plan that its StatefulSets name. Undefined if none names a plan.
 * The result is kept for each context, because several rules of one decision need it.
 */
export const comparedPlan: (context: GroupContext) => PlanComparison | undefined = keptByObject(compare);

function compare(context: GroupContext): PlanComparison | undefined {
  const zones = context.view.zones.flatMap(({ zone, set }) =>
    set === undefined ? [] : [{ zone: zone.name, set, named: readPlan(set.annotations[approvedPlanAnnotation]) }],
  );
  if (zones.every(({ named }) => named === undefined)) return undefined;
  const plans = zones.flatMap(({ named }) => (named === undefined || isUnknown(named) ? [] : [named]));
  const ids = [...new Set(plans.map(({ plan }) => plan))];
  const [first] = plans;
  const own = zones.flatMap(({ zone, set, named }): readonly Deviation[] => {
    if (named === undefined) return [{ fact: `zone ${zone} names no approved plan` }];
    if (isUnknown(named)) return [{ fact: `the approved plan of zone ${zone} cannot be read: ${named.unknown}` }];
    const { template, replicas = set.replicas } = named;
    return [
      ...(template === set.template ? [] : [{ fact: `the pod template of zone ${zone} is not the approved one`, now: set.template }]),
      ...(replicas === set.replicas ? [] : [{ fact: `zone ${zone} has ${counted(set.replicas, 'replica')} instead of ${replicas}` }]),
    ];
  });
  const mixed = ids.length > 1 ? [{ fact: `the zones name different plans (${ids.join(', ')})` }] : [];
  const deviations = [...mixed, ...own, ...(first === undefined ? [] : changedInputs(context, first))];
  return { ...(ids.length === 1 && ids[0] !== undefined ? { plan: ids[0] } : {}), deviations };
}

/**
 * Reports whether the run only returns pods to the revisions of the last completed run, or rolls back a failed run. Any other return is a change
 * like a rollout, also if the templates changed several times since.
 */
export function needsNoPlan({ view }: GroupContext, run: RunState | undefined): boolean {
  if (run?.kind !== 'rollback') return false;
  const { target, completed = target, returning } = run;
  const isBack = (zone: string): boolean => completed[zone] === undefined || completed[zone] === target[zone];
  const replaced = view.zones.filter(({ zone, outdated }) => outdated.length > 0 && returning?.includes(zone.name) !== false);
  return isRollingBack(run) || replaced.every(({ zone }) => isBack(zone.name));
}

/** Returns the differences of a rollout that a policy allows only with an approved plan. */
export function planDeviations(context: GroupContext, run: RunState | undefined): readonly Deviation[] {
  if (needsNoPlan(context, run)) return [];
  return comparedPlan(context)?.deviations ?? [{ fact: 'no StatefulSet names an approved plan' }];
}

function readPlan(text: string | undefined): Known<ApprovedPlan> | undefined {
  if (text === undefined) return undefined;
  try {
    const read = approvedPlan.safeParse(JSON.parse(text));
    return read.success ? read.data : { unknown: 'it does not have the fields of a plan' };
  } catch {
    return { unknown: 'it is not JSON' };
  }
}

function changedInputs(context: GroupContext, reviewed: ApprovedPlan): readonly Deviation[] {
  const now = inputsOf(context);
  const { namespace, name } = context.group;
  const expired = new Set(context.exceptions.filter(({ expiresMs }) => expiresMs <= context.nowMs).map(textOf));
  const objects = [...new Set([...Object.keys(reviewed.rules), ...Object.keys(now.rules)])].sort();
  return [
    ...(reviewed.group === now.group ? [] : [{ fact: `RolloutGroup ${namespace}/${name} changed after the review`, now: now.group }]),
    ...objects.flatMap((object): readonly Deviation[] => {
      const [before, after] = [reviewed.rules[object], now.rules[object]];
      if (before === after) return [];
      const what = before === undefined ? 'was added' : after === undefined ? 'was removed' : 'changed';
      const fact = `${object} ${what} after the review`;
      // An expired exception can be removed later, which changes nothing that an approval covers.
      return [expired.has(object) ? { fact: `${object} expired after the review`, covered: fact } : { fact, now: after }];
    }),
  ];
}

/**
 * Returns the digests of the group and of what binds it. Places in files, requesters of exceptions and expired exceptions have no influence.
 * Counts of replicas in the group have no influence either, because the replicas of each zone are compared.
 */
function inputsOf({ group, policies, exceptions, nowMs }: GroupContext): Pick<ApprovedPlan, 'group' | 'rules'> {
  const inForce = exceptions.filter(({ expiresMs }) => expiresMs > nowMs);
  return {
    group: groupDigest(group),
    rules: Object.fromEntries([
      ...policies.map((policy) => [`RolloutPolicy ${policy.namespace}/${policy.name}`, policyDigest(policy)]),
      ...inForce.map((one) => [textOf(one), exceptionDigest(one)]),
    ]),
  };
}

function textOf({ namespace, name }: ExceptionDefinition): string {
  return `RolloutException ${namespace}/${name}`;
}

// Every turn compares the same definitions.
const groupDigest = keptByObject((group: GroupDefinition) => shortDigest(settingsOf(group)));
const policyDigest = keptByObject((policy: PolicyDefinition) => shortDigest(policy));
const exceptionDigest = keptByObject((exception: ExceptionDefinition) => shortDigest(withoutRequester(exception)));

function shortDigest(definition: object): string {
  return plainDigest(definition).slice(0, 10);
}

function settingsOf({ zones, labels: _labels, notify: _notify, generation: _generation, ...rest }: GroupDefinition): object {
  return { ...rest, zones: zones.map(({ replicas, ...zone }) => (replicas.kind === 'count' ? zone : { ...zone, replicas })) };
}

/** The webhook adds the requester to an exception from Git. */
function withoutRequester({ requestedBy: _requestedBy, ...exception }: ExceptionDefinition): object {
  return exception;
}
