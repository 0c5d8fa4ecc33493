// The rows for the pods of one zone: pods in flight and ranges of the others, or one row per pod.
import { ordinalsIn } from '../../engine/amount.ts';
import type { PublishedDecision, PublishedPod, PublishedZone } from '../../engine/publish/published.ts';
import { shortRevision } from './group-text.ts';
import { ageText } from './plan/plan-text.ts';
import type { Row } from './plan/table-layout.ts';

/** The display of pods that are not in flight. */
export type PodDetail = 'ranges' | 'all';

/** A zone with more pods is shown as ranges. */
const rowLimit = 10_000;

/** Returns the rows. The published status names the pods in flight; for all others only the revision is known. */
export function podRows(zone: PublishedZone, { pods }: PublishedDecision, nowMs: number, detail: PodDetail): readonly Row[] {
  const moving = pods.filter((pod) => pod.zone === zone.zone);
  const every = detail === 'all' ? allRows(zone, moving, nowMs) : undefined;
  if (every !== undefined) return every;
  return [...moving.map((pod) => movingRow(pod, nowMs)), ...(zone.revisions.length > 1 ? rangeRows(zone) : [])];
}

/** Returns one row per pod, sorted by ordinal, or undefined if the ordinals cannot be parsed. */
function allRows(zone: PublishedZone, moving: readonly PublishedPod[], nowMs: number): readonly Row[] | undefined {
  const { revisions, statefulSet, updated } = zone;
  const rows = new Map<number, Row>();
  for (const [index, { revision, ordinals: ranges }] of revisions.entries()) {
    const ordinals = ordinalsIn(ranges, rowLimit - rows.size);
    if (ordinals === undefined) return undefined;
    const state = updated > 0 && index === revisions.length - 1 ? 'updated' : 'outdated';
    const short = shortRevision(revision, statefulSet);
    for (const ordinal of ordinals) rows.set(ordinal, { cells: [`  ${statefulSet}-${ordinal}`, state, short, '', '', ''] });
  }
  for (const pod of moving) {
    const ordinal = Number(pod.pod.slice(statefulSet.length + 1));
    rows.set(ordinal, movingRow(pod, nowMs, rows.get(ordinal)?.cells[2]));
  }
  return [...rows].sort(([a], [b]) => a - b).map(([, row]) => row);
}

function movingRow({ pod, state, reason, node, sinceMs }: PublishedPod, nowMs: number, revision = ''): Row {
  const info = [reason, node === undefined || node === '' ? undefined : node].filter((part) => part !== undefined).join(', ');
  return { cells: [`  ${pod}`, state, revision, '0/1', sinceMs === undefined ? '' : ageText(sinceMs, nowMs), info] };
}

/** Returns one row per revision, so that 200 pods fit on a screen. */
function rangeRows({ revisions, statefulSet }: PublishedZone): readonly Row[] {
  return revisions.map(({ revision, ordinals }, index) => ({
    cells: [`  ${ordinals}`, index === revisions.length - 1 ? 'updated' : 'outdated', shortRevision(revision, statefulSet), '', '', ''],
  }));
}
