// Reviews of objects of our kinds, a call that never ends, and patches applied.
import type { Call, PatchOperation, Review, ReviewUser } from '../../../webhook/review/review.ts';

export const nowMs = Date.parse('2026-11-20T10:00:00Z');

export const ada: ReviewUser = { name: 'ada', groups: ['system:authenticated', 'oncall'] };
export const mallory: ReviewUser = { name: 'mallory', groups: ['system:authenticated'] };

export const call: Call = { deadlineMs: 4_000, signal: new AbortController().signal };

export type Json = Readonly<Record<string, unknown>>;

const plurals: Readonly<Record<string, string>> = {
  RolloutGroup: 'rolloutgroups',
  RolloutPolicy: 'rolloutpolicies',
  RolloutException: 'rolloutexceptions',
  RolloutIntent: 'rolloutintents',
  MetricSource: 'metricsources',
  NotificationChannel: 'notificationchannels',
};

/** Creates the object, or changes it when `oldSpec` is given. */
export function reviewOf(kind: string, spec: Json, changes: Partial<Review> & { readonly oldSpec?: Json } = {}): Review {
  const { oldSpec, ...rest } = changes;
  const withSpec = (one: Json) => ({
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind,
    metadata: { name: 'one', namespace: 'mimir', uid: 'u-1', resourceVersion: '7', managedFields: [] },
    spec: one,
  });
  return {
    apiVersion: 'admission.k8s.io/v1',
    uid: '705ab4f5',
    kind: { group: 'rollout-group.dev', version: 'v1alpha1', kind },
    resource: { group: 'rollout-group.dev', version: 'v1alpha1', resource: plurals[kind] ?? '' },
    subresource: '',
    operation: oldSpec === undefined ? 'CREATE' : 'UPDATE',
    namespace: 'mimir',
    name: 'one',
    user: ada,
    dryRun: false,
    object: withSpec(spec),
    ...(oldSpec === undefined ? {} : { oldObject: withSpec(oldSpec) }),
    ...rest,
  };
}

/** The object after the patch of a stamp. Throws when a test in it does not hold. */
export function patched(review: Review, patch: readonly PatchOperation[] = []): Review {
  const object = structuredClone(review.object) as { kind: string; spec: Record<string, unknown> };
  for (const operation of patch) {
    const [, first, second] = operation.path.split('/');
    const isKind = first === 'kind' && second === undefined;
    if (!isKind && (first !== 'spec' || second !== 'requestedBy')) throw new Error(`the patch touches ${operation.path}`);
    const now = isKind ? object.kind : object.spec['requestedBy'];
    if (operation.op === 'test' && JSON.stringify(now) !== JSON.stringify(operation.value))
      throw new Error(`the test of ${operation.path} fails`);
    if (operation.op === 'replace' && now === undefined) throw new Error('what is replaced is not there');
    if (operation.op === 'remove') delete object.spec['requestedBy'];
    if (operation.op === 'add' || operation.op === 'replace') object.spec['requestedBy'] = operation.value;
  }
  return { ...review, object };
}
