// Registers the kinds of the project: their schemas and their names in the API. Removes the fields that the API server adds to documents.
import * as z from 'zod';
import { isRecord } from '../values/is-record.ts';
import { policyTestSpec } from './policy-test.ts';
import { rolloutGroupSpec, rolloutGroupStatus } from './rollout-group.ts';
import { rolloutExceptionSpec, rolloutIntentSpec } from './rollout-intent.ts';
import { rolloutPolicySpec } from './rollout-policy.ts';
import { rolloutRunSpec } from './rollout-run.ts';
import { objectName } from './scalars.ts';
import { metricSourceSpec, notificationChannelSpec } from './sources.ts';

export const apiGroup = 'rollout-group.dev';
export const apiVersion = `${apiGroup}/v1alpha1`;

const metadata = z.strictObject({
  name: objectName,
  namespace: objectName.optional(),
  labels: z.record(z.string(), z.string()).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
});

function kindSchema<Kind extends string, Spec extends z.ZodType>(kind: Kind, spec: Spec) {
  return z.strictObject({ apiVersion: z.literal(apiVersion), kind: z.literal(kind), metadata, spec });
}

/** The schemas of all kinds, for documents as users write them: without `status` and without the fields of the API server. */
export const schemas = {
  RolloutGroup: kindSchema('RolloutGroup', rolloutGroupSpec),
  RolloutPolicy: kindSchema('RolloutPolicy', rolloutPolicySpec),
  RolloutException: kindSchema('RolloutException', rolloutExceptionSpec),
  RolloutIntent: kindSchema('RolloutIntent', rolloutIntentSpec),
  RolloutRun: kindSchema('RolloutRun', rolloutRunSpec),
  MetricSource: kindSchema('MetricSource', metricSourceSpec),
  NotificationChannel: kindSchema('NotificationChannel', notificationChannelSpec),
  PolicyTest: kindSchema('PolicyTest', policyTestSpec),
} as const;

export type Kind = keyof typeof schemas;

export type RolloutGroup = z.infer<typeof schemas.RolloutGroup>;
export type RolloutIntent = z.infer<typeof schemas.RolloutIntent>;
export type RolloutRun = z.infer<typeof schemas.RolloutRun>;
export type MetricSource = z.infer<typeof schemas.MetricSource>;
export type NotificationChannel = z.infer<typeof schemas.NotificationChannel>;
export type PolicyTest = z.infer<typeof schemas.PolicyTest>;
export type PolicyDocument = z.infer<(typeof schemas)[Kind]>;

/** A kind in the API. Without `plural` it has no API resource and exists only in files. */
interface KindInfo {
  readonly plural?: string;
  readonly shortNames?: readonly string[];
  /** The schema of the status; absent if the kind has no status. */
  readonly status?: z.ZodType;
  /** True if the resource has the subresource `scale`. */
  readonly hasScale?: boolean;
  readonly summary: string;
}

export const kinds: Readonly<Record<Kind, KindInfo>> = {
  RolloutGroup: {
    plural: 'rolloutgroups',
    shortNames: ['rg'],
    status: rolloutGroupStatus,
    hasScale: true,
    summary: 'A group of StatefulSets, one per zone: members, source of replicas, scaling, rollout and protection.',
  },
  RolloutPolicy: { plural: 'rolloutpolicies', summary: 'Rules, windows and limits for groups.' },
  RolloutException: {
    plural: 'rolloutexceptions',
    summary: 'Permits an action that one rule blocks, for one target, until it expires.',
  },
  RolloutIntent: { plural: 'rolloutintents', summary: 'A request of a user for a group, such as pause, approve or abort.' },
  RolloutRun: { plural: 'rolloutruns', summary: 'Record of one rollout or scaling. Only the agent writes it.' },
  MetricSource: { plural: 'metricsources', summary: 'A metric server, its credentials, and the namespaces that may use it.' },
  NotificationChannel: {
    plural: 'notificationchannels',
    summary: 'A receiver of notifications, its credentials, and the namespaces that may use it.',
  },
  PolicyTest: { summary: 'Test cases for policies: a state, a request and the expected decision.' },
};

/** Returns the API resource of a kind. `plural` is empty if the kind exists only in files. */
export function resourceOfKind(kind: Kind): Readonly<Record<'group' | 'version' | 'plural' | 'kind', string> & { isNamespaced: true }> {
  return { group: apiGroup, version: apiVersion.slice(apiGroup.length + 1), plural: kinds[kind].plural ?? '', kind, isNamespaced: true };
}

/** The fields of `metadata` in stored objects that have no meaning in a policy file. */
const serverFields: ReadonlySet<string> = new Set([
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'selfLink',
  'managedFields',
  'ownerReferences',
  'finalizers',
  'generateName',
]);

/** Returns a document without `serverFields`, and without `status` if its kind has one: lint accepts the output of `kubectl get -o yaml`. */
export function withoutServerMetadata(value: unknown): unknown {
  if (!isRecord(value)) return value;
  const { metadata, kind } = value;
  const isKindWithStatus = Object.entries(kinds).some(([name, { status }]) => name === kind && status !== undefined);
  const { status: _status, ...withoutStatus } = value;
  return {
    ...(isKindWithStatus ? withoutStatus : value),
    ...(isRecord(metadata) && { metadata: Object.fromEntries(Object.entries(metadata).filter(([key]) => !serverFields.has(key))) }),
  };
}
