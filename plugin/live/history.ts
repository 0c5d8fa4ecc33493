// Reads the history of a group: its run records (RolloutRun), and the revisions of its StatefulSets that the controller keeps.
import { isStatus } from '../../cluster/request/failure.ts';
import { isJsonObject, type JsonObject } from '../../cluster/request/json.ts';
import { listObjects } from '../../cluster/request/read.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { fieldDiff } from '../../engine/diff/field-diff.ts';
import { ledgerRevisions } from '../../engine/observe/revisions.ts';
import {
  type NextRun,
  podsToReplace,
  revisionBesides,
  revisionOfUndo,
  revisionsOfRollback,
  type UndoFacts,
} from '../../engine/plan/controller.ts';
import type { Images, ShownRun, ShownZone } from '../../engine/publish/run-record.ts';
import { type Snapshot, type StatefulSetView, setNamed } from '../../engine/snapshot.ts';
import { messageOf } from '../../policies/error-message.ts';
import { type RolloutRun, schemas } from '../../policies/schema/kinds.ts';
import { valueAt } from '../../policies/schema/schema-walk.ts';
import { defined } from '../../policies/values/defined.ts';
import { counted, firstOf, zonesText } from '../../policies/wording.ts';
import { ifNotInstalled, rolloutRuns } from '../cluster-snapshot/kinds.ts';
import { itemsOf, listKnown } from '../cluster-snapshot/listing.ts';
import type { Cluster } from '../connection.ts';
import { exitCodes, Failure, notFoundFailure, usageFailure } from '../failure.ts';
import { shortRevision } from '../output/group-text.ts';
import { shortImage } from '../output/image-text.ts';
import { imagesIn } from './facts.ts';
import type { LiveGroup } from './groups.ts';
import type { Member, Members } from './members.ts';
import { type GroupName, nameOf } from './target.ts';

export interface Revision {
  readonly name: string;
  /** Higher is newer. The StatefulSet controller gives a restored revision a new, highest number. 0: only the ledger has the template. */
  readonly number: number;
  readonly template: JsonObject;
}

/**
 * Reads the revisions of each member, the newest first, then those that only the ledger keeps. Throws Failure if the user may not read them.
 */
export async function readRevisions(
  { env, timeoutMs }: Cluster,
  { snapshot, target: { namespace, group: name } }: Members,
  members: readonly Member[],
): Promise<ReadonlyMap<string, readonly Revision[]>> {
  const { items } = await listObjects(env, resources.controllerRevisions, { namespace, site: 'undo.revisions', timeoutMs }).catch(
    (error: unknown) => {
      if (!isStatus(error, 403)) throw error;
      throw new Failure({
        exitCode: exitCodes.notAllowed,
        what: 'earlier revisions cannot be read',
        why: messageOf(error),
        todo: 'ask an administrator to grant the rule {apiGroups: ["apps"], resources: ["controllerrevisions"], verbs: ["list"]}',
      });
    },
  );
  const zones = members.map(({ zone, view }) => ({ name: zone, statefulSet: view.name }));
  const names = new Set(items.map(({ metadata }) => metadata.name));
  const kept = ledgerRevisions(snapshot, { namespace, name, zones }).filter(({ metadata }) => !names.has(metadata.name));
  const all: readonly KubernetesObject[] = [...items, ...kept];
  return new Map(
    members.map(({ zone, view }) => [
      zone,
      all
        .filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner['uid'] === view.uid))
        .flatMap(revisionOf)
        .sort((a, b) => b.number - a.number),
    ]),
  );
}

/** Parses a ControllerRevision, which stores the template as a patch that replaces the whole template. */
function revisionOf(object: KubernetesObject): readonly Revision[] {
  const { revision: number, data } = object;
  const spec = isJsonObject(data) ? data['spec'] : undefined;
  const stored = isJsonObject(spec) ? spec['template'] : undefined;
  if (typeof number !== 'number' || !isJsonObject(stored)) return [];
  const { $patch: _patch, ...template } = stored;
  return [{ name: object.metadata.name, number, template }];
}

export interface UndoTarget {
  /** A number as in `kubectl rollout history`, a hash, or a full name. */
  readonly toRevision?: string;
  /** The commit of an earlier run, or its first characters. */
  readonly toCommit?: string;
  /** The id of an earlier run, or its first characters. */
  readonly toRun?: string;
}

interface UndoHistory extends UndoFacts {
  readonly runs: readonly RunRecord[];
}

/** The revision to which a member returns. `isCounted`: chosen by its number or age among the revisions of this StatefulSet alone. */
interface ChosenRevision {
  readonly to: Revision;
  readonly isCounted: boolean;
}

/**
 * Chooses the revision that an undo restores. In this order: the revision that the options name, the revision of an undo in force, the revision
 * before the present template, the newest revision that is not current. Throws Failure without such a revision.
 */
