// The metric inputs of policies: asked for while this process leads and a rule that binds a group reads them; kept in memory, and never stored.

import { countedInputs, metricView } from '../../engine/observe/readings.ts';
import type { MetricView } from '../../engine/snapshot.ts';
import type { GroupDefinition, PolicyDefinition } from '../../policies/definition.ts';
import { inputEveryMs, inputsRead, type MetricSourceDefinition } from '../../policies/integrations/metric-source.ts';
import { policiesFor } from '../../policies/join.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import type { AgentEnv } from '../env.ts';
import { groupKey } from '../wake-index.ts';
import { type ReadGate, readGate } from './read-gate.ts';
import { prometheusAsker } from './source-askers.ts';

export interface MetricReader {
  /** Returns the readings of every input. Without I/O. */
  readonly readings: () => readonly MetricView[];
  /**
   * From now on the inputs are read that these policies read of these groups, and no others. To be told whenever policies or groups change, and
   * when this process begins to lead: before that nothing is asked.
   */
  readonly follow: (groups: readonly GroupDefinition[], policies: readonly PolicyDefinition[]) => void;
  /** Forgets all readings: the next leader starts from none. */
  readonly clear: () => void;
  /** Forgets everything for good. */
  readonly stop: () => void;
}

interface MetricReaderOptions {
  /** Without `gates` nothing is read. */
  readonly env: Pick<AgentEnv, 'clock' | 'timers' | 'gates'>;
  /** The policies there may name other namespaces. */
  readonly agentNamespace: string;
  /** Returns the definition of a metric source in the agent's policy files. */
  readonly written: (source: string) => MetricSourceDefinition | undefined;
  /** Asked before each question. */
  readonly isLeading: () => boolean;
  /** A reading has come that the groups of these keys are bound by. */
  readonly onReading: (keys: readonly string[]) => void;
}

interface Input {
  readonly namespace: string;
  readonly policy: string;
  readonly input: string;
  readonly metric: PolicyDefinition['metrics'][string];
  /** Keys of the groups that it binds. */
  readonly groups: readonly string[];
}

interface Known {
  input: Input;
  /** As text: the answer to another question says nothing about this one. */
  readonly definition: string;
  readonly read: ReadGate;
}

/** A reader of which nothing is wanted yet. */
export function metricReader({ env, agentNamespace, written, isLeading, onReading }: MetricReaderOptions): MetricReader {
  const known = new Map<string, Known>();
  /** Inputs with a question under way, also forgotten ones: no source is asked twice at a time for one input. */
  const asking = new Set<string>();
  let isStopped = false;

  const forget = (key: string): void => {
    known.get(key)?.read.end();
    known.delete(key);
  };
  const clear = (): void => {
    for (const key of [...known.keys()]) forget(key);
  };
  const begin = (key: string, input: Input, gates: NonNullable<AgentEnv['gates']>): void => {
    const { namespace, metric } = input;
    const everyMs = inputEveryMs(metric.maxAgeMs);
    const asker = prometheusAsker(gates, metric, { namespace, everyMs, written: () => written(metric.source), site: 'metric.read' });
    const read = readGate({
      env,
      everyMs,
      counted: countedInputs,
      asker: {
        ...asker,
        ask: async (asked) => {
          asking.add(key);
          try {
            return await asker.ask(asked);
          } finally {
            asking.delete(key);
            known.get(key)?.read.askIfDue();
          }
        },
      },
      mayAsk: () => isLeading() && !asking.has(key),
      onReading: () => onReading(known.get(key)?.input.groups ?? []),
    });
    known.set(key, { input, definition: definitionOf(metric), read });
    // Readings count by their age alone, so they may have any instant.
    read.readFrom(0);
  };

  return {
    readings: () => [...known.values()].flatMap(({ input, read }) => metricView(nameOf(input), read.readings()) ?? []),
    follow: (groups, policies) => {
      const { gates } = env;
      if (isStopped || !isLeading() || gates === undefined) return;
      const wanted = wantedInputs(groups, policies, agentNamespace);
      for (const [key, { definition }] of [...known]) {
        const input = wanted.get(key);
        if (input === undefined || definitionOf(input.metric) !== definition) forget(key);
      }
      for (const [key, input] of wanted) {
        const before = known.get(key);
        if (before === undefined) begin(key, input, gates);
        else before.input = input;
      }
    },
    clear,
    stop: () => {
      isStopped = true;
      clear();
    },
  };
}

/** Returns each input that a rule of a group reads, by a unique key. */
function wantedInputs(
  groups: readonly GroupDefinition[],
  policies: readonly PolicyDefinition[],
  agentNamespace: string,
): ReadonlyMap<string, Input> {
  const bound = new Map<PolicyDefinition, string[]>();
  const reading = policies.filter((policy) => inputsRead(policy).length > 0);
  for (const group of reading.length === 0 ? [] : groups) {
    for (const policy of policiesFor(reading, group, agentNamespace)) {
      const keys = bound.get(policy);
      if (keys === undefined) bound.set(policy, [groupKey(group)]);
      else keys.push(groupKey(group));
    }
  }
  const inputs = [...bound].flatMap(([policy, keys]) =>
    inputsRead(policy).flatMap((input): Input[] => {
      const metric = policy.metrics[input];
      return metric === undefined ? [] : [{ namespace: policy.namespace, policy: policy.name, input, metric, groups: keys }];
    }),
  );
  return new Map(inputs.map((input) => [`${input.namespace}/${input.policy}/${input.input}`, input]));
}

function nameOf({ namespace, policy, input }: Input): Pick<MetricView, 'namespace' | 'policy' | 'input'> {
  return { namespace, policy, input };
}

function definitionOf({ source, query, maxAgeMs }: Input['metric']): string {
  return canonicalJson({ source, query, maxAgeMs });
}
