// Plans made from a run of the model, carried out on a real control plane by the fault proxy: a process that dies after a write, one that begins
// anew in the past, and changes that nobody sees; judged by the watcher.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type Arena, openArena } from '../agent/arena.ts';
import type { AgentProcess } from '../control-plane/agent-process.ts';
import { type FaultProxy, startFaultProxy } from '../control-plane/fault-proxy.ts';
import { always, type FaultRule, nth, type WatchLine } from '../control-plane/faults.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { shareOf } from '../kit/share.ts';
import { recordWorkload } from './sieve/judge.ts';
import { sayings } from './sieve/record.ts';
import { plansOf, type SievePattern, type SievePlan, sampleOf } from './sieve/sieve.ts';
import { sieveWorkloads } from './sieve/workloads.ts';

/** Two zones of two pods, adopted from labels, as `openArena` makes them; one agent. */
async function recorded(): Promise<readonly SievePlan[]> {
  const rollout = sieveWorkloads.find(({ name }) => name === 'rollout');
  if (rollout === undefined) throw new Error('there is no workload rollout');
  const { scenario } = rollout;
  const group = { ...scenario.group, kind: 'adopted' as const, zones: 2, podsPerZone: 2 };
  return plansOf(await recordWorkload({ ...rollout, scenario: { ...scenario, group, agents: 1 } }));
}

/** The requests of a place in the agent, as the proxy sees them. */
const requestsOf: Readonly<Record<string, (namespace: string) => FaultRule['match']>> = {
  'act.deletePod': (namespace) => ({ method: 'DELETE', path: new RegExp(`/${namespace}/pods/`) }),
  'act.advanceCurrentRevision': (namespace) => ({ method: 'PUT', path: new RegExp(`/${namespace}/statefulsets/[^/]+/status`) }),
  'ledger.create': (namespace) => ({ method: 'POST', path: new RegExp(`/${namespace}/configmaps`), body: /"rollout-group-ingester"/ }),
  'ledger.replace': (namespace) => ({ method: 'PUT', path: new RegExp(`/${namespace}/configmaps/rollout-group-ingester`) }),
};
/** What lines say in the same words on every server; revisions have other names. */
const aspects: readonly string[] = ['isReady', 'isLeaving', 'exists', 'readyReplicas'];

/** How often the ledger is written depends on what comes to be known at the same time; before each of four deletions it is. */
const surely = 4;

function isPlayable({ name, trigger }: SievePlan): boolean {
  if (trigger.kind === 'write') return trigger.site in requestsOf && trigger.count <= surely;
  return aspects.includes(trigger.aspect) && !name.endsWith('reconnected');
}

const playable = (await recorded()).filter(isPlayable);
const chosen = (pattern: SievePattern, count: number): readonly SievePlan[] =>
  sampleOf(
    playable.filter((plan) => plan.pattern === pattern),
    count,
    2,
  );
const cases = [...chosen('intermediate', 5), ...chosen('stale', 4), ...chosen('unobserved', 4)].map((plan, index) => ({
  plan,
  namespace: `sieve-${plan.pattern}-${index}`,
}));

const longestMs = 240_000;
/** A Lease of 3 s ends, and whoever leads then acts for a while in the past. */
const pastMs = 6_000;
/** The most that a process needs on a busy machine to begin in the past. */
const beginMs = 60_000;

describeOnControlPlane('plans made from a recording', (controlPlane) => {
  let recorder: HistoryRecorder;
  let proxy: FaultProxy;

  beforeAll(async () => {
    recorder = await recordHistory(controlPlane());
    proxy = await startFaultProxy(controlPlane());
  });
  afterAll(async () => {
    recorder.stop();
    await proxy.close();
  });

  it('are at least ten, of each pattern some', () => {
    expect(cases.length).toBeGreaterThanOrEqual(10);
    expect(new Set(cases.map(({ plan }) => plan.pattern)).size).toBe(3);
  });

  for (const { plan, namespace } of shareOf(cases, 2)) {
    it.concurrent(`${plan.pattern}: ${plan.name}`, { timeout: longestMs }, async () => {
      const arena = await openArena(controlPlane(), recorder, { namespace, zones: ['a', 'b'], replicas: 2, maxUnavailable: 1 });
      try {
        const lives = livesIn(arena, proxy, controlPlane().identities.agent);
        const struck = inject(proxy, plan, { namespace, lives });
        await (await lives.begin()).untilReady();
        await arena.group.setImage('example.com/server:2');
        // What strikes late lasts for a while, and the group may be done before.
        const done = arena.group.untilRolled(longestMs).then(() => delay(pastMs + beginMs, 'never struck'));
        expect(await Promise.race([struck, done])).toBe('struck');
        await arena.group.untilRolled(longestMs);
        await arena.expectKept();
        expect(await deletesDone(arena)).toBe(4);
      } finally {
        await arena.close();
      }
    });
  }

  async function deletesDone(arena: Arena): Promise<number> {
    const { requests } = await arena.history();
    const mine = requests.filter(({ user }) => user.username === controlPlane().identities.agent.user);
    return mine.filter(({ verb, objectRef, responseStatus }) => {
      return verb === 'delete' && objectRef?.resource === 'pods' && (responseStatus?.code ?? 500) < 300;
    }).length;
  }
});

