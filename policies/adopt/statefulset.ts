// The part of a StatefulSet that adoption reads, the results of reading one setting, and findings about it.
import { z } from 'zod';
import { canonicalJson } from '../values/canonical-json.ts';
import { annotationKeys, labelKeys, podNameLabel } from './keys.ts';

/** The part of an `apps/v1` StatefulSet that carries or completes settings. */
export interface AdoptedStatefulSet {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Keys whose value is no text; the API server refuses such an object. */
  readonly notText: readonly string[];
  /** RollingUpdate when the object names none, as the API server would say. */
  readonly updateStrategy: string;
  readonly serviceName: string;
  /** True if the pod template has the label `name`, by which the original finds pods. */
  readonly hasPodNameLabel: boolean;
}

// Templates often render an empty map as `annotations:` with nothing behind it.
const texts = z.record(z.string(), z.unknown()).nullish().catch(undefined);

const statefulSet = z.object({
  kind: z.literal('StatefulSet').optional(),
  metadata: z.object({ name: z.string().min(1), namespace: z.string().min(1).nullish(), labels: texts, annotations: texts }),
  spec: z
    .object({
      serviceName: z.string().nullish().catch(undefined),
      updateStrategy: z.object({ type: z.string().nullish() }).nullish().catch(undefined),
      template: z
        .object({ metadata: z.object({ labels: texts }).nullish() })
        .nullish()
        .catch(undefined),
    })
    .nullish()
    .catch(undefined),
});

/** Reads a raw object; undefined when it is no StatefulSet. Items of a list need not name their kind. */
export function readStatefulSet(raw: unknown, defaultNamespace: string): AdoptedStatefulSet | undefined {
  const read = statefulSet.safeParse(raw);
  if (!read.success) return undefined;
  const { metadata, spec } = read.data;
  return {
    namespace: metadata.namespace ?? defaultNamespace,
    name: metadata.name,
    labels: onlyTexts(metadata.labels),
    annotations: onlyTexts(metadata.annotations),
    notText: [...keysOfNoText(metadata.labels), ...keysOfNoText(metadata.annotations)],
    updateStrategy: spec?.updateStrategy?.type ?? 'RollingUpdate',
    serviceName: spec?.serviceName ?? '',
    hasPodNameLabel: (onlyTexts(spec?.template?.metadata?.labels)[podNameLabel] ?? '') !== '',
  };
}

function onlyTexts(map: Readonly<Record<string, unknown>> | null | undefined): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(map ?? {}).filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}

function keysOfNoText(map: Readonly<Record<string, unknown>> | null | undefined): readonly string[] {
  return Object.keys(map ?? {}).filter((key) => typeof map?.[key] !== 'string');
}

/** A problem of one label, annotation or field of one StatefulSet. Codes are explained in docs/findings.md. */
export interface AdoptionFinding {
  readonly code: string;
  /** One sentence: the value and its effect. */
  readonly message: string;
  /** `StatefulSet namespace/name`. */
  readonly object: string;
  /** The label, the annotation or the path of the field. */
  readonly field: string;
}

const adoptionCodes = {
  maxUnavailableInvalid: 'RG4001',
  leaderNotInGroup: 'RG4002',
  leaderAndMirror: 'RG4003',
  minTimeInvalid: 'RG4004',
  delayedDownscaleInvalid: 'RG4005',
  delayedUrlInvalid: 'RG4006',
  prepareIncomplete: 'RG4007',
  mirrorUnusable: 'RG4008',
  writeBackNotBoolean: 'RG4009',
  forceReplicasIgnored: 'RG4010',
  labelAsAnnotation: 'RG4011',
  strategyNotOnDelete: 'RG4012',
  podNameLabelMissing: 'RG4013',
  singleMember: 'RG4014',
  almostTrue: 'RG4015',
  userInformationDropped: 'RG4016',
  notText: 'RG4017',
  leadersFormCycle: 'RG4018',
  notAdoptable: 'RG4019',
  delayedDownscaleIgnored: 'RG4020',
  mirrorIgnored: 'RG4021',
} as const;

type AdoptionProblem = keyof typeof adoptionCodes;

/** Returns the finding of one problem at one place. */
export function adoptionFinding(set: AdoptedStatefulSet, problem: AdoptionProblem, field: string, message: string): AdoptionFinding {
  return { code: adoptionCodes[problem], message, object: objectText(set), field };
}

/** Returns the name of a StatefulSet for messages and sources. */
export function objectText(set: Pick<AdoptedStatefulSet, 'namespace' | 'name'>): string {
  return `StatefulSet ${set.namespace}/${set.name}`;
}

/** Returns a value for messages: quoted, control characters escaped, at most 80 characters. */
export function shown(value: string): string {
  return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
}

/** A reason not to scale, and the label or annotation that gives it. */
export interface Hold {
  readonly text: string;
  readonly field: string;
}

/** The outcome of reading one setting. Without value and holds the setting is off. */
export interface Reading<Value> {
  readonly value?: Value;
  /** Why the StatefulSet is not scaled at all. */
  readonly hold?: Hold;
  /** Why the StatefulSet does not shrink. */
  readonly downHold?: Hold;
  readonly findings: readonly AdoptionFinding[];
}

/** The setting is not there, or means that it is off. */
export const off: Reading<never> = { findings: [] };

/** A setting that reads well. */
export function reads<Value>(value: Value, findings: readonly AdoptionFinding[] = []): Reading<Value> {
  return { value, findings };
}

/** A value that cannot be used: the original refuses to scale, so the reason becomes a hold and a finding. */
export function holds(
  set: AdoptedStatefulSet,
  problem: AdoptionProblem,
  { field, text, only }: { readonly field: string; readonly text: string; readonly only?: 'down' },
): Reading<never> {
  const finding = adoptionFinding(set, problem, field, `${text}; the StatefulSet is not ${only === 'down' ? 'shrunk' : 'scaled'}`);
  const hold = { text, field };
  return only === 'down' ? { downHold: hold, findings: [finding] } : { hold, findings: [finding] };
}

const labels: ReadonlySet<string> = new Set(Object.values(labelKeys));
const annotations: ReadonlySet<string> = new Set(Object.values(annotationKeys));

/**
 * Text that changes whenever the definition of an adopted group could: names, the labels and annotations of grafana/rollout-operator (but for
 * the time of the last downscale, of which only the presence counts), update strategy, service and the label of pods. Empty for a StatefulSet
 * that no adopted group has. All labels count, because selectors of groups read them.
 */
export function adoptionDigest(statefulSet: unknown): string {
  const read = readStatefulSet(statefulSet, 'default');
  if (read === undefined || read.labels[labelKeys.group] === undefined) return '';
  const both = (key: string): boolean => labels.has(key) || annotations.has(key);
  const ours = Object.entries(read.annotations)
    .filter(([key]) => both(key))
    .map(([key, value]) => [key, key === annotationKeys.lastDownscale ? '' : value]);
  return canonicalJson({ ...read, annotations: Object.fromEntries(ours), notText: read.notText.filter(both) });
}
