// Models the webhook for pod creation: it reads the ledger of the group and gives the pod its pinned revision.
import { decodeLedger, ledgerKey, ledgerName } from '../../engine/ledger/ledger-document.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import {
  type NewPod,
  newPod,
  placementOf,
  type ReadRevision,
  readRevision,
  revisionsToRead,
  type SeenSet,
} from '../../engine/strategies/pinned/placement.ts';
import { pinConfigurationName } from '../../install/webhooks.ts';
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import { field, groupResource, listAt, textAt } from '../objects.ts';
import type { GroupObjects } from '../scenario.ts';
import type { Json, ModelObject } from '../server/request.ts';
import { isNamedAfter, revisionLabel, revisionResource, statefulSetResource } from './workload.ts';
import type { World } from './world.ts';

interface WebhookOptions extends Pick<World, 'server'> {
  /** The groups with pinned pods. */
  readonly groups: readonly GroupObjects[];
  /** Receives each pod of these groups before it is stored. */
  readonly admitted: (pod: PodAdmitted) => void;
}

export interface PodAdmitted {
  readonly namespace: string;
  readonly pod: string;
  /** The revision at which the StatefulSet controller creates the pod. */
  readonly createdRevision: string;
  readonly isUnavailable: boolean;
}

export type PinWebhook = ReturnType<typeof createPinWebhook>;

const configurationResource = 'mutatingwebhookconfigurations.admissionregistration.k8s.io';

/**
 * Creates the model, and the webhook configuration that the agent requires. The model reads the stored objects, because the real endpoint
 * uses quorum reads.
 */
export function createPinWebhook({ server, groups, admitted }: WebhookOptions) {
  let isUnavailable = false;
  server.create({ user: 'kubernetes-admin' }, configurationResource, {
    metadata: { name: pinConfigurationName({ namespace: usualAgentNamespace }) },
    webhooks: [{ name: 'pinned.rollout-group.dev', clientConfig: { caBundle: 'Y2E=' } }],
  });

  const revisionOf = (pod: NewPod, name: string): ReadRevision => readRevision(server.get(revisionResource, pod.namespace, name), pod);
  const placed = (content: Json, { namespace, name: group }: GroupObjects): Json => {
    const pod = newPod(namespace, content);
    if (pod === undefined || isUnknown(pod)) return content;
    const zone = zoneOf(server.get(groupResource, namespace, group), pod.statefulSet);
    if (zone === undefined) return content;
    const known = {
      zone,
      ledger: decodeLedger(textAt(server.get('configmaps', namespace, ledgerName(group)), 'data', ledgerKey), { namespace, group }),
      seen: seenSet(server.get(statefulSetResource, namespace, pod.statefulSet)),
    };
    const revisions = new Map(revisionsToRead(pod, known).map((name) => [name, revisionOf(pod, name)]));
    const placement = placementOf(pod, { ...known, revisions });
    return placement.kind === 'pinned' ? placement.pod : content;
  };
  return {
    /** Returns the pod to store. If the webhook does not answer, the pod is unchanged (`failurePolicy: Ignore`). */
    admit: (pod: Json): Json => {
      const { namespace = '', name, labels } = pod['metadata'] as ModelObject['metadata'];
      const group = groups.find((one) => one.namespace === namespace && one.statefulSets.some((set) => isNamedAfter(name, set)));
      if (group === undefined) return pod;
      admitted({ namespace, pod: name, createdRevision: labels?.[revisionLabel] ?? '', isUnavailable });
      return isUnavailable ? pod : placed(pod, group);
    },
    setUnavailable: (next: boolean): void => {
      isUnavailable = next;
    },
  };
}

function seenSet(set: ModelObject | undefined): SeenSet | undefined {
  return set && { uid: set.metadata.uid, updateRevision: textAt(set, 'status', 'updateRevision') ?? '' };
}

/** Returns the zone of the StatefulSet in the stored RolloutGroup; undefined if the group does not name it. */
function zoneOf(group: ModelObject | undefined, statefulSet: string): string | undefined {
  return textAt(
    listAt(group, 'spec', 'members', 'zones').find((zone) => field(zone, 'statefulSet') === statefulSet),
    'name',
  );
}
