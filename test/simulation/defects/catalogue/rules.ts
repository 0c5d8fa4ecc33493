// Mistakes in the rules of the engine: what holds a rollout or a change of replicas does not hold it.
import type { Defect, Edit } from '../defect.ts';

const invariants = 'engine/invariants/invariants.ts';
const roll = 'engine/rules/roll.ts';
const scale = 'engine/rules/scale.ts';

/** The invariant S1 does not hold a decision. */
const noOneZoneInvariant: Edit = {
  file: invariants,
  find: 'return [...several, ...broken];',
  replace: 'return several.concat(broken).slice(0, 0);',
};
const noSettledInvariant: Edit = {
  file: invariants,
  find: 'return begun !== undefined && open !== undefined && !open.isReady ?',
  replace: 'return begun !== undefined && open !== undefined && open.zone.name === "" ?',
};

const noMixingInvariant: Edit = {
  file: invariants,
  find: "        run?.outcome === 'running' &&\n        run.openZone !== undefined &&",
  replace: "        run?.outcome === 'completed' &&\n        run.openZone !== undefined &&",
};

/** A zone shrinks although another one is not whole. */
const shrinkBesideOthers: Edit = {
  file: scale,
  find: "return result('other-zones-ready', 'wait', describeReadiness(view), { limit: 'all available', earliestMs: view.availableAtMs });",
  replace: "return result('other-zones-ready', 'ok', describeReadiness(view));",
};

