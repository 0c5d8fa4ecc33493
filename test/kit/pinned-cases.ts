// Draws random groups with the strategy `pinned`, and checks their decisions and ledgers a second time without code of the engine.
import type { Action, GroupDecision } from '../../engine/decision.ts';
import type { RunState } from '../../engine/run/run-state.ts';
import type { Claim, IntentView, Ledger, Pin, PodView, RevisionView, Snapshot, StatefulSetView } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { kitNowMs } from './objects.ts';
import { withFields } from './questions.ts';
import { type Random, randomFrom } from './random.ts';
import { type RandomCase, randomCase } from './random-groups.ts';

const holding = 1_000_000;
/** Attempts to bring a pod back at one revision before a person must request a retry. */
const maxTries = 2;
const revisions = ['rev-1', 'rev-2', 'rev-3'];

/**
 * Draws the group of the seed with the strategy `pinned`: pods at three revisions, a ledger with the pins of most of them, pods in flight,
 * and pods that came back at another revision. Sometimes another client has moved the partition, or another strategy rolled the group
 * before and the ledger has no pins. Undefined for adopted groups, which cannot have this strategy.
 */
export function pinnedCase(seed: number): RandomCase | undefined {
  const one = randomCase(seed);
  if (one.group.profile === 'rolloutOperator') return undefined;
  const random = randomFrom(seed * 17 + 0x51ed270b);
  const chance = (share: number): boolean => random.next() < share;
  const onFailure = chance(0.2) ? 'rollback' : one.group.rollout.onFailure;
  const group: GroupDefinition = { ...one.group, rollout: { ...one.group.rollout, strategy: 'pinned', onFailure } };
  const isTakenOver = chance(0.1);
  const thirds = chance(0.3) ? 0.3 : 0.02;
  const statefulSets = one.snapshot.statefulSets.map((set): StatefulSetView => {
    const { replicas } = set;
    const partition = chance(0.85) ? holding : random.below(replicas + 3);
    return { ...set, partition, updateStrategy: chance(isTakenOver ? 0.3 : 0.02) ? 'OnDelete' : 'RollingUpdate' };
  });
  const setOf = (name: string): StatefulSetView | undefined => statefulSets.find((set) => set.name === name);
  const pods = one.snapshot.pods.map((view) => {
    const set = setOf(view.statefulSet);
    if ('unknown' in view.pods || set === undefined) return view;
    const { currentRevision, updateRevision } = set.status;
    const updated = random.next();
    return {
      ...view,
      pods: view.pods.map((pod) => {
        const own = chance(updated) ? updateRevision : currentRevision;
        return { ...pod, revision: chance(thirds) ? (random.pick(revisions) ?? own) : own };
      }),
    };
  });
  const known: Known = { group, random, isTakenOver, snapshot: { ...one.snapshot, statefulSets, pods } };
  const ledgers = one.snapshot.ledgers.map((ledger) => pinnedLedger(ledger, known));
  const revisionViews = randomRevisions(known);
  const { intents } = one.snapshot;
  const snapshot: Snapshot = {
    ...one.snapshot,
    groups: [group],
    statefulSets,
    pods,
    ledgers,
    ...(revisionViews === undefined ? {} : { revisions: revisionViews }),
    intents: 'unknown' in intents || !chance(0.15) ? intents : [...intents, retry(random)],
    ...randomWebhook(seed),
  };
  return withUnreadZone({ seed, group, snapshot });
}

/** Draws, for one group of fifty, a failed run that is due to be rolled back while a zone is not read. */
function withUnreadZone(one: RandomCase): RandomCase {
  const random = randomFrom(one.seed * 29 + 0x3c6ef35f);
  const zone = random.pick(one.group.zones)?.statefulSet;
  if (random.next() > 0.02 || zone === undefined) return one;
  const group: GroupDefinition = { ...one.group, rollout: { ...one.group.rollout, onFailure: 'rollback' } };
  const ledgers = one.snapshot.ledgers.map((ledger): Ledger => {
    if (ledger.run === undefined) return ledger;
    return { ...ledger, run: withFields(ledger.run, { kind: 'rollout', outcome: 'failed', failedMs: kitNowMs - 60_000 }) };
  });
  const isMissing = random.next() < 0.5;
  const statefulSets = one.snapshot.statefulSets.filter(({ name }) => !isMissing || name !== zone);
  const pods = one.snapshot.pods.map((view) => (view.statefulSet === zone ? { ...view, pods: { unknown: 'forbidden' } } : view));
  return { ...one, group, snapshot: { ...one.snapshot, groups: [group], ledgers, statefulSets, pods } };
}

