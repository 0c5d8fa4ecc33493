// One whole run, in which the process that does it dies at every place where it asks something of the outside; another one follows each time.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { Call, Moment } from '../control-plane/crash.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { callSites } from '../control-plane/sites.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { shareOf } from '../kit/share.ts';
import { checkHistory } from '../kit/watcher.ts';
import { podsRemovedBy } from '../kit/watcher-requests.ts';
import { createKinds, openWholeRun, podCount, wholeEnd } from './whole-run.ts';

const [noReplicas, noKinds, noWebhooks] = [
  'this run changes no replicas: scaling.cluster.ts, and leaders that die in the simulation',
  'only where the kind RolloutGroup is not served, and decisions are published in ConfigMaps',
  'only where webhooks are served: outage.cluster.ts ends those that serve them',
];

/** Places that this run does not come to, and why; with where processes are ended instead. */
const elsewhere: Readonly<Record<string, string>> = {
  'act.advanceCurrentRevision': 'only for adopted groups: crash.cluster.ts',
  'act.readStatefulSet': 'only for adopted groups: crash.cluster.ts',
  'act.evictPod': 'an eviction of somebody who died is waited out for two minutes: crash.cluster.ts',
  'act.setPartition': 'only for the strategy partition: partition.cluster.ts',
  'act.scaleStatefulSet': noReplicas,
  'act.writeBackReplicas': noReplicas,
  'pods.prepare': noReplicas,
  'pods.withdraw': noReplicas,
  'sources.read': noReplicas,
  'discovery.read': noReplicas,
  'admission.getPublished': noWebhooks,
  'turn.commit': 'only with the flag -commits.read',
  'turn.revision': 'only for groups of the strategy pinned',
  'judgements.create': noWebhooks,
  'departures.create': noWebhooks,
  'departures.read': noWebhooks,
  'departures.replace': noWebhooks,
  'notify.find': 'only who follows somebody that died at notify.send: the follower comes there, and notify/crash.test.ts ends it',
  'publish.createConfigMap': noKinds,
  'publish.getConfigMap': noKinds,
  'publish.replaceConfigMap': noKinds,
  'fresh.node': 'only a node that is down is asked for; the simulation ends leaders there',
  'gate.probe': 'the gate of this run asks a Prometheus; probes go through the same reader',
  'metric.read': 'no policy of this run reads a metric; inputs go through the reader of gates, and change nothing',
  'leaseProof.read': 'only for who may not use Leases',
  'leaseProof.review': 'only for who may not use Leases',
  'readyTimes.patch': 'only for zone-aware budgets that ask for a time between zones',
  'release.ledgers': 'only where a StatefulSet of RollingUpdate has no group: release/release.test.ts ends agents there',
  'revoke.touchPod': 'only who follows somebody that died at a delete comes there: crash.cluster.ts',
  'runs.get': 'only when somebody else has written the record: run-records.test.ts',
  'written.list': 'only when a watch is silent for longer than it is believed; the simulation ends leaders there',
};

/** Everything that is watched here, and who asks for the group before it writes about it: their places have the name of what they are about. */
const lists = [
  ...['nodes', 'poddisruptionbudgets', 'pods', 'rolloutexceptions', 'rolloutgroups', 'rolloutintents', 'rolloutpolicies', 'statefulsets'],
  'zoneawarepoddisruptionbudgets',
].map((plural) => `watch.${plural}.list`);
const watches = ['nodes', 'poddisruptionbudgets', 'pods', 'rolloutgroups', 'rolloutintents', 'statefulsets'].map(
  (plural) => `watch.${plural}.watch`,
);
/**
 * Several processes one after the other, each of which dies at the next place: in the order in which a run comes there. Reads change nothing, so
 * that whoever dies before one has died after it too.
 */
const reading = [
  lists,
  watches,
  ['lease.read', 'ledger.read', 'runs.list', 'publish.getGroup'],
  ['notify.notes.read', 'notify.channel', 'notify.secret'],
  ['fresh.statefulSet', 'fresh.pods'],
  ['gate.source', 'gate.secret', 'gate.read'],
];
const writing = [
  ['notify.send'],
  ['notify.edit'],
  ['lease.acquire', 'ledger.create', 'act.deletePod'],
  ['notify.notes.create', 'notify.notes.replace'],
  ['runs.create', 'runs.patch', 'runs.delete'],
  ['events.create', 'publish.patchStatus', 'ledger.replace'],
  ['lease.release', 'lease.renew'],
];
/**
 * Events and decisions are about the same object: whoever comes first asks for it, and the other one believes that. On a busy machine a watch is
 * silent for long, an answer comes when the request has been given up already, and a fact is repeated.
 */
