// Checks decisions a second time: computes the safety invariants from the snapshot, without code of the engine.
import type { Action, GroupDecision } from '../../engine/decision.ts';
import type { PodView, Snapshot, StatefulSetView } from '../../engine/snapshot.ts';
import type { GroupDefinition, ZoneDefinition } from '../../policies/definition.ts';

interface CountedZone {
  readonly zone: ZoneDefinition;
  readonly set: StatefulSetView | undefined;
  readonly pods: readonly PodView[] | undefined;
  /** Ordinals that should have an available pod and have none. */
  readonly down: ReadonlySet<number>;
  readonly surplus: number;
  /** For adopted groups the counters of the status count too. */
  readonly statusDown: number;
}

type Replacement = Extract<Action, { kind: 'deletePod' | 'evictPod' }>;
type Scale = Extract<Action, { kind: 'scaleStatefulSet' }>;

function count(snapshot: Snapshot, group: GroupDefinition, zone: ZoneDefinition): CountedZone {
  const isAdopted = group.profile === 'rolloutOperator';
  const set = snapshot.statefulSets.find((one) => one.name === zone.statefulSet && one.namespace === group.namespace);
  const listed = snapshot.pods.find((one) => one.statefulSet === zone.statefulSet && one.namespace === group.namespace)?.pods;
  const pods = listed === undefined || 'unknown' in listed || set === undefined ? undefined : listed;
  const ledger = snapshot.ledgers.find((one) => one.group === group.name);
  const announced = new Set((ledger?.claims ?? []).filter((claim) => claim.zone === zone.name).map((claim) => claim.uid));
  const isUp = (pod: PodView): boolean =>
    pod.phase === 'Running' &&
    !pod.isTerminating &&
    (isAdopted
      ? pod.containersReady
      : pod.isReady && pod.nodeReady && snapshot.nowMs - pod.readyChangedMs >= (set?.minReadySeconds ?? 0) * 1000);
  const down = new Set<number>();
  for (let ordinal = 0; ordinal < (set?.replicas ?? 0); ordinal += 1) {
    const pod = pods?.find((one) => one.ordinal === ordinal);
    if (pod === undefined || !isUp(pod) || announced.has(pod.uid)) down.add(ordinal);
  }
  const surplus = (pods ?? []).filter((pod) => pod.ordinal >= (set?.replicas ?? 0)).length;
  const notUp = (pods ?? []).filter((pod) => !isUp(pod)).length;
  const status = set?.status;
  const statusDown =
    isAdopted && status !== undefined && pods !== undefined
      ? Math.max(status.replicas - status.readyReplicas, status.replicas - pods.length, notUp, 0)
      : 0;
  return { zone, set, pods, down, surplus, statusDown };
}

function isWhole(zone: CountedZone): boolean {
  return zone.pods !== undefined && zone.down.size === 0 && zone.surplus === 0 && zone.statusDown === 0;
}

function limitOf(snapshot: Snapshot, zone: CountedZone): number | undefined {
  const parse = (value: number | string): number =>
    typeof value === 'number' ? value : Math.max(1, Math.floor((Number.parseInt(value, 10) * (zone.set?.replicas ?? 0)) / 100));
  if (zone.zone.maxUnavailable === 'fromBudget') return undefined;
  const caps = snapshot.policies.flatMap((policy) =>
    policy.limits.maxUnavailable === undefined ? [] : [parse(policy.limits.maxUnavailable)],
  );
  return Math.min(parse(zone.zone.maxUnavailable), ...caps);
}

/** Returns all violations of a decision, as `id: what`. */
export function judgeDecision(snapshot: Snapshot, group: GroupDefinition, decision: GroupDecision): readonly string[] {
  const zones = group.zones.map((zone) => count(snapshot, group, zone));
  const going = decision.actions.filter((action): action is Replacement => action.kind === 'deletePod' || action.kind === 'evictPod');
  const scales = decision.actions.filter((action): action is Scale => action.kind === 'scaleStatefulSet');
  const isAdopted = group.profile === 'rolloutOperator';
  return [
    ...checkReplacements(snapshot, group, zones, going, isAdopted),
    ...checkScales(snapshot, group, zones, scales, decision, isAdopted),
    ...(going.length > 0 && scales.length > 0 ? ['S15: pods are replaced and replicas written in one turn'] : []),
    ...(decision.outcome !== 'act' && decision.outcome !== 'done' && decision.waits.length === 0 ? ['L9: it waits without a reason'] : []),
  ];
}

function isDown(zones: readonly CountedZone[], { zone, ordinal }: Replacement): boolean {
  return zones.some((one) => one.zone.name === zone && one.down.has(ordinal));
}

