// The metrics of grafana/rollout-operator's reconciles, for groups whose StatefulSets carry its label rollout-group.
import { isFailedPass } from '../../engine/publish/failed-pass.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import type { TurnReport } from '../report.ts';
import type { originalMetrics } from './catalog.ts';
import { groupSeriesLimit } from './groups.ts';
import type { InstrumentsOf } from './registry.ts';

type Instruments = Pick<InstrumentsOf<typeof originalMetrics>, 'reconciles' | 'reconcilesFailed' | 'reconcileDuration' | 'lastSuccess'>;

/**
 * Counts turns as reconciles, under the value of the label as it is on the StatefulSets. Groups of several namespaces that share a value share
 * its series, as they have no label that tells them apart.
 */
export class OriginalGroupMetrics {
  readonly #instruments: Instruments;
  /** Value of the label by namespace and group. */
  readonly #labels = new Map<string, string>();

  constructor(instruments: Instruments) {
    this.#instruments = instruments;
  }

  turnEnded(report: TurnReport, nowMs: number): void {
    const key = `${report.group.namespace}/${report.group.name}`;
    const label = labelOf(report) ?? this.#labels.get(key);
    if (label === undefined || (!this.#labels.has(key) && this.#labels.size >= groupSeriesLimit)) return;
    const isNew = ![...this.#labels.values()].includes(label);
    const before = this.#labels.get(key);
    this.#labels.set(key, label);
    if (before !== undefined && before !== label) this.#remove(before);
    const { reconciles, reconcilesFailed, reconcileDuration, lastSuccess } = this.#instruments;
    const labels = { rollout_group: label };
    reconciles.inc(labels);
    const isFailed = isFailedPass(report);
    reconcilesFailed.inc(labels, isFailed ? 1 : 0);
    reconcileDuration.observe(labels, report.durationMs / 1000);
    if (!isFailed) lastSuccess.set(labels, nowMs / 1000);
    else if (isNew) lastSuccess.set(labels, 0);
  }

  /** All four series of a group that is gone go with it. */
  setGroups(groups: readonly GroupDefinition[]): void {
    const keys = new Set(groups.map(({ namespace, name }) => `${namespace}/${name}`));
    for (const [key, label] of [...this.#labels]) {
      if (keys.has(key)) continue;
      this.#labels.delete(key);
      this.#remove(label);
    }
  }

  #remove(label: string): void {
    if ([...this.#labels.values()].includes(label)) return;
    const { reconciles, reconcilesFailed, reconcileDuration, lastSuccess } = this.#instruments;
    for (const one of [reconciles, reconcilesFailed, reconcileDuration, lastSuccess]) one.remove({ rollout_group: label });
  }
}

function labelOf({ group, snapshot }: TurnReport): string | undefined {
  const members = new Set(group.zones.map(({ statefulSet }) => statefulSet));
  return snapshot.statefulSets.find(({ namespace, name, labels }) => {
    return namespace === group.namespace && members.has(name) && labels['rollout-group'] !== undefined;
  })?.labels['rollout-group'];
}
