// The readings of gates: asked for while a decision wants them and this process leads, kept as long as they count, and never stored.
import { canonicalJson } from '../../engine/hash.ts';
import type { GateReadingsView } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import type { AgentEnv, GateHttp } from '../env.ts';
import { groupKey } from '../wake-index.ts';
import { type ReadGate, readGate } from './read-gate.ts';

export interface GateReader {
  /** What is known of the gates of the group, as they are defined there. Without I/O. */
  readonly readings: (group: GroupDefinition) => readonly GateReadingsView[];
  /**
   * From now on these gates of the group are read, each from its instant on (wall clock), and no others: what is no longer wanted is forgotten.
   * To be told after every decision. Does nothing while this process does not lead.
   */
  readonly want: (group: GroupDefinition, wanted: readonly WantedReadings[]) => void;
  /** Forgets the groups that are not among these. */
  readonly keep: (groups: readonly GroupDefinition[]) => void;
  /** Forgets everything: whoever leads next, be it this process, begins anew. */
  readonly clear: () => void;
  /** Forgets everything for good. */
  readonly stop: () => void;
}

/** As in GroupDecision. */
export interface WantedReadings {
  readonly gate: string;
  readonly fromMs: number;
}

export interface GateReaderOptions {
  readonly env: Pick<AgentEnv, 'clock' | 'timers'>;
  readonly gates: GateHttp;
  /** Asked before each question. */
  readonly isLeading: () => boolean;
  /** A reading has come for the group of that key. */
  readonly onReading: (key: string) => void;
}

interface Known {
  /** The definition as text: readings of another query, or for another condition, say nothing about this one. */
  readonly definition: string;
  readonly gate: ReadGate;
}

/** A reader of the gates whose provider is a Prometheus. Of other gates there is no reading. */
export function gateReader({ env, gates, isLeading, onReading }: GateReaderOptions): GateReader {
  const groups = new Map<string, Map<string, Known>>();
  /** Gates with a question under way, also forgotten ones: the provider is never asked twice at a time for one gate. */
  const asking = new Set<string>();
  let isStopped = false;

  const forget = (known: Map<string, Known>, name: string): void => {
    known.get(name)?.gate.end();
    known.delete(name);
  };
  const forgetGroup = (key: string): void => {
    const known = groups.get(key);
    for (const name of known?.keys() ?? []) if (known !== undefined) forget(known, name);
    groups.delete(key);
  };
  const clear = (): void => {
    for (const key of [...groups.keys()]) forgetGroup(key);
  };

  return {
    readings: ({ namespace, name: group, gates: definitions }) => {
      const known = groups.get(`${namespace}/${group}`);
      if (known === undefined) return [];
      return definitions.flatMap((definition): GateReadingsView[] => {
        const found = known.get(definition.name);
        if (found === undefined || found.definition !== canonicalJson(definition)) return [];
        return [{ namespace, group, gate: definition.name, readings: found.gate.readings() }];
      });
    },
    want: (group, wanted) => {
      if (isStopped || !isLeading()) return;
      const key = groupKey(group);
      const known = groups.get(key) ?? new Map<string, Known>();
      for (const name of [...known.keys()]) if (!wanted.some(({ gate }) => gate === name)) forget(known, name);
      for (const { gate: name, fromMs } of wanted) {
        const gate = group.gates.find((candidate) => candidate.name === name);
        const provider = gate?.provider.prometheus;
        const definition = canonicalJson(gate ?? null);
        if (known.get(name)?.definition !== definition) forget(known, name);
        if (gate === undefined || provider === undefined) continue;
        const id = `${key}/${name}`;
        const read =
          known.get(name)?.gate ??
          readGate({
            env,
            gate,
            ask: async (question) => {
              asking.add(id);
              try {
                return await gates.query({ ...question, ...provider, namespace: group.namespace });
              } finally {
                asking.delete(id);
                groups.get(key)?.get(name)?.gate.look();
              }
            },
            mayAsk: () => isLeading() && !asking.has(id),
            onReading: () => onReading(key),
          });
        known.set(name, { definition, gate: read });
        read.readFrom(fromMs);
      }
      if (known.size === 0) groups.delete(key);
      else groups.set(key, known);
    },
    keep: (kept) => {
      const keys = new Set(kept.map(groupKey));
      for (const key of [...groups.keys()]) if (!keys.has(key)) forgetGroup(key);
    },
    clear,
    stop: () => {
      isStopped = true;
      clear();
    },
  };
}