export function chooseRevision(member: Member, kept: readonly Revision[], target: UndoTarget, history: UndoHistory): ChosenRevision {
  const { zone, view } = member;
  const recorded = target.toRevision === undefined ? revisionNameFor(member, target, history) : undefined;
  const wanted = target.toRevision ?? recorded;
  const others = kept.filter(({ name }) => name !== view.status.updateRevision);
  const to =
    wanted === undefined
      ? (others.find(({ name }) => name === history.before.get(zone)?.to) ?? others[0])
      : kept.find((one) => isNamed(one, view.name, wanted));
  if (to !== undefined) return { to, isCounted: recorded === undefined };
  const names = kept.map(({ name, number }) => `${number} (${shortRevision(name, view.name)})`);
  throw notFoundFailure(
    `StatefulSet ${view.namespace}/${view.name} of zone ${zone} has no revision ${wanted ?? 'other than the current one'}`,
    {
      why: names.length === 0 ? 'the StatefulSet has no revisions' : `the StatefulSet has the revisions ${names.join(', ')}`,
      todo: `name one of them with --zone ${zone} --to-revision, or a run of history with --to-run, or apply the earlier manifests`,
    },
  );
}

function revisionNameFor(
  { zone, view }: Member,
  { toCommit, toRun }: UndoTarget,
  { before, runs, undos, run }: UndoHistory,
): string | undefined {
  if (toCommit !== undefined) return revisionOfCommit(runs, toCommit, zone);
  if (toRun !== undefined) return revisionOfRun(runs, toRun, zone);
  return revisionOfUndo(zone, view.status.updateRevision, { before, undos, run });
}

function isNamed({ name, number }: Revision, statefulSet: string, wanted: string): boolean {
  return wanted === name || (number > 0 && wanted === `${number}`) || name === `${statefulSet}-${wanted}`;
}

/** Returns the revision that the newest run of the commit rolled out in the zone. Throws Failure if no such run or revision exists. */
function revisionOfCommit(runs: readonly RunRecord[], commit: string, zone: string): string {
  if (commit.length < 4) throw usageFailure(`--to-commit ${commit} is too short`, 'give at least four characters');
  const record = runs.find((run) => run.kind !== 'scale' && run.commit?.startsWith(commit) === true);
  const revision = record?.zones.find((one) => one.zone === zone)?.toRevision;
  if (revision !== undefined) return revision;
  throw notFoundFailure(
    record ? `run ${record.id} of commit ${commit} has no revision of zone ${zone}` : `no run of commit ${commit} is recorded`,
    {
      why: 'runs record the commit of the annotation rollout-group.dev/commit, or that of Argo CD or Flux (install --read-commits)',
      todo: 'name a revision with --to-revision',
    },
  );
}

/** Returns the revision of the zone at the end of the run. Throws Failure if no such run or revision exists. */
function revisionOfRun(runs: readonly RunRecord[], id: string, zone: string): string {
  const found = runs.filter((run) => run.kind !== 'scale' && [run.id, ...(run.earlierIds ?? [])].some((one) => one.startsWith(id)));
  const [record, ...others] = found;
  const revision = others.length === 0 ? record?.zones.find((one) => one.zone === zone)?.toRevision : undefined;
  if (revision !== undefined) return revision;
  const missing = record === undefined ? `no run ${id} of pods is recorded` : `run ${record.id} has no revision of zone ${zone}`;
  throw notFoundFailure(others.length > 0 ? `${found.length} runs start with ${id}` : missing, {
    todo: 'name a run of kubectl rollout-group history, or a revision with --to-revision',
  });
}

/** Returns what zones do that do not return: `zones b and c still roll to the new template afterwards, with soaks and approvals`. */
export function rolledText(
  { run, others }: NextRun,
  { still = '', approvals = 'approvals' }: { still?: string; approvals?: string },
): string {
  const when = run?.returning === undefined ? '' : ` afterwards, with soaks and ${approvals}`;
  return `${zonesText(others)} ${still}${others.length === 1 ? 'rolls' : 'roll'} to the new template${when}`;
}

/** The return of a member to a revision. */
interface MemberReturn {
  readonly zone: string;
  readonly set: StatefulSetView;
  readonly to: string;
  /** Absent if Kubernetes no longer keeps the revision, or it may not be read. */
  readonly revision?: Revision | undefined;
  /** The number of outdated pods that stay: no wave includes them, or they already ran an earlier revision before the change. */
  readonly inNoWave?: number;
}

/**
 * Returns lines such as `a: 66bf5b4698 -> 6454649c64 (revision 1, cache:1.0.0), 3 pods`, and the number of all pods. Only members with pods to
 * replace have a line. If no pod is replaced, every member has a line, because its template changes.
 */
