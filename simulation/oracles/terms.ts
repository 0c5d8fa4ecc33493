// Keeps the stored settings of each zone over time for the judges: membership, budget, scaling, pauses.

import {
  delayEndpoint,
  durationAt,
  exceptionResource,
  field,
  groupResource,
  instantAt,
  intentResource,
  listAt,
  numberAt,
  textAt,
} from '../objects.ts';
import type { Commit, ModelObject } from '../server/request.ts';
import type { Scene } from './oracle.ts';

type Amount = number | `${number}%`;

interface Terms {
  readonly isMember: boolean;
  /** The last valid value; undefined for `fromBudget`: then only the eviction API enforces a limit. */
  readonly maxUnavailable: Amount | undefined;
  /** True if the current value is invalid, so that `maxUnavailable` is an earlier value. */
  readonly isUnreadable: boolean;
  readonly isPaused: boolean;
  /** True if a person forces the replicas against all rules. */
  readonly isForced: boolean;
  readonly minReplicas: number;
  readonly betweenZonesMs: number;
  /** The duration of the preparation before pods are removed; undefined without a preparation. */
  readonly delayMs: number | undefined;
  /** The path and query of the calls of this preparation. */
  readonly delayPath: string | undefined;
}

interface Pause {
  /** The paused zone; undefined for the whole group. */
  readonly zone: string | undefined;
  readonly sinceMs: number;
  readonly expiresMs: number;
}

export class TermsBook {
  readonly #scene: Scene;
  readonly #timelines: ReadonlyMap<string, Timeline<Terms>>;
  readonly #pauses = new Map<string, Pause>();
  readonly #exceptions = new Set<string>();
  #definition: ModelObject | 'never' | 'gone' = 'never';

  constructor(scene: Scene) {
    this.#scene = scene;
    this.#timelines = new Map(scene.statefulSets.map((name) => [name, new Timeline<Terms>()]));
    const isDefined = scene.isGiven || scene.list(groupResource, scene.namespace).length > 0;
    if (scene.group.kind === 'native') this.#applyDefinition(isDefined ? 'never' : 'gone', 0);
    for (const resource of [groupResource, intentResource, exceptionResource]) {
      for (const after of scene.list(resource, scene.namespace)) this.apply({ resource, type: 'MODIFIED', after, atMs: 0 });
    }
  }

  of(statefulSet: string): Timeline<Terms> {
    return this.#timelines.get(statefulSet) ?? new Timeline<Terms>();
  }

  /** Returns whether the zone has belonged to the group without interruption since this time. */
  wasMember(statefulSet: string, sinceMs: number): boolean {
    return this.of(statefulSet)
      .since(sinceMs)
      .every(({ isMember }) => isMember);
  }

