// The commands that pages show next to a cluster of `npm run cluster` are run, and print what the pages show.
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeWithBinaries } from '../control-plane/suite.ts';
import { agentStart, kubeconfigOf, type LocalCluster, startCluster } from './local-cluster.ts';
import { chartCluster, type Session, withoutTimes } from './page.ts';
import { checkPage, readPages } from './scratch.ts';

function isAlive(processId: number): boolean {
  try {
    return process.kill(processId, 0);
  } catch {
    return false;
  }
}

/** For the commands of a page on a machine that does other work. */
const timeoutMs = 600_000;
const tutorial = 'docs/getting-started.md';
const pages = readPages();

function folderOf(cluster: LocalCluster): string {
  return dirname(kubeconfigOf(cluster));
}

/** The clusters that a page needs, by their arguments. */
function clustersOf(page: string): readonly string[] {
  return [...new Set(pages.get(page)?.sessions.flatMap(({ cluster }) => cluster ?? []))];
}

function nextTo(words: string): (session: Session) => boolean {
  return ({ cluster }) => cluster === words;
}

describeWithBinaries('the commands of the pages next to a cluster', () => {
  describe(tutorial, () => {
    const clusters: LocalCluster[] = [];
    afterAll(() => Promise.all(clusters.map((one) => one.stop())));

    it(
      'shows what the commands print, next to a first cluster and to a second one with a version that fails',
      async () => {
        expect(clustersOf(tutorial)).toEqual(['', '--break']);
        for (const words of ['', '--break']) {
          clusters.push(await startCluster(words));
          expect(await checkPage(tutorial, nextTo(words), { mask: withoutTimes, clusters: clusters.map(folderOf) })).toBe('');
        }
      },
      timeoutMs,
    );

    it('says that the agent died, how, and starts it again with a key', async () => {
      const [first] = clusters;
      const [, pod = '', pid = '0', log] = agentStart.exec(first?.said() ?? '') ?? [];
      process.kill(Number(pid), 'SIGKILL');
      await first?.until(/^Press r to start it again, or run: kill -USR2 \d+$/m);
      expect(first?.said()).toContain(`the agent ${pod} (pid ${pid}) ended with signal SIGKILL. The end of ${log}:\n  ts=`);
      first?.child.stdin.write('r');
      const found = await first?.until(new RegExp(`${agentStart.source}[^]*${agentStart.source}`, 'm'));
      expect(isAlive(Number(found?.[5]))).toBe(true);
    });

    it('leaves no process and no folder after SIGTERM', async () => {
      const pids = clusters.flatMap((one) =>
        [...one.said().matchAll(new RegExp(agentStart.source, 'gm'))].map((found) => Number(found[2])),
      );
      expect(pids).toHaveLength(3);
      const folders = clusters.map(folderOf);
      expect(folders.map(existsSync)).toEqual([true, true]);
      expect(await Promise.all(clusters.map((one) => one.stop()))).toEqual([0, 0]);
      expect([pids.filter(isAlive), folders.filter(existsSync)]).toEqual([[], []]);
    });
  });

  const others = [...pages.keys()].filter((page) => page !== tutorial);
  const clusters = new Set(others.flatMap(clustersOf).filter((words) => words !== chartCluster));
  describe.each([...clusters])('next to npm run cluster -- %s', (words) => {
    let cluster: LocalCluster;
    beforeAll(async () => {
      cluster = await startCluster(words);
    });
    afterAll(() => cluster.stop());

    it.each(others.filter((page) => clustersOf(page).includes(words)))(
      '%s shows what the commands print',
      async (page) => {
        expect(await checkPage(page, nextTo(words), { mask: withoutTimes, env: { KUBECONFIG: kubeconfigOf(cluster) } })).toBe('');
      },
      timeoutMs,
    );
  });
});
