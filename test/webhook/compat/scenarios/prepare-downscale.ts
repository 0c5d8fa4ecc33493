// Scenarios of /admission/prepare-downscale: which requests concern it, what it needs of the StatefulSet, and what holds it.
import {
  annotates,
  at,
  calls,
  checks,
  containerStatus,
  endpoint,
  group,
  pod,
  podsOf,
  prepared,
  rescale,
  shrankAt,
  statefulSet,
  update,
  waits,
  zone,
} from './given.ts';
import type { Json, ScenarioRequest, WebhookScenario } from './scenario.ts';

interface Case {
  readonly sets?: readonly Json[];
  readonly pods?: readonly Json[];
  readonly faults?: WebhookScenario['faults'];
  readonly settings?: Json;
  readonly answers?: WebhookScenario['pods'];
  readonly expected: WebhookScenario['expected'];
}

/** Zones a, b and c with all their pods. */
const zones = [zone('zone-a'), zone('zone-b'), zone('zone-c')];
const otherPods = [...podsOf('zone-b'), ...podsOf('zone-c')];

export function scenario(row: number, name: string, request: ScenarioRequest, given: Case): WebhookScenario {
  const { sets = zones, pods = otherPods, faults, settings, answers, expected } = given;
  return {
    name,
    rows: [`prepare-downscale ${row}`],
    endpoint: '/admission/prepare-downscale',
    request,
    expected,
    state: { 'statefulsets.apps': sets, pods },
    ...(faults !== undefined && { faults }),
    ...(settings !== undefined && { settings }),
    ...(answers !== undefined && { pods: answers }),
  };
}

const allow = { allowed: true, calls: [] };
const deny = (...message: readonly string[]) => ({
  allowed: false,
  message: ['statefulsets/zone-a', 'namespace one', 'from 3 to 2', ...message],
});
const shrink = update('zone-a', 2);
const { dryRun: _dryRun, ...unsaid } = shrink;
const replacedBy = (object: Json): ScenarioRequest => ({ resource: 'statefulsets', name: 'zone-a', object });
const others = ['zone-b', 'zone-c'] as const;
const lists = `GET ${at.sets} rollout-group=ingester`;

const scope: readonly WebhookScenario[] = [
  scenario(1, 'a dry run is allowed, and nobody is asked anything', update('zone-a', 2, { dryRun: true }), { expected: allow }),
  scenario(1, 'a review that does not say whether it is a dry run is none', unsaid, {
    expected: { allowed: true, message: ['prepared'], calls: [...checks(...others), ...calls('POST', 'zone-a-2'), annotates('zone-a')] },
  }),
  scenario(
    2,
    'an old object that cannot be decoded is allowed with a warning',
    { ...shrink, oldObject: { apiVersion: 'apps/v2', kind: 'StatefulSet' } },
    {
      expected: { ...allow, warnings: [['cannot decode the old object']] },
    },
  ),
  scenario(2, 'a new object without replicas is allowed with a warning', replacedBy({ apiVersion: 'v1', kind: 'Pod' }), {
    expected: { ...allow, warnings: [['cannot decode the new object', 'v1 Pod']] },
  }),
  scenario(3, 'as many replicas are allowed', update('zone-a', 3), { expected: allow }),
  scenario(3, 'new replicas of null are allowed with a warning', update('zone-a', null), {
    expected: { ...allow, warnings: [['new replicas are nil']] },
  }),
  scenario(3, 'a marked StatefulSet grows, and no pod of before is told anything', update('zone-a', 4), {
    expected: { allowed: true, calls: [`GET ${at.set('zone-a')}`, `GET ${at.pods} name=zone-a`] },
  }),
  scenario(3, 'a StatefulSet that grows back tells the pods that have not left yet to stay', update('zone-a', 5), {
    pods: [...podsOf('zone-a', 5), ...otherPods],
    expected: {
      allowed: true,
      calls: [`GET ${at.set('zone-a')}`, `GET ${at.pods} name=zone-a`, ...calls('DELETE', 'zone-a-3', 'zone-a-4')],
    },
  }),
  scenario(3, 'any number of replicas may be grown to', update('zone-a', 2_000_000_000), {
    pods: [...podsOf('zone-a', 4), pod('zone-a', 7, { metadata: { labels: { name: 'zone-a' }, name: 'stranger-7' } })],
    expected: { allowed: true, calls: [`GET ${at.set('zone-a')}`, `GET ${at.pods} name=zone-a`, ...calls('DELETE', 'zone-a-3')] },
  }),
  scenario(3, 'a growth from another number than there is tells nobody anything', rescale('zone-a', 1, 5), {
    pods: podsOf('zone-a'),
    expected: { allowed: true, calls: [`GET ${at.set('zone-a')}`] },
  }),
  scenario(3, 'an unmarked StatefulSet grows without a call', update('zone-a', 5), {
    sets: [statefulSet('zone-a', { labels: group })],
    expected: allow,
  }),
  scenario(3, 'a growth is allowed when nothing can be read', rescale('zone-a', 3, 5), {
    faults: [{ on: `GET ${at.set('zone-a')}`, answer: 'silent' }],
    expected: { allowed: true, calls: [`GET ${at.set('zone-a')}`] },
  }),
  scenario(4, 'a Scale is judged by the StatefulSet behind it', rescale('zone-a', 3, 2), {
    expected: {
      allowed: true,
      message: ['prepared'],
      calls: [`GET ${at.set('zone-a')}`, ...checks(...others), ...calls('POST', 'zone-a-2'), annotates('zone-a')],
    },
  }),
  scenario(
    4,
    'a Deployment is allowed with a warning',
    { ...shrink, resource: 'deployments', ...deployments(3, 2) },
    {
      expected: { ...allow, warnings: [['deployments/zone-a', 'allowing the change']] },
    },
  ),
  scenario(4, 'a Scale of a Deployment is allowed with a warning', rescale('zone-a', 3, 2, { resource: 'deployments' }), {
    expected: { ...allow, warnings: [['deployments/zone-a', 'allowing the change']] },
  }),
  scenario(4, 'a Scale whose StatefulSet cannot be read is allowed with a warning', rescale('zone-a', 3, 2), {
    faults: [{ on: `GET ${at.set('zone-a')}`, answer: { status: 500, message: 'etcd is away' } }],
    expected: {
      allowed: true,
      warnings: [['statefulsets/zone-a', 'etcd is away, allowing the change']],
      calls: [`GET ${at.set('zone-a')}`],
    },
  }),
  scenario(5, 'an unmarked StatefulSet shrinks silently', shrink, {
    sets: [statefulSet('zone-a', { labels: group, annotations: endpoint })],
    expected: allow,
  }),
  scenario(5, 'the mark as an annotation does not count', shrink, {
    sets: [statefulSet('zone-a', { labels: group, annotations: { ...endpoint, ...prepared } })],
    expected: allow,
  }),
];

