import { describe, expect, it } from 'vitest';
import { type Action, replacedBy } from '../../../engine/decision.ts';
import { runForward } from '../../../engine/plan/forward.ts';
import { decideRelease } from '../../../engine/release/release.ts';
import { digestOfWaves } from '../../../engine/run/requests.ts';
import { type IntentView, isUnknown, type Snapshot, type StatefulSetView } from '../../../engine/snapshot.ts';
import type { World } from '../../../engine/world/model.ts';
import { step } from '../../../engine/world/world.ts';
import type { GroupDefinition, RolloutDefinition } from '../../../policies/definition.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { group, wave } from '../../kit/groups.ts';
import { kitNowMs, knownPods } from '../../kit/objects.ts';
import { outdatedSets } from '../../kit/questions.ts';
import { worldOf } from '../../kit/worlds.ts';
import { type Happening, type MidWaveEngine, type MidWaveOutcome, type MidWaveRow, midWaveStrategies, outcomeUnder } from './mid-wave.ts';
import { clusterRows } from './mid-wave-cluster.ts';
import { peopleRows } from './mid-wave-people.ts';

const midWaveRows: readonly MidWaveRow[] = [...clusterRows, ...peopleRows];

const zones = ['a', 'b', 'c'] as const;

function definitionOf({ rollout }: MidWaveRow, strategy: MidWaveEngine): GroupDefinition {
  const soak = { before: { gates: [] }, after: { soakMs: 600_000, gates: [] } };
  const waves = [wave('canary', ['a'], { amount: { pods: 1 }, ...soak }), wave('rest', zones)];
  return group({ rollout: { strategy, waves, ...rollout } });
}

const instant = (seconds: number): number => kitNowMs + seconds * 1000;
const setOf = (zone: string): string => `ingester-zone-${zone}`;

function withSnapshot(world: World, change: Partial<Snapshot>): World {
  return { ...world, snapshot: { ...world.snapshot, ...change } };
}

function intentsOf({ snapshot }: World): readonly IntentView[] {
  return isUnknown(snapshot.intents) ? [] : snapshot.intents;
}

/** What the StatefulSets of a group are like under its engine. */
function strategyOf(strategy: RolloutDefinition['strategy']): Pick<StatefulSetView, 'updateStrategy' | 'partition'> {
  return strategy === 'onDelete'
    ? { updateStrategy: 'OnDelete', partition: 0 }
    : { updateStrategy: 'RollingUpdate', partition: holdingPartition };
}

/** Somebody writes the update strategy of StatefulSets, and the controller sees it. */
function changeSets(world: World, names: readonly string[], change: Partial<ReturnType<typeof strategyOf>>): World {
  const isMeant = (name: string): boolean => names.some((zone) => setOf(zone) === name);
  const { statefulSets } = world.snapshot;
  const to = change.partition ?? 0;
  // The model looks at a StatefulSet when something of it changes by one of its inputs: so the partition comes last, by itself.
  const others = { ...change, partition: to + 1 };
  const changed = withSnapshot(world, { statefulSets: statefulSets.map((set) => (isMeant(set.name) ? { ...set, ...others } : set)) });
  return names.reduce((now, zone) => {
    const set = now.snapshot.statefulSets.find(({ name }) => name === setOf(zone));
    if (set === undefined) return now;
    const { namespace, name: statefulSet, uid, resourceVersion } = set;
    const target = { namespace, zone, statefulSet, uid, resourceVersion };
    const action: Action = { kind: 'setPartition', ...target, from: to + 1, to, because: 'outdated', pods: [] };
    return step(now, { kind: 'action', action });
  }, changed);
}

function happen(world: World, happening: Happening, definition: GroupDefinition): World {
  const { namespace } = definition;
  switch (happening.kind) {
    case 'template':
      return (happening.zones ?? zones).reduce(
        (now, zone) => step(now, { kind: 'setTemplate', namespace, statefulSet: setOf(zone), revision: happening.revision }),
        world,
      );
    case 'replicas':
      return happening.zones.reduce(
        (now, zone) => step(now, { kind: 'setReplicas', namespace, statefulSet: setOf(zone), replicas: happening.replicas }),
        world,
      );
    case 'person': {
      const run = world.snapshot.ledgers[0]?.run;
      const intent: IntentView = {
        namespace,
        name: `intent-${intentsOf(world).length + 1}`,
        group: definition.name,
        ...(run === undefined ? {} : { runId: run.id }),
        ...(happening.isAnonymous === true ? {} : { requestedBy: { user: 'kim', groups: ['oncall'], atMs: world.snapshot.nowMs } }),
        ...(happening.says.action === 'approve' ? { digest: digestOfWaves(definition) } : {}),
        ...happening.says,
      };
      return withSnapshot(world, { intents: [...intentsOf(world), intent] });
    }
    case 'takesBack':
      return withSnapshot(world, { intents: intentsOf(world).filter(({ action }) => action !== happening.action) });
    case 'podBreaks':
      return step(world, { kind: 'podFails', namespace, pod: `ingester-zone-${happening.pod}`, reason: 'CrashLoopBackOff' });
    case 'podDies':
      return step(world, { kind: 'podDies', namespace, pod: `ingester-zone-${happening.pod}` });
    case 'strategy': {
      const { strategy } = definition.rollout;
      const other = strategyOf(strategy === 'onDelete' ? 'partition' : 'onDelete');
      const types = { other, bare: { updateStrategy: 'RollingUpdate', partition: 0 }, own: strategyOf(strategy) } as const;
      return changeSets(world, happening.zones, types[happening.type]);
    }
    case 'partition':
      return changeSets(world, happening.zones, { partition: happening.partition });
    case 'waves':
    case 'policyGone':
    case 'policyBack':
      return world;
  }
}

