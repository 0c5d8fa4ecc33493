// Creates the writers for which no turn waits: published decisions, Events, records of runs, and notifications.
import { within } from '../../cluster/env.ts';
import type { Agent } from '../agent.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import { Notifier } from '../notify/notifier.ts';
import type { TurnListener } from '../report.ts';
import { EventWriter } from './events.ts';
import { GroupObjects } from './group-objects.ts';
import { DecisionPublisher } from './publisher.ts';
import { RunRecorder } from './run-records.ts';

interface WritersOptions {
  /** The ports of the writers. They have separate connections and a separate rate limit, so that writers never delay actions. */
  readonly env: AgentEnv;
  readonly config: AgentConfig;
  /** Returns whether this process leads, and certainly holds its Lease for the time of a request. */
  readonly mayWrite: () => boolean;
  readonly onWrite?: (writer: 'decision' | 'event' | 'run', result: 'done' | 'failed' | 'dropped') => void;
  /** Called after each attempt to notify a channel. */
  readonly onNotified?: (channel: string, result: string) => void;
}

type Writers = ReturnType<typeof createWriters>;

const flushMs = 5_000;

export function createWriters({ env, config, mayWrite, onWrite, onNotified }: WritersOptions) {
  const objects = new GroupObjects(env, config.kubernetesTimeoutMs);
  const publisher = new DecisionPublisher({ env, config, objects, mayWrite, onWrite: (result) => onWrite?.('decision', result) });
  const events = new EventWriter({ env, config, objects, onWrite: (result) => onWrite?.('event', result) });
  const runs = new RunRecorder({ env, config, mayWrite, onWrite: (result) => onWrite?.('run', result) });
  const onResult = onNotified === undefined ? {} : { onResult: onNotified };
  // Without access to notification services, no notification is sent.
  const notifier = env.notify === undefined ? [] : [new Notifier({ env, config, ...onResult })];
  const writers = [publisher, events, runs, ...notifier];
  return {
    listeners: writers.map(({ listener }): TurnListener => listener),
    /** Begins the hand-over: from now on, a loss of leadership does not drop the pending writes, so that `close` can do them. */
    beginHandOver: (): void => {
      for (const writer of writers) writer.beginHandOver();
    },
    /** Does the pending writes and accepts no further write. */
    close: async (): Promise<void> => {
      await Promise.all(writers.map((writer) => writer.close()));
    },
  };
}

/** Stops the agent and then gives the writers 5 s to publish its last turns. `guarded` is the argument of `Agent.stop`. */
export async function handOver(env: Pick<AgentEnv, 'timers'>, agent: Agent, writers: Writers, guarded?: Promise<unknown>): Promise<void> {
  writers.beginHandOver();
  await agent.stop(guarded);
  await within(env, flushMs, writers.close());
}
