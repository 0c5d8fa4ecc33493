// The two profiles as data: the native behaviour, and the drop-in profile with the behaviour of grafana/rollout-operator.
import type { GroupDefinition, ProfileName } from '../policies/definition.ts';

/** One row per difference: the native behaviour; or that of grafana/rollout-operator, with sections of its specification. Rules read only rows. */
interface Profile {
  /** A pod is available if it is Ready for `minReadySeconds` on a ready node; or if every container runs and is ready (7.1). */
  readonly podReadiness: 'condition' | 'containers';
  /** Unready pods are counted from the pods; or also from the status of the StatefulSet, and the highest number applies (6.4, 8.4). */
  readonly countsPodsFromStatus: boolean;
  /** A status older than its spec blocks; or `observedGeneration` is never read (6.4). */
  readonly waitsForObservedGeneration: boolean;
  /** Pods are found by their owner; or they also need the label `name` of the pod template (6.4). */
  readonly matchesPodsByNameLabel: boolean;
  /** Only Kubernetes writes `status.currentRevision`; or it must be set, and the agent advances it when a zone is complete (7.2, steps 2 and 5). */
  readonly advancesCurrentRevision: boolean;
  /** A wrong update strategy blocks only its zone; or the whole group (6.3). */
  readonly checksStrategyOfAllZones: boolean;
  /** A started zone is finished first; or each turn chooses the zone again (6.6). */
  readonly finishesStartedZone: boolean;
  /** Unready pods are replaced first; or ordinals alone decide (7.2, step 4). */
  readonly replacesUnreadyPodsFirst: boolean;
  /** Stuck pods are repaired one at a time even if other zones are not ready; or they wait for the other zones (6.5). */
  readonly repairsStuckPodsAcrossZones: boolean;
  /** Unready pods of a paused zone block the other zones; or they do not, if all other zones are ready (7.2, step 1). */
  readonly ignoresPausedZone: boolean;
  /** A zone that shrinks blocks the replacement of pods; or only a write of replicas in the same turn does (6.2). */
  readonly waitsForShrinkingZones: boolean;
  /** Requests that cannot be read block a disruption; or they do not, because grafana/rollout-operator has no requests. */
  readonly blocksOnUnreadableRequests: boolean;
  /** The group sets the time between downscales; or a label does: that of the follower (8.5), or for a prepared downscale that of the zone that shrank last (13, row 10). */
  readonly zoneGap: 'group' | 'zone';
  /** The ledger stores the time of a downscale; or the annotation `grafana.com/last-downscale` does (8.5, 13). */
  readonly downscaleTime: 'ledger' | 'annotation';
  /** Every downscale waits for the other zones, the rollout and the leader; or only a prepared one, for the other zones (12, 13). Only mirrored zones have a delay (10). */
  readonly checksEveryDownscale: boolean;
  /** A delay starts when the agent sees the answer of the pod, or at the time in the answer if that is later; or always at that time (10). */
  readonly delayStart: 'seen' | 'reported';
  /** Fewer replicas than this require `forceReplicas`; grafana/rollout-operator scales to zero (8, 9). */
  readonly leastReplicas: number;
  /** Null replicas are read as 1, the default of the API server; or the request is allowed with a warning (12, row 6). */
  readonly allowsNullReplicas: boolean;
  /** A client must scale the source of the replicas that the group names; or it may scale the member itself (8). */
  readonly ownsReplicas: boolean;
  /** The limit in the message of a denied downscale. Scripts match the label of grafana/rollout-operator (12, row 11). */
  readonly noDownscaleLimit: string;
  /** `/admission/enforce` denies a downscale of unprepared pods; or allows it, if `/admission/prepare-downscale` prepares them (13). */
  readonly preparesInDropInWebhook: boolean;
  /** The endpoint sets the timeout of a pod call; or the flag `-pods.client-timeout` does (10). */
  readonly podCallTimeout: 'endpoint' | 'flag';
  /** A turn fails if a write or a read fails; or also if grafana/rollout-operator would count a failed reconcile (6.8). */
  readonly countsFailedReconciles: boolean;
  /** Invariants with the scope `native` apply; or they do not, because grafana/rollout-operator breaks them by design. */
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
