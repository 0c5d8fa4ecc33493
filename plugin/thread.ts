// Runs in a thread: computes the tasks that it receives, one after the other.
import { parentPort, workerData } from 'node:worker_threads';
import { type Compute, computeHere, preload } from './threads.ts';

preload(workerData);

parentPort?.on('message', (task: Parameters<Compute>) => {
  void computeHere(...task).then((output) => parentPort?.postMessage(output));
});