export function returnTexts(
  snapshot: Snapshot,
  returns: readonly MemberReturn[],
): { readonly lines: readonly string[]; readonly count: number } {
  const replaced = returns.map((one) => {
    return { ...one, count: Math.max(0, podsToReplace(snapshot, one.set, one.to) - (one.inNoWave ?? 0)) };
  });
  const sum = replaced.reduce((total, { count }) => total + count, 0);
  const shown = sum === 0 ? replaced : replaced.filter(({ count }) => count > 0);
  const lines = shown.map(({ zone, set, to, revision, count }) => {
    const short = (name: string): string => shortRevision(name, set.name);
    const { updateRevision } = set.status;
    const from = to === updateRevision ? (revisionBesides(snapshot, set, to) ?? to) : updateRevision;
    const images = Object.entries(revision === undefined ? {} : imagesOf(revision.template));
    const changed = images
      .filter(([container, image]) => from !== updateRevision || set.images?.[container] !== image)
      .map(([, image]) => shortImage(image));
    const about = [...(revision === undefined || revision.number === 0 ? [] : [`revision ${revision.number}`]), ...new Set(changed)];
    const named = about.length === 0 ? '' : ` (${firstOf(about, 3)})`;
    return `${zone}: ${short(from)} -> ${short(to)}${named}, ${counted(count, 'pod')}`;
  });
  return { lines, count: sum };
}

/** Returns, for each member, the revision to which a rollback of the run returns it, as the engine decides. */
export async function returnsOfRollback(
  cluster: Cluster,
  { snapshot, live: { definition } }: { readonly snapshot: Snapshot | undefined; readonly live: LiveGroup },
  runId: string,
): Promise<readonly MemberReturn[]> {
  if (definition === undefined || snapshot === undefined) return [];
  const { namespace, zones } = definition;
  const targets = revisionsOfRollback(snapshot, definition, runId);
  const revisions = await readKeptRevisions(cluster, namespace);
  return zones.flatMap(({ name: zone, statefulSet }) => {
    const [back, set] = [targets.get(zone), setNamed(snapshot, namespace, statefulSet)];
    if (back === undefined || set === undefined) return [];
    const { to } = back;
    const isChanged = to !== set.status.updateRevision || podsToReplace(snapshot, set, to) > 0;
    return isChanged ? [{ ...back, zone, set, revision: revisions.get(to) }] : [];
  });
}

export type RunRecord = RolloutRun['spec'];

/** Adds images, changed fields and numbers of the revisions that Kubernetes keeps. Without permission to list them, runs stay unchanged. */
export async function readImages(cluster: Cluster, namespace: string, runs: readonly ShownRun[]): Promise<readonly ShownRun[]> {
  const revisions = await readKeptRevisions(cluster, namespace);
  const withImages = (zone: ShownZone): ShownZone => {
    const [from, to] = [revisions.get(zone.fromRevision ?? ''), revisions.get(zone.toRevision ?? '')];
    const changedFields = from && to && changedFieldsOf(from, to);
    return {
      ...zone,
      ...defined({ fromImages: from && imagesOf(from.template), toImages: to && imagesOf(to.template) }),
      ...defined({ changedFields, revisionNumber: to?.number }),
    };
  };
  return runs.map((run) => ({ ...run, zones: run.zones.map(withImages) }));
}

/** Reads the revisions that Kubernetes keeps, by name; none without permission to list them. */
async function readKeptRevisions(cluster: Cluster, namespace: string): Promise<ReadonlyMap<string, Revision>> {
  const listed = itemsOf(await listKnown(cluster, resources.controllerRevisions, [namespace], { site: 'history.revisions' }));
  return new Map(listed.flatMap(revisionOf).map((revision) => [revision.name, revision]));
}

function changedFieldsOf(from: Revision, to: Revision): readonly string[] {
  const [before, after] = [from, to].map(({ template }) => ({ kind: 'StatefulSet', spec: { template } }));
  return before === undefined || after === undefined ? [] : fieldDiff(before, after).map(({ path }) => path);
}

export function imagesOf(template: JsonObject): Images {
  return Object.fromEntries(imagesIn(valueAt(template, ['spec', 'containers'])));
}

interface RunRecords {
  readonly runs: readonly RunRecord[];
  readonly unreadable: readonly string[];
}

/** Reads the run records of a group. Throws Failure if the kind is not installed. */
export async function readRuns({ env, timeoutMs }: Cluster, name: GroupName): Promise<RunRecords> {
  const { items } = await listObjects(env, rolloutRuns, { namespace: name.namespace, site: 'live.runs', timeoutMs }).catch(
    ifNotInstalled(rolloutRuns, `${nameOf(name)} has no history`),
  );
  const runs: RunRecord[] = [];
  const unreadable: string[] = [];
  for (const object of items) {
    const spec = schemas.RolloutRun.shape.spec.safeParse(object['spec']);
    if (!spec.success) unreadable.push(object.metadata.name);
    else if (spec.data.group === name.group) runs.push(spec.data);
  }
  return { runs: runs.sort((a, b) => (a.startedAt < b.startedAt ? 1 : -1)), unreadable };
}