  /** Returns whether a RolloutIntent paused the zone or the group at `sinceMs` or before, and the pause has not expired at `atMs`. */
  isPausedSince(statefulSet: string, sinceMs: number, atMs: number): boolean {
    const isOfZone = ({ zone }: Pause): boolean => zone === undefined || zone === this.zoneName(statefulSet);
    return [...this.#pauses.values()].some((pause) => pause.sinceMs <= sinceMs && atMs < pause.expiresMs && isOfZone(pause));
  }

  /** Returns whether an exception exists that is not from `window` or a policy rule. It permits actions that the rule denies. */
  isExcepted(): boolean {
    return this.#exceptions.size > 0;
  }

  zoneName(statefulSet: string): string {
    const zone = listAt(this.#definition, 'spec', 'members', 'zones').find((one) => field(one, 'statefulSet') === statefulSet);
    return textAt(zone, 'name') ?? statefulSet;
  }

  apply({ resource, type, after, atMs }: Pick<Commit, 'resource' | 'type' | 'after' | 'atMs'>): void {
    const { namespace, name } = after.metadata;
    const isGone = type === 'DELETED';
    if (namespace !== this.#scene.namespace) return;
    if (resource === groupResource && this.#scene.group.kind === 'native') this.#applyDefinition(isGone ? 'gone' : after, atMs);
    if (resource === intentResource) this.#applyIntent(after, isGone, atMs);
    if (resource === exceptionResource && isGone) this.#exceptions.delete(name);
    else if (resource === exceptionResource && !/^window$|\//.test(textAt(after, 'spec', 'rule') ?? '')) this.#exceptions.add(name);
  }

  /** Called when a StatefulSet changed or was deleted. */
  setChanged(statefulSet: string, set: ModelObject | undefined, atMs: number): void {
    if (this.#scene.group.kind !== 'adopted' || set === undefined) return;
    this.#setTerms(statefulSet, adoptedTerms(set, this.of(statefulSet).latest()), atMs);
  }

  #setTerms(statefulSet: string, terms: Terms, atMs: number): void {
    const timeline = this.of(statefulSet);
    if (JSON.stringify(timeline.latest()) !== JSON.stringify(terms)) timeline.set(atMs, terms);
  }

  #applyDefinition(definition: ModelObject | 'never' | 'gone', atMs: number): void {
    this.#definition = definition;
    for (const name of this.#scene.statefulSets) this.#setTerms(name, nativeTerms(this.#scene, definition, name), atMs);
  }

  #applyIntent(object: ModelObject, isGone: boolean, atMs: number): void {
    const { name } = object.metadata;
    const action = textAt(object, 'spec', 'action') ?? '';
    // An abort that names a run ends the run. Any other abort only pauses the group.
    const isPause = action === 'abort' ? textAt(object, 'spec', 'runId') === undefined : action === 'pause' || action === 'hold';
    if (isGone || !isPause) this.#pauses.delete(name);
    else {
      this.#pauses.set(name, {
        zone: textAt(object, 'spec', 'zone'),
        sinceMs: this.#pauses.get(name)?.sinceMs ?? atMs,
        expiresMs: instantAt(object, 'spec', 'expires') ?? Number.POSITIVE_INFINITY,
      });
    }
  }
}

function nativeTerms({ group }: Scene, definition: ModelObject | 'never' | 'gone', statefulSet: string): Terms {
  const spec = typeof definition === 'string' ? undefined : definition['spec'];
  const zones = listAt(spec, 'members', 'zones');
  const zone = zones.find((one) => field(one, 'statefulSet') === statefulSet);
  const isListed = zones.length === 0 || zone !== undefined;
  const down = (...path: readonly string[]): number | undefined =>
    durationAt(zone, 'scaling', 'down', ...path) ?? durationAt(spec, 'scaling', 'down', ...path);
  const isShaped = spec === undefined;
  const delayMs = isShaped && group.replicas === 'delayedMirror' ? group.delaySeconds * 1000 : down('delayed', 'after');
  const written = ['scaling', 'down', 'delayed', 'endpoint', 'path'];
  const delayPath = isShaped ? delayEndpoint.path : (textAt(zone, ...written) ?? textAt(spec, ...written));
  const value = field(zone, 'maxUnavailable') ?? field(spec, 'rollout', 'maxUnavailable') ?? (isShaped ? group.maxUnavailable : 1);
  return {
    isMember: definition !== 'gone' && isListed,
    maxUnavailable: amountOf(value),
    isUnreadable: false,
    isPaused: field(zone, 'paused') === true,
    isForced: numberAt(zone, 'forceReplicas') !== undefined,
    minReplicas: numberAt(zone, 'replicas', 'bounds', 'min') ?? numberAt(spec, 'replicas', 'bounds', 'min') ?? 1,
    betweenZonesMs: isShaped ? group.betweenZonesSeconds * 1000 : (down('betweenZones') ?? 0),
    delayMs,
    delayPath: pathOf(delayPath),
  };
}

/** Returns the settings in the labels and annotations of grafana/rollout-operator. */
function adoptedTerms({ metadata }: ModelObject, before: Terms | undefined): Terms {
  const { labels = {}, annotations = {} } = metadata;
  const isMirrored =
    annotations['grafana.com/rollout-mirror-replicas-from-resource-name'] !== undefined &&
    annotations['grafana.com/rollout-downscale-leader'] === undefined;
  const written = annotations['rollout-max-unavailable'];
  const amount = written === undefined ? 1 : amountOf(/^\d+$/.test(written) ? Number(written) : written);
  return {
    isMember: (labels['rollout-group'] ?? '') !== '',
    maxUnavailable: amount ?? before?.maxUnavailable ?? 1,
    isUnreadable: amount === undefined,
    isPaused: annotations['grafana.com/rollout-paused'] === 'true',
    isForced: annotations['grafana.com/rollout-force-replicas'] !== undefined,
    minReplicas: 0,
    betweenZonesMs: durationAt(labels, 'grafana.com/min-time-between-zones-downscale') ?? 0,
    // Only mirroring zones have a delay.
    delayMs: isMirrored ? durationAt(annotations, 'grafana.com/rollout-delayed-downscale') : undefined,
    delayPath: pathOf(annotations['grafana.com/rollout-prepare-delayed-downscale-url']),
  };
}

/** Returns the path and query of a URL or a path, as they arrive at a pod. */
function pathOf(url: string | undefined): string | undefined {
  const base = 'http://pod';
  if (url === undefined || !URL.canParse(url, base)) return undefined;
  const { pathname, search } = new URL(url, base);
  return pathname + search;
}

function amountOf(value: unknown): Amount | undefined {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0) return value;
  return typeof value === 'string' && /^\d+%$/.test(value) ? (value as `${number}%`) : undefined;
}

/** Returns how many pods of a zone may be unavailable at once. Percentages are rounded down, to at least 1. */
export function limitOf(amount: Amount, replicas: number): number {
  return typeof amount === 'number' ? amount : Math.max(1, Math.floor((Number.parseInt(amount, 10) * replicas) / 100));
}

export class Timeline<Value> {
  readonly #instants: number[] = [];
  readonly #values: Value[] = [];

  /** Sets the value from this time on. Times must not decrease. If a time is repeated, its last value counts. */
  set(atMs: number, value: Value): void {
    if (this.#values.length > 0 && Object.is(this.latest(), value)) return;
    this.#instants.push(atMs);
    this.#values.push(value);
  }

  /** Returns the current value; undefined if no value was set. */
  latest(): Value | undefined {
    return this.#values.at(-1);
  }

  /** Returns the value at the time and all later values, the oldest first. The first value also applies to all earlier times. */
  since(fromMs: number): readonly Value[] {
    let first = this.#values.length - 1;
    while (first > 0 && (this.#instants[first] ?? 0) > fromMs) first -= 1;
    return this.#values.slice(Math.max(0, first));
  }
}
