import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { type FakeOptions, fakeApiServer } from './api-server.ts';
import { runInProcess } from './in-process.ts';

/** The definitions of kinds, which stand in deploy/crds, are named and no more. */
function withoutDefinitions(text: string): string {
  return text.replace(
    /---\napiVersion: apiextensions.k8s.io\/v1\n[\s\S]*?\n {2}name: (.*)\n[\s\S]*?(?=---\n)/g,
    '# CustomResourceDefinition $1\n',
  );
}

function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'install-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

const group = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata: { name: ingester, namespace: mimir }
spec:
  members:
    zones:
      - { name: a, statefulSet: ingester-zone-a }
      - { name: b, statefulSet: ingester-zone-b, follows: a }
  replicas:
    mirror: { from: { apiVersion: rollout-operator.grafana.com/v1, kind: ReplicaTemplate, name: ingester }, writeBack: status }
  rollout: { strategy: onDelete }
`;

describe('install', () => {
  it('prints an installation for the whole cluster, and reports that scope', async () => {
    const { status, stdout, stderr } = await runInProcess(['install']);
    expect([status, stderr]).toEqual([
      0,
      `note: no namespace is named, so the agent gets rights in the whole cluster; to limit them, use --policies or --groups-in
note: namespaces without the label rollout-group.dev/enforce=true are not enforced; to set it, run: kubectl label namespace NAMESPACE rollout-group.dev/enforce=true
`,
    ]);
    await expect(withoutDefinitions(stdout)).toMatchFileSnapshot('golden/install.yaml');
  });

  it('prints the same again', async () => {
    const [one, other] = [await runInProcess(['install', '--compat']), await runInProcess(['install', '--compat'])];
    expect(one.stdout).toBe(other.stdout);
  });

  it('prints the permissions that policies name, with all options', async () => {
    const cwd = folderOf({ 'group.yaml': group });
    const flags = [
      '--policies',
      '.',
      '--compat',
      '--enforce',
      '--create-namespace',
      '--members-only',
      '--image',
      'example.com/a:1',
      '-n',
      'ops',
    ];
    const { status, stdout, stderr } = await runInProcess(['install', ...flags, '--replicas', '1'], { cwd });
    expect([status, stderr]).toEqual([
      0,
      `note: the webhooks of --compat do not need the label rollout-group.dev/enforce=true: while no agent runs, they deny updates of StatefulSets and evictions in mimir
