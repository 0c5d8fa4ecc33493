// Scenarios of /admission/prepare-downscale with the zone tracker: times are kept in a ConfigMap.
import { at, calls, checks, endpoint, podsOf, prepared, shrankAt, statefulSet, update, waits, zone } from './given.ts';
import type { ExpectedCall, Json, WebhookScenario } from './scenario.ts';

interface Case {
  readonly sets?: readonly Json[];
  /** Entries of the ConfigMap; none when left out. */
  readonly entries?: Readonly<Record<string, string>>;
  readonly faults?: WebhookScenario['faults'];
  readonly answers?: WebhookScenario['pods'];
  readonly inHand?: WebhookScenario['inHand'];
  readonly expected: WebhookScenario['expected'];
}

const waiting = ['zone-a', 'zone-b'].map((name) => zone(name, { labels: waits('12h') }));
const entry = (instant: string): string => JSON.stringify({ lastDownscaled: instant });
const tracker = (data: Json): Json => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace: 'one', name: 'tracker', labels: { kept: 'yes' } },
  data,
});
const long = { 'zone-a': entry('2026-01-01T00:00:00Z'), 'zone-b': entry('2026-01-01T00:00:00Z'), other: entry('2026-01-02T00:00:00Z') };
const now = entry('2026-01-15T12:00:00Z');

function scenario(row: string, name: string, { sets = waiting, entries, faults, answers, inHand, expected }: Case): WebhookScenario {
  return {
    name,
    rows: [`zone-tracker ${row}`],
    endpoint: '/admission/prepare-downscale',
    request: update('zone-a', 2),
    expected,
    settings: { zoneTracker: { configMapName: 'tracker' } },
    state: {
      'statefulsets.apps': sets,
      pods: [...podsOf('zone-a'), ...podsOf('zone-b')],
      ...(entries !== undefined && { configmaps: [tracker(entries)] }),
    },
    ...(faults !== undefined && { faults }),
    ...(answers !== undefined && { pods: answers }),
    ...(inHand !== undefined && { inHand }),
  };
}

const lists = `GET ${at.sets} rollout-group=ingester`;
const reads = `GET ${at.tracker}`;
const checked: readonly ExpectedCall[] = [lists, reads, ...checks('zone-b').slice(1)];
const posts = calls('POST', 'zone-a-2');
const takesBack = calls('DELETE', 'zone-a-2');
const writes = (data: Json): ExpectedCall => ({ call: `PUT ${at.tracker}`, body: { metadata: { labels: { kept: 'yes' } }, data } });
const deny = (...message: readonly string[]) => ({ allowed: false, message: ['statefulsets/zone-a', 'from 3 to 2', ...message] });
const bySomebody = (data: Json) => ({ resource: 'configmaps', name: 'tracker', patch: { data } });

