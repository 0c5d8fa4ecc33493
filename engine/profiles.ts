// The two profiles of behaviour, as data: what a native group does, and what a group with the drop-in profile of grafana/rollout-operator does.
import type { GroupDefinition, ProfileName } from '../policies/definition.ts';

/** One row per difference: first the native behaviour, then that of grafana/rollout-operator with its section. Rules read only rows. */
interface Profile {
  /** The Ready condition for `minReadySeconds` on a ready node; or every container runs and is ready (7.1). */
  readonly podReadiness: 'condition' | 'containers';
  /** Only pods are counted; or the counters in the status of the StatefulSet also count, and the highest count of unready pods applies (6.4, 8.4). */
  readonly countsPodsFromStatus: boolean;
  /** A status older than its spec blocks; or `observedGeneration` is never read (6.4). */
  readonly waitsForObservedGeneration: boolean;
  /** Pods belong to their owner; or they also need the label `name` of the pod template (6.4). */
  readonly matchesPodsByNameLabel: boolean;
  /** `status.currentRevision` is left to Kubernetes; or it must be set, and advances when a zone is complete (7.2, steps 2 and 5). */
  readonly advancesCurrentRevision: boolean;
  /** Another update strategy stops its own zone; or the whole group (6.3). */
  readonly checksStrategyOfAllZones: boolean;
  /** A started zone is finished first; or each turn chooses the zone again (6.6). */
  readonly finishesStartedZone: boolean;
  /** Unready pods are replaced first; or ordinals alone decide (7.2, step 4). */
  readonly replacesUnreadyPodsFirst: boolean;
  /** Stuck pods are repaired one at a time even if other zones are not ready; or they wait for the other zones (6.5). */
  readonly repairsStuckPodsAcrossZones: boolean;
  /** Unready pods of a paused zone block the other zones; or not, if no further zone is unready (7.2, step 1). */
  readonly ignoresPausedZone: boolean;
  /** No pod is replaced while a zone shrinks; or only a replica write in the same turn blocks (6.2). */
  readonly waitsForShrinkingZones: boolean;
  /** Requests that cannot be read block a disruption; or not, because the original has no requests. */
  readonly blocksOnUnreadableRequests: boolean;
  /** The group's time between zones binds every zone; or a follower reads its own label (8.5), and a prepared downscale the label of the zone that shrank (13, row 10). */
  readonly zoneGap: 'group' | 'zone';
  /** The time of a downscale is kept in the ledger; or in the annotation `grafana.com/last-downscale` (8.5, 13). */
  readonly downscaleTime: 'ledger' | 'annotation';
  /** Every downscale waits for the other zones, the rollout and the leader; or only a prepared one for the other zones (12, 13), and only mirrored zones have a delay (10). */
  readonly checksEveryDownscale: boolean;
  /** A delay starts when the agent has seen the answer of the pod, or later at the reported time; or at the reported time alone (10). */
  readonly delayStart: 'seen' | 'reported';
  /** Fewer replicas than this need `forceReplicas`; the original scales to zero (8, 9). */
  readonly leastReplicas: number;
  /** Null replicas are read as 1, the default of the API server; or the request is allowed with a warning (12, row 6). */
  readonly allowsNullReplicas: boolean;
  /** Replicas are written only where the group says that they come from; or by every client (8). */
  readonly ownsReplicas: boolean;
  /** The limit that a denied downscale names. Scripts match on the label of the original (12, row 11). */
  readonly noDownscaleLimit: string;
  /** The native webhook asks the pods to prepare; or `/admission/prepare-downscale` does (13). */
  readonly preparesInDropInWebhook: boolean;
  /** The deadline of a pod call is that of its endpoint; or the flag `-pods.client-timeout` (10). */
  readonly podCallTimeout: 'endpoint' | 'flag';
  /** A turn fails when a write or a read fails; or also in each case in which the original counts a failed reconcile (6.8). */
  readonly countsFailedReconciles: boolean;
  /** Invariants with the scope `native` bind the group; or they do not, because the original breaks them by design. */
  readonly checksNativeInvariants: boolean;
}

const profiles: Readonly<Record<ProfileName, Profile>> = {
  native: {
    podReadiness: 'condition',
    countsPodsFromStatus: false,
    waitsForObservedGeneration: true,
    matchesPodsByNameLabel: false,
    advancesCurrentRevision: false,
    checksStrategyOfAllZones: false,
    finishesStartedZone: true,
    replacesUnreadyPodsFirst: true,
    repairsStuckPodsAcrossZones: true,
    ignoresPausedZone: false,
    waitsForShrinkingZones: true,
    blocksOnUnreadableRequests: true,
    zoneGap: 'group',
    downscaleTime: 'ledger',
    checksEveryDownscale: true,
    delayStart: 'seen',
    leastReplicas: 1,
    allowsNullReplicas: false,
    ownsReplicas: true,
    noDownscaleLimit: 'noDownscale',
    preparesInDropInWebhook: false,
    podCallTimeout: 'endpoint',
    countsFailedReconciles: false,
    checksNativeInvariants: true,
  },
  rolloutOperator: {
    podReadiness: 'containers',
    countsPodsFromStatus: true,
    waitsForObservedGeneration: false,
    matchesPodsByNameLabel: true,
    advancesCurrentRevision: true,
    checksStrategyOfAllZones: true,
    finishesStartedZone: false,
    replacesUnreadyPodsFirst: false,
    repairsStuckPodsAcrossZones: false,
    ignoresPausedZone: true,
    waitsForShrinkingZones: false,
    blocksOnUnreadableRequests: false,
    zoneGap: 'zone',
    downscaleTime: 'annotation',
    checksEveryDownscale: false,
    delayStart: 'reported',
    leastReplicas: 0,
    allowsNullReplicas: true,
    ownsReplicas: false,
    noDownscaleLimit: 'grafana.com/no-downscale=true',
    preparesInDropInWebhook: true,
    podCallTimeout: 'flag',
    countsFailedReconciles: true,
    checksNativeInvariants: false,
  },
};

/** Returns the rows of the group's profile. */
export function profileOf({ profile }: Pick<GroupDefinition, 'profile'>): Profile {
  return profiles[profile];
}

/** The profile of StatefulSets that no group defines any more. */
export const releasedGroup: Pick<GroupDefinition, 'profile'> = { profile: 'native' };