function deployments(from: number, to: number): Pick<ScenarioRequest, 'oldObject' | 'object'> {
  const of = (replicas: number): Json => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'zone-a', labels: prepared },
    spec: { replicas },
  });
  return { oldObject: of(from), object: of(to) };
}

const path = 'grafana.com/prepare-downscale-http-path';
const port = 'grafana.com/prepare-downscale-http-port';

const settings: readonly WebhookScenario[] = [
  scenario(6, 'a missing port is denied by the name of its annotation', shrink, {
    sets: [statefulSet('zone-a', { labels: { ...group, ...prepared }, annotations: { [path]: 'prepare' } })],
    expected: { ...deny(port), calls: [] },
  }),
  scenario(6, 'an empty port counts as missing, and is told before the path', shrink, {
    sets: [zone('zone-a', { annotations: { [port]: '', [path]: '' } })],
    expected: { ...deny(port), calls: [] },
  }),
  scenario(7, 'a missing path is denied by the name of its annotation', shrink, {
    sets: [statefulSet('zone-a', { labels: { ...group, ...prepared }, annotations: { [port]: '8080' } })],
    expected: { ...deny(path), calls: [] },
  }),
  scenario(8, 'a StatefulSet without a Service name is denied', shrink, {
    sets: [zone('zone-a', { spec: { serviceName: '' } })],
    expected: { ...deny('spec.serviceName'), calls: [] },
  }),
];

