// Notes of `install`: protection that is not enabled yet, and guessed plurals.
import { enforceLabel, type InstallOptions } from './object.ts';
import { pluralOf } from './rights.ts';

/** Kinds whose plural is known, and not worked out. */
const known: ReadonlySet<string> = new Set([
  'ReplicaTemplate',
  'StatefulSet',
  'Deployment',
  'ReplicaSet',
  'HorizontalPodAutoscaler',
  'RolloutGroup',
]);

/** One sentence each. */
export function installNotes({ scope, isEnforced, isMembersOnly }: InstallOptions): readonly string[] {
  const { namespaces, mirrors } = scope;
  const names = namespaces.length === 0 ? 'NAMESPACE' : namespaces.join(' ');
  const guessed = [...new Set(mirrors.map(({ kind }) => kind))].filter((kind) => !known.has(kind));
  return [
    ...(namespaces.length === 0
      ? ['no namespace is named, so that the rights are those of the whole cluster; name them with --policies or --groups-in']
      : []),
    ...(isEnforced ? [] : [`nothing is refused before this: kubectl label namespace ${names} ${enforceLabel}=true`]),
    ...guessed.map((kind) => `the plural of ${kind} is taken to be ${pluralOf(kind)}; kubectl api-resources knows it`),
    ...(isMembersOnly ? ['webhooks hear only of the StatefulSets that are named now; install again when a group is added'] : []),
  ];
}
