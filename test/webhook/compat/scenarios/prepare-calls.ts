// Scenarios of /admission/prepare-downscale: what pods are asked, what is written, and what is taken back.
import { annotates, at, calls, checks, podAt, podsOf, rescale, shrankAt, update, waits, zone } from './given.ts';
import { scenario } from './prepare-downscale.ts';
import type { WebhookScenario } from './scenario.ts';

const shrink = update('zone-a', 1);
const leaving = ['zone-a-2', 'zone-a-1'] as const;
const checked = checks('zone-b', 'zone-c');
const failed = { allowed: false, message: ['statefulsets/zone-a', 'namespace one', 'from 3 to 1', 'one or more pods failed to prepare'] };
const two = [zone('zone-a'), zone('zone-b', { labels: waits('12h') })];

export const prepareCallScenarios: readonly WebhookScenario[] = [
  scenario(13, 'one pod that fails denies, and all pods are told to stay', shrink, {
    answers: { 'POST zone-a-1': 500 },
    expected: {
      ...failed,
      calls: [...checked, ...calls('POST', ...leaving), ...calls('DELETE', ...leaving)],
      after: { 'statefulsets.apps/zone-a': { spec: { replicas: 3 } } },
    },
  }),
  scenario(13, 'a redirect is a failure', update('zone-a', 2), {
    answers: { 'POST zone-a-2': 301 },
    expected: {
      allowed: false,
      message: ['one or more pods failed to prepare', '301'],
      calls: [...checked, ...calls('POST', 'zone-a-2'), ...calls('DELETE', 'zone-a-2')],
    },
  }),
  scenario(13, 'no content is a success', update('zone-a', 2), {
    answers: { 'POST zone-a-2': 204 },
    expected: { allowed: true, message: ['prepared'], calls: [...checked, ...calls('POST', 'zone-a-2'), annotates('zone-a')] },
  }),
  scenario(13, 'a pod that exists and does not answer within its time denies', update('zone-a', 2), {
    pods: [...podsOf('zone-a'), ...podsOf('zone-b'), ...podsOf('zone-c')],
    answers: { 'POST zone-a-2': 'silent' },
    expected: {
      allowed: false,
      message: ['one or more pods failed to prepare', '5000 ms'],
      calls: [...checked, ...calls('POST', 'zone-a-2'), `GET ${at.pod('zone-a-2')}`, ...calls('DELETE', 'zone-a-2')],
    },
  }),
  scenario(13, 'a pod that does not exist has nothing to prepare', update('zone-a', 2), {
    answers: { 'POST zone-a-2': 'refused' },
    expected: {
      allowed: true,
      message: ['prepared'],
      calls: [...checked, ...calls('POST', 'zone-a-2'), `GET ${at.pod('zone-a-2')}`, annotates('zone-a')],
    },
  }),
  scenario(13, 'a pod that cannot be looked for counts as one that is there', update('zone-a', 2), {
    answers: { 'POST zone-a-2': 'refused' },
    faults: [{ on: `GET ${at.pod('zone-a-2')}`, answer: 'lost' }],
    expected: {
      allowed: false,
      message: ['one or more pods failed to prepare'],
      calls: [...checked, ...calls('POST', 'zone-a-2'), `GET ${at.pod('zone-a-2')}`, ...calls('DELETE', 'zone-a-2')],
    },
  }),
  scenario(13, 'a failure to tell a pod that it stays changes nothing', shrink, {
    answers: { 'POST zone-a-2': 503, 'DELETE zone-a-2': 'silent', 'DELETE zone-a-1': 500 },
    expected: { ...failed, calls: [...checked, ...calls('POST', ...leaving), ...calls('DELETE', ...leaving)] },
  }),
  scenario(13, 'a slash in the annotation is not taken away', update('zone-a', 2), {
    sets: [
      zone('zone-a', { annotations: { 'grafana.com/prepare-downscale-http-path': '/prepare?now=1' } }),
      zone('zone-b'),
      zone('zone-c'),
    ],
    expected: {
      allowed: true,
      message: ['prepared'],
      calls: [...checked, `POST ${podAt('zone-a-2', '//prepare?now=1')}`, annotates('zone-a')],
    },
  }),
  scenario(13, 'a port that is none fails to prepare', update('zone-a', 2), {
    sets: [zone('zone-a', { annotations: { 'grafana.com/prepare-downscale-http-port': 'http' } }), zone('zone-b'), zone('zone-c')],
    expected: { allowed: false, message: ['one or more pods failed to prepare', 'http-port'], calls: checked },
  }),
  scenario(13, 'ordinals begin where the StatefulSet says', update('zone-a', 1), {
    sets: [zone('zone-a', { spec: { ordinals: { start: 5 } } }), zone('zone-b'), zone('zone-c')],
    expected: { allowed: true, message: ['prepared'], calls: [...checked, ...calls('POST', 'zone-a-7', 'zone-a-6'), annotates('zone-a')] },
  }),
  scenario(13, 'a request that shows other replicas than there are calls nobody', rescale('zone-a', 5, 2), {
    expected: {
      allowed: false,
      message: ['statefulsets/zone-a', 'from 5 to 2', 'it has 3 replicas'],
      calls: [`GET ${at.set('zone-a')}`, ...checked],
    },
  }),
  scenario(13, 'more pods than can be asked at once are not begun with', update('zone-a', 2), {
    sets: [zone('zone-a', { replicas: 2_000_000_000 }), zone('zone-b'), zone('zone-c')],
    expected: { allowed: false, message: ['from 2000000000 to 2', 'at most 10000'], calls: checked },
  }),
  scenario(14, 'an annotation that cannot be written denies, and all pods are told to stay', shrink, {
    faults: [{ on: `PATCH ${at.set('zone-a')}`, answer: { status: 403, reason: 'Forbidden', message: 'the webhook may not patch' } }],
    expected: {
      allowed: false,
      message: ['statefulsets/zone-a', 'adding an annotation failed', 'the webhook may not patch'],
      calls: [...checked, ...calls('POST', ...leaving), annotates('zone-a'), ...calls('DELETE', ...leaving)],
    },
  }),
  scenario(14, 'a write of the status that comes between is no failure', shrink, {
    faults: [
      {
        on: `PATCH ${at.set('zone-a')}`,
        nth: 1,
        meanwhile: { resource: 'statefulsets.apps', name: 'zone-a', patch: { metadata: { labels: { touched: 'yes' } } } },
      },
    ],
    expected: {
      allowed: true,
      message: ['prepared'],
      calls: [...checked, ...calls('POST', ...leaving), annotates('zone-a'), `GET ${at.set('zone-a')}`, annotates('zone-a')],
      after: { 'statefulsets.apps/zone-a': { metadata: { annotations: shrankAt('2026-01-15T12:00:00Z') } } },
    },
  }),
  scenario(14, 'replicas that changed while pods prepared deny', shrink, {
    faults: [
      {
        on: `PATCH ${at.set('zone-a')}`,
        nth: 1,
        meanwhile: { resource: 'statefulsets.apps', name: 'zone-a', patch: { spec: { replicas: 4 } } },
      },
    ],
    expected: {
      allowed: false,
      message: ['adding an annotation failed', '4 replicas'],
      calls: [...checked, ...calls('POST', ...leaving), annotates('zone-a'), `GET ${at.set('zone-a')}`, ...calls('DELETE', ...leaving)],
    },
  }),
  scenario(14, 'a zone that shrank elsewhere in the meantime takes the annotation back', shrink, {
    sets: two,
    faults: [
      {
        on: `PATCH ${at.set('zone-a')}`,
        nth: 1,
        meanwhile: {
          resource: 'statefulsets.apps',
          name: 'zone-b',
          patch: { metadata: { annotations: shrankAt('2026-01-15T12:00:00Z') } },
        },
      },
    ],
    expected: {
      allowed: false,
      message: ['zone-b', '2026-01-15 12:00:00 +0000 UTC', '12h0m0s'],
      calls: [
        ...[...checks('zone-b'), ...calls('POST', ...leaving), annotates('zone-a'), `GET ${at.sets} rollout-group=ingester`],
        { call: `PATCH ${at.set('zone-a')}`, body: { metadata: { annotations: { 'grafana.com/last-downscale': null } } } },
        ...calls('DELETE', ...leaving),
      ],
      after: { 'statefulsets.apps/zone-a': { metadata: { annotations: { 'grafana.com/prepare-downscale-http-port': '8080' } } } },
    },
  }),
  scenario(14, 'a group that cannot be looked at after the write denies', shrink, {
    sets: two,
    faults: [{ on: `GET ${at.sets}`, nth: 2, answer: 'lost' }],
    expected: {
      allowed: false,
      message: ['it is unknown whether another zone shrank'],
      calls: [
        ...[...checks('zone-b'), ...calls('POST', ...leaving), annotates('zone-a'), `GET ${at.sets} rollout-group=ingester`],
        ...[`PATCH ${at.set('zone-a')}`, ...calls('DELETE', ...leaving)],
      ],
    },
  }),
  scenario(15, 'all pods are asked from the highest ordinal down, the time is recorded, and the answer says so', update('zone-a', 0), {
    expected: {
      allowed: true,
      message: ['all pods that leave zone-a were prepared: 3'],
      calls: [...checked, ...calls('POST', 'zone-a-2', 'zone-a-1', 'zone-a-0'), annotates('zone-a')],
      after: { 'statefulsets.apps/zone-a': { spec: { replicas: 3 }, metadata: { annotations: shrankAt('2026-01-15T12:00:00Z') } } },
    },
  }),
];
