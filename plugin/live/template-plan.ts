// Plans new pod templates of members, as `plan` and `apply` do, before a verb writes the templates. Describes the pods to replace.
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { templateStops } from '../../engine/decide/stops.ts';
import type { ObjectContent } from '../../engine/diff/field-diff.ts';
import { ledgerRevisions, withRevisions } from '../../engine/observe/revisions.ts';
import { viewGroup } from '../../engine/observe/view.ts';
import { defaultAssumptions, type GroupPlan } from '../../engine/plan/document.ts';
import { planGroups } from '../../engine/plan/plan.ts';
import { templateNamed } from '../../engine/plan/running-fields.ts';
import { noWaveTexts } from '../../engine/publish/status.ts';
import { countRevisions } from '../../engine/run/revisions.ts';
import { isUnknown, podsNamed, type Snapshot } from '../../engine/snapshot.ts';
import { counted, firstOf, listed } from '../../policies/wording.ts';
import { itemsOf, listCluster } from '../cluster-snapshot/listing.ts';
import type { Cluster } from '../connection.ts';
import { waitsBesidesStops } from '../output/explain.ts';
import { shortRevision } from '../output/group-text.ts';
import { shortImage } from '../output/image-text.ts';
import { approvalTexts, endedTexts } from '../output/plan/plan-text.ts';
import { imagesOf } from './history.ts';
import type { Member, Members } from './members.ts';

/** The plan of a group whose members get new templates. */
export interface TemplatePlan {
  readonly plan: GroupPlan;
  /** The images that pods run and get, one line for each zone with pods to replace: `b: cache:1.0 (2 pods) -> cache:1.1`. */
  readonly lines: readonly string[];
  /** The zones that keep their template, but whose outdated pods are replaced too, with the numbers of these pods. */
  readonly others: ReadonlyMap<string, number>;
}

/**
 * Plans the group with these templates, by name of the StatefulSet. Returns undefined if the definition of the group cannot be read here.
 * `intents`: the requests after the write.
 */
export async function planTemplates(
  cluster: Cluster,
  { snapshot, live: { definition }, listing, members }: Members,
  templates: ReadonlyMap<string, unknown>,
  intents: Snapshot['intents'] = snapshot.intents,
): Promise<TemplatePlan | undefined> {
  if (definition === undefined) return undefined;
  const stored = itemsOf((await listCluster(cluster, ['revisions'], [definition.namespace])).revisions);
  const revisions = [...stored, ...ledgerRevisions(snapshot, definition)];
  const current: readonly ObjectContent[] = [listing.statefulSets, listing.podBudgets, listing.zoneBudgets].flatMap(itemsOf);
  const changed = new Map<ObjectContent, ObjectContent>(members.map(({ object }) => [object, withTemplate(object, templates)]));
  const desired = current.map((object) => changed.get(object) ?? object);
  const { policies, exceptions, policyDigest, nowMs } = snapshot;
  const [plan] = planGroups({
    groups: [definition],
    desiredGroups: snapshot.groups,
    policies,
    exceptions,
    policyDigest,
    nowMs,
    current,
    revisions,
    desired: withRevisions(desired, current, revisions),
    assumptions: defaultAssumptions,
    running: { ...snapshot, intents },
    intentsBefore: snapshot.intents,
  }).groups;
  if (plan === undefined) return undefined;
  // The templates do not end the block of another zone. A plan would count the pods of that zone, because a retry would replace them.
  const blocked = templateStops(plan.stops ?? []).flatMap(({ rule, zones }) => (rule === 'rolled-back' ? [] : zones));
  const views = viewGroup(snapshot, definition).zones;
  const others = new Map<string, number>();
  const lines = members.flatMap((member) => {
    const { desiredRevision, outdated = [] } = views.find(({ zone }) => zone.name === member.zone) ?? {};
    const template = templates.get(member.object.metadata.name);
    const isFree = template !== undefined || (outdated.length > 0 && !blocked.includes(member.zone));
    const isReplaced = (plan.zones.find(({ zone }) => zone === member.zone)?.restarts ?? 0) > 0;
    if (!isFree || !isReplaced) return [];
    if (template === undefined) others.set(member.zone, outdated.length - inNoWave({ plan }, member.zone));
    const stays = template === undefined ? desiredRevision : undefined;
    return [`${member.zone}: ${replacedText(member, snapshot, { template, stays, revisions })}`];
  });
  return { plan, lines, others };
}

