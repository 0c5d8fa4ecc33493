// Makes a plan on a cluster, and saves it for apply.
import { getObject } from '../../../cluster/request/read.ts';
import { resources } from '../../../cluster/request/resource.ts';
import { fieldDiff } from '../../../engine/diff/field-diff.ts';
import type { Plan } from '../../../engine/plan/document.ts';
import { planGroups } from '../../../engine/plan/plan.ts';
import type { Cluster } from '../../connection.ts';
import type { CommandContext } from '../../context.ts';
import { usageFailure } from '../../failure.ts';
import type { GivenFiles, LivePlanOptions } from '../plan-inputs.ts';
import { type SavedPlan, savedPlan } from '../saved-plan.ts';
import type { ReadyObject } from './apply.ts';
import { toApply } from './desired-objects.ts';
import { givenFiles, type LivePlanInputs, readLiveInputs } from './live-plan-inputs.ts';

export interface Planned extends LivePlanInputs {
  readonly plan: Plan;
  readonly given: GivenFiles;
}

/** Reads the inputs and plans. With errors in the files the plan has no groups. */
export async function readAndPlan(
  context: CommandContext,
  options: LivePlanOptions,
  cluster: Cluster,
  files?: GivenFiles,
): Promise<Planned> {
  const given = files ?? (await givenFiles(context, options));
  const inputs = await readLiveInputs(context, options, cluster, given);
  const input = inputs.errors.length > 0 ? { ...inputs.input, groups: [] } : inputs.input;
  return { ...inputs, plan: planGroups(input), given };
}

/** Returns the desired objects that change something, as they are applied. */
export function readyObjects({ asked }: LivePlanInputs): readonly ReadyObject[] {
  return asked.flatMap(({ manifest, resource, live, object }): readonly ReadyObject[] => {
    if (resource === undefined) return [];
    if (live !== undefined && fieldDiff(live, object).length === 0) return [];
    return [{ resource, live, object: toApply(manifest) }];
  });
}

/**
 * Returns the plan with everything that apply needs to check it for staleness and to carry it out.
 *
 * @throws Failure when a Secret is among the manifests: a saved plan is a file that people review and share.
 */
export async function savedOf(cluster: Cluster, planned: Planned, nowMs: number): Promise<SavedPlan> {
  const { basis, plan, given, namespaces, agentNamespace } = planned;
  if (planned.asked.some(({ manifest }) => manifest['kind'] === 'Secret')) {
    throw usageFailure('a saved plan holds no Secret', 'remove the Secrets from the manifests, and apply them separately');
  }
  const uid = await clusterUid(cluster);
  const scope = {
    ...(uid === undefined ? {} : { cluster: uid }),
    server: cluster.server,
    namespaces: namespaces ?? [],
    agentNamespace,
    groups: planned.input.groups.map(({ namespace, name }) => `${namespace}/${name}`).sort(),
    files: given,
  };
  return savedPlan({ scope, basis, objects: readyObjects(planned).map(({ object }) => object), plan }, nowMs);
}

/** Returns the identity of a cluster, independent of its address; undefined when it may not be read. */
export async function clusterUid({ env, timeoutMs }: Cluster): Promise<string | undefined> {
  try {
    const namespace = await getObject(env, resources.namespaces, { name: 'kube-system' }, { site: 'source.cluster', timeoutMs });
    return namespace?.metadata.uid;
  } catch {
    return undefined;
  }
}
