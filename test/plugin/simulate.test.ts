// The verb simulate, and what it shows of a run that broke an invariant.
import { readFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { progressLine } from '../../plugin/commands/simulate.ts';
import type { CommandContext } from '../../plugin/context.ts';
import { type GroupSimulation, renderSimulation } from '../../plugin/output/simulate.ts';
import { outputStream } from '../../plugin/output/terminal.ts';
import { playOne } from '../../plugin/simulation/play.ts';
import { simulateGroup } from '../../plugin/simulation/runs.ts';
import { faultsNamed, type Simulated, scenarioOfGiven } from '../../plugin/simulation/scenario.ts';
import { faultNames } from '../../plugin/verbs/preview.ts';
import { givenGroup } from '../../simulation/given.ts';
import type { RunOptions, RunResult } from '../../simulation/run.ts';
import type { Scenario } from '../../simulation/scenario.ts';
import { group } from '../kit/groups.ts';
import { expectGolden, inEachLook } from './golden.ts';
import { type Ended, runInProcess } from './in-process.ts';
import { folderWith, runPlugin } from './process.ts';

function member(zone: string, image = 'store:1', replicas = 1): string {
  return `apiVersion: apps/v1
kind: StatefulSet
metadata: { name: store-${zone}, namespace: prod }
spec:
  replicas: ${replicas}
  serviceName: store
  podManagementPolicy: Parallel
  updateStrategy: { type: OnDelete }
  selector: { matchLabels: { name: store-${zone} } }
  template:
    metadata: { labels: { name: store-${zone} } }
    spec: { containers: [{ name: store, image: '${image}' }, { name: sidecar, image: 'sidecar:7' }] }
`;
}

const zones = ['a', 'b'];
const manifests = (image?: string): string => zones.map((zone) => member(zone, image)).join('---\n');
const policy = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata: { name: store, namespace: prod }
spec:
  members: { zones: [{ name: a, statefulSet: store-a }, { name: b, statefulSet: store-b }] }
  rollout:
    strategy: onDelete
    rotateBy: delete
    maxUnavailable: 1
`;
/** Nobody works on the first of January. */
const closed = `${policy}---
apiVersion: rollout-group.dev/v1alpha1
kind: RolloutPolicy
metadata: { name: holidays, namespace: prod }
spec:
  targets: { groups: [store] }
  windows:
    - name: holidays
      kind: deny
      actions: [rollout]
      ranges: [{ from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z', reason: no one is on site }]
      inFlight: finishPod
`;

const rollout = ['simulate', '--current', 'now.yaml', '--desired', 'next.yaml', '-f', 'policy.yaml'];
const holidays = ['simulate', '--current', 'now.yaml', '--desired', 'next.yaml', '-f', 'closed.yaml', '--at', '2026-01-01T10:00:00Z'];

const files = { 'now.yaml': manifests(), 'next.yaml': manifests('store:2'), 'policy.yaml': policy, 'closed.yaml': closed };

function run(words: readonly string[]): Promise<Ended> {
  return runInProcess(words, { cwd: folderWith(files) });
}

describe('simulate', () => {
  it('fits each width: blocked runs, and one that does not complete', async () => {
    const views: Record<string, string> = {};
    for (const flags of [['--width=80'], ['--width=120', '--color=always']]) {
      const held = await run([...rollout, '--runs', '2', '--fail', 'pod=store-b-0@1m+1m', ...flags]);
      expect([held.status, held.stderr]).toEqual([0, '']);
      const unfinished = await run([...holidays, '--runs', '1', '--faults', 'none', '--until', '20m', ...flags]);
      expect([unfinished.status, unfinished.stderr]).toEqual([7, '']);
      Object.assign(views, { [`blocked: ${flags.join(' ')}`]: held.stdout, [`unfinished: ${flags.join(' ')}`]: unfinished.stdout });
    }
    await expectGolden('simulate', views);
  });

  it('shows the same runs for the same seed, and the printed command repeats the shown run', async () => {
    const words = [...rollout, '--runs', '2', '--seed', '3', '--faults', 'all', '-o', 'json'];
    const first = await run(words);
    expect((await run(words)).stdout).toBe(first.stdout);
    const [whole] = JSON.parse(first.stdout).groups;
    // The run that is shown is one of the seeds 3 and 4.
    const index = whole.repeat.includes('--seed 3 ') ? 0 : 1;
    expect(whole.repeat).toBe(
      `kubectl rollout-group simulate --current now.yaml --desired next.yaml -f policy.yaml --group prod/store --faults all --seed ${3 + index} --runs 1`,
    );
    const [again] = JSON.parse((await run([...whole.repeat.split(' ').slice(2), '-o', 'json'])).stdout).groups;
    expect(again.shown).toEqual(whole.shown);
    expect(again.runs).toEqual(whole.runs.slice(index, index + 1));
  });

  it('is complete as JSON: every run with its end, time and faults, and the shown run with its timeline', async () => {
    const { status, stdout } = await run([...rollout, '--runs', '2', '--faults', 'pods,network', '-o', 'json']);
    const { kind, groups } = JSON.parse(stdout);
    expect([status, kind, groups.length]).toEqual([0, 'Simulation', 1]);
    expect(groups[0]).toMatchObject({ namespace: 'prod', group: 'store', seed: 1, violated: 0, unfinished: 0 });
    expect(groups[0].runs).toMatchObject([
      { seed: 1, end: 'done', violations: [] },
      { seed: 2, end: 'done', violations: [] },
    ]);
    const told: readonly { who: string; what: string }[] = groups[0].shown.timeline;
    expect(told.map(({ what }) => what)).toEqual(expect.arrayContaining(['apply StatefulSet store-a', 'deletePod store-a-0: done']));
  });

  it('shows the absence of an agent in a lane with its name', async () => {
    const { stdout } = await run([...rollout, '--runs', '1', '--fail', 'agent=a@20s+1m']);
    expect(stdout).toMatch(/^ +agent a +\| *x+ *\|$/m);
    expect(stdout).toMatch(/x fault/);
  });

  it('simulates a lost pod, and takes longer for it', async () => {
    const ms = async (...more: readonly string[]): Promise<number> =>
      JSON.parse((await run([...rollout, '--runs', '1', '-o', 'json', ...more])).stdout).groups[0].durationMs.max;
    expect(await ms('--fail', 'pod=b-0@10s+10m')).toBeGreaterThan(await ms('--faults', 'none'));
  });

  it('names the block of a run, on the calendar of the policies', async () => {
    const [held] = JSON.parse((await run([...holidays, '--runs', '1', '--faults', 'none', '--until', '20m', '-o', 'json'])).stdout).groups;
    expect(held).toMatchObject({ unfinished: 1, violated: 0, shown: { end: 'unfinished', violations: [] } });
    expect(held.shown.heldBy[0]).toMatch(/^window: a deny window blocks/);
    const open = await run([
      ...rollout.slice(0, -1),
      'closed.yaml',
      '--at',
      '2026-01-02T10:00:00Z',
      '--runs',
      '1',
      '--faults',
      'none',
      '-o',
      'json',
    ]);
    expect(JSON.parse(open.stdout).groups[0].unfinished).toBe(0);
  });

  it('simulates a change of replicas that the StatefulSet controller makes without the agent', async () => {
    const words = ['simulate', '--current', 'now.yaml', '--set', 'replicas=2', '-f', 'policy.yaml', '--runs', '1', '--faults', 'none'];
    const [scaled] = JSON.parse((await run([...words, '-o', 'json'])).stdout).groups;
    expect(scaled).toMatchObject({ group: 'store', unfinished: 0, violated: 0 });
    expect(scaled.durationMs.max).toBeGreaterThan(0);
  });

  it('rejects unknown names of faults, also as a process', () => {
    const { status, stderr } = runPlugin([...rollout, '--faults', 'rain'], { cwd: folderWith(files) });
    expect(status).toBe(3);
    expect(stderr).toContain('rain is unknown');
    expect(stderr).toContain('network, conflicts, watch');
  });
});

const definition = group({ namespace: 'mimir', name: 'ingester', zones: ['a', 'b'] });
const simulated: Simulated = {
  group: definition,
  given: givenGroup({
    group: definition,
    running: [],
    desired: [],
    documents: [],
    refused: new Set(),
    startMs: undefined,
    withoutGates: true,
    withoutApprovals: true,
  }),
  pods: { drain: { p50Seconds: 10, p90Seconds: 20 }, start: { p50Seconds: 10, p90Seconds: 20 } },
  plannedMs: 600_000,
  isPlanned: true,
  faults: ['crash'],
  requested: [],
  untilMs: undefined,
};

/** In place of a run: the third seed breaks an invariant as long as any agent crashes in it. */
async function play(scenario: Scenario, { keepsTimeline }: RunOptions = {}): Promise<RunResult> {
  const crash = scenario.events.find(({ kind }) => kind === 'crash' || kind === 'stop');
  const isBroken = scenario.seed === 3 && crash !== undefined;
  const atMs = (crash?.atMs ?? 0) + 2500;
  return {
    violations: isBroken ? [{ invariant: 'S1', atMs, message: 'a1 disrupts ingester-zone-b-0 while zone a is open' }] : [],
    faults: { F11: 1 },
    placed: [],
    crashes: {},
    writes: {},
    endState: {},
    events: 1,
    traceHash: '',
    convergedMs: 300_000 + scenario.seed,
    endMs: 400_000,
    timeline:
      keepsTimeline === true && crash !== undefined
        ? [
            { atMs: crash.atMs, who: 'fault', what: 'crash process=a restartAfterMs=5000' },
            { atMs: crash.atMs + 1, who: 'fault', what: 'F1 lost isSilent=true at b1/lease.renew#3' },
            { atMs: crash.atMs + 2, who: 'b1', what: 'patch pods ingester-zone-b-0: 200 (act.touch)' },
            { atMs: crash.atMs + 1000, who: 'b1', what: 'deletePod ingester-zone-b-0: done' },
            { atMs, who: 'verdict', what: 'S1: a1 disrupts ingester-zone-b-0 while zone a is open' },
            { atMs: atMs + 5000, who: 'b1', what: 'deletePod ingester-zone-b-1: done' },
          ]
        : [],
  };
}

describe('a run that breaks an invariant', () => {
  it('is shown in a minimal form, with the events that led to it', async () => {
    const simulation = await simulateGroup(simulated, { seed: 1, runs: 5, play });
    expect(simulation).toMatchObject({ violated: 1, unfinished: 0, shown: { seed: 3 } });
    const { smallest, timeline } = simulation.shown;
    expect(smallest?.scenario.events).toHaveLength(1);
    expect(scenarioOfGiven(simulated, 3).events.length).toBeGreaterThan(1);
    expect(timeline.map(({ what }) => what)).toEqual([
      'crash process=a restartAfter=5s',
      'deletePod ingester-zone-b-0: done',
      'S1: a1 disrupts ingester-zone-b-0 while zone a is open',
      'deletePod ingester-zone-b-1: done',
    ]);
  });

  it('does not depend on which thread ends first', async () => {
    let endFirst = (): void => undefined;
    const others = new Promise<void>((resolve) => {
      endFirst = resolve;
    });
    const player = async (scenario: Scenario) => {
      if (scenario.seed === 1) await others;
      if (scenario.seed === 5) endFirst();
      return await playOne(scenario, play);
    };
    const one = await simulateGroup(simulated, { seed: 1, runs: 5, play });
    expect(await simulateGroup(simulated, { seed: 1, runs: 5, play, players: [player, player] })).toEqual(one);
  });

  it('reports the progress of the runs and of the minimization', async () => {
    const seen: string[] = [];
    await simulateGroup(simulated, { seed: 2, runs: 2, play, progress: ({ what, done, of }) => seen.push(`${what} ${done}/${of}`) });
    expect(seen.slice(0, 3)).toEqual(['run 0/2', 'run 1/2', 'shrink 0/40']);
  });

  it('is reported at each width, with and without colour', async () => {
    const shown: GroupSimulation = {
      namespace: 'mimir',
      group: 'ingester',
      zones: ['a', 'b'],
      faults: 'faults: crash',
      simulation: await simulateGroup(simulated, { seed: 1, runs: 5, play }),
      repeat: 'kubectl rollout-group simulate --current now --seed 3 --runs 1',
    };
    await expectGolden(
      'simulate-broken',
      inEachLook((at) => renderSimulation([shown], at)),
    );
  });
});

describe('the line of progress', () => {
  const shown = (changes: { isTerminal?: boolean; quiet?: boolean }, instants: readonly number[]): readonly string[] => {
    const raw = new PassThrough();
    const times = [0, ...instants];
    const { isTerminal = true, quiet = false } = changes;
    const stderr = { ...outputStream(raw, { env: {} }), isTerminal, columns: 40 };
    const line = progressLine({ stderr, quiet, env: {}, nowMs: () => times.shift() ?? 0 } as unknown as CommandContext);
    for (const [done] of instants.entries()) line.show('prod/store', { what: 'run', done, of: 9 });
    line.clear();
    return String(raw.read() ?? '').split('\r\u001b[K');
  };

  it('appears after a second, is overwritten, and disappears', () => {
    expect(shown({}, [500, 1100, 1200, 1400])).toEqual(['', 'prod/store: run 2 of 9', 'prod/store: run 4 of 9', '']);
  });

  it('is only for a terminal', () => {
    expect(shown({ isTerminal: false }, [1100])).toEqual(['']);
    expect(shown({ quiet: true }, [1100])).toEqual(['']);
  });
});

describe('docs/simulate.md', () => {
  it('has a row for each kind of fault, with its classes', () => {
    const rows = [...readFileSync('docs/simulate.md', 'utf8').matchAll(/^\| `([a-z]+)` \|.*\| ([F\d, ]+) \|$/gm)];
    expect(rows.map(([, name, classes]) => [name, classes])).toEqual(
      faultNames.map((name) => [name, faultsNamed([name]).classes.join(', ')]),
    );
  });
});
