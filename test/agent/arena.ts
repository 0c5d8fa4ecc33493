// A namespace with one group, an agent, and a watcher that records what the agent does. The suites of the agent share it.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type InProcessAgent, type InProcessOptions, startInProcess } from '../control-plane/agent-in-process.ts';
import { type AgentProcess, type AgentProcessOptions, startAgentProcess } from '../control-plane/agent-process.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { type GroupOptions, TestGroup } from '../control-plane/group.ts';
import type { HistoryRecorder } from '../control-plane/history.ts';
import { agentRules, grant, grantNodes, type Rule } from '../control-plane/roles.ts';
import { checkHistory, countWrites } from '../kit/watcher.ts';
import type { History } from '../kit/watcher-history.ts';

export interface ArenaOptions extends GroupOptions {
  /** Those of deploy/rbac.yaml when absent. */
  readonly rules?: readonly Rule[];
}

export interface Arena {
  readonly group: TestGroup;
  readonly start: (options?: Partial<AgentProcessOptions>) => Promise<AgentProcess>;
  readonly startInside: (options: Pick<InProcessOptions, 'name'> & Partial<InProcessOptions>) => Promise<InProcessAgent>;
  /** What has happened in the namespace. */
  readonly history: () => Promise<History>;
  /** Fails when the agent has broken a rule; answers how often it wrote what. */
  readonly expectKept: () => Promise<Readonly<Record<string, number>>>;
  /** Stops every agent that was started here; what they have written is kept beside the logs of the control plane. */
  readonly close: () => Promise<void>;
}

/** Creates the group, all Ready, and gives the agent its Role there. */
export async function openArena(controlPlane: ControlPlane, recorder: HistoryRecorder, options: ArenaOptions): Promise<Arena> {
  const { client, identities, url } = controlPlane;
  const { namespace, rules = agentRules() } = options;
  const group = new TestGroup(client, options);
  await group.create();
  await grant(client, identities.agent, namespace, rules);
  await grantNodes(client, identities.agent);
  const running: { readonly stop: () => Promise<unknown>; readonly log: () => string }[] = [];
  const history = async (): Promise<History> => {
    const { requests, events } = await recorder.read();
    const here = requests.filter(({ objectRef }) => objectRef?.namespace === namespace);
    return { requests: here, events: events.filter(({ kind, object }) => kind === 'Node' || object.metadata.namespace === namespace) };
  };
  return {
    group,
    start: async (more = {}) => {
      const agent = await startAgentProcess({ url, identity: identities.agent, namespace, ...more });
      running.push(agent);
      return agent;
    },
    startInside: async (more) => {
      const agent = await startInProcess({ url, identity: identities.agent, namespace, ...more });
      running.push(agent);
      return agent;
    },
    history,
    expectKept: async () => {
      const seen = await history();
      expect(checkHistory(seen, [identities.agent.user], [group.watched])).toEqual([]);
      return countWrites(seen, [identities.agent.user]);
    },
    close: async () => {
      await Promise.all(running.map(({ stop }) => stop()));
      for (const [index, { log }] of running.entries()) {
        writeFileSync(join(controlPlane.folder, 'logs', `agent-${namespace}-${index}.log`), log());
      }
    },
  };
}

/** Of all writes those that change what is looked after: how they are remembered and told may differ from run to run. */
export function onWorkloads(counts: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(counts).filter(([what]) => / (pods|statefulsets|replicatemplates)(\/|$)/.test(what)));
}
