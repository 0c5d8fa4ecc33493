// Parses group names and durations of the command line. A group is `ingester` in the namespace of the connection, `mimir/ingester`, or
// `rolloutgroup/ingester`.
import type { GroupName } from '../../engine/notify/texts.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { parseDuration } from '../../policies/duration.ts';
import type { Cluster } from '../connection.ts';
import { usageFailure } from '../failure.ts';

export type { GroupName };

/** The kinds before a name, as in `kubectl get KIND/NAME`. The namespace of such a name is that of the connection. */
const groupKinds = /^(?:rg|rolloutgroups?(?:\.rollout-group\.dev)?)\//i;
const memberKinds = /^(?:(?:sts|statefulsets?)(?:\.apps)?|po|pods?)\//i;

/** Reports whether the text names a StatefulSet or a pod. */
export function isMemberName(text: string): boolean {
  return memberKinds.test(text);
}

/**
 * Returns a note if the user names a StatefulSet or a pod, because the verb then acts on the whole group. `parts` are the flags of the verb
 * that name a part of the group; with one of them there is no note.
 */
export function wholeGroupNotes(
  verb: string,
  parts: readonly string[],
  { group = '', zone, pod }: { readonly group?: string; readonly zone?: unknown; readonly pod?: unknown },
): readonly string[] {
  if (!isMemberName(group) || zone !== undefined || pod !== undefined || parts.length === 0) return [];
  return [`${group} stands for its group, and ${verb} acts on the whole group; for a part of it, add ${parts.join(' or ')}`];
}

/** Parses the name of a group, or of a StatefulSet or pod with its kind. Throws Failure if the text has another form. */
export function groupNamed(text: string, { namespace }: Pick<Cluster, 'namespace'>): GroupName {
  const parts = text.replace(groupKinds, '').replace(memberKinds, '').split('/');
  const [first = '', second] = parts;
  if (parts.length > 2 || first === '' || second === '')
    throw usageFailure(`${text} is not a group name`, 'give GROUP, NAMESPACE/GROUP or KIND/NAME');
  return second === undefined ? { namespace, group: first } : { namespace: first, group: second };
}

/** Reports whether the text names the group: GROUP in any namespace, NAMESPACE/GROUP, or KIND/NAME of the group, a member or a pod. */
export function isNamed({ namespace, name, zones }: Pick<GroupDefinition, 'namespace' | 'name' | 'zones'>, text: string): boolean {
  const member = text.replace(memberKinds, '');
  if (member !== text) return zones.some(({ statefulSet }) => member === statefulSet || member.replace(/-\d+$/, '') === statefulSet);
  return [name, `${namespace}/${name}`].includes(text.replace(groupKinds, ''));
}

/** Returns the name of a group in messages and commands. */
export function nameOf({ namespace, group }: GroupName): string {
  return `${namespace}/${group}`;
}

/** Parses the flag --timeout, in milliseconds. Returns undefined without a limit: if the flag is absent or 0. Throws as durationFlag. */
export function timeoutFlag(text: string | undefined): number | undefined {
  return text === undefined ? undefined : durationFlag('--timeout', text) || undefined;
}

/** Parses the duration of a flag until the end of a request, in milliseconds above 0. Throws Failure for other text. */
export function endFlag(flag: string, text: string): number {
  const ms = durationFlag(flag, text);
  if (ms === 0) throw usageFailure(`${flag} ${text} is too short`, 'give a duration above 0, such as 2h');
  return ms;
}

/** Parses the duration of a flag, in milliseconds. Throws Failure if the text is not a duration. */
export function durationFlag(flag: string, text: string, todo = 'use a form such as 30s, 10m, 2h or 1h30m'): number {
  const ms = parseDuration(text);
  if (ms === undefined) throw usageFailure(`${flag} ${text} is not a duration`, todo);
  return ms;
}
