// ControllerRevisions that pins need, read by name and kept: one of them never changes.
import type { ClusterEnv } from '../../cluster/env.ts';
import { getObject } from '../../cluster/request/read.ts';
import { resources } from '../../cluster/request/resource.ts';
import { contextOf } from '../../engine/context.ts';
import { observeTemplate } from '../../engine/observe/revisions.ts';
import { withRollback } from '../../engine/run/rollback.ts';
import type { RevisionView, Snapshot } from '../../engine/snapshot.ts';
import { wantedRevisions } from '../../engine/strategies/pinned/pins.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { messageOf } from '../../policies/error-message.ts';
import { traitsOf } from '../../policies/strategies.ts';

interface RevisionParts {
  readonly env: Pick<ClusterEnv, 'kubernetes'>;
  /** Timeout of each request in milliseconds. */
  readonly timeoutMs: number;
}

/** Revisions kept between turns, by StatefulSet and name. */
interface RevisionMemory {
  revisions: ReadonlyMap<string, RevisionView>;
}

/**
 * The snapshot with the revisions that the group's pins need and its ledger has no copy of. Never rejects: one that cannot be read is
 * unknown, and is asked for again in the next turn. Groups that pinned no pods need none.
 */
export async function withRevisions(
  { env, timeoutMs }: RevisionParts,
  group: GroupDefinition,
  memory: RevisionMemory,
  snapshot: Snapshot,
): Promise<Snapshot> {
  if (!traitsOf(group).pinsPods) return snapshot;
  const { namespace } = group;
  // A run that goes back begins in this very turn, and asks for what no pod may run any more.
  const wanted = wantedRevisions(withRollback(contextOf(snapshot, group)).view);
  if (wanted.length === 0) {
    memory.revisions = new Map();
    return { ...snapshot, revisions: [] };
  }
  const uids = new Map(snapshot.statefulSets.filter((set) => set.namespace === namespace).map(({ name, uid }) => [name, uid]));
  const entries = await Promise.all(
    wanted.map(async ({ statefulSet, name }): Promise<readonly [string, RevisionView]> => {
      const owner = uids.get(statefulSet) ?? '';
      const key = `${owner} ${name}`;
      const known = memory.revisions.get(key);
      if (known !== undefined) return [key, known];
      return [key, { namespace, statefulSet, name, template: await readTemplate(env, { namespace, name, owner }, timeoutMs) }];
    }),
  );
  memory.revisions = new Map(entries.filter(([, { template }]) => !('unknown' in template)));
  return { ...snapshot, revisions: entries.map(([, revision]) => revision) };
}

async function readTemplate(
  env: RevisionParts['env'],
  { namespace, name, owner }: { readonly namespace: string; readonly name: string; readonly owner: string },
  timeoutMs: number,
): Promise<RevisionView['template']> {
  try {
    const found = await getObject(env, resources.controllerRevisions, { namespace, name }, { site: 'turn.revision', timeoutMs });
    if (found === undefined) return { unknown: 'it does not exist' };
    return observeTemplate(found, owner);
  } catch (error) {
    return { unknown: messageOf(error) };
  }
}
