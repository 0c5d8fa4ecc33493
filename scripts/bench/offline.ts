// Measures the figures that need no cluster: start of the command, plans, decisions and simulations.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decideGroup } from '../../engine/decide/decide.ts';
import { snapshotFromManifests } from '../../engine/observe/manifests.ts';
import { defaultAssumptions } from '../../engine/plan/document.ts';
import { runForward } from '../../engine/plan/forward.ts';
import { planGroups } from '../../engine/plan/plan.ts';
import { createWorld, step } from '../../engine/world/world.ts';
import { adoptGroups } from '../../policies/adopt/adopt.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { resolvePolicies } from '../../policies/resolve/resolve.ts';
import { type Figure, median, timed } from './figure.ts';
import { reviewFigures } from './review.ts';

const executable = 'dist/kubectl-rollout_group';

function processMs(args: readonly string[]): number {
  return timed(() => {
    const run = spawnSync(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 256 * 1_048_576 });
    if (run.status !== 0) throw new Error(`${args.join(' ')} ended with ${run.status}`);
    return run;
  });
}

/** Measures the command against a bare Node in pairs, so that a change in the speed of the machine affects both. */
function startUp(...args: readonly string[]): Figure {
  const pairs = Array.from({ length: 21 }, () => ({ bare: processMs(['-e', '0']), ours: processMs([executable, ...args]) })).slice(1);
  const ratio = median(pairs.map(({ bare, ours }) => ours / bare));
  const floor = `bare node ${median(pairs.map(({ bare }) => bare)).toFixed(0)} ms, ours ${median(pairs.map(({ ours }) => ours)).toFixed(0)} ms`;
  return { what: `start of ${args.join(' ')}`, value: ratio, bar: 1.1, unit: 'x', floor };
}

/** Returns StatefulSets of this many groups in three zones, with the labels of grafana/rollout-operator. */
function manifests(groups: number, replicas: number, image: string, maxUnavailable: string): readonly unknown[] {
  return Array.from({ length: groups }, (_, index) => `store-${index}`).flatMap((group) =>
    ['a', 'b', 'c'].map((zone) => {
      const name = `${group}-zone-${zone}`;
      const labels = { name, 'rollout-group': group };
      return {
        apiVersion: 'apps/v1',
        kind: 'StatefulSet',
        metadata: {
          name,
          namespace: 'bench',
          labels: { 'rollout-group': group },
          annotations: { 'rollout-max-unavailable': maxUnavailable },
        },
        spec: {
          replicas,
          serviceName: name,
          podManagementPolicy: 'Parallel',
          updateStrategy: { type: 'OnDelete' },
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: { containers: [{ name: 'store', image, readinessProbe: { httpGet: { path: '/ready', port: 8080 } } }] },
          },
        },
      };
    }),
  );
}

function adopted(objects: readonly unknown[]): readonly GroupDefinition[] {
  return resolvePolicies([], { adoption: adoptGroups(objects) }).bundle.groups;
}

function planMs(groups: number, replicas: number, maxUnavailable: string): number {
  const current = manifests(groups, replicas, 'store:1', maxUnavailable);
  const desired = manifests(groups, replicas, 'store:2', maxUnavailable);
  const input = {
    groups: adopted(desired),
    policies: [],
    exceptions: [],
    policyDigest: '',
    current,
    desired,
    assumptions: defaultAssumptions,
    nowMs: 0,
  };
  return timed(() => {
    const plan = planGroups(input);
    const restarts = plan.groups.reduce((sum, group) => sum + group.totals.restarts, 0);
    if (restarts !== groups * replicas * 3) throw new Error(`the plan has ${restarts} restarts`);
    return plan;
  });
}

