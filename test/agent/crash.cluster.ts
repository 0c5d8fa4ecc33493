// Two agents, and the one that leads dies at each call of acting, of the ledger and of the Lease: before it sends, and after the reply.
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Moment } from '../control-plane/crash.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { callSites } from '../control-plane/sites.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { shareOf } from '../kit/share.ts';
import { podsRemovedBy } from '../kit/watcher-requests.ts';
import { openArena } from './arena.ts';

/** Sites that a rollout does not come to, and where they are ended instead. */
const elsewhere: Readonly<Record<string, string>> = {
  'act.scaleStatefulSet': 'scaling.cluster.ts',
  'act.writeBackReplicas': 'scaling.cluster.ts',
  'act.setPartition': 'partition.cluster.ts',
  'revoke.touchPod': 'the next leader comes there, when a delete of the former may be under way: the last test of this file',
  'fresh.node': 'only a node that is down is asked for; the simulation ends leaders there',
};

const sites = callSites(['act', 'ledger', 'lease', 'fresh', 'revoke']);
/**
 * A group that evicts, where adopted ones delete. An eviction of a former leader cannot be made void as a delete can: it is waited out, for as
 * long as the API server could still carry it out.
 */
function evicting(namespace: string): string {
  const zones = ['a', 'b', 'c'].map((zone) => `{ name: ${zone}, statefulSet: ingester-zone-${zone} }`);
  return `
apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata: { name: ingester, namespace: ${namespace} }
spec:
  members: { zones: [${zones.join(', ')}] }
  replicas: { leader: true }
  rollout: { strategy: onDelete, rotateBy: evict, maxUnavailable: 1 }
`;
}

const longestMs = 200_000;

const moments: readonly Moment[] = ['before send', 'after reply'];
const cases = sites.filter((site) => !(site in elsewhere)).flatMap((site) => moments.map((moment) => ({ site, moment })));

describeOnControlPlane('a leader that dies', (controlPlane) => {
  let recorder: HistoryRecorder;

  beforeAll(async () => {
    recorder = await recordHistory(controlPlane());
  });
  afterAll(() => recorder.stop());

  it('has call sites that this test reaches or names with a reason', () => {
    expect(cases.length).toBeGreaterThanOrEqual(10);
    expect(Object.keys(elsewhere).filter((site) => !sites.includes(site))).toEqual([]);
  });

  it.concurrent.each(shareOf(cases, 3))(
    'at $site $moment is followed by another agent, which completes the work',
    async ({ site, moment }) => {
      const namespace = `${site}-${moment}`.toLowerCase().replaceAll(/[. ]/g, '-');
      const arena = await openArena(controlPlane(), recorder, { namespace, replicas: 2, maxUnavailable: 2 });
      let isRolling = false;
      try {
        // Acquiring and the first reads come before there is anything to do; every other call is ended in the middle of the work.
        const isEarly = ['lease.read', 'lease.acquire', 'ledger.create'].includes(site) || site.startsWith('fresh.');
        const policies = site === 'act.evictPod' ? { policies: evicting(namespace) } : {};
        const first = await arena.startInside({
          name: 'first',
          ...policies,
          diesAt: (call) => (isEarly || isRolling) && call.site === site && call.moment === moment,
        });
        await until(() => first.isLeader() || first.mortal.isDead());
        const second = await arena.startInside({ name: 'second', ...policies });
        isRolling = true;
        await arena.group.setImage('example.com/server:2');
        // One that was told to leave dies in its last request; its end is nobody's to wait for.
        if (site === 'lease.release') void first.agent.stop();
        await arena.group.untilRolled(longestMs, { isAdopted: site !== 'act.evictPod' });
        expect([first.mortal.isDead(), [...first.mortal.reached().keys()].includes(site)]).toEqual([true, true]);
        expect(second.isLeader()).toBe(true);
        await arena.expectKept();
        await expectEachReplacedOnce(arena);
      } finally {
        await arena.close();
      }
    },
    longestMs,
  );

  it.concurrent.each(moments)('after another agent revoked the claims and died %s is followed by a third agent', async (moment) => {
    const namespace = `revoke-${moment.replace(' ', '-')}`;
    const arena = await openArena(controlPlane(), recorder, { namespace, replicas: 2, maxUnavailable: 2 });
    try {
      const first = await arena.startInside({
        name: 'first',
        diesAt: (call) => call.site === 'act.deletePod' && call.moment === 'before send',
      });
      await until(first.isLeader);
      await arena.group.setImage('example.com/server:2');
      await until(first.mortal.isDead);
      const second = await arena.startInside({
        name: 'second',
        diesAt: (call) => call.site === 'revoke.touchPod' && call.moment === moment,
      });
      await until(second.mortal.isDead);
      await arena.startInside({ name: 'third' });
      await arena.group.untilRolled();
      await arena.expectKept();
      await expectEachReplacedOnce(arena);
    } finally {
      await arena.close();
    }
  });

  async function expectEachReplacedOnce(arena: Awaited<ReturnType<typeof openArena>>): Promise<void> {
    const pods = arena.group.sets.flatMap((set) => [`${set}-0`, `${set}-1`]);
    expect(podsRemovedBy(controlPlane().identities.agent.user, await arena.history())).toEqual(pods);
  }
});

async function until(isSo: () => boolean): Promise<void> {
  for (const endsAt = Date.now() + 30_000; !isSo(); await new Promise((settle) => setTimeout(settle, 20))) {
    if (Date.now() > endsAt) throw new Error('the agent did not come to lead in 30 s');
  }
}
