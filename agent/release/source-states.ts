// Reports which sources of definitions are completely known. Only such a source can prove that a group was deleted.
import type { Definitions, SourceState } from '../../engine/release/terms.ts';
import type { AgentConfig } from '../config.ts';
import type { ActivePolicies, PolicySource } from '../policies/policies.ts';
import type { Caches } from '../watched/caches.ts';

interface SourceParts {
  readonly config: Pick<AgentConfig, 'policySources'>;
  readonly hasDirectory: boolean;
  readonly caches: Pick<Caches, 'degradations'>;
  readonly policies: Pick<PolicySource, 'degradation'>;
}

/** Returns the state of each source for these policies. */
export function sourceStates({ config, hasDirectory, caches, policies }: SourceParts, { unsure }: ActivePolicies): Definitions['sources'] {
  const { policySources: followed } = config;
  const watch = (id: string) => caches.degradations().find((degradation) => degradation.id === id);
  const objects = watch('watch/rolloutgroups');
  return {
    directory: stateOf(followed.includes('directory') && hasDirectory, policies.degradation()?.message ?? unsure.directory),
    objects: stateOf(followed.includes('objects') && objects?.reason !== 'missing', objects?.message ?? unsure.objects),
    adopted: stateOf(followed.includes('adopted'), watch('watch/statefulsets')?.message),
  };
}

function stateOf(isThere: boolean, problem: string | undefined): SourceState {
  if (!isThere) return 'none';
  return problem === undefined ? 'whole' : { unknown: problem };
}
