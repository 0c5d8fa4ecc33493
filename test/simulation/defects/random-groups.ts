// Checks the decisions of random groups in a worker, with the engine that it was bundled from.
import { parentPort } from 'node:worker_threads';
import { checkDecisions, checkPartitions, checkPins, checkRuns } from '../../engine/property/harness.ts';

/** Each stops at the first violation. The numbers of groups are those of CI. */
const checks = [
  () => checkDecisions(1, 2000, 1),
  () => checkPartitions(1, 1500, 1),
  () => checkPins(1, 1500, 1),
  () => checkRuns(1, 150, 1),
];

function firstFound(): string | undefined {
  for (const check of checks) {
    try {
      const [first] = check().found;
      if (first !== undefined) return `group ${first.seed}: ${first.what}`;
    } catch (error) {
      return String(error);
    }
  }
  return undefined;
}

parentPort?.postMessage(firstFound());