const sometimes = ['events.getGroup', 'events.repeat', 'written.list', 'runs.get'];
const at =
  (moment: Moment) =>
  (site: string): Call => ({ site, moment });

interface Case {
  readonly sites: string;
  readonly moment: Moment;
  readonly deaths: readonly Call[];
}

// That comes first whose followers wait until what somebody began to send has arrived or never will.
const cases: readonly Case[] = [
  ...writing.flatMap((sites) =>
    (['before send', 'after reply'] as const).map((moment) => ({ sites: sites.join(', '), moment, deaths: sites.map(at(moment)) })),
  ),
  ...reading.map((sites) => ({ sites: sites.join(', '), moment: 'before send' as const, deaths: sites.map(at('before send')) })),
];
const played = shareOf(
  cases.map((one, index) => ({ ...one, namespace: `deaths-${index}` })),
  3,
);

const longestMs = 240_000;
const overMs = 110_000;
vi.setConfig({ maxConcurrency: 6, testTimeout: longestMs });

describeOnControlPlane('a whole run', (controlPlane) => {
  let recorder: HistoryRecorder;

  beforeAll(async () => {
    await createKinds(controlPlane());
    recorder = await recordHistory(controlPlane());
  });
  afterAll(() => recorder.stop());

  async function play(namespace: string, deaths: readonly Call[]): Promise<ReadonlySet<string>> {
    const run = await openWholeRun(controlPlane(), recorder, namespace);
    try {
      for (const { site, moment } of deaths) {
        const agent = await run.next((call) => call.site === site && call.moment === moment);
        // Only one that was told to leave gives its Lease away; its end is nobody's to wait for.
        if (site === 'lease.release')
          void until(`${namespace}: a deletion`, () => agent.mortal.reached().has('act.deletePod')).then(() => agent.agent.stop());
        await until(`${namespace}: a death at ${site}`, agent.mortal.isDead);
      }
      const last = await run.next();
      expect(await run.untilOver(overMs)).toEqual(wholeEnd);
      return new Set(last.mortal.reached().keys());
    } finally {
      await run.close();
    }
  }

  it('reaches every call site of the agent except those named as omitted', async () => {
    const reached = await play('plain', []);
    const ended = [...sometimes, ...cases.flatMap(({ deaths }) => deaths.map(({ site }) => site))];
    expect([...reached].filter((site) => !ended.includes(site))).toEqual([]);
    expect(callSites().filter((site) => !ended.includes(site) && !(site in elsewhere))).toEqual([]);
    expect(
      Object.keys(elsewhere).filter((site) => (reached.has(site) && !sometimes.includes(site)) || !callSites().includes(site)),
    ).toEqual([]);
  });

  it.concurrent.each(played.map(({ moment, sites, deaths, namespace }) => [moment, sites, deaths, namespace] as const))(
    'has the same result after deaths %s: %s',
    async (_moment, _sites, deaths, namespace) => {
      await play(namespace, deaths);
    },
  );

  it('replaces every pod once each time, within its rules', async () => {
    const { requests, events } = await recorder.read();
    const agent = controlPlane().identities.agent.user;
    for (const { sites, moment, namespace } of played) {
      const here = {
        requests: requests.filter(({ objectRef }) => objectRef?.namespace === namespace),
        events: events.filter(({ kind, object }) => kind === 'Node' || object.metadata.namespace === namespace),
      };
      const replaced = podsRemovedBy(agent, here);
      const zones = ['a', 'b'].map((zone) => ({ statefulSet: `ingester-zone-${zone}`, maxUnavailable: 1 }));
      const violations = checkHistory(here, [agent], [{ namespace, zones }]);
      expect({ sites, moment, replaced: replaced.length, violations }).toEqual({ sites, moment, replaced: podCount, violations: [] });
    }
  });
});

async function until(what: string, isSo: () => boolean): Promise<void> {
  for (const endsAt = Date.now() + 90_000; !isSo(); await delay(20))
    if (Date.now() > endsAt) throw new Error(`${what} did not come in 90 s`);
}
