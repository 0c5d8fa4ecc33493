// A group that rolls before the eyes of those who publish, record and tell: turns made by the engine, and the API server.
import type { Log } from '../../agent/env.ts';
import type { TurnReport } from '../../agent/report.ts';
import { decideGroup } from '../../engine/decide/decide.ts';
import type { TakenAction } from '../../engine/publish/published.ts';
import type { RunState } from '../../engine/run/run-state.ts';
import type { IntentView } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { group } from '../kit/groups.ts';
import { kitNowMs } from '../kit/objects.ts';
import { ObjectsServer } from '../kit/objects-server.ts';
import { type SnapshotOverrides, snapshotOf } from '../kit/snapshots.ts';
import { virtualEnv } from '../kit/virtual-env.ts';

export interface Turning extends Pick<SnapshotOverrides, 'policies' | 'exceptions'> {
  readonly intents?: readonly IntentView[];
  /** Pods of each zone that are at the new revision, in the order of the zones. */
  readonly updated: readonly number[];
  /** The new revision. */
  readonly target?: string;
  readonly performed?: readonly TakenAction[];
  readonly error?: string;
  /** The waiting reason of each pod that is not ready; empty while its container runs. */
  readonly unready?: Readonly<Record<string, string>>;
}

/** Everything around a writer; `plurals`: as in ObjectsServer. */
export function writersWorld(plurals: readonly string[], one: GroupDefinition = group({ zones: ['a', 'b'] })) {
  const virtual = virtualEnv({ startMs: kitNowMs });
  const server = new ObjectsServer(virtual, plurals);
  const warnings: string[] = [];
  const quiet = (): void => undefined;
  const log: Log = { debug: quiet, info: quiet, warn: (message) => void warnings.push(message), error: quiet };
  const env = {
    ...virtual,
    log,
    pods: { call: () => Promise.reject(new Error('no pods')) },
  };
  let run: RunState | undefined;
  const report = ({ updated, target = 'new', performed = [], error, intents = [], unready = {}, ...policies }: Turning): TurnReport => {
    const nowMs = env.clock.nowMs();
    const ledger = {
      namespace: 'mimir',
      group: one.name,
      claims: [],
      downscales: [],
      preparations: [],
      ...(run === undefined ? {} : { run }),
    };
    const podChanges = Object.fromEntries(
      one.zones.map(({ statefulSet }, index) => [
        statefulSet,
        Object.fromEntries(
          [0, 1, 2].map((ordinal) => {
            const reason = unready[`${statefulSet}-${ordinal}`];
            const state = reason === undefined ? {} : { isReady: false, waitingReasons: reason === '' ? [] : [reason] };
            return [ordinal, { revision: ordinal < (updated[index] ?? 0) ? target : 'old', ...state }];
          }),
        ),
      ]),
    );
    const snapshot = snapshotOf({
      nowMs,
      groups: [one],
      intents,
      ...policies,
      ledgers: [ledger],
      everySet: { replicas: 3, status: { updateRevision: target } as never },
      podChanges,
    });
    const decision = decideGroup(snapshot, one);
    run = decision.run;
    return { group: one, snapshot, decision, performed, startedMs: nowMs, durationMs: 5, ...(error === undefined ? {} : { error }) };
  };
  const replaced = (zone: string, ordinal: number): TakenAction => ({
    action: {
      kind: 'deletePod',
      namespace: 'mimir',
      zone,
      statefulSet: `${one.name}-zone-${zone}`,
      pod: `${one.name}-zone-${zone}-${ordinal}`,
      ordinal,
      uid: 'u',
      resourceVersion: '1',
      because: 'outdated',
    },
    result: 'done',
  });
  return { server, env, report, replaced, warnings, group: one };
}