/**
 * Returns texts about the plan: the pods that Kubernetes replaces at once, the run and the blocks that the templates end, the pods that no wave
 * includes, the soaks and approvals of the new run, and the waits that no planned event ends.
 */
export function planTexts(planned: TemplatePlan | undefined): readonly string[] {
  if (planned === undefined) return [];
  // A change of replicas waits for the rollout of the templates themselves.
  const waits = waitsBesidesStops(planned.plan).filter(({ rule, outcome }) => outcome !== 'no' && rule !== 'rollout-in-progress');
  const waitTexts = waits.map(({ rule, outcome, fact }) => (outcome === 'unknown' ? `unknown: ${fact}` : `waits for ${rule}: ${fact}`));
  const atOnce = planned.plan.risks.flatMap(({ code, message }) => (code === 'RG5012' ? [message] : []));
  // The approvals after the block of a template belong to the run that a person starts by ending the block.
  const { checksAfterWait = [], ...plan } = planned.plan;
  const later = planned.lines.length > 0 && templateStops(plan.stops ?? []).length === 0 ? checksAfterWait : [];
  const approvals = approvalTexts({ ...plan, checksAfterWait: later });
  const checks = [...soakTexts({ ...plan, checksAfterWait: later }), ...approvals];
  return [...atOnce, ...endedTexts(planned.plan), ...noWaveTexts(planned.plan.zones), ...checks, ...waitTexts];
}

/** Returns a text such as `waits for the soak of wave canary (1h)` for each soak of a plan, also after its wait. */
function soakTexts({ waves, checksAfterWait = [] }: Pick<GroupPlan, 'waves' | 'checksAfterWait'>): readonly string[] {
  const limits = new Map<string, string | undefined>();
  for (const { name, steps } of waves)
    for (const { rules } of steps.filter(({ kind }) => kind === 'soak')) limits.set(name, rules.find(({ rule }) => rule === 'soak')?.limit);
  for (const { wave, kinds } of checksAfterWait) if (kinds.includes('soak') && !limits.has(wave)) limits.set(wave, undefined);
  return [...limits].map(([wave, limit]) => `waits for the soak of wave ${wave}${limit === undefined ? '' : ` (${limit})`}`);
}

/** Returns the number of pods of the zone that the templates leave outdated, because no wave includes them; 0 if the plan is unknown. */
export function inNoWave(planned: Pick<TemplatePlan, 'plan'> | undefined, zone: string): number {
  return planned?.plan.zones.find((one) => one.zone === zone)?.podsInNoWave ?? 0;
}

function withTemplate(object: KubernetesObject, templates: ReadonlyMap<string, unknown>): KubernetesObject {
  const template = templates.get(object.metadata.name);
  return template === undefined ? object : { ...object, spec: { ...Object(object['spec']), template } };
}

interface Replacement {
  /** The new template; absent if other pods get the revision `stays`. */
  readonly template: unknown;
  /** The revision whose pods are not replaced. */
  readonly stays: string | undefined;
  readonly revisions: readonly unknown[];
}

/** Returns the images that the pods of a member run and those that they get: `cache:1.0 (2 pods) -> cache:1.1`, or `cache:1.1 (3 pods)`. */
function replacedText(
  { object, view: { namespace, name, status } }: Member,
  snapshot: Snapshot,
  { template, stays = '', revisions }: Replacement,
): string {
  const { updateRevision } = status;
  const after = imagesText(template ?? templateNamed(stays, { object, updateRevision, revisions }));
  const known = podsNamed(snapshot, namespace, name) ?? [];
  const counts = new Map<string, number>();
  for (const [revision, pods] of countRevisions(isUnknown(known) ? [] : known)) {
    if (revision === stays) continue;
    const isUpdated = revision === updateRevision && stays === '';
    const images = imagesText(templateNamed(revision, { object, updateRevision, revisions }));
    // If the images are unknown or the same as after the change, the text also names the revision.
    const text = isUpdated || (images !== '' && images !== after) ? images : `${images} at ${shortRevision(revision, name)}`.trim();
    counts.set(text, (counts.get(text) ?? 0) + pods);
  }
  const before = [...counts].sort(([, a], [, b]) => b - a).map(([text, pods]) => `${text} (${counted(pods, 'pod')})`);
  return before.length === 1 && counts.has(after) ? before.join() : `${listed(before, 'and')} -> ${after}`;
}

function imagesText(template: unknown): string {
  return firstOf([...new Set(Object.values(imagesOf(Object(template))).map(shortImage))], 3);
}
