// When adoption must look at a StatefulSet again: a digest of the few fields that it reads.
import { annotationKeys, labelKeys } from '../adopt/keys.ts';
import { readStatefulSet } from '../adopt/statefulset.ts';
import { canonicalJson } from '../values/canonical-json.ts';

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