const held: readonly WebhookScenario[] = [
  scenario(9, 'a group that cannot be listed is denied', shrink, {
    faults: [{ on: `GET ${at.sets}`, answer: { status: 403, reason: 'Forbidden', message: 'the webhook may not list' } }],
    expected: { ...deny('finding other', 'the webhook may not list'), calls: [lists] },
  }),
  scenario(9, 'without a group no other StatefulSet is looked at', shrink, {
    sets: [
      statefulSet('zone-a', { labels: prepared, annotations: endpoint }),
      zone('zone-b', { labels: waits('12h'), annotations: shrankAt('2026-01-15T11:59:00Z') }),
    ],
    expected: {
      allowed: true,
      message: ['prepared'],
      calls: [`GET ${at.set('zone-a')}`, ...calls('POST', 'zone-a-2'), annotates('zone-a')],
    },
  }),
  scenario(10, 'another zone that shrank too short a time ago is named with its time and its duration', shrink, {
    sets: [zone('zone-a'), zone('zone-b', { labels: waits('12h'), annotations: shrankAt('2026-01-15T00:00:01Z') })],
    expected: { ...deny('zone-b', '2026-01-15 00:00:01 +0000 UTC', '12h0m0s'), calls: [lists] },
  }),
  scenario(10, 'exactly the time is enough', shrink, {
    sets: [zone('zone-a'), zone('zone-b', { labels: waits('12h'), annotations: shrankAt('2026-01-15T00:00:00Z') })],
    expected: {
      allowed: true,
      message: ['prepared'],
      calls: [...checks('zone-b'), ...calls('POST', 'zone-a-2'), annotates('zone-a'), lists],
    },
  }),
  scenario(10, 'a time with an offset is shown with it', shrink, {
    sets: [zone('zone-a'), zone('zone-b', { labels: waits('90m'), annotations: shrankAt('2026-01-15T13:30:00+02:00') })],
    expected: { ...deny('zone-b', '2026-01-15 13:30:00 +0200 +0200', '1h30m0s'), calls: [lists] },
  }),
  scenario(10, 'a zone without a time between zones makes nobody wait', shrink, {
    sets: [zone('zone-a', { labels: waits('12h') }), zone('zone-b', { annotations: shrankAt('2026-01-15T11:59:59Z') })],
    expected: { allowed: true, message: ['prepared'], calls: [...checks('zone-b'), ...calls('POST', 'zone-a-2'), annotates('zone-a')] },
  }),
  scenario(10, 'a zone that never shrank makes nobody wait', shrink, {
    sets: [zone('zone-a'), zone('zone-b', { labels: waits('12h') })],
    expected: {
      allowed: true,
      message: ['prepared'],
      calls: [...checks('zone-b'), ...calls('POST', 'zone-a-2'), annotates('zone-a'), lists],
    },
  }),
  scenario(10, 'the own last downscale does not count', shrink, {
    sets: [zone('zone-a', { labels: waits('12h'), annotations: shrankAt('2026-01-15T11:59:59Z') }), zone('zone-b')],
    expected: { allowed: true, message: ['prepared'], calls: [...checks('zone-b'), ...calls('POST', 'zone-a-2'), annotates('zone-a')] },
  }),
  scenario(10, 'a time that cannot be read is denied, also without a time between zones', shrink, {
    sets: [zone('zone-a'), zone('zone-b', { annotations: shrankAt('yesterday') })],
    expected: { ...deny('parsing downscale annotations failed', 'zone-b'), calls: [lists] },
  }),
  scenario(10, 'a time between zones that cannot be read is denied', shrink, {
    sets: [zone('zone-a'), zone('zone-b', { labels: waits('1d'), annotations: shrankAt('2026-01-01T00:00:00Z') })],
    expected: { ...deny('parsing downscale annotations failed', 'zone-b'), calls: [lists] },
  }),
  scenario(10, 'a zone without the mark counts as well', shrink, {
    sets: [zone('zone-a'), statefulSet('zone-b', { labels: { ...group, ...waits('12h') }, annotations: shrankAt('2026-01-15T11:00:00Z') })],
    expected: { ...deny('zone-b'), calls: [lists] },
  }),
  scenario(11, 'pods that cannot be listed are denied', shrink, {
    faults: [{ on: `GET ${at.pods}`, nth: 2, answer: 'lost' }],
    expected: { ...deny('zone-c', 'connection was reset'), calls: checks(...others) },
  }),
  scenario(12, 'a zone with a pod that is not ready is named with what is missing', shrink, {
    pods: [pod('zone-b', 0), pod('zone-b', 1), pod('zone-b', 2, { status: { containerStatuses: [containerStatus(false)] } })],
    expected: { ...deny('zone-b', '0 non-updated', '1 non-ready'), calls: checks('zone-b') },
  }),
  scenario(12, 'a zone with outdated pods is named with their number', shrink, {
    sets: [zone('zone-a'), zone('zone-b', { status: { updatedReplicas: 1 } })],
    pods: podsOf('zone-b'),
    expected: { ...deny('zone-b', '2 non-updated', '0 non-ready'), calls: checks('zone-b') },
  }),
  scenario(12, 'a zone with fewer pods than its status counts is not ready', shrink, {
    sets: [zone('zone-a'), zone('zone-b', { status: { replicas: 4 } })],
    pods: podsOf('zone-b'),
    expected: { ...deny('zone-b', '1 non-updated', '1 non-ready'), calls: checks('zone-b') },
  }),
  scenario(12, 'a pod that does not run is not ready, whatever its containers say', shrink, {
    sets: [zone('zone-a'), zone('zone-b')],
    pods: [...podsOf('zone-b', 2), pod('zone-b', 2, { status: { phase: 'Pending' } })],
    expected: { ...deny('zone-b', '1 non-ready'), calls: checks('zone-b') },
  }),
  scenario(12, 'the own pods need not be ready', update('zone-a', 2), {
    pods: [pod('zone-a', 0, { status: { phase: 'Pending' } }), ...otherPods],
    expected: { allowed: true, message: ['prepared'], calls: [...checks(...others), ...calls('POST', 'zone-a-2'), annotates('zone-a')] },
  }),
];

export const prepareDownscaleScenarios: readonly WebhookScenario[] = [...scope, ...settings, ...held];