note: webhooks receive requests only for the StatefulSets named now; install again after you add a group
`,
    ]);
    await expect(withoutDefinitions(stdout)).toMatchFileSnapshot('golden/install-policies.yaml');
  });

  it('reads the certificate from files if cert-manager or a Secret provides it, and then needs no permission on Secrets', async () => {
    const cwd = folderOf({ 'ca.crt': '-----BEGIN CERTIFICATE-----\n' });
    const objectsOf = async (...flags: readonly string[]) => {
      const { stdout } = await runInProcess(['install', ...flags], { cwd });
      return { stdout, objects: parseAllDocuments(stdout).map((document) => document.toJS()) };
    };
    const issued = await objectsOf('--cert-manager-issuer', 'ClusterIssuer/ca');
    expect(issued.objects.find(({ kind }) => kind === 'Certificate').spec).toMatchObject({
      secretName: 'rollout-group-agent-tls-issued',
      dnsNames: ['rollout-group-agent.rollout-group.svc'],
      issuerRef: { kind: 'ClusterIssuer', name: 'ca' },
    });
    const configurations = issued.objects.filter(({ kind }) => kind.endsWith('WebhookConfiguration'));
    expect(configurations.map(({ metadata }) => metadata.annotations)).toEqual(
      configurations.map(() => ({ 'cert-manager.io/inject-ca-from': 'rollout-group/rollout-group-agent' })),
    );
    const given = await objectsOf('--certificate-secret', 'tls', '--ca-file', 'ca.crt', '--priority-class', 'high', '--service-monitor');
    expect(given.stdout).toContain('caBundle: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==');
    expect(given.objects.find(({ kind }) => kind === 'Deployment').spec.template.spec).toMatchObject({
      priorityClassName: 'high',
      volumes: [{ name: 'certificate', secret: { secretName: 'tls' } }],
    });
    expect(given.objects.map(({ kind }) => kind)).toContain('ServiceMonitor');
    for (const { objects, stdout } of [issued, given]) {
      expect(stdout).toContain('-server-tls.cert-file=/certificate/tls.crt');
      expect(objects.filter(({ kind }) => kind === 'Secret')).toEqual([]);
      const rules = objects.flatMap((object) => object.rules ?? []);
      expect(rules.filter(({ resources }: { resources: readonly string[] }) => resources.includes('secrets'))).toEqual([]);
    }
  });

  it.each([
    [['install', '--cert-manager-issuer', 'a', '--certificate-secret', 'b', '--ca-file', 'c'], 3, 'exclude each other'],
    [['install', '--cert-manager-issuer', 'Other/a'], 3, 'Other/a names no issuer'],
    [['install', '--certificate-secret', 'b'], 3, 'need each other'],
    [['install', '--certificate-secret', 'b', '--ca-file', 'missing.crt'], 10, 'missing.crt'],
    [['install', '--certificate-secret', 'b', '--ca-file', 'package.json'], 3, 'contains no certificate'],
    [['install', '--enforce'], 3, '--enforce needs the names of the namespaces'],
    [['install', '--members-only', '--groups-in', 'mimir'], 3, '--members-only needs the name of every StatefulSet'],
    [['install', '--dry-run', 'client'], 3, '--dry-run needs --apply'],
    [['install', '-n', 'Not_A_Name'], 3, 'Not_A_Name is not a valid namespace name'],
    [['install', '--groups-in', '*'], 3, '* is not a valid namespace name'],
    [['install', '--image', 'a b'], 3, '--image is not an image reference'],
    [['install', '--replicas', '0'], 3, '--replicas'],
    [['install', '--policies', 'missing'], 10, 'missing'],
    [['uninstall', '--dry-run', 'server'], 3, '--dry-run needs --apply'],
  ] as const)('rejects %j', async (words, code, what) => {
    const { status, stdout, stderr } = await runInProcess(words);
    expect([status, stdout]).toEqual([code, '']);
    expect(stderr).toContain(what);
  });

  it('installs nothing for policies with errors', async () => {
    const cwd = folderOf({ 'group.yaml': group.replace('onDelete', 'magic') });
    const { status, stdout, stderr } = await runInProcess(['install', '-f', '.'], { cwd });
    expect([status, stdout]).toEqual([4, '']);
    expect(stderr).toMatch(/RG\d{4}[\s\S]*1 error in the policies; no object was printed or changed\n$/);
  });

  it('requires the namespaces of groups if the policies do not name them', async () => {
    const cwd = folderOf({ 'set.yaml': 'apiVersion: v1\nkind: Service\nmetadata: { name: a }\n' });
    const { status, stderr } = await runInProcess(['install', '-f', '.'], { cwd });
    expect(status).toBe(3);
    expect(stderr).toContain('name the namespaces with --groups-in');
  });

  it('assigns objects without a namespace to the watched namespace', async () => {
    const cwd = folderOf({ 'group.yaml': group.replace(', namespace: mimir', '') });
    const { stdout } = await runInProcess(['install', '-f', '.', '--groups-in', 'loki'], { cwd });
    expect(stdout).toContain('-namespaces=loki\n');
  });
});

describe('install --apply', () => {
  it('applies each object with our field manager, in order, without force', async () => {
    const server = await fakeApiServer([], { hasAgent: false });
    const { status, stdout } = await runInProcess(['install', '--groups-in', 'mimir', '--enforce', '--apply', '--server', server.url]);
    expect(status).toBe(0);
    const printed = await runInProcess(['install', '--groups-in', 'mimir', '--enforce']);
    const wanted = parseAllDocuments(printed.stdout).map((document) => document.toJS());
    expect(server.writes.map(({ body }) => body)).toEqual(wanted);
    for (const { method, path } of server.writes)
      expect([method, path]).toEqual(['PATCH', expect.stringMatching(/\?fieldManager=rollout-group&force=false$/)]);
    expect(stdout.trim().split('\n').at(-1)).toBe(`${wanted.length} objects applied.`);
    expect(stdout).toContain('Deployment rollout-group/rollout-group-agent applied\n');
  });

  it('names only the namespaces without the enforcement label, if they may be read', async () => {
    const labels = { 'rollout-group.dev/enforce': 'true' };
    const namespaces = ['mimir', 'loki'].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } }));
    const notes = async (names: readonly string[], options: FakeOptions = {}) => {
      const { url } = await fakeApiServer(namespaces, { hasAgent: false, ...options });
      const flags = names.flatMap((name) => ['--groups-in', name]);
      return (await runInProcess(['install', ...flags, '--apply', '--dry-run', 'client', '--server', url])).stderr;
    };
    expect(await notes(['mimir', 'loki'])).toMatch(/^note: the image [^\n]*\n$/);
    expect(await notes(['mimir', 'tempo'])).toContain('kubectl label namespace tempo rollout-group.dev/enforce=true');
    expect(await notes(['mimir'], { forbidden: ['namespaces'] })).toContain('kubectl label namespace mimir rollout-group');
  });

  it('omits kinds that an older API server does not serve, and reports it; uninstall accepts that', async () => {
    const server = await fakeApiServer([], {
      missing: ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
      hasAgent: false,
    });
    const { status, stdout, stderr } = await runInProcess(['install', '--apply', '--server', server.url]);
    expect(stderr).toMatch(/note: the image rollout-group-agent:\S+ names no registry/);
    expect(status).toBe(0);
    for (const kind of ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding']) {
      expect(stdout).toContain(`${kind} rollout-group-update-strategy skipped: this API server does not serve the kind\n`);
    }
    expect(stdout.trim().split('\n').at(-1)).toBe(`${server.objects().length} objects applied.`);
    expect((await runInProcess(['uninstall', '--apply', '--server', server.url])).status).toBe(0);
    const without = await runInProcess(['install', '--no-admission-policies']);
    expect(without.stdout).not.toContain('kind: ValidatingAdmissionPolicy');
  });

  it('does the same again', async () => {
    const server = await fakeApiServer([], { hasAgent: false });
    for (const _time of [1, 2]) expect((await runInProcess(['install', '--apply', '--server', server.url])).status).toBe(0);
  });

  it('does not stop watching a namespace with groups, names them, and prints the command that keeps it', async () => {
    const cwd = folderOf({ 'other.yaml': group.replace('mimir', 'other') });
    const server = await fakeApiServer([parseAllDocuments(group)[0]?.toJS()], { hasAgent: false });
    const run = (...flags: string[]) => runInProcess(['install', '--apply', '-q', '--server', server.url, ...flags], { cwd });
    expect((await run('--groups-in', 'mimir')).status).toBe(0);
    const before = server.writes.length;
    const { status, stdout, stderr } = await run('--groups-in', 'other', '-f', 'other.yaml', '--image', 'r/a:1', '--enforce');
    expect([status, stdout, server.writes.length]).toEqual([5, '', before]);
    const given = `--apply -q --server ${server.url} --groups-in other -f other.yaml --image r/a:1 --enforce`;
    const kept = `install ${given} --groups-in mimir`;
    expect(stderr).toBe(`error: the agent would stop watching namespace mimir
  why: the installed agent runs with -namespaces=mimir; 1 group there: mimir/ingester
  do:  to keep watching, run: kubectl rollout-group ${kept}; to stop watching, first run: kubectl rollout-group uninstall -n rollout-group --apply
