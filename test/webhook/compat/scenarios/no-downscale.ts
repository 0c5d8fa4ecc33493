// Scenarios of /admission/no-downscale.
import { at, rescale, scale, statefulSet, update } from './given.ts';
import type { ExpectedCall, Json, ScenarioRequest, WebhookScenario } from './scenario.ts';

const keep = { 'grafana.com/no-downscale': 'true' };

interface Case {
  readonly labels?: Json;
  readonly state?: WebhookScenario['state'];
  readonly faults?: WebhookScenario['faults'];
  readonly allowed: boolean;
  readonly message?: readonly string[];
  readonly warnings?: readonly (readonly string[])[];
  readonly calls?: readonly ExpectedCall[];
}

function scenario(row: number, name: string, request: ScenarioRequest, given: Case): WebhookScenario {
  const { labels = keep, state = { 'statefulsets.apps': [statefulSet('zone-a', { labels })] }, faults } = given;
  const { allowed, message, warnings, calls = [] } = given;
  return {
    name,
    rows: [`no-downscale ${row}`],
    endpoint: '/admission/no-downscale',
    state,
    request,
    ...(faults !== undefined && { faults }),
    expected: { allowed, calls, ...(message !== undefined && { message }), ...(warnings !== undefined && { warnings }) },
  };
}

const denial = ['statefulsets/zone-a', 'namespace one', 'from 3 to 2', 'grafana.com/no-downscale=true'];
const readsSet = [`GET ${at.set('zone-a')}`];
const object = (apiVersion: string, kind: string, spec: Json = { replicas: 3 }): Json => ({
  apiVersion,
  kind,
  metadata: { namespace: 'one', name: 'zone-a', labels: keep },
  spec,
});
const asked = (oldObject: unknown, newObject: unknown, overrides: Partial<ScenarioRequest> = {}): ScenarioRequest => ({
  resource: 'statefulsets',
  name: 'zone-a',
  oldObject,
  object: newObject,
  dryRun: false,
  ...overrides,
});
const three = object('apps/v1', 'StatefulSet');
const two = object('apps/v1', 'StatefulSet', { replicas: 2 });
const workload = (kind: string, labels: Json): Json => {
  const { metadata, ...rest } = statefulSet('worker');
  return { ...rest, kind, metadata: { ...(metadata as Json), labels }, status: undefined };
};

