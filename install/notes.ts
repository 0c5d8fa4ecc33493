// Notes of `install`: protection that is not enabled yet, and guessed plurals.
import { enforceLabel, type InstallOptions } from './object.ts';
import { pluralOf } from './rights.ts';

/** Kinds with a known plural. */
const known: ReadonlySet<string> = new Set([
  'ReplicaTemplate',
  'StatefulSet',
  'Deployment',
  'ReplicaSet',
  'HorizontalPodAutoscaler',
  'RolloutGroup',
]);

/** Returns the notes, one sentence each. */
export function installNotes({ scope, isEnforced, isMembersOnly }: InstallOptions): readonly string[] {
  const { namespaces, mirrors } = scope;
  const names = namespaces.length === 0 ? 'NAMESPACE' : namespaces.join(' ');
  const guessed = [...new Set(mirrors.map(({ kind }) => kind))].filter((kind) => !known.has(kind));
  return [
    ...(namespaces.length === 0
      ? ['no namespace is named, so the agent gets rights in the whole cluster; to limit them, use --policies or --groups-in']
      : []),
    ...(isEnforced ? [] : [`enforcement is off until you run: kubectl label namespace ${names} ${enforceLabel}=true`]),
    ...guessed.map((kind) => `the plural of ${kind} is assumed to be ${pluralOf(kind)}; to check it, run: kubectl api-resources`),
    ...(isMembersOnly ? ['webhooks receive requests only for the StatefulSets named now; install again after you add a group'] : []),
  ];
}