/** Draws what is known of the webhook on pod creation: mostly nothing, as in a plan from manifests, or that it works. */
function randomWebhook(seed: number): Pick<Snapshot, 'webhookProblems'> {
  const lot = randomFrom(seed * 19 + 0x2f6e2b1).next();
  if (lot < 0.5) return {};
  if (lot < 0.94) return { webhookProblems: {} };
  if (lot < 0.96) return { webhookProblems: { pins: 'it does not exist' } };
  return { webhookProblems: lot < 0.98 ? { pins: { unknown: 'forbidden' } } : { coverage: 'it does not cover a zone' } };
}

interface Known {
  readonly group: GroupDefinition;
  readonly random: Random;
  readonly isTakenOver: boolean;
  readonly snapshot: Pick<Snapshot, 'statefulSets' | 'pods'>;
}

function retry(random: Random): IntentView {
  const atMs = kitNowMs - random.below(120_000);
  const requestedBy = { user: 'anna', groups: ['oncall'], atMs };
  return { namespace: 'mimir', name: 'retry', group: 'ingester', action: 'retry', runId: 'run-1', requestedBy };
}

/** Draws the ledger: the pin of every pod, sometimes without some pins, and attempts. */
function pinnedLedger(ledger: Ledger, known: Known): Ledger {
  const { group, random, isTakenOver, snapshot } = known;
  const chance = (share: number): boolean => random.next() < share;
  const pins: Pin[] = [];
  const claims: Claim[] = [...ledger.claims];
  const tries = chance(0.3) ? 0.15 : 0.01;
  for (const zone of group.zones) {
    const set = snapshot.statefulSets.find(({ name }) => name === zone.statefulSet);
    if (set === undefined || isTakenOver) continue;
    const { currentRevision, updateRevision } = set.status;
    const pods = podsOf(snapshot, set);
    for (let ordinal = 0; ordinal < set.replicas; ordinal += 1) {
      const pod = pods.find((one) => one.ordinal === ordinal);
      const atMs = kitNowMs - random.below(600_000);
      const common = { zone: zone.name, ordinal, revision: updateRevision, placements: 1 + random.below(2), atMs };
      const lot = random.next();
      if (pod === undefined) {
        if (lot < 0.6) pins.push({ ...common, replaces: `gone-${ordinal}` });
      } else if (pod.revision !== updateRevision && lot < tries) {
        // The pod came back without the webhook; or its deletion is claimed, or was claimed and never happened.
        const replaces = chance(0.6) ? `gone-${ordinal}` : pod.uid;
        pins.push({ ...common, replaces });
        if (replaces === pod.uid && chance(0.5)) claims.push({ verb: 'evictPod', zone: zone.name, uid: pod.uid, ordinal, atMs });
      } else if (pod.revision === updateRevision && lot < 0.1) {
        pins.push({ ...common, replaces: `gone-${ordinal}` });
      } else if (pod.revision !== currentRevision && lot < 0.95) {
        pins.push({ zone: zone.name, ordinal, revision: pod.revision, placements: 0 });
      } else if (lot > 0.995) {
        pins.push({ zone: zone.name, ordinal, revision: random.pick(['rev-0', ...revisions]) ?? 'rev-0', placements: 0 });
      }
    }
  }
  const run = ledger.run === undefined ? {} : { run: withPrevious(ledger.run, known) };
  return { ...ledger, ...run, claims, ...(pins.length === 0 ? {} : { pins }) };
}