export const noDownscaleScenarios: readonly WebhookScenario[] = [
  scenario(1, 'an old object that is missing is allowed with a warning', asked(null, two, { operation: 'CREATE' }), {
    allowed: true,
    warnings: [['cannot decode the old object']],
  }),
  scenario(
    1,
    'an old object of a version that no decoder knows is allowed with a warning',
    asked(object('apps/v1beta1', 'StatefulSet'), two),
    {
      allowed: true,
      warnings: [['cannot decode the old object', 'apps/v1beta1']],
    },
  ),
  scenario(
    1,
    'an old object with replicas that are no number is allowed with a warning',
    asked(object('apps/v1', 'StatefulSet', { replicas: '3' }), two),
    {
      allowed: true,
      warnings: [['cannot decode the old object', 'spec.replicas']],
    },
  ),
  scenario(
    1,
    'an old object whose labels are no text is allowed with a warning',
    asked({ ...three, metadata: { labels: { a: 1 } } }, two),
    {
      allowed: true,
      warnings: [['cannot decode the old object', 'metadata.labels']],
    },
  ),
  scenario(
    2,
    'a Pod has no replicas and is allowed with a warning',
    asked(object('v1', 'Pod', {}), object('v1', 'Pod', {}), { resource: 'pods' }),
    {
      allowed: true,
      warnings: [['cannot get the old replicas', 'v1 Pod']],
    },
  ),
  scenario(
    2,
    'a DaemonSet has no replicas and is allowed with a warning',
    asked(object('apps/v1', 'DaemonSet', {}), two, { resource: 'daemonsets' }),
    {
      allowed: true,
      warnings: [['cannot get the old replicas', 'DaemonSet']],
    },
  ),
  scenario(3, 'a new object that is missing is allowed with a warning', asked(three, null, { operation: 'DELETE' }), {
    allowed: true,
    warnings: [['cannot decode the new object']],
  }),
  scenario(4, 'a new object without replicas is allowed with a warning', asked(three, object('v1', 'Pod', {})), {
    allowed: true,
    warnings: [['cannot get the new replicas', 'v1 Pod']],
  }),
  scenario(
    5,
    'replicas that are null before and after are allowed',
    asked(object('apps/v1', 'StatefulSet', {}), object('apps/v1', 'StatefulSet', { replicas: null })),
    {
      allowed: true,
    },
  ),
  scenario(6, 'new replicas of null are allowed with a warning', asked(three, object('apps/v1', 'StatefulSet', { replicas: null })), {
    allowed: true,
    warnings: [['new replicas are nil']],
  }),
  scenario(6, 'old replicas of null are allowed with a warning', asked(object('apps/v1', 'StatefulSet', {}), two), {
    allowed: true,
    warnings: [['old replicas are nil']],
  }),
  scenario(7, 'more replicas are allowed', update('zone-a', 4), { allowed: true }),
  scenario(7, 'as many replicas are allowed', update('zone-a', 3), { allowed: true }),
  scenario(7, 'a Scale with more replicas is allowed without a read', rescale('zone-a', 3, 4), { allowed: true }),
  scenario(8, 'a Scale of a marked StatefulSet is denied by the label of the StatefulSet', rescale('zone-a', 3, 2), {
    allowed: false,
    message: denial,
    calls: readsSet,
  }),
  scenario(8, 'a Scale without replicas is one to 0', rescale('zone-a', 3, undefined), {
    allowed: false,
    message: ['from 3 to 0'],
    calls: readsSet,
  }),
  scenario(8, 'a Scale of an unmarked StatefulSet is allowed', rescale('zone-a', 3, 2), { labels: {}, allowed: true, calls: readsSet }),
  scenario(8, 'a Scale whose StatefulSet is gone is allowed with a warning', rescale('zone-x', 3, 2), {
    allowed: true,
    warnings: [['statefulsets/zone-x', 'namespace one', 'not found']],
    calls: [`GET ${at.set('zone-x')}`],
  }),
  scenario(8, 'a Scale whose StatefulSet may not be read is allowed with a warning', rescale('zone-a', 3, 2), {
    faults: [{ on: `GET ${at.set('zone-a')}`, answer: { status: 403, reason: 'Forbidden', message: 'the webhook may not get it' } }],
    allowed: true,
    warnings: [['statefulsets/zone-a', 'namespace one', 'the webhook may not get it']],
    calls: readsSet,
  }),
  scenario(8, 'a Scale whose StatefulSet is not read in time is allowed with a warning', rescale('zone-a', 3, 2), {
    faults: [{ on: `GET ${at.set('zone-a')}`, answer: 'silent' }],
    allowed: true,
    warnings: [['statefulsets/zone-a', 'namespace one', 'no answer']],
    calls: readsSet,
  }),
  scenario(8, 'a Scale of a marked Deployment is denied', rescale('worker', 3, 2, { resource: 'deployments' }), {
    state: { 'deployments.apps': [workload('Deployment', keep)] },
    allowed: false,
    message: ['deployments/worker', 'from 3 to 2'],
    calls: [`GET ${at.deployment('worker')}`],
  }),
  scenario(8, 'a Scale of a marked ReplicaSet is denied', rescale('worker', 3, 2, { resource: 'replicasets' }), {
    state: { 'replicasets.apps': [workload('ReplicaSet', keep)] },
    allowed: false,
    message: ['replicasets/worker', 'from 3 to 2'],
    calls: [`GET ${at.replicaSet('worker')}`],
  }),
  scenario(8, 'a Scale of another resource is allowed with a warning', rescale('web', 3, 2, { resource: 'replicationcontrollers' }), {
    allowed: true,
    warnings: [['replicationcontrollers/web', 'namespace one']],
  }),
  scenario(9, 'an unmarked StatefulSet may shrink', update('zone-a', 2), { labels: {}, allowed: true }),
  scenario(
    9,
    'adding the label in the write that shrinks does not deny it',
    update('zone-a', 2, { patch: { metadata: { labels: keep }, spec: { replicas: 2 } } }),
    {
      labels: {},
      allowed: true,
    },
  ),
  scenario(10, 'a label with another value does not count', update('zone-a', 2), {
    labels: { 'grafana.com/no-downscale': 'True' },
    allowed: true,
  }),
  scenario(11, 'a marked StatefulSet does not shrink', update('zone-a', 2), { allowed: false, message: denial }),
  scenario(11, 'a dry run is denied too', update('zone-a', 2, { dryRun: true }), { allowed: false, message: denial }),
  scenario(
    11,
    'taking the label away in the same write does not help',
    update('zone-a', 2, { patch: { metadata: { labels: null }, spec: { replicas: 2 } } }),
    {
      allowed: false,
      message: denial,
    },
  ),
  scenario(
    11,
    'a marked Deployment does not shrink',
    asked(object('apps/v1', 'Deployment'), object('apps/v1', 'Deployment', { replicas: 2 }), { resource: 'deployments' }),
    {
      allowed: false,
      message: ['deployments/zone-a', 'from 3 to 2'],
    },
  ),
  scenario(11, 'a review of v1beta1 is answered alike', update('zone-a', 0, { apiVersion: 'admission.k8s.io/v1beta1' }), {
    allowed: false,
    message: ['from 3 to 0'],
  }),
  scenario(
    11,
    'the annotation in place of the label marks nothing',
    asked(scale('zone-a', 3), scale('zone-a', 2), { subresource: 'scale' }),
    {
      state: { 'statefulsets.apps': [statefulSet('zone-a', { annotations: keep })] },
      allowed: true,
      calls: readsSet,
    },
  ),
];
