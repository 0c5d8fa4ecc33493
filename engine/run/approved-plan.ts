// Compares a rollout with the plan that a review approved. The plan travels with the change, as an annotation of each StatefulSet.
//
// The steps of a rollout follow from its inputs: the pod templates, the replicas, the group, its policies and exceptions. The annotation has
// digests of these inputs, so a rollout with equal inputs takes the reviewed steps, and any other rollout can say what differs.
import * as z from 'zod';
import { plainDigest } from '../../policies/digest.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { extended } from '../../policies/values/defined.ts';
import { hashText } from '../../policies/values/hash.ts';
import type { GroupContext } from '../context.ts';
import { templateDigest } from '../diff/field-diff.ts';
import { approvedPlanAnnotation } from '../observe/objects.ts';
import { reader } from '../observe/raw.ts';
import { isUnknown, type Known } from '../snapshot.ts';
import { recordedKind } from './origin.ts';
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
  const members = zones.flatMap(({ statefulSet }): (Pick<ApprovedPlan, 'template' | 'replicas'> & { readonly name: string })[] => {
    const manifest = manifests.find((object) => isStatefulSet(object, namespace, statefulSet));
    if (manifest === undefined) return [];
    const replicas = reader(manifest).int32('spec.replicas');
    return [extended({ name: statefulSet, template: templateDigest(manifest) }, replicas === undefined ? {} : { replicas })];
  });
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

interface PlanComparison {
  /** The reviewed plan; absent if the zones name none, or different ones. */
  readonly plan?: string;
  /** One clause for each difference between the rollout and the plan. */
  readonly deviations: readonly string[];
}

/** Compares a rollout with the plan that its StatefulSets name. Undefined if none names a plan, and in a return to an earlier revision. */
export function comparedPlan(context: GroupContext, run: RunState | undefined): PlanComparison | undefined {
  if (run !== undefined && recordedKind(run) === 'rollback') return undefined;
  const zones = context.view.zones.flatMap(({ zone, set }) =>
    set === undefined ? [] : [{ zone: zone.name, set, named: readPlan(set.annotations[approvedPlanAnnotation]) }],
  );
  if (zones.every(({ named }) => named === undefined)) return undefined;
  const plans = zones.flatMap(({ named }) => (named === undefined || isUnknown(named) ? [] : [named]));
  const ids = [...new Set(plans.map(({ plan }) => plan))];
  const [first] = plans;
  const own = zones.flatMap(({ zone, set, named }): readonly string[] => {
    if (named === undefined) return [`zone ${zone} names no reviewed plan`];
    if (isUnknown(named)) return [`the reviewed plan of zone ${zone} cannot be read: ${named.unknown}`];
    return [
      ...(named.template === set.template ? [] : [`the pod template of zone ${zone} is not the reviewed one`]),
      ...(named.replicas === undefined || named.replicas === set.replicas
        ? []
        : [`zone ${zone} has ${set.replicas} replicas instead of ${named.replicas}`]),
    ];
  });
  const mixed = ids.length > 1 ? [`the zones name different plans (${ids.join(', ')})`] : [];
  const deviations = [...mixed, ...own, ...(first === undefined ? [] : changedInputs(context, first))];
  return { ...(ids.length === 1 && ids[0] !== undefined ? { plan: ids[0] } : {}), deviations };
}

/** Returns the differences of a rollout that a policy allows only with a reviewed plan. */
export function planDeviations(context: GroupContext, run: RunState | undefined): readonly string[] {
  if (run !== undefined && recordedKind(run) === 'rollback') return [];
  return comparedPlan(context, run)?.deviations ?? ['no StatefulSet names a reviewed plan'];
}

function readPlan(text: string | undefined): Known<ApprovedPlan> | undefined {
  if (text === undefined) return undefined;
  try {
    const read = approvedPlan.safeParse(JSON.parse(text));
    return read.success ? read.data : { unknown: 'it has not the fields of a plan' };
  } catch {
    return { unknown: 'it is not JSON' };
  }
}

function changedInputs(context: GroupContext, reviewed: ApprovedPlan): readonly string[] {
  const now = inputsOf(context);
  const { namespace, name } = context.group;
  const objects = [...new Set([...Object.keys(reviewed.rules), ...Object.keys(now.rules)])].sort();
  return [
    ...(reviewed.group === now.group ? [] : [`RolloutGroup ${namespace}/${name} changed after the review`]),
    ...objects.flatMap((object): readonly string[] => {
      const [before, after] = [reviewed.rules[object], now.rules[object]];
      if (before === after) return [];
      return [`${object} ${before === undefined ? 'was added' : after === undefined ? 'was removed' : 'changed'} after the review`];
    }),
  ];
}

/** Returns the digests of the group and of what binds it. Neither places in files nor replicas count: zones are compared by their own. */
function inputsOf({ group, policies, exceptions }: GroupContext): Pick<ApprovedPlan, 'group' | 'rules'> {
  const { zones, labels: _labels, notify: _notify, ...rest } = group;
  const settings = { ...rest, zones: zones.map(({ replicas, ...zone }) => (replicas.kind === 'count' ? zone : { ...zone, replicas })) };
  const named = (kind: string, objects: readonly { readonly namespace: string; readonly name: string }[]) =>
    objects.map((object) => [`${kind} ${object.namespace}/${object.name}`, short(object)] as const);
  return {
    group: short(settings),
    rules: Object.fromEntries([...named('RolloutPolicy', policies), ...named('RolloutException', exceptions)]),
  };
}

function short(value: unknown): string {
  return plainDigest(value).slice(0, 10);
}