/** Returns the run with the revisions before it. A failed run failed a moment ago or earlier, so its rollback is due soon or at once. */
function withPrevious(run: RunState, { group, snapshot }: Known): RunState {
  const before = group.zones.flatMap(({ name, statefulSet }) => {
    const set = snapshot.statefulSets.find((one) => one.name === statefulSet);
    return set === undefined ? [] : [[name, set.status.currentRevision] as const];
  });
  const previous = Object.fromEntries(before);
  const isRecent = (run.movableMs / 3_600_000) % 2 === 0;
  return run.outcome === 'failed' && isRecent ? { ...run, previous, failedMs: kitNowMs - 500 } : { ...run, previous };
}

/** Draws the revisions; undefined as if they were not read, as in a plan from manifests. */
function randomRevisions({ group, random, snapshot }: Known): readonly RevisionView[] | undefined {
  if (random.next() < 0.6) return undefined;
  const unread = random.next() < 0.2 ? 0.5 : 0.02;
  return snapshot.statefulSets.flatMap(({ name: statefulSet }) =>
    revisions.flatMap((name): readonly RevisionView[] => {
      const lot = random.next();
      if (lot < unread / 2) return [];
      const template = lot < unread ? { unknown: 'forbidden' } : { spec: { containers: [{ name: 'app', image: name }] } };
      return [{ namespace: group.namespace, statefulSet, name, template }];
    }),
  );
}

function podsOf(snapshot: Pick<Snapshot, 'pods'>, set: StatefulSetView): readonly PodView[] {
  const known = snapshot.pods.find(({ statefulSet }) => statefulSet === set.name)?.pods ?? [];
  return 'unknown' in known ? [] : known;
}

type Replacement = Extract<Action, { kind: 'deletePod' | 'evictPod' }>;

interface Zone {
  readonly name: string;
  readonly set: StatefulSetView;
  readonly pods: readonly PodView[];
  readonly going: readonly Replacement[];
  readonly before: readonly Pin[];
  readonly after: readonly Pin[];
  readonly claims: readonly Claim[];
}

/** Returns all violations in the replaced pods, in the written partitions, and in the pins that the ledger has afterwards. */
export function judgePins({ snapshot, group }: RandomCase, decision: GroupDecision, after: Ledger): readonly string[] {
  const [before] = snapshot.ledgers;
  const zones = group.zones.flatMap(({ name, statefulSet }): readonly Zone[] => {
    const set = snapshot.statefulSets.find((one) => one.name === statefulSet);
    const listed = snapshot.pods.find((one) => one.statefulSet === statefulSet)?.pods;
    if (set === undefined || listed === undefined || 'unknown' in listed) return [];
    const isOfZone = ({ zone }: { readonly zone: string }): boolean => zone === name;
    const going = decision.actions.filter(
      (action): action is Replacement => (action.kind === 'deletePod' || action.kind === 'evictPod') && action.zone === name,
    );
    const said = { before: (before?.pins ?? []).filter(isOfZone), after: (after.pins ?? []).filter(isOfZone) };
    return [{ name, set, pods: listed, going, ...said, claims: (before?.claims ?? []).filter(isOfZone) }];
  });
  const places = (after.pins ?? []).map(({ zone, ordinal }) => `${zone} ${ordinal}`);
  return [
    ...(new Set(places).size === places.length ? [] : ['R7: two pins of one pod']),
    ...(zones.some(({ going }) => going.length > 0) && Object.keys(snapshot.webhookProblems ?? {}).length > 0
      ? ['R8: a pod goes without the webhook on pod creation']
      : []),
    ...zones.flatMap((zone) => [
      ...checkGoing(zone, retriesOf(snapshot)),
      ...checkStanding(zone),
      ...checkPartition(zone, decision, decision.actions.length === 0),
    ]),
  ];
}

function retriesOf({ intents }: Snapshot): readonly number[] {
  const known = 'unknown' in intents ? [] : intents;
  return known.flatMap(({ action, requestedBy }) => (action === 'retry' && requestedBy !== undefined ? [requestedBy.atMs] : []));
}

