// What a screen of one group says besides its decision, from what has been read already: when it ends, who follows whom, and which images it brings.
import type { GroupDefinition } from '../../policies/definition.ts';
import type { Estimation, Estimator } from './estimate.ts';
import type { LiveGroup } from './groups.ts';
import { type ImageChange, imageChanges } from './image-change.ts';
import type { ReadGroups } from './read.ts';

/** Each part is absent while it is not known. */
export interface Facts {
  readonly estimation?: Estimation;
  /** By name of the zone: `leader` or `follows a`. */
  readonly roles?: ReadonlyMap<string, string>;
  readonly changes?: readonly ImageChange[];
}

export function factsOf(read: ReadGroups, live: LiveGroup, nowMs: number, estimate: Estimator): Facts {
  const { namespace, group: name } = live.decision;
  const definition = read.world.policies.groups.find((group) => group.namespace === namespace && group.name === name);
  return {
    estimation: estimate(read, live, nowMs),
    changes: imageChanges(live.decision, read.listing),
    ...(definition === undefined ? {} : { roles: rolesIn(definition) }),
  };
}

/** A zone that follows none is the leader when others follow it; a zone that neither follows nor leads has no role. */
export function rolesIn({ zones }: Pick<GroupDefinition, 'zones'>): ReadonlyMap<string, string> {
  const leaders = new Set(zones.flatMap(({ follows }) => follows ?? []));
  return new Map(
    zones.flatMap(({ name, follows }): readonly (readonly [string, string])[] => {
      if (follows !== undefined) return [[name, `follows ${follows}`]];
      return leaders.has(name) ? [[name, 'leader']] : [];
    }),
  );
}
