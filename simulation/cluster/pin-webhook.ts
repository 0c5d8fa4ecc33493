// Models our webhook on pod creation: it reads the ledger of the group, and gives the pod the revision that it is pinned to.
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
import { revisionLabel, revisionResource, statefulSetResource } from './workload.ts';
import type { World } from './world.ts';

interface WebhookOptions extends Pick<World, 'server'> {
  readonly namespace: string;
  readonly group: string;
  /** Receives each pod before it is stored. */
  readonly admitted: (pod: PodAdmitted) => void;
}

/** A pod before it is stored. */
export interface PodAdmitted {
  readonly namespace: string;
  readonly pod: string;
  /** The revision that the StatefulSet controller wants. */
  readonly asked: string;
  /** The webhook did not answer. */
  readonly isAway: boolean;
}

export interface PinWebhook {
  /** Returns the pod to store. Without an answer it is unchanged, as `failurePolicy: Ignore` says. */
  readonly admit: (pod: Json) => Json;
  readonly setAway: (isAway: boolean) => void;
}

const groupResource = 'rolloutgroups.rollout-group.dev';

/** Reads the storage, as the endpoint does by a read without a version. */
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

/** Returns the zone of the StatefulSet by the stored RolloutGroup. */
function zoneOf(group: ModelObject | undefined, statefulSet: string): string | undefined {
  const spec = group?.['spec'] as { readonly members?: { readonly zones?: readonly Json[] } } | undefined;
  const name = spec?.members?.zones?.find((zone) => zone['statefulSet'] === statefulSet)?.['name'];
  return typeof name === 'string' ? name : undefined;
}