/** Checks R1 to R4: a replaced pod is pinned before, it is replaced at most twice, and no other pod is replaced next to a repeated one. */
function checkGoing({ name, set, pods, going, before, after, claims }: Zone, retries: readonly number[]): readonly string[] {
  const target = set.status.updateRevision;
  const triedOf = (ordinal: number): Pin | undefined => before.find((one) => one.ordinal === ordinal && one.revision === target);
  const isMisplaced = (pod: PodView): boolean => {
    const tried = triedOf(pod.ordinal);
    const isAnnounced = claims.some(({ uid }) => uid === pod.uid);
    return tried !== undefined && !pod.isTerminating && pod.revision !== target && tried.replaces !== pod.uid && !isAnnounced;
  };
  const misplaced = pods.filter(isMisplaced);
  const found: string[] = [];
  for (const { ordinal, uid, pod } of going) {
    const said = after.find((one) => one.ordinal === ordinal);
    if (said?.revision !== target) found.push(`R1: ${pod} goes and comes back at ${said?.revision ?? 'the current revision'}`);
    else if (said.replaces !== uid || said.placements < 1) found.push(`R1: the pin of ${pod} is that of another pod`);
    const tried = triedOf(ordinal);
    const isRetried = tried !== undefined && retries.some((atMs) => atMs > (tried.atMs ?? 0));
    if (tried !== undefined && tried.replaces !== uid && tried.placements >= maxTries && !isRetried)
      found.push(`R3: ${pod} goes for the ${tried.placements + 1}. time`);
    if (misplaced.length > 0 && !misplaced.some((one) => one.uid === uid))
      found.push(`R4: ${pod} goes while ${misplaced[0]?.name} did not come back`);
    if (
      set.updateStrategy === 'RollingUpdate' &&
      pods.some((one) => one.revision !== target && one.ordinal < set.replicas && one.ordinal >= set.partition)
    )
      found.push(`R6: ${pod} goes while the partition of zone ${name} lets others go`);
  }
  return found;
}

/** Checks R2: every existing pod comes back at its revision, or at the one that was decided for it. */
function checkStanding({ set, pods, going, before, after, claims }: Zone): readonly string[] {
  const { currentRevision, updateRevision } = set.status;
  if (currentRevision === '') return [];
  const found: string[] = [];
  for (const pod of pods) {
    if (pod.isTerminating || going.some(({ uid }) => uid === pod.uid)) continue;
    const said = after.find(({ ordinal }) => ordinal === pod.ordinal);
    const was = before.find(({ ordinal }) => ordinal === pod.ordinal);
    const isOfBefore = said !== undefined && was?.revision === said.revision;
    const isOnItsWay = isOfBefore && was.replaces === pod.uid && claims.some(({ uid }) => uid === pod.uid);
    // A pod that came back at another revision stays recorded, even if its second attempt never happened.
    const isAgain = isOfBefore && said.revision === updateRevision && (was.replaces !== pod.uid || was.placements > 1);
    if ((said?.revision ?? currentRevision) !== pod.revision && !isOnItsWay && !isAgain)
      found.push(`R2: ${pod.name} at ${pod.revision} would come back at ${said?.revision ?? currentRevision}`);
  }
  return found;
}

/** Checks R5: the StatefulSet controller must replace no pod. */
function checkPartition({ name, set, claims }: Zone, decision: GroupDecision, isIdle: boolean): readonly string[] {
  const writes = decision.actions.flatMap((action) => (action.kind === 'setPartition' && action.zone === name ? [action] : []));
  const found = writes
    .filter(({ to, pods, uid }) => to !== holding || pods.length > 0 || uid !== set.uid)
    .map(({ to }) => `R5: the partition of zone ${name} becomes ${to}`);
  const isBusy = claims.some(({ verb }) => verb === 'setPartition' || verb === 'scaleDown');
  const isOld = set.status.observedGeneration < set.generation;
  const isHeld = set.updateStrategy !== 'RollingUpdate' || set.partition === holding;
  if (isIdle && !isBusy && !isOld && !isHeld) found.push(`R5: the partition of zone ${name} stays at ${set.partition}`);
  return found;
}
