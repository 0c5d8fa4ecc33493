// Mistakes in the two-phase downscale: pods that leave too early, that were never asked, or that are never told to stay.
import type { Defect, Edit } from '../defect.ts';

const prepare = 'engine/rules/prepare.ts';
const leaving = 'engine/rules/leaving.ts';
const preparations = 'engine/decide/preparations.ts';
const invariants = 'engine/invariants/invariants.ts';

/** A pod need not have been prepared for the whole delay when it leaves. */
const noDelayInvariant: Edit = {
  file: invariants,
  find: 'if (!isRipe) return [`${pod.name} is removed before it has been prepared for the whole delay`];',
  replace: 'if (!isRipe) return [];',
};
/** A pod need not have been asked again when it leaves. */
export const noAnswerInvariant: Edit = {
  file: invariants,
  find: ': [`${pod.name} is removed without a recent confirmation`];',
  replace: ': [];',
};

export const preparingDefects: readonly Defect[] = [
  {
    id: 'pod-clock-trusted',
    title: 'the delay of a pod is counted from the time that the pod reports',
    edits: [
      {
        file: prepare,
        find: 'return isWithinClockSkew(context, reported) ? Math.max(reported, entry.seenMs) : entry.seenMs;',
        replace: 'return reported;',
      },
      noDelayInvariant,
      noAnswerInvariant,
    ],
    alsoWithout: 'the invariant S11, which the agent asks once more before each decrease',
    breaks: ['S11'],
  },
  {
    id: 'delay-not-waited',
    title: 'a pod leaves as soon as it has answered',
    edits: [
      {
        file: prepare,
        find: 'const ripeCount = answers.findIndex(({ sinceMs }) => context.nowMs - sinceMs < afterMs);',
        replace: 'const ripeCount = answers.findIndex(({ sinceMs }) => context.nowMs - sinceMs < -afterMs);',
      },
      {
        file: prepare,
        find: 'entry !== undefined && isNewAnswer(entry, { nowMs: context.nowMs, ripeMs: sinceMs + afterMs });',
        replace: 'entry !== undefined && isNewAnswer(entry, { nowMs: context.nowMs, ripeMs: sinceMs });',
      },
      noDelayInvariant,
      noAnswerInvariant,
    ],
    alsoWithout: 'the invariant S11, which the agent asks once more before each decrease',
    breaks: ['S11'],
  },
  {
    id: 'replaced-pod-as-prepared',
    title: 'what a pod has answered counts for the one that took its place',
    edits: [
      {
        file: prepare,
        find: 'candidate.zone === zone.zone.name && candidate.call === call && candidate.ordinal === pod.ordinal && candidate.podUid === pod.uid,',
        replace: 'candidate.zone === zone.zone.name && candidate.call === call && candidate.ordinal === pod.ordinal && pod.uid !== "",',
      },
      {
        file: preparations,
        find: 'answer.ordinal && podUid === answer.podUid);',
        replace: "answer.ordinal && podUid !== '');",
      },
      {
        file: preparations,
        find: 'if (before === undefined || before.podUid !== answer.podUid) return undefined;',
        replace: 'if (before === undefined) return undefined;',
      },
      {
        file: preparations,
        find: 'return isLater ? undefined : knownSince(before);',
        replace: 'return isLater && before.podUid === answer.podUid ? undefined : knownSince(before);',
      },
      {
        file: prepare,
        find: 'return isWithinClockSkew(context, reported) ? Math.max(reported, entry.seenMs) : entry.seenMs;',
        replace: 'return reported > 0 ? entry.seenMs : reported;',
      },
      noDelayInvariant,
      noAnswerInvariant,
    ],
    alsoWithout: 'the invariant S11, and both places where the time that the successor names begins the delay again',
    breaks: ['S11'],
  },
  {
    id: 'delay-continues-in-new-pod',
    title: 'the delay goes on in a new pod that reports the time of its predecessor',
    edits: [
      {
        file: preparations,
        find: 'answer.ordinal && podUid === answer.podUid);',
        replace: "answer.ordinal && podUid !== '');",
      },
      {
        file: preparations,
        find: 'if (before === undefined || before.podUid !== answer.podUid) return undefined;',
        replace:
          'if (before === undefined || (before.podUid !== answer.podUid && before.reportedMs !== answer.reportedMs)) return undefined;',
      },
    ],
    breaks: ['S11'],
  },
  {
    id: 'lost-pod-leaves-unprepared',
    title: 'a leaving pod that is lost for a moment ends its delay',
    edits: [
      {
        file: leaving,
        find: 'const end = Math.max(first, Math.min(set.firstOrdinal + change.from, createdEnd(set, zone.pods)));',
        replace: 'const end = Math.max(first, Math.min(first, createdEnd(set, zone.pods)));',
      },
      {
        file: leaving,
        find: '(ordinal) => ordinal >= end && isLeaving(zone, change, ordinal) && !present.has(ordinal),',
        replace: '(ordinal) => ordinal < 0 && isLeaving(zone, change, ordinal) && !present.has(ordinal),',
      },
    ],
    breaks: ['S11'],
  },
  {
    id: 'never-told-to-stay',
    title: 'pods of a downscale that was called off are not told to stay',
    edits: [
      {
        file: prepare,
        find: "if (distinct.length > 0) actions.push(callPods(question, call, 'DELETE', distinct));",
        replace: '',
      },
    ],
    breaks: ['L5', 'L12', 'unfinished'],
  },
  {
    id: 'asked-without-a-note',
    title: 'pods are asked to prepare before the ledger says so',
    edits: [
      {
        file: 'agent/turn/turn.ts',
        find: "if (action.kind === 'callPods') announced = noteAsked(announced, action, calledPods(action, this.#snapshot), nowMs);",
        replace:
          "if (action.kind === 'callPods' && nowMs < 0) announced = noteAsked(announced, action, calledPods(action, this.#snapshot), nowMs);",
      },
    ],
    breaks: ['L5', 'S19', 'L12', 'unfinished'],
  },
  {
    id: 'failed-preparation-forgotten',
    title: 'a pod whose answer was lost counts as not asked, and is never told to stay',
    edits: [
      {
        file: preparations,
        find: 'return { ...ledger, preparations: [...others, ...answered] };',
        replace: "return { ...ledger, preparations: [...others, ...answered.filter(({ state }) => state === 'prepared')] };",
      },
    ],
    breaks: ['L5', 'L12', 'unfinished'],
  },
  {
    id: 'failed-withdrawal-forgotten',
    title: 'a pod that did not hear that it stays counts as told',
    edits: [
      {
        file: preparations,
        find: "const heard = call.method === 'DELETE' ? answers.filter(({ result }) => result === 'done') : answers;",
        replace: 'const heard = answers;',
      },
    ],
    breaks: ['L5', 'L12', 'unfinished'],
  },
];
