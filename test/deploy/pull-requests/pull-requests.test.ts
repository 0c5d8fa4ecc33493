// The GitHub action, its workflows and the GitLab template: what they may do, and what their shell steps do in a scratch repository.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { gitHubJob, gitLabJob, headCommit, serveForge, token } from '../../plugin/forge/forge-server.ts';
import { folderWith } from '../../plugin/process.ts';
import { runAction, runGitLabJob, scratchRepository } from './runner.ts';

const actionText = readFileSync('deploy/github/action.yml', 'utf8');
const workflows = readdirSync('deploy/github/workflows').map((name) => join('deploy/github/workflows', name));
const texts = [actionText, ...workflows.map((path) => readFileSync(path, 'utf8'))];

describe('the files for GitHub', () => {
  it('put no value into a shell script: values reach it only through the environment', () => {
    const scripts = texts.flatMap((text) =>
      [...text.matchAll(/^( *)(?:- )?run: (.*(?:\n(?:\1 .*| *))*)/gm)].map(([, , script = '']) => script),
    );
    expect(scripts.length).toBeGreaterThan(4);
    expect(scripts.filter((script) => script.includes('${{'))).toEqual([]);
  });

  it('pin the actions of other projects by commit, and their own by the version of this one', () => {
    const used = texts.flatMap((text) => [...text.matchAll(/^ *(?:- )?uses: (\S+)/gm)].map(([, name = '']) => name));
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
    const own = `rollout-group/rollout-group/deploy/github@v${version}`;
    expect(used.filter((name) => name !== own && !/@[0-9a-f]{40}$/.test(name))).toEqual([]);
    expect(used.filter((name) => name === own)).toHaveLength(2);
  });

  it('review without secrets, and comment without code of the pull request', () => {
    const [comment, review] = ['comment', 'review'].map((name) =>
      parse(readFileSync(`deploy/github/workflows/rollout-${name}.yml`, 'utf8')),
    );
    // A filter of paths would leave the comment of an earlier push if the next one reverts its change.
    expect([review.on, review.permissions]).toEqual(['pull_request', { contents: 'read' }]);
    expect([Object.keys(comment.on), comment.permissions]).toEqual([['workflow_run'], {}]);
    expect(comment.jobs.comment.permissions).toEqual({ actions: 'read', 'pull-requests': 'write', statuses: 'write' });
    expect(comment.on.workflow_run.workflows).toEqual([review.name]);
    expect(JSON.stringify(comment)).not.toContain('checkout');
    expect(texts.join('')).not.toMatch(/secrets\.|pull_request_target/);
  });

  const linter = actionlint();
  /** The workflows that the page shows. */
  const shown = [...readFileSync('docs/pull-requests.md', 'utf8').matchAll(/```yaml\n(name: [\s\S]*?)```/g)].map(([, text = '']) => text);
  it.skipIf('missing' in linter)('have no finding of actionlint', () => {
    expect(shown).toHaveLength(1);
    const folder = folderWith(Object.fromEntries(shown.map((text, index) => [`${index}.yml`, text])));
    const files = [
      ...workflows,
      ...['ci.yaml', 'release.yml'].map((name) => join('.github/workflows', name)),
      ...shown.map((_, index) => join(folder, `${index}.yml`)),
    ];
    const { status, stdout, stderr } = spawnSync('missing' in linter ? '' : linter.path, files, {
      encoding: 'utf8',
    });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
  });
});

/** Finds actionlint in the cache, or builds it with Go. */
function actionlint(): { readonly path: string } | { readonly missing: string } {
  const version = 'v1.7.12';
  const folder = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'rollout-group', `actionlint-${version}`);
  const path = join(folder, 'actionlint');
  if (existsSync(path)) return { path };
  mkdirSync(folder, { recursive: true });
  const env = { ...process.env, GOBIN: folder, CGO_ENABLED: '0', GOWORK: 'off' };
  const go = spawnSync('go', ['install', `github.com/rhysd/actionlint/cmd/actionlint@${version}`], { encoding: 'utf8', env });
  if (go.status === 0) return { path };
  process.stderr.write(`SKIPPED: the workflows are not linted, because actionlint cannot be built: ${go.error?.message ?? go.stderr}\n`);
  return { missing: 'actionlint' };
}

const example = (path: string): string => readFileSync(join('examples/quick-start', path), 'utf8');
const zones = ['a', 'b', 'c'].map((zone) => `cache-${zone}.yaml`);
const base = {
  ...Object.fromEntries(zones.map((name) => [`manifests/${name}`, example(`manifests/${name}`)])),
  'policies/cache.yaml': example('policies/cache.yaml'),
};
const change = Object.fromEntries(zones.map((name) => [`manifests/${name}`, example(`manifests-next/${name}`)]));
const blockedChange = { ...change, 'policies/cache.yaml': base['policies/cache.yaml'].replace('maxUnavailable: 2', 'maxUnavailable: 0') };

