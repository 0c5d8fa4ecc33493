// A credential in each input of a review: no output, artifact, comment or message contains it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gitHubJob, serveForge } from './forge/forge-server.ts';
import { runInProcess } from './in-process.ts';
import { ScratchRepository } from './review-kit.ts';

const canary = 's3cr3t-canary';
/** Parameters whose values give access, as object stores, forges and chat services write them. */
const query = `sv=1&sig=${canary}&X-Amz-Signature=${canary}&key=${canary}&code=${canary}&se=2&token=${canary}`;
const address = `https://me:${canary}@files.example.com/a?${query}#access_token=${canary}`;
const repository = new ScratchRepository();
const nowMs = Date.parse('2026-11-26T10:00:00Z');
const dirs = ['--policies', 'policies', '--manifests', 'manifests'];

beforeAll(() => {
  repository.branch('secret', () => {
    const secret = '\nkind: Secret\nmetadata: { name: db, namespace: mimir }\n';
    repository.write('manifests/secret.yaml', `apiVersion: v1${secret}stringData: { password: s3cr3t-canary }\n`);
    const headers = '[{ name: Authorization, value: s3cr3t-canary }]';
    const fields = [
      'env: [{ name: DB_PASSWORD, value: s3cr3t-canary }, { name: ALERTS, value: "https://hooks.slack.com/services/T0/s3cr3t-canary" }]',
      'command: [sh, "-c", "curl -H \'Authorization: Bearer s3cr3t-canary\' https://me:s3cr3t-canary@x/?token=s3cr3t-canary"]',
      `livenessProbe: { httpGet: { port: 80, path: "/?token=s3cr3t-canary", httpHeaders: ${headers} } }`,
    ];
    const manifest = 'manifests/ingester-zone-a.yaml';
    repository.replace(manifest, /( +)image: grafana.mimir:\S+/g, `$&${fields.map((field) => `\n$1${field}`).join('')}`);
    repository.replace(manifest, /^( +)labels:$/gm, '$1annotations: { vault.example.com/token: s3cr3t-canary }\n$&');
    const group = 'policies/ingester.yaml';
    repository.replace(group, /^ {2}name: ingester$/gm, '$&\n  annotations: { vault.example.com/token: s3cr3t-canary }');
    repository.replace(group, 'path: /ingester/prepare-shutdown', 'path: "/ingester/prepare-shutdown?token=s3cr3t-canary"');
    const query = 'query: \'sum(rate(errors{api_token="s3cr3t-canary"}[5m]))\'';
    const gates = `- { name: errors, prometheus: { source: prometheus, ${query} }, pass: { "<": [{ var: value }, 1] } }`;
    repository.replace(group, /^ {2}rollout:$/gm, `  gates:\n    ${gates}\n$&`);
  });
  repository.branch('addresses', () => {
    const manifest = 'manifests/ingester-zone-a.yaml';
    const fields = [
      `env: [{ name: UPLOADS, value: "${address}" }, { name: MIRRORS, value: "${address},${address}" }]`,
      `args: ["--upload=${address}", --upload, "${address}", "upload ${address} now"]`,
      `lifecycle: { preStop: { httpGet: { port: 80, path: "/stop?${query}" } } }`,
      `readinessProbe: { httpGet: { port: 80, path: "/ready?${query}" } }`,
    ];
    repository.replace(manifest, /^ +(?:args|readinessProbe):\n(?: {12,}.*\n)+/gm, '');
    repository.replace(
      manifest,
      /( +)image: grafana.mimir:\S+/g,
      `$1image: grafana/mimir:9.0.0${fields.map((field) => `\n$1${field}`).join('')}`,
    );
    repository.replace(manifest, /^( +)labels:$/gm, `$1annotations: { example.com/dashboard: "${address}" }\n$&`);
    const group = 'policies/ingester.yaml';
    repository.replace(group, /^ {2}name: ingester$/gm, `$&\n  annotations: { example.com/dashboard: "${address}" }`);
    repository.replace(group, 'path: /ingester/prepare-shutdown', `path: "/ingester/prepare-shutdown?${query}"`);
    repository.replace(group, 'path: /ingester/prepare-instance-ring-downscale', `path: "/ingester/ring?${query}"`);
    const gates = [
      `- { name: errors, prometheus: { source: prometheus, query: 'errors{url="${address}"}' }, pass: { "<": [{ var: value }, 1] } }`,
      `- { name: health, http: { port: 80, path: "/health?${query}" }, pass: { "<": [{ var: value }, 1] } }`,
    ];
    repository.replace(
      group,
      /^ {2}rollout:$/gm,
      `  gates:\n    ${gates.join('\n    ')}\n$&\n    waves:\n      - { name: all, zones: [a, b, c], percent: 100, after: { gates: [errors, health] } }`,
    );
    const rules = `
apiVersion: rollout-group.dev/v1alpha1
kind: RolloutPolicy
metadata: { name: guard, namespace: mimir, annotations: { example.com/dashboard: "${address}" } }
spec:
  targets: { groups: [ingester] }
  inputs:
    metrics: { load: { source: prometheus, query: 'load{url="${address}"}', noData: zero } }
  rules:
    - { name: calm, actions: [rollout, scaleDown], when: { ">": [{ var: inputs.metrics.load }, 1] }, effect: deny, message: "see ${address}" }
    - { name: always, actions: [delete], effect: deny, message: "see ${address}" }
---
apiVersion: rollout-group.dev/v1alpha1
kind: MetricSource
metadata: { name: prometheus, namespace: mimir }
spec: { prometheus: { url: "http://prometheus.monitoring:9090" }, usableFrom: { namespaces: [mimir] } }
`;
    repository.write('policies/guard.yaml', rules);
  });
  repository.branch('faults', () => {
    repository.git('checkout', '--quiet', 'addresses', '--', '.');
    repository.replace('policies/guard.yaml', 'effect: deny, message', 'effect: refuse, message');
    repository.replace('policies/guard.yaml', 'var: inputs.metrics.load', `var: "${address}"`);
    repository.replace('policies/ingester.yaml', 'http: {', 'colour: red, http: {');
  });
});

