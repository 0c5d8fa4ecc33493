// The verb init against a real API server that serves the kinds of other operators: the same files as from manifests, and no Secret beyond those named.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { ApiClient } from '../control-plane/client.ts';
import type { Rule } from '../control-plane/roles.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { filesOf, type Person, person, readerRules } from './live-people.ts';

const namespace = 'payments';

/** A definition that keeps whatever is in spec, as those of the operators are of no importance here. */
function definition(group: string, version: string, kind: string): object {
  const names = { kind, plural: `${kind.toLowerCase()}s`, singular: kind.toLowerCase() };
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  const versions = [{ name: version, served: true, storage: true, schema }];
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${names.plural}.${group}` },
    spec: { group, scope: 'Namespaced', names, versions },
  };
}

const inNamespace = (path: string): Record<string, unknown> => {
  const object = parse(readFileSync(join('examples', path), 'utf8'));
  return { ...object, metadata: { ...object.metadata, namespace } };
};

function filesIn(folder: string): Readonly<Record<string, string>> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(entries.map(({ parentPath, name }) => [name, readFileSync(join(parentPath, name), 'utf8')]));
}

/** A kind is served a moment after its definition is there. */
async function untilServed(client: ApiClient, path: string): Promise<void> {
  for (let attempt = 0; attempt < 300; attempt += 1) {
    if ((await client.ask('GET', path)).status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${path} is not served after 30 s`);
}

const foreignRules: readonly Rule[] = [
  { apiGroups: ['sts.plus'], resources: ['phasedrollouts'], verbs: ['list'] },
  { apiGroups: ['bedrock.operator.slack.com'], resources: ['statefulsetrollouts'], verbs: ['list'] },
];

describeOnControlPlane('init of objects of other operators in a cluster', (controlPlane) => {
  let whole: Person;
  let withoutSecrets: Person;
  let withoutKinds: Person;

  beforeAll(async () => {
    const { client } = controlPlane();
    await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
    const kinds = [
      ['sts.plus', 'v1alpha1', 'PhasedRollout'],
      ['bedrock.operator.slack.com', 'v1', 'StatefulsetRollout'],
    ] as const;
    for (const [group, version, kind] of kinds) {
      await client.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition(group, version, kind));
      const path = `/apis/${group}/${version}/namespaces/${namespace}/${kind.toLowerCase()}s`;
      await untilServed(client, path);
    }
    await client.create(`/apis/apps/v1/namespaces/${namespace}/statefulsets`, inNamespace('phased-rollout/manifests/ledger.yaml'));
    await client.create(
      `/apis/sts.plus/v1alpha1/namespaces/${namespace}/phasedrollouts`,
      inNamespace('phased-rollout/original/ledger.yaml'),
    );
    await client.create(
      `/apis/bedrock.operator.slack.com/v1/namespaces/${namespace}/statefulsetrollouts`,
      inNamespace('statefulset-rollout/original/queue.yaml'),
    );
    await client.create(`/api/v1/namespaces/${namespace}/secrets`, {
      metadata: { name: 'prometheus' },
      stringData: { username: 'gate', password: 'correct-horse' },
    });
    const secrets: Rule = { apiGroups: [''], resources: ['secrets'], resourceNames: ['prometheus'], verbs: ['get'] };
    whole = await person(controlPlane(), namespace, 'whole', [...readerRules, ...foreignRules, secrets]);
    withoutSecrets = await person(controlPlane(), namespace, 'blind', [...readerRules, ...foreignRules]);
    withoutKinds = await person(controlPlane(), namespace, 'partial', [...readerRules, ...foreignRules.slice(0, 1)]);
  });

  it('writes the same as from manifests, and no value of the Secret that it read', async () => {
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'prometheus', namespace },
      stringData: { username: '', password: '' },
    };
    const items = [
      inNamespace('phased-rollout/manifests/ledger.yaml'),
      inNamespace('phased-rollout/original/ledger.yaml'),
      inNamespace('statefulset-rollout/original/queue.yaml'),
      secret,
    ];
    const cwd = filesOf({ 'in.json': { apiVersion: 'v1', kind: 'List', items } });
    const live = await whole.run(['init', '--from-cluster', '--out', 'live'], { cwd });
    const files = await whole.run(['init', '--from-dir', 'in.json', '--out', 'files'], { cwd });
    expect([live.status, files.status]).toEqual([0, 0]);
    // A server has the fields of a spec in an order of its own.
    const meant = (folder: string) => Object.entries(filesIn(join(cwd, folder))).map(([name, text]) => [name, parse(text)]);
    expect(Object.fromEntries(meant('live'))).toEqual(Object.fromEntries(meant('files')));
    expect(Object.keys(filesIn(join(cwd, 'live'))).sort()).toContain('ledger.yaml');
    expect(JSON.stringify([live, filesIn(join(cwd, 'live'))])).not.toMatch(/correct-horse|Y29ycmVjdC1ob3JzZQ/);
    expect(live.stderr).toContain(`PhasedRollout ${namespace}/ledger spec.check.query.secretRef warning RG7004`);
  });

  it('reports that the Secret could not be read, and its assumption', async () => {
    const { status, stderr } = await withoutSecrets.run(['init', '--from-cluster', '--out', 'out'], { cwd: filesOf({}) });
    expect(status).toBe(0);
    expect(stderr).toContain('its keys are unknown, so token is assumed');
  });

  it('names the kind that it may not list, and converts the other one', async () => {
    const { status, stdout, stderr } = await withoutKinds.run(['init', '--from-cluster', '--out', 'out'], { cwd: filesOf({}) });
    expect(status).toBe(0);
    expect(stderr).toContain('note: no permission to list statefulsetrollouts.bedrock.operator.slack.com; they are not converted');
    expect(stdout).toContain(`RolloutGroup ${namespace}/ledger`);
    expect(stdout).not.toContain('queue');
  });

  it('proposes a group for StatefulSets without labels, from their defaults in the API server', async () => {
    const { client } = controlPlane();
    await client.create('/api/v1/namespaces', { metadata: { name: 'plain' } });
    for (const name of ['kv-zone-a', 'kv-zone-b']) {
      const labels = { app: name };
      const spec = { replicas: 0, serviceName: name, selector: { matchLabels: labels } };
      const template = { metadata: { labels }, spec: { containers: [{ name: 'kv', image: 'example.com/kv:1' }] } };
      await client.create('/apis/apps/v1/namespaces/plain/statefulsets', { metadata: { name }, spec: { ...spec, template } });
    }
    const reader = await person(controlPlane(), 'plain', 'plain-reader', readerRules);
    const cwd = filesOf({});
    const { status, stdout } = await reader.run(['init', '--from-cluster', '--out', 'out'], { cwd });
    expect([status, stdout]).toEqual([
      0,
      'out/kv.yaml  RolloutGroup plain/kv, 2 zones, guessed: the names kv-zone-a, kv-zone-b differ in a zone at their end\n',
    ]);
    // The API server has written partition 0, which nobody meant.
    expect(readFileSync(join(cwd, 'out/kv.yaml'), 'utf8')).toContain('rollout: { strategy: pinned }');
  });

  it('writes nothing into the cluster', async () => {
    const written = (await controlPlane().auditLog()).filter(
      ({ user, verb, requestURI }) =>
        user.username.startsWith('system:serviceaccount:people:') &&
        !['get', 'list', 'watch'].includes(verb) &&
        !requestURI.includes('selfsubject'),
    );
    expect(written.map(({ verb, requestURI }) => `${verb} ${requestURI}`)).toEqual([]);
  });
});
