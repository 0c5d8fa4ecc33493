// What was applied and what was not, object by object, and why a plan is stale.
import type { OutputStream } from '../context.ts';
import type { AppliedObject } from '../source/cluster/apply.ts';
import type { BasisChange } from '../source/cluster/plan-basis.ts';
import { plural } from './plural.ts';

export type Shown = Pick<OutputStream, 'paint'>;

export interface ApplyReport {
  /** First digits of the plan's digest, as on the objects. */
  readonly digest: string;
  readonly groups: readonly string[];
  readonly isDryRun: 'client' | 'server' | undefined;
  /** Nothing that was asked for differs from what runs. */
  readonly isNothing: boolean;
  readonly objects: readonly AppliedObject[];
}

const words: Readonly<Record<AppliedObject['result'], string>> = {
  created: 'created',
  configured: 'configured',
  failed: 'FAILED',
  unknown: 'UNKNOWN: no answer came, it may have been applied',
  notAttempted: 'not attempted',
};

/** One line for each object, and one for all of them. */
export function renderApplied({ digest, isDryRun, isNothing, objects }: ApplyReport, { paint }: Shown): string {
  if (isNothing) return 'Nothing to apply: the cluster holds all of it.\n';
  const suffix = isDryRun === undefined ? '' : ` (dry run, ${isDryRun})`;
  const lines = objects.map(({ object, result, message, taken = [] }) => {
    const over = taken.length === 0 ? '' : `; ${renderTaken(taken)}`;
    const text = `${object} ${words[result]}${suffix}${message === undefined ? '' : `: ${message}`}${over}`;
    return result === 'failed' || result === 'unknown' ? paint('red', text) : text;
  });
  return `${[...lines, summary(objects, digest, isDryRun)].join('\n')}\n`;
}

/** The most fields that are named. */
const shownFields = 3;

/** Of fields that `undo` or `restart` had written, and the manifests have from now on. */
export function renderTaken(fields: readonly string[]): string {
  const more = fields.length <= shownFields ? '' : ` and ${fields.length - shownFields} more`;
  return `what undo or restart had written is the manifest's again: ${fields.slice(0, shownFields).join(', ')}${more}`;
}

function summary(objects: readonly AppliedObject[], digest: string, isDryRun: ApplyReport['isDryRun']): string {
  const done = objects.filter(({ result }) => result === 'created' || result === 'configured').length;
  if (isDryRun !== undefined) return `${plural(done, 'object')} would be applied as plan ${digest}. Nothing was changed.`;
  const rest = objects.length - done;
  const left = rest === 0 ? '' : ` ${rest} of ${objects.length} were not: what was applied stays.`;
  return `${plural(done, 'object')} applied as plan ${digest}.${left}`;
}

/** The most changes that are named. */
const shownChanges = 8;

/** `StatefulSet mimir/a changed (replicas), Pod mimir/a-0 replaced and 3 more`. */
export function renderStale(changes: readonly BasisChange[]): string {
  const named = changes.slice(0, shownChanges).map(({ object, what, parts }) => {
    const fields = parts.filter((part) => part !== 'rest');
    return `${object} ${what}${fields.length === 0 ? '' : ` (${fields.join(', ')})`}`;
  });
  const more = changes.length - named.length;
  return `${named.join(', ')}${more === 0 ? '' : ` and ${more} more`}`;
}
