// The end of a player that runs in a worker: plays the scenarios that it is sent with the sources that it was bundled from.
import { parentPort } from 'node:worker_threads';
import { judge } from '../../../scripts/soak/search/judge.ts';
import type { Asked, Told } from './player.ts';

const port = parentPort;
if (port === null) throw new Error('a player runs in a worker');

const answer = async ({ scenario, checks, options }: Asked): Promise<Told> => {
  try {
    return { kind: 'judged', judged: await judge(scenario, checks, options) };
  } catch (error) {
    return { kind: 'threw', message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
};

port.on('message', (asked: Asked) => {
  void answer(asked).then((told) => port.postMessage(told));
});
