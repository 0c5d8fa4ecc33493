// A credential in each input of a review: no output, artifact, comment or message contains it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { gitHubJob, serveForge } from './forge/forge-server.ts';
import { runInProcess } from './in-process.ts';
import { ScratchRepository } from './review-kit.ts';

const canary = 's3cr3t-canary';
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
