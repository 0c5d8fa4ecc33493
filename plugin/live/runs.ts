// The records of past rollouts of a group (RolloutRun), the newest first.
import { isStatus } from '../../cluster/request/failure.ts';
import { listObjects } from '../../cluster/request/read.ts';
import { type RolloutRun, schemas } from '../../policies/schema/kinds.ts';
import { notInstalled, rolloutRuns } from '../cluster-snapshot/kinds.ts';
import type { Cluster } from '../connection.ts';
import { type GroupName, nameOf } from './target.ts';

export type RunRecord = RolloutRun['spec'];

interface RunRecords {
  readonly runs: readonly RunRecord[];
  /** Names of objects that this version cannot read. */
  readonly unreadable: readonly string[];
}

/** Reads the run records of a group. @throws Failure when the kind is not installed. */
export async function readRuns({ env, timeoutMs }: Cluster, name: GroupName): Promise<RunRecords> {
  const { items } = await listObjects(env, rolloutRuns, { namespace: name.namespace, site: 'live.runs', timeoutMs }).catch(
    (error: unknown) => {
      throw isStatus(error, 404) ? notInstalled(rolloutRuns, `${nameOf(name)} has no history`) : error;
    },
  );
  const runs: RunRecord[] = [];
  const unreadable: string[] = [];
  for (const object of items) {
    const spec = schemas.RolloutRun.shape.spec.safeParse(object['spec']);
    if (!spec.success) unreadable.push(object.metadata.name);
    else if (spec.data.group === name.group) runs.push(spec.data);
  }
  return { runs: runs.sort((a, b) => (a.startedAt < b.startedAt ? 1 : -1)), unreadable };
}
