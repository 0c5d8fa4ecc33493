// Checks that an undo returns all zones to one template, because each StatefulSet counts its own revisions.
import { imageOfZone } from '../../engine/decide/roll.ts';
import type { ObjectContent } from '../../engine/diff/field-diff.ts';
import { minuteText } from '../../policies/instant.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { firstOf } from '../../policies/wording.ts';
import { siblingDifferences } from '../difference.ts';
import { type Failure, refusedFailure } from '../failure.ts';
import { shortRevision } from '../output/group-text.ts';
import { shortImage } from '../output/image-text.ts';
import { alignTable } from '../output/text.ts';
import { imagesOf, type Revision, type RunRecord } from './history.ts';
import type { Member } from './members.ts';
import { type GroupName, nameOf } from './target.ts';

interface ZoneReturn {
  readonly member: Member;
  readonly to: Revision;
}

/**
 * Returns the fields in which the chosen templates differ between zones. Leaves out the differences that the zones have now, such as an
 * argument of one zone: an undo keeps these. Other images in zones are no setting of the zones, but another change, unless only their
 * registries differ.
 */
export function newDifferences({ namespace, group: name }: GroupName, returns: readonly ZoneReturn[]): readonly string[] {
  const zones = returns.map(({ member }) => ({ name: member.zone, statefulSet: member.view.name }));
  const compare = (templateOf: (one: ZoneReturn) => unknown) => {
    const objects = returns.map((one) => memberWith(one.member, templateOf(one)));
    const { siblings = [], perZone = [] } = siblingDifferences(objects, [{ namespace, name, zones }])[0] ?? {};
    return { changes: siblings.flatMap(({ zone, changes }) => changes.map((change) => ({ zone, ...change }))), perZone };
  };
  const [now, then] = [compare(({ member }) => templateIn(member)), compare(({ to }) => to.template)];
  const kept = new Set(now.changes.map(canonicalJson));
  const isImage = (path: string): boolean => path.endsWith('.image');
  const changed = then.changes.filter((change) => isImage(change.path) || !kept.has(canonicalJson(change))).map(({ path }) => path);
  const ofZones = then.perZone.filter((path) => isImage(path) || !now.perZone.includes(path));
  return [...new Set([...changed, ...ofZones])];
}

function templateIn({ object }: Member): unknown {
  return Object(object['spec']).template;
}

function memberWith({ view: { namespace, name } }: Member, template: unknown): ObjectContent {
  return { kind: 'StatefulSet', metadata: { namespace, name }, spec: { template: withImagesOfZone(template) } };
}

/** Returns the template with the images of its containers as zones are compared, without registries. */
function withImagesOfZone(template: unknown): unknown {
  const shorten = (container: unknown): unknown =>
    isRecord(container) && typeof container['image'] === 'string' ? { ...container, image: imageOfZone(container['image']) } : container;
  const spec = isRecord(template) ? template['spec'] : undefined;
  if (!isRecord(template) || !isRecord(spec)) return template;
  const lists = ['containers', 'initContainers'].flatMap((name) => {
    const list = spec[name];
    return Array.isArray(list) ? [[name, list.map(shorten)] as const] : [];
  });
  return { ...template, spec: { ...spec, ...Object.fromEntries(lists) } };
}

interface Mismatch {
  readonly returns: readonly ZoneReturn[];
  readonly fields: readonly string[];
  /** The newest first. */
  readonly runs: readonly RunRecord[];
  /** The revisions that Kubernetes keeps, by zone. */
  readonly kept: ReadonlyMap<string, readonly Revision[]>;
}

/** Reports whether Kubernetes keeps the revisions of the run in all zones, and they are one template. */
function isOneTemplate(target: GroupName, { zones }: RunRecord, { returns, kept }: Mismatch): boolean {
  const ofRun = returns.flatMap(({ member }) => {
    const name = zones.find(({ zone }) => zone === member.zone)?.toRevision;
    const to = kept.get(member.zone)?.find((one) => one.name === name);
    return to === undefined ? [] : [{ member, to }];
  });
  return ofRun.length === returns.length && newDifferences(target, ofRun).length === 0;
}

/** Returns the failure of an undo whose revisions are not the same template, with the commands that name one template. */
export function mismatchFailure(target: GroupName, mismatch: Mismatch): Failure {
  const { returns, fields, runs } = mismatch;
  const undo = `kubectl rollout-group undo ${nameOf(target)}`;
  const rolledOut = ({ member, to }: ZoneReturn, { zones }: RunRecord): boolean =>
    zones.some(({ zone, toRevision }) => zone === member.zone && toRevision === to.name);
  const rows = returns.map((one) => {
    const { member, to } = one;
    const run = runs.find((record) => rolledOut(one, record));
    const images = [...new Set(Object.values(imagesOf(to.template)).map(shortImage))];
    const about = run === undefined ? 'no recorded run' : `run ${run.id}, ${minuteText(Date.parse(run.startedAt))}`;
    return { cells: [member.zone, `${to.number} (${shortRevision(to.name, member.view.name)})`, firstOf(images, 3), about] };
  });
  const titles = ['ZONE', 'REVISION', 'IMAGES', 'ROLLED OUT BY'];
  const { header, lines } = alignTable(
    titles.map((title) => ({ title, align: 'left' as const })),
    rows,
    { width: undefined, ellipsis: '' },
  );
  const whole = runs.filter((run) => isOneTemplate(target, run, mismatch));
  const ids = [...new Set(returns.flatMap((one) => whole.find((record) => rolledOut(one, record))?.id ?? []))];
  const commands = [
    ...ids.map((id) => `${undo} --to-run ${id} --yes`),
    ...returns.map(({ member, to }) => `${undo} --zone ${member.zone} --to-revision ${to.number} --yes`),
  ];
  const numbers = [...new Set(returns.map(({ to }) => to.number))];
  const which = numbers.length === 1 ? `revision ${numbers[0]}` : 'the previous revision';
  return refusedFailure(`${which} is not the same template in all zones of ${nameOf(target)}`, {
    why: [`each StatefulSet counts its own revisions; they differ in ${firstOf(fields, 3)}`, header, ...lines].join('\n       '),
    todo: [`name one template${ids.length === 0 ? ', zone by zone' : ' by its run, or return zone by zone'}`, ...commands].join(
      '\n       ',
    ),
  });
}
