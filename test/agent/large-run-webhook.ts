// The webhook of a large run under the strategy pinned: served by a process of its own, and known to the API server before the first pod is taken away.
import { holdingPartition } from '../../policies/strategies.ts';
import type { KubernetesObject } from '../control-plane/client.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import type { TestGroup } from '../control-plane/group.ts';
import { eventually } from '../control-plane/webhook.ts';
import type { StatefulSet } from '../control-plane/workloads.ts';
import type { World } from '../webhook/kit.ts';

type RollingSet = StatefulSet & {
  readonly spec: { readonly updateStrategy: { readonly rollingUpdate?: { readonly partition?: number } } };
};

type Configuration = KubernetesObject & { readonly webhooks: readonly object[] };

const configuration = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/0-rollout-group-pinned';

/** Waits until the agent holds every StatefulSet of the group, and the API server asks the webhook about their pods: from then on none comes back as it is. */
export async function untilPinning(
  { client }: Pick<ControlPlane, 'client'>,
  { namespace, sets, setsPath, podsPath }: TestGroup,
  { first }: Pick<World, 'first'>,
): Promise<void> {
  const found = await client.until<RollingSet>(setsPath, 'partitions that hold', (items) =>
    items.every(({ spec }) => spec.updateStrategy.rollingUpdate?.partition === holdingPartition),
  );
  await eventually(
    'members that are named',
    async () => JSON.stringify((await client.get<Configuration>(configuration)).webhooks),
    (rows) => sets.every((set) => rows.includes(`${namespace}/${set}`)),
  );
  for (const { metadata } of found) {
    const name = `${metadata.name}-99999`;
    await eventually(
      `a webhook that is asked about pods of ${metadata.name}`,
      async () => {
        const { status } = await client.ask('POST', `${podsPath}?dryRun=All`, probe(name, metadata));
        return { status, isAsked: first.agent.log().includes(name) };
      },
      ({ isAsked }) => isAsked,
    );
  }
}

/** A pod that nobody makes, whose name and label disagree: whoever is asked about it says so in the log. */
function probe(name: string, { name: statefulSet, uid }: KubernetesObject['metadata']): object {
  return {
    metadata: {
      name,
      labels: {
        'controller-revision-hash': statefulSet,
        'statefulset.kubernetes.io/pod-name': name,
        'apps.kubernetes.io/pod-index': '0',
      },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: statefulSet, uid, controller: true }],
    },
    spec: { containers: [{ name: 'server', image: 'example.com/server:1' }] },
  };
}