function wholePlan(groups: number, replicas: number): Figure {
  const folder = mkdtempSync(join(tmpdir(), 'rollout-group-bench-'));
  try {
    const file = join(folder, 'current.json');
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests(groups, replicas, 'store:1', '5') }));
    const ms = median(
      Array.from({ length: 5 }, () => processMs([executable, 'plan', '--current', file, '--set', 'image=store:2', '-o', 'json'])),
    );
    return {
      what: `plan of ${groups} groups of 3 x ${replicas} pods, whole command, manifests read`,
      value: ms,
      bar: 2000,
      unit: 'ms',
      floor: `bare node ${processMs(['-e', '0']).toFixed(0)} ms`,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns a group in the middle of a rollout, so that a decision has work to do. */
function rollingWorld(replicas: number) {
  const objects = manifests(1, replicas, 'store:1', '10%');
  const [group] = adopted(objects);
  if (group === undefined) throw new Error('no group was adopted');
  const { snapshot } = snapshotFromManifests(objects, { nowMs: 0, groups: [group] });
  let world = createWorld(snapshot, defaultAssumptions, 'p50');
  for (const zone of group.zones)
    world = step(world, { kind: 'setTemplate', namespace: 'bench', statefulSet: zone.statefulSet, revision: 'next' });
  return { world, group };
}

/** Returns the milliseconds of one decision. The engine caches views by their list of pods, so every call gets new lists. */
function decideMs(replicas: number): number {
  const { world, group } = rollingWorld(replicas);
  const unseen = (): typeof world.snapshot => ({
    ...world.snapshot,
    pods: world.snapshot.pods.map((view) => ({ ...view, pods: Array.isArray(view.pods) ? [...view.pods] : view.pods })),
  });
  for (let count = 0; count < 200; count += 1) decideGroup(unseen(), group);
  return median(
    Array.from({ length: 200 }, () => {
      const snapshot = unseen();
      return timed(() => decideGroup(snapshot, group));
    }),
  );
}

/** Runs the engine alone on its model without faults, as a plan does to compute its times. */
function forwardMs(replicas: number): number {
  const { world, group } = rollingWorld(replicas);
  const call = (): unknown => runForward(world, group);
  for (let count = 0; count < 5; count += 1) call();
  return median(Array.from({ length: 15 }, () => timed(call)));
}

function floorOf(replicas: number): string {
  const { world } = rollingWorld(replicas);
  const ms = median(Array.from({ length: 100 }, () => timed(() => JSON.stringify(world.snapshot).length)));
  return `writing its snapshot as JSON ${ms.toFixed(2)} ms`;
}

/** Measures one completion while the cluster accepts connections and never answers. */
async function silentCompletion(): Promise<Figure> {
  // This process accepts no connection while it waits for its child, so the kernel alone does.
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const words = ['dist/kubectl_complete-rollout_group', 'status', '--server', `http://127.0.0.1:${port}`, ''];
  const value = median(Array.from({ length: 11 }, () => processMs(words)));
  silent.close();
  return {
    what: 'completion while the cluster is silent',
    value,
    bar: 300,
    unit: 'ms',
    floor: `bare node ${processMs(['-e', '0']).toFixed(0)} ms`,
  };
}

/** Measures all figures that need no cluster, in a minute. */
export async function offlineFigures(): Promise<readonly Figure[]> {
  return [
    await silentCompletion(),
    startUp('version', '--client'),
    startUp('--help'),
    {
      what: 'plan of 100 groups of 3 x 20 pods',
      value: median([planMs(100, 20, '5'), planMs(100, 20, '5'), planMs(100, 20, '5')]),
      bar: 1000,
      unit: 'ms',
      floor: `their manifests through JSON and back ${timed(() => JSON.parse(JSON.stringify([manifests(100, 20, 'store:1', '5'), manifests(100, 20, 'store:2', '5')]))).toFixed(0)} ms`,
    },
    wholePlan(100, 20),
    { what: 'plan of one group of 3 x 700 pods, 10% at once', value: planMs(1, 700, '10%'), bar: 5000, unit: 'ms', floor: floorOf(700) },
    { what: 'plan of one group of 3 x 700 pods, one at a time', value: planMs(1, 700, '1'), bar: 5000, unit: 'ms', floor: floorOf(700) },
    { what: 'decide for one group of 3 x 700 pods', value: decideMs(700), bar: 2, unit: 'ms', floor: floorOf(700) },
    { what: 'one rollout of 3 x 20 pods forward, as plans do it', value: forwardMs(20), bar: 20, unit: 'ms', floor: floorOf(20) },
    ...reviewFigures(),
  ];
}