afterAll(() => repository.remove());

async function review(...words: readonly string[]) {
  return runInProcess(['review', '--base', 'main', '--head', 'secret', ...dirs, ...words], { cwd: repository.root, nowMs });
}

it.each(['table', 'markdown', 'json', 'yaml', 'sarif', 'junit', 'github'])(
  'the output %s of a review shows the changes without it',
  async (format) => {
    const { stdout, stderr, status } = await review('-o', format);
    expect([status, `${stdout}${stderr}`.includes(canary)]).toEqual([0, false]);
    expect(stdout).toContain('prepare.endpoint.path');
  },
);

it('neither the approved plans nor the comment and its messages contain it', async () => {
  const { stdout } = await review('-o', 'markdown', '--out', 'plans');
  const forge = await serveForge();
  repository.write('review.md', stdout);
  const posted = await runInProcess(['comment', 'review.md', '--status', '--commit', 'a'.repeat(40)], {
    cwd: repository.root,
    env: gitHubJob(forge),
  });
  expect([posted.status, forge.comments.length]).toEqual([0, 1]);
  const texts = [
    readFileSync(join(repository.root, 'plans/default.yaml'), 'utf8'),
    posted.stdout,
    posted.stderr,
    JSON.stringify(forge.requests.map(({ body }) => body)),
  ];
  expect(texts.filter((text) => text.includes(canary))).toEqual([]);
  expect(texts[0]).toContain('ingester-zone-a');
});

