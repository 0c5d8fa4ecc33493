// Runs in a thread: computes the tasks that it receives, one after the other.
import { parentPort } from 'node:worker_threads';
import { type Compute, computeHere } from './threads.ts';

parentPort?.on('message', (task: Parameters<Compute>) => {
  void computeHere(...task).then((output) => parentPort?.postMessage(output));
});