function checkReplacements(
  snapshot: Snapshot,
  group: GroupDefinition,
  zones: readonly CountedZone[],
  going: readonly Replacement[],
  isAdopted: boolean,
): readonly string[] {
  if (going.length === 0) return [];
  const found: string[] = [];
  const touched = new Set(going.map((action) => action.zone));
  if (touched.size > 1) found.push('S1: two zones in one turn');
  // The replacement of a single unavailable pod makes no further pod unavailable, so the state of other zones does not matter.
  const [cured] = going;
  const isCure = !isAdopted && going.length === 1 && cured !== undefined && isDown(zones, cured);
  const ledger = snapshot.ledgers.find((one) => one.namespace === group.namespace && one.group === group.name);
  const claimed = new Set((ledger?.claims ?? []).map((claim) => claim.zone));
  const unread = zones.filter((zone) => zone.pods === undefined);
  if (unread.length > 0) found.push('S4: a zone was not read');
  for (const zone of zones) {
    const isOld = zone.set !== undefined && zone.set.status.observedGeneration < zone.set.generation;
    if (!isAdopted && isOld) found.push(`S4: the status of ${zone.zone.name} is old`);
    const isForgiven = isAdopted && zone.zone.paused && zones.filter((other) => !isWhole(other)).length <= 1;
    const isBeside = isCure && zone.pods !== undefined && !claimed.has(zone.zone.name);
    if (!touched.has(zone.zone.name) && !isWhole(zone) && !isForgiven && !isBeside) found.push(`S1: zone ${zone.zone.name} is not whole`);
    // With OrderedReady no surplus pod is deleted while a pod below it is unavailable.
    const isHeldUp = isCure && zone.set?.podManagementPolicy === 'OrderedReady' && zone.down.size > 0;
    if (!isAdopted && zone.surplus > 0 && !isHeldUp) found.push(`S15: zone ${zone.zone.name} shrinks`);
    found.push(
      ...checkBudget(
        snapshot,
        group,
        zone,
        going.filter((action) => action.zone === zone.zone.name),
        isAdopted,
      ),
    );
  }
  const uids = going.map((action) => action.uid);
  if (new Set(uids).size !== uids.length) found.push('S7: a pod twice');
  return found;
}

function checkBudget(
  snapshot: Snapshot,
  group: GroupDefinition,
  zone: CountedZone,
  going: readonly Replacement[],
  isAdopted: boolean,
): readonly string[] {
  const found: string[] = [];
  const limit = limitOf(snapshot, zone);
  const target = zone.set?.status.updateRevision;
  const claims = snapshot.ledgers.flatMap((ledger) => ledger.claims.map((claim) => claim.uid));
  for (const action of going) {
    const pod = zone.pods?.find((one) => one.name === action.pod);
    if (pod === undefined || pod.uid !== action.uid) found.push(`S6: ${action.pod} is not the pod that was seen`);
    else {
      if (pod.revision === target) found.push(`S6: ${action.pod} is up to date`);
      if (pod.isTerminating) found.push(`S7: ${action.pod} terminates already`);
      if (!isAdopted && claims.includes(pod.uid)) found.push(`S7: ${action.pod} is announced already`);
      const crashes = pod.waitingReasons.length > 0;
      if (!isAdopted && action.because === 'stuck') {
        const { when, afterMs } = group.rollout.replaceUnready;
        if (!zone.down.has(pod.ordinal)) found.push(`S9: ${action.pod} is not down`);
        if (!pod.nodeReady) found.push(`S9: the node of ${action.pod} is down`);
        if (when === 'none' || (when === 'crashing' && !crashes)) found.push(`S9: ${action.pod} may not be cured`);
        if (!crashes && snapshot.nowMs - pod.readyChangedMs < afterMs) found.push(`S9: ${action.pod} was not down for long enough`);
      }
    }
  }
  if (limit === undefined || going.length === 0) return found;
  const healthy = going.filter((action) => !zone.down.has(action.ordinal)).length;
  const before = Math.max(zone.down.size, zone.statusDown);
  if (healthy > 0 && before + healthy > limit) found.push(`S2: ${before + healthy} of ${limit} pods of zone ${zone.zone.name} down`);
  const all = zone.set?.replicas ?? 0;
  if (healthy > 0 && all - before - healthy < all - limit) found.push('S3: too few pods of the group stay available');
  const inFlight = (zone.pods ?? []).filter((pod) => pod.isTerminating || (pod.revision === target && zone.down.has(pod.ordinal))).length;
  if (!isAdopted && inFlight + going.length > Math.max(1, limit))
    found.push(`S9: ${inFlight + going.length} pods of zone ${zone.zone.name} in flight`);
  return found;
}

