// Our webhook on the creation of pods, as the API server asks it: it reads the ledger of the group, and makes the pod at the revision that it is pinned to.
import { decodeLedger, ledgerKey, ledgerName } from '../../engine/ledger/ledger-document.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import {
  type NewPod,
  newPod,
  placementOf,
  type ReadRevision,
  readRevision,
  revisionsToRead,
} from '../../engine/strategies/pinned/placement.ts';
import type { Json, ModelObject } from '../server/request.ts';
import type { ClusterApi } from './api.ts';
import { revisionLabel, revisionResource, statefulSetResource } from './workload.ts';

interface WebhookOptions {
  readonly server: ClusterApi;
  readonly namespace: string;
  readonly group: string;
  /** Hears of each pod, just before it is stored. */
  readonly admitted: (pod: PodAdmitted) => void;
}

/** A pod that is about to be stored. */
export interface PodAdmitted {
  readonly namespace: string;
  readonly pod: string;
  /** The revision at which the StatefulSet controller asks for it. */
  readonly asked: string;
  /** Whether the webhook did not answer. */
  readonly isAway: boolean;
}

export interface PinWebhook {
  /** The pod as it is stored. One that cannot be asked leaves it as it is, as `failurePolicy: Ignore` says. */
  readonly admit: (pod: Json) => Json;
  readonly setAway: (isAway: boolean) => void;
}

const groupResource = 'rolloutgroups.rollout-group.dev';

/** It reads the storage and no cache, as the endpoint asks the API server without a version. */
export function createPinWebhook({ server, namespace, group, admitted }: WebhookOptions): PinWebhook {
  let isAway = false;

  const revisionOf = (pod: NewPod, name: string): ReadRevision => readRevision(server.get(revisionResource, namespace, name), pod);
  const placed = (content: Json): Json => {
    const pod = newPod(namespace, content);
    if (pod === undefined || isUnknown(pod)) return content;
    const zone = zoneOf(server.get(groupResource, namespace, group), pod.statefulSet);
    if (zone === undefined) return content;
    const stored = server.get('configmaps', namespace, ledgerName(group)) as
      | { readonly data?: Readonly<Record<string, string>> }
      | undefined;
    const known = {
      zone,
      ledger: decodeLedger(stored?.data?.[ledgerKey], { namespace, group }),
      knownUid: server.get(statefulSetResource, namespace, pod.statefulSet)?.metadata.uid,
    };
    const revisions = new Map(revisionsToRead(pod, known).map((name) => [name, revisionOf(pod, name)]));
    const placement = placementOf(pod, { ...known, revisions });
    return placement.kind === 'pinned' ? placement.pod : content;
  };
  return {
    admit: (pod) => {
      const { name, labels } = pod['metadata'] as ModelObject['metadata'];
      admitted({ namespace, pod: name, asked: labels?.[revisionLabel] ?? '', isAway });
      return isAway ? pod : placed(pod);
    },
    setAway: (next) => {
      isAway = next;
    },
  };
}

/** The zone that the StatefulSet is, by the RolloutGroup as it stands. */
function zoneOf(group: ModelObject | undefined, statefulSet: string): string | undefined {
  const spec = group?.['spec'] as { readonly members?: { readonly zones?: readonly Json[] } } | undefined;
  const name = spec?.members?.zones?.find((zone) => zone['statefulSet'] === statefulSet)?.['name'];
  return typeof name === 'string' ? name : undefined;
}
