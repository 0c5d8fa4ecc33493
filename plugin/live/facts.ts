// Facts on the screen of one group besides its decision: estimated end, roles of zones and image changes.
import type { GroupDefinition } from '../../policies/definition.ts';
import type { Estimation, Estimator } from './estimate.ts';
import type { LiveGroup } from './groups.ts';
import { type ImageChange, imageChanges } from './image-change.ts';
import type { ReadGroups } from './read.ts';

/** Each part is absent while it is unknown. */
export interface Facts {
  readonly estimation?: Estimation;
  /** Roles by zone: `leader` or `follows a`. */
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

/** Returns the roles of the zones. A zone that neither follows nor is followed has no role. */
export function rolesIn({ zones }: Pick<GroupDefinition, 'zones'>): ReadonlyMap<string, string> {
  const leaders = new Set(zones.flatMap(({ follows }) => follows ?? []));
  return new Map(
    zones.flatMap(({ name, follows }): readonly (readonly [string, string])[] => {
      if (follows !== undefined) return [[name, `follows ${follows}`]];
      return leaders.has(name) ? [[name, 'leader']] : [];
    }),
  );
}
