// Defines the two profiles as data: the native behaviour, and the drop-in profile with the behaviour of grafana/rollout-operator.
import type { GroupDefinition, ProfileName } from '../policies/definition.ts';

/** One row per difference. Each comment states the native behaviour, then that of grafana/rollout-operator (the original). */
interface Profile {
  /** A pod is available if it is Ready for `minReadySeconds` on a ready node. Original: if every container runs and is ready. */
  readonly podReadiness: 'condition' | 'containers';
  /** Unready pods are counted from the pods. Original: also from the status of the StatefulSet, and the higher number applies. */
  readonly countsPodsFromStatus: boolean;
  /** A status older than its spec blocks. Original: `observedGeneration` is never read. */
  readonly waitsForObservedGeneration: boolean;
  /** Pods are found by their owner. Original: they also need the label `name` of the pod template. */
  readonly matchesPodsByNameLabel: boolean;
  /** Only Kubernetes writes `status.currentRevision`. Original: it must be set, and the operator advances it when a zone is complete. */
  readonly advancesCurrentRevision: boolean;
  /** A wrong update strategy blocks only its zone. Original: it blocks the whole group. */
  readonly checksStrategyOfAllZones: boolean;
  /** A started zone is finished first. Original: each turn chooses the zone again. */
  readonly finishesStartedZone: boolean;
  /** Unready pods are replaced first. Original: ordinals alone decide the order. */
  readonly replacesUnreadyPodsFirst: boolean;
  /** Stuck pods are repaired one at a time even if other zones are not ready. Original: they wait for the other zones. */
  readonly repairsStuckPodsAcrossZones: boolean;
  /** Unready pods of a paused zone block the other zones. Original: they do not, if all other zones are ready. */
  readonly ignoresPausedZone: boolean;
  /** A zone that shrinks blocks the replacement of pods. Original: only a write of replicas in the same turn does. */
  readonly waitsForShrinkingZones: boolean;
  /** Unreadable RolloutIntents block the requests of other clients. Original: they do not, because it has no such objects. */
  readonly blocksOnUnreadableRequests: boolean;
  /**
   * The group sets the time between downscales of two zones. Original: the label of the follower sets it, or for a downscale through
   * `/admission/prepare-downscale` the label of the zone that shrank last.
   */
  readonly zoneGap: 'group' | 'zone';
  /** The ledger stores the time of a downscale. Original: the annotation `grafana.com/last-downscale` stores it. */
  readonly downscaleTime: 'ledger' | 'annotation';
  /**
   * Every downscale waits for the other zones, the rollout and the leader. Original: only a downscale with preparation waits,
   * and only for the other zones. Only zones that mirror an object have a delay.
   */
  readonly checksEveryDownscale: boolean;
  /** A delay starts at the time in the pod's answer, but not before the agent sees the answer. Original: always at the time in the answer. */
  readonly delayStart: 'seen' | 'reported';
  /** Fewer replicas than this require `forceReplicas`. Original: zero replicas are allowed. */
  readonly leastReplicas: number;
  /** Null replicas in an admission request count as 1, the default of the API server. Original: the request is allowed with a warning. */
  readonly allowsNullReplicas: boolean;
  /** A client must scale the object that sets the replicas of the group. Original: it may scale the StatefulSet itself. */
  readonly ownsReplicas: boolean;
  /** The limit in the message of a denied downscale. Scripts match the label of grafana/rollout-operator in it. */
  readonly noDownscaleLimit: string;
  /** Only `/admission/enforce` enforces `noDownscale`. Original: a webhook with this path enforces it, too. */
  readonly downscaleWebhook: string | undefined;
  /** `/admission/enforce` denies a downscale of unprepared pods. Original: allowed if `/admission/prepare-downscale` prepares them. */
  readonly preparesInDropInWebhook: boolean;
  /** The endpoint in the policy sets the timeout of a pod call. Original: the flag `-pods.client-timeout` sets it. */
  readonly podCallTimeout: 'endpoint' | 'flag';
  /** A turn counts as failed if an error ends it or a write on a pod or partition fails. Original: also if a reconcile would fail. */
  readonly countsFailedReconciles: boolean;
  /** Invariants with the scope `native` apply. Original: they do not, because the original breaks them by design. */
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
    downscaleWebhook: undefined,
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
    downscaleWebhook: '/admission/no-downscale',
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

/** The profile for the StatefulSets of a group whose definition was deleted. */
export const releasedGroup: Pick<GroupDefinition, 'profile'> = { profile: 'native' };
