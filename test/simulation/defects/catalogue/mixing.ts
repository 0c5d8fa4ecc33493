// Mistakes that mix up two groups: of one namespace, or of one name in two namespaces.
import type { Defect } from '../defect.ts';

const context = 'engine/context.ts';
const ledgers = 'agent/turn/ledgers.ts';

export const mixingDefects: readonly Defect[] = [
  {
    id: 'requests-of-every-group',
    title: 'a group obeys the requests about every group of its namespace',
    edits: [
      {
        file: context,
        find: 'intent.namespace === group.namespace && intent.group === group.name',
        replace: 'intent.namespace === group.namespace',
      },
    ],
    breaks: ['L7'],
  },
  {
    id: 'ledgers-without-namespace',
    title: 'groups with the same name in two namespaces have one ledger',
    edits: [
      {
        file: ledgers,
        find: 'return getOrCreate(this.#shared, groupKey(group), create);',
        replace: 'return getOrCreate(this.#shared, group.name, create);',
      },
    ],
    breaks: ['L7', 'S19'],
  },
  {
    id: 'ledgers-without-group',
    title: 'the groups of a namespace have one ledger, so that the claims of one count for the others',
    edits: [
      {
        file: ledgers,
        find: 'return getOrCreate(this.#shared, groupKey(group), create);',
        replace: 'return getOrCreate(this.#shared, group.namespace, create);',
      },
    ],
    breaks: ['L7', 'S19'],
  },
  {
    id: 'labels-without-group',
    title: 'the StatefulSets with the label of a group belong to one group of their namespace',
    edits: [
      {
        file: 'policies/adopt/adopt.ts',
        find: '`${namespace}\\0${labels[labelKeys.group]}`;',
        replace: '`${namespace}\\0${String(labels[labelKeys.group] !== undefined)}`;',
      },
    ],
    breaks: ['L7', 'unfinished'],
  },
];
