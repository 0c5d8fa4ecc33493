// Finds what a change of templates ends: the run in progress, with the pods that it updated, and the blocks of the present templates.
import type { GroupDefinition } from '../../policies/definition.ts';
import { fieldDiff, type ObjectContent } from '../diff/field-diff.ts';
import { viewGroup } from '../observe/view.ts';
import { addsZones, changeOf, recordedKind } from '../run/origin.ts';
import { countRevisions, revisionBefore } from '../run/revisions.ts';
import type { RunState } from '../run/run-state.ts';
import type { Snapshot } from '../snapshot.ts';
import type { SupersededRun } from './document.ts';

/**
 * Returns a function that receives the run of every turn, and returns the run that superseded `before`. A run that only adds zones rolls out
 * the same change, so it does not supersede `before`.
 */
export function successorTrace(before: RunState | undefined): (run: RunState | undefined) => RunState | undefined {
  let known = before;
  let successor: RunState | undefined;
  return (run) => {
    if (run !== undefined && known?.outcome === 'running' && known.id === before?.id && run.id !== known.id) successor ??= run;
    known = run;
    if (successor === undefined || before === undefined) return undefined;
    return changeOf(successor) !== changeOf(before) || !addsZones(successor, before) ? successor : undefined;
  };
}

interface Superseding {
  readonly snapshot: Snapshot;
  readonly successor: RunState | undefined;
  /** Returns the pod template of a revision of a StatefulSet, if it is known. */
  readonly templateOf: (statefulSet: string, revision: string) => ObjectContent | undefined;
}

/** Returns the facts about the superseded run of the group; undefined without a successor. */
export function supersededRun(group: GroupDefinition, { snapshot, successor, templateOf }: Superseding): SupersededRun | undefined {
  const { zones, ledger } = viewGroup(snapshot, group);
  const { run } = ledger;
  if (run === undefined || successor === undefined) return undefined;
  const members = zones.filter(({ zone }) => run.target[zone.name] !== undefined);
  const counts = members.map(({ zone: { name }, pods }) => {
    const updated = pods.filter(({ revision }) => revision === run.target[name]).length;
    return { pods: pods.length, updated, replacedAgain: successor.target[name] === run.target[name] ? 0 : updated };
  });
  const sum = (count: (one: (typeof counts)[number]) => number): number => counts.reduce((total, one) => total + count(one), 0);
  const texts = members.flatMap(({ zone: { name, statefulSet }, pods }) => {
    const revisions = [revisionBefore(run, name, countRevisions(pods)), run.target[name]] as const;
    return changesBetween(...revisions, (revision) => templateOf(statefulSet, revision));
  });
  return {
    run: run.id,
    kind: recordedKind(run),
    to: [...new Set(texts)],
    pods: sum(({ pods }) => pods),
    updated: sum(({ updated }) => updated),
    replacedAgain: sum(({ replacedAgain }) => replacedAgain),
  };
}

/** Returns the new images of a change, else its fields, else the new revision. */
function changesBetween(
  from: string | undefined,
  to: string | undefined,
  templateOf: (revision: string) => ObjectContent | undefined,
): readonly string[] {
  if (to === undefined || from === to) return [];
  const [before, after] = [from, to].map((revision) => (revision === undefined ? undefined : templateOf(revision)));
  if (before === undefined || after === undefined) return [to];
  const [old, next] = [before, after].map((template) => ({ kind: 'StatefulSet', spec: { template } }));
  const changes = old === undefined || next === undefined ? [] : fieldDiff(old, next);
  const images = changes.flatMap((change) => (change.path.endsWith('.image') && typeof change.after === 'string' ? [change.after] : []));
  return images.length > 0 ? images : changes.map(({ path }) => path);
}