const directories = { manifests: 'manifests', policies: 'policies' };

const event = JSON.stringify({ pull_request: { number: 7, head: { sha: headCommit } } });
const runEvent = JSON.stringify({
  workflow_run: { head_sha: headCommit, head_branch: 'change', head_repository: { owner: { login: 'someone' } } },
});

describe('the action', () => {
  it('makes the review of the merge commit, posts it and sets the status', async () => {
    const forge = await serveForge();
    const cwd = await scratchRepository(base, change);
    const env = gitHubJob(forge, join(folderWith({ 'event.json': event }), 'event.json'));
    const inputs = { ...directories, comment: 'true', status: 'true', environment: 'production', sarif: 'true' };
    const { status, log, outputs, summary, temp } = await runAction({ cwd, env }, inputs);
    expect([status, outputs['exit-code']], log).toEqual([0, '0']);
    expect(forge.comments.map(({ body }) => body)).toEqual([
      expect.stringMatching(/^<!-- rollout-group:review env=production outcome=complete /),
    ]);
    expect(forge.comments[0]?.body).toContain('shop/cache');
    expect(forge.statuses).toEqual([expect.objectContaining({ state: 'success', context: 'rollout-group/production' })]);
    expect(summary).toContain('### Rollout review');
    expect(readFileSync(join(temp, 'rollout-review/review.json'), 'utf8')).toContain('shop');
    expect(JSON.parse(readFileSync(join(temp, 'rollout-group.sarif'), 'utf8')).version).toBe('2.1.0');
    expect(log).not.toContain(token);
    expect(outputs['plans']).toBe(join(temp, 'rollout-review/plans'));
    expect(readFileSync(join(temp, 'rollout-review/plans/default.yaml'), 'utf8')).toContain('rollout-group.dev/approved-plan: ');
    // A second push.
    const second = await runAction({ cwd, env }, { ...inputs, out: 'plans' });
    expect([second.status, second.outputs['plans'], readdirSync(join(cwd, 'plans'))]).toEqual([0, 'plans', ['default.yaml']]);
    expect(forge.comments).toHaveLength(1);
  });

  it('posts a blocked rollout, and then fails as review does', async () => {
    const forge = await serveForge();
    const cwd = await scratchRepository(base, blockedChange);
    const env = gitHubJob(forge, join(folderWith({ 'event.json': event }), 'event.json'));
    const { status, outputs, log } = await runAction({ cwd, env }, { ...directories, comment: 'true', status: 'true' });
    expect([status, outputs['exit-code']], log).toEqual([5, '5']);
    expect(forge.comments[0]?.body).toContain('outcome=blocked');
    expect(forge.statuses).toEqual([expect.objectContaining({ state: 'failure' })]);
  });

  it('posts nothing if no review can be made', async () => {
    const forge = await serveForge();
    const cwd = await scratchRepository(base, { 'policies/cache.yaml': 'kind: [' });
    const { status, outputs, temp } = await runAction({ cwd, env: gitHubJob(forge) }, { ...directories, comment: 'true' });
    expect([status, outputs['file']]).toEqual([4, '']);
    expect(existsSync(join(temp, 'rollout-review'))).toBe(false);
    expect(forge.requests).toEqual([]);
  });

  it('takes hostile inputs as words', async () => {
    const cwd = await scratchRepository(base, change);
    const evil = '"; touch pwned; $(touch pwned) `touch pwned` #';
    for (const name of ['base', 'head', 'manifests', 'policies', 'tests', 'environment', 'fail-on', 'out']) {
      await runAction({ cwd, env: {} }, { ...(name === 'environment' ? {} : directories), [name]: evil, sarif: 'true' });
    }
    const forge = await serveForge();
    expect((await runAction({ cwd, env: gitHubJob(forge) }, { ...directories, environment: evil, comment: 'true' })).status).toBe(3);
    expect(existsSync(join(cwd, 'pwned'))).toBe(false);
  });

  it('posts the review of another job on the pull request of the event', async () => {
    const [forge, cwd] = [await serveForge(), await scratchRepository(base, change)];
    const { outputs } = await runAction({ cwd, env: {} }, directories);
    forge.pulls = [{ number: 7, head: { sha: headCommit } }];
    const folder = folderWith({ 'event.json': runEvent });
    const env = { ...gitHubJob(forge, join(folder, 'event.json')), GITHUB_REF: 'refs/heads/main' };
    const { status, log } = await runAction({ cwd: folder, env }, { file: outputs['file'] ?? '', comment: 'true', status: 'false' });
    expect(status, log).toBe(0);
    expect(forge.writes).toEqual(['POST /api/v3/repos/acme/infra/issues/7/comments']);
  });

  it('refuses a review of another job that is a link, too long, without a marker or with a mention', async () => {
    const forge = await serveForge();
    const marker = '<!-- rollout-group:plan outcome=unchanged -->\n';
    const folder = folderWith({ 'long.md': marker + 'x'.repeat(300_000), 'plain.md': 'x', 'mention.md': `${marker}@team`, 'sub/x': '' });
    symlinkSync('/etc/passwd', join(folder, 'link.md'));
    const post = async (name: string) =>
      (await runAction({ cwd: folder, env: gitHubJob(forge) }, { file: join(folder, name), comment: 'true' })).status;
    expect(await Promise.all(['link.md', 'long.md', 'sub', 'plain.md', 'mention.md'].map(post))).toEqual([1, 1, 1, 4, 4]);
    expect(await post('missing.md')).toBe(0);
    expect(forge.requests).toEqual([]);
  });

  it('builds the plugin from its own source if it is not installed', async () => {
    const folder = folderWith({ 'bin/npm': '#!/bin/sh\necho "$PWD: npm $*" >&2\n', 'source/deploy/github/x': '' });
    chmodSync(join(folder, 'bin/npm'), 0o755);
    const env = { PATH: `${join(folder, 'bin')}:/usr/bin:/bin`, GITHUB_ACTION_PATH: join(folder, 'source/deploy/github') };
    const { log } = await runAction({ cwd: folder, env }, { file: 'missing' });
    const source = join(folder, 'source');
    expect(log).toContain(`${source}: npm ci --ignore-scripts --no-audit --no-fund --loglevel=error\n${source}: npm run --silent build\n`);
  });
});

