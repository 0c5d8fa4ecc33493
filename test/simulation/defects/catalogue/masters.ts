// Mistakes about the managers of fields: the agent writes fields of others, or does not report fields that are not from Git.
import type { Defect } from '../defect.ts';

export const masterDefects: readonly Defect[] = [
  {
    id: 'no-field-has-drifted',
    title: 'the status counts the fields of every manager as fields from Git',
    edits: [
      {
        file: 'engine/diff/field-writers.ts',
        find: "const known = fromManifests.flatMap((entry) => fieldAt(entry['fieldsV1'], ['f:spec']) ?? []);",
        replace: "const known = entries.flatMap((entry) => fieldAt(entry['fieldsV1'], ['f:spec']) ?? []);",
      },
    ],
    breaks: ['S23'],
  },
  {
    id: 'foreign-field-written',
    title: 'a change of the replicas also removes the time after which a pod counts as available',
    edits: [
      {
        file: 'agent/turn/perform.ts',
        find: 'const patch = { spec: { replicas: action.to } };',
        replace: 'const patch = { spec: { replicas: action.to, minReadySeconds: 0 } };',
      },
    ],
    breaks: ['S23'],
  },
];
