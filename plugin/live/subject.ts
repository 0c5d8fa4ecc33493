// Finds the subject of a name: a group, a StatefulSet of a group, or a pod.
import { exitCodes, Failure } from '../failure.ts';
import type { LiveGroup } from './groups.ts';
import type { ReadGroups } from './read.ts';
import { releaseFailure } from './removed-group.ts';
import { type GroupName, nameOf } from './target.ts';

export interface Subject {
  /** Present for a StatefulSet or a pod. */
  readonly zone?: string;
  readonly pod?: string;
}

interface FoundSubject {
  readonly live: LiveGroup;
  readonly subject: Subject;
}

/** Finds a group, else a StatefulSet, else a pod of that name. @throws Failure when there is no match. */
export function findSubject({ groups, listing }: Pick<ReadGroups, 'groups' | 'listing'>, wanted: GroupName): FoundSubject {
  const inNamespace = groups.filter(({ decision }) => decision.namespace === wanted.namespace);
  const group = inNamespace.find(({ decision }) => decision.group === wanted.group);
  if (group !== undefined) return { live: group, subject: {} };
  const name = wanted.group;
  for (const live of inNamespace) {
    for (const { zone, statefulSet } of live.decision.zones) {
      if (statefulSet === name) return { live, subject: { zone } };
      if (name.startsWith(`${statefulSet}-`) && /^\d+$/.test(name.slice(statefulSet.length + 1)))
        return { live, subject: { zone, pod: name } };
    }
  }
  const released = releaseFailure(listing, wanted);
  if (released !== undefined) throw released;
  throw new Failure({
    exitCode: exitCodes.notFound,
    what: `${nameOf(wanted)} is not a group, nor a StatefulSet or pod of a group`,
    todo: kindWords.test(wanted.namespace)
      ? `give the name without its kind: ${name}`
      : `list the groups: kubectl rollout-group get -n ${wanted.namespace}`,
  });
}

/** As in `kubectl describe pod/NAME`; here the first part is the namespace. */
const kindWords = /^(?:po|pods?|sts|statefulsets?|rolloutgroups?)$/;