export const zoneTrackerScenarios: readonly WebhookScenario[] = [
  scenario('first downscale', 'without a ConfigMap one is made with every zone as of now, so zones that wait are denied', {
    expected: {
      ...deny('zone-b', '2026-01-15 12:00:00 +0000 UTC', '12h0m0s'),
      calls: [
        lists,
        reads,
        { call: `POST ${at.configMaps}`, body: { metadata: { name: 'tracker' }, data: { 'zone-a': now, 'zone-b': now } } },
      ],
      after: { 'configmaps/tracker': { data: { 'zone-a': now, 'zone-b': now } } },
    },
  }),
  scenario('first downscale', 'zones that do not wait shrink although the ConfigMap is new', {
    sets: [zone('zone-a'), zone('zone-b')],
    expected: {
      allowed: true,
      message: ['prepared'],
      calls: [lists, reads, `POST ${at.configMaps}`, ...checks('zone-b').slice(1), ...posts, `PUT ${at.tracker}`],
    },
  }),
  scenario('first downscale', 'a ConfigMap that somebody else makes first is read', {
    faults: [{ on: `POST ${at.configMaps}`, created: { resource: 'configmaps', object: tracker(long) } }],
    expected: {
      allowed: true,
      message: ['prepared'],
      calls: [lists, reads, `POST ${at.configMaps}`, reads, ...checks('zone-b').slice(1), ...posts, writes({ ...long, 'zone-a': now })],
    },
  }),
  scenario('10', 'a ConfigMap that cannot be made is denied', {
    faults: [{ on: `POST ${at.configMaps}`, answer: { status: 403, reason: 'Forbidden', message: 'the webhook may not create' } }],
    expected: { ...deny('loading zones failed', 'the webhook may not create'), calls: [lists, reads, `POST ${at.configMaps}`] },
  }),
  scenario('10', 'a ConfigMap that cannot be read is denied', {
    entries: long,
    faults: [{ on: reads, answer: { status: 500, message: 'etcd is away' } }],
    expected: { ...deny('loading zones failed', 'etcd is away'), calls: [lists, reads] },
  }),
  scenario('10', 'an entry that is no JSON is denied, also that of another group', {
    entries: { ...long, other: '{' },
    expected: { ...deny('loading zones failed', 'other'), calls: [lists, reads] },
  }),
  scenario('10', 'an entry whose time cannot be read is denied', {
    entries: { ...long, 'zone-b': '{"lastDownscaled":"yesterday"}' },
    expected: { ...deny('parsing downscale annotations failed', 'zone-b'), calls: [lists, reads] },
  }),
  scenario('10', 'a time that is too short ago is denied, whatever the case of its key', {
    entries: { ...long, 'zone-b': '{"LASTDOWNSCALED":"2026-01-15T11:00:00Z"}' },
    expected: { ...deny('zone-b', '2026-01-15 11:00:00 +0000 UTC', '12h0m0s'), calls: [lists, reads] },
  }),
  scenario('10', 'a zone without an entry makes nobody wait, and its annotation does not count', {
    entries: { 'zone-a': now },
    sets: [zone('zone-a'), zone('zone-b', { labels: waits('12h'), annotations: shrankAt('2026-01-15T11:59:00Z') })],
    expected: { allowed: true, message: ['prepared'], calls: [...checked, ...posts, writes({ 'zone-a': now })] },
  }),
  scenario('14', 'the own entry is written beside all others, and no annotation', {
    entries: long,
    expected: {
      allowed: true,
      message: ['prepared'],
      calls: [...checked, ...posts, writes({ ...long, 'zone-a': now })],
      after: { 'configmaps/tracker': { metadata: { labels: { kept: 'yes' } }, data: { ...long, 'zone-a': now } } },
    },
  }),
  scenario('14', 'an entry that cannot be written denies, and all pods are told to stay', {
    entries: long,
    faults: [{ on: `PUT ${at.tracker}`, answer: { status: 403, reason: 'Forbidden', message: 'the webhook may not update' } }],
    expected: {
      ...deny('ConfigMap tracker', 'the webhook may not update'),
      calls: [...checked, ...posts, `PUT ${at.tracker}`, ...takesBack],
    },
  }),
  scenario('14', 'another group that was written in the meantime loses nothing', {
    entries: long,
    faults: [{ on: `PUT ${at.tracker}`, nth: 1, meanwhile: bySomebody({ other: now }) }],
    expected: {
      allowed: true,
      message: ['prepared'],
      calls: [...checked, ...posts, `PUT ${at.tracker}`, reads, writes({ ...long, other: now, 'zone-a': now })],
      after: { 'configmaps/tracker': { data: { ...long, other: now, 'zone-a': now } } },
    },
  }),
  scenario('14', 'a zone that another process lets shrink in the meantime denies', {
    entries: long,
    faults: [{ on: `PUT ${at.tracker}`, nth: 1, meanwhile: bySomebody({ 'zone-b': now }) }],
    expected: {
      ...deny('zone-b', '12h0m0s'),
      calls: [...checked, ...posts, `PUT ${at.tracker}`, reads, ...takesBack],
      after: { 'configmaps/tracker': { data: { ...long, 'zone-b': now } } },
    },
  }),
  scenario('14', 'pods that fail to prepare leave the ConfigMap as it is', {
    entries: long,
    answers: { 'POST zone-a-2': 500 },
    expected: {
      ...deny('failed to prepare'),
      calls: [...checked, ...posts, ...takesBack],
      after: { 'configmaps/tracker': { data: long } },
    },
  }),
  scenario('lock', 'a zone of the same group that is being prepared is named', {
    entries: long,
    inHand: update('zone-b', 2),
    answers: { 'POST zone-b-2': 'silent' },
    expected: { ...deny('zone-b', 'being scaled down'), calls: checked },
  }),
  scenario('lock', 'a zone of another group does not wait', {
    sets: [...waiting, zone('zone-x', { labels: { 'rollout-group': 'other' } })],
    entries: long,
    inHand: update('zone-x', 2),
    answers: { 'POST zone-x-2': 'silent' },
    expected: { allowed: true, message: ['prepared'], calls: [...checked, ...posts, writes({ ...long, 'zone-a': now })] },
  }),
  scenario('without a group', 'a StatefulSet without a group keeps the entries of all others', {
    entries: long,
    sets: [statefulSet('zone-a', { labels: prepared, annotations: endpoint })],
    expected: {
      allowed: true,
      message: ['prepared'],
      calls: [`GET ${at.set('zone-a')}`, reads, ...posts, writes({ ...long, 'zone-a': now })],
      after: { 'configmaps/tracker': { data: { ...long, 'zone-a': now } } },
    },
  }),
  scenario('without a group', 'a StatefulSet without a group makes the ConfigMap when there is none', {
    sets: [statefulSet('zone-a', { labels: prepared, annotations: endpoint })],
    expected: {
      allowed: true,
      message: ['prepared'],
      calls: [`GET ${at.set('zone-a')}`, reads, `POST ${at.configMaps}`, ...posts, `PUT ${at.tracker}`],
      after: { 'configmaps/tracker': { data: { 'zone-a': now } } },
    },
  }),
];