function checkScales(
  snapshot: Snapshot,
  group: GroupDefinition,
  zones: readonly CountedZone[],
  scales: readonly Scale[],
  decision: GroupDecision,
  isAdopted: boolean,
): readonly string[] {
  const found: string[] = scales.length > 1 ? ['S15: two zones change replicas in one turn'] : [];
  const ledger = snapshot.ledgers.find((one) => one.group === group.name);
  for (const action of scales) {
    const zone = zones.find((one) => one.zone.name === action.zone);
    if (zone?.set === undefined) {
      found.push('S4: a StatefulSet that was not read is scaled');
      continue;
    }
    const isForced = zone.zone.forceReplicas !== undefined;
    const leader = zones.find((one) => one.zone.name === zone.zone.follows);
    const isDown = action.to < action.from;
    if (isDown) found.push(...checkDelay(snapshot, group, zone, action, isForced, isAdopted));
    if (isAdopted || isForced) continue;
    const bounds = zone.zone.bounds;
    const floor = Math.max(1, bounds.min ?? 0, ...snapshot.policies.map((policy) => policy.limits.minReplicas ?? 0));
    if (isDown && action.to < floor) found.push(`S14: zone ${action.zone} falls below ${floor}`);
    if (isDown && leader?.set !== undefined && action.to < leader.set.replicas)
      found.push(`S13: zone ${action.zone} falls below its leader`);
    if (!isDown && leader !== undefined && zone.zone.followersWaitFor === 'leaderReady' && leader.down.size > 0)
      found.push(`S13: zone ${action.zone} grows before its leader is ready`);
    if (!isDown) continue;
    if (zones.some((one) => one !== zone && !isWhole(one))) found.push('S1: a zone shrinks while another is not whole');
    if (zone.zone.noDownscale) found.push('S14: a protected zone shrinks');
    const { run } = decision;
    if (run?.outcome === 'running' && run.openZone !== undefined && run.openZone !== action.zone)
      found.push('S15: a zone shrinks while another rolls');
    const gapMs = Math.max(zone.zone.betweenZonesMs ?? 0, ...snapshot.policies.map((policy) => policy.limits.betweenZonesMs ?? 0));
    const dated = [...(ledger?.downscales ?? []), ...(ledger?.claims ?? []).filter((claim) => claim.verb === 'scaleDown')];
    if (dated.some((record) => record.zone !== action.zone && snapshot.nowMs - record.atMs < gapMs))
      found.push(`S12: zone ${action.zone} shrinks too soon`);
  }
  return found;
}

function checkDelay(
  snapshot: Snapshot,
  group: GroupDefinition,
  zone: CountedZone,
  action: Scale,
  isForced: boolean,
  isAdopted: boolean,
): readonly string[] {
  const { delayed } = zone.zone;
  const isMirrored = zone.zone.replicas.kind === 'mirror' && zone.zone.follows === undefined;
  if (delayed === undefined || (isAdopted ? !isMirrored : isForced)) return [];
  const ledgers = snapshot.ledgers.filter((ledger) => ledger.group === group.name);
  const preparations = ledgers.flatMap((ledger) => ledger.preparations);
  const { set, pods = [] } = zone;
  const created = ledgers.flatMap((ledger) => ledger.created ?? []).find((one) => one.zone === zone.zone.name && one.uid === set?.uid);
  const remembered =
    created === undefined || created.ordinals === '' ? [] : created.ordinals.split(',').map((range) => range.split('-').map(Number));
  const isLost = (ordinal: number): boolean => {
    if (pods.some((pod) => pod.ordinal === ordinal)) return false;
    const isCounted = ordinal < (set?.status.replicas ?? 0) && (set?.status.replicas ?? 0) > pods.length;
    const isBelow = set?.podManagementPolicy === 'OrderedReady' && pods.some((pod) => pod.ordinal > ordinal);
    return isCounted || isBelow || remembered.some(([first = 0, last = first]) => ordinal >= first && ordinal <= last);
  };
  const leaving = Array.from({ length: action.from - action.to }, (_, index) => action.to + index);
  const lost = leaving.filter(isLost).map((ordinal) => `S11: ordinal ${ordinal} of zone ${action.zone} leaves while its pod is lost`);
  const early = (zone.pods ?? [])
    .filter((pod) => leaving.includes(pod.ordinal))
    .flatMap((pod) => {
      const entry = preparations.find((one) => one.podUid === pod.uid && one.call === 'delayed' && one.state === 'prepared');
      if (entry === undefined) return [`S11: ${pod.name} leaves unprepared`];
      const since = isAdopted ? (entry.reportedMs ?? entry.seenMs) : entry.seenMs;
      const answered = entry.answeredMs ?? entry.seenMs;
      if (snapshot.nowMs - answered > 60_000 || answered - since < delayed.afterMs)
        return [`S11: ${pod.name} is removed without a recent confirmation`];
      return snapshot.nowMs - since < delayed.afterMs ? [`S11: ${pod.name} leaves too early`] : [];
    });
  return [...early, ...lost];
}
