import { describe, expect, it } from 'vitest';
import { messageOf } from '../../policies/error-message.ts';
import { type Moment, type ProcessOptions, startProcess } from '../kit/agent-process.ts';
import { adoptedGroup, type Cluster, nativeGroup, newCluster, rolled } from '../kit/cluster.ts';
import { shareOf } from '../kit/share.ts';

type Group = 'adopted' | 'evicting';

function clusterWith(group: Group): Cluster {
  const cluster = newCluster();
  if (group === 'adopted') adoptedGroup(cluster, { replicas: 2 });
  else nativeGroup(cluster, { rollout: { strategy: 'onDelete', rotateBy: 'evict' } }, { replicas: 2 });
  return cluster;
}

/** Rolls with two processes, the first of which meets the fault, and answers the cluster at the end. */
async function rollWith(group: Group, fault: NonNullable<ProcessOptions['fault']>) {
  const cluster = clusterWith(group);
  const first = startProcess({ env: cluster.env, name: 'agent-1', fault });
  await cluster.env.advance(5000);
  const second = startProcess({ env: cluster.env, name: 'agent-2' });
  cluster.rollTo('app:2');
  await cluster.env.until(() => rolled(cluster, 'app:2'), 1_200_000);
  // Longer than a claim of which nothing is heard.
  await cluster.env.advance(130_000);
  const after = cluster.writes().length;
  await cluster.env.advance(130_000);
  const late = cluster.writes().slice(after);
  // A process that dies while it stops never says that it has.
  void first.agent.stop();
  void second.agent.stop();
  await cluster.env.advance(30_000);
  return { cluster, first, second, late };
}

/** Calls the fault at one moment of one visit of a site. */
function once(site: string, moment: Moment, visit: number, what: 'crash' | 'lose') {
  let visits = 0;
  return (visited: string, when: Moment): 'crash' | 'lose' | undefined => {
    if (visited !== site || when !== moment) return undefined;
    visits += 1;
    return visits === visit ? what : undefined;
  };
}

/** A read changes nothing, so it does not matter on which side of it the process dies. */
function hits(site: string): readonly { readonly site: string; readonly moment: Moment; readonly visit: number }[] {
  const isRead = /\.read|^fresh\./.test(site);
  if (isRead) return [{ site, moment: 'beforeSend', visit: 1 }];
  const moments: readonly Moment[] = ['beforeSend', 'afterReply'];
  return moments.flatMap((moment) => [1, 2].map((visit) => ({ site, moment, visit })));
}

async function sitesOf(group: Group): Promise<readonly string[]> {
  const { first } = await rollWith(group, () => undefined);
  return [...first.sites].filter((site) => !site.startsWith('watch.')).sort();
}

describe.each<Group>(['adopted', 'evicting'])('a rollout of an %s group whose leader meets a fault', (group) => {
  it.each(['crash', 'lose'] as const)(
    'is finished after a %s at every site, and no pod is deleted twice',
    { timeout: 600_000 },
    async (what) => {
      const sites = await sitesOf(group);
      expect(sites).toContain(group === 'adopted' ? 'act.deletePod' : 'act.evictPod');
      expect(sites).toContain('ledger.replace');
      const wrong: string[] = [];
      for (const { site, moment, visit } of shareOf(sites.flatMap(hits), 10)) {
        const where = `${what} ${moment} ${site} (visit ${visit})`;
        try {
          const { cluster, late } = await rollWith(group, once(site, moment, visit, what));
          const deleted = cluster.deletedPods();
          if (deleted.length !== 6 || new Set(deleted).size !== 6) wrong.push(`${where}: ${deleted.length} deletions`);
          const { zones, pods } = cluster.maxDown();
          if (zones !== 1 || pods !== 1) wrong.push(`${where}: ${pods} pods in ${zones} zones down`);
          if (late.length > 0) wrong.push(`${where}: ${late.length} writes after the end: ${late[0]}`);
        } catch (error) {
          wrong.push(`${where}: ${messageOf(error)}`);
        }
      }
      expect(wrong).toEqual([]);
    },
  );
});
