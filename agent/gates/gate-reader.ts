// Queries gates for the turns of the leader while a decision requires their readings, and keeps the readings in memory only.

import type { GroupDecision } from '../../engine/decision.ts';
import { countedReadings } from '../../engine/rules/gate.ts';
import type { RunState } from '../../engine/run/run-state.ts';
import type { GateReadingsView } from '../../engine/snapshot.ts';
import type { GateDefinition, GroupDefinition } from '../../policies/definition.ts';
import type { MetricSourceDefinition } from '../../policies/integrations/metric-source.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import type { AgentEnv } from '../env.ts';
import { groupKey, removedKeys } from '../wake-index.ts';
import { availabilityClient, probeClient, type SeenPods } from './pods.ts';
import { type GateClient, type ReadGate, readGate, trackQueries } from './read-gate.ts';
import { consulClient, type GateOfSource, prometheusClient } from './source-clients.ts';

interface GateReaderOptions {
  /** Without the port `gates`, gates with a metric source have no readings. */
  readonly env: Pick<AgentEnv, 'clock' | 'timers' | 'pods' | 'gates'>;
  /** The suffix of the host names of pods. */
  readonly clusterDomain: string;
  /** Returns the pods of a group; undefined while the policies are unknown. */
  readonly seen: (group: GroupDefinition) => SeenPods | undefined;
  /** Returns the definition of a metric source in the agent's policy files. */
  readonly written: (source: string) => MetricSourceDefinition | undefined;
  /** Returns whether this process leads. Called before each query. */
  readonly isLeading: () => boolean;
  /** Called after each new reading for the group with this key. */
  readonly onReading: (key: string) => void;
}

interface StartedGate {
  /** The definition of the gate as text. Readings of another definition do not count. */
  readonly definition: string;
  readonly gate: ReadGate;
}

export class GateReader {
  readonly #options: GateReaderOptions;
  readonly #groups = new Map<string, Map<string, StartedGate>>();
  readonly #runs = new Map<string, RunState | undefined>();
  /** The gates with a query in flight, also gates that were forgotten since. */
  readonly #querying = new Set<string>();
  #isStopped = false;

  constructor(options: GateReaderOptions) {
    this.#options = options;
  }

  /** Forgets all readings. The next leader starts without readings. */
  clear(): void {
    for (const key of [...this.#groups.keys()]) this.#forgetGroup(key);
  }

  /** Returns the readings that match the current definitions of the group's gates. Does no I/O. */
  readings({ namespace, name: group, gates: definitions }: GroupDefinition): readonly GateReadingsView[] {
    const known = this.#groups.get(`${namespace}/${group}`);
    if (known === undefined) return [];
    return definitions.flatMap((definition): GateReadingsView[] => {
      const found = known.get(definition.name);
      if (found === undefined || found.definition !== canonicalJson(definition)) return [];
      return [{ namespace, group, gate: definition.name, readings: found.gate.readings() }];
    });
  }

  /**
   * Queries exactly the `wanted` gates of the group, each from its `fromMs` on (wall clock). Call it after each decision, with the run of
   * the decision. Does nothing while this process does not lead.
   */
  readGates(group: GroupDefinition, wanted: GroupDecision['wantedReadings'], run?: RunState): void {
    if (this.#isStopped || !this.#options.isLeading()) return;
    const key = groupKey(group);
    this.#runs.set(key, run);
    const known = this.#groups.get(key) ?? new Map<string, StartedGate>();
    for (const name of [...known.keys()]) if (!wanted.some(({ gate }) => gate === name)) this.#forget(known, name);
    for (const one of wanted) this.#readRequested(group, known, one);
    if (known.size === 0) this.#forgetGroup(key);
    else this.#groups.set(key, known);
  }

  keep(kept: readonly GroupDefinition[]): void {
    for (const key of removedKeys(this.#groups.keys(), kept)) this.#forgetGroup(key);
  }

  /** Forgets all readings and ignores further calls of `readGates`. */
  stop(): void {
    this.#isStopped = true;
    this.clear();
  }

  /** Reads the gate from `fromMs` on, if the group defines the gate and this process can query its provider. */
  #readRequested(
    group: GroupDefinition,
    known: Map<string, StartedGate>,
    { gate: name, fromMs }: GroupDecision['wantedReadings'][number],
  ): void {
    const key = groupKey(group);
    const gate = group.gates.find((candidate) => candidate.name === name);
    const definition = canonicalJson(gate ?? null);
    if (known.get(name)?.definition !== definition) this.#forget(known, name);
    const client = gate === undefined ? undefined : clientOf(gate, group, { ...this.#options, run: () => this.#runs.get(key) });
    if (gate === undefined || client === undefined) return;
    const read = known.get(name)?.gate ?? this.#startGate(key, gate, client);
    known.set(name, { definition, gate: read });
    read.readFrom(fromMs);
  }

  #startGate(key: string, gate: GateDefinition, client: GateClient): ReadGate {
    const id = `${key}/${gate.name}`;
    return readGate({
      env: this.#options.env,
      everyMs: gate.everyMs,
      counted: (readings) => countedReadings(gate, readings),
      client: trackQueries(client, this.#querying, id, () => this.#groups.get(key)?.get(gate.name)?.gate.queryIfDue()),
      mayQuery: () => this.#options.isLeading() && !this.#querying.has(id),
      onReading: () => this.#options.onReading(key),
    });
  }

  #forget(known: Map<string, StartedGate>, name: string): void {
    known.get(name)?.gate.end();
    known.delete(name);
  }

  #forgetGroup(key: string): void {
    const known = this.#groups.get(key);
    for (const name of known?.keys() ?? []) if (known !== undefined) this.#forget(known, name);
    this.#groups.delete(key);
    this.#runs.delete(key);
  }
}

interface ClientOptions extends GateReaderOptions {
  readonly run: () => RunState | undefined;
}

/** Returns the client of the gate; undefined if the process has no port to its provider. */
function clientOf(gate: GateDefinition, group: GroupDefinition, options: ClientOptions): GateClient | undefined {
  const { prometheus, consul, http, podsAvailable } = gate.provider;
  const { env, clusterDomain, run } = options;
  const pods = { env, clusterDomain, run, seen: () => options.seen(group) };
  if (podsAvailable !== undefined) return availabilityClient(podsAvailable, pods);
  if (http !== undefined) return probeClient(http, pods);
  if (env.gates === undefined) return undefined;
  const contextOf = (source: string): GateOfSource => ({
    namespace: group.namespace,
    everyMs: gate.everyMs,
    written: () => options.written(source),
  });
  if (prometheus !== undefined) return prometheusClient(env.gates, prometheus, contextOf(prometheus.source));
  return consul === undefined ? undefined : consulClient(env.gates, consul, contextOf(consul.source));
}
