// Mistakes in windows and policy rules, and in the exceptions from them.
import type { Defect } from '../defect.ts';

const window = 'policies/window/window.ts';
const join = 'policies/join.ts';
const rules = 'engine/rules/policy.ts';

export const policyDefects: readonly Defect[] = [
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
        file: rules,
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
  {
    id: 'hold-holds-nothing',
    title: 'a rule with the effect hold lets every step pass',
    edits: [
      {
        file: rules,
        find: "return { results: [result(id, 'wait', fact, { ...details, endsBy })], effect };",
        replace: "return { results: [result(id, 'ok', fact, { ...details, endsBy })], effect };",
      },
    ],
    breaks: ['S41'],
  },
  {
    id: 'rule-reads-the-first-zone',
    title: 'a condition reads the first zone of the group as its target',
    edits: [
      { file: rules, find: 'zone: zone.zone.name,\n      labels', replace: "zone: context.view.zones[0]?.zone.name ?? '',\n      labels" },
    ],
    breaks: ['S41'],
  },
  {
    id: 'every-pod-counts-as-updated',
    title: 'a condition counts every pod of another zone as updated',
    edits: [
      {
        file: rules,
        find: 'ready, available: ready, updated, isReady };',
        replace: 'ready, available: ready, updated: replicas, isReady };',
      },
    ],
    breaks: ['S41'],
  },
  {
    id: 'rule-reads-the-old-replicas',
    title: 'a condition reads the replicas before the change as those after it',
    edits: [{ file: rules, find: '{ from: change.from, to: change.to,', replace: '{ from: change.from, to: change.from,' }],
    breaks: ['S41'],
  },
  {
    id: 'rule-asks-no-person',
    title: 'a rule that asks for an approval lets every step pass',
    edits: [{ file: rules, find: 'results: approvals.map(', replace: 'results: approvals.slice(1).map(' }],
    breaks: ['S41'],
  },
  {
    id: 'policy-with-an-error-is-dropped',
    title: 'a stored policy that becomes invalid no longer counts',
    edits: [
      {
        file: 'agent/policies/policies.ts',
        find: 'objects.map((object) => (broken.has(keyOf(object)) ? (this.#lastGood.get(keyOf(object)) ?? object) : object));',
        replace: 'objects.filter((object) => !broken.has(keyOf(object)));',
      },
    ],
    breaks: ['S26', 'S40', 'S41'],
  },
  {
    id: 'files-with-an-error-are-dropped',
    title: 'a policy directory with an error counts as an empty one',
    edits: [{ file: 'agent/policies/policies.ts', find: 'directory: this.#goodFiles ?? files,', replace: 'directory: [],' }],
    breaks: ['S26', 'S40', 'S41'],
  },
  {
    id: 'plan-approves-any-template',
    title: 'a rollout with any template counts as the approved one',
    edits: [{ file: 'engine/run/approved-plan.ts', find: '(template === set.template ?', replace: "(template !== '' ?" }],
    breaks: ['S41'],
  },
];
