// Runs in a thread of `simulate`: plays the scenarios that it receives, one after the other.
import { parentPort } from 'node:worker_threads';
import type { Scenario } from '../../simulation/scenario.ts';
import { playOne } from './play.ts';

parentPort?.on('message', (scenario: Scenario) => {
  void playOne(scenario).then((played) => parentPort?.postMessage(played));
});