`);
    expect((await runInProcess(kept.split(' '), { cwd })).status).toBe(0);
    expect((await run()).status).toBe(0);
    const narrowed = await run('--groups-in', 'other', '--dry-run', 'server', '--token', 'secret');
    expect(narrowed.status).toBe(5);
    expect(narrowed.stderr).toContain('would stop watching every other namespace');
    expect(narrowed.stderr).toContain('to keep watching, omit --groups-in, --policies and -f;');
    expect((await run('--groups-in', 'mimir', '--token', 'secret')).stderr).not.toContain('secret');
    await runInProcess(['uninstall', '--apply', '-q', '--server', server.url]);
    expect((await run('--groups-in', 'other')).status).toBe(0);
  });

  it.each(['client', 'server'])('changes nothing with --dry-run %s', async (where) => {
    const server = await fakeApiServer([], { hasAgent: false });
    const { status, stdout } = await runInProcess(['install', '--apply', '--dry-run', where, '--server', server.url]);
    expect([status, server.objects()]).toEqual([0, []]);
    expect(server.writes.every(({ path }) => path.includes('dryRun=All'))).toBe(true);
    expect(server.writes.length > 0).toBe(where === 'server');
    expect(stdout).toMatch(/objects would be applied\. Nothing was changed\.\n$/);
  });

  it('stops at a missing permission, and names the applied objects', async () => {
    const server = await fakeApiServer([], { forbidden: ['clusterroles'] });
    const { status, stderr } = await runInProcess(['install', '--apply', '-q', '--server', server.url]);
    expect(status).toBe(11);
    expect(stderr).toMatch(/ClusterRole .*rollout-group-agent: .*; \d+ of \d+ objects were applied and stay/);
    expect(server.objects().map(({ kind }) => kind)).not.toContain('Deployment');
  });
});

describe('uninstall', () => {
  it('prints the objects to delete in order, and the remaining ones on standard error', async () => {
    const { status, stdout, stderr } = await runInProcess(['uninstall', '--groups-in', 'mimir', '--compat']);
    expect(status).toBe(0);
    const names = parseAllDocuments(stdout).map((document) => document.toJS());
    expect(names.map(({ kind }) => kind).slice(0, 11)).toEqual([
      'ValidatingAdmissionPolicyBinding',
      'ValidatingAdmissionPolicy',
      'ValidatingAdmissionPolicyBinding',
      'ValidatingAdmissionPolicy',
      'ValidatingWebhookConfiguration',
      'ValidatingWebhookConfiguration',
      'MutatingWebhookConfiguration',
      'ValidatingWebhookConfiguration',
      'MutatingWebhookConfiguration',
      'MutatingWebhookConfiguration',
      'ValidatingWebhookConfiguration',
    ]);
    expect(Object.keys(names[0])).toEqual(['apiVersion', 'kind', 'metadata']);
    expect(names.map(({ kind }) => kind).slice(-2)).toEqual(['Lease', 'Secret']);
    expect(stderr).toMatch(/^remains: ledgers; .*\n {2}kubectl delete configmap -l rollout-group.dev\/document -n mimir$/m);
  });

  it('--apply deletes exactly the installed objects, webhooks first', async () => {
    const stranger = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'other', namespace: 'mimir', labels: { app: 'other' } },
    };
    const server = await fakeApiServer([stranger], { hasAgent: false });
    await runInProcess([
      'install',
      '--groups-in',
      'mimir',
      '--compat',
      '--enforce',
      '--create-namespace',
      '--apply',
      '--server',
      server.url,
    ]);
    const before = server.writes.length;
    // Whatever flags it was installed with.
    const { status, stdout } = await runInProcess(['uninstall', '--apply', '--server', server.url]);
    expect(status).toBe(0);
    const deleted = server.writes.slice(before).map(({ method, path }) => `${method} ${path}`);
    expect(deleted.every((one) => one.startsWith('DELETE '))).toBe(true);
    expect(deleted.findLastIndex((one) => one.includes('webhookconfigurations'))).toBeLessThan(
      deleted.findIndex((one) => one.includes('deployments')),
    );
    expect(
      server
        .objects()
        .map(({ kind, metadata }) => `${kind} ${metadata.name}`)
        .sort(),
    ).toEqual(expect.arrayContaining(['Deployment other', 'Namespace mimir', 'Namespace rollout-group']));
    expect(new Set(server.objects().map(({ kind }) => kind))).toEqual(new Set(['Deployment', 'Namespace', 'CustomResourceDefinition']));
    expect(stdout).toMatch(/\d+ objects deleted\.\n$/);
    const again = await runInProcess(['uninstall', '--apply', '-q', '--server', server.url]);
    expect([again.status, again.stdout]).toEqual([0, 'No installation found in namespace rollout-group.\n']);
    await runInProcess(['uninstall', '--apply', '--crds', '--compat', '--server', server.url]);
    expect(server.objects().map(({ kind }) => kind)).not.toContain('CustomResourceDefinition');
  });

  it('printed names how to find partitions and permissions in other namespaces', async () => {
    const unnamed = await runInProcess(['uninstall']);
    expect(unnamed.stderr).toContain(
      '  kubectl delete rolebinding,role -l rollout-group.dev/installation=rollout-group --all-namespaces\n',
    );
    expect(unnamed.stderr).toContain('  kubectl patch statefulset NAME -n NAMESPACE --type merge -p');
    const named = await runInProcess(['uninstall', '--groups-in', 'mimir']);
    expect(named.stderr).not.toContain('rolebinding,role');
    const cwd = folderOf({ 'group.yaml': group });
    expect((await runInProcess(['uninstall', '-f', '.'], { cwd })).stderr).not.toContain('kubectl patch statefulset');
  });

  describe('where a partition blocks StatefulSets', () => {
    const held = (name: string, partition: number, namespace = 'mimir') => ({
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name, namespace },
      spec: {
        replicas: 3,
        serviceName: name,
        selector: { matchLabels: { name } },
        template: { metadata: { labels: { name } }, spec: { containers: [] } },
        updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition } },
      },
    });
    const sets = [held('held', 1_000_000), held('free', 0), held('elsewhere', 1_000_000, 'loki')];
    const patch = `kubectl patch statefulset held -n mimir --type merge -p '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}'`;

    it('names the StatefulSets of its agent before the deletion, and afterwards with the command', async () => {
      const server = await fakeApiServer(sets);
      await runInProcess(['install', '--groups-in', 'mimir', '--apply', '--server', server.url]);
      const { status, stderr } = await runInProcess(['uninstall', '--apply', '--server', server.url]);
      expect(status).toBe(0);
      expect(stderr).toMatch(/^warning: a partition blocks the StatefulSet mimir\/held\. /);
      expect(stderr).toContain(`remains: the partition of StatefulSet mimir/held; `);
      expect(stderr).toContain(`  ${patch}\n`);
      expect(stderr).not.toMatch(/free|elsewhere|rolebinding,role/);
      expect(server.objects().map(({ kind }) => kind)).not.toContain('Deployment');
    });

    it('counts the partition of a group from the first ordinal', async () => {
      const { spec, ...rest } = held('from-five', 3);
      const group = {
        apiVersion: 'rollout-group.dev/v1alpha1',
        kind: 'RolloutGroup',
        metadata: { name: 'five', namespace: 'mimir' },
        spec: { members: { zones: [{ name: 'a', statefulSet: 'from-five' }] }, rollout: { strategy: 'partition' } },
      };
      const server = await fakeApiServer([{ ...rest, spec: { ...spec, ordinals: { start: 5 } } }, group]);
      await runInProcess(['install', '--groups-in', 'mimir', '--apply', '--server', server.url]);
      const { stderr } = await runInProcess(['uninstall', '--apply', '--server', server.url]);
      expect(stderr).toMatch(/^warning: a partition blocks the StatefulSet mimir\/from-five\. /);
    });

    it('omits partitions that block nothing, and continues without read access', async () => {
      const free = await fakeApiServer([held('free', 0)]);
      expect((await runInProcess(['uninstall', '--apply', '--server', free.url])).stderr).not.toContain('partition');
      const hidden = await fakeApiServer(sets, { forbidden: ['statefulsets'] });
      const { status, stderr } = await runInProcess(['uninstall', '--apply', '--server', hidden.url]);
      expect(status).toBe(0);
      expect(stderr).toContain('the partitions of the StatefulSets are unknown: no permission');
    });

    it.each([
      ['n', [], false],
      ['y', [], true],
      ['n', ['--yes'], true],
    ] as const)('asks on a terminal, and accepts %s with %j', async (answer, flags, isDeleted) => {
      const server = await fakeApiServer(sets);
      await runInProcess(['install', '--groups-in', 'mimir', '--apply', '--server', server.url]);
      const { status } = await runInProcess(['uninstall', '--apply', '--server', server.url, ...flags], { answer });
      expect(status).toBe(isDeleted ? 0 : 5);
      expect(server.objects().some(({ kind }) => kind === 'Deployment')).toBe(!isDeleted);
    });
  });

  it('--apply --dry-run client deletes nothing', async () => {
    const server = await fakeApiServer([], { hasAgent: false });
    await runInProcess(['install', '--apply', '--server', server.url]);
    const before = server.objects().length;
    const { stdout } = await runInProcess(['uninstall', '--apply', '--dry-run', 'client', '--server', server.url]);
    expect(server.objects().length).toBe(before);
    expect(stdout).toMatch(/objects would be deleted\. Nothing was changed\.\n$/);
  });

  it('reads everything before it deletes anything', async () => {
    const server = await fakeApiServer([], { forbidden: ['roles'] });
    const { status, stdout } = await runInProcess(['uninstall', '--apply', '-q', '--server', server.url]);
    expect([status, stdout, server.writes]).toEqual([11, '', []]);
  });
});
