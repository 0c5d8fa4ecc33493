// The writes that a plan begins with: each change of a member is judged as the API server would have it judged, and applied when it passes.
import type { GroupDefinition } from '../../policies/definition.ts';
import type { AdmissionRequest, Judgement } from '../decision.ts';
import { judge } from '../judge/judge.ts';
import { fieldAt } from '../observe/raw.ts';
import type { Snapshot, StatefulSetView } from '../snapshot.ts';
import type { World } from '../world/model.ts';
import { step } from '../world/world.ts';
import type { Refusal } from './document.ts';

interface ChangeRequest {
  readonly group: GroupDefinition;
  readonly groupsBefore: readonly GroupDefinition[];
  readonly world: World;
  /** The desired objects, read. */
  readonly after: Snapshot;
  /** The desired objects, as they are. */
  readonly desired: readonly unknown[];
}

export interface RequestedChanges {
  readonly world: World;
  readonly refused: readonly Refusal[];
}

/** Judges and applies what is asked of each member, in the order of the zones. */
export function requestChanges(request: ChangeRequest): RequestedChanges {
  let { world } = request;
  const refused: Refusal[] = [];
  for (const zone of request.group.zones) {
    const wanted = request.after.statefulSets.find((set) => set.namespace === request.group.namespace && set.name === zone.statefulSet);
    const present = memberOf(world.snapshot, request.group, zone.statefulSet);
    const outcome =
      wanted === undefined ? deletion(request, world, zone.name, present) : change(request, world, { zone: zone.name, present, wanted });
    world = outcome.world;
    refused.push(...outcome.refused);
  }
  return { world, refused };
}

function memberOf(snapshot: Snapshot, group: GroupDefinition, name: string): StatefulSetView | undefined {
  return snapshot.statefulSets.find((set) => set.namespace === group.namespace && set.name === name);
}

function deletion(request: ChangeRequest, world: World, zone: string, present: StatefulSetView | undefined): RequestedChanges {
  if (present === undefined) return { world, refused: [] };
  const asked: AdmissionRequest = { kind: 'deleteStatefulSet', namespace: present.namespace, statefulSet: present.name, dryRun: false };
  const judgement = judgeBoth(request, world, asked);
  return { world, refused: judgement.outcome === 'deny' ? [refusal(`delete StatefulSet ${present.name}`, zone, judgement)] : [] };
}

/** The StatefulSet of a zone as it runs and as it is desired. */
interface MemberChange {
  readonly zone: string;
  readonly present: StatefulSetView | undefined;
  readonly wanted: StatefulSetView;
}

function change(request: ChangeRequest, world: World, { zone, present, wanted }: MemberChange): RequestedChanges {
  if (present === undefined) {
    const status = { ...wanted.status, replicas: 0, readyReplicas: 0, updatedReplicas: 0 };
    return { world: step(world, { kind: 'createStatefulSet', set: { ...wanted, status } }), refused: [] };
  }
  const raw =
    manifestsByName(request.desired).get(`${wanted.namespace}/${wanted.name}`) ?? manifestsByName(request.desired).get(`/${wanted.name}`);
  const revision = wanted.status.updateRevision;
  const isTemplateChanged = revision !== present.status.updateRevision;
  const namesReplicas = raw !== undefined && fieldAt(raw, ['spec', 'replicas']) !== undefined;
  const to = namesReplicas ? wanted.replicas : present.replicas;
  const namesPartition = raw !== undefined && fieldAt(raw, ['spec', 'updateStrategy', 'rollingUpdate', 'partition']) !== undefined;
  const judged = judgeWithCalls(request, world, {
    kind: 'update',
    namespace: wanted.namespace,
    statefulSet: wanted.name,
    from: present.replicas,
    to,
    isTemplateChanged,
    strategy: wanted.updateStrategy,
    ...(namesPartition ? { partition: wanted.partition } : {}),
    via: 'apply',
    dryRun: false,
  });
  if (judged.judgement.outcome !== 'allow') {
    const what =
      to === present.replicas ? `update StatefulSet ${wanted.name}` : `scale StatefulSet ${wanted.name} from ${present.replicas} to ${to}`;
    return { world: judged.world, refused: [refusal(what, zone, judged.judgement)] };
  }
  let changed = withSettings(judged.world, present, namesPartition ? wanted : { ...wanted, partition: unnamedPartition(present, wanted) });
  if (isTemplateChanged) changed = step(changed, { kind: 'setTemplate', namespace: wanted.namespace, statefulSet: wanted.name, revision });
  if (to !== present.replicas)
    changed = step(changed, { kind: 'setReplicas', namespace: wanted.namespace, statefulSet: wanted.name, replicas: to });
  return { world: changed, refused: [] };
}

const manifestIndexes: WeakMap<readonly unknown[], ReadonlyMap<string, unknown>> = new WeakMap();

/** The StatefulSets among the objects by `namespace/name`, without namespace where the manifest names none. Made once for each list. */
function manifestsByName(objects: readonly unknown[]): ReadonlyMap<string, unknown> {
  const known = manifestIndexes.get(objects);
  if (known !== undefined) return known;
  const sets = objects.filter((object) => fieldAt(object, ['kind']) === 'StatefulSet');
  const text = (object: unknown, field: string): string => String(fieldAt(object, ['metadata', field]) ?? '');
  const index = new Map(sets.map((object) => [`${text(object, 'namespace')}/${text(object, 'name')}`, object]));
  manifestIndexes.set(objects, index);
  return index;
}

function refusal(what: string, zone: string, judgement: Judgement): Refusal {
  return { what, zone, message: judgement.message, results: judgement.results };
}

/** Judges a request that removes a protecting label under the group before the change, too. */
function judgeBoth(request: ChangeRequest, world: World, asked: AdmissionRequest): Judgement {
  const now = judge(world.snapshot, asked);
  if (now.outcome === 'deny' || request.groupsBefore.length === 0) return now;
  const before = judge({ ...world.snapshot, groups: request.groupsBefore }, asked);
  return before.outcome === 'deny' ? before : now;
}

/** Makes the calls that a judgement asks for, in the model, and asks again. */
function judgeWithCalls(
  request: ChangeRequest,
  world: World,
  asked: AdmissionRequest,
): { readonly world: World; readonly judgement: Judgement } {
  const first = judgeBoth(request, world, asked);
  if (first.outcome !== 'prepare') return { world, judgement: first };
  let called = world;
  for (const action of first.actions) called = step(called, { kind: 'action', action });
  const second = judgeBoth(request, called, asked);
  return { world: called, judgement: second.outcome === 'prepare' ? { ...second, outcome: 'deny' } : second };
}

/** A field that a manifest omits keeps its value, unless the strategy changes: then the API server sets its default. */
function unnamedPartition(present: StatefulSetView, wanted: StatefulSetView): number {
  return present.updateStrategy === wanted.updateStrategy ? present.partition : wanted.partition;
}

/** Everything but the template and the replicas takes effect at once. */
function withSettings(world: World, present: StatefulSetView, wanted: StatefulSetView): World {
  const { uid, resourceVersion, generation, replicas, status } = present;
  const changed: StatefulSetView = { ...wanted, uid, resourceVersion, generation, replicas, status };
  const statefulSets = world.snapshot.statefulSets.map((set) =>
    set.namespace === present.namespace && set.name === present.name ? changed : set,
  );
  return { ...world, snapshot: { ...world.snapshot, statefulSets } };
}