function podsIn({ snapshot }: World, zone: string): string {
  return knownPods(snapshot.pods.find(({ statefulSet }) => statefulSet === setOf(zone)))
    .map(({ revision, isReady }) => `${revision.replace('rev-', '')}${isReady ? '' : '!'}`)
    .join(' ');
}

interface HandedBack {
  readonly world: World;
  readonly actions: readonly { readonly atMs: number; readonly action: Action }[];
  readonly isOver: boolean;
}

const readWhole = { directory: 'none', objects: 'complete', adopted: 'complete' } as const;

/** What follows without a policy, looked at every five seconds: its StatefulSets are handed back where it said so. */
function handBack(start: World, untilMs: number): HandedBack {
  const actions: HandedBack['actions'][number][] = [];
  let world = start;
  let isOver = false;
  for (;;) {
    const { snapshot } = world;
    const [ledger] = snapshot.ledgers;
    const isAsked = ledger?.release !== undefined;
    if (isAsked) {
      const question = { ledger, sources: readWhole, goneForMs: Number.POSITIVE_INFINITY, epoch: 0 };
      const decision = decideRelease({ snapshot: { ...snapshot, groups: [] }, ...question });
      world = withSnapshot(world, { ledgers: [decision.ledger] });
      isOver ||= decision.kind === 'over';
      if (decision.kind === 'release') {
        world = step(world, { kind: 'action', action: decision.action });
        actions.push({ atMs: snapshot.nowMs, action: decision.action });
      }
    }
    if (snapshot.nowMs >= untilMs) return { world, actions, isOver };
    world = step(world, { kind: 'elapse', toMs: isAsked ? Math.min(untilMs, snapshot.nowMs + 5_000) : untilMs });
  }
}

/** Runs forward from one happening to the next. Without a policy nobody decides any more, and time passes alone. */
function play(row: MidWaveRow, strategy: MidWaveEngine): MidWaveOutcome {
  let definition = definitionOf(row, strategy);
  let world = worldOf({ groups: [definition], statefulSets: outdatedSets(zones, strategyOf(strategy)) }, { approvals: 'missing' });
  const runs = new Map<string, string>();
  let replaced = 0;
  let end = 'nobody decides';
  let lastMs = kitNowMs;
  let hasPolicy = true;
  const forward = (untilMs?: number): void => {
    if (!hasPolicy) {
      const handed = handBack(world, untilMs ?? world.snapshot.nowMs + 86_400_000);
      for (const { atMs, action } of handed.actions) {
        replaced += replacedBy(action).length;
        lastMs = atMs;
      }
      world = handed.world;
      end = handed.isOver ? 'handed back' : 'nobody decides';
      return;
    }
    const ran = runForward(world, definition, {
      ...(untilMs === undefined ? {} : { untilMs }),
      hasDeadlines: true,
      onTurn: ({ nowMs, decision }) => {
        replaced += decision.actions.flatMap(replacedBy).length;
        lastMs = nowMs;
        if (decision.run !== undefined) runs.set(decision.run.id, `${decision.run.kind} ${decision.run.outcome}`);
      },
    });
    world = ran.world;
    const held = ran.last.decision.waits.map(({ rule, fact }) => `${rule}: ${fact}`);
    end = ran.end === 'held' ? (held[0] ?? 'held by nothing') : ran.end;
  };
  for (const happening of row.happens) {
    forward(instant(happening.at) - 1);
    world = step(world, { kind: 'elapse', toMs: instant(happening.at) });
    world = happen(world, happening, definition);
    if (happening.kind === 'waves') {
      definition = { ...definition, rollout: { ...definition.rollout, waves: happening.waves } };
      world = withSnapshot(world, { groups: [definition] });
    }
    if (happening.kind === 'policyGone') hasPolicy = false;
    if (happening.kind === 'policyBack') hasPolicy = true;
  }
  forward();
  const running = Object.fromEntries(zones.map((zone) => [zone, podsIn(world, zone)]));
  return { end, seconds: (lastMs - kitNowMs) / 1000, zones: running, replaced, runs: [...runs.values()] };
}

describe('in the middle of a wave', () => {
  describe.each(midWaveStrategies)('under the strategy %s', (strategy) => {
    it.each(midWaveRows)('$name', (row) => {
      expect(play(row, strategy)).toEqual(outcomeUnder(row, strategy));
    });
  });

  it('has a row for every possible event', () => {
    const kinds = new Set(midWaveRows.flatMap(({ happens }) => happens.map(({ kind }) => kind)));
    expect([...kinds].sort()).toEqual(
      [
        'partition',
        'person',
        'podBreaks',
        'podDies',
        'policyBack',
        'policyGone',
        'replicas',
        'strategy',
        'takesBack',
        'template',
        'waves',
      ].sort(),
    );
  });
});