describe('a credential with any usual name or form', () => {
  const names = `DB_PASS MYSQL_PWD LDAP_BIND_PW PASSPHRASE CREDS GH_PAT ENCRYPTION_KEY LICENSE_KEY DD_APP_KEY SALT X-Auth X-Access
    X-Signature dbPass accountKey API_KEYS SESSION_ID SENTRY_DSN KEY
    BASICAUTH PASSCODE PIN OTP SEED MNEMONIC SAS CONNECTION_STRING`.split(/\s+/);
  const values = [
    `me:${canary}@tcp(db:3306)/x`,
    `me:${canary}@/x`,
    `me/${canary}@//db:1521/x`,
    `jdbc:oracle:thin:me/${canary}@db:1521:x`,
    `AccountName=x;AccountKey=${canary}==;EndpointSuffix=core`,
    `https://discord.com/api/webhooks/1/${canary}`,
    `https://api.telegram.org/bot123:${canary}/sendMessage`,
    ...['ghp_', 'github_pat_', 'glpat-', 'xoxb-', 'sk_live_', 'AKIA', 'AIza', 'eyJhbGciOiJIUzI1NiJ9.'].map((start) => `${start}${canary}`),
    `sk-${canary}-0123456789`,
    `-----BEGIN RSA PRIVATE KEY-----\n${canary}\n-----END RSA PRIVATE KEY-----`,
    `postgres://me:${canary}@db/x`,
    `host=db user=me password=${canary}`,
  ];
  const hexadecimal = '7f3a9c';
  const pairs = [
    ...names.map((name) => ({ name, value: canary })),
    ...values.map((value, index) => ({ name: `plain${index}`, value })),
    ...[canary, hexadecimal].map((value) => ({ name: 'plain', value })),
  ];
  const fields = {
    env: pairs,
    args: [...names.map((name) => `--${name.toLowerCase()}=${canary}`), ...names.flatMap((name) => [`--${name}`, canary]), ...values],
    livenessProbe: { httpGet: { port: 80, path: `/a?x=${canary}`, httpHeaders: pairs } },
  };
  const annotations = Object.fromEntries(pairs.map(({ name, value }) => [`example.com/${name}`, value]));
  const harmless = [
    ...['LOG_LEVEL=debug', 'GOMEMLIMIT=2GiB', 'JAVA_OPTS=-Xms4g -Xmx4g -XX:+UseG1GC', 'KAFKA=kafka.svc.cluster.local:9093'],
    ...['REDIS=redis:6379', 'IMAGE=mimir:v2'],
    ...['RACK=eu-west-1a', 'VERSION=v1.2.3', 'CPU=500m', 'WAIT=2h30m', 'TRACES=http://otel:4318', 'KEY_FILE=/etc/tls/tls.key'],
  ];
  const args = ['-querier.max-concurrent=8', '-memberlist.join=dns+gossip.mimir:7946', '-auth.multitenancy-enabled=true'];

  beforeAll(() => {
    repository.branch('forms', () => {
      const manifest = 'manifests/ingester-zone-a.yaml';
      repository.replace(manifest, /^ +(?:args|readinessProbe):\n(?: {12,}.*\n)+/gm, '');
      const shown = { ...fields, args: [...fields.args, ...args], env: [...pairs, ...harmless.map(asVariable)] };
      const lines = Object.entries(shown).map(([key, value]) => `\n$1${key}: ${JSON.stringify(value)}`);
      repository.replace(manifest, /( +)image: grafana.mimir:\S+/g, `$1image: grafana/mimir:9.0.0${lines.join('')}`);
      repository.replace(manifest, /^( +)labels:$/gm, `$1annotations: ${JSON.stringify(annotations)}\n$&`);
    });
  });

  const asVariable = (text: string) => ({ name: text.slice(0, text.indexOf('=')), value: text.slice(text.indexOf('=') + 1) });
  const sides = ['--current', 'git:main:manifests', '--desired', 'git:forms:manifests'];
  const verbs: readonly (readonly [words: readonly string[], formats: readonly string[]])[] = [
    [
      ['plan', ...sides, '-f', 'git:main:policies'],
      ['table', 'wide', 'json', 'yaml', 'markdown', 'html'],
    ],
    [
      ['diff', ...sides, '-f', 'git:main:policies'],
      ['table', 'json', 'yaml', 'markdown'],
    ],
    [
      ['review', '--base', 'main', '--head', 'forms', ...dirs],
      ['table', 'json', 'yaml', 'markdown', 'sarif', 'junit', 'github'],
    ],
    [
      ['review', '--base', 'forms', '--head', 'main', ...dirs],
      ['table', 'json', 'markdown'],
    ],
    [
      ['lint', '-f', 'git:main:policies', '-f', 'git:forms:manifests'],
      ['text', 'json', 'sarif', 'github', 'markdown'],
    ],
  ];

  it.each(verbs.flatMap(([words, formats]) => formats.map((format) => [words[0], format, words] as const)))(
    'is in no output of %s -o %s',
    async (_verb, format, words) => {
      const { stdout, stderr } = await runInProcess([...words, '-o', format], { cwd: repository.root, nowMs });
      expect(linesWith(`${stdout}${stderr}`)).toEqual([]);
    },
  );

  it('leaves harmless values readable, but not hexadecimal digits', async () => {
    const { stdout } = await runInProcess(['plan', ...sides, '-f', 'git:main:policies', '-o', 'json'], { cwd: repository.root, nowMs });
    expect([...harmless.map((text) => asVariable(text).value), ...args, '9.0.0'].filter((text) => !stdout.includes(text))).toEqual([]);
    expect(stdout).not.toContain(hexadecimal);
  });
});

