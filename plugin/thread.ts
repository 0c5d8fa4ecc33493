// Runs in a thread: computes the tasks that it receives and that no other thread began, one after the other.
import { parentPort, workerData } from 'node:worker_threads';
import { begin, computeHere, preload, type SentTask } from './threads.ts';

preload(workerData);

parentPort?.on('message', ({ task, begun }: SentTask) => {
  if (begin(begun)) void computeHere(...task).then((output) => parentPort?.postMessage(output));
});