const directoriesAtGitLab = { ROLLOUT_MANIFESTS: 'manifests', ROLLOUT_POLICIES: 'policies' };

describe('the template for GitLab', () => {
  const job = async (repository: string, forge: Parameters<typeof gitLabJob>[0]) => {
    const [baseSha, sha] = ['HEAD^1', 'HEAD'].map((name) =>
      spawnSync('git', ['rev-parse', name], { cwd: repository, encoding: 'utf8' }).stdout.trim(),
    );
    forge.head = sha ?? '';
    forge.login = 'project_42_bot';
    return {
      cwd: repository,
      env: { ...gitLabJob(forge), ...directoriesAtGitLab, CI_MERGE_REQUEST_DIFF_BASE_SHA: baseSha ?? '', CI_COMMIT_SHA: sha ?? '' },
    };
  };

  it.each([
    ['complete', change, 0, 'success'],
    ['blocked', blockedChange, 5, 'failed'],
  ])('posts a rollout that is %s', async (outcome, files, exitCode, state) => {
    const forge = await serveForge();
    const given = await job(await scratchRepository(base, files), forge);
    const review = await runGitLabJob('rollout-review', given);
    expect(review.status, review.log).toBe(exitCode);
    expect(readFileSync(join(given.cwd, 'rollout-plans/default.yaml'), 'utf8')).toContain('rollout-group.dev/approved-plan: ');
    const comment = await runGitLabJob('rollout-comment', given);
    expect(comment.status, comment.log).toBe(0);
    expect(forge.comments.map(({ body }) => body)).toEqual([expect.stringContaining(`outcome=${outcome}`)]);
    expect(forge.statuses).toEqual([expect.objectContaining({ state, name: 'rollout-group/default' })]);
    expect(review.log + comment.log).not.toContain(token);
  });

  it('compares the commit of a pipeline for merged results with the target branch', async () => {
    const cwd = await scratchRepository(base, change);
    const { env } = await job(cwd, await serveForge());
    const merged = {
      ...env,
      CI_MERGE_REQUEST_TARGET_BRANCH_SHA: env.CI_MERGE_REQUEST_DIFF_BASE_SHA,
      CI_MERGE_REQUEST_DIFF_BASE_SHA: 'older',
    };
    const { status, log } = await runGitLabJob('rollout-review', { cwd, env: merged });
    expect(status, log).toBe(0);
  });

  it('posts nothing if no review can be made', async () => {
    const forge = await serveForge();
    const given = await job(await scratchRepository(base, { 'policies/cache.yaml': 'kind: [' }), forge);
    expect((await runGitLabJob('rollout-review', given)).status).toBe(4);
    expect(await runGitLabJob('rollout-comment', given)).toMatchObject({
      status: 0,
      log: 'there is no review to post: see the log of the job rollout-review\n',
    });
    expect(forge.requests).toEqual([]);
  });

  it('runs only for merge requests, and comments only with a token', () => {
    const template = parse(readFileSync('deploy/gitlab/rollout-group.gitlab-ci.yml', 'utf8'));
    const rules = ['rollout-review', 'rollout-comment'].map((name) => template[name].rules.map((rule: { if: string }) => rule.if));
    const isMergeRequest = '$CI_PIPELINE_SOURCE == "merge_request_event"';
    expect(rules).toEqual([[isMergeRequest], [`${isMergeRequest} && $GITLAB_TOKEN`]]);
  });
});
