// Queries the metric inputs of policies while this process leads and a rule of a group uses them, and keeps the readings in memory only.

import { countedInputs, metricView } from '../../engine/observe/readings.ts';
import type { MetricView } from '../../engine/snapshot.ts';
import type { GroupDefinition, PolicyDefinition } from '../../policies/definition.ts';
import { inputEveryMs, inputsRead, type MetricSourceDefinition } from '../../policies/integrations/metric-source.ts';
import { policiesFor } from '../../policies/join.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { getOrCreate } from '../../policies/values/map.ts';
import type { AgentEnv } from '../env.ts';
import { groupKey } from '../wake-index.ts';
import { type ReadGate, readGate, trackQueries } from './read-gate.ts';
import { prometheusClient } from './source-clients.ts';

interface MetricReaderOptions {
  /** If `gates` is absent, no metric is read. */
  readonly env: Pick<AgentEnv, 'clock' | 'timers' | 'gates'>;
  /** The namespace of the agent. Policies in it may apply to other namespaces. */
  readonly agentNamespace: string;
  /** Returns the definition of a metric source in the agent's policy files. */
  readonly written: (source: string) => MetricSourceDefinition | undefined;
  /** Returns whether this process leads. Called before each query. */
  readonly isLeading: () => boolean;
  /** Called after each new reading, with the keys of the groups whose rules use it. */
  readonly onReading: (keys: readonly string[]) => void;
}

interface Input {
  readonly namespace: string;
  readonly policy: string;
  readonly input: string;
  readonly metric: PolicyDefinition['metrics'][string];
  /** The keys of the groups whose rules use this input. */
  readonly groups: readonly string[];
}

interface StartedInput {
  input: Input;
  /** The definition as text. A reading of another definition does not count. */
  readonly definition: string;
  readonly read: ReadGate;
}

/** Reads metric inputs after `follow` has named policies and groups. */
export class MetricReader {
  readonly #options: MetricReaderOptions;
  readonly #known = new Map<string, StartedInput>();
  /** The inputs with a query in flight, also inputs that were forgotten since. */
  readonly #querying = new Set<string>();
  #isStopped = false;

  constructor(options: MetricReaderOptions) {
    this.#options = options;
  }

  /** Returns the readings of every input. Does no I/O. */
  readings(): readonly MetricView[] {
    return [...this.#known.values()].flatMap(({ input, read }) => metricView(nameOf(input), read.readings()) ?? []);
  }

  /** Queries the inputs that `policies` name for `groups`. Call it when these change, and when this process becomes the leader. */
  follow(groups: readonly GroupDefinition[], policies: readonly PolicyDefinition[]): void {
    const { env, agentNamespace, isLeading } = this.#options;
    if (this.#isStopped || !isLeading() || env.gates === undefined) return;
    const wanted = wantedInputs(groups, policies, agentNamespace);
    for (const [key, { definition }] of [...this.#known]) {
      const input = wanted.get(key);
      if (input === undefined || definitionOf(input.metric) !== definition) this.#forget(key);
    }
    for (const [key, input] of wanted) {
      const before = this.#known.get(key);
      if (before === undefined) this.#begin(key, input, env.gates);
      else before.input = input;
    }
  }

  /** Stops all queries and forgets all readings. The next leader starts without readings. */
  clear(): void {
    for (const key of [...this.#known.keys()]) this.#forget(key);
  }

  /** Stops all queries, forgets all readings, and ignores further calls of `follow`. */
  stop(): void {
    this.#isStopped = true;
    this.clear();
  }

  #forget(key: string): void {
    this.#known.get(key)?.read.end();
    this.#known.delete(key);
  }

  #begin(key: string, input: Input, gates: NonNullable<AgentEnv['gates']>): void {
    const { env, written, isLeading, onReading } = this.#options;
    const { namespace, metric } = input;
    const everyMs = inputEveryMs(metric.maxAgeMs);
    const client = prometheusClient(gates, metric, { namespace, everyMs, written: () => written(metric.source), site: 'metric.read' });
    const read = readGate({
      env,
      everyMs,
      counted: countedInputs,
      client: trackQueries(client, this.#querying, key, () => this.#known.get(key)?.read.queryIfDue()),
      mayQuery: () => isLeading() && !this.#querying.has(key),
      onReading: () => onReading(this.#known.get(key)?.input.groups ?? []),
    });
    this.#known.set(key, { input, definition: definitionOf(metric), read });
    // No reading is too early: the engine checks only the age of a reading.
    read.readFrom(0);
  }
}

function wantedInputs(
  groups: readonly GroupDefinition[],
  policies: readonly PolicyDefinition[],
  agentNamespace: string,
): ReadonlyMap<string, Input> {
  const bound = new Map<PolicyDefinition, string[]>();
  const reading = policies.filter((policy) => inputsRead(policy).length > 0);
  for (const group of reading.length === 0 ? [] : groups) {
    for (const policy of policiesFor(reading, group, agentNamespace)) {
      getOrCreate(bound, policy, (): string[] => []).push(groupKey(group));
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
