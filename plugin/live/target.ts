// Which group is meant: `ingester` in the namespace of the connection, or `mimir/ingester`.
import type { Cluster } from '../connection.ts';
import { usageFailure } from '../failure.ts';

export interface GroupName {
  readonly namespace: string;
  readonly group: string;
}

/** @throws Failure when the text is neither form. */
export function groupNamed(text: string, { namespace }: Pick<Cluster, 'namespace'>): GroupName {
  const parts = text.split('/');
  const [first = '', second] = parts;
  if (parts.length > 2 || first === '' || second === '') throw usageFailure(`${text} names no group`, 'write GROUP or NAMESPACE/GROUP');
  return second === undefined ? { namespace, group: first } : { namespace: first, group: second };
}

/** How the group is named in messages and in commands to copy. */
export function nameOf({ namespace, group }: GroupName): string {
  return `${namespace}/${group}`;
}
