// Hints of a StatefulSet without group labels: the zone in its name, and the zone of its pods.
import { isRecord, valueAt } from '../schema/schema-walk.ts';
import { defined } from '../values/defined.ts';
import { labelKeys } from './keys.ts';
import { phasedOwner } from './phased/rollout.ts';

/** Patterns of zone names in StatefulSet names. */
type SuffixKind = 'zone' | 'cloud zone' | 'letter' | 'number';

export interface ZoneLike {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The name without its zone; undefined when no part of it looks like one. */
  readonly base?: string;
  readonly suffix?: SuffixKind;
  /** The one availability zone in which its pods may run. */
  readonly pinned?: string;
  /** Values of the chart labels for the application and its instance; may be empty. */
  readonly app: string;
  readonly strategy: Strategy;
  /** Kind and name of the controller that owns the StatefulSet and reverts other writes. */
  readonly owner?: string;
  /** It has the label of a group of grafana/rollout-operator, and is adopted or refused with a finding. */
  readonly isLabelled: boolean;
  /** Name of the PhasedRollout that says it has it. */
  readonly phasedBy?: string;
}

export interface Strategy {
  /** RollingUpdate when the object names none, as the API server would say. */
  readonly type: string;
  /** Absent if not written: the API server then sets 0. */
  readonly partition?: number;
}

/** Ends of names, the most telling first: `-zone-a` or `-rack2`, `-us-east-1a` or `-europe-west1-b`, `-a`, `-2`. */
const suffixes: readonly (readonly [SuffixKind, RegExp])[] = [
  ['zone', /^(.+)-(?:zone|az|rack)(?:-[a-z0-9-]+|\d+|[a-z])$/],
  [
    'cloud zone',
    /^(.+?)-(?:us|eu|ap|sa|ca|me|af|il|mx|cn|europe|asia|africa|australia|northamerica|southamerica)(?:-gov)?-[a-z]+-?\d+-?[a-z]$/,
  ],
  ['letter', /^(.+)-[a-z]$/],
  ['number', /^(.+)-\d{1,2}$/],
];

const zoneKeys: readonly string[] = ['topology.kubernetes.io/zone', 'failure-domain.beta.kubernetes.io/zone'];

/** Reads a raw `apps/v1` StatefulSet that has a name. */
export function readZoneLike(set: unknown, { namespace, name }: Pick<ZoneLike, 'namespace' | 'name'>): ZoneLike {
  const [found] = suffixes.flatMap(([suffix, pattern]) => {
    const base = pattern.exec(name)?.[1];
    return base === undefined ? [] : [{ base, suffix }];
  });
  const pinned = pinnedZone(valueAt(set, ['spec', 'template', 'spec']));
  const owner = ownerOf(valueAt(set, ['metadata', 'ownerReferences']));
  const phasedBy = valueAt(set, ['metadata', 'annotations', phasedOwner]);
  return {
    namespace,
    name,
    labels: labelsOf(set),
    ...found,
    ...defined({ pinned }),
    app: appOf(set, name),
    strategy: strategyOf(valueAt(set, ['spec', 'updateStrategy']), valueAt(set, ['metadata', 'uid']) !== undefined),
    ...defined({ owner }),
    isLabelled: valueAt(set, ['metadata', 'labels', labelKeys.group]) !== undefined,
    ...(typeof phasedBy === 'string' ? { phasedBy } : {}),
  };
}

function labelsOf(set: unknown): ZoneLike['labels'] {
  const labels = valueAt(set, ['metadata', 'labels']);
  if (!isRecord(labels)) return {};
  return Object.fromEntries(Object.entries(labels).flatMap(([key, value]) => (typeof value === 'string' ? [[key, value] as const] : [])));
}

/** The component label is not read: charts write the zone into it. A label equal to the name of the StatefulSet is ignored. */
function appOf(set: unknown, own: string): string {
  const label = (key: string): string => {
    const value = valueAt(set, ['spec', 'template', 'metadata', 'labels', key]) ?? valueAt(set, ['metadata', 'labels', key]);
    return typeof value === 'string' && value !== own ? value : '';
  };
  const [name, instance] = [label('app.kubernetes.io/name') || label('app'), label('app.kubernetes.io/instance')];
  return name === '' ? '' : [name, instance].filter((part) => part !== '').join(' of ');
}

/** By a node selector, or by a required affinity that names a single zone. */
function pinnedZone(spec: unknown): string | undefined {
  const selected = zoneKeys.map((key) => valueAt(spec, ['nodeSelector', key])).find((value) => typeof value === 'string');
  if (typeof selected === 'string') return selected;
  const required = ['affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution', 'nodeSelectorTerms'];
  const [term, ...others] = listOf(valueAt(spec, required));
  if (others.length > 0) return undefined;
  const values = listOf(valueAt(term, ['matchExpressions']))
    .filter((one) => zoneKeys.includes(String(valueAt(one, ['key']))) && valueAt(one, ['operator']) === 'In')
    .map((one) => listOf(valueAt(one, ['values'])));
  const [only, ...rest] = values[0] ?? [];
  return typeof only === 'string' && rest.length === 0 ? only : undefined;
}

function strategyOf(value: unknown, isStored: boolean): Strategy {
  const [type, partition] = [valueAt(value, ['type']), valueAt(value, ['rollingUpdate', 'partition'])];
  const isWritten = typeof partition === 'number' && !(isStored && partition === 0);
  return { type: typeof type === 'string' ? type : 'RollingUpdate', ...(isWritten ? { partition } : {}) };
}

function ownerOf(references: unknown): string | undefined {
  const owner = listOf(references).find((one) => valueAt(one, ['controller']) === true);
  return owner === undefined ? undefined : `${String(valueAt(owner, ['kind']))} ${String(valueAt(owner, ['name']))}`;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
