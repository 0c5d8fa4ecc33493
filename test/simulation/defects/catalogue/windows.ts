// Mistakes in windows, and in the exceptions from them.
import type { Defect } from '../defect.ts';

const window = 'policies/window/window.ts';
const join = 'policies/join.ts';

export const windowDefects: readonly Defect[] = [
  {
    id: 'downscale-outside-windows',
    title: 'replicas decrease outside of the windows',
    edits: [
      {
        file: 'engine/rules/scale.ts',
        find: "windowResult(context, 'scaleDown', 'nothing')",
        replace: "windowResult(context, 'restart', 'nothing')",
      },
    ],
    breaks: ['S40'],
  },
  {
    id: 'allow-window-wins',
    title: 'an open allow window opens a deny window',
    edits: [
      {
        file: window,
        find: 'const denying = denies.filter(({ isOpen, isUnreadable }) => isOpen || isUnreadable);',
        replace:
          'const denying = denies.filter(({ isOpen, isUnreadable }) => (isOpen || isUnreadable) && !allows.some((one) => one.isOpen));',
      },
    ],
    breaks: ['S40'],
  },
  {
    id: 'zone-of-a-schedule-ignored',
    title: 'a schedule is read in UTC, whatever its time zone',
    edits: [{ file: window, find: 'return { cron, timeZone, everStarts', replace: "return { cron, timeZone: 'Etc/UTC', everStarts" }],
    breaks: ['S40'],
  },
  {
    id: 'run-finishes-for-its-zone',
    title: 'a window that lets a zone finish lets every zone start',
    edits: [
      {
        file: 'engine/rules/policy.ts',
        find: "return inFlight === 'finishAll' || (inFlight === 'finishZone' && underWay === 'zone');",
        replace: "return inFlight === 'finishAll' || inFlight === 'finishZone';",
      },
    ],
    breaks: ['S40'],
  },
  {
    id: 'exception-without-end',
    title: 'an exception still counts an hour after its end',
    edits: [{ file: join, find: 'nowMs < expiresMs && nowMs', replace: 'nowMs < expiresMs + 3_600_000 && nowMs' }],
    breaks: ['S40'],
  },
  {
    id: 'exception-of-every-zone',
    title: 'an exception for one zone counts for every zone',
    edits: [
      {
        file: join,
        find: '.filter((exception) => exception.zone === undefined || exception.zone === zone)',
        replace: ".filter((exception) => exception.zone === undefined || zone !== '')",
      },
    ],
    breaks: ['S40'],
  },
];
