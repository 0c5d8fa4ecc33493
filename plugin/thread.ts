// Runs in a thread: computes the tasks that it receives and that no other thread began, one after the other.
import { parentPort, workerData } from 'node:worker_threads';
import { begin, computeHere, preload, type SentTask } from './threads.ts';

preload(workerData);

/** Resolves when the last received task has ended. The outputs have the order of the tasks, also while code still loads. */
let ended = Promise.resolve();

parentPort?.on('message', ({ task, begun }: SentTask) => {
  ended = ended.then(async () => {
    if (begin(begun)) parentPort?.postMessage(await computeHere(...task));
  });
});