export const ruleDefects: readonly Defect[] = [
  {
    id: 'shrinks-during-a-rollout',
    title: 'a zone shrinks while a rollout runs, although the group scales down after rollouts',
    edits: [
      {
        file: scale,
        find: "return result('rollout-in-progress', 'wait', 'a rollout runs', { source });",
        replace: "return result('rollout-in-progress', 'ok', 'a rollout runs', { source });",
      },
      noMixingInvariant,
    ],
    alsoWithout: 'the invariant S15',
    breaks: ['S15'],
  },
  {
    id: 'shrinks-next-to-a-rolling-zone',
    title: 'a zone shrinks during a rollout of another zone',
    edits: [
      {
        file: scale,
        find: 'const elsewhere = run.openZone !== undefined && run.openZone !== zone.zone.name;',
        replace: "const elsewhere = run.openZone === '';",
      },
      noMixingInvariant,
    ],
    alsoWithout: 'the invariant S15',
    breaks: ['S15'],
  },
  {
    id: 'grows-between-replacements',
    title: 'a zone grows while a pod of the open zone is being replaced',
    edits: [
      {
        file: scale,
        find: 'const rolling = open !== undefined && (open.inFlight > 0 || isClaimedByAgent) ? open : undefined;',
        replace: 'const rolling = open !== undefined && open.inFlight > 99 ? open : undefined;',
      },
    ],
    breaks: ['S15'],
  },
  {
    id: 'other-zones-ignored',
    title: 'a zone rolls whatever state the others are in',
    edits: [
      {
        file: roll,
        find: 'const others = down.filter((view) => view.zone.name !== name && !(isLenient && view.zone.paused));',
        replace: 'const others = down.filter((view) => view.zone.name === "" && !(isLenient && view.zone.paused));',
      },
      noOneZoneInvariant,
      noSettledInvariant,
    ],
    alsoWithout: 'the invariants S1 and S8, which the agent asks once more before each deletion',
    breaks: ['S1'],
  },
  {
    id: 'pause-ignored',
    title: 'what a person paused goes on',
    edits: [
      {
        file: roll,
        find: "if (pause === undefined) return result('paused', 'ok', 'no pause applies');",
        replace: "if (pause === undefined || zone !== '') return result('paused', 'ok', 'no pause applies');",
      },
    ],
    breaks: ['S28'],
  },
  {
    id: 'rollout-not-frozen',
    title: 'a group that is defined during a rollout lets its StatefulSet controllers replace every pod',
    edits: [
      {
        file: 'engine/rules/pod-state.ts',
        find: 'return to > set.partition ? to : undefined;',
        replace: 'return to > set.partition + 2_000_000 ? to : undefined;',
      },
    ],
    breaks: ['S6'],
  },
  {
    id: 'zone-gap-ignored',
    title: 'two zones shrink one right after the other',
    edits: [
      {
        file: 'engine/rules/zone-gap.ts',
        find: "if (isStrict ? passed > limitMs : passed >= limitMs) return result('zone-gap', 'ok', fact, { limit, source, age });",
        replace: "if (isStrict ? passed > limitMs : passed >= -limitMs) return result('zone-gap', 'ok', fact, { limit, source, age });",
      },
      {
        file: invariants,
        find: '.filter((record) => record.zone !== action.zone && record.atMs <= context.nowMs && context.nowMs - record.atMs < gapMs)',
        replace: '.filter((record) => record.zone !== action.zone && record.atMs <= context.nowMs && context.nowMs - record.atMs < -gapMs)',
      },
    ],
    alsoWithout: 'the invariant S12, which the agent asks once more before each decrease',
    breaks: ['S12'],
  },
  {
    id: 'downscales-not-recorded',
    title: 'a decrease is forgotten once it is done, so that the next zone does not wait for the time between zones',
    edits: [
      {
        file: 'engine/ledger/ledger.ts',
        find: 'if (isDated) return [];',
        replace: 'if (isDated || claim.atMs > 0) return [];',
      },
    ],
    breaks: ['S12'],
  },
  {
    id: 'follower-counts-ready-pods',
    title: 'a follower takes over how many pods of its leader are available instead of how many it should have',
    edits: [
      {
        file: 'engine/decide/replicas.ts',
        find: 'return { replicas: leader.replicas, isForced: false, answer };',
        replace: 'return { replicas: leader.replicas - leader.unavailable, isForced: false, answer };',
      },
      {
        file: scale,
        find: 'const floor = Math.max(leader.replicas, leader.pods.length);',
        replace: 'const floor = 0 * leader.pods.length;',
      },
      shrinkBesideOthers,
      {
        file: invariants,
        find: 'return action.to < leader.replicas ? [`zone ${action.zone} shrinks below its leader`] : [];',
        replace: 'return action.to < 0 ? [`zone ${action.zone} shrinks below its leader`] : [];',
      },
      noOneZoneInvariant,
    ],
    alsoWithout: 'the rules leader-floor and other-zones-ready and the invariants S1 and S13',
    breaks: ['S13'],
  },
  {
    id: 'rolls-while-shrinking',
    title: 'pods are replaced while a zone still loses pods',
    edits: [
      {
        file: roll,
        find: 'const shrinking = all.find((view) => !isShrinkHeld(context, view));',
        replace: 'const shrinking = all.find((view) => view.replicas < 0);',
      },
      {
        file: roll,
        find: 'const down = context.view.zones.filter((view) => !view.isReady);\n  const isLenient = profileOf',
        replace:
          'const down = context.view.zones.filter((view) => !view.isReady && (view.unavailable > 0 || view.unknown !== undefined));\n  const isLenient = profileOf',
      },
      {
        file: invariants,
        find: '...shrinking.map((view) => `pods are replaced while zone ${view.zone.name} shrinks`),',
        replace: '...shrinking.slice(0, 0).map((view) => view.zone.name),',
      },
      noOneZoneInvariant,
    ],
    alsoWithout: 'the rule other-zones-ready for surplus pods, and the invariants S1 and S15',
    breaks: ['S15'],
  },
  {
    id: 'shrinks-while-rolling',
    title: 'a zone shrinks while the group rolls',
    edits: [
      shrinkBesideOthers,
      noOneZoneInvariant,
      {
        file: scale,
        find: "if (zone.zone.duringRollout === 'wait') return result('rollout-in-progress', 'wait', 'a rollout runs', { source });",
        replace: '',
      },
      {
        file: scale,
        find: 'const elsewhere = run.openZone !== undefined && run.openZone !== zone.zone.name;',
        replace: 'const elsewhere = run.openZone === "";',
      },
      {
        file: invariants,
        find: '...rolling.map((action) => `zone ${action.zone} shrinks during the rollout of zone ${run?.openZone}`),',
        replace: '...rolling.slice(0, 0).map((action) => action.zone),',
      },
    ],
    alsoWithout: 'the rule other-zones-ready and the invariants S1 and S15, which the agent asks once more before each decrease',
    breaks: ['S1', 'S15'],
  },
];
