// Mistakes in a return to an earlier revision: by a rollback or by an undo.
import type { Defect } from '../defect.ts';

export const returningDefects: readonly Defect[] = [
  {
    id: 'rollback-to-the-failed-revision',
    title: 'a rollback has the failed revision of a zone as its target',
    edits: [
      {
        file: 'engine/run/run.ts',
        find: 'Object.entries(run.target).map(([zone, revision]) => [zone, run.previous[zone] ?? revision])',
        replace: "Object.entries(run.target).map(([zone, revision]) => [zone, zone === 'a' ? revision : (run.previous[zone] ?? revision)])",
      },
    ],
    breaks: ['S39'],
  },
  {
    id: 'rejoined-at-the-failed-revision',
    title: 'a zone that leaves the group during a rollback and returns has the failed revision as its target',
    edits: [
      {
        file: 'engine/run/states.ts',
        find: 'return run.target[zone] ?? run.restores?.[zone];',
        replace: 'return run.target[zone];',
      },
    ],
    breaks: ['S39'],
  },
  {
    id: 'recreated-without-the-block',
    title:
      'a StatefulSet of a rolled-back group that is created again rolls out the failed template, because its empty status ends the block',
    edits: [
      {
        file: 'engine/run/run.ts',
        find: 'if (known?.set === undefined || known.unknown !== undefined) return true;',
        replace: 'if (known?.set === undefined) return true;',
      },
      {
        file: 'engine/run/run.ts',
        find: 'return view.unknown !== undefined || view.set?.status.updateRevision === failed;',
        replace: 'return view.set === undefined || view.set.status.updateRevision === failed;',
      },
    ],
    breaks: ['S39'],
  },
  {
    id: 'created-at-the-failed-revision',
    title: 'a pod without a pin is created at the revision that was rolled back',
    edits: [
      {
        file: 'engine/strategies/pinned/placement.ts',
        find: 'return restoredRevision(run, zone, updateRevision) ?? restoredRevision(run, zone, revision) ?? revision;',
        replace: 'return revision;',
      },
    ],
    breaks: ['S39'],
  },
  {
    id: 'rolled-back-and-ready',
    title: 'the status calls a group ready and not degraded after a rollback',
    edits: [
      {
        file: 'engine/publish/status.ts',
        find: "  return run?.outcome === 'completed' && stops.some(({ rule }) => rule === rolledBackRule);\n",
        replace: "  return run?.outcome === 'failed' && stops.some(({ rule }) => rule === rolledBackRule);\n",
      },
    ],
    breaks: ['S39'],
  },
  {
    id: 'rollback-never-begins',
    title: 'a failed run stays as it is, although the group asks for a rollback',
    edits: [
      {
        file: 'engine/run/run.ts',
        find: 'export const rollbackDelayMs = 1_000;',
        replace: 'export const rollbackDelayMs = 1_000_000;',
      },
    ],
    breaks: ['S39'],
  },
  {
    id: 'rollback-to-nothing',
    title: 'a failed run without an earlier revision waits for its rollback in a busy loop',
    edits: [
      {
        file: 'engine/run/run.ts',
        find: 'const isChange = Object.keys(newRevisions(run)).length > 0;',
        replace: 'const isChange = true;',
      },
      {
        file: 'engine/run/run.ts',
        find: '  const revisions = newRevisions(run);\n',
        replace: '  const revisions = newRevisions(run);\n  if (Object.keys(revisions).length === 0) return undefined;\n',
      },
    ],
    breaks: ['L13'],
  },
  {
    id: 'return-of-one-zone-skips-soaks',
    title: 'a zone that returns to its earlier template lets the other zones roll to the new template without soaks and approvals',
    edits: [
      {
        file: 'engine/run/run.ts',
        find: '  if (mayBeBack && view.zones.every(',
        replace:
          '  if (view.zones.some((one) => isChanged(one) && isRestored(one))) return { isBack: true };\n  if (mayBeBack && view.zones.every(',
      },
    ],
    breaks: ['S37'],
  },
  {
    id: 'undo-ignored',
    title: 'the rollout of an undone revision continues',
    edits: [
      {
        file: 'engine/rules/roll.ts',
        find: 'if (undo === undefined) return undefined;',
        replace: "if (undo?.name !== '') return undefined;",
      },
    ],
    breaks: ['S39'],
  },
  {
    id: 'retry-by-the-clock',
    title: 'a retry counts only if it is dated after the end of the run',
    edits: [
      {
        file: 'engine/run/requests.ts',
        find: 'run.answered === undefined ? intent',
        replace: "action === 'retry' || run.answered === undefined ? intent",
      },
    ],
    breaks: ['L9', 'unfinished'],
  },
];
