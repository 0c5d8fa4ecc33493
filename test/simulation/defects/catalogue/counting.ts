// Mistakes in counting: pods that are taken as available, as members, as outdated or as free to go and are not.
import type { Defect, Edit } from '../defect.ts';

const view = 'engine/observe/view.ts';
const invariants = 'engine/invariants/invariants.ts';
const replacing = 'engine/strategies/on-delete.ts';

/** What an invariant says of a decision is not asked. */
const silent = (find: string, replace: string): Edit => ({ file: invariants, find, replace });

/** The budget of a zone is not asked again. */
export const noBudgetInvariant: Edit = silent(
  'return down > limit ? [`zone ${view.zone.name} would have ${down} unavailable pods with a limit of ${limit}`] : [];',
  'return down < 0 ? [`zone ${view.zone.name} would have ${down} unavailable pods with a limit of ${limit}`] : [];',
);
const noFlightInvariant = silent('atOnce > Math.max(1, most)', 'atOnce > 1_000');

const upAndReady = 'return pod.isReady && pod.nodeReady &&';
const readyForSoLong = '(minReadySeconds === 0 || nowMs - pod.readyChangedMs >= minReadySeconds * 1000)';

export const countingDefects: readonly Defect[] = [
  {
    id: 'terminating-as-available',
    title: 'a pod that is going counts as available as long as it is ready',
    edits: [
      {
        file: view,
        find: "if (pod.phase !== 'Running' || pod.isTerminating) return false;",
        replace: "if (pod.phase !== 'Running') return false;",
      },
    ],
    breaks: ['S1', 'S2', 'S8'],
  },
  {
    id: 'unready-as-available',
    title: 'a pod that runs counts as available, ready or not',
    edits: [
      {
        file: view,
        find: upAndReady,
        replace: 'return pod.nodeReady &&',
      },
    ],
    breaks: ['S1', 'S2', 'S8'],
  },
  {
    id: 'min-ready-seconds-ignored',
    title: 'a pod counts as available as soon as it is ready',
    edits: [{ file: view, find: readyForSoLong, replace: '(minReadySeconds === 0 || nowMs >= minReadySeconds)' }],
    breaks: ['S1', 'S2', 'S8'],
  },
  {
    id: 'missing-pods-not-counted',
    title: 'only pods that exist can be unavailable',
    edits: [
      {
        file: view,
        find: 'const unavailable = set.replicas - available.size;',
        replace: 'const unavailable = members.length - available.size;',
      },
      { file: view, find: 'inFlight: starting + missing,', replace: 'inFlight: starting,' },
      { file: 'engine/ledger/ledger.ts', find: 'return !hasSuccessor(claim, zone, zone.pods, nowMs);', replace: 'return false;' },
    ],
    alsoWithout: 'the claim that stays open until there is a successor',
    breaks: ['S1', 'S2', 'S8', 'S9'],
  },
  {
    id: 'updated-pods-replaced',
    title: 'a pod that runs the update revision already is replaced all the same',
    edits: [
      {
        file: view,
        find: 'const outdated = members.filter(({ revision }) => revision !== desiredRevision);',
        replace: 'const outdated = members;',
      },
      {
        file: invariants,
        find: 'const wrong = pod.revision === view?.desiredRevision ? [`${action.pod} is at the update revision`] : [];',
        replace: "const wrong = pod.revision === '' ? [`${action.pod} is at the update revision`] : [];",
      },
    ],
    alsoWithout: 'the invariant S6, which the agent asks once more before each deletion',
    breaks: ['S6'],
  },
  {
    id: 'terminating-pods-deleted',
    title: 'a pod that is going already is deleted again',
    edits: [
      {
        file: replacing,
        find: 'if (pod.isTerminating || isClaimed(question.zone.view, pod) || waitsForLower',
        replace: 'if (isClaimed(question.zone.view, pod) || waitsForLower',
      },
      {
        file: invariants,
        find: '.filter((action) => zoneNamed(context, action.zone)?.pods.find((pod) => pod.uid === action.uid)?.isTerminating)',
        replace: '.filter((action) => zoneNamed(context, action.zone) === undefined)',
      },
      { file: replacing, find: 'const inFlight = isRepair ? inFlightBefore(view, pod) : view.inFlight;', replace: 'const inFlight = 0;' },
      noBudgetInvariant,
      noFlightInvariant,
    ],
    alsoWithout: 'the invariants S2, S7 and S9, and the limit of pods in flight',
    breaks: ['S7'],
  },
  {
    id: 'budget-not-spent',
    title: 'the pods that go in one turn do not count against one another',
    edits: [
      { file: replacing, find: "if (because === 'outdated' && isUp(question.context, view, pod)) left -= 1;", replace: '' },
      {
        file: replacing,
        find: 'const inFlight = isRepair ? inFlightBefore(view, pod) : view.inFlight;',
        replace: 'const inFlight = -1_000;',
      },
      noBudgetInvariant,
      noFlightInvariant,
    ],
    alsoWithout: 'the invariants S2 and S9, and the limit of pods in flight',
    breaks: ['S2', 'S8', 'S9'],
  },
];
