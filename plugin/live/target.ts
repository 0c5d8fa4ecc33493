// Group names on the command line: `ingester` in the namespace of the connection, or `mimir/ingester`.
import type { Cluster } from '../connection.ts';
import { usageFailure } from '../failure.ts';

export interface GroupName {
  readonly namespace: string;
  readonly group: string;
}

/** Parses a group name. @throws Failure when the text has neither form. */
export function groupNamed(text: string, { namespace }: Pick<Cluster, 'namespace'>): GroupName {
  const parts = text.split('/');
  const [first = '', second] = parts;
  if (parts.length > 2 || first === '' || second === '') throw usageFailure(`${text} is not a group name`, 'give GROUP or NAMESPACE/GROUP');
  return second === undefined ? { namespace, group: first } : { namespace: first, group: second };
}

/** Returns the name of a group in messages and commands. */
export function nameOf({ namespace, group }: GroupName): string {
  return `${namespace}/${group}`;
}
