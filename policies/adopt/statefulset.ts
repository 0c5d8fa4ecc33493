// Reads the part of a StatefulSet that adoption needs, and defines the result of reading one setting.
import type { FindingCode } from '../findings/codes.ts';
import { textAt, textsOf, valueAt } from '../schema/schema-walk.ts';
import { canonicalJson } from '../values/canonical-json.ts';
import { isRecord } from '../values/is-record.ts';
import { adoptedKeys, annotationKeys, labelKeys, podNameLabel } from './keys.ts';

/** The part of an `apps/v1` StatefulSet that adoption needs. */
export interface AdoptedStatefulSet {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** The keys whose value is not text; the API server rejects such an object. */
  readonly notText: readonly string[];
  /** The type of the update strategy; RollingUpdate if absent, as in the API server. */
  readonly updateStrategy: string;
  readonly serviceName: string;
  /** True if the pod template has the label `name`, by which grafana/rollout-operator finds pods. */
  readonly hasPodNameLabel: boolean;
}

/** Reads a raw object; returns undefined if it is not a StatefulSet. Items of a list need no kind. */
export function readStatefulSet(raw: unknown, defaultNamespace: string): AdoptedStatefulSet | undefined {
  const [kind, name] = [valueAt(raw, ['kind']), textAt(raw, ['metadata', 'name'])];
  const namespace = valueAt(raw, ['metadata', 'namespace']) ?? defaultNamespace;
  if (name === undefined || (kind !== undefined && kind !== 'StatefulSet') || typeof namespace !== 'string' || namespace === '') {
    return undefined;
  }
  const [labels, annotations] = [valueAt(raw, ['metadata', 'labels']), valueAt(raw, ['metadata', 'annotations'])];
  const [serviceName, type] = [valueAt(raw, ['spec', 'serviceName']), valueAt(raw, ['spec', 'updateStrategy', 'type'])];
  return {
    namespace,
    name,
    labels: textsOf(labels),
    annotations: textsOf(annotations),
    notText: [labels, annotations].filter(isRecord).flatMap((map) => Object.keys(map).filter((key) => typeof map[key] !== 'string')),
    updateStrategy: typeof type === 'string' ? type : 'RollingUpdate',
    serviceName: typeof serviceName === 'string' ? serviceName : '',
    hasPodNameLabel: textAt(raw, ['spec', 'template', 'metadata', 'labels', podNameLabel]) !== undefined,
  };
}

/** A problem of one label, annotation or field of one StatefulSet. Codes are explained in docs/findings.md. */
export interface AdoptionFinding {
  readonly code: FindingCode;
  readonly message: string;
  /** The object, as `StatefulSet namespace/name`. */
  readonly object: string;
  readonly field: string;
}

export function adoptionFinding(set: AdoptedStatefulSet, code: FindingCode, field: string, message: string): AdoptionFinding {
  return { code, message, object: objectText(set), field };
}

export function objectText(set: Pick<AdoptedStatefulSet, 'namespace' | 'name'>): string {
  return `StatefulSet ${set.namespace}/${set.name}`;
}

/** Returns a value for messages: quoted, control characters escaped, at most 80 characters. */
export function shown(value: string): string {
  return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
}

/** A reason not to scale, and its label, annotation or field. */
export interface ScalingBlock {
  readonly text: string;
  readonly field: string;
}

/** The outcome of reading one setting. Without `value`, `hold` and `downHold`, the setting is off. */
export interface Reading<Value> {
  readonly value?: Value;
  /** The reason why the agent does not scale the StatefulSet. */
  readonly hold?: ScalingBlock;
  /** The reason why the StatefulSet is not scaled down. */
  readonly downHold?: ScalingBlock;
  readonly findings: readonly AdoptionFinding[];
}

/** The reading of an absent setting, or of a setting that is off. */
export const off: Reading<never> = { findings: [] };

export function settingOf<Value>(value: Value, findings: readonly AdoptionFinding[] = []): Reading<Value> {
  return { value, findings };
}

/** Returns the reading of an unusable value, with a hold and a finding, because grafana/rollout-operator then refuses to scale. */
export function blockScaling(
  set: AdoptedStatefulSet,
  code: FindingCode,
  { field, text, only }: { readonly field: string; readonly text: string; readonly only?: 'down' },
): Reading<never> {
  const finding = adoptionFinding(set, code, field, `${text}; the StatefulSet is not ${only === 'down' ? 'shrunk' : 'scaled'}`);
  const hold = { text, field };
  return only === 'down' ? { downHold: hold, findings: [finding] } : { hold, findings: [finding] };
}

/** Returns a text that changes if the definition of the adopted group may change; empty for a StatefulSet without the group label. */
export function adoptionDigest(statefulSet: unknown): string {
  const read = readStatefulSet(statefulSet, 'default');
  if (read === undefined || read.labels[labelKeys.group] === undefined) return '';
  const ours = Object.entries(read.annotations)
    .filter(([key]) => adoptedKeys.has(key))
    .map(([key, value]) => [key, key === annotationKeys.lastDownscale ? '' : value]);
  return canonicalJson({ ...read, annotations: Object.fromEntries(ours), notText: read.notText.filter((key) => adoptedKeys.has(key)) });
}
