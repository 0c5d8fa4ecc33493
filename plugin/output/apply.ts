// Renders the result of apply object by object, and the changes that make a plan stale.

import { counted, firstOf } from '../../policies/wording.ts';
import type { OutputStream } from '../context.ts';
import type { AppliedObject } from '../source/cluster/apply.ts';
import type { BasisChange } from '../source/cluster/plan-basis.ts';
import { takenText } from '../source/cluster/server-apply.ts';

export interface ApplyReport {
  /** The first digits of the plan digest, as in the annotation of the objects. */
  readonly digest: string;
  readonly groups: readonly string[];
  readonly isDryRun: 'client' | 'server' | undefined;
  /** True if no requested object differs from the cluster. */
  readonly isNothing: boolean;
  readonly objects: readonly AppliedObject[];
}

const words: Readonly<Record<AppliedObject['result'], string>> = {
  created: 'created',
  configured: 'configured',
  failed: 'FAILED',
  unknown: 'UNKNOWN: no response; it may have been applied',
  notAttempted: 'not attempted',
};

export function renderApplied({ digest, isDryRun, isNothing, objects }: ApplyReport, { paint }: Pick<OutputStream, 'paint'>): string {
  if (isNothing) return 'Nothing to apply: the cluster already has the requested state.\n';
  const suffix = isDryRun === undefined ? '' : ` (dry run, ${isDryRun})`;
  const lines = objects.map(({ object, result, message, taken = [] }) => {
    const over = taken.length === 0 ? '' : `; ${takenText(taken)}`;
    const text = `${object} ${words[result]}${suffix}${message === undefined ? '' : `: ${message}`}${over}`;
    return result === 'failed' || result === 'unknown' ? paint('red', text) : text;
  });
  return `${[...lines, summary(objects, digest, isDryRun)].join('\n')}\n`;
}

function summary(objects: readonly AppliedObject[], digest: string, isDryRun: ApplyReport['isDryRun']): string {
  const done = objects.filter(({ result }) => result === 'created' || result === 'configured').length;
  if (isDryRun !== undefined) return `${counted(done, 'object')} would be applied as plan ${digest}. Nothing was changed.`;
  const unknown = objects.filter(({ result }) => result === 'unknown').length;
  const rest = objects.length - done - unknown;
  const left = [...(rest === 0 ? [] : [`${rest} not applied`]), ...(unknown === 0 ? [] : [`${unknown} unknown`])].join(', ');
  return `${counted(done, 'object')} applied as plan ${digest}.${left === '' ? '' : ` ${left}; the applied objects stay.`}`;
}

/** Returns `StatefulSet mimir/a changed (replicas), Pod mimir/a-0 replaced and 3 more`. */
export function renderStale(changes: readonly BasisChange[]): string {
  const named = changes.map(({ object, what, parts }) => {
    const fields = parts.filter((part) => part !== 'rest');
    return `${object} ${what}${fields.length === 0 ? '' : ` (${fields.join(', ')})`}`;
  });
  return firstOf(named, 8);
}