/** Returns the surroundings of the first canary in each line. */
function linesWith(text: string): readonly string[] {
  const lines = text.split('\n').filter((line) => line.includes(canary));
  return lines.map((line) => line.slice(Math.max(0, line.indexOf(canary) - 100), line.indexOf(canary) + 60));
}

describe('an address with credentials in a manifest and in a policy', () => {
  const sides = ['--current', 'git:main:manifests', '--desired', 'git:addresses:manifests', '-f', 'git:addresses:policies'];
  const policies = ['-f', 'git:addresses:policies', '-f', 'git:addresses:manifests'];
  const verbs: readonly (readonly [words: readonly string[], formats: readonly string[], shows: string])[] = [
    [['plan', ...sides], ['table', 'wide', 'json', 'yaml', 'markdown', 'html'], 'readinessProbe'],
    [['diff', ...sides], ['table', 'json', 'yaml', 'markdown'], 'UPLOADS'],
    [['diff', '--current', 'git:main:policies', '--desired', 'git:addresses:policies'], ['table', 'json', 'yaml', 'markdown'], 'prepare'],
    [
      ['review', '--base', 'main', '--head', 'addresses', ...dirs],
      ['table', 'json', 'yaml', 'markdown', 'sarif', 'junit', 'github'],
      'prepare.endpoint.path',
    ],
    [['review', '--base', 'addresses', '--head', 'main', ...dirs], ['table', 'json', 'markdown'], 'prepare.endpoint.path'],
    [['explain', 'ingester', ...sides], ['table', 'json', 'yaml'], 'ingester'],
    [['lint', ...policies], ['text', 'json', 'jsonl', 'sarif', 'junit', 'github', 'markdown'], ''],
    [['simulate', ...sides, '--runs', '1'], ['json'], '/ingester/ring?'],
    [['lint', '-f', 'git:faults:policies'], ['text', 'json', 'jsonl', 'sarif', 'junit', 'github', 'markdown'], 'colour'],
  ];
  const cases = verbs.flatMap(([words, formats, shows]) => formats.map((format) => [words[0], format, words, shows] as const));

  it.each(cases)('is not shown with its credentials by %s -o %s', async (_verb, format, words, shows) => {
    const { stdout, stderr } = await runInProcess([...words, '-o', format], { cwd: repository.root, nowMs });
    expect(linesWith(`${stdout}${stderr}`)).toEqual([]);
    expect(stdout).toContain(shows);
  });

  it.each([
    ['plan', ...sides.map((side) => side.replace('addresses:policies', 'faults:policies'))],
    ['review', '--base', 'main', '--head', 'faults', ...dirs],
  ])('is not shown with its credentials next to an error that %s reports', async (...words) => {
    const { stdout, stderr } = await runInProcess(words, { cwd: repository.root, nowMs });
    expect(linesWith(`${stdout}${stderr}`)).toEqual([]);
    expect(`${stdout}${stderr}`).toContain('colour');
  });
});