interface Lives {
  readonly begin: () => Promise<AgentProcess>;
  /** The one that runs is killed, and another begins in its place. */
  readonly dieAndBegin: () => Promise<void>;
}

function livesIn(arena: Arena, proxy: FaultProxy, identity: Parameters<FaultProxy['through']>[0]): Lives {
  const proxied = proxy.through(identity);
  let count = 0;
  let running: AgentProcess | undefined;
  const begin = async (): Promise<AgentProcess> => {
    count += 1;
    running = await arena.start({ url: proxy.url, identity: proxied, flags: [`--identity=life-${count}`] });
    return running;
  };
  return {
    begin,
    dieAndBegin: async () => {
      await running?.kill();
      await begin();
    },
  };
}

interface Stage {
  readonly namespace: string;
  readonly lives: Lives;
}

/** Puts the plan to work; resolves when what it is about has happened. */
function inject(proxy: FaultProxy, plan: SievePlan, { namespace, lives }: Stage): Promise<'struck'> {
  return new Promise((resolve, reject) => {
    const { trigger, name } = plan;
    const strike = (what: () => Promise<unknown>): Promise<void> => what().then(() => resolve('struck'), reject);
    if (trigger.kind === 'write') {
      const match = requestsOf[trigger.site]?.(namespace) ?? {};
      const die = (): Promise<void> => strike(lives.dieAndBegin);
      proxy.inject({ name, match, which: nth(trigger.count), fault: { kind: 'die', moment: trigger.moment, die } });
      return;
    }
    const [plural = '', object = ''] = trigger.object.split(' ');
    const match = { isWatch: true, path: new RegExp(`/${namespace}/${plural}\\?`) };
    const says = aspectIn(plural, object.replace(/^.*\//, ''), trigger.aspect);
    const hidden = hiding(trigger, says, () => void strike(async () => filter.remove()));
    const past = turning(trigger, says, (revision) => {
      filter.remove();
      void strike(() => liveInThePast(proxy, { namespace, lives }, revision));
    });
    const passes = plan.pattern === 'unobserved' ? hidden : past;
    const filter = proxy.inject({ name, match, which: always, fault: { kind: 'filterWatch', passes } });
  });
}

type Change = Extract<SievePlan['trigger'], { readonly kind: 'change' }>;
type Saying = (line: WatchLine) => string | undefined;

/** Hides the first change, and all of the object until it is undone. */
function hiding({ was, is }: Change, says: Saying, undone: () => void): (line: WatchLine) => boolean {
  let state: 'before' | 'hiding' | 'over' = 'before';
  return (line) => {
    const value = says(line);
    if (value === undefined || state === 'over') return true;
    if (state === 'before' && value === is) state = 'hiding';
    if (state === 'before' || value !== was) return state === 'before';
    state = 'over';
    undone();
    return true;
  };
}

/** Waits for the change, and tells of which revision the last line before it was. */
function turning({ was, is }: Change, says: Saying, turned: (revision: string) => void): (line: WatchLine) => boolean {
  let revision: string | undefined;
  let isOver = false;
  return (line) => {
    const value = says(line);
    if (value === was) revision = line.object.metadata.resourceVersion;
    if (isOver || revision === undefined || value !== is) return true;
    isOver = true;
    turned(revision);
    return true;
  };
}

/** Another process begins, whose caches begin with the world as of that revision, and stay so for a while. */
async function liveInThePast(proxy: FaultProxy, { namespace, lives }: Stage, revision: string): Promise<void> {
  let end = (): void => undefined;
  const until = new Promise<void>((resolve) => {
    end = resolve;
  });
  const lists = proxy.inject({
    name: `the world of ${revision}`,
    // The lists of caches: those that must be new select by labels, and come from the quorum.
    match: { method: 'GET', isWatch: false, path: new RegExp(`/${namespace}/(pods|statefulsets)\\?limit`) },
    which: always,
    fault: { kind: 'listAsOf', revision },
  });
  const watches = proxy.inject({
    name: `nothing since ${revision}`,
    match: { isWatch: true, path: new RegExp(`/${namespace}/(pods|statefulsets)\\?`) },
    which: always,
    fault: { kind: 'holdWatch', until },
  });
  await lives.dieAndBegin();
  await vi.waitFor(() => expect([lists.hits() >= 2, watches.hits() >= 2]).toEqual([true, true]), { timeout: beginMs, interval: 50 });
  await delay(pastMs);
  end();
  lists.remove();
  watches.remove();
}

/** What a line says of that object; undefined when it is about another one, or says nothing of it. */
function aspectIn(plural: string, name: string, aspect: string): (line: WatchLine) => string | undefined {
  return ({ type, object }) => {
    if (type === 'BOOKMARK' || type === 'ERROR' || object.metadata.name !== name) return undefined;
    const exists = { exists: String(type !== 'DELETED') };
    return { ...exists, ...(type === 'DELETED' ? {} : sayings(plural, { ...object })) }[aspect];
  };
}
