// A StatefulSet as adoption reads it: its name, its labels and annotations, and the few fields that settings depend on.
import { z } from 'zod';
import { podNameLabel } from './keys.ts';

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
