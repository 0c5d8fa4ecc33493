// The verb demo: shows the plan of an embedded example, then carries out the plan on a virtual clock.
import { setTimeout as pause } from 'node:timers/promises';
import { defaultAssumptions } from '../../engine/plan/document.ts';
import { runForward } from '../../engine/plan/forward.ts';
import { type PlanInput, planGroups } from '../../engine/plan/plan.ts';
import { readPlanSnapshots, requestedWorld } from '../../engine/plan/world.ts';
import { publishedDecision } from '../../engine/publish/decision.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { policyDigest } from '../../policies/digest.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes } from '../failure.ts';
import { renderPlanTable } from '../output/plan/table.ts';
import { type Moment, renderFrame, transitionKey, transitionLine } from '../output/status.ts';
import { zoneProgress } from '../output/zone-progress.ts';
import { readPolicyFiles } from '../policy-files.ts';
import { applyWhatIf, parseWhatIf } from '../source/what-if.ts';

/** The duration of the display, independent of the duration of the rollout. */
const displayMs = 10_000;
const frameHeight = 8;

export async function run(context: CommandContext, { fast = false }: { readonly fast?: boolean }): Promise<ExitCode> {
  const { stdout } = context;
  const input = demoInput();
  const plan = planGroups(input);
  const total = plan.groups[0]?.totals.p50Seconds;
  stdout.write(`Three zones of a database run ${input.groups[0]?.name ?? ''}s of one version. The requested image is ${demoImage}.\n\n`);
  stdout.write(renderPlanTable(plan, stdout));
  stdout.write('\nThe same plan on a virtual clock:\n\n');
  const moments = input.groups.flatMap((group) => momentsOf(input, group, total));
  if (canRedraw(context)) await play(context, moments, fast ? 0 : displayMs / Math.max(1, moments.length));
  else writeTransitions(context, moments);
  stdout.write(`\n${nextSteps}`);
  return exitCodes.done;
}

/** Reports whether the terminal can redraw a frame. CI output is a log. */
function canRedraw({ stdout, env }: CommandContext): boolean {
  return stdout.isTerminal && (env['CI'] ?? '') === '' && env['TERM'] !== 'dumb' && (process.stdout.rows ?? 0) > frameHeight;
}

function demoInput(): PlanInput {
  const { loaded, resolution } = readPolicyFiles([
    { name: 'manifests.yaml', text: demoManifests },
    { name: 'policy.yaml', text: demoPolicy },
  ]);
  const { groups, policies, exceptions } = resolution.bundle;
  const current = loaded.manifests.map(({ value }) => value);
  return {
    groups,
    policies,
    exceptions,
    policyDigest: policyDigest(resolution.bundle),
    current,
    desired: applyWhatIf(current, groups, [parseWhatIf(`image=${demoImage}`)]),
    assumptions: defaultAssumptions,
    nowMs: 0,
  };
}

/** Returns every decision of the run with the progress of each zone at that time. */
function momentsOf(input: PlanInput, group: GroupDefinition, totalSeconds: number | undefined): readonly Moment[] {
  const snapshots = readPlanSnapshots(input);
  const moments: Moment[] = [];
  runForward(requestedWorld(input, snapshots, group).world, group, {
    onTurn: ({ nowMs, decision }, { snapshot }) => {
      const published = publishedDecision({ group, decision, snapshot, atMs: nowMs });
      const zones = published.zones.map((zone) => zoneProgress(zone, published.pods));
      moments.push({ decision, zones, nowMs, elapsedSeconds: (nowMs - snapshots.nowMs) / 1000, totalSeconds });
    },
  });
  return moments;
}

/** Redraws in place. The cursor stays visible, so that an interrupt needs no cleanup. */
async function play({ stdout }: CommandContext, moments: readonly Moment[], frameMs: number): Promise<void> {
  const { createLogUpdate } = await import('log-update');
  const draw = createLogUpdate(process.stdout, { showCursor: true });
  for (const moment of moments) {
    draw(renderFrame(moment, stdout).join('\n'));
    await pause(frameMs);
  }
  draw.done();
}

function writeTransitions({ stdout }: CommandContext, moments: readonly Moment[]): void {
  let before = '';
  for (const moment of moments) {
    const key = transitionKey(moment);
    if (key !== before) stdout.write(`${transitionLine(moment)}\n`);
    before = key;
  }
}

/** The text after the demo. Its lines have at most 80 columns. */
const nextSteps = `Next steps. kubectl finds the plugin when dist/ is on the PATH; without
kubectl, write dist/kubectl-rollout_group instead of kubectl rollout-group.

  Plan a new version of your groups:
    kubectl rollout-group plan --current MANIFESTS --set image=REPOSITORY:TAG
  Create policy files for groups of grafana/rollout-operator:
    kubectl rollout-group init --from-dir MANIFESTS --out policies/
  Simulate the plan with pod failures:
    kubectl rollout-group simulate --current MANIFESTS --set image=REPOSITORY:TAG
  Show all verbs:
    kubectl rollout-group --help
`;

const zones = ['a', 'b', 'c'];

/** The running StatefulSets of three zones. The followers leave their replicas to the agent. */
export const demoManifests: string = zones
  .map(
    (zone) => `apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: ingester-zone-${zone}
  namespace: mimir
  labels: { app: ingester, zone: ${zone} }
spec:
${zone === 'a' ? '  replicas: 12\n' : ''}  serviceName: ingester
  podManagementPolicy: Parallel
  updateStrategy: { type: OnDelete }
  selector: { matchLabels: { app: ingester, zone: ${zone} } }
  template:
    metadata: { labels: { app: ingester, zone: ${zone} } }
    spec:
      containers:
        - name: ingester
          image: grafana/mimir:2.16.0
          args: [-target=ingester, -ingester.ring.instance-availability-zone=zone-${zone}]
          readinessProbe: { httpGet: { path: /ready, port: 8080 } }
`,
  )
  .join('---\n');

/** The policy: one pod, then its zone, then the other zones, with soaks and a gate. */
export const demoPolicy = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata: { name: ingester, namespace: mimir }
spec:
  members:
    zones:
      - { name: zone-a, statefulSet: ingester-zone-a }
      - { name: zone-b, statefulSet: ingester-zone-b, follows: zone-a }
      - { name: zone-c, statefulSet: ingester-zone-c, follows: zone-b }
  replicas: { leader: true }
  rollout:
    strategy: onDelete
    rotateBy: delete
    maxUnavailable: 25%
    waves:
      - { name: canary, zones: [zone-a], pods: 1, after: { soak: 5m, gates: [ingest-errors] } }
      - { name: first, zones: [zone-a], percent: 100, after: { soak: 15m } }
      - { name: rest, zones: [zone-b, zone-c], percent: 100 }
  gates:
    - name: ingest-errors
      prometheus: { source: prod, query: 'sum(rate(cortex_ingester_ingested_samples_failures_total[5m]))' }
      initialDelay: 2m
      consecutive: 10
      pass: { '<=': [{ var: value }, 0.5] }
`;

export const demoImage = 'grafana/mimir:2.17.1';
